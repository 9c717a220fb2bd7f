"""Walking the protobuf wire format without parsing: does this look like that message, and where does it end?

Wire format: https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
_MAX_DEPTH = 4
_MAX_FIELDS = 200  # fields looked at per message, and
_ENOUGH_FIELDS = 600  # in all: enough to tell kinds apart
_MAX_NUMBER = 2**29 - 1

# descriptor type codes (google.protobuf.descriptor.FieldDescriptor)
_FIXED64_TYPES = {1, 6, 16}
_FIXED32_TYPES = {2, 7, 15}
_LENGTH_TYPES = {9, 11, 12}
_STRING, _MESSAGE = 9, 11


class Field(NamedTuple):
    """One field on the wire: where its tag starts, and its value's bytes [value, end)."""

    number: int
    wire_type: int
    start: int
    value: int
    end: int


class WireError(Exception):
    """The bytes are not in the wire format, at this position."""

    def __init__(self, position: int, what: str):
        super().__init__(what)
        self.position = position


def fields(data: bytes, start: int, end: int, total: int | None = None) -> Iterator[Field]:
    """The fields of a message in data[start:end].

    Args:
        total: where the message really ends, when `data` is only its beginning; the last field may then reach
            beyond `end`.

    Raises:
        WireError: a malformed tag or varint, or a field that reaches beyond the message.
    """
    limit = end if total is None else total
    position = start
    while position < end:
        tag, value = varint(data, position, end, limit)
        number, wire_type = tag >> 3, tag & 7
        if number == 0 or number > _MAX_NUMBER:
            raise WireError(position, "a bad field number")
        if wire_type == VARINT:
            _, stop = varint(data, value, end, limit)
        elif wire_type == FIXED64:
            stop = value + 8
        elif wire_type == FIXED32:
            stop = value + 4
        elif wire_type == LENGTH:
            length, value = varint(data, value, end, limit)
            stop = value + length
        else:
            raise WireError(position, "a bad wire type")
        if stop > limit:
            raise WireError(position, f"a field of {stop - value:,} bytes of which {max(limit - value, 0):,} are there")
        yield Field(number, wire_type, position, value, stop)
        position = stop


def varint(data: bytes, position: int, end: int, limit: int) -> tuple[int, int]:
    """A varint and the position after it.

    Raises:
        WireError: it does not end before `end`, or is over 64 bits.
    """
    result = shift = 0
    start = position
    while shift < 70:
        if position >= end:
            raise WireError(start, "the end within a number" if end == limit else "cut")
        byte = data[position]
        position += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, position
        shift += 7
    raise WireError(start, "a number over 64 bits")


def varint_bytes(value: int) -> bytes:
    """A number as a varint."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


@dataclass(slots=True)
class Fit:
    """How well bytes fit a message: fields that it has, fields that it does not, and whether one of them has the
    wrong form, which ended the walk."""

    known: int = 0
    unknown: int = 0
    broken: bool = False

    @property
    def is_told(self) -> bool:
        """Whether enough fields have been looked at."""
        return self.known + self.unknown >= _ENOUGH_FIELDS


def fit(data: bytes, descriptor: Any, total: int) -> Fit:
    """Compare the beginning of a file with a message type, field by field, up to the first that is wrong.

    Args:
        data: the first bytes.
        descriptor: of the message.
        total: the size of the whole file.
    """
    result = Fit()
    walk = fields(data, 0, len(data), None if len(data) == total else total)
    try:
        for count, field in enumerate(walk):
            if not _fits(data, field, min(field.end, len(data)), descriptor, 1, result):
                result.broken = True
                break
            if count >= _MAX_FIELDS or result.is_told:
                break
    except WireError as error:
        result.broken = not _cut_field_fits(data, error.position, descriptor, result)
    return result


def _cut_field_fits(data: bytes, position: int, descriptor: Any, result: Fit) -> bool:
    """Whether the field that the file ends in could be one of the message."""
    try:
        tag, value = varint(data, position, len(data), len(data))
        number, wire_type = tag >> 3, tag & 7
        if wire_type == LENGTH:
            _, value = varint(data, value, len(data), len(data))
    except WireError:
        return True
    if wire_type in (3, 4, 6, 7) or number == 0:
        return False
    return _fits(data, Field(number, wire_type, position, value, len(data)), len(data), descriptor, 1, result, cut=True)


def _fits(data: bytes, field: Field, end: int, descriptor: Any, depth: int, result: Fit, *, cut: bool = False) -> bool:
    known = descriptor.fields_by_number.get(field.number)
    if known is None:
        result.unknown += 1
        return True
    if not _wire_type_fits(field.wire_type, known):
        return False
    if known.type == _STRING and not _is_name(data[field.value : end]):
        result.unknown += 1  # damaged or hostile, if everything else fits
        return True
    if known.type == _MESSAGE and depth < _MAX_DEPTH:
        walk = fields(data, field.value, end, None if end == field.end and not cut else field.end)
        try:
            for count, inner in enumerate(walk):
                if not _fits(data, inner, min(inner.end, end), known.message_type, depth + 1, result, cut=cut):
                    return False
                if count >= _MAX_FIELDS or result.is_told:
                    break
        except WireError:
            # malformed, unless we only see its beginning
            if end == field.end and not cut:
                return False
    result.known += 1
    return True


def _wire_type_fits(wire_type: int, field: Any) -> bool:
    kind = field.type
    if kind in _LENGTH_TYPES:
        return wire_type == LENGTH
    if wire_type == LENGTH:  # packed
        return field.is_repeated
    if kind in _FIXED64_TYPES:
        return wire_type == FIXED64
    if kind in _FIXED32_TYPES:
        return wire_type == FIXED32
    return wire_type == VARINT


def _is_name(value: bytes) -> bool:
    """Whether a string could be a name or a line of text: UTF-8 (perhaps cut off) without control characters."""
    try:
        text = value.decode()
    except UnicodeDecodeError as error:
        if error.end < len(value) or len(value) - error.start > 3:
            return False
        text = value[: error.start].decode()
    return not any(ch < " " for ch in text) if len(text) < 256 else "\0" not in text
