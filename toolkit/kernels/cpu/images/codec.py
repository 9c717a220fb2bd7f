"""Decode and encode ops of image files; the formats are in `image_files` and `image_png`."""

from __future__ import annotations

import io
import struct
from typing import Any

from toolkit.errors import InvalidArgumentError
from toolkit.kernels.cpu.common import np, require, require_scalar, shape_text, to_ints
from toolkit.kernels.cpu.images.files import (
    jpeg_shape,
    kind_of,
    pillow,
    read_bmp,
    read_gif,
    read_jpeg,
    read_png,
    read_webp,
)
from toolkit.kernels.registry import INDEX, Compute, KernelNode, kernel
from toolkit.kernels.types import Array

_XMP = b"http://ns.adobe.com/xap/1.0/\0"


def _bytes(contents: Array) -> bytes:
    require(np.ndim(contents) == 0, f"`contents` must be scalar but got shape {shape_text(contents)}")
    return np.asarray(contents).item()


def _converted(pixels: Array, dtype: Any) -> Array:
    """uint8 samples in the type of the op: times 256 for uint16, over 255 for floats."""
    if dtype == np.uint16:
        return pixels.astype(np.uint16) * np.uint16(256)
    return pixels.astype(np.float32) * np.float32(1 / 255) if dtype == np.float32 else pixels


@kernel("DecodeBmp", "DecodeGif", "DecodeImage", "DecodeJpeg", "DecodePng")
def decode_image(op: KernelNode) -> Compute:
    """All read what the contents are, except that DecodeBmp alone, and it nothing else, reads BMP.

    GIFs are 4-D from DecodeGif and (unless told not to expand) DecodeImage; other ops take single frames.
    """
    name = op.op
    channels: int = op.attr("channels") if op.has("channels") else 0
    dtype = op.attr("dtype").numpy if "dtype" in op.node.op_def.attrs else np.dtype(np.uint8)
    expand = name == "DecodeGif" or (name == "DecodeImage" and op.attr("expand_animations"))
    require(channels in (0, 1, 3, 4), f"`channels` must be 0, 1, 3 or 4 but got {channels}")
    ratio: int = op.attr("ratio") if name == "DecodeJpeg" else 1
    require(ratio in (1, 2, 4, 8), f"ratio must be 1, 2, 4, or 8, got {ratio}")

    def frame(data: bytes, kind: str) -> Array:
        if kind == "PNG":
            wide = dtype != np.uint8
            pixels = read_png(data, channels, wide)
            return pixels.astype(np.float32) * np.float32(1 / 65535) if dtype == np.float32 else pixels
        if kind == "JPEG":
            require(channels != 4, "JPEG does not support 4 channels")
            return _converted(read_jpeg(data, channels, ratio), dtype)
        require(channels != 1, f"`channels` must be 0, 3 or 4 for BMP, but got {channels}")
        return _converted(read_bmp(data, channels), dtype)

    def compute(contents: Array) -> Array:
        data = _bytes(contents)
        kind = kind_of(data)
        if name != "DecodeImage" and (kind == "BMP") != (name == "DecodeBmp"):
            raise InvalidArgumentError(
                f"{name} does not decode {kind}; use `decode_{kind.lower()}` or `decode_image` instead"
            )
        if kind != "GIF":
            pixels = frame(data, kind)
            return pixels[None] if name == "DecodeGif" else pixels
        require(channels in (0, 3), f"channels must be 0 or 3 for GIF, got {channels}")
        frames = _converted(read_gif(data), dtype)
        if expand:
            return frames
        require(
            len(frames) == 1 or name == "DecodeImage",
            f"Got {len(frames)} frames, but animated gifs can only be decoded by tf.io.decode_gif or "
            "tf.io.decode_image",
        )
        return frames[0]

    return compute


@kernel("DecodeWebP")
def decode_webp(op: KernelNode) -> Compute:
    """All frames, uint8 [frames, height, width, channels]."""
    channels: int = op.attr("channels")
    require(channels in (0, 1, 3, 4), f"`channels` must be 0, 1, 3 or 4 but got {channels}")
    require(channels != 1, "WebP only supports 3 or 4 channels")

    def compute(contents: Array) -> Array:
        return read_webp(_bytes(contents), channels)

    return compute


