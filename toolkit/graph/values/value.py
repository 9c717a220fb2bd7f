"""A small tensor that is known before running, and the one that a TensorProto holds."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from typing import Any, NamedTuple

from schemas import tensor_pb2
from toolkit.graph.dtypes import from_enum
from toolkit.graph.shape import MAX_RANK

#: values with more elements are not followed
LIMIT = 4096

_FORMATS = {
    "float32": "f", "float64": "d", "int32": "i", "uint8": "B", "int16": "h", "int8": "b", "int64": "q",
    "bool": "?", "uint16": "H", "uint32": "I", "uint64": "Q", "float16": "e",
}  # fmt: skip
_FIELDS = {
    "float32": "float_val", "float64": "double_val", "int32": "int_val", "uint8": "int_val", "int16": "int_val",
    "int8": "int_val", "int64": "int64_val", "bool": "bool_val", "uint16": "int_val", "uint32": "uint32_val",
    "uint64": "uint64_val",
}  # fmt: skip


class Value(NamedTuple):
    """A small tensor: its sizes and its elements in row-major order."""

    shape: tuple[int, ...]
    flat: list[Any]

    @property
    def is_small(self) -> bool:
        """Whether it is worth following: few elements, and no size that a loop could not walk along."""
        return len(self.flat) <= LIMIT and len(self.shape) <= MAX_RANK and all(0 <= d <= LIMIT for d in self.shape)

    def nested(self) -> Any:
        """As a number or nested lists."""

        if len(self.shape) == 1:  # as nearly always: a shape, axes
            return list(self.flat)

        def build(sizes: tuple[int, ...], start: int, count: int) -> Any:
            if not sizes:
                return self.flat[start]
            step = count // sizes[0] if sizes[0] else 0
            return [build(sizes[1:], start + i * step, step) for i in range(sizes[0])]

        return build(self.shape, 0, len(self.flat))


def from_tensor_proto(proto: tensor_pb2.TensorProto) -> Value | None:
    """A small numeric tensor's value; None for other types, large tensors or damaged content."""
    dtype = from_enum(proto.dtype) if proto.dtype else None
    if dtype is None or dtype.name not in _FORMATS or proto.tensor_shape.unknown_rank:
        return None
    shape = tuple(d.size for d in proto.tensor_shape.dim)
    count = math.prod(shape)
    if not 0 <= count <= LIMIT or len(shape) > MAX_RANK or any(d > LIMIT for d in shape):
        return None
    if proto.tensor_content:
        layout = f"<{count}{_FORMATS[dtype.name]}"
        if struct.calcsize(layout) != len(proto.tensor_content):
            return None
        return Value(shape, list(struct.unpack(layout, proto.tensor_content)))
    field = _FIELDS.get(dtype.name)
    if field is None:
        return None
    given = list(getattr(proto, field))
    if len(given) > count:
        return None
    # The last element repeats; none at all means zeros.
    fill = given[-1] if given else (False if dtype.kind == "b" else 0)
    return Value(shape, given + [fill] * (count - len(given)))


def vector(items: Iterable[Any]) -> Value:
    """A value of rank 1."""
    flat = list(items)
    return Value((len(flat),), flat)


def scalar(item: Any) -> Value:
    """A value of rank 0."""
    return Value((), [item])
