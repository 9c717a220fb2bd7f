"""OneHot."""

from __future__ import annotations

import functools
import math

from toolkit.kernels.cpu.arrays.create import one_hot_depth
from toolkit.kernels.cuda.device import device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import SimtKernel
from toolkit.kernels.gpu.primitives.copying import WORDS
from toolkit.kernels.gpu.primitives.indexing import BLOCK, Divisor, blocks_for, coordinates, divisors, index_type
from toolkit.kernels.gpu.registering import gpu_kernel
from toolkit.kernels.registry import Compute, KernelNode
from toolkit.kernels.types import Array


@functools.cache
def _one_hot(word: str, ids: str, is_unsigned: bool, index: str, words: int) -> SimtKernel:
    """The result is [before, depth, behind], of numbers of `words` words; indices are [before, behind]."""
    k = KernelBuilder(f"one_hot_{word}", BLOCK)
    indices, on, off = k.buffer("indices", ids), k.buffer("on", word), k.buffer("off", word)
    y = k.buffer("y", word, written=True)
    n = k.scalar("n", index)
    depth, behind = (Divisor.argument(k, name, index) for name in ("depth", "behind"))
    i = k.global_thread(index)
    with k.when(k.compare("slt", i, n)):
        outer, place, inner = coordinates(k, i, [depth, behind])
        found = k.load(indices, k.add(k.mul(outer, behind.size), inner))
        is_on = k.compare("eq", k.convert(found, "i64", unsigned=is_unsigned), k.convert(place, "i64"))
        first = k.mul(i, k.number(words, index))
        for part in range(words):
            each = k.number(part, "i32")
            value = k.select(is_on, k.load(on, each), k.load(off, each))
            k.store(y, k.add(first, k.number(part, index)), value)
    return k.finish()


@gpu_kernel("OneHot")
def one_hot(op: KernelNode) -> Compute:
    device, axis = device_of(op.node), op.attr("axis")
    is_unsigned = op.attr("TI").numpy.kind == "u"

    def compute(indices: GpuArray, depth_input: Array, on: GpuArray, off: GpuArray) -> GpuArray:
        depth = one_hot_depth(indices, depth_input, on, off, axis)
        at = indices.ndim if axis == -1 else axis
        y = device.empty((*indices.shape[:at], depth, *indices.shape[at:]), on.dtype)
        if not y.size:
            return y
        width = min(on.dtype.itemsize, 8)
        words = on.dtype.itemsize // width
        index = index_type(y.size * words)
        kernel = _one_hot(WORDS[width], WORDS[indices.dtype.itemsize], is_unsigned, index, words)
        sizes = divisors([depth, math.prod(indices.shape[at:])], index)
        device.launch(kernel, blocks_for(y.size), indices, on, off, y, y.size, *sizes)
        return y

    return compute
