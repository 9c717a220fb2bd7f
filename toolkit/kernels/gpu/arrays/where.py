"""Where: the coordinates of the elements that are not zero, in row-major order.

A cumulative sum says where each goes, and the host how many there are: it waits for the GPU.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from toolkit.kernels.cpu.common import require
from toolkit.kernels.cpu.native.code import Lanes
from toolkit.kernels.cuda.device import CudaDevice, device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import SimtKernel, Value
from toolkit.kernels.gpu.primitives.number_types import index_type, number_of, real_of
from toolkit.kernels.gpu.reductions.scan_kernels import BLOCK, GpuScan, scan_array, scan_with_totals
from toolkit.kernels.gpu.reductions.segment_kernels import last_of
from toolkit.kernels.gpu.registering import gpu_kernel
from toolkit.kernels.registry import Compute, KernelNode


@functools.cache
def count_scan(name: str, index: str) -> GpuScan:
    """How many numbers so far are not zero."""

    def lift(k: KernelBuilder, value: Value) -> Lanes:
        return k.convert(k.convert(value, "i1"), index)

    def add(k: KernelBuilder, a: Lanes, b: Lanes) -> Lanes:
        return k.add(a, b)

    result = number_of("int32" if index == "i32" else "int64")
    return scan_with_totals(GpuScan(f"count_{name}_{index}", number_of(name), result, index, 0, lift, add))


def counted(device: CudaDevice, x: GpuArray) -> GpuArray:
    """For each number of a vector, how many up to it are not zero."""
    index = index_type(x.size)
    made = device.empty((x.size,), np.int32 if index == "i32" else np.int64)
    scan_array(device, count_scan(x.dtype.name, index), x, (1, x.size, 1), made)
    return made


@gpu_kernel("Where")
def where(op: KernelNode) -> Compute:
    device = device_of(op.node)

    def compute(x: GpuArray) -> GpuArray:
        require(x.ndim > 0, "the input of Where must have at least 1 dimension")
        if not x.nbytes:
            return device.empty((0, x.ndim), np.int64)
        flat = x.reshaped((x.size,)) if x.dtype.kind != "c" else _either_part(device, x)
        counts = counted(device, flat)
        made = device.empty((last_of(device, counts), x.ndim), np.int64)
        if made.nbytes:
            kernel = _coordinates(flat.dtype.name, counts.dtype.name, x.ndim)
            device.launch(kernel, -(-x.size // BLOCK), flat, counts, made, x.size, *x.shape)
        return made

    return compute


@functools.cache
def _coordinates(name: str, counts_name: str, rank: int) -> SimtKernel:
    """Scalars: elements, then the shape."""
    number = number_of(name)
    k = KernelBuilder(f"coordinates_{name}_{rank}", BLOCK)
    x, counts = k.buffer("x", number.memory), k.buffer("counts", number_of(counts_name).memory)
    made, count = k.buffer("made", "i64", written=True), k.scalar("count", "i64")
    sizes = [k.scalar(f"size{i}", "i64") for i in range(rank)]
    i = k.global_thread("i64")
    with k.when(k.compare("slt", i, count)), k.when(k.convert(number.load(k, x, i), "i1")):
        row = k.sub(k.convert(k.load(counts, i), "i64"), k.number(1, "i64"))
        rest: Value = i
        for axis in reversed(range(rank)):
            place = k.add(k.mul(row, k.number(rank, "i64")), k.number(axis, "i64"))
            k.store(made, place, k.rem(rest, sizes[axis]) if axis else rest)
            rest = k.div(rest, sizes[axis]) if axis else rest
    return k.finish()


@functools.cache
def _is_nonzero(name: str) -> SimtKernel:
    """Whether a complex number is not 0, as bytes. Scalars: how many."""
    memory = number_of(name).memory
    k = KernelBuilder(f"is_nonzero_{name}", BLOCK)
    x, made, count = k.buffer("x", memory), k.buffer("made", "i8", written=True), k.scalar("count", "i64")
    i = k.global_thread("i64")
    with k.when(k.compare("slt", i, count)):
        first = k.mul(i, k.number(2, "i64"))
        parts = [k.convert(k.load(x, place), "i1") for place in (first, k.add(first, k.number(1, "i64")))]
        k.store_bool(made, i, k.either(parts[0], parts[1]))
    return k.finish()


def _either_part(device: CudaDevice, x: GpuArray) -> GpuArray:
    real: Any = real_of(x.dtype)
    made = device.empty((math.prod(x.shape),), bool)
    device.launch(_is_nonzero(real.name), -(-x.size // BLOCK), x, made, x.size)
    return made
