"""Reading and writing of image files against TensorFlow."""

from __future__ import annotations

import io
import struct
import sys
import zlib
from collections.abc import Iterator
from itertools import product
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.kernels.op_suite import SAME, Case, check, run_ours, run_tensorflow, suite
from toolkit.errors import UnimplementedError
from toolkit.kernels.cpu.images import png as image_png

pytestmark = pytest.mark.tensorflow

BAD = "INVALID_ARGUMENT"
ACCURATE = {"dct_method": "INTEGER_ACCURATE"}
#: TensorFlow's default is a faster transform, off by some levels; Pillow has the accurate one alone
FAST = 8


def data(value: bytes) -> Any:
    return np.array(value, object)


def saved(image: Any, kind: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def smooth(height: int, width: int, channels: int, dtype: Any = np.uint8) -> Any:
    """A picture with gradients and some noise."""
    y, x, c = np.mgrid[:height, :width, :channels]
    noise = np.random.default_rng(height * width).integers(0, 20, (height, width, channels))
    values = (y * 7 + x * 5 + c * 60 + noise) % 256
    return (values * 257 - noise if dtype == np.uint16 else values).astype(dtype)


ADAM7 = ((0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1))


def adam7(image: Any) -> bytes:
    """A 16-bit RGB image as an interlaced PNG without filters."""
    raw = b"".join(
        b"\0" + row.tobytes()
        for y, x, dy, dx in ADAM7
        for row in np.ascontiguousarray(image[y::dy, x::dx]).astype(">u2")
        if row.size
    )  # fmt: skip
    header = struct.pack(">IIBBBBB", image.shape[1], image.shape[0], 16, 2, 0, 0, 1)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(raw)), (b"IEND", b""))
    return image_png.SIGNATURE + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in parts
    )


