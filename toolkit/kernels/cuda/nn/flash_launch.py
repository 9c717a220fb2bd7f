"""Which kernel takes an attention, and with what numbers it is launched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolkit.kernels.cuda.nn.attention_tiles import TileFormat
from toolkit.kernels.cuda.nn.common import index_type_of, llvm_type
from toolkit.kernels.cuda.nn.flash_attention import FlashShape, flash_kernel
from toolkit.kernels.cuda.simt.matrix import ROWS

#: numbers of a query and of a value: with more, sums and queries do not fit into registers; fewer would be filled up
#: with zeros
LEAST_SIZE, MOST_SIZE = 16, 128
#: with at most so many, a warp has twice 16 rows: what it reads of keys and values is used twice. Where numbers are
#: loaded one by one, their places take the registers that this needs (24 bytes of them were in memory on sm_100)
_TWICE = 64
#: keys of a tile, by the type of numbers and by whether warps have twice 16 rows: more would not fit into registers
_KEYS = {
    ("float", True): 32, ("float", False): 32, ("half", True): 32, ("half", False): 64, ("bfloat", True): 32,
    ("bfloat", False): 64,
}  # fmt: skip
_WARPS = 4
_ALIGNED = 16  # bytes that are loaded at once

#: elements from one place of an axis to the next: batch, heads, rows, columns
_Strides = Sequence[int]


def takes_sizes(dtype: str, size: int, value_size: int, *, tf32: bool) -> bool:
    """Whether there is a kernel.

    Args:
        dtype: NumPy's name of the type of queries, keys and values.
        size, value_size: numbers of a query, and of a value.
        tf32: float32 may be multiplied as TF32; there is no kernel that does it exactly.
    """
    fits = all(LEAST_SIZE <= each <= MOST_SIZE for each in (size, value_size))
    return fits and (dtype in ("float16", "bfloat16") or (dtype == "float32" and tf32))


def flash_shape(
    arrays: Sequence[Any], sizes: Sequence[int], strides: Sequence[_Strides], *, mask: Any = None,
    mask_strides: _Strides | None = None, causal: bool = False, keeps: bool = False,
    processors: int = 1,
) -> FlashShape:  # fmt: skip
    """The kernel that takes these; see `launch_flash`.

    Args:
        processors: multiprocessors of the GPU. Where blocks of twice as many rows would leave some of them without the
            two blocks that have room there, blocks are smaller.
    """
    batch, heads, rows, keys, size, value_size = sizes
    number = llvm_type(arrays[0].dtype)
    format = TileFormat(number, joined=True)
    shapes = ((batch, heads, rows), (batch, heads, keys), (batch, heads, keys), (batch, heads, rows))
    joined = size % format.vector == 0 and value_size % format.vector == 0 and all(
        array.address % _ALIGNED == 0 and _in_steps(own, shape, format.vector)
        for array, own, shape in zip(arrays[:3], strides[:3], shapes[:3], strict=True)
    )  # fmt: skip
    out = arrays[3]
    pairs = value_size % 2 == 0 and out.address % (2 * out.dtype.itemsize) == 0 and _in_steps(strides[3], shapes[3], 2)
    large = batch * heads * -(-rows // (2 * _WARPS * ROWS))
    twice = joined and max(size, value_size) <= _TWICE and rows > _WARPS * ROWS and large >= 2 * processors
    extents = [
        _extent((*shape, columns), own)
        for shape, columns, own in zip(shapes, (size, size, value_size, value_size), strides, strict=True)
    ]
    if mask_strides is not None:
        extents.append(_extent((batch, heads, rows, keys), mask_strides))
    return FlashShape(
        format if joined else TileFormat(number, joined=False), llvm_type(out.dtype), size, value_size,
        _KEYS[number, twice], _WARPS, 2 if twice else 1, pairs,
        "" if mask is None else llvm_type(mask.dtype), mask_strides is not None and mask_strides[2] != 0, causal,
        keeps, index_type_of(max(extents)),
    )  # fmt: skip


def launch_flash(
    device: Any, arrays: Sequence[Any], sizes: Sequence[int], strides: Sequence[_Strides], scale: float, *,
    mask: Any = None, mask_strides: _Strides | None = None, causal: bool = False, statistics: Any = None,
) -> None:  # fmt: skip
    """out = softmax(scale * q k' + mask) v for each of batch and heads, on the device's compute stream.

    Args:
        arrays: q, k, v and out, float32, float16 or bfloat16; the first three of one type.
        sizes: batch, heads, rows (queries), keys, numbers of a query, numbers of a value; all above 0.
        strides: of the four arrays, in elements.
        mask: floats, added to the scores; with `mask_strides`, of batch, heads, rows and keys, which may be 0.
        causal: row i takes keys 0 to i only.
        statistics: float32 [batch, heads, rows]; the logarithms of the sums of scores' exponentials are written there.
    """
    shape = flash_shape(
        arrays, sizes, strides, mask=mask, mask_strides=mask_strides, causal=causal, keeps=statistics is not None,
        processors=device.properties.multiprocessors,
    )  # fmt: skip
    batch, heads, rows, keys = sizes[:4]
    steps = (*[shape.format.vector] * 3, 2 if shape.pairs else 1)
    given = [
        number for own, step in zip(strides, steps, strict=True)
        for number in (*(each // step for each in own[:3]), own[3])
    ]  # fmt: skip
    buffers = [*arrays, *(each for each in (mask, statistics) if each is not None)]
    device.launch(
        flash_kernel(shape), batch * heads * -(-rows // shape.rows), *buffers, heads, rows, keys, scale, *given,
        *(mask_strides or ()),
    )  # fmt: skip


def _in_steps(strides: _Strides, sizes: Sequence[int], step: int) -> bool:
    """Whether numbers of a row lie one behind the other, and rows begin at multiples."""
    return strides[3] == 1 and all(own % step == 0 for own, size in zip(strides[:3], sizes, strict=True) if size > 1)


def _extent(sizes: Sequence[int], strides: _Strides) -> int:
    """Elements from the first to the last."""
    return 1 + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
