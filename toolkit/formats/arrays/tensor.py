"""Tensors: TensorProto to numpy arrays and back.

A TensorProto holds its elements either packed in `tensor_content` (little-endian, row-major, one byte per element
for the 2-, 4- and 8-bit types) or in the repeated field of its type. A repeated field may stop early: its last
value then stands for all that follow, and an empty one for zeros (tensorflow/core/framework/tensor.proto). Values
beyond the shape are ignored, as the runtime does.

| type | field | written packed |
|---|---|---|
| float32 / float64 | float_val / double_val | yes |
| int8 int16 int32 uint8, quantized | int_val | yes |
| uint16, int2 uint2 int4 uint4 | int_val | no |
| int64 / uint32 / uint64 | int64_val / uint32_val / uint64_val | yes |
| float16 bfloat16 | half_val (the 16 bits) | yes |
| float8, float4 | float8_val (one byte each) | yes |
| complex64 / complex128 | scomplex_val / dcomplex_val (real, imaginary, ...) | no |
| bool / string | bool_val / string_val | no |
| resource / variant | resource_handle_val / variant_val | no |

"Written packed" is what `from_array` does with more than one element: the choice TensorFlow's make_tensor_proto
makes, so that Const nodes come out equal.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from schemas.tensor_pb2 import TensorProto
from toolkit.errors import FormatError, GraphError
from toolkit.formats import bounds
from toolkit.formats.arrays.npy import USER_DEFINED
from toolkit.formats.bundle.wire import get_varint
from toolkit.graph import dtypes
from toolkit.graph.attrs import shape_from_proto
from toolkit.graph.dtypes import DType
from toolkit.graph.shape import Shape

Array = Any


@dataclass(frozen=True, slots=True)
class _Layout:
    """How one type is stored: the repeated field, how its values become elements, and whether we pack it."""

    field: str
    packed: bool = True
    bits: str = ""  # the values are the elements' bits, as this unsigned type
    per_element: int = 1  # values per element
    via: str = ""  # values convert to the element type through this one


_INT = _Layout("int_val")
_SMALL = _Layout("int_val", packed=False, via="int8")
_HALF = _Layout("half_val", bits="uint16")
_FLOAT8 = _Layout("float8_val", bits="uint8")
_LAYOUTS: dict[str, _Layout] = {
    "float32": _Layout("float_val"),
    "float64": _Layout("double_val"),
    "int32": _INT, "int16": _INT, "int8": _INT, "uint8": _INT,
    "qint32": _INT, "qint16": _INT, "qint8": _INT, "quint16": _INT, "quint8": _INT,
    "uint16": _Layout("int_val", packed=False),
    "int4": _SMALL, "uint4": _SMALL, "int2": _SMALL, "uint2": _SMALL,
    "int64": _Layout("int64_val"),
    "uint32": _Layout("uint32_val"),
    "uint64": _Layout("uint64_val"),
    "float16": _HALF, "bfloat16": _HALF,
    "float8_e5m2": _FLOAT8, "float8_e4m3fn": _FLOAT8, "float8_e4m3fnuz": _FLOAT8, "float8_e4m3b11fnuz": _FLOAT8,
    "float8_e5m2fnuz": _FLOAT8, "float4_e2m1fn": _FLOAT8,
    "complex64": _Layout("scomplex_val", packed=False, per_element=2),
    "complex128": _Layout("dcomplex_val", packed=False, per_element=2),
    "bool": _Layout("bool_val", packed=False),
    "string": _Layout("string_val", packed=False),
    "resource": _Layout("resource_handle_val", packed=False),
    "variant": _Layout("variant_val", packed=False),
}  # fmt: skip
#: what fills a tensor of these types when no value is given
_EMPTY_OBJECT: dict[str, Any] = {"string": b""}


def dtype_of(proto: TensorProto) -> DType:
    """The type of a tensor.

    Raises:
        GraphError: it has none, or a number that is no type.
    """
    if proto.dtype == 0:
        raise GraphError("the tensor has no data type")
    return dtypes.from_enum(proto.dtype).base


def shape_of(proto: TensorProto) -> tuple[int, ...]:
    """The shape of a tensor.

    Raises:
        GraphError: it is not fully defined.
    """
    shape = shape_from_proto(proto.tensor_shape)
    if not shape.is_fully_defined:
        raise GraphError(f"a tensor value needs a fully defined shape, not {shape}")
    return tuple(shape.as_list())


def to_array(proto: TensorProto, content: memoryview | bytes | None = None) -> Array:
    """The elements of a tensor as an array of `dtype.numpy`.

    Args:
        content: what is in the place of `tensor_content`.

    The array is read-only where it is a view of the message's bytes, or one repeated value; copy it to change it.
    Strings are object arrays of `bytes`; resources and variants object arrays of their messages.

    Raises:
        GraphError: no type, no full shape, or a tensor_content of another length than the shape takes.
    """
    dtype = dtype_of(proto)
    shape = shape_of(proto)
    count = _count(shape, dtype)
    if content is None:
        content = proto.tensor_content
    if content:
        return _from_content(content, dtype, shape, count)
    layout = _LAYOUTS[dtype.name]
    values = getattr(proto, layout.field)
    found = min(len(values) // layout.per_element, count)
    if found < count and count * dtype.numpy.itemsize > bounds.REPEATED:
        raise GraphError(
            f"a {dtype} tensor of shape {list(shape)} repeats its last value to {count * dtype.numpy.itemsize:,} bytes"
            f"; a tensor of a graph has {bounds.REPEATED:,} at most"
        )
    flat = _from_values(values[: found * layout.per_element], dtype, layout)
    if found == count:
        return flat.reshape(shape)
    if found == 0:
        return _default(dtype, shape)
    if found == 1:
        return np.broadcast_to(flat.reshape(()), shape)
    out = np.empty(count, dtype.numpy)
    out[:found] = flat
    out[found:] = flat[-1]
    return out.reshape(shape)


def _count(shape: tuple[int, ...], dtype: DType) -> int:
    try:
        return bounds.elements(shape, dtype.numpy.itemsize)
    except FormatError as error:
        raise GraphError(f"a {dtype} tensor cannot have this shape: {error.message}") from None


def _from_content(content: memoryview | bytes, dtype: DType, shape: tuple[int, ...], count: int) -> Array:
    if dtype.kind == "s":
        return _strings(bytes(content), shape, count)
    if dtype.kind in "rv":
        raise GraphError(f"a {dtype} tensor cannot be packed in tensor_content")
    if len(content) != count * dtype.size:
        raise GraphError(
            f"a {dtype} tensor of shape {list(shape)} takes {count * dtype.size} bytes, "
            f"but tensor_content holds {len(content)}"
        )
    if dtype.kind == "b" and bytes(content).strip(b"\0\1"):
        raise GraphError("a bool tensor's tensor_content holds bytes other than 0 and 1")
    flat = np.frombuffer(content, _little_endian(dtype))
    if not flat.flags.aligned:  # within other bytes
        flat = flat.copy()
        flat.flags.writeable = False
    return flat.reshape(shape)


def _little_endian(dtype: DType) -> np.dtype[Any]:
    plain = dtype.numpy
    if sys.byteorder == "little":  # a type made by `newbyteorder` is equal to numpy's own, but is not it
        return plain
    return plain if plain.num >= USER_DEFINED or plain.itemsize == 1 else plain.newbyteorder("<")


def _strings(content: bytes, shape: tuple[int, ...], count: int) -> Array:
    """Strings packed as all their lengths (varints), then all their bytes (port::EncodeStringList)."""
    lengths: list[int] = []
    position = 0
    while len(lengths) < count:
        try:
            value, position = get_varint(content, position)
        except FormatError:
            raise GraphError(f"tensor_content ends within the lengths of {count} strings") from None
        lengths.append(value)
    expected = position + sum(lengths)
    if expected != len(content):
        raise GraphError(f"{count} strings take {expected} bytes, but tensor_content holds {len(content)}")
    out = np.empty(count, object)
    for index, length in enumerate(lengths):
        out[index] = content[position : position + length]
        position += length
    return out.reshape(shape)


def _from_values(values: Any, dtype: DType, layout: _Layout) -> Array:
    if dtype.kind in "srv":
        out = np.empty(len(values), object)
        out[:] = list(values)
        return out
    if layout.field == "float8_val":
        return np.frombuffer(values, dtype.numpy)
    if layout.bits:
        wide = np.fromiter(values, "int32", len(values))  # of which the low bits count
        return wide.astype(layout.bits).view(dtype.numpy)
    if layout.per_element == 2:
        part = "float32" if dtype.size == 8 else "float64"
        return np.fromiter(values, part, len(values)).view(dtype.numpy)
    if layout.field == "int_val" and dtype.size < 4:
        # int_val is 32 bits wide; narrower types keep its low bits, as a C++ conversion does
        wide = np.fromiter(values, "int32", len(values))
        return wide.astype(layout.via or dtype.numpy).astype(dtype.numpy)
    return np.fromiter(values, dtype.numpy, len(values))


def _default(dtype: DType, shape: tuple[int, ...]) -> Array:
    if dtype.kind in "srv":
        out = np.empty((), object)
        out[()] = _EMPTY_OBJECT.get(dtype.name)
        return np.broadcast_to(out, shape)
    return np.broadcast_to(np.zeros((), dtype.numpy), shape)


def from_array(array: Any, dtype: DType | None = None, shape: Shape | Sequence[int] | None = None) -> TensorProto:
    """The TensorProto of an array or of Python numbers, as TensorFlow's make_tensor_proto writes it.

    Args:
        array: a numpy array or scalar, a number, bool, bytes, str, or nested lists of them; for resource and
            variant an array (or one) of their messages.
        dtype: the type to store; by default the array's own, and for Python values int32 (int64 when they do not
            fit), float32, complex64... as TensorFlow takes them.
        shape: a larger shape than the array's: its last element stands for all that follow. The same number of
            elements reshapes.

    Raises:
        GraphError: no such type, values that do not fit it, or a shape with fewer elements.
    """
    values = as_array(array, dtype)
    stored = dtype.base if dtype is not None else dtypes.from_numpy(values.dtype)
    wanted = _wanted_shape(values, shape)
    proto = TensorProto(dtype=stored.enum)  # type: ignore[arg-type]
    proto.tensor_shape.SetInParent()
    for size in wanted:
        proto.tensor_shape.dim.add(size=size)
    layout = _LAYOUTS[stored.name]
    flat = values.reshape(-1)
    if layout.packed and flat.size > 1 and flat.size == math.prod(wanted):
        proto.tensor_content = np.ascontiguousarray(flat).astype(_little_endian(stored), copy=False).tobytes()
        return proto
    _set_values(proto, flat, stored, layout)
    return proto


def _wanted_shape(values: Array, shape: Shape | Sequence[int] | None) -> tuple[int, ...]:
    if shape is None:
        return values.shape
    wanted = tuple(shape.as_list() if isinstance(shape, Shape) else shape)
    if values.size > math.prod(wanted):
        raise GraphError(f"{values.size} values do not fit into the shape {list(wanted)}")
    return wanted


def _set_values(proto: TensorProto, flat: Array, dtype: DType, layout: _Layout) -> None:
    if layout.field == "float8_val":
        proto.float8_val = flat.tobytes()
        return
    if dtype.kind == "s":
        values: list[Any] = [_bytes(item) for item in flat]
    elif layout.bits:
        values = flat.view(layout.bits).tolist()
    elif layout.per_element == 2:
        parts = np.ascontiguousarray(flat)  # one number may stand for all
        values = parts.view("float32" if dtype.size == 8 else "float64").tolist()
    elif layout.via:
        values = flat.astype(layout.via).tolist()
    else:
        values = flat.tolist()
    getattr(proto, layout.field).extend(values)


def _bytes(item: Any) -> bytes:
    if isinstance(item, bytes):
        return item
    if isinstance(item, str):
        return item.encode()
    if item is None:
        raise GraphError("None is no value that a tensor can have; a tensor, a number or a text is expected")
    raise GraphError(f"a string tensor holds bytes or str, not {type(item).__name__}")


def as_array(value: Any, dtype: DType | None = None) -> Array:
    """Anything `from_array` takes as an array of `dtype.numpy`.

    Raises:
        GraphError: ragged lists, values of another kind, or values that do not fit the type.
    """
    if dtype is not None and dtype.base.kind in "rv" and not isinstance(value, np.ndarray):
        out = np.empty((), object)
        out[()] = value
        return out
    is_numpy = isinstance(value, np.ndarray | np.generic)
    array: Array = np.asarray(cast(Any, value)) if is_numpy else _from_python(value, dtype)
    if array.dtype.kind in "SU":
        array = array.astype(object)
    if dtype is None:
        return array
    wanted = dtype.base.numpy
    if array.dtype == wanted:
        return array
    if not array.size and not is_numpy:
        return array.astype(wanted)  # an empty list has elements of any type
    if (array.dtype.kind == "O") != (wanted.kind == "O"):
        raise GraphError(f"values of type {_kind_name(array)} cannot become {dtype}")
    if array.dtype.kind == "c" and wanted.kind != "c":
        raise GraphError(f"complex values cannot become {dtype}")
    with np.errstate(all="ignore"):  # what does not fit a float becomes infinite, as in TensorFlow
        return array.astype(wanted)


def _from_python(value: Any, dtype: DType | None) -> Array:
    try:
        array = np.array(value)
    except (ValueError, OverflowError) as error:
        raise GraphError(f"not a tensor: {error}") from None
    if array.dtype.kind in "SU":
        # numpy pads its own strings with NULs and cannot tell them from the content
        return np.array(value, dtype=object)
    if dtype is not None:
        if dtype.base.is_integer and array.dtype.kind == "f" and array.size:
            raise GraphError(f"values with a fraction cannot become {dtype}")
        _check_range(array, dtype.base)
    elif array.dtype == np.float64:
        return array.astype(np.float32)
    elif array.dtype == np.int64 and (array.size == 0 or np.array_equal(array, array.astype(np.int32))):
        return array.astype(np.int32)
    return array


def _check_range(array: Array, dtype: DType) -> None:
    if dtype.kind not in "iu" or array.dtype.kind not in "iu" or not array.size:
        return
    bits = int("".join(filter(str.isdigit, dtype.name)))
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if dtype.kind == "i" else (0, (1 << bits) - 1)
    if int(array.min()) < low or int(array.max()) > high:
        raise GraphError(f"{int(array.max() if int(array.max()) > high else array.min())} does not fit into {dtype}")


def _kind_name(array: Array) -> str:
    if array.dtype == object:
        return type(array.flat[0]).__name__ if array.size else "object"
    return str(array.dtype)
