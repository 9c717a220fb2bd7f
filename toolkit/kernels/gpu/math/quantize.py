"""QuantizeAndDequantize: numbers rounded to those that a few bits can tell apart, and back."""

from __future__ import annotations

import functools
import math

import numpy as np

from toolkit.kernels.cpu.native.code import Lanes
from toolkit.kernels.cpu.quantized.quantize import check_range_gradient, range_given, rounding_bits, rounding_of
from toolkit.kernels.cuda.device import CudaDevice, device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import TYPES, SimtKernel, Value
from toolkit.kernels.gpu.primitives.indexing import BLOCK, Divisor, blocks_for, coordinates, divisors, index_type
from toolkit.kernels.gpu.primitives.reduce_code import largest, smallest
from toolkit.kernels.gpu.registering import gpu_kernel
from toolkit.kernels.registry import Compute, KernelNode
from toolkit.kernels.types import Array


@functools.cache
def _ranges(type: str, index: str) -> SimtKernel:
    """The least and the largest number of each channel, a block for each; x is [outer, channels, inner]."""
    k = KernelBuilder(f"ranges_{type}", BLOCK)
    x, ranges = k.buffer("x", type), k.buffer("ranges", type, written=True)
    count, channels, inner = k.scalar("count", index), k.scalar("channels", index), k.scalar("inner", index)
    low, high = k.shared("low", type, BLOCK), k.shared("high", type, BLOCK)
    channel = k.convert(k.block_index, index)

    def place(j: Lanes) -> Value:
        outer = k.div(j, inner)
        return k.add(k.mul(k.add(k.mul(outer, channels), channel), inner), k.rem(j, inner))

    first = k.load(x, place(k.number(0, index)))
    least, most = k.variable(first), k.variable(first)
    with k.loop(k.convert(k.thread, index), count, BLOCK) as j:
        value = k.load(x, place(j))
        least.set(smallest(k, least.get(), value))
        most.set(largest(k, most.get(), value))
    k.store(low, k.thread, least.get())
    k.store(high, k.thread, most.get())
    step = BLOCK // 2
    while step:
        k.barrier()
        with k.when(k.compare("slt", k.thread, k.number(step, "i32"))):
            other = k.add(k.thread, k.number(step, "i32"))
            k.store(low, k.thread, smallest(k, k.load(low, k.thread), k.load(low, other)))
            k.store(high, k.thread, largest(k, k.load(high, k.thread), k.load(high, other)))
        step //= 2
    with k.when(k.compare("eq", k.thread, k.number(0, "i32"))):
        at = k.mul(k.block_index, k.number(2, "i32"))
        k.store(ranges, at, k.load(low, k.thread))
        k.store(ranges, k.add(at, k.number(1, "i32")), k.load(high, k.thread))
    return k.finish()


@functools.cache
def _round_trip(type: str, index: str, clamps: bool, half_up: bool) -> SimtKernel:
    """A thread for each number, which finds the steps of its channel's range first, in the order of the CPU's."""
    k = KernelBuilder(f"round_trip_{type}", BLOCK)
    x, y, ranges = k.buffer("x", type), k.buffer("y", type, written=True), k.buffer("ranges", type)
    n, low, high = k.scalar("n", index), k.scalar("low", type), k.scalar("high", type)
    sizes = [Divisor.argument(k, name, index) for name in ("channels", "inner")]
    zero, one = k.number(0.0, type), k.number(1.0, type)
    huge = k.number(float(np.finfo(np.float32 if type == "float" else np.float64).max), type)
    i = k.global_thread(index)
    with k.when(k.compare("slt", i, n)):
        _, channel, _ = coordinates(k, i, sizes)
        first = k.mul(channel, k.number(2, index))
        a, b = k.load(ranges, first), k.load(ranges, k.add(first, k.number(1, index)))

        def steps(limit: Lanes, end: Lanes) -> Value:
            safe = k.select(k.compare("oeq", end, zero), one, end)
            return k.select(k.compare("ogt", k.mul(limit, end), zero), k.div(limit, safe), huge)

        from_low, from_high = steps(low, a), steps(high, b)
        by_low = k.compare("olt", from_low, from_high)
        scale = k.select(by_low, from_low, from_high)
        some = k.select(k.compare("oeq", low, zero), one, low)
        inverse = k.select(by_low, k.div(a, some), k.div(b, high))
        value = k.load(x, i)
        if clamps:
            bottom = k.select(by_low, a, k.mul(low, inverse))
            top = k.select(by_low, k.mul(high, inverse), b)
            value = k.select(k.compare("olt", value, bottom), bottom, value)
            value = k.select(k.compare("ogt", value, top), top, value)
        scaled = k.mul(value, scale)
        if half_up:
            rounded = k.intrinsic("floor", k.add(scaled, k.number(0.5, type)))
        else:
            rounded = k.intrinsic("rint", scaled)
        k.store(y, i, k.mul(rounded, inverse))
    return k.finish()


