"""What an operation declares in its class body: operands by name, and what else it knows.

An operand is a descriptor that keeps the lists of users: whoever assigns `operation.input` has said all that there is
to say. Everything else that is annotated is an attribute.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn, dataclass_transform

from toolkit.compiler.ir.conditions import Conditions
from toolkit.compiler.ir.value import Value

#: in the place of a default: the field must be given
REQUIRED: Any = object()


class Field:
    """What keeps others informed when it is set.

    It has no `__get__`, so that reading it is reading an attribute like any other.
    """

    def __init__(self, default: Any = REQUIRED):
        self.default = default
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name


class ConditionsField(Field):
    """The branches that an operation is on; their predicates know what they decide."""

    def __set__(self, instance: Any, given: Conditions) -> None:
        state = instance.__dict__
        state[self.name].release(instance)
        state[self.name] = given
        given.bind(instance)


class OperandField(Field):
    """One value, or None where it may be missing."""

    def __set__(self, instance: Any, given: Any) -> None:
        state = instance.__dict__
        for value in self.values(state[self.name]):
            value.lose(instance)
        self.fill(instance, given)

    def fill(self, instance: Any, given: Any) -> None:
        """Set the field where it holds nothing yet."""
        given = self.normalized(given)
        instance.__dict__[self.name] = given
        for value in self.values(given):
            value.gain(instance)

    def normalized(self, given: Any) -> Any:
        """What is kept of what was assigned."""
        return given

    def values(self, held: Any) -> Iterable[Value]:
        """The values in what the field holds, in order."""
        return () if held is None else (held,)

    def mapped(self, held: Any, moved: Mapping[Value, Value]) -> Any:
        """What the field holds with other values in the place of some."""
        return None if held is None else moved.get(held, held)


class OperandsField(OperandField):
    """Any number of values: a tuple."""

    def normalized(self, given: Any) -> tuple[Value, ...]:
        return tuple(given)

    def values(self, held: Any) -> Iterable[Value]:
        return held or ()

    def mapped(self, held: Any, moved: Mapping[Value, Value]) -> Any:
        return tuple(moved.get(value, value) for value in held)


class PartsField(OperandField):
    """A tuple of things some of which hold a value.

    Args:
        value_in: the value that a thing holds, or None.
        with_value: the same thing with another value.
    """

    def __init__(
        self, value_in: Callable[[Any], Value | None], with_value: Callable[[Any, Value], Any], default: Any = ()
    ):
        super().__init__(default)
        self._value_in = value_in
        self._with_value = with_value

    def normalized(self, given: Any) -> tuple[Any, ...]:
        return tuple(given)

    def values(self, held: Any) -> Iterable[Value]:
        return [value for thing in held or () if (value := self._value_in(thing)) is not None]

    def mapped(self, held: Any, moved: Mapping[Value, Value]) -> Any:
        found: list[Any] = []
        for thing in held:
            value = self._value_in(thing)
            found.append(self._with_value(thing, moved[value]) if value is not None and value in moved else thing)
        return tuple(found)


def operand(*, default: Any = REQUIRED) -> Any:
    """Declares one value that an operation takes; None is its default where it may be missing."""
    return OperandField(default)


def operands(*, default: Any = ()) -> Any:
    """Declares any number of values that an operation takes."""
    return OperandsField(default)


def parts(
    *, value_in: Callable[[Any], Value | None], with_value: Callable[[Any, Value], Any], default: Any = ()
) -> Any:
    """Declares a tuple of things some of which hold a value that the operation takes."""
    return PartsField(value_in, with_value, default)


def conditional(*, default: Any) -> Any:
    """Declares the conditions under which an operation runs."""
    return ConditionsField(default)


def listed(*, default: Any = ()) -> Any:
    """Declares a list of its own that starts with what is given."""
    return default


@dataclass_transform(
    kw_only_default=True, eq_default=False, field_specifiers=(conditional, listed, operand, operands, parts)
)
class Declared:
    """Makes `__init__` of what subclasses declare, by name.

    Attributes:
        fields: the names of all fields, in the order in which they are declared.
        operand_fields: those that hold values.
        defaults: of the fields, by name; `REQUIRED` where there is none.
    """

    fields: tuple[str, ...]
    operand_fields: tuple[OperandField, ...]
    defaults: Mapping[str, Any]
    _optional: Mapping[str, Any]
    _required: frozenset[str]
    _accepted: set[tuple[str, ...]]  # names that were given once, and were right

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        declared = [
            name
            for name, kind in inspect.get_annotations(cls).items()
            if not str(kind).startswith("ClassVar") and not name.startswith("_")
        ]
        inherited = [name for name in getattr(cls, "fields", ()) if name not in declared]
        cls.fields = (*inherited, *declared)
        defaults = dict(getattr(cls, "defaults", {}))
        for name in declared:
            given = cls.__dict__.get(name, REQUIRED)
            defaults[name] = given.default if isinstance(given, Field) else given
        cls.defaults = defaults
        cls._optional = {name: default for name, default in defaults.items() if default is not REQUIRED}
        cls._accepted = set()
        cls._required = frozenset(defaults.keys() - cls._optional.keys())
        found = [getattr(cls, name, None) for name in cls.fields]
        cls.operand_fields = tuple(field for field in found if isinstance(field, OperandField))

    def _fill(self, given: Mapping[str, Any]) -> None:
        """Set all fields of an instance that has none yet."""
        names = tuple(given)
        if names not in self._accepted:
            if not self._required <= given.keys() <= self.defaults.keys():
                self._refuse(given)
            self._accepted.add(names)
        state = self.__dict__
        state.update(self._optional)
        state.update(given)
        for field in self.operand_fields:
            field.fill(self, state[field.name])

    def _refuse(self, given: Mapping[str, Any]) -> NoReturn:
        unknown = given.keys() - self.defaults.keys()
        if unknown:
            raise TypeError(f"{type(self).__name__} has no {', '.join(sorted(unknown))}")
        raise TypeError(f"{type(self).__name__} needs {', '.join(sorted(self._required - given.keys()))}")
