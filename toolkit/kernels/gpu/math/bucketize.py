"""Bucketize."""

from __future__ import annotations

import functools

import numpy as np

from toolkit.kernels.cpu.arrays.create import bucket_boundaries
from toolkit.kernels.cuda.device import device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import TYPES, SimtKernel
from toolkit.kernels.gpu.primitives.indexing import BLOCK, blocks_for
from toolkit.kernels.gpu.registering import gpu_kernel
from toolkit.kernels.registry import Compute, KernelNode


@functools.cache
def _buckets(type: str) -> SimtKernel:
    """How many of `count` rising boundaries are no larger than a number; all are no larger than NaN."""
    k = KernelBuilder(f"bucketize_{type}", BLOCK)
    x, boundaries, y = k.buffer("x", type), k.buffer("boundaries", "float"), k.buffer("y", "i32", written=True)
    n, count = k.scalar("n", "i64"), k.scalar("count", "i32")
    wide = "float" if type == "float" else "double"
    i = k.global_thread("i64")
    with k.when(k.compare("slt", i, n)):
        value = k.convert(k.load(x, i), wide)
        low, high = k.variable(k.number(0, "i32")), k.variable(count)
        with k.while_(lambda: k.compare("slt", low.get(), high.get())):
            middle = k.binary("lshr", k.add(low.get(), high.get()), k.number(1, "i32"))
            is_below = k.compare("olt", value, k.convert(k.load(boundaries, middle), wide))
            low.set(k.select(is_below, low.get(), k.add(middle, k.number(1, "i32"))))
            high.set(k.select(is_below, middle, high.get()))
        k.store(y, i, low.get())
    return k.finish()


@gpu_kernel("Bucketize")
def bucketize(op: KernelNode) -> Compute:
    device, boundaries = device_of(op.node), bucket_boundaries(op)

    @functools.cache
    def on_device() -> GpuArray:
        return device.to_device(boundaries)

    def compute(x: GpuArray) -> GpuArray:
        y = device.empty(x.shape, np.int32)
        kernel = _buckets(TYPES[x.dtype.name])
        device.launch(kernel, blocks_for(x.size), x, on_device(), y, x.size, len(boundaries))
        return y

    return compute
