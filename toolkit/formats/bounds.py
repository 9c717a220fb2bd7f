"""What a file may ask for. Sizes, counts, nesting and expansion are checked here before memory is taken for them.

A bound is relative to the bytes that are there wherever it can be: n entries of at least k bytes each cannot be more
than size / k, so that any file that is what it says passes, however large. The few that are absolute are far above
what anybody writes, and say why they are there.

| bound | value | why this much |
|---|---|---|
| INFLATE_FREE, INFLATE_RATIO | 64 MiB, or 100 times the compressed bytes | deflate packs text 5 to 30 times |
| DEFLATE_LIMIT | 1,032 | what deflate packs at most: a file that claims more lies |
| REPEATED | 2 GiB | a tensor whose last value repeats: what the message could hold with all values written |
| RANK | 64 | NumPy's limit of dimensions; TensorFlow's kernels go to 8 |
| ELEMENTS | 2^63 - 1 | what TensorFlow counts elements with |
| KEY_RATIO | 32 times a block's bytes | keys of a table share prefixes for 16 entries, then one stands whole |
| DATA_FILES | 99,999 | names of data files have five digits |
| DEVICES | 65,536 in a cluster | several times the largest machine that there is |
| NESTING | 100 levels of YAML | readers are recursive; protobuf allows 100 too |
| YAML_NODES, YAML_RATIO | 100,000, or 10 times the text's characters | what aliases may stand for in all |
| DIGITS | 4,300 in a number | Python's own limit; reading takes the square of it |
| PIXELS | 2^29 in an image, its frames together | TensorFlow's limit |
| FRAMES | 10,000 in an image | a quarter of an hour at ten a second |
| TAR_MEMBERS | 100,000 | a model has dozens of files; every member costs an entry of the disk's table |
| TAR_HEADER | 64 KiB | of an extended header, which holds a path |
| TAR_DEPTH | 64 folders in folders | a model has five |
| TAR_DIGITS | 20 in a size | more than a file can have bytes |
| TAR_LEFT_FREE | 256 MiB | of the disk on which an archive is unpacked, for everybody else |
| FREE_PIXELS | 16 megapixels | 64 MB: any image may have so many |
| PIXELS_PER_BYTE | 8,256, of larger images | a PNG of one bit a pixel, packed to the limit |
"""

from __future__ import annotations

from collections.abc import Iterable

from toolkit.errors import FormatError

INFLATE_FREE = 64 << 20
INFLATE_RATIO = 100
DEFLATE_LIMIT = 1032
REPEATED = (1 << 31) - 1
RANK = 64
ELEMENTS = (1 << 63) - 1
KEY_RATIO = 32
DATA_FILES = 99_999
DEVICES = 1 << 16
NESTING = 100
YAML_NODES = 100_000
YAML_RATIO = 10
DIGITS = 4300
PIXELS = 1 << 29
FRAMES = 10_000
TAR_MEMBERS = 100_000
TAR_HEADER = 64 << 10
TAR_DEPTH = 64
TAR_DIGITS = 20
TAR_LEFT_FREE = 256 << 20
FREE_PIXELS = 1 << 24
PIXELS_PER_BYTE = 8256


def inflated(compressed: int) -> int:
    """How many bytes that many compressed ones may become."""
    return max(INFLATE_FREE, INFLATE_RATIO * compressed)


def elements(dims: Iterable[int], itemsize: int = 1) -> int:
    """The number of elements of a tensor.

    Args:
        itemsize: bytes of an element (0, of strings, counts as 1).

    Raises:
        FormatError: a size is negative, there are too many dimensions, or its bytes cannot be counted: NumPy
            multiplies the sizes other than 0, whatever the product is.
    """
    count = around = 1
    for rank, size in enumerate(dims):
        if size < 0:
            raise FormatError(f"a dimension has the size {size}")
        count *= size
        around *= size or 1
        if rank >= RANK:
            raise FormatError(f"it has more than {RANK} dimensions")
        if around * (itemsize or 1) > ELEMENTS:
            raise FormatError("its sizes multiply to more than 2^63 bytes")
    return count


def check_pixels(width: int, height: int, frames: int, size: int) -> None:
    """Refuse an image whose header announces more than its data can hold.

    Args:
        size: bytes of the file.

    Raises:
        FormatError: it is too large, for its data or at all.
    """
    if frames > FRAMES:
        raise FormatError(f"it has more than {FRAMES:,} frames")
    pixels = width * height * frames
    if pixels > PIXELS:
        raise FormatError(f"{width} x {height} pixels in {frames} frame(s) are over the limit of {PIXELS:,}")
    if pixels > max(FREE_PIXELS, PIXELS_PER_BYTE * size):
        raise FormatError(f"{width} x {height} pixels in {frames} frame(s) cannot come from {size:,} bytes")
