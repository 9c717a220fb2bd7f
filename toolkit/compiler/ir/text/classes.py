"""Which classes the fields of operations hold: found in what operations declare, so that no list of them is kept."""

from __future__ import annotations

import collections.abc
import dataclasses
import enum
import functools
import types
import typing
from typing import Any

from toolkit.compiler.ir.block import Block
from toolkit.compiler.ir.operation import OPERATIONS, Operation
from toolkit.compiler.steps import Step

#: what stands in the text by itself, not as data
_ELSEWHERE = frozenset({"outputs", "steps", "conditions"})


@functools.cache
def hints(kind: Any) -> dict[str, Any]:
    """The types of the fields of a class, by name."""
    return typing.get_type_hints(kind)


@functools.cache
def region_fields(kind: type[Operation]) -> tuple[str, ...]:
    """The names of the fields that are blocks."""
    return tuple(name for name in kind.fields if hints(kind).get(name) is Block)


def data_fields(kind: type[Operation]) -> list[str]:
    """The names of the fields that are neither operands nor blocks, in order."""
    operands = {field.name for field in kind.operand_fields}
    return [name for name in kind.fields if name not in operands | _ELSEWHERE | set(region_fields(kind))]


def data_class(name: str) -> type | None:
    """The dataclass, named tuple or enumeration of this name that some operation declares; None if there is none.

    Raises:
        ValueError: two classes have the name.
    """
    known = _classes(len(OPERATIONS))
    return known.get(name)


@functools.cache
def _classes(count: int) -> dict[str, type]:
    """All of them, by name.

    Args:
        count: of operations: those of plugins may be declared later.
    """
    found: dict[str, type] = {}
    for kind in OPERATIONS.values():
        for name in kind.fields:
            if name not in _ELSEWHERE:
                _collect(hints(kind).get(name), found)
    return found


def _collect(hint: Any, found: dict[str, type]) -> None:
    for inner in typing.get_args(hint):
        _collect(inner, found)
    is_class = isinstance(hint, type)
    kind: Any = hint
    if not is_class or not is_data(kind) or kind is Step or found.get(kind.__name__) is kind:
        return
    if kind.__name__ in found:
        raise ValueError(f"two classes in fields of operations are called {kind.__name__}")
    found[kind.__name__] = kind
    if not issubclass(kind, enum.Enum):
        for inner in hints(kind).values():
            _collect(inner, found)


def is_data(kind: Any) -> bool:
    """Whether instances of a class are written field by field, or by name."""
    return dataclasses.is_dataclass(kind) or issubclass(kind, enum.Enum) or hasattr(kind, "_field_defaults")


def field_defaults(kind: Any) -> dict[str, Any]:
    """The fields of a dataclass or named tuple, with their defaults; MISSING where there is none."""
    if dataclasses.is_dataclass(kind):
        return {
            field.name: field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
            for field in dataclasses.fields(kind)
        }
    names: tuple[str, ...] = getattr(kind, "_fields", ())
    defaults: dict[str, Any] = getattr(kind, "_field_defaults", {})
    return {name: defaults.get(name, dataclasses.MISSING) for name in names}


class MismatchError(Exception):
    """A thing is not of the declared type; the message says what that is."""


def converted(thing: Any, hint: Any) -> Any:
    """A thing that was read, as its field declares it: sequences in brackets may be tuples or lists.

    Raises:
        MismatchError: it is of another type.
    """
    origin = typing.get_origin(hint)
    if origin in (types.UnionType, typing.Union):
        return _any_of(thing, typing.get_args(hint))
    if origin in (tuple, list, collections.abc.Sequence):
        return _sequence(thing, hint, origin)
    if origin in (dict, collections.abc.Mapping):
        return _checked(thing, dict, hint)
    if origin in (set, frozenset):
        return frozenset(thing) if origin is frozenset else _checked(thing, set, hint)
    if hint is float:
        return _checked(thing, (int, float), hint)
    if hint is type(None):
        return _checked(thing, type(None), hint)
    if isinstance(hint, type) and hint is not typing.Any and not getattr(hint, "_is_protocol", False):
        return _checked(thing, hint, hint)
    return thing


def _any_of(thing: Any, choices: tuple[Any, ...]) -> Any:
    for choice in choices:
        try:
            return converted(thing, choice)
        except MismatchError:
            continue
    raise MismatchError(" or ".join(map(_called, choices)))


def _sequence(thing: Any, hint: Any, origin: Any) -> Any:
    given: list[Any] = list(_checked(thing, (tuple, list), hint))
    inner = typing.get_args(hint)
    if origin is tuple and inner and inner[-1] is not Ellipsis:
        if len(inner) != len(given):
            raise MismatchError(_called(hint))
        made = [converted(each, one) for each, one in zip(given, inner, strict=True)]
    else:
        made = [converted(each, inner[0]) for each in given] if inner else given
    return made if origin is list else tuple(made)


def _checked(thing: Any, kind: Any, hint: Any) -> Any:
    if not isinstance(thing, kind) or (isinstance(thing, bool) and hint in (int, float)):
        raise MismatchError(_called(hint))
    return thing


def _called(hint: Any) -> str:
    if hint is type(None):
        return "None"
    return str(hint) if typing.get_args(hint) else getattr(hint, "__name__", str(hint))
