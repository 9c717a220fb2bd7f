"""The two messages of a checkpoint's index, coded by hand.

Opening a checkpoint decodes one BundleEntryProto for every tensor; doing that here keeps the protobuf runtime
out of commands that only look at an index. Layout: schemas/tensor_bundle.proto.
"""

from __future__ import annotations

from dataclasses import dataclass

from toolkit.errors import FormatError
from toolkit.formats.bundle.slices import TensorSlice

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
LITTLE_ENDIAN, BIG_ENDIAN = 0, 1
#: version numbers of the format that we write and understand (kTensorBundleVersion, kTensorBundleMinConsumer)
BUNDLE_VERSION = 1


@dataclass(slots=True)
class BundleHeader:
    """BundleHeaderProto."""

    num_shards: int = 0
    endianness: int = LITTLE_ENDIAN
    producer: int = 0
    min_consumer: int = 0
    bad_consumers: tuple[int, ...] = ()


@dataclass(slots=True)
class RawEntry:
    """BundleEntryProto: `crc` is masked, as stored; `dims` holds sizes, None for an unknown rank."""

    dtype: int = 0
    dims: tuple[int, ...] | None = ()
    shard: int = 0
    offset: int = 0
    size: int = 0
    crc: int = 0
    slices: tuple[TensorSlice, ...] = ()


def put_varint(out: bytearray, number: int) -> None:
    """Append an unsigned (or, as protobuf does, a 64-bit two's complement) varint."""
    number &= 0xFFFFFFFFFFFFFFFF
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)


def get_varint(data: bytes, at: int) -> tuple[int, int]:
    """The varint at position `at` and the position after it.

    Raises:
        FormatError: the bytes end inside it, or it is longer than 64 bits.
    """
    number = shift = 0
    try:
        while True:
            byte = data[at]
            at += 1
            if byte < 0x80:
                number |= byte << shift
                if number >> 64:
                    raise FormatError("a varint is longer than 64 bits")
                return number, at
            number |= (byte & 0x7F) << shift
            shift += 7
            if shift > 63:
                raise FormatError("a varint is longer than 64 bits")
    except IndexError:
        raise FormatError("the bytes end inside a varint") from None


def _signed(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number


def _fields(data: bytes) -> list[tuple[int, int | bytes]]:
    """(tag, value) of every field of a message: an int for numbers, bytes for the rest."""
    found: list[tuple[int, int | bytes]] = []
    at, end = 0, len(data)
    while at < end:
        tag, at = get_varint(data, at)
        kind = tag & 7
        if kind == _VARINT:
            number, at = get_varint(data, at)
            found.append((tag, number))
            continue
        if kind == _BYTES:
            length, at = get_varint(data, at)
        elif kind == _FIXED32:
            length = 4
        elif kind == _FIXED64:
            length = 8
        else:
            raise FormatError(f"wire type {kind} is not one that an index uses")
        if at + length > end:
            raise FormatError("the bytes end inside a field")
        chunk = data[at : at + length]
        at += length
        found.append((tag, chunk if kind == _BYTES else int.from_bytes(chunk, "little")))
    return found


def _number(value: int | bytes) -> int:
    if isinstance(value, bytes):
        raise FormatError("a number was expected where the message holds bytes")
    return _signed(value)


def _message(value: int | bytes) -> list[tuple[int, int | bytes]]:
    if isinstance(value, int):
        raise FormatError("a message was expected where there is a number")
    return _fields(value)


def decode_header(data: bytes) -> BundleHeader:
    """Read a BundleHeaderProto.

    Raises:
        FormatError: the bytes are no such message.
    """
    header = BundleHeader()
    for tag, value in _fields(data):
        if tag == 0x08:
            header.num_shards = _number(value)
        elif tag == 0x10:
            header.endianness = _number(value)
        elif tag == 0x1A:
            for inner, number in _message(value):
                if inner == 0x08:
                    header.producer = _number(number)
                elif inner == 0x10:
                    header.min_consumer = _number(number)
                elif inner == 0x18:
                    header.bad_consumers += (_number(number),)
                elif inner == 0x1A and isinstance(number, bytes):
                    at = 0
                    while at < len(number):
                        bad, at = get_varint(number, at)
                        header.bad_consumers += (bad,)
    return header


def encode_header(num_shards: int) -> bytes:
    """The BundleHeaderProto of a little-endian checkpoint with that many data files."""
    out = bytearray()
    _put_number(out, 0x08, num_shards)
    out += bytes((0x1A, 2, 0x08, BUNDLE_VERSION))
    return bytes(out)


def decode_entry(data: bytes) -> RawEntry:
    """Read a BundleEntryProto.

    Raises:
        FormatError: the bytes are no such message.
    """
    entry = RawEntry()
    dims: list[int] = []
    slices: list[TensorSlice] = []
    for tag, value in _fields(data):
        if tag == 0x08:
            entry.dtype = _number(value)
        elif tag == 0x12:
            for inner, part in _message(value):
                if inner == 0x12:
                    dims.append(next((_number(v) for t, v in _message(part) if t == 0x08), 0))
                elif inner == 0x18 and part:
                    entry.dims = None
        elif tag == 0x18:
            entry.shard = _number(value)
        elif tag == 0x20:
            entry.offset = _number(value)
        elif tag == 0x28:
            entry.size = _number(value)
        elif tag == 0x35:
            entry.crc = _number(value)
        elif tag == 0x3A:
            slices.append(_decode_slice(_message(value)))
    if entry.dims is not None:
        entry.dims = tuple(dims)
    entry.slices = tuple(slices)
    return entry


def _decode_slice(fields: list[tuple[int, int | bytes]]) -> TensorSlice:
    extents: list[tuple[int, int]] = []
    for tag, value in fields:
        if tag == 0x0A:
            start, length = 0, -1
            for inner, number in _message(value):
                if inner == 0x08:
                    start = _number(number)
                elif inner == 0x10:
                    length = _number(number)
            extents.append((start, length))
    return TensorSlice(tuple(extents))


def encode_entry(entry: RawEntry) -> bytes:
    """The bytes of a BundleEntryProto, fields in order and zeros left out, as TensorFlow writes it."""
    out = bytearray()
    _put_number(out, 0x08, entry.dtype)
    shape = bytearray()
    for size in entry.dims or ():
        dim = bytearray()
        _put_number(dim, 0x08, size)
        _put_message(shape, 0x12, dim)
    _put_message(out, 0x12, shape)
    _put_number(out, 0x18, entry.shard)
    _put_number(out, 0x20, entry.offset)
    _put_number(out, 0x28, entry.size)
    if entry.crc:
        out.append(0x35)
        out += entry.crc.to_bytes(4, "little")
    for part in entry.slices:
        _put_message(out, 0x3A, encode_slice(part))
    return bytes(out)


def encode_slice(part: TensorSlice) -> bytearray:
    """The bytes of a TensorSliceProto; a full dimension is an empty extent."""
    out = bytearray()
    for start, length in part.extents:
        extent = bytearray()
        if length >= 0:
            _put_number(extent, 0x08, start)
            # The length is in a oneof, so it is written even when it is 0.
            extent.append(0x10)
            put_varint(extent, length)
        _put_message(out, 0x0A, extent)
    return out


def _put_number(out: bytearray, tag: int, number: int) -> None:
    if number:
        out.append(tag)
        put_varint(out, number)


def _put_message(out: bytearray, tag: int, body: bytes | bytearray) -> None:
    out.append(tag)
    put_varint(out, len(body))
    out += body
