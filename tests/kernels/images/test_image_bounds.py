"""Pictures whose headers announce more than their bytes can hold: a status, and no memory taken."""

from __future__ import annotations

import io
import resource
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from toolkit.errors import InvalidArgumentError
from toolkit.formats import bounds
from toolkit.kernels.cpu.images import files as image_files
from toolkit.kernels.cpu.images import png as image_png
from toolkit.kernels.encodings import wav


@pytest.fixture(autouse=True)
def little_memory() -> Iterator[None]:
    """Two gigabytes more than there are: what takes memory before it checks fails here, not the machine."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + (2 << 30), hard))
    yield
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def png(width: int, height: int, *chunks: tuple[bytes, bytes], depth: int = 16, interlaced: int = 0) -> bytes:
    header = struct.pack(">IIBBBBB", width, height, depth, 0, 0, 0, interlaced)
    out = image_png.SIGNATURE
    for kind, body in ((b"IHDR", header), *chunks, (b"IEND", b"")):
        out += struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
    return out


@pytest.mark.parametrize("interlaced", [0, 1])
@pytest.mark.parametrize("depth", [8, 16])
@pytest.mark.parametrize(("width", "height"), [(2**31 - 1, 2**31 - 1), (60_000, 60_000), (1, 2**31 - 1), (0, 1)])
def test_png(width: int, height: int, depth: int, interlaced: int) -> None:
    data = png(width, height, (b"IDAT", zlib.compress(bytes(20))), depth=depth, interlaced=interlaced)
    with pytest.raises(InvalidArgumentError):
        image_files.read_png(data, 0, wide=True)


def test_png_of_a_size_that_its_data_have() -> None:
    lines = (b"\0" + bytes(range(8))) * 3
    found = image_files.read_png(png(4, 3, (b"IDAT", zlib.compress(lines))), 0, wide=True)
    assert found.shape == (3, 4, 1) and found[1, :, 0].tolist() == [1, 0x203, 0x405, 0x607]
    ended = png(4, 3, (b"IDAT", zlib.compress(lines + bytes(1 << 26))))  # what follows the pixels is not looked at
    assert np.array_equal(image_files.read_png(ended, 0, wide=True), found)


def test_png_whose_transparent_colour_is_cut() -> None:
    found = image_files.read_png(png(1, 1, (b"tRNS", b"\0"), (b"IDAT", zlib.compress(bytes(3)))), 0, wide=True)
    assert found.shape == (1, 1, 1)


def gif(width: int, height: int, frames: int) -> bytes:
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(np.zeros((2, 2), np.uint8)).convert("P").save(file, "GIF")
    data = file.getvalue()
    start = data.index(b"\x2c")
    return data[:6] + struct.pack("<HH", width, height) + data[10:start] + data[start:-1] * frames + b";"


@pytest.mark.parametrize(("side", "frames"), [(65_535, 1), (4_096, 500)])
def test_gif(side: int, frames: int) -> None:
    assert image_files.read_gif(gif(2, 2, 3)).shape == (3, 2, 2, 3)
    with pytest.raises(InvalidArgumentError, match=r"pixels in \d+ frame\(s\) (cannot come from|are over)"):
        image_files.read_gif(gif(side, side, frames))


def test_gif_of_endless_frames() -> None:
    with pytest.raises(InvalidArgumentError, match="it has more than 10 frames"), pytest.MonkeyPatch.context() as patch:
        patch.setattr(bounds, "FRAMES", 10)
        image_files.read_gif(gif(2, 2, 11))


def test_jpeg() -> None:
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(np.zeros((8, 8, 3), np.uint8)).save(file, "JPEG")
    data = file.getvalue()
    at = data.index(b"\xff\xc0") + 5
    with pytest.raises(InvalidArgumentError, match="pixels in 1 frame"):
        image_files.read_jpeg(data[:at] + b"\xff\xff\xff\xff" + data[at + 4 :], 0)


@pytest.mark.parametrize("height", [-(2**31), 2**31 - 1, 0])
def test_bmp(height: int) -> None:
    head = b"BM" + struct.pack("<IHHI", 60, 0, 0, 54) + struct.pack("<IiiHH", 40, 1, height, 1, 24)
    with pytest.raises(InvalidArgumentError):
        image_files.read_bmp(head.ljust(58, b"\0"), 0)


@pytest.mark.parametrize("at", range(4, 44, 2))
def test_wav(at: int) -> None:
    data = wav.encode(np.zeros((3, 2), np.float32), 8000)
    damaged = data[:at] + b"\xff\xff\xff\x7f" + data[at + 4 :]
    try:
        samples, _ = wav.decode(damaged)
    except InvalidArgumentError:
        return
    assert samples.size <= len(data)
