"""OrderedCode: bytes whose order is the order of the values they stand for.

The keys under which a table keeps the slices of partitioned variables are written so (the encoding is that of
tensorflow/core/lib/strings/ordered_code.h).
"""

from __future__ import annotations

import re

from toolkit.errors import FormatError

_ESCAPED = {b"\x00": b"\x00\xff", b"\xff": b"\xff\x00"}
_SPECIAL = re.compile(rb"[\x00\xff]")


def encode_string(text: bytes) -> bytes:
    """A string: 00 and FF are escaped by a second byte, and 00 01 ends it."""
    return _SPECIAL.sub(lambda match: _ESCAPED[match[0]], text) + b"\x00\x01"


def decode_string(data: bytes, at: int) -> tuple[bytes, int]:
    """The string at position `at` and the position after it.

    Raises:
        FormatError: it does not end, or an escape is wrong.
    """
    out = bytearray()
    while at + 1 < len(data):
        match = _SPECIAL.search(data, at)
        if match is None or match.end() >= len(data):
            break
        out += data[at : match.start()]
        pair = data[match.start() : match.start() + 2]
        at = match.start() + 2
        if pair == b"\x00\x01":
            return bytes(out), at
        if pair == b"\x00\xff":
            out.append(0)
        elif pair == b"\xff\x00":
            out.append(0xFF)
        else:
            break
    raise FormatError("an ordered string has no end or a wrong escape")


def encode_uint(number: int) -> bytes:
    """An unsigned number: how many bytes follow, then those bytes, highest first."""
    size = (number.bit_length() + 7) // 8
    return bytes((size,)) + number.to_bytes(size, "big")


def decode_uint(data: bytes, at: int) -> tuple[int, int]:
    """The number at position `at` and the position after it.

    Raises:
        FormatError: the bytes end inside it, or it is longer than 64 bits.
    """
    if at >= len(data) or data[at] > 8 or at + 1 + data[at] > len(data):
        raise FormatError("the bytes end inside an ordered number")
    end = at + 1 + data[at]
    return int.from_bytes(data[at + 1 : end], "big"), end


def encode_int(number: int) -> bytes:
    """A signed 64-bit number in 1 to 10 bytes.

    The leading bits count the bytes in unary (n ones, or n zeros for negative numbers) and the rest is the two's
    complement, so comparing bytes compares numbers. A number of n bytes has 7n - 1 bits of magnitude.
    """
    size = _int_size(number)
    bits = 8 * size
    # n ones followed by a zero; from 8 bytes on, they run over into the second byte.
    header = ((1 << size) - 1) << (bits - size)
    magnitude = number if number >= 0 else ~number
    code = header | magnitude
    if number < 0:
        code = ~code & ((1 << bits) - 1)
    return code.to_bytes(size, "big")


def _int_size(number: int) -> int:
    magnitude = number if number >= 0 else ~number
    return max(1, (magnitude.bit_length() + 7) // 7)


def decode_int(data: bytes, at: int) -> tuple[int, int]:
    """The number at position `at` and the position after it.

    Raises:
        FormatError: the bytes end inside it.
    """
    if at >= len(data):
        raise FormatError("the bytes end inside an ordered number")
    negative = data[at] < 0x80
    head = int.from_bytes(data[at : at + 2].ljust(2, b"\xff" if negative else b"\x00"), "big")
    if negative:
        head ^= 0xFFFF
    size = 16 - (head ^ 0xFFFF).bit_length()
    if size > 10 or at + size > len(data):
        raise FormatError("the bytes end inside an ordered number")
    code = int.from_bytes(data[at : at + size], "big")
    bits = 8 * size
    if negative:
        code = ~code & ((1 << bits) - 1)
    magnitude = code & ((1 << (bits - size)) - 1)
    return (~magnitude if negative else magnitude), at + size
