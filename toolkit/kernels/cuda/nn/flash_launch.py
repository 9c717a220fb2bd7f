"""Which kernel takes an attention, and with what numbers it is launched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from toolkit.kernels.cuda.nn.attention_memory import MaskShape, TileFormat
from toolkit.kernels.cuda.nn.common import index_type_of, llvm_type
from toolkit.kernels.cuda.nn.flash_attention import FlashShape, flash_kernel
from toolkit.kernels.cuda.simt.matrix import ROWS

#: numbers of a query and of a value: with more, sums and queries do not fit into registers; fewer would be filled up
#: with zeros
LEAST_SIZE, MOST_SIZE = 16, 256
#: with more, values are taken in two parts, each with a kernel's registers to itself, for which scores are computed
#: twice; queries of so many floats are read again for each tile. Sizes are multiples of `_PART` then
WHOLE_SIZE, _PART = 128, 16
#: with at most so many, a warp has twice 16 rows: what it reads of keys and values is used twice. Where numbers are
#: loaded one by one, their places take the registers that this needs (24 bytes of them were in memory on sm_100)
_TWICE = 64
#: keys of a tile, by the type of numbers and by whether warps have twice 16 rows: more would not fit into registers
_KEYS = {
    ("float", True): 32, ("float", False): 32, ("half", True): 32, ("half", False): 64, ("bfloat", True): 32,
    ("bfloat", False): 64,
}  # fmt: skip
_LONG_KEYS = 16
_WARPS = 4
_ALIGNED = 16  # bytes that are loaded at once

#: elements from one place of an axis to the next: batch, heads, rows, columns
Strides = Sequence[int]


def takes_sizes(dtype: str, size: int, value_size: int, *, tf32: bool) -> bool:
    """Whether there is a kernel.

    Args:
        dtype: NumPy's name of the type of queries, keys and values.
        size, value_size: numbers of a query, and of a value.
        tf32: float32 may be multiplied as TF32; there is no kernel that does it exactly.
    """
    fits = all(
        LEAST_SIZE <= each <= MOST_SIZE and (each <= WHOLE_SIZE or each % _PART == 0) for each in (size, value_size)
    )
    return fits and (dtype in ("float16", "bfloat16") or (dtype == "float32" and tf32))


@dataclass(frozen=True)
class FlashMasks:
    """What an attention takes besides, with strides of batch, heads, rows and keys, which may be 0.

    Attributes:
        mask, bias: floats that are added to scores; of `chosen`, the mask is in the place of scores where it is not 0.
        keep: floats, or conditions, with which shares are multiplied behind the softmax, and with `kept_scale`.
        group: heads that follow each other and have the same keys and values.
    """

    mask: Any = None
    mask_strides: Strides | None = None
    bias: Any = None
    bias_strides: Strides | None = None
    keep: Any = None
    keep_strides: Strides | None = None
    chosen: bool = False
    kept_scale: float = 1.0
    group: int = 1

    @property
    def arrays(self) -> list[Any]:
        return [each for each in (self.mask, self.bias, self.keep) if each is not None]

    @property
    def strides(self) -> list[Strides]:
        return [each for each in (self.mask_strides, self.bias_strides, self.keep_strides) if each is not None]

    @property
    def numbers(self) -> list[float]:
        """What kernels are launched with, last."""
        found: list[float] = [number for each in self.strides for number in each]
        found += [self.kept_scale] if self.keep is not None else []
        return found + ([self.group] if self.group > 1 else [])

    @property
    def shape(self) -> MaskShape:
        """What kernels are made for."""
        pairs = ((self.mask, self.mask_strides), (self.bias, self.bias_strides), (self.keep, self.keep_strides))
        types = ["" if array is None else llvm_type(array.dtype) for array, _ in pairs]
        rows = [own is not None and own[2] != 0 for _, own in pairs]
        return MaskShape(types[0], types[1], types[2], (rows[0], rows[1], rows[2]), self.chosen, self.group > 1)


_NOTHING = FlashMasks()


def flash_shape(
    arrays: Sequence[Any], sizes: Sequence[int], strides: Sequence[Strides], *, beside: FlashMasks = _NOTHING,
    causal: bool = False, keeps: int = 0, processors: int = 1,
) -> FlashShape:  # fmt: skip
    """The kernel that takes these; see `launch_flash`.

    Args:
        processors: multiprocessors of the GPU. Where blocks of twice as many rows would leave some of them without the
            two blocks that have room there, blocks are smaller.
    """
    batch, heads, rows, keys, size, value_size = sizes
    number = llvm_type(arrays[0].dtype)
    format = TileFormat(number, joined=True)
    groups = heads // beside.group
    shapes = (
        (batch, heads, rows, size), (batch, groups, keys, size), (batch, groups, keys, value_size),
        (batch, heads, rows, value_size),
    )  # fmt: skip
    joined = is_aligned(arrays[:3], strides[:3], shapes[:3], format.vector)
    out = arrays[3]
    pairs = lies_in_pairs(out, strides[3], shapes[3])
    large = batch * heads * -(-rows // (2 * _WARPS * ROWS))
    twice = joined and max(size, value_size) <= _TWICE and rows > _WARPS * ROWS and large >= 2 * processors
    extents = [extent_of(shape, own) for shape, own in zip(shapes, strides, strict=True)]
    extents += [extent_of((batch, heads, rows, keys), own) for own in beside.strides]
    chunks, long = chunks_of(value_size), max(size, value_size) > WHOLE_SIZE
    return FlashShape(
        format if joined else TileFormat(number, joined=False), llvm_type(out.dtype), size, value_size // chunks,
        _LONG_KEYS if long else _KEYS[number, twice], _WARPS, 2 if twice else 1, pairs,
        beside.shape, causal, keeps, index_type_of(max(extents)), chunks, number != "float" or size <= WHOLE_SIZE,
    )  # fmt: skip


def launch_flash(
    device: Any, arrays: Sequence[Any], sizes: Sequence[int], strides: Sequence[Strides], scale: float, *,
    beside: FlashMasks = _NOTHING, causal: bool = False, statistics: Any = None, keeps: int = 0,
) -> None:  # fmt: skip
    """out = (keep * softmax(scale * q k' + mask + bias)) v for each of batch and heads, on the device's compute stream.

    Args:
        arrays: q, k, v and out, float32, float16 or bfloat16; the first three of one type.
        sizes: batch, heads, rows (queries), keys, numbers of a query, numbers of a value; all above 0.
        strides: of the four arrays, in elements.
        beside: masks and dropouts.
        causal: row i takes keys 0 to i only.
        statistics: float32, `keeps` numbers of each row are written there (`FlashShape.keeps`).
    """
    shape = flash_shape(
        arrays, sizes, strides, beside=beside, causal=causal, keeps=keeps,
        processors=device.properties.multiprocessors,
    )  # fmt: skip
    batch, heads, rows, keys = sizes[:4]
    steps = (*[shape.format.vector] * 3, 2 if shape.pairs else 1)
    given = [
        number for own, step in zip(strides, steps, strict=True)
        for number in (*(each // step for each in own[:3]), own[3])
    ]  # fmt: skip
    buffers = [*arrays, *beside.arrays, *([] if statistics is None else [statistics])]
    blocks = batch * heads * shape.chunks * -(-rows // shape.rows)
    device.launch(
        flash_kernel(shape), blocks, *buffers, heads, rows, keys, scale, *given, *beside.numbers
    )  # fmt: skip


def chunks_of(size: int) -> int:
    """In how many parts the numbers of a row are summed."""
    return 1 if size <= WHOLE_SIZE else 2


def is_aligned(arrays: Sequence[Any], strides: Sequence[Strides], shapes: Sequence[Sequence[int]], vector: int) -> bool:
    """Whether numbers of rows can be loaded sixteen bytes at once, which have so many numbers."""
    return all(
        array.address % _ALIGNED == 0 and shape[3] % vector == 0 and _in_steps(own, shape, vector)
        for array, own, shape in zip(arrays, strides, shapes, strict=True)
    )


def lies_in_pairs(array: Any, strides: Strides, shape: Sequence[int]) -> bool:
    """Whether numbers of rows can be stored two at once."""
    return shape[3] % 2 == 0 and array.address % (2 * array.dtype.itemsize) == 0 and _in_steps(strides, shape, 2)


def _in_steps(strides: Strides, sizes: Sequence[int], step: int) -> bool:
    """Whether numbers of a row lie one behind the other, and rows begin at multiples."""
    return strides[3] == 1 and all(
        own % step == 0 for own, size in zip(strides[:3], sizes[:3], strict=True) if size > 1
    )


def extent_of(sizes: Sequence[int], strides: Strides) -> int:
    """Elements from the first to the last."""
    return 1 + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
