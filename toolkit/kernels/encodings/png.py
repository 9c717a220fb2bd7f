"""A small PNG encoder (ISO/IEC 15948): no filter, no interlace; for summaries, without an image library."""

from __future__ import annotations

import struct
import zlib

from toolkit.kernels.types import Array

_COLOR_TYPE = {1: 0, 2: 4, 3: 2, 4: 6}


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def encode_png(image: Array, level: int = -1) -> bytes:
    """The PNG file of an image.

    Args:
        image: uint8 or uint16 [height, width, channels], 1 to 4 channels.
        level: of compression, 0 to 9; -1 is the usual one.
    """
    height, width, channels = image.shape
    depth = 16 if image.dtype.itemsize == 2 else 8
    big_endian = image.astype(image.dtype.newbyteorder(">"), copy=False)
    rows = big_endian.reshape(height, width * channels)
    raw = b"".join(b"\x00" + row.tobytes() for row in rows)
    header = struct.pack(">IIBBBBB", width, height, depth, _COLOR_TYPE[channels], 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + _chunk(b"IHDR", header)
        + _chunk(b"IDAT", zlib.compress(raw, level))
        + _chunk(b"IEND", b"")
    )
