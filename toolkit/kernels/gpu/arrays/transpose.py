"""Transpose and ConjugateTranspose."""

from __future__ import annotations

import functools

from toolkit.kernels.cuda.device import CudaDevice, device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import SimtKernel
from toolkit.kernels.gpu.primitives.copying import part
from toolkit.kernels.gpu.primitives.indexing import BLOCK, blocks_for, index_type
from toolkit.kernels.gpu.registering import gpu_kernel, layouts
from toolkit.kernels.registry import Compute, KernelNode
from toolkit.kernels.types import Array


@functools.cache
def _conjugate(type: str, index: str) -> SimtKernel:
    """Every second number negated."""
    k = KernelBuilder(f"conjugate_{type}", BLOCK)
    x, y = k.buffer("x", type), k.buffer("y", type, written=True)
    n = k.scalar("n", index)
    i = k.global_thread(index)
    with k.when(k.compare("slt", i, n)):
        value = k.load(x, i)
        is_real = k.compare("eq", k.both(i, k.number(1, index)), k.number(0, index))
        k.store(y, i, k.select(is_real, value, k.neg(value)))
    return k.finish()


def conjugated(device: CudaDevice, x: GpuArray) -> GpuArray:
    """The conjugates of complex numbers."""
    y = device.empty(x.shape, x.dtype)
    count = 2 * x.size
    device.launch(_conjugate("float" if x.dtype.itemsize == 8 else "double", index_type(count)), blocks_for(count), x,
                  y, count)  # fmt: skip
    return y


@gpu_kernel("Transpose", "ConjugateTranspose")
def transpose(op: KernelNode) -> Compute:
    device, find = device_of(op.node), layouts(op)
    conjugates = op.op == "ConjugateTranspose"

    def compute(x: GpuArray, perm: Array) -> GpuArray:
        y = part(device, x, find(x, perm)[0])
        return conjugated(device, y) if conjugates and x.dtype.kind == "c" else y

    return compute
