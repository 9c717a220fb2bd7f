"""Elements gathered from strided places, sums over further axes, and elements put in strided places."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from toolkit.kernels.cuda.nn.common import BLOCK, blocks_of, index_type, llvm_type, place, split, sum_type
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import SimtKernel


@functools.cache
def gather_kernel(type: str, parts: int, rank: int, summed: int, index: str) -> SimtKernel:
    """y[i] = the sum over further axes of x at the sum of places times strides.

    Args:
        parts: 2 for complex numbers.
        rank: axes of y.
        summed: further axes.
    """
    wide = sum_type(type)
    k = KernelBuilder(f"gather_{type}_{rank}_{summed}", BLOCK)
    x, y = k.buffer("x", type), k.buffer("y", type, written=True)
    sizes = [k.scalar(f"size{n}", index) for n in range(rank)]
    strides = [k.scalar(f"stride{n}", index) for n in range(rank)]
    more = [k.scalar(f"more{n}", index) for n in range(summed)]
    steps = [k.scalar(f"step{n}", index) for n in range(summed)]
    length, count = k.scalar("length", index), k.scalar("count", index)
    i = k.global_thread(index)
    with k.when(k.compare("slt", i, count)):
        zero = k.number(0, index)
        start = place(k, split(k, i, *sizes[1:]), strides) if rank else zero
        sums = [k.variable(k.number(0, wide)) for _ in range(parts)]
        with k.loop(zero, length) as j:
            where = k.add(start, place(k, split(k, j, *more[1:]), steps)) if summed else start
            for part, total in enumerate(sums):
                value = k.load(x, k.add(k.mul(where, k.number(parts, index)), k.number(part, index)))
                total.set(k.add(total.get(), k.convert(value, wide)))
        for part, total in enumerate(sums):
            at = k.add(k.mul(i, k.number(parts, index)), k.number(part, index))
            k.store(y, at, k.convert(total.get(), type))
    return k.finish()


@functools.cache
def scatter_kernel(type: str, parts: int, rank: int, index: str) -> SimtKernel:
    """y at the sum of places times strides = x[i]."""
    k = KernelBuilder(f"scatter_strided_{type}_{rank}", BLOCK)
    x, y = k.buffer("x", type), k.buffer("y", type, written=True)
    sizes = [k.scalar(f"size{n}", index) for n in range(rank)]
    strides = [k.scalar(f"stride{n}", index) for n in range(rank)]
    count = k.scalar("count", index)
    i = k.global_thread(index)
    with k.when(k.compare("slt", i, count)):
        where = place(k, split(k, i, *sizes[1:]), strides)
        for part in range(parts):
            this, by = k.number(part, index), k.number(parts, index)
            k.store(y, k.add(k.mul(where, by), this), k.load(x, k.add(k.mul(i, by), this)))
    return k.finish()


def _parts(dtype: Any) -> tuple[str, int]:
    """The type of what a number is made of, and of how many."""
    if dtype.kind == "c":
        return llvm_type(np.dtype(f"f{dtype.itemsize // 2}")), 2
    return llvm_type(dtype), 1


def gathered(
    device: Any, x: Any, shape: Sequence[int], strides: Sequence[int], summed: Sequence[int], steps: Sequence[int]
) -> Any:
    """A new array of a shape; each number is a sum over `summed` axes, or one element."""
    y = device.empty(tuple(shape), x.dtype)
    if not y.nbytes:
        return y
    if not math.prod(summed):
        return device.zeros(tuple(shape), x.dtype)
    type, parts = _parts(x.dtype)
    kernel = gather_kernel(type, parts, len(shape), len(summed), index_type(x, y) if parts == 1 else "i64")
    count = math.prod(shape)
    device.launch(
        kernel, blocks_of(count), x, y, *shape, *strides, *summed, *steps, math.prod(summed), count
    )  # fmt: skip
    return y


def scattered(device: Any, x: Any, y: Any, shape: Sequence[int], strides: Sequence[int]) -> None:
    """Put the elements of x, of a shape, in places of y."""
    if not x.nbytes:
        return
    type, parts = _parts(x.dtype)
    kernel = scatter_kernel(type, parts, len(shape), index_type(x, y) if parts == 1 else "i64")
    count = math.prod(shape)
    device.launch(kernel, blocks_of(count), x, y, *shape, *strides, count)
