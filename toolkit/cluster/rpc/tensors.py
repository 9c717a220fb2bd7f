"""Tensors on the wire: TensorProto and RecvTensorResponse to and from arrays, with no copy that is not needed.

What TensorFlow's runtime sends is written as it writes it: numbers as `tensor_content`, their bytes as they lie in
memory, behind a header of a few fields that is made by hand; strings and the like through the message. gRPC's Python
library takes one `bytes` object, so numbers are copied once, into it. What comes is one `bytes` object too, and an
array is a view of it where its address fits (`_ALIGNMENT`). Who sends to us may be asked to make it fit
(`RecvTensorRequest.transport_options`, `ALIGNED`), by a field that receivers pass over.
"""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from google.protobuf.message import DecodeError, Message

from schemas.tensor_pb2 import TensorProto
from schemas.worker_pb2 import RecvTensorResponse
from toolkit.cluster.rpc import wire
from toolkit.cluster.rpc.bulk import BULK, LEAST, BulkReceiver, BulkSender
from toolkit.cluster.rpc.server import LOOPBACK
from toolkit.cluster.rpc.tickets import PLACE
from toolkit.errors import FormatError, GraphError, GraphmillError, InvalidArgumentError, OpError, UnimplementedError
from toolkit.formats import bounds
from toolkit.formats.arrays.tensor import dtype_of, from_array, shape_of, to_array
from toolkit.formats.models import protoscan
from toolkit.formats.models.protoscan import LENGTH, VARINT
from toolkit.graph import dtypes
from toolkit.kernels.context import DEAD
from toolkit.kernels.cpu.memory import addresses
from toolkit.passes.partitioning.partition import COMPRESSIONS

M = TypeVar("M", bound=Message)
T = TypeVar("T")

#: asks for the elements at an address that compiled code likes, in `transport_options.type_url`
ALIGNED = "graphmill/aligned"
#: who asks so is ours, and may want a 16-bit type in `transport_options.value`
OURS = (ALIGNED, BULK)
#: where arrays begin that are no tensors of an arena (ARCHITECTURE.md, on guards)
_ALIGNMENT = 16
#: says that a tensor comes in 16 bits and was float32, as was asked
NARROW = "graphmill/narrow"
_MARK = b"\1"  # likewise, behind where a tensor is to be fetched
_NARROWED = 256  # elements: of fewer the answer is one packet either way
#: a response that only says where the elements are is shorter
_OFFER = 1024
#: the kinds whose elements are copied as they lie in memory
_PACKED = frozenset("biufcV")


def tensor_header(array: Any) -> bytes | None:
    """The beginning of a TensorProto, up to where the bytes of its elements follow and end it.

    Returns:
        None where it has to be written through the message.
    """
    if sys.byteorder != "little" or array.dtype.kind not in _PACKED:
        return None
    dtype = dtypes.from_numpy(array.dtype)
    shape = b"".join(wire.block(2, wire.number(1, size) if size else b"") for size in array.shape)
    return wire.number(1, dtype.enum) + wire.block(2, shape) + wire.start(4, array.nbytes)


def write_tensor(value: Any) -> bytes:
    """The bytes of a value's TensorProto.

    Raises:
        UnimplementedError: it is no tensor: a handle or a list, which only its process knows.
    """
    header = _header_of(value)
    if header is not None:
        return b"".join((header, _elements(value)))
    return from_array(value).SerializeToString()


def _header_of(value: Any) -> bytes | None:
    """See `tensor_header`; refuses what is no tensor."""
    if isinstance(value, bytes | str):  # a scalar
        return None
    if not isinstance(value, np.ndarray | np.generic):
        raise UnimplementedError(f"a {type(value).__name__} cannot leave its process; only tensors are sent")
    header = tensor_header(value)
    if header is None and any(not isinstance(each, bytes | str) for each in np.asarray(value).flat):
        raise UnimplementedError("handles and variants cannot leave their process; only tensors are sent")
    return header


def _elements(array: Any) -> Any:
    """The bytes of an array's elements, where they lie when it is dense."""
    dense = np.ascontiguousarray(array)
    return dense.reshape(-1).view(np.uint8).data if dense.size else b""