def _channels(shape: tuple[int, ...], axis: int) -> tuple[int, int, int]:
    """A shape as (outer, channels, inner); without an axis there is one channel."""
    if axis == -1:
        return 1, 1, math.prod(shape)
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])


def _given(device: CudaDevice, a: Array, b: Array) -> GpuArray:
    """The ranges of channels [channels, 2] in memory of the GPU."""
    return device.to_device(np.stack([np.reshape(a, -1), np.reshape(b, -1)], axis=1))


@gpu_kernel("QuantizeAndDequantize", "QuantizeAndDequantizeV2", "QuantizeAndDequantizeV3", "QuantizeAndDequantizeV4")
def quantize_and_dequantize(op: KernelNode) -> Compute:
    device, rounding = device_of(op.node), rounding_of(op)

    def compute(x: GpuArray, *arguments: Array) -> GpuArray:
        bits = rounding_bits(rounding, arguments)
        found = range_given(rounding, x, arguments)
        y = device.empty(x.shape, x.dtype)
        if not y.size:
            return y
        outer, channels, inner = _channels(x.shape, rounding.axis)
        type, index = TYPES[x.dtype.name], index_type(x.size)
        if found is None:
            ranges = device.empty((channels, 2), x.dtype)
            device.launch(_ranges(type, index), channels, x, ranges, outer * inner, channels, inner)
        else:
            ranges = _given(device, *found)
        low, high = rounding.limits(bits)
        kernel = _round_trip(type, index, rounding.is_given, rounding.half_up)
        numbers = x.size, float(low), float(high), *divisors([channels, inner], index)
        device.launch(kernel, blocks_for(x.size), x, y, ranges, *numbers)
        return y

    return compute


@functools.cache
def _inside(type: str, index: str) -> SimtKernel:
    """dy where x is in the range of its channel."""
    k = KernelBuilder(f"in_range_{type}", BLOCK)
    dy, x, ranges = k.buffer("dy", type), k.buffer("x", type), k.buffer("ranges", type)
    y, n = k.buffer("y", type, written=True), k.scalar("n", index)
    sizes = [Divisor.argument(k, name, index) for name in ("channels", "inner")]
    i = k.global_thread(index)
    with k.when(k.compare("slt", i, n)):
        _, channel, _ = coordinates(k, i, sizes)
        first = k.mul(channel, k.number(2, index))
        a, b = k.load(ranges, first), k.load(ranges, k.add(first, k.number(1, index)))
        value = k.load(x, i)
        inside = k.both(k.compare("oge", value, a), k.compare("ole", value, b))
        k.store(y, i, k.select(inside, k.load(dy, i), k.number(0.0, type)))
    return k.finish()


@gpu_kernel("QuantizeAndDequantizeV4Grad")
def quantize_and_dequantize_gradient(op: KernelNode) -> Compute:
    """Passes the gradient where the input lay inside the range; the range has none."""
    device, axis = device_of(op.node), op.attr("axis")

    def compute(dy: GpuArray, x: GpuArray, low: Array, high: Array) -> list[GpuArray]:
        check_range_gradient(dy, x, low, high, axis)
        y = device.empty(x.shape, x.dtype)
        if y.size:
            _, channels, inner = _channels(x.shape, axis)
            type, index = TYPES[x.dtype.name], index_type(x.size)
            numbers = x.size, *divisors([channels, inner], index)
            device.launch(_inside(type, index), blocks_for(x.size), dy, x, _given(device, low, high), y, *numbers)
        return [y, *(device.zeros(each.shape, each.dtype) for each in (low, high))]

    return compute
