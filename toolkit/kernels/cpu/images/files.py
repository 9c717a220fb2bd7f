"""Image files into pixels: BMP here, JPEG, PNG, GIF and WebP through Pillow (extra `image`).

Every reader returns uint8 or uint16 [height, width, channels], of GIF and WebP [frames, height, width, channels].
"""

from __future__ import annotations

import importlib
import io
import struct
import warnings
from typing import Any

from toolkit.errors import FormatError, InvalidArgumentError, UnimplementedError
from toolkit.formats import bounds
from toolkit.kernels.cpu.common import np, require
from toolkit.kernels.cpu.images import png as image_png
from toolkit.kernels.types import Array


def pillow() -> Any:
    """PIL.Image.

    Raises:
        UnimplementedError: it is not installed.
    """
    try:
        return importlib.import_module("PIL.Image")
    except ImportError:
        raise UnimplementedError(
            "image files are read and written with Pillow, which is not installed; pip install 'graphmill[image]'"
        ) from None


def kind_of(data: bytes) -> str:
    """JPEG, PNG, GIF or BMP.

    Raises:
        InvalidArgumentError: it is none of them.
    """
    for magic, name in ((b"\xff\xd8\xff", "JPEG"), (image_png.SIGNATURE, "PNG"), (b"GIF8", "GIF"), (b"BM", "BMP")):
        if data.startswith(magic):
            return name
    raise InvalidArgumentError(f"Unknown image file format. One of JPEG, PNG, GIF, BMP required; got {data[:8]!r}")


def _open(data: bytes, kind: str) -> Any:
    Image = pillow()
    try:
        with warnings.catch_warnings():  # of sizes, which `_check_pixels` judges by the bytes that are there
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            image = Image.open(io.BytesIO(data), formats=[kind])
    except Exception as error:  # Pillow's readers raise many kinds on damaged data
        raise InvalidArgumentError(f"Invalid {kind} data, size {len(data)}: {error}") from None
    width, height = image.size
    _check_pixels(width, height, getattr(image, "n_frames", 1) if kind == "WEBP" else 1, len(data), kind)
    return image


def _check_pixels(width: int, height: int, frames: int, size: int, kind: str) -> None:
    try:
        bounds.check_pixels(width, height, frames, size)
    except FormatError as error:
        raise InvalidArgumentError(f"Invalid {kind} data, size {size}: {error.message}") from None


def _load(image: Any, kind: str) -> None:
    try:
        image.load()
    except Exception as error:  # as above
        raise InvalidArgumentError(f"Invalid {kind} data or crop window: {error}") from None


def jpeg_shape(data: bytes) -> tuple[int, int, int]:
    """(height, width, channels) from the frame header.

    Raises:
        InvalidArgumentError: there is none.
    """
    at = 2
    while data[:2] == b"\xff\xd8" and at + 9 < len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width, channels = struct.unpack_from(">HHB", data, at + 5)
            return height, width, channels
        # a fill byte stands alone; markers without content have no length
        at += 1 if marker == 0xFF else 2 if 0xD0 <= marker <= 0xD8 else 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    raise InvalidArgumentError(f"Invalid JPEG data, size {len(data)}")