def write_response(
    value: Any, is_dead: bool = False, *, aligned: bool = False, bulk: BulkSender | None = None, narrow: str = ""
) -> bytes:
    """The bytes of a RecvTensorResponse.

    Args:
        value: a tensor; whatever it is where `is_dead`.
        aligned: the receiver has asked for it (`ALIGNED`).
        bulk: where it asks for large ones (`BULK`); None where it does not.
        narrow: the 16-bit type that it wants of float32 tensors (`partition.COMPRESSIONS`), "" for none.

    Raises:
        UnimplementedError: it is no tensor.
    """
    if is_dead or value is DEAD:
        return wire.block(1, wire.number(1, dtypes.float32.enum) + wire.block(2, wire.block(2, b""))) + wire.number(
            2, 1
        )
    is_narrow = narrow in COMPRESSIONS and getattr(value, "dtype", None) == np.float32 and value.size >= _NARROWED
    if is_narrow:
        value = narrowed(value, narrow)
    header = _header_of(value)
    if header is None:
        return wire.block(1, from_array(value).SerializeToString())
    if bulk is not None and value.nbytes >= LEAST and (where := bulk.offer(value)) is not None:
        described = header[: -len(wire.start(4, value.nbytes))]
        mark = _MARK if is_narrow else b""
        return wire.block(1, described) + wire.block(4, wire.block(1, BULK.encode()) + wire.block(2, where + mark))
    start = wire.start(1, len(header) + value.nbytes) + header
    if is_narrow:
        start = wire.block(4, wire.block(1, NARROW.encode())) + start
    if aligned and value.nbytes:
        start = _padding(len(start)) + start
    return b"".join((start, _elements(value)))


def narrowed(array: Any, kind: str) -> Any:
    """A float32 array in 16 bits: bfloat16 is its upper half, as partitioned graphs cast it; half is rounded."""
    if kind == "bfloat16":
        upper = np.ascontiguousarray(array).reshape(-1).view(np.uint16)[1::2]
        return np.ascontiguousarray(upper).view(dtypes.bfloat16.numpy).reshape(array.shape)
    with np.errstate(over="ignore"):  # what is too large is infinite
        return array.astype(COMPRESSIONS[kind].numpy)


def _padding(size: int) -> bytes:
    """A `transport_options` of such a length that what follows it and so many bytes is aligned in a bytes object."""
    missing = -(bytes.__basicsize__ - 1 + size + 4) % _ALIGNMENT
    return wire.block(4, wire.block(2, bytes(missing)))


def read_response(data: bytes, bulk: BulkReceiver | None = None, host: str = LOOPBACK) -> tuple[Any, bool]:
    """A RecvTensorResponse's value, and whether it is dead. Arrays may be views of the data, and read-only.

    Args:
        bulk: fetches what is offered beside the response, where that was asked for.
        host: of who has answered.

    Raises:
        InvalidArgumentError: it is malformed.
        UnavailableError: what was offered is gone.
    """
    try:
        if bulk is not None and is_offer(data):
            return _fetched(data, bulk, host), False
        tensor: tuple[int, int] | None = None
        is_dead = is_narrow = False
        for field in protoscan.fields(data, 0, len(data)):
            if field.number == 1 and field.wire_type == LENGTH and tensor is None:
                tensor = field.value, field.end
            elif field.number == 2 and field.wire_type == VARINT:
                is_dead = bool(wire.value(data, field))
            elif field.number == 4 and NARROW.encode() in data[field.value : min(field.end, field.value + _OFFER)]:
                is_narrow = True
            elif field.number == 1:
                response = RecvTensorResponse.FromString(data)
                return (DEAD, True) if response.is_dead else (to_array(response.tensor), False)
        if is_dead:
            return DEAD, True
        start, end = tensor if tensor is not None else (0, 0)
        found = read_tensor(data, start, end)
        return found.astype(np.float32) if is_narrow else found, False
    except OpError:
        raise
    except (protoscan.WireError, GraphmillError, ValueError) as error:
        raise InvalidArgumentError(f"a tensor that was received is malformed: {error}") from None


def is_offer(data: bytes) -> bool:
    """Whether a response only says where its tensor is to be fetched (`BULK`)."""
    if len(data) >= _OFFER or BULK.encode() not in data:
        return False
    try:
        walk = protoscan.fields(data, 0, len(data))
        return any(field.number == 4 and BULK.encode() in data[field.value : field.end] for field in walk)
    except protoscan.WireError:
        return False


def _fetched(data: bytes, bulk: BulkReceiver, host: str) -> Any:
    """The tensor that a response only describes."""
    try:
        response = RecvTensorResponse.FromString(data)
        dtype, shape = dtype_of(response.tensor), shape_of(response.tensor)
        count = bounds.elements(shape, dtype.numpy.itemsize)
    except Exception as error:
        raise InvalidArgumentError(f"a tensor that was offered is described by a malformed response: {error}") from None
    if dtype.kind in "srv":
        raise InvalidArgumentError(f"a tensor that was offered cannot be {dtype}")
    array = bulk.room(count * dtype.numpy.itemsize).view(dtype.numpy).reshape(shape)
    where = response.transport_options.value
    bulk.fetch(host, where[:PLACE], array)
    return array.astype(np.float32) if where[PLACE:] == _MARK else array


def read_tensor(data: bytes, start: int = 0, end: int | None = None) -> Any:
    """The array of a TensorProto's bytes: a view of them where that can be, then read-only.

    Raises:
        GraphError: it has no type or shape, or other elements than these take.
        WireError: it is no message.
    """
    end = len(data) if end is None else end
    view = _packed(data, start, end)
    if view is not None:
        return view
    try:
        proto = TensorProto.FromString(data[start:end])
    except Exception as error:  # protobuf's DecodeError
        raise GraphError(f"the bytes are no TensorProto: {error}") from None
    return to_array(proto)


