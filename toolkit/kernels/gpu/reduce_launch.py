"""Which kernels reduce an array over which of its dimensions, and their launches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from toolkit.kernels.cuda.device import CudaDevice
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.gpu.number_types import index_type, vector_of
from toolkit.kernels.gpu.reduce_kernels import (
    BLOCK,
    WARP,
    GpuReduction,
    Stage,
    columns_by_tiles,
    rows_by_blocks,
    rows_by_lanes,
)

#: columns up to which a warp takes a row: 32 numbers for each of its lanes
_WARP_COLUMNS = 1024
#: numbers that a chunk has at least: less is done before a second launch would have begun
_CHUNK = 4096
#: blocks of 256 threads that a multiprocessor holds at once; more chunks than fill the GPU bring nothing
_RESIDENT = 8
_STATES = {"float": np.float32, "double": np.float64, "i32": np.int32, "i64": np.int64}


def collapse(shape: Sequence[int], axes: Sequence[int]) -> list[tuple[int, bool]]:
    """Sizes of runs of dimensions that are all reduced, or all kept, without dimensions of size 1.

    >>> collapse([2, 3, 1, 4, 5], [1, 2])
    [(2, False), (3, True), (20, False)]
    """
    found: list[tuple[int, bool]] = []
    for axis, size in enumerate(shape):
        reduced = axis in axes
        if size == 1:
            continue
        if found and found[-1][1] is reduced:
            found[-1] = (found[-1][0] * size, reduced)
        else:
            found.append((size, reduced))
    return found


def reduce_array(
    device: CudaDevice, reduction: GpuReduction, x: GpuArray, runs: Sequence[tuple[int, bool]], shape: Sequence[int],
    dtype: Any, extras: Sequence[Any] = (),
) -> GpuArray:  # fmt: skip
    """Reduce an array.

    Args:
        runs: its dimensions, as `collapse` has them.
        shape, dtype: of the result.
        extras: what the reduction's `arguments` stand for.
    """
    made = device.empty(shape, dtype)
    if not math.prod(shape):
        return made
    runs = list(runs)
    if not any(reduced for _, reduced in runs):
        runs.append((1, True))
    count = math.prod(size for size, reduced in runs if reduced)
    left: Sequence[GpuArray] = [x]
    partial = False
    while True:
        at = max(i for i, (_, reduced) in enumerate(runs) if reduced)
        last = sum(reduced for _, reduced in runs) == 1
        sizes = [size for size, _ in runs]
        outer, rows, inner = math.prod(sizes[:at]), sizes[at], math.prod(sizes[at + 1 :])
        into = [made] if last else None
        left = _stage(device, reduction, left, (outer, rows, inner), into, partial, count, () if partial else extras)
        if last:
            return made
        partial = True
        del runs[at]


def _stage(
    device: CudaDevice, reduction: GpuReduction, source: Sequence[GpuArray], sizes: tuple[int, int, int],
    into: Sequence[GpuArray] | None, partial: bool, count: int, extras: Sequence[Any],
) -> Sequence[GpuArray]:  # fmt: skip
    """[outer, reduced, inner] to [outer, inner]: results where they are to go, else states."""
    outer, reduced, inner = sizes
    index = index_type(outer * reduced * inner)
    blocks, chunks, size = _cut(device, reduction, sizes, partial)
    last = into is not None and chunks == 1
    vector = 1 if inner > 1 or partial else vector_of(reduction.element, reduced, *source)
    stage = Stage(vector, index, partial, last)
    if into is None or chunks > 1:
        target: Sequence[GpuArray] = [device.empty((outer * inner * chunks,), _STATES[t]) for t in reduction.state]
    else:
        target = into
    columns, size = reduced // stage.vector, -(-size // stage.vector)
    if inner > 1:
        tile = column_tile(reduced, inner)
        tiles = -(-inner // tile)
        kernel = columns_by_tiles(reduction, tile, stage)
        device.launch(kernel, blocks, *source, *extras, *target, reduced, inner, tiles, size, chunks, count)
    elif reduced <= _WARP_COLUMNS and chunks == 1:
        lanes = min(WARP, 1 << max(0, columns - 1).bit_length())
        kernel = rows_by_lanes(reduction, lanes, stage)
        device.launch(kernel, -(-outer * lanes // BLOCK), *source, *extras, *target, outer, columns, count)
    else:
        kernel = rows_by_blocks(reduction, stage)
        device.launch(kernel, blocks, *source, *extras, *target, columns, size, chunks, count)
    if chunks == 1:
        return target
    return _stage(device, reduction, target, (outer * inner, chunks, 1), into, True, count, ())


def column_tile(rows: int, columns: int) -> int:
    """How many columns a block takes: 32 or more where there are, and more the fewer rows its threads could share."""
    groups = min(BLOCK // WARP, 1 << max(0, -(-rows // 4) - 1).bit_length())
    return min(BLOCK // groups, 1 << max(0, columns - 1).bit_length())


def _cut(
    device: CudaDevice, reduction: GpuReduction, sizes: tuple[int, int, int], partial: bool
) -> tuple[int, int, int]:
    """Blocks, chunks for each row or tile of columns, and the size of a chunk."""
    outer, reduced, inner = sizes
    if inner > 1:
        tile = column_tile(reduced, inner)
        blocks, least = outer * -(-inner // tile), max(1, _CHUNK // tile)
    else:
        blocks, least = outer, _CHUNK
    wanted = device.properties.multiprocessors * _RESIDENT // max(1, blocks)
    chunks = 1 if partial else max(1, min(reduced // least, wanted))
    unit = reduction.element.vector
    size = -(-max(1, -(-reduced // chunks)) // unit) * unit  # whole vectors
    chunks = max(1, -(-reduced // size))
    return blocks * chunks, chunks, size
