"""What attributes have to be: the one place that holds a value against the type its OpDef declares.

A file may put anything under any name. `Node.attr`, and so shape functions, passes, pictures and kernel factories, get
a value only when it is of the declared kind; `toolkit.graph.check` reports all values that are not.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from schemas.attr_value_pb2 import AttrValue
from toolkit.errors import GraphmillError
from toolkit.graph import dtypes
from toolkit.graph.attrs import decode
from toolkit.graph.dtypes import DType
from toolkit.graph.opdefs import AttrDef
from toolkit.graph.shape import MAX_RANK

#: what the message's field is called for each kind of attribute
_FIELDS = {
    "string": "s", "int": "i", "float": "f", "bool": "b", "type": "type", "shape": "shape", "tensor": "tensor",
    "func": "func",
}  # fmt: skip
#: kinds of which most attributes are, and of which nothing can be wrong but the kind, the minimum and what is allowed
_PLAIN = {kind: _FIELDS[kind] for kind in ("int", "float", "bool", "string", "type")}
#: kinds of which anything will do, where there is no minimum and no list of what is allowed; of types nearly anything
_FREE = {**_PLAIN, "tensor": "tensor"}
_KINDS = {field: kind for kind, field in _FIELDS.items()}
#: attributes that TensorFlow gives to nodes of any op
_COMMON = {
    name: AttrDef(name, kind, None, False, None, None)
    for name, kind in (("_class", "list(string)"), ("_output_shapes", "list(shape)"), ("_gradient_op_type", "string"))
}


def common(name: str) -> AttrDef | None:
    """The definition of an attribute that any op may have, or None when nothing is known of it."""
    return _COMMON.get(name)


def problem(value: AttrValue, definition: AttrDef, *, types: bool = True) -> str | None:
    """What is wrong with an attribute's value ("must be a ..."), or None.

    Args:
        types: also hold data types against the list of those that the op allows.
    """
    found = value.WhichOneof("value")
    wanted = definition.type
    unbounded = wanted in _FREE and definition.minimum is None and definition.allowed is None
    if unbounded and found == _FREE[wanted] and (found != "type" or _plain_type(value.type) is not None):
        return None  # as nearly always
    if wanted.startswith("list("):
        inner = wanted[5:-1]
        if found is None:
            return _too_few(definition, 0)  # an empty message is an empty list
        if found != "list":
            return f"must be a {wanted}; it is a {_KINDS.get(found, found)}"
        field = _FIELDS[inner]
        for descriptor, _ in value.list.ListFields():
            if descriptor.name != field:
                return f"must be a {wanted}; it holds {_KINDS[descriptor.name]} values"
        items: Any = getattr(value.list, field)
        if few := _too_few(definition, len(items)):
            return few
    elif found != _FIELDS[wanted]:
        return f"must be a {wanted}; it is {'empty' if found is None else f'a {_KINDS.get(found, found)}'}"
    else:
        inner = wanted
        items = (getattr(value, found),)
        if definition.minimum is not None and inner == "int" and items[0] < definition.minimum:
            return f"must be at least {definition.minimum}; it is {items[0]}"
    if inner == "type" and (bad := _bad_types(items)):
        return bad
    if inner == "shape" and (bad := _bad_shapes(items)):
        return bad
    if definition.allowed is not None and (types or inner != "type"):
        allowed = _allowed(definition.allowed)
        for item in items:
            plain = dtypes.from_enum(item) if inner == "type" else item
            if plain not in allowed:
                return f"must be one of {_listed(definition.allowed)}; it is {_shown(plain)}"
    return None


def read(value: AttrValue, definition: AttrDef) -> Any:
    """The Python value of an attribute (see `toolkit.graph.attrs`), of the kind that its definition says.

    Raises:
        GraphmillError: it is of another kind, below its minimum, or not one of the texts or numbers allowed.
    """
    field = _PLAIN.get(definition.type)  # most attributes end here
    if field is not None and value.WhichOneof("value") == field and definition.minimum is None:
        if field == "type":
            if (dtype := _plain_type(value.type)) is not None:
                return dtype
        elif definition.allowed is None:
            return getattr(value, field)
    wrong = problem(value, definition, types=False)
    if wrong is not None:
        raise GraphmillError(wrong)
    found = decode(value)
    return [] if found is None else found  # an empty message is an empty list


def _plain_type(enum: int) -> DType | None:
    """The type with this number; None where there is none, or it is a reference."""
    dtype = dtypes.by_enum(enum)
    return None if dtype is None or dtype.is_ref else dtype


def _too_few(definition: AttrDef, count: int) -> str | None:
    if definition.minimum is not None and count < definition.minimum:
        return f"must have at least {definition.minimum} element(s); it has {count}"
    return None


@cache
def _allowed(values: tuple[Any, ...]) -> frozenset[Any]:
    return frozenset(values)


def _bad_types(enums: Iterable[int]) -> str | None:
    for enum in enums:
        try:
            dtype = dtypes.from_enum(enum)
        except GraphmillError as error:
            return f"is no data type: {error.message}"
        if dtype.is_ref:
            return f"must not be a reference type; it is {dtype}"
    return None


def _bad_shapes(shapes: Iterable[Any]) -> str | None:
    for shape in shapes:
        if len(shape.dim) > MAX_RANK:
            return f"is no shape: it has {len(shape.dim)} dimensions; a tensor has at most {MAX_RANK}"
    return None


def _shown(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _listed(values: Iterable[Any]) -> str:
    shown = sorted(map(_shown, values))
    return ", ".join(shown) if len(shown) <= 16 else ", ".join(shown[:15]) + f", ... ({len(shown) - 15} more)"


__all__ = ["common", "problem", "read"]