def read_message(proto: TensorProto) -> Any:
    """The array of a message that somebody sent.

    Raises:
        InvalidArgumentError: it has no type or shape, or other elements than these take.
    """
    try:
        return to_array(proto)
    except GraphmillError as error:
        raise InvalidArgumentError(f"a tensor that was received is malformed: {error.message}") from None


def named_tensor(field: int, name: str, value: Any) -> list[Any]:
    """A NamedTensorProto as a field of a message, in pieces that follow each other.

    Raises:
        UnimplementedError: it is no tensor.
    """
    key = wire.block(1, name.encode())
    pieces = tensor_field(2, value)
    return [wire.start(field, len(key) + sum(map(len, pieces))) + key, *pieces]


def tensor_field(field: int, value: Any) -> list[Any]:
    """A TensorProto as a field of a message, in pieces that follow each other.

    Raises:
        UnimplementedError: it is no tensor.
    """
    header = _header_of(value)
    if header is None:
        return [wire.block(field, from_array(value).SerializeToString())]
    return [wire.start(field, len(header) + value.nbytes) + header, _elements(value)]


def read_named(data: bytes, start: int, end: int) -> tuple[str, Any]:
    """The name and the array of a NamedTensorProto in data[start:end].

    Raises:
        GraphError: its tensor has other elements than its shape takes.
        WireError: it is no message.
    """
    name, tensor = "", (end, end)
    for each in protoscan.fields(data, start, end):
        if each.number == 1:
            name = data[each.value : each.end].decode(errors="replace")
        elif each.number == 2:
            tensor = each.value, each.end
    return name, read_tensor(data, *tensor)


def take_named(data: bytes, message: type[M], field: int) -> tuple[M, dict[str, Any]]:
    """A message and the arrays of the NamedTensorProtos in one of its fields, which the message is read without.

    Raises:
        InvalidArgumentError: it is no such message, a tensor is malformed, or a name comes twice.
    """
    made, found = _apart(data, message, field, read_named)
    values = dict(found)
    if len(values) < len(found):
        raise InvalidArgumentError("a tensor is fed twice")
    return made, values


def take_tensors(data: bytes, message: type[M], field: int) -> tuple[M, list[Any]]:
    """As `take_named`, for TensorProtos."""
    return _apart(data, message, field, read_tensor)


def _apart(data: bytes, message: type[M], field: int, read: Callable[[bytes, int, int], T]) -> tuple[M, list[T]]:
    rest: list[bytes] = []
    found: list[T] = []
    try:
        for each in protoscan.fields(data, 0, len(data)):
            if each.number == field and each.wire_type == LENGTH:
                found.append(read(data, each.value, each.end))
            else:
                rest.append(data[each.start : each.end])
        return message.FromString(b"".join(rest)), found
    except (protoscan.WireError, DecodeError, GraphmillError) as error:
        raise InvalidArgumentError(f"a {message.__name__} is malformed: {error}") from None


def _packed(data: bytes, start: int, end: int) -> Any:
    """The view of a tensor that has a type, a shape and packed numbers, each once; None for any other."""
    enum, dims, content = 0, None, None
    for field in protoscan.fields(data, start, end):
        if field.number == 1 and field.wire_type == VARINT and not enum:
            enum = wire.value(data, field)
        elif field.number == 2 and field.wire_type == LENGTH and dims is None:
            dims = _dims(data, field.value, field.end)
            if dims is None:
                return None
        elif field.number == 4 and field.wire_type == LENGTH and content is None:
            content = field.value, field.end
        elif field.number != 3:
            return None
    if dims is None or content is None or sys.byteorder != "little":
        return None
    dtype = dtypes.from_enum(enum)
    plain = dtype.numpy
    if dtype.is_ref or dtype.kind in "srvb" or plain.kind not in _PACKED:
        return None
    try:
        count = bounds.elements(dims, plain.itemsize)
    except FormatError as error:
        raise GraphError(f"a {dtype} tensor cannot have this shape: {error.message}") from None
    if content[1] - content[0] != count * plain.itemsize:
        return None  # told by who reads the message
    if not count:
        return np.empty(dims, plain)
    array = np.frombuffer(memoryview(data)[content[0] : content[1]], plain).reshape(dims)
    return array if addresses.begins_at_multiple(array, _ALIGNMENT) else array.copy()


def _dims(data: bytes, start: int, end: int) -> list[int] | None:
    """The sizes of a TensorShapeProto; None where it says anything else."""
    dims: list[int] = []
    for field in protoscan.fields(data, start, end):
        if field.number != 2 or field.wire_type != LENGTH:
            return None
        size = 0
        for inner in protoscan.fields(data, field.value, field.end):
            if inner.number == 1 and inner.wire_type == VARINT:
                size = wire.value(data, inner)
                size -= (1 << 64) if size >> 63 else 0
            elif inner.number != 2:
                return None
        dims.append(size)
    return dims
