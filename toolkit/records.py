"""Dataclasses whose methods are written when they are first called.

`dataclasses.dataclass` of Python 3.11 and 3.12 compiles up to six functions for each class when its module is imported.
A command imports more than a hundred such classes, makes instances of some, and prints or compares fewer. `dataclass`
here makes the same classes, and `dataclasses.fields`, `replace` and `asdict` take them; but a class costs what its body
costs, and a method is compiled by whoever calls it first.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, FrozenInstanceError, field
from reprlib import recursive_repr
from typing import Any, TypeVar, cast, dataclass_transform, overload

_T = TypeVar("_T")
#: stands in signatures for a default that is made anew
_MADE = object()
#: where a class keeps what it is made of
_FACTS = "__record_facts__"
#: what the functions of `dataclasses` look for on a class
_ASKED = ("__dataclass_fields__", "__dataclass_params__")


class _Facts:
    """What a class declares, behind what its bases do.

    Attributes:
        fields: name to default: a value, MISSING, or what `dataclasses.field` made.
        types: name to annotation.
    """

    __slots__ = ("cls", "eq", "fields", "frozen", "types")

    def __init__(self, cls: type, own: Mapping[str, Any], eq: bool, frozen: bool):
        self.cls, self.eq, self.frozen = cls, eq, frozen
        self.fields: dict[str, Any] = {}
        self.types: dict[str, Any] = {}
        for base in cls.__mro__[:0:-1]:
            facts = vars(base).get(_FACTS)
            declared = vars(base).get("__dataclass_fields__", {}) if facts is None else facts.fields
            self.fields.update(declared)
            self.types.update({name: kind for name, kind in _annotations(base).items() if name in declared})
        self.fields.update(own)
        self.types.update({name: kind for name, kind in _annotations(cls).items() if name in own})

    def names(self, wanted: Callable[[Any], Any]) -> list[str]:
        """The fields that are plain, or of which something is true."""
        return [name for name, default in self.fields.items() if not isinstance(default, Field) or wanted(default)]


def _annotations(cls: type) -> dict[str, Any]:
    return vars(cls).get("__annotations__", {})


@overload
def dataclass(cls: type[_T], /) -> type[_T]: ...
@overload
def dataclass(*, eq: bool = True, frozen: bool = False, slots: bool = False) -> Callable[[type[_T]], type[_T]]: ...
@dataclass_transform(field_specifiers=(field,))
def dataclass(cls: Any = None, /, *, eq: bool = True, frozen: bool = False, slots: bool = False) -> Any:
    """Make a dataclass of a class, as `dataclasses.dataclass` does.

    Raises:
        ValueError: a default can be changed; `field(default_factory=...)` makes one for each instance.
    """

    def make(given: type) -> type:
        return _made(given, eq, frozen, slots)

    return make if cls is None else make(cls)


def _made(cls: type, eq: bool, frozen: bool, slots: bool) -> type:
    own: dict[str, Any] = {}
    for name, annotation in _annotations(cls).items():
        if str(annotation).startswith(("ClassVar", "typing.ClassVar")):
            continue
        own[name] = default = vars(cls).get(name, MISSING)
        if default.__class__.__hash__ is None:
            raise ValueError(f"{cls.__qualname__}.{name}: a {type(default).__name__} would be the default of all")
    if slots:
        cls = _slotted(cls, own)
    else:
        for name, default in own.items():
            if isinstance(default, Field):
                plain = cast("Field[Any]", default).default
                delattr(cls, name) if plain is MISSING else setattr(cls, name, plain)
    facts = _Facts(cls, own, eq, frozen)
    methods: dict[str, Any] = {"__init__": _late("__init__", _init, facts), "__repr__": _late("__repr__", _repr, facts)}
    if eq:
        methods["__eq__"] = _late("__eq__", _eq, facts)
        methods["__hash__"] = _late("__hash__", _hash, facts) if frozen else None
    if frozen:
        methods["__setattr__"], methods["__delattr__"] = _refusing(facts)
        if slots:
            methods["__getstate__"], methods["__setstate__"] = _getstate, _setstate
    methods["__match_args__"] = tuple(facts.names(lambda default: default.init))
    for name, value in methods.items():
        is_given = name in vars(cls) and (name, vars(cls)[name]) != ("__hash__", None)  # that is what __eq__ brings
        if not is_given:
            setattr(cls, name, value)
    setattr(cls, _FACTS, facts)
    for name in _ASKED:
        setattr(cls, name, _Asked(name))
    return cls


def _slotted(cls: type, own: Mapping[str, Any]) -> type:
    """The class with slots: it has to be made anew."""
    taken = {name for base in cls.__mro__[1:-1] for name in vars(base).get("__slots__", ())}
    namespace = {name: value for name, value in vars(cls).items() if name not in own}
    namespace.pop("__dict__", None)
    namespace.pop("__weakref__", None)
    namespace["__slots__"] = tuple(name for name in own if name not in taken)
    made: Any = type(cls)(cls.__name__, cls.__bases__, namespace)
    made.__qualname__ = cls.__qualname__
    return made


# -- methods -----------------------------------------------------------------------------------------------------------


def _late(name: str, write: Callable[[_Facts], Any], facts: _Facts) -> Any:
    """A method that is written when it is called, and has its place taken by what was written."""
    cls = facts.cls

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        present = vars(cls)[name]
        if present is method:
            present = _named(write(facts), name, cls)
            setattr(cls, name, present)
        return present(self, *args, **kwargs)

    return _named(method, name, cls)


def _named(function: Any, name: str, cls: type) -> Any:
    function.__name__, function.__qualname__, function.__module__ = name, f"{cls.__qualname__}.{name}", cls.__module__
    return function


def _init(facts: _Facts) -> Any:
    """Fields in order; what has a factory is made anew where it is not given."""
    known: dict[str, Any] = {"_MADE": _MADE, "_set": object.__setattr__}
    taken: list[str] = []
    lines: list[str] = []
    for name, declared in facts.fields.items():
        default, factory, is_taken = declared, MISSING, True
        if isinstance(declared, Field):
            made = cast("Field[Any]", declared)
            default, factory, is_taken = made.default, made.default_factory, made.init
        value = name
        if factory is not MISSING:
            known[f"_factory_{name}"] = factory
            taken += [f"{name}=_MADE"] if is_taken else []
            value = f"_factory_{name}() if {name} is _MADE else {name}" if is_taken else f"_factory_{name}()"
        elif default is not MISSING:
            known[f"_default_{name}"] = default
            taken += [f"{name}=_default_{name}"] if is_taken else []
            value = name if is_taken else f"_default_{name}"
        elif is_taken:
            taken.append(name)
        else:
            continue  # the class sets it
        lines.append(f"_set(self, {name!r}, {value})" if facts.frozen else f"self.{name} = {value}")
    if hasattr(facts.cls, "__post_init__"):
        lines.append("self.__post_init__()")
    return _compiled(f"def __init__({', '.join(['self', *taken])}):", lines or ["pass"], known)


def _repr(facts: _Facts) -> Any:
    shown = ", ".join(f"{name}={{self.{name}!r}}" for name in facts.names(lambda default: default.repr))
    line = f"return self.__class__.__qualname__ + f'({shown})'"
    return recursive_repr()(_compiled("def __repr__(self):", [line], {}))


def _eq(facts: _Facts) -> Any:
    mine, theirs = (_tuple(who, facts.names(lambda default: default.compare)) for who in ("self", "other"))
    lines = [f"return {mine} == {theirs} if other.__class__ is self.__class__ else NotImplemented"]
    return _compiled("def __eq__(self, other):", lines, {})


def _hash(facts: _Facts) -> Any:
    names = facts.names(lambda default: default.compare if default.hash is None else default.hash)
    return _compiled("def __hash__(self):", [f"return hash({_tuple('self', names)})"], {})


def _tuple(who: str, names: Sequence[str]) -> str:
    return f"({''.join(f'{who}.{name}, ' for name in names)})"


def _compiled(head: str, lines: Sequence[str], known: dict[str, Any]) -> Any:
    """A function from its text, which holds no other words than the names in a class body."""
    made: dict[str, Any] = {}
    exec("\n ".join([head, *lines]), known, made)
    return next(iter(made.values()))


def _refusing(facts: _Facts) -> tuple[Any, Any]:
    """What refuses to set and to delete fields of an instance; classes below may have further attributes."""
    cls: Any = facts.cls

    def set_attribute(self: Any, name: str, value: Any) -> None:
        if type(self) is cls or name in facts.fields:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        cast("Any", super(cls, self)).__setattr__(name, value)

    def delete_attribute(self: Any, name: str) -> None:
        if type(self) is cls or name in facts.fields:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        cast("Any", super(cls, self)).__delattr__(name)

    return _named(set_attribute, "__setattr__", cls), _named(delete_attribute, "__delattr__", cls)


def _facts_of(instance: Any) -> _Facts:
    return getattr(instance.__class__, _FACTS)


def _getstate(self: Any) -> list[Any]:
    return [getattr(self, name) for name in _facts_of(self).fields]


def _setstate(self: Any, state: Sequence[Any]) -> None:
    for name, value in zip(_facts_of(self).fields, state, strict=True):
        object.__setattr__(self, name, value)


class _Asked:
    """What the functions of `dataclasses` look for, made by `dataclasses` once they do."""

    def __init__(self, name: str):
        self._name = name

    def __get__(self, instance: Any, owner: type) -> Any:
        facts: _Facts = getattr(owner, _FACTS)
        declared = {name: default for name, default in facts.fields.items() if default is not MISSING}
        body = {**declared, "__annotations__": dict(facts.types), "__module__": facts.cls.__module__}
        twin = dataclasses.dataclass(eq=facts.eq, frozen=facts.frozen)(type(facts.cls.__name__, (), body))
        for name in _ASKED:
            setattr(facts.cls, name, getattr(twin, name))
        return getattr(twin, self._name)
