"""Attribute values: AttrValue messages as plain Python values.

| AttrValue field | Python value |
|---|---|
| s | bytes |
| i, f, b | int, float, bool |
| type | DType |
| shape | Shape |
| tensor | the TensorProto message (formats.arrays.tensor makes arrays of it) |
| func | FuncRef |
| placeholder | AttrPlaceholder (only inside function bodies) |
| list(...) | list of the above |
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from schemas import attr_value_pb2, tensor_pb2, tensor_shape_pb2
from toolkit.errors import GraphError, GraphmillError
from toolkit.graph import dtypes
from toolkit.graph.shape import Shape

if TYPE_CHECKING:
    from toolkit.graph.node import Node

AttrValue = attr_value_pb2.AttrValue


@dataclass(frozen=True)
class FuncRef:
    """A function by name, with the attributes it is instantiated with (NameAttrList)."""

    name: str
    attrs: dict[str, Any] = field(default_factory=dict[str, Any], compare=False)


@dataclass(frozen=True)
class AttrPlaceholder:
    """Stands in a function body for an attribute of the call."""

    name: str


def shape_from_proto(proto: tensor_shape_pb2.TensorShapeProto) -> Shape:
    """The shape of a message.

    Raises:
        GraphmillError: no tensor has so many dimensions.
    """
    if proto.unknown_rank:
        return Shape(None)
    return Shape([d.size for d in proto.dim])


def known_shape(proto: tensor_shape_pb2.TensorShapeProto) -> Shape:
    """The shape of a message, unknown where it is none that a tensor can have; for what looks at broken files."""
    try:
        return shape_from_proto(proto)
    except GraphmillError:
        return Shape(None)


def is_written(shape: Shape, proto: tensor_shape_pb2.TensorShapeProto) -> bool:
    """Whether a message says just this shape."""
    if shape.dims is None:
        return proto.unknown_rank
    return not proto.unknown_rank and [-1 if size is None else size for size in shape.dims] == [
        d.size for d in proto.dim
    ]


def shape_to_proto(
    shape: Shape, into: tensor_shape_pb2.TensorShapeProto | None = None
) -> tensor_shape_pb2.TensorShapeProto:
    proto = tensor_shape_pb2.TensorShapeProto() if into is None else into
    if shape.dims is None:
        proto.unknown_rank = True
    else:
        proto.SetInParent()
        for d in shape.dims:
            proto.dim.add(size=-1 if d is None else d)
    return proto


def decode(value: AttrValue) -> Any:
    """The Python value of an AttrValue (see the module's table); None for an empty message."""
    kind = value.WhichOneof("value")
    match kind:
        case "s" | "i" | "f" | "b" | "tensor":
            return getattr(value, kind)
        case "type":
            return dtypes.from_enum(value.type)
        case "shape":
            return shape_from_proto(value.shape)
        case "func":
            return _decode_func(value.func)
        case "placeholder":
            return AttrPlaceholder(value.placeholder)
        case "list":
            return _decode_list(value.list)
        case _:
            return None


def _decode_func(func: attr_value_pb2.NameAttrList) -> FuncRef:
    return FuncRef(func.name, {key: decode(func.attr[key]) for key in func.attr})


def _decode_list(values: AttrValue.ListValue) -> list[Any]:
    if values.type:
        return [dtypes.from_enum(e) for e in values.type]
    if values.shape:
        return [shape_from_proto(s) for s in values.shape]
    if values.func:
        return [_decode_func(f) for f in values.func]
    for plain in (values.i, values.s, values.f, values.b, values.tensor):
        if plain:
            return list(plain)
    return []


def encode(value: Any, into: AttrValue | None = None) -> AttrValue:
    """The AttrValue of a Python value; the inverse of `decode`. AttrValue messages pass through.

    `str` is taken as UTF-8 bytes, tuples as lists.

    Raises:
        GraphError: the value is of a type that no attribute has.
    """
    if isinstance(value, AttrValue):
        if into is None:
            return value
        into.CopyFrom(value)
        return into
    out = AttrValue() if into is None else into
    match value:
        case bool():
            out.b = value
        case int():
            out.i = value
        case float():
            out.f = value
        case bytes():
            out.s = value
        case str():
            out.s = value.encode()
        case dtypes.DType():
            out.type = value.enum  # type: ignore[assignment]
        case Shape():
            shape_to_proto(value, out.shape)
        case tensor_pb2.TensorProto():
            out.tensor.CopyFrom(value)
        case FuncRef():
            out.func.SetInParent()
            _encode_func(value, out.func)
        case AttrPlaceholder():
            out.placeholder = value.name
        case list() | tuple():
            _encode_list(value, out.list)  # type: ignore[arg-type]
        case _:
            try:
                out.i = operator.index(value)  # numpy's integers
            except TypeError:
                hint = "; a tensor is given as a TensorProto (toolkit.formats.arrays.tensor.from_array)"
                is_array = hasattr(value, "__array__")
                raise GraphError(
                    f"{value!r} ({type(value).__name__}) cannot be an attribute{hint if is_array else ''}"
                ) from None
    return out


def _encode_func(ref: FuncRef, out: attr_value_pb2.NameAttrList) -> None:
    out.name = ref.name
    for key, value in ref.attrs.items():
        encode(value, out.attr[key])


def _encode_list(values: list[Any] | tuple[Any, ...], out: AttrValue.ListValue) -> None:
    out.SetInParent()
    for value in values:
        match value:
            case bool():
                out.b.append(value)
            case int():
                out.i.append(value)
            case float():
                out.f.append(value)
            case bytes():
                out.s.append(value)
            case str():
                out.s.append(value.encode())
            case dtypes.DType():
                out.type.append(value.enum)  # type: ignore[arg-type]
            case Shape():
                shape_to_proto(value, out.shape.add())
            case tensor_pb2.TensorProto():
                out.tensor.add().CopyFrom(value)
            case FuncRef():
                _encode_func(value, out.func.add())
            case _:
                if not hasattr(value, "__index__"):
                    raise GraphError(f"{value!r} ({type(value).__name__}) cannot be in an attribute list")
                out.i.append(int(value))


class Attrs(MutableMapping[str, Any]):
    """A node's attributes as a mapping of Python values.

    A light view: the node keeps the AttrValue messages it was read with and a small overlay of changes, so
    reading a graph decodes nothing and attributes nobody touched are written back bit for bit.
    """

    __slots__ = ("_node",)

    def __init__(self, node: Node):
        self._node = node

    def proto(self, key: str) -> AttrValue:
        """The AttrValue message itself; do not change it.

        Raises:
            KeyError: the node has no such attribute.
        """
        value = self._node.attr_proto(key)
        if value is None:
            raise KeyError(key)
        return value

    def __getitem__(self, key: str) -> Any:
        return decode(self.proto(key))

    def __contains__(self, key: object) -> bool:
        node = self._node
        if node.changed_attrs is not None and key in node.changed_attrs:
            return node.changed_attrs[key] is not None  # type: ignore[index]
        return node.head is not None and key in node.head.attr

    def __setitem__(self, key: str, value: Any) -> None:
        node = self._node
        if node.changed_attrs is None:
            node.changed_attrs = {}
        node.changed_attrs[key] = encode(value)
        node.invalidate_types()

    def __delitem__(self, key: str) -> None:
        if key not in self:
            raise KeyError(key)
        node = self._node
        node.invalidate_types()
        if node.changed_attrs is None:
            node.changed_attrs = {}
        if node.head is not None and key in node.head.attr:
            node.changed_attrs[key] = None
        else:
            del node.changed_attrs[key]

    def __iter__(self) -> Iterator[str]:
        node = self._node
        changed = node.changed_attrs or {}
        if node.head is not None:
            for key in node.head.attr:
                if key not in changed:
                    yield key
        for key, value in changed.items():
            if value is not None:
                yield key

    def __len__(self) -> int:
        return sum(1 for _ in self)