RGB = smooth(13, 17, 3)
PICTURE = Image.fromarray(RGB)
PALETTE = PICTURE.quantize(8)
PNGS = {
    "rgb": saved(PICTURE, "PNG"),
    "rgba": saved(Image.fromarray(smooth(9, 5, 4)), "PNG"),
    "grey": saved(Image.fromarray(RGB[..., 0]), "PNG"),
    "grey-alpha": saved(Image.fromarray(RGB[..., :2], "LA"), "PNG"),
    "palette": saved(PALETTE, "PNG"),
    "palette-alpha": saved(PALETTE, "PNG", transparency=bytes([0, 100, 200, 255, 255, 255, 255, 255])),
    "one-bit": saved(Image.fromarray(RGB[..., 0] > 128), "PNG"),
    "rgb-key": saved(PICTURE, "PNG", transparency=tuple(RGB[0, 0].tolist())),
    "grey-key": saved(Image.fromarray(RGB[..., 0]), "PNG", transparency=int(RGB[0, 0, 0])),
    "grey16": image_png.encode(smooth(7, 11, 1, np.uint16), 6),
    "grey-alpha16": image_png.encode(smooth(7, 11, 2, np.uint16), 6),
    "rgb16": image_png.encode(smooth(7, 11, 3, np.uint16), 6),
    "rgba16": image_png.encode(smooth(7, 11, 4, np.uint16), 6),
    "rgb16-interlaced": adam7(smooth(11, 13, 3, np.uint16)),
    "rgb16-tiny": adam7(smooth(1, 2, 3, np.uint16)),
}
JPEGS = {
    "rgb": saved(PICTURE, "JPEG"),
    "rgb-444": saved(PICTURE, "JPEG", subsampling=0, quality=95),
    "progressive": saved(Image.fromarray(smooth(64, 48, 3)), "JPEG", progressive=True),
    "grey": saved(Image.fromarray(RGB[..., 0]), "JPEG"),
}
BMPS = {
    "rgb": saved(PICTURE, "BMP"),
    "rgba": saved(Image.fromarray(smooth(9, 5, 4)), "BMP"),
    "grey": saved(Image.fromarray(RGB[..., 0]), "BMP"),
    "one-bit": saved(Image.fromarray(RGB[..., 0] > 128), "BMP"),
}
FRAMES = [Image.fromarray(smooth(13, 17, 3) // np.uint8(n + 1)) for n in range(3)]
MOVING = [PICTURE.copy() for _ in range(3)]
for n, picture in enumerate(MOVING):
    picture.paste((255, 10 * n, 0), (2 + 3 * n, 3, 6 + 3 * n, 8))
GIFS = {
    "single": saved(PICTURE, "GIF"),
    "frames": saved(FRAMES[0], "GIF", save_all=True, append_images=FRAMES[1:]),
    "moving": saved(MOVING[0], "GIF", save_all=True, append_images=MOVING[1:]),
    "interlaced": saved(PICTURE, "GIF", interlace=1),
}


def cases() -> Iterator[Case]:
    for (name, png), channels, dtype in product(PNGS.items(), (0, 1, 3, 4), ("uint8", "uint16")):
        yield Case("DecodePng", [data(png)], {"channels": channels, "dtype": dtype}, id=f"{name}-{channels}-{dtype}")
    for name, png in PNGS.items():
        for dtype in ("uint8", "uint16", "float32"):
            yield Case("DecodeImage", [data(png)], {"dtype": dtype}, id=f"png-{name}-{dtype}")
    for name, jpeg in JPEGS.items():
        for channels, ratio in product((0, 1, 3), (1, 2, 4, 8)):
            attrs = {"channels": channels, "ratio": ratio}
            tag = f"{name}-{channels}-{ratio}"
            yield Case("DecodeJpeg", [data(jpeg)], attrs | ACCURATE, id=f"{tag}-accurate")
            yield Case("DecodeJpeg", [data(jpeg)], attrs, id=tag, levels=FAST)
        window = np.int32([2, 3, 8, 10])
        yield Case("DecodeAndCropJpeg", [data(jpeg), window], ACCURATE, id=name)
        yield Case("DecodeAndCropJpeg", [data(jpeg), window // 2], {"channels": 1, "ratio": 2} | ACCURATE,
                   id=f"{name}-half")  # fmt: skip
        for output in ("int32", "int64"):
            yield Case("ExtractJpegShape", [data(jpeg)], {"output_type": output}, id=f"{name}-{output}")
    for name, bmp in BMPS.items():
        for channels in (0, 1, 3, 4):
            for op in ("DecodeBmp", "DecodeImage"):
                yield Case(op, [data(bmp)], {"channels": channels}, error=SAME, id=f"bmp-{name}-{channels}")
    for name, gif in GIFS.items():
        yield Case("DecodeGif", [data(gif)], id=name)
        for expand, channels in product((True, False), (0, 3)):
            attrs = {"expand_animations": expand, "channels": channels}
            yield Case("DecodeImage", [data(gif)], attrs, id=f"gif-{name}-{expand}-{channels}")
        for op in ("DecodePng", "DecodeJpeg", "DecodeBmp"):
            yield Case(op, [data(gif)], error=SAME, id=f"gif-{name}")
    files = {"png": PNGS["rgb"], "jpeg": JPEGS["rgb"], "bmp": BMPS["rgb"], "gif": GIFS["single"], "junk": b"no picture",
             "empty": b"", "short": b"BM"}  # fmt: skip
    for (name, content), op in product(
        files.items(), ("DecodePng", "DecodeJpeg", "DecodeBmp", "DecodeGif", "DecodeImage", "ExtractJpegShape")
    ):
        if (name, op) != ("empty", "ExtractJpegShape"):
            yield Case(op, [data(content)], error=SAME, id=f"file-{name}", levels=FAST if name == "jpeg" else 0)
        if op == "DecodeImage":
            for dtype in ("uint16", "float32"):
                unit = 256 if dtype == "uint16" else 1 / 255
                yield Case(op, [data(content)], {"dtype": dtype}, error=SAME, id=f"file-{name}-{dtype}",
                           levels=FAST * unit if name == "jpeg" else 0)  # fmt: skip
            for channels in (1, 2, 4):
                yield Case(op, [data(content)], {"channels": channels}, error=SAME, id=f"file-{name}-{channels}",
                           levels=FAST if name == "jpeg" else 0)  # fmt: skip
    damaged = bytearray(PNGS["rgb"])
    damaged[60] ^= 0xFF
    for name, content in (
        ("png-cut", PNGS["rgb"][:60]), ("png-damaged", bytes(damaged)), ("png16-cut", PNGS["rgb16"][:90]),
        ("jpeg-cut", JPEGS["rgb"][:-60]), ("gif-cut", GIFS["single"][:40]), ("bmp-cut", BMPS["rgb"][:-60]),
    ):  # fmt: skip
        yield Case("DecodeImage", [data(content)], error=BAD, id=name)
    yield Case("DecodeImage", [np.array([PNGS["rgb"]], object)], error=BAD, id="vector")
    yield Case("DecodeJpeg", [data(JPEGS["rgb"])], {"ratio": 3}, error=BAD, id="ratio")
    for window in ([0, 0, 14, 5], [-1, 0, 5, 5], [0, 0, 0, 5], [0, 0, 5]):
        yield Case("DecodeAndCropJpeg", [data(JPEGS["rgb"]), np.int32(window)], error=BAD, id=str(window))
    image = smooth(5, 6, 3)
    yield Case("EncodePng", [image[0]], error=BAD)
    yield Case("EncodePng", [smooth(5, 6, 5)], error=BAD)
    yield Case("EncodePng", [image], {"compression": 10}, error=BAD)
    yield Case("EncodeJpeg", [image[0]], error=BAD)
    yield Case("EncodeJpeg", [smooth(5, 6, 2)], error=BAD)
    yield Case("EncodeJpeg", [image], {"quality": 101}, error=BAD)
    yield Case("EncodeJpeg", [image], {"format": "grayscale"}, error=BAD)
    yield Case("EncodeJpeg", [image], {"format": "cmyk"}, error=BAD)
    yield Case("EncodeJpeg", [image], {"density_unit": "mm"}, error=BAD)
    yield Case("EncodeJpegVariableQuality", [image, np.int32(101)], error=BAD)
    yield Case("EncodeJpegVariableQuality", [image, np.int32([50])], error=BAD)


CASES = list(cases())


def webp() -> Iterator[Case]:
    for channels, options in product((3, 4), ({"lossless": True, "exact": True}, {"quality": 60})):
        contents = saved(Image.fromarray(smooth(9, 13, channels)), "WEBP", **options)
        for wanted in (0, 1, 2, 3, 4):
            case = f"{channels}{'-'.join(options)}-{wanted}"
            error = None if wanted in (0, channels) else BAD
            yield Case("DecodeWebP", [data(contents)], {"channels": wanted}, error=error, id=case)
    for name, bad in (
        ("empty", b""),
        ("head", b"RIFF0000WEBPxx"),
        ("junk", b"hello world, what is this?"),
        ("cut", contents[:40]),
    ):
        yield Case("DecodeWebP", [data(bad)], error=BAD, id=name)
    yield Case("DecodeWebP", [np.array([contents], object)], error=BAD, id="vector")


@suite(list(webp()))
def test_webp(case: Case, device: str, tf: ModuleType) -> None:
    check(case, device)


def test_animated_webp() -> None:
    """Every frame; TensorFlow 2.21 dies of such a file."""
    frames = [smooth(5, 6, 3), 255 - smooth(5, 6, 3)]
    first, *rest = (Image.fromarray(frame) for frame in frames)
    contents = saved(first, "WEBP", save_all=True, append_images=rest, lossless=True)
    (out,) = run_ours(Case("DecodeWebP", [data(contents)]))
    np.testing.assert_array_equal(out[..., :3], np.stack(frames))


@suite(CASES)
def test_image_files(case: Case, device: str, tf: ModuleType) -> None:
    check(case, device)


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("compression", [-1, 0, 9])
def test_encode_png(channels: int, dtype: Any, compression: int, tf: ModuleType) -> None:
    """TensorFlow reads what we wrote; the bytes themselves may differ in the choice of filters."""
    image = smooth(11, 8, channels, dtype)
    (png,) = run_ours(Case("EncodePng", [image], {"compression": compression}))
    assert np.array_equal(tf.io.decode_png(png.item(), dtype=image.dtype).numpy(), image)


def test_encode_png_of_a_batch(tf: ModuleType) -> None:
    images = np.stack([smooth(4, 5, 3), smooth(4, 5, 3) // np.uint8(2)] * 3).reshape(3, 2, 4, 5, 3)
    (ours,) = run_ours(Case("EncodePng", [images]))
    assert ours.shape == (3, 2)
    assert np.array_equal(tf.io.decode_png(ours[1, 1]).numpy(), images[1, 1])


JPEG_ATTRS = [
    {}, {"quality": 0}, {"quality": 30}, {"quality": 100}, {"progressive": True}, {"optimize_size": True},
    {"chroma_downsampling": False}, {"density_unit": "cm", "x_density": 7, "y_density": 1000},
    {"xmp_metadata": "<x/>"}, {"format": "rgb"},
]  # fmt: skip


@pytest.mark.parametrize("attrs", JPEG_ATTRS, ids=str)
def test_encode_jpeg(attrs: dict[str, Any], tf: ModuleType) -> None:
    case = Case("EncodeJpeg", [smooth(33, 20, 3)], attrs)
    (ours,), (theirs,) = run_ours(case), run_tensorflow(case)
    pixels = [tf.io.decode_jpeg(file.item()).numpy().astype(int) for file in (ours, theirs)]
    # two builds of libjpeg may round a coefficient differently
    assert abs(pixels[0] - pixels[1]).max() <= 2
    assert ours.item()[:20] == theirs.item()[:20], "the JFIF header, density included"
    assert (b"<x/>" in ours.item()) == ("xmp_metadata" in attrs)


def test_encode_grey_jpeg(tf: ModuleType) -> None:
    for case in (
        Case("EncodeJpeg", [smooth(33, 20, 1)]),
        Case("EncodeJpegVariableQuality", [smooth(33, 20, 3), np.int32(40)]),
    ):
        (ours,), (theirs,) = run_ours(case), run_tensorflow(case)
        pixels = [tf.io.decode_jpeg(file.item()).numpy().astype(int) for file in (ours, theirs)]
        assert pixels[0].shape == pixels[1].shape
        assert abs(pixels[0] - pixels[1]).max() <= 2


def test_without_pillow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(UnimplementedError, match=r"graphmill\[image\]"):
        run_ours(Case("DecodeJpeg", [data(JPEGS["rgb"])]))
    assert run_ours(Case("DecodeBmp", [data(BMPS["rgb"])]))[0].shape == RGB.shape