def read_jpeg(data: bytes, channels: int, ratio: int = 1) -> Array:
    """`channels` 0 takes what the file has; each side is divided by `ratio` (1, 2, 4, 8), rounded up."""
    height, width, _ = jpeg_shape(data)
    _check_pixels(width, height, 1, len(data), "JPEG")
    image = _open(data, "JPEG")
    wants_grey = channels == 1 or (channels == 0 and image.mode == "L")
    if image.mode != "CMYK" and (wants_grey or ratio > 1):
        # libjpeg itself converts and scales
        image.draft("L" if wants_grey else image.mode, (max(width // ratio, 1), max(height // ratio, 1)))
    _load(image, "JPEG")
    pixels = np.asarray(image)
    if image.mode == "CMYK":
        inks = 255 - pixels.astype(np.int32)
        pixels = (inks[..., :3] * inks[..., 3:] // 255).astype(np.uint8)
        if wants_grey:
            raise UnimplementedError("a JPEG in CMYK can only be read with 3 channels")
    if pixels.ndim == 2:
        pixels = pixels[..., None]
    return np.repeat(pixels, 3, axis=-1) if channels == 3 and pixels.shape[-1] == 1 else pixels


def _grey(pixels: Array) -> Array:
    """Luminance in libpng's integers: 15 bits, rounded for 16-bit samples alone."""
    wide = pixels.astype(np.int64)
    total = wide[..., :1] * 9797 + wide[..., 1:2] * 19234 + wide[..., 2:3] * 3737
    return ((total + (16384 if pixels.dtype == np.uint16 else 0)) >> 15).astype(pixels.dtype)


def _png_pixels(data: bytes) -> tuple[Array, bool]:
    """The pixels, and whether their last channel was made from one transparent colour."""
    if image_png.bit_depth(data) == 16:
        return image_png.decode_16_bit(data)
    keyed = False
    for _ in image_png.chunks(data):  # the checksums
        pass
    image = _open(data, "PNG")
    _load(image, "PNG")
    transparent = image.info.get("transparency")
    if image.mode in ("P", "PA"):
        image = image.convert("RGB" if transparent is None else "RGBA")
    elif image.mode in ("1", "L", "RGB") and transparent is not None:
        image, keyed = image.convert("LA" if image.mode in ("1", "L") else "RGBA"), True
    elif image.mode == "1":
        image = image.convert("L")
    pixels = np.asarray(image)
    return pixels[..., None] if pixels.ndim == 2 else pixels, keyed


def read_png(data: bytes, channels: int, wide: bool) -> Array:
    """uint16 when `wide`, else uint8; `channels` 0 takes what the file has."""
    pixels = _with_channels(data, channels)
    if pixels.dtype == np.uint16:
        return pixels if wide else (pixels >> 8).astype(np.uint8)
    return pixels.astype(np.uint16) * np.uint16(257) if wide else pixels


def _with_channels(data: bytes, channels: int) -> Array:
    """The pixels in the file's own width."""
    pixels, keyed = _png_pixels(data)
    if keyed and channels == 0:
        return pixels[..., :-1]
    has = pixels.shape[-1]
    if channels in (0, has):
        return pixels
    color, alpha = (pixels[..., :-1], pixels[..., -1:]) if has in (2, 4) else (pixels, None)
    if channels == 1:
        return color if color.shape[-1] == 1 else _grey(color)
    if color.shape[-1] == 1:
        color = np.repeat(color, 3, axis=-1)
    if channels == 3:
        return color
    if alpha is None:
        # the largest sample of the file's own depth, even where the others have been stretched to 8 bits
        opaque = (1 << image_png.bit_depth(data)) - 1
        alpha = np.full((*color.shape[:-1], 1), opaque, color.dtype)
    return np.concatenate([color, alpha], axis=-1)


def read_bmp(data: bytes, channels: int) -> Array:
    """8 (taken as grey), 24 or 32 bits a pixel, not compressed."""
    require(len(data) >= 32, f"Incomplete bmp content, requires at least 32 bytes, got {len(data)}")
    offset, width, height = struct.unpack_from("<i4xii", data, 10)
    (bits,) = struct.unpack_from("<H", data, 28)
    require(bits in (8, 24, 32), f"a BMP must have 8, 24 or 32 bits a pixel, not {bits}")
    has = bits // 8
    top_down, rows = height < 0, abs(height)
    require(width > 0 and rows > 0, f"a BMP must have pixels, not {width} x {rows}")
    stride = (has * width + 3) // 4 * 4
    # the padding of the last row may be missing
    last = offset + stride * (rows - 1) + has * width
    require(
        offset > 0 and last <= len(data), f"Incomplete bmp content, requires at least {last} bytes, got {len(data)}"
    )
    raw = np.frombuffer(data[offset:].ljust(stride * rows, b"\0"), np.uint8, stride * rows).reshape(rows, stride)
    pixels = raw[:, : has * width].reshape(rows, width, has)
    pixels = pixels if top_down else pixels[::-1]
    if has >= 3:
        pixels = pixels[..., [2, 1, 0, 3][:has]]
    elif channels >= 3:
        pixels = np.repeat(pixels, 3, axis=-1)
    if channels == 3:
        pixels = pixels[..., :3]
    if channels == 4 and pixels.shape[-1] == 3:
        pixels = np.concatenate([pixels, np.full((rows, width, 1), 255, np.uint8)], axis=-1)
    return np.ascontiguousarray(pixels)


def _skip_blocks(data: bytes, at: int) -> int:
    """Past the sub-blocks that start here."""
    while data[at]:
        at += 1 + data[at]
    return at + 1


def _gif_frames(data: bytes) -> list[tuple[int, int, Array, Array, int]]:
    """(top, left, colour indices, colours [n, 3], transparent index or -1) of each frame."""
    flags = data[10]
    at = 13
    colors = b""
    if flags & 0x80:
        size = 3 << ((flags & 7) + 1)
        colors = data[at : at + size]
        at += size
    frames: list[tuple[int, int, Array, Array, int]] = []
    pixels = 0
    transparent = -1
    while data[at] != 0x3B:
        if data[at] == 0x21:
            if data[at + 1] == 0xF9:
                transparent = data[at + 6] if data[at + 3] & 1 else -1
            at = _skip_blocks(data, at + 2)
            continue
        require(data[at] == 0x2C, "Invalid GIF data: an unknown block")
        left, top, width, height, own = struct.unpack_from("<HHHHB", data, at + 1)
        require(width > 0 and height > 0, "Invalid GIF data: a frame without pixels")
        pixels += width * height
        _check_pixels(pixels, 1, 1, len(data), "GIF")
        _check_pixels(1, 1, len(frames) + 1, len(data), "GIF")
        at += 10
        palette = colors
        if own & 0x80:
            size = 3 << ((own & 7) + 1)
            palette = data[at : at + size]
            at += size
        end = _skip_blocks(data, at + 1)
        # the frame as a file of its own, with grey for every index, so that Pillow gives the indices
        ramp = bytes(v for v in range(256) for _ in range(3))
        head = b"GIF89a" + struct.pack("<HHBBB", width, height, 0xF7, 0, 0) + ramp
        alone = head + b"," + struct.pack("<HHHHB", 0, 0, width, height, own & 0x40) + data[at:end] + b";"
        image = _open(alone, "GIF")
        _load(image, "GIF")
        colors_of = np.frombuffer(palette, np.uint8, len(palette) // 3 * 3).reshape(-1, 3)
        frames.append((top, left, np.asarray(image.convert("L")), colors_of, transparent))
        at, transparent = end, -1
    return frames


def read_gif(data: bytes) -> Array:
    """All frames; each is drawn over the one before, whatever its disposal says, as TensorFlow does.

    Raises:
        InvalidArgumentError: the data are damaged or end early.
    """
    pillow()
    try:
        width, height = struct.unpack_from("<HH", data, 6)
        _check_pixels(width, height, 1, len(data), "GIF")
        frames = _gif_frames(data)
    except (IndexError, struct.error):
        raise InvalidArgumentError(f"Invalid GIF data, size {len(data)}: it ends early") from None
    require(frames, "Invalid GIF data: it has no frames")
    _check_pixels(width, height, len(frames), len(data), "GIF")
    out = np.zeros((len(frames), height, width, 3), np.uint8)
    for number, (top, left, indices, colors, transparent) in enumerate(frames):
        if number:
            out[number] = out[number - 1]
        target = out[number, top : top + indices.shape[0], left : left + indices.shape[1]]
        seen = indices[: target.shape[0], : target.shape[1]]
        require(seen.size == 0 or seen.max() < len(colors), "Invalid GIF data: a colour is not in the table")
        target[...] = np.where((seen != transparent)[..., None], colors[seen], target)
    return out


def read_webp(data: bytes, channels: int) -> Array:
    """uint8 [frames, height, width, 3 or 4]; `channels` 0 takes what the file has.

    Raises:
        InvalidArgumentError: the file is damaged, or has another number of channels.
    """
    image = _open(data, "WEBP")
    frames: list[Array] = []
    for number in range(getattr(image, "n_frames", 1)):
        try:
            image.seek(number)
        except Exception as error:  # as above
            raise InvalidArgumentError(f"Invalid WEBP data: {error}") from None
        _load(image, "WEBP")
        frames.append(np.asarray(image))
    has = frames[0].shape[-1]
    require(channels in (0, has), f"Number of channels requested does not match input: {channels}, it has {has}")
    return np.stack(frames)
