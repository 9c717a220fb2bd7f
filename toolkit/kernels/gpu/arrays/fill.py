"""Tensors of one number, and ranges."""

from __future__ import annotations

import functools
from typing import Any

from toolkit.kernels.cpu.arrays.create import range_count
from toolkit.kernels.cpu.arrays.shape import checked_shape
from toolkit.kernels.cpu.common import NARROW_FLOATS, np, require, shape_text
from toolkit.kernels.cuda.device import device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import SimtKernel
from toolkit.kernels.facts import output_in_host_memory
from toolkit.kernels.gpu.elementwise.nests import BLOCK, NestStep
from toolkit.kernels.gpu.elementwise.node import ElementwiseLaunches, number_kernel
from toolkit.kernels.gpu.primitives.element_types import number_type
from toolkit.kernels.registry import Compute, KernelNode
from toolkit.kernels.types import Array


@number_kernel("ZerosLike", "OnesLike")
def like(op: KernelNode) -> Compute:
    """TensorFlow leaves those of 32-bit integers in host memory, wherever the input is."""
    device, dtype, value = device_of(op.node), op.output_types[0].numpy, int(op.op == "OnesLike")
    on_host = output_in_host_memory(op.node, "GPU", 0)

    def compute(x: GpuArray) -> GpuArray | Array:
        if on_host:
            return np.full(x.shape, value, dtype)
        return device.full(x.shape, dtype, value) if value else device.zeros(x.shape, dtype)

    return compute


@number_kernel("Fill")
def fill(op: KernelNode) -> Compute:
    device, dtype = device_of(op.node), op.output_types[0].numpy
    run = ElementwiseLaunches(device, [NestStep("Identity", (0,), dtype.name)], dtype).run

    def compute(dims: Array, value: GpuArray) -> GpuArray:
        require(dims.ndim <= 1, f"dims must be a vector of int32, got shape {shape_text(dims)}")
        require(value.shape in ((), (1,)), f"value must be a scalar, got shape {shape_text(value)}")
        return run(tuple(checked_shape(dims.reshape(-1), what="dims")), value, shapes=((),))

    return compute


@functools.cache
def _range_kernel(dtype: str) -> SimtKernel:
    """start + i delta; 16-bit types are computed in double and rounded once."""
    type = number_type(dtype)
    computed = "double" if type.memory in ("half", "bfloat") else type.register
    k = KernelBuilder(f"range_{dtype}", BLOCK)
    y = k.buffer("y", type.memory, written=True)
    n, start, delta = k.scalar("n", "i64"), k.scalar("start", computed), k.scalar("delta", computed)
    i = k.global_thread("i64")
    with k.when(k.compare("slt", i, n)):
        value = k.add(start, k.mul(k.convert(i, computed), delta))
        k.store(y, i, k.convert(value, type.memory))
    return k.finish()


@number_kernel("Range")
def range_kernel(op: KernelNode) -> Compute:
    device, dtype = device_of(op.node), op.output_types[0].numpy

    def number(value: Array) -> Any:
        return (np.asarray(value).reshape(()).astype(np.float64) if dtype in NARROW_FLOATS else value.reshape(()))[()]

    def compute(start: Array, limit: Array, delta: Array) -> GpuArray:
        count = range_count(start, limit, delta)
        made = device.empty((count,), dtype)
        device.launch(_range_kernel(dtype.name), -(-count // BLOCK), made, count, number(start), number(delta))
        return made

    return compute
