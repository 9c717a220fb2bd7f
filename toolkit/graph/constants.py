"""Small integer constants without numpy, for shape functions and reports."""

from __future__ import annotations

import struct

from schemas.tensor_pb2 import TensorProto
from toolkit.graph import dtypes

#: numpy-free decoding is meant for shapes and axes; larger tensors are not worth looking into
MAX_ELEMENTS = 4096

_CODES = {
    dtypes.int8.enum: "b", dtypes.uint8.enum: "B", dtypes.int16.enum: "h", dtypes.uint16.enum: "H",
    dtypes.int32.enum: "i", dtypes.uint32.enum: "I", dtypes.int64.enum: "q", dtypes.uint64.enum: "Q",
}  # fmt: skip
_FIELDS = {dtypes.int64.enum: "int64_val", dtypes.uint32.enum: "uint32_val", dtypes.uint64.enum: "uint64_val"}


def constant_dims(proto: TensorProto) -> list[int] | None:
    """The shape of a tensor value, or None when it is not fully defined."""
    if proto.tensor_shape.unknown_rank:
        return None
    dims = [d.size for d in proto.tensor_shape.dim]
    return None if any(d < 0 for d in dims) else dims


def constant_ints(proto: TensorProto) -> list[int] | None:
    """The elements of an integer tensor in row-major order; a scalar is a list of one.

    None when the tensor is not of an integer type, has more than `MAX_ELEMENTS` elements, or is malformed.
    """
    code = _CODES.get(proto.dtype)
    dims = constant_dims(proto)
    if code is None or dims is None:
        return None
    count = 1
    for size in dims:
        count *= size
    if count > MAX_ELEMENTS:
        return None
    content = proto.tensor_content
    if content:
        if len(content) != count * struct.calcsize(code):
            return None
        return list(struct.unpack(f"<{count}{code}", content))
    values = list(getattr(proto, _FIELDS.get(proto.dtype, "int_val")))
    if len(values) > count:
        return None
    return values + [values[-1] if values else 0] * (count - len(values))
