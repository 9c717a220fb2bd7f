"""EncodePng, and the reading of PNGs of 16 bits, which Pillow narrows to 8 (ISO/IEC 15948)."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

import numpy

from toolkit.errors import InvalidArgumentError
from toolkit.formats import bounds
from toolkit.graph import dtypes
from toolkit.kernels.cpu.common import np, require, shape_text
from toolkit.kernels.registry import Compute, KernelNode, kernel
from toolkit.kernels.types import Array

SIGNATURE = b"\x89PNG\r\n\x1a\n"
#: channels to the colour type of the header, and back
_COLOR_TYPE = {1: 0, 2: 4, 3: 2, 4: 6}
_CHANNELS = {kind: channels for channels, kind in _COLOR_TYPE.items()}
#: pixels of a side: undoing the filters takes a step for each diagonal
_LONGEST = 1 << 20
#: Adam7: first row, first column, row step, column step of each pass
_PASSES = ((0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1))


def chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The chunks, as (type, content).

    Raises:
        InvalidArgumentError: the file ends early.
    """
    at = len(SIGNATURE)
    while at < len(data):
        if at + 12 > len(data):
            raise InvalidArgumentError(f"Invalid PNG data, size {len(data)}: it ends inside a chunk")
        (length,) = struct.unpack_from(">I", data, at)
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        tail = data[at + 8 + length : at + 12 + length]
        if len(tail) < 4 or zlib.crc32(kind + body) != int.from_bytes(tail, "big"):
            raise InvalidArgumentError(f"Invalid PNG data, size {len(data)}: chunk {kind!r} is damaged")
        yield kind, body
        if kind == b"IEND":
            return
        at += 12 + length
    raise InvalidArgumentError(f"Invalid PNG data, size {len(data)}: it has no end")


def bit_depth(data: bytes) -> int:
    """The header's bits per sample.

    Raises:
        InvalidArgumentError: there is no header.
    """
    require(len(data) >= 33 and data[12:16] == b"IHDR", f"Invalid PNG data, size {len(data)}: it has no header")
    return data[24]


def _unfilter(filters: Array, rows: Array) -> Array:
    """Undoes the filters of all rows at once: rows uint8 [height, width, bytes a pixel].

    A pixel depends on those at its left, above and above left, so all pixels of an antidiagonal are independent.
    """
    height, width, size = rows.shape
    out = np.zeros((height + 1, width + 1, size), np.int32)  # with a border of zeros above and at the left
    source = rows.astype(np.int32)
    for diagonal in range(height + width - 1):
        y = np.arange(max(0, diagonal - width + 1), min(height, diagonal + 1))
        x = diagonal - y
        left, above, corner = out[y + 1, x], out[y, x + 1], out[y, x]
        estimate = left + above - corner
        by_left, by_above, by_corner = (abs(estimate - other) for other in (left, above, corner))
        paeth = np.where((by_left <= by_above) & (by_left <= by_corner), left,
                         np.where(by_above <= by_corner, above, corner))  # fmt: skip
        kind = filters[y][:, None]
        predicted = np.select(
            [kind == 1, kind == 2, kind == 3, kind == 4], [left, above, (left + above) >> 1, paeth], 0
        )
        out[y + 1, x + 1] = (source[y, x] + predicted) & 0xFF
    return out[1:, 1:].astype(np.uint8)


def _decode_pass(raw: bytes, at: int, height: int, width: int, channels: int) -> tuple[Array, int]:
    """The samples, uint16 [height, width, channels], of one pass that starts at a byte; and where it ends."""
    stride = 1 + width * channels * 2
    end = at + height * stride
    if end > len(raw):
        raise InvalidArgumentError("Invalid PNG data: pixels are missing")
    lines = np.frombuffer(raw, np.uint8, height * stride, at).reshape(height, stride)
    pixels = _unfilter(lines[:, 0], lines[:, 1:].reshape(height, width, channels * 2))
    return np.ascontiguousarray(pixels).view(">u2").astype(np.uint16), end


