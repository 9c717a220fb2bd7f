"""Cross: vector products of the last axis, a number of the result a thread."""

from __future__ import annotations

import functools

from toolkit.errors import FailedPreconditionError
from toolkit.kernels.cpu.common import require, shape_text
from toolkit.kernels.cuda.device import device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import SimtKernel, Value
from toolkit.kernels.gpu.primitives.indexing import BLOCK, blocks_for
from toolkit.kernels.gpu.primitives.number_types import number_of
from toolkit.kernels.gpu.registering import gpu_kernel
from toolkit.kernels.registry import Compute, KernelNode

_AXES = 3


@functools.cache
def cross_kernel(name: str) -> SimtKernel:
    """Takes a, b, y [vectors, 3], count of numbers."""
    k, type = KernelBuilder(f"cross_{name}", BLOCK), number_of(name)
    a, b = k.buffer("a", type.memory), k.buffer("b", type.memory)
    y, count = k.buffer("y", type.memory, written=True), k.scalar("count", "i64")
    i, axes = k.global_thread("i64"), k.number(_AXES, "i64")
    with k.when(k.compare("slt", i, count)):
        axis = k.rem(i, axes)
        first = k.sub(i, axis)

        def place(step: int) -> Value:
            return k.add(first, k.rem(k.add(axis, k.number(step, "i64")), axes))

        one, other = place(1), place(2)
        left = k.mul(type.load(k, a, one), type.load(k, b, other))
        right = k.mul(type.load(k, a, other), type.load(k, b, one))
        type.store(k, y, i, k.sub(left, right))
    return k.finish()


@gpu_kernel("Cross")
def cross(op: KernelNode) -> Compute:
    device = device_of(op.node)

    def compute(a: GpuArray, b: GpuArray) -> GpuArray:
        require(a.shape == b.shape, f"Both inputs must be of same shape: {shape_text(a)} vs. {shape_text(b)}")
        require(a.ndim >= 1, f"Input must be at least 1D {shape_text(a)}")
        if a.shape[-1] != _AXES:
            raise FailedPreconditionError(f"Cross-products are only defined for 3-element vectors, not {shape_text(a)}")
        made = device.empty(a.shape, a.dtype)
        device.launch(cross_kernel(a.dtype.name), blocks_for(made.size), a, b, made, made.size)
        return made

    return compute