@kernel("DecodeAndCropJpeg")
def decode_and_crop_jpeg(op: KernelNode) -> Compute:
    """The window is (y, x, height, width)."""
    channels: int = op.attr("channels")
    ratio: int = op.attr("ratio")
    require(channels in (0, 1, 3), f"channels must be 0, 1, or 3, got {channels}")
    require(ratio in (1, 2, 4, 8), f"ratio must be 1, 2, 4, or 8, got {ratio}")

    def compute(contents: Array, window: Array) -> Array:
        data = _bytes(contents)
        require(
            np.ndim(window) == 1 and np.size(window) == 4,
            f"crop_window must have 4 elements, got shape {shape_text(window)}",
        )
        y, x, height, width = to_ints(window)
        require(kind_of(data) == "JPEG", "Invalid JPEG data or crop window: this is no JPEG")
        pixels = read_jpeg(data, channels, ratio)
        require(
            0 <= y < y + height <= pixels.shape[0] and 0 <= x < x + width <= pixels.shape[1],
            f"Invalid JPEG data or crop window: {[y, x, height, width]} in an image of {list(pixels.shape[:2])}",
        )
        return np.ascontiguousarray(pixels[y : y + height, x : x + width])

    return compute


@kernel("ExtractJpegShape", types={"output_type": INDEX})
def extract_jpeg_shape(op: KernelNode) -> Compute:
    dtype = op.attr("output_type").numpy

    def compute(contents: Array) -> Array:
        return np.array(jpeg_shape(_bytes(contents)), dtype)

    return compute


def write_jpeg(image: Array, quality: int, *, progressive: bool = False, optimize: bool = False,
               downsample: bool = True, unit: str = "in", density: tuple[int, int] = (300, 300),
               xmp: bytes = b"") -> bytes:  # fmt: skip
    """uint8 [height, width, 1 or 3] as a JPEG (JFIF)."""
    Image = pillow()
    buffer = io.BytesIO()
    picture = Image.fromarray(np.ascontiguousarray(image[..., 0] if image.shape[-1] == 1 else image))
    # Pillow takes a quality of 0 for its default
    picture.save(buffer, "JPEG", quality=max(quality, 1), progressive=progressive, optimize=optimize,
                 subsampling=2 if downsample else 0, dpi=density)  # fmt: skip
    data = buffer.getvalue()
    start = data[:13] + bytes([1 if unit == "in" else 2]) + struct.pack(">HH", *density) + data[18:20]
    segment = b"\xff\xe1" + struct.pack(">H", len(_XMP) + len(xmp) + 2) + _XMP + xmp if xmp else b""
    return start + segment + data[20:]


def _check_jpeg(image: Array, quality: int) -> None:
    require(np.ndim(image) == 3, f"image must be 3-dimensional, got shape {shape_text(image)}")
    require(image.shape[2] in (1, 3), f"image must have 1 or 3 channels, got {shape_text(image)}")
    require(min(image.shape) > 0 and max(image.shape) < 65536, f"a JPEG cannot have shape {shape_text(image)}")
    require(0 <= quality <= 100, f"quality must be in range [0,100], got {quality}")


@kernel("EncodeJpeg")
def encode_jpeg(op: KernelNode) -> Compute:
    quality: int = op.attr("quality")
    kind, unit, xmp = op.text("format"), op.text("density_unit"), op.attr("xmp_metadata")
    density = (op.attr("x_density"), op.attr("y_density"))
    progressive, optimize = bool(op.attr("progressive")), bool(op.attr("optimize_size"))
    downsample = bool(op.attr("chroma_downsampling"))
    require(kind in ("", "grayscale", "rgb"), f"format must be '', 'grayscale' or 'rgb', got {kind}")
    require(unit in ("in", "cm"), f"density_unit must be 'in' or 'cm', got {unit}")

    def compute(image: Array) -> Array:
        _check_jpeg(image, quality)
        wanted = {"grayscale": 1, "rgb": 3}.get(kind, image.shape[2])
        require(image.shape[2] == wanted, f"image must have {wanted} channels for format '{kind}'")
        data = write_jpeg(image, quality, progressive=progressive, optimize=optimize, downsample=downsample,
                          unit=unit, density=density, xmp=xmp)  # fmt: skip
        return np.array(data, object)

    return compute


@kernel("EncodeJpegVariableQuality")
def encode_jpeg_variable_quality(op: KernelNode) -> Compute:
    def compute(image: Array, quality: Array) -> Array:
        require_scalar(quality, "quality")
        _check_jpeg(image, int(quality))
        return np.array(write_jpeg(image, int(quality)), object)

    return compute
