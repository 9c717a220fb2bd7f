"""Which kernels reduce an array over which of its dimensions, and their launches."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from toolkit.kernels.cuda.device import CudaDevice
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.simt.ir import SimtKernel
from toolkit.kernels.gpu.primitives.number_types import index_type, vector_of
from toolkit.kernels.gpu.reductions.kernels import (
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


@functools.lru_cache(4096)
def collapse(shape: tuple[int, ...], axes: tuple[int, ...]) -> Sequence[tuple[int, bool]]:
    """Sizes of runs of dimensions that are all reduced, or all kept, without dimensions of size 1.

    >>> collapse((2, 3, 1, 4, 5), (1, 2))
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
    _reduce(device, reduction, x, runs, made, extras)
    return made


def _reduce(
    device: CudaDevice, reduction: GpuReduction, x: GpuArray, runs: Sequence[tuple[int, bool]], made: GpuArray,
    extras: Sequence[Any],
) -> None:  # fmt: skip
    """One run of dimensions that are reduced after the other, from the last."""
    runs = list(runs)
    if not any(reduced for _, reduced in runs):
        runs.append((1, True))
    count = math.prod(size for size, reduced in runs if reduced)
    if not count:  # each result is that of no numbers, whatever the order of dimensions
        runs = [(math.prod(size for size, reduced in runs if not reduced), False), (0, True)]
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
            return
        partial = True
        del runs[at]


@dataclass(frozen=True, slots=True)
class _Launch:
    """What a stage launches.

    Attributes:
        numbers: behind the buffers.
        left: elements of each value of the states that it leaves; 0: it leaves results.
        chunks: of each row or column.
    """

    kernel: SimtKernel
    blocks: int
    numbers: tuple[int, ...]
    left: int
    chunks: int


def _stage(
    device: CudaDevice, reduction: GpuReduction, source: Sequence[GpuArray], sizes: tuple[int, int, int],
    into: Sequence[GpuArray] | None, partial: bool, count: int, extras: Sequence[Any],
) -> Sequence[GpuArray]:  # fmt: skip
    """[outer, reduced, inner] to [outer, inner]: results where they are to go, else states."""
    vector = 1
    if sizes[2] == 1 and not partial:
        read = [*source, *(each for each in extras if isinstance(each, GpuArray))]
        vector = vector_of(reduction.element, sizes[1], *read)
    processors = device.properties.multiprocessors
    plan = _planned(reduction, sizes, partial, into is not None, vector, count, processors)
    if plan.left:
        target: Sequence[GpuArray] = [device.empty((plan.left,), _STATES[type]) for type in reduction.state]
    else:
        assert into is not None
        target = into
    device.launch(plan.kernel, plan.blocks, *source, *extras, *target, *plan.numbers)
    if plan.chunks == 1:
        return target
    outer, _, inner = sizes
    return _stage(device, reduction, target, (outer * inner, plan.chunks, 1), into, True, count, ())


#: shapes of which launches are remembered; a model has some hundred
_KNOWN = 4096


@functools.lru_cache(_KNOWN)
def _planned(
    reduction: GpuReduction, sizes: tuple[int, int, int], partial: bool, last: bool, vector: int, count: int,
    processors: int,
) -> _Launch:  # fmt: skip
    """How a stage is launched.

    Args:
        last: it leaves results, if a row is not cut into chunks.
        vector: numbers of a row that are loaded at once.
        count: numbers that are reduced to one, in all stages.
        processors: of the GPU.
    """
    outer, reduced, inner = sizes
    blocks, chunks, size = _cut(reduction, sizes, partial, processors)
    last = last and chunks == 1
    stage = Stage(vector, index_type(outer * reduced * inner), partial, last)
    left = 0 if last else outer * inner * chunks
    columns, size = reduced // vector, -(-size // vector)
    if inner > 1:
        tile = column_tile(reduced, inner)
        kernel = columns_by_tiles(reduction, tile, stage)
        return _Launch(kernel, blocks, (reduced, inner, -(-inner // tile), size, chunks, count), left, chunks)
    if reduced <= _WARP_COLUMNS and chunks == 1:
        lanes = min(WARP, 1 << max(0, columns - 1).bit_length())
        kernel = rows_by_lanes(reduction, lanes, stage)
        return _Launch(kernel, -(-outer * lanes // BLOCK), (outer, columns, count), left, chunks)
    return _Launch(rows_by_blocks(reduction, stage), blocks, (columns, size, chunks, count), left, chunks)


def column_tile(rows: int, columns: int) -> int:
    """How many columns a block takes: 32 or more where there are, and more the fewer rows its threads could share."""
    groups = min(BLOCK // WARP, 1 << max(0, -(-rows // 4) - 1).bit_length())
    return min(BLOCK // groups, 1 << max(0, columns - 1).bit_length())


def _cut(reduction: GpuReduction, sizes: tuple[int, int, int], partial: bool, processors: int) -> tuple[int, int, int]:
    """Blocks, chunks for each row or tile of columns, and the size of a chunk."""
    outer, reduced, inner = sizes
    if inner > 1:
        tile = column_tile(reduced, inner)
        blocks, least = outer * -(-inner // tile), max(1, _CHUNK // tile)
    else:
        blocks, least = outer, _CHUNK
    wanted = processors * _RESIDENT // max(1, blocks)
    chunks = 1 if partial else max(1, min(reduced // least, wanted))
    unit = reduction.element.vector
    size = -(-max(1, -(-reduced // chunks)) // unit) * unit  # whole vectors
    chunks = max(1, -(-reduced // size))
    return blocks * chunks, chunks, size
