"""Reverse, ReverseSequence and Roll."""

from __future__ import annotations

import functools
import itertools

from toolkit.kernels.cpu.arrays.pad import check_sequences, roll_axes
from toolkit.kernels.cpu.common import to_ints
from toolkit.kernels.cuda.device import device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import SimtKernel
from toolkit.kernels.gpu.primitives.copying import WORDS, copy_part, part
from toolkit.kernels.gpu.primitives.indexing import BLOCK, Divisor, blocks_for, coordinates, divisors, index_type
from toolkit.kernels.gpu.primitives.layout import ElementLayout
from toolkit.kernels.gpu.registering import gpu_kernel, layouts
from toolkit.kernels.registry import Compute, KernelNode
from toolkit.kernels.tensors import row_major
from toolkit.kernels.types import Array


@gpu_kernel("Reverse", "ReverseV2")
def reverse(op: KernelNode) -> Compute:
    device, find = device_of(op.node), layouts(op)

    def compute(x: GpuArray, axes: Array) -> GpuArray:
        return part(device, x, find(x, axes)[0])

    return compute


@gpu_kernel("Roll")
def roll(op: KernelNode) -> Compute:
    """Every axis that turns is cut in two."""
    device = device_of(op.node)

    def compute(x: GpuArray, shift: Array, axis: Array) -> GpuArray:
        turned = [0] * x.ndim
        for at, by in zip(roll_axes(x, shift, axis), to_ints(shift), strict=True):
            turned[at] = (turned[at] + by) % max(x.shape[at], 1)
        if not any(turned):
            return x
        y, strides = device.empty(x.shape, x.dtype), row_major(x.shape)
        # along each axis: where a piece begins in x and in y, and its size
        pieces = [[(0, by, size - by), (size - by, 0, by)] if by else [(0, 0, size)]
                  for by, size in zip(turned, x.shape, strict=True)]  # fmt: skip
        for chosen in itertools.product(*pieces):
            sizes = tuple(size for _, _, size in chosen)
            source = sum(start * step for (start, _, _), step in zip(chosen, strides, strict=True))
            target = sum(start * step for (_, start, _), step in zip(chosen, strides, strict=True))
            copy_part(device, x, ElementLayout(sizes, strides, source), y, ElementLayout(sizes, strides, target))
        return y

    return compute


@functools.cache
def _sequence(word: str, lengths: str, index: str, batch_first: bool) -> SimtKernel:
    """x is [outer, first, middle, second, inner]: of batch and sequence the one that comes first, and the other."""
    k = KernelBuilder(f"reverse_sequence_{word}", BLOCK)
    x, y = k.buffer("x", word), k.buffer("y", word, written=True)
    length = k.buffer("lengths", lengths)
    n = k.scalar("n", index)
    sizes = [Divisor.argument(k, f"size{d}", index) for d in range(1, 5)]
    i = k.global_thread(index)
    with k.when(k.compare("slt", i, n)):
        outer, first, middle, second, inner = coordinates(k, i, sizes)
        batch, place = (first, second) if batch_first else (second, first)
        count = k.convert(k.load(length, batch), index)
        limit = sizes[2].size if batch_first else sizes[0].size
        count = k.select(k.compare("slt", count, limit), count, limit)
        turned = k.sub(k.sub(count, k.number(1, index)), place)
        place = k.select(k.compare("slt", place, count), turned, place)
        first, second = (batch, place) if batch_first else (place, batch)
        at = outer
        for size, coordinate in zip(sizes, (first, middle, second, inner), strict=True):
            at = k.add(k.mul(at, size.size), coordinate)
        k.store(y, i, k.load(x, at))
    return k.finish()


@gpu_kernel("ReverseSequence")
def reverse_sequence(op: KernelNode) -> Compute:
    """Lengths beyond the axis are not looked for: they are in the memory of the GPU."""
    device = device_of(op.node)
    seq_dim: int = op.attr("seq_dim")
    batch_dim: int = op.attr("batch_dim")

    def compute(x: GpuArray, lengths: GpuArray) -> GpuArray:
        check_sequences(x, lengths, batch_dim, seq_dim)
        y = device.empty(x.shape, x.dtype)
        low, high = sorted((batch_dim, seq_dim))
        sizes = x.shape
        count = [1, 1, 1]
        for axis, size in enumerate(sizes):
            if axis not in (low, high):
                count[(axis > low) + (axis > high)] *= size
        shape = (count[0], sizes[low], count[1], sizes[high], count[2])
        index = index_type(x.size)
        kernel = _sequence(WORDS[x.dtype.itemsize], f"i{8 * lengths.dtype.itemsize}", index, batch_dim < seq_dim)
        device.launch(kernel, blocks_for(x.size), x, y, lengths, x.size, *divisors(shape[1:], index))
        return y

    return compute
