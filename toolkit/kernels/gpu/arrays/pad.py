"""Padding: with a value, or mirrored, and the gradient of the latter."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from contextlib import ExitStack

from toolkit.kernels.cpu.arrays.pad import check_mirrored, pad_pairs, unpadded
from toolkit.kernels.cpu.common import np, require, shape_text
from toolkit.kernels.cpu.native.code import Lanes
from toolkit.kernels.cuda.device import CudaDevice, device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import TYPES, SimtKernel
from toolkit.kernels.gpu.primitives.copying import WORDS
from toolkit.kernels.gpu.primitives.indexing import BLOCK, Divisor, blocks_for, coordinates, divisors, index_type
from toolkit.kernels.gpu.registering import gpu_kernel
from toolkit.kernels.registry import Compute, KernelNode
from toolkit.kernels.tensors import row_major
from toolkit.kernels.types import Array

_Pairs = Sequence[tuple[int, int]]
_ROWS = 2  # the value may be two words


def _merged(sizes: Sequence[int], pairs: _Pairs) -> tuple[list[int], list[tuple[int, int]]]:
    """The fewest dimensions: those without padding become one with the dimension before."""
    found: list[int] = []
    added: list[tuple[int, int]] = []
    for size, (before, after) in zip(sizes, pairs, strict=True):
        if found and not before and not after:
            found[-1] *= size
            added[-1] = added[-1][0] * size, added[-1][1] * size
        else:
            found.append(size)
            added.append((before, after))
    return (found, added) if found else ([1], [(0, 0)])


@functools.cache
def _constant(word: str, rank: int, index: str, words: int) -> SimtKernel:
    """Each element of y is one of x, or the value, which has `words` words."""
    k = KernelBuilder(f"pad{rank}_{word}", BLOCK)
    x, y = k.buffer("x", word), k.buffer("y", word, written=True)
    values = [k.scalar(f"value{part}", word) for part in range(words)]
    n = k.scalar("n", index)
    sizes = [Divisor.argument(k, f"size{d}", index) for d in range(1, rank)]
    ranges = [tuple(k.scalar(f"{name}{d}", index) for name in ("before", "inside", "step")) for d in range(rank)]
    i = k.global_thread(index)
    with k.when(k.compare("slt", i, n)):
        at: Lanes = k.number(0, index)
        inside: Lanes = k.number(True, "i1")
        for place, (before, size, step) in zip(coordinates(k, i, sizes), ranges, strict=True):
            place = k.sub(place, before)
            inside = k.both(inside, k.compare("ult", place, size))
            at = k.add(at, k.mul(place, step))
        with k.when(inside):
            k.store(y, i, k.load(x, at))
        with k.otherwise():
            value: Lanes = values[0]
            if words == _ROWS:
                is_first = k.compare("eq", k.both(i, k.number(1, index)), k.number(0, index))
                value = k.select(is_first, values[0], values[1])
            k.store(y, i, value)
    return k.finish()


def padded(device: CudaDevice, x: GpuArray, pairs: _Pairs, value: Array) -> GpuArray:
    """A tensor with a value around it.

    Args:
        pairs: how much before and behind each axis.
    """
    shape = [size + before + after for size, (before, after) in zip(x.shape, pairs, strict=True)]
    if not any(before or after for before, after in pairs):
        return x
    y = device.empty(shape, x.dtype)
    sizes, added = _merged(x.shape, pairs)
    width, raw = x.dtype.itemsize, np.asarray(value, x.dtype).reshape(1).view(np.uint8)
    if width > 8:
        sizes, added, words = [*sizes, 2], [*added, (0, 0)], raw.view(np.int64).tolist()
        width = 8
    else:
        times = math.gcd(sizes[-1], *added[-1], 8 // width, math.gcd(x.address, 8) // width)
        sizes[-1] //= times
        added[-1] = added[-1][0] // times, added[-1][1] // times
        width *= times
        words = np.tile(raw, times).view(f"i{width}").tolist()
    whole = [size + before + after for size, (before, after) in zip(sizes, added, strict=True)]
    count = math.prod(whole)
    index = index_type(count)
    ranges = [number for (before, _), size, step in zip(added, sizes, row_major(sizes), strict=True)
              for number in (before, size, step)]  # fmt: skip
    kernel = _constant(WORDS[width], len(sizes), index, len(words))
    device.launch(kernel, blocks_for(count), x, y, *words, count, *divisors(whole[1:], index), *ranges)
    return y


@gpu_kernel("Pad", "PadV2")
def pad(op: KernelNode) -> Compute:
    device = device_of(op.node)

    def compute(x: GpuArray, paddings: Array, value: Array | None = None) -> GpuArray:
        if value is not None:
            require(value.ndim == 0, f"constant_values must be a scalar. Found: {shape_text(value)}")
        return padded(device, x, pad_pairs(x, paddings), np.zeros((), x.dtype) if value is None else value)

    return compute


@functools.cache
def _mirror(word: str, rank: int, index: str, offset: int) -> SimtKernel:
    """Each element of y is the one of x that lies at its mirror image; `offset` 1 leaves the edge itself out."""
    k = KernelBuilder(f"mirror_pad{rank}_{word}", BLOCK)
    x, y = k.buffer("x", word), k.buffer("y", word, written=True)
    n = k.scalar("n", index)
    sizes = [Divisor.argument(k, f"size{d}", index) for d in range(1, rank)]
    ranges = [tuple(k.scalar(f"{name}{d}", index) for name in ("before", "inside", "step")) for d in range(rank)]
    i = k.global_thread(index)
    with k.when(k.compare("slt", i, n)):
        at: Lanes = k.number(0, index)
        for place, (before, size, step) in zip(coordinates(k, i, sizes), ranges, strict=True):
            place = k.sub(place, before)
            head = k.sub(k.number(offset - 1, index), place)
            tail = k.sub(k.sub(k.add(size, size), k.number(1 + offset, index)), place)
            place = k.select(k.compare("slt", place, k.number(0, index)), head, place)
            place = k.select(k.compare("sge", place, size), tail, place)
            at = k.add(at, k.mul(place, step))
        k.store(y, i, k.load(x, at))
    return k.finish()


@functools.cache
def _mirror_gradient(type: str, rank: int, index: str, offset: int, padded_dims: tuple[bool, ...]) -> SimtKernel:
    """Each element of dx is the sum of all places that it was copied to: itself and, on each axis, two images."""
    k = KernelBuilder(f"mirror_pad_grad{rank}_{type}", BLOCK)
    wide = "float" if type in ("half", "bfloat") else type
    dy, dx = k.buffer("dy", type), k.buffer("dx", type, written=True)
    n = k.scalar("n", index)
    sizes = [Divisor.argument(k, f"size{d}", index) for d in range(1, rank)]
    names = ("before", "inside", "whole", "step")
    ranges = [tuple(k.scalar(f"{name}{d}", index) for name in names) for d in range(rank)]
    zero, one = k.number(0, index), k.number(1, index)
    i = k.global_thread(index)
    with k.when(k.compare("slt", i, n)):
        total = k.variable(k.number(0, wide))
        with ExitStack() as loops:
            at: Lanes = zero
            for d, place in enumerate(coordinates(k, i, sizes)):
                before, size, whole, step = ranges[d]
                if not padded_dims[d]:
                    at = k.add(at, k.mul(place, step))
                    continue
                # in the order of the tensor: the image in front, the element, the image behind
                front = k.sub(k.add(before, k.number(offset - 1, index)), place)
                itself = k.add(before, place)
                behind = k.add(before, k.sub(k.sub(k.add(size, size), k.number(1 + offset, index)), place))
                image = loops.enter_context(k.loop(0, k.number(3, index)))
                is_front, is_itself = k.compare("eq", image, zero), k.compare("eq", image, one)
                where = k.select(is_front, front, k.select(is_itself, itself, behind))
                # an image lies on its own side, or it is none: an edge that is left out has none
                right_side = k.select(
                    is_front,
                    k.compare("slt", where, before),
                    k.either(is_itself, k.compare("sge", where, k.add(before, size))),
                )
                loops.enter_context(k.when(k.both(right_side, k.compare("ult", where, whole))))
                at = k.add(at, k.mul(where, step))
            total.set(k.add(total.get(), k.convert(k.load(dy, at), wide)))
        k.store(dx, i, k.convert(total.get(), type))
    return k.finish()


def _offset(op: KernelNode) -> int:
    return 1 if op.text("mode") == "REFLECT" else 0


@gpu_kernel("MirrorPad")
def mirror_pad(op: KernelNode) -> Compute:
    device, offset = device_of(op.node), _offset(op)

    def compute(x: GpuArray, paddings: Array) -> GpuArray:
        pairs = pad_pairs(x, paddings)
        check_mirrored(x.shape, pairs, offset)
        if not any(before or after for before, after in pairs):
            return x
        y = device.empty([size + before + after for size, (before, after) in zip(x.shape, pairs, strict=True)], x.dtype)
        if not y.size:
            return y
        index = index_type(y.size)
        ranges = [number for (before, _), size, step in zip(pairs, x.shape, row_major(x.shape), strict=True)
                  for number in (before, size, step)]  # fmt: skip
        kernel = _mirror(WORDS[x.dtype.itemsize], x.ndim, index, offset)
        device.launch(kernel, blocks_for(y.size), x, y, y.size, *divisors(y.shape[1:], index), *ranges)
        return y

    return compute


@gpu_kernel("MirrorPadGrad")
def mirror_pad_grad(op: KernelNode) -> Compute:
    """Sums what MirrorPad copied back to where it came from, in the order of the tensor."""
    device, offset = device_of(op.node), _offset(op)

    def compute(dy: GpuArray, paddings: Array) -> GpuArray:
        pairs = pad_pairs(dy, paddings)
        sizes = unpadded(dy, pairs)
        check_mirrored(sizes, pairs, offset)
        if not any(before or after for before, after in pairs):
            return dy
        dx = device.empty(sizes, dy.dtype)
        if not dx.size:
            return dx
        index = index_type(dy.size)
        ranges = [
            number
            for (before, _), size, whole, step in zip(pairs, sizes, dy.shape, row_major(dy.shape), strict=True)
            for number in (before, size, whole, step)
        ]
        moved = tuple(bool(before or after) for before, after in pairs)
        kernel = _mirror_gradient(TYPES[dy.dtype.name], dy.ndim, index, offset, moved)
        device.launch(kernel, blocks_for(dx.size), dy, dx, dx.size, *divisors(sizes[1:], index), *ranges)
        return dx

    return compute