def _raw_size(width: int, height: int, channels: int, interlaced: bool) -> int:
    """Bytes of all lines of 16-bit samples, the filters' included."""
    parts = _PASSES if interlaced else ((0, 0, 1, 1),)
    sizes = ((max(0, -((y - height) // dy)), max(0, -((x - width) // dx))) for y, x, dy, dx in parts)
    return sum(rows * (1 + columns * channels * 2) for rows, columns in sizes if columns)


def zlib_bytes(packed: bytes, expected: int, size: int) -> bytes:
    """The decompressed lines of a PNG: as many bytes as its geometry takes, and no more."""
    inflater = zlib.decompressobj()
    try:
        raw = inflater.decompress(packed, expected) if expected else b""
    except zlib.error as error:
        raise InvalidArgumentError(f"Invalid PNG data, size {size}: {error}") from None
    require(len(raw) == expected, "Invalid PNG data: pixels are missing")
    return raw


def decode_16_bit(data: bytes) -> tuple[Array, bool]:
    """A PNG of 16 bits per sample as uint16 [height, width, channels].

    Also whether the last channel is alpha made from one transparent colour.

    Raises:
        InvalidArgumentError: the data are damaged.
    """
    parts: list[bytes] = []
    header, transparent = b"", b""
    for kind, body in chunks(data):
        if kind == b"IHDR":
            header = body
        elif kind == b"tRNS":
            transparent = body
        elif kind == b"IDAT":
            parts.append(body)
    require(len(header) == 13, "Invalid PNG data: the header is damaged")
    width, height, _, color, _, _, interlaced = struct.unpack(">IIBBBBB", header)
    require(width > 0 and height > 0 and color in _CHANNELS, "Invalid PNG data: the header is damaged")
    require(max(width, height) <= _LONGEST, f"a PNG of 16 bits may have sides of {_LONGEST}, not {width} x {height}")
    channels = _CHANNELS[color]
    expected = _raw_size(width, height, channels, bool(interlaced))
    packed = b"".join(parts)
    require(
        expected <= bounds.DEFLATE_LIMIT * (len(packed) + 1),
        f"Invalid PNG data: {width} x {height} pixels cannot come from {len(packed)} bytes",
    )
    raw = zlib_bytes(packed, expected, len(data))
    if interlaced:
        image, at = np.zeros((height, width, channels), np.uint16), 0
        for y, x, dy, dx in _PASSES:
            part = image[y::dy, x::dx]
            if part.size:
                part[...], at = _decode_pass(raw, at, *part.shape)
    else:
        image, _ = _decode_pass(raw, 0, height, width, channels)
    if len(transparent) >= 2 * channels and channels in (1, 3):
        key = np.frombuffer(transparent, ">u2", channels)
        alpha = np.where((image == key).all(axis=-1, keepdims=True), 0, 0xFFFF).astype(np.uint16)
        return np.concatenate([image, alpha], axis=-1), True
    return image, False


def encode(image: Array, level: int) -> bytes:
    """uint8 or uint16 [height, width, 1 to 4 channels] as a PNG.

    Each row takes the filter whose differences have the least sum, of none, left, above, average and Paeth.
    """
    height, width, channels = image.shape
    size = image.dtype.itemsize
    body = np.ascontiguousarray(image.astype(">u2") if size == 2 else image).view(np.uint8)
    pixels = np.zeros((height + 1, width + 1, channels * size), np.int16)
    pixels[1:, 1:] = body.reshape(height, width, channels * size)
    here, left, above, corner = pixels[1:, 1:], pixels[1:, :-1], pixels[:-1, 1:], pixels[:-1, :-1]
    estimate = left + above - corner
    by_left, by_above, by_corner = (abs(estimate - other) for other in (left, above, corner))
    paeth = np.where((by_left <= by_above) & (by_left <= by_corner), left,
                     np.where(by_above <= by_corner, above, corner))  # fmt: skip
    predictions = (np.zeros_like(here), left, above, (left + above) >> 1, paeth)
    rows = np.stack([(here - p).astype(np.uint8) for p in predictions]).reshape(5, height, -1)
    best = abs(rows.view(np.int8).astype(np.int32)).sum(axis=-1).argmin(axis=0)
    lines = np.concatenate([best.astype(np.uint8)[:, None], rows[best, np.arange(height)]], axis=1)
    header = struct.pack(">IIBBBBB", width, height, 8 * size, _COLOR_TYPE[channels], 0, 0, 0)
    content = ((b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), level)), (b"IEND", b""))
    out = [SIGNATURE]
    for kind, data in content:
        out += [struct.pack(">I", len(data)), kind, data, struct.pack(">I", zlib.crc32(kind + data))]
    return b"".join(out)


@kernel("EncodePng", types={"T": [dtypes.uint8, dtypes.uint16]})
def encode_png(op: KernelNode) -> Compute:
    """One string for each image of (..., height, width, channels)."""
    level: int = op.attr("compression")
    require(-1 <= level <= 9, f"compression should be in [-1, 9], got {level}")

    def compute(images: Array) -> Array:
        require(np.ndim(images) >= 3, f"images must be at least rank 3, got shape {shape_text(images)}")
        require(images.size >= 0 and 1 <= images.shape[-1] <= 4,
                f"image must have 1, 2, 3, or 4 channels, got {images.shape[-1]}")  # fmt: skip
        lead = images.shape[:-3]
        out = numpy.empty(lead, object)
        if out.size:
            require(min(images.shape[-3:-1]) > 0, f"images must not be empty, got shape {shape_text(images)}")
        for where in numpy.ndindex(lead):
            out[where] = encode(images[where], level)
        return out

    return compute
