"""Copies between parts of tensors, whatever their type: elements are words of 1, 2, 4 or 8 bytes.

There are two kernels. One has a thread for each element, which goes through the target in order. Where the source is
read across its rows, a transpose, a block reads a square tile along the rows of the source, and writes it along those
of the target from shared memory. Rows of the tile are one word of 32 bits longer, for else all threads of a warp would
ask the same bank.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from toolkit.kernels.cuda.device import CudaDevice
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import SimtKernel
from toolkit.kernels.gpu.primitives.indexing import BLOCK, Divisor, blocks_for, coordinates, divisors, index_type
from toolkit.kernels.gpu.primitives.layout import ElementLayout, Pair

#: the type of a word of so many bytes
WORDS = {1: "i8", 2: "i16", 4: "i32", 8: "i64"}
#: the side of a tile, by the bytes of an element: rows of 128 bytes are what a warp reads at once, and a tile of a
#: larger side would leave a multiprocessor too few blocks
_SIDES = {1: 64, 2: 64, 4: 32, 8: 32}
#: a tile that is used by a quarter or less is no faster than a thread for each element
_LEAST_TILED = 8
#: what libraries ask of the address of a tensor, in bytes; a part that lies otherwise is copied
ALIGNED = 16


@functools.cache
def _strided(width: int, rank: int, type: str) -> SimtKernel:
    """Element by element; `rank` dimensions."""
    k = KernelBuilder(f"copy{rank}_{WORDS[width]}", BLOCK)
    x, y = k.buffer("x", WORDS[width]), k.buffer("y", WORDS[width], written=True)
    n, source, target = k.scalar("n", type), k.scalar("source", type), k.scalar("target", type)
    steps = [(k.scalar(f"x_step{d}", type), k.scalar(f"y_step{d}", type)) for d in range(rank)]
    sizes = [Divisor.argument(k, f"size{d}", type) for d in range(1, rank)]
    i = k.global_thread(type)
    with k.when(k.compare("slt", i, n)):
        for at, (x_step, y_step) in zip(coordinates(k, i, sizes), steps, strict=True):
            source = k.add(source, k.mul(at, x_step))
            target = k.add(target, k.mul(at, y_step))
        k.store(y, target, k.load(x, source))
    return k.finish()


@functools.cache
def _tiled(width: int, batches: int, type: str) -> SimtKernel:
    """Tiles; x is dense along the rows of the tile, y along its columns, and there are `batches` dimensions more."""
    k = KernelBuilder(f"transpose{batches}_{WORDS[width]}", BLOCK)
    x, y = k.buffer("x", WORDS[width]), k.buffer("y", WORDS[width], written=True)
    across = _SIDES[width]
    pitch, lines = across + max(1, 4 // width), BLOCK // across
    tile = k.shared("tile", WORDS[width], across * pitch)
    source, target = k.scalar("source", type), k.scalar("target", type)
    rows, columns = k.scalar("rows", type), k.scalar("columns", type)
    x_step, y_step = k.scalar("x_step", type), k.scalar("y_step", type)
    steps = [(k.scalar(f"x_step{d}", type), k.scalar(f"y_step{d}", type)) for d in range(batches)]
    sizes = [Divisor.argument(k, f"size{d}", type) for d in range(1, batches + 2)]
    places = coordinates(k, k.convert(k.block_index, type), sizes)
    for at, (x_by, y_by) in zip(places, steps, strict=False):
        source = k.add(source, k.mul(at, x_by))
        target = k.add(target, k.mul(at, y_by))
    side = k.number(across, type)
    first_row, first_column = k.mul(places[-2], side), k.mul(places[-1], side)
    lane = k.both(k.thread, k.number(across - 1, "i32"))
    line = k.binary("lshr", k.thread, k.number(across.bit_length() - 1, "i32"))
    for start in range(0, across, lines):
        column = k.add(line, k.number(start, "i32"))
        a, b = k.add(first_row, k.convert(lane, type)), k.add(first_column, k.convert(column, type))
        with k.when(k.both(k.compare("slt", a, rows), k.compare("slt", b, columns))):
            value = k.load(x, k.add(source, k.add(a, k.mul(b, x_step))))
            k.store(tile, k.add(k.mul(column, k.number(pitch, "i32")), lane), value)
    k.barrier()
    for start in range(0, across, lines):
        row = k.add(line, k.number(start, "i32"))
        a, b = k.add(first_row, k.convert(row, type)), k.add(first_column, k.convert(lane, type))
        with k.when(k.both(k.compare("slt", a, rows), k.compare("slt", b, columns))):
            value = k.load(tile, k.add(k.mul(lane, k.number(pitch, "i32")), row))
            k.store(y, k.add(target, k.add(k.mul(a, y_step), b)), value)
    return k.finish()


@functools.lru_cache(maxsize=1 << 12)
def plan(
    source: ElementLayout, target: ElementLayout, width: int, aligned: int, extent: int
) -> tuple[SimtKernel, int, list[int]]:
    """Kernel, blocks and numbers for a copy; `extent` is the elements of the larger tensor."""
    pair, word = Pair.of(source, target).scaled(width, aligned)
    type = index_type(extent * max(width // 8, 1))
    rows = next((d for d, step in enumerate(pair.source) if step == 1), -1)
    last = len(pair.sizes) - 1
    if 0 <= rows < last and pair.target[-1] == 1 and min(pair.sizes[rows], pair.sizes[-1]) >= _LEAST_TILED:
        others = [d for d in range(last) if d != rows]
        across, along = (-(-pair.sizes[d] // _SIDES[word]) for d in (rows, -1))
        steps = [step for d in others for step in (pair.source[d], pair.target[d])]
        grid = [*(pair.sizes[d] for d in others), across, along]
        numbers = [pair.source_first, pair.target_first, pair.sizes[rows], pair.sizes[-1], pair.source[-1],
                   pair.target[rows], *steps, *divisors(grid[1:], type)]  # fmt: skip
        return _tiled(word, len(others), type), math.prod(grid), numbers
    count = math.prod(pair.sizes)
    steps = [step for both in zip(pair.source, pair.target, strict=True) for step in both]
    numbers = [count, pair.source_first, pair.target_first, *steps, *divisors(pair.sizes[1:], type)]
    return _strided(word, len(pair.sizes), type), blocks_for(count), numbers


def copy_part(device: CudaDevice, x: GpuArray, source: ElementLayout, y: GpuArray, target: ElementLayout) -> None:
    """Write a part of `x` into a part of `y` of the same shape and type."""
    if not source.size:
        return
    width = x.dtype.itemsize
    if source.is_dense and target.is_dense:
        device.context.copy(
            y.address + target.first * width, x.address + source.first * width, source.size * width, device.compute
        )
        return
    aligned = math.gcd(x.address, y.address, 8)
    kernel, blocks, numbers = plan(source, target, width, aligned, max(x.size, y.size))
    device.launch(kernel, blocks, x, y, *numbers)


def part(device: CudaDevice, x: GpuArray, layout: ElementLayout) -> GpuArray:
    """A part of a tensor as a tensor: of the same memory where its elements lie one behind the other."""
    offset = layout.first * x.dtype.itemsize
    if layout.is_dense and not (x.address + offset) % ALIGNED:
        return x.viewed(x.dtype, layout.shape, offset)
    y = device.empty(layout.shape, x.dtype)
    copy_part(device, x, layout, y, ElementLayout.dense(layout.shape))
    return y


def as_word(value: Any, dtype: Any) -> tuple[int, int]:
    """A number of a type as integers of its bits: the lower 64 and, of 16 bytes, the upper 64."""
    raw = np.asarray(value, dtype).reshape(-1)[:1].view(np.uint8)
    words = raw.view(f"i{min(len(raw), 8)}").tolist()
    return words[0], words[-1]
