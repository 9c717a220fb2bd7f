"""Snappy decompression (https://github.com/google/snappy/blob/main/format_description.txt).

Only tables that other programs wrote are ever compressed; nothing here writes Snappy.
"""

from __future__ import annotations

from toolkit.errors import FormatError
from toolkit.formats.bundle.wire import get_varint


def decompress(data: bytes) -> bytes:
    """The uncompressed bytes of a Snappy block.

    Raises:
        FormatError: the block is malformed.
    """
    expected, at = get_varint(data, 0)
    out = bytearray()
    end = len(data)
    while at < end:
        tag = data[at]
        at += 1
        kind = tag & 3
        if kind == 0:
            length = (tag >> 2) + 1
            if length > 60:
                width = length - 60
                length = int.from_bytes(data[at : at + width], "little") + 1
                at += width
            if at + length > end:
                raise FormatError("a Snappy literal reaches past the end")
            out += data[at : at + length]
            at += length
            continue
        if kind == 1:
            length = 4 + (tag >> 2 & 7)
            width, offset = 1, (tag >> 5) << 8
        else:
            length = (tag >> 2) + 1
            width, offset = (2 if kind == 2 else 4), 0
        if at + width > end:
            raise FormatError("a Snappy copy reaches past the end")
        offset |= int.from_bytes(data[at : at + width], "little")
        at += width
        start = len(out) - offset
        if offset == 0 or start < 0:
            raise FormatError("a Snappy copy points before the start")
        if len(out) + length > expected:
            raise FormatError("a Snappy block is longer than it says")
        # A copy may overlap what it writes: then the bytes since `start` repeat.
        pattern = bytes(out[start : start + length])
        out += (pattern * (length // len(pattern) + 1))[:length]
    if len(out) != expected:
        raise FormatError(f"a Snappy block has {len(out)} bytes and says {expected}")
    return bytes(out)
