"""Fields of messages that are written and read by hand: large ones, and those of which a field or two are used."""

from __future__ import annotations

from toolkit.formats.models.protoscan import Field, varint, varint_bytes

_NUMBER, _BLOCK = 0, 2


def number(field: int, value: int) -> bytes:
    """A field that is a number, not a negative one."""
    return bytes((field << 3 | _NUMBER,)) + varint_bytes(value)


def start(field: int, size: int) -> bytes:
    """The beginning of a field of so many bytes, which follow."""
    return bytes((field << 3 | _BLOCK,)) + varint_bytes(size)


def block(field: int, data: bytes) -> bytes:
    """A field that is bytes, a text or a message."""
    return start(field, len(data)) + data


def value(data: bytes, field: Field) -> int:
    """The number of a field that was found by `protoscan.fields`.

    Raises:
        WireError: it does not end.
    """
    return varint(data, field.value, field.end, field.end)[0]
