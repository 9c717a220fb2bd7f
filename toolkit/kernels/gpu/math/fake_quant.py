"""Fake quantization: numbers moved to the steps of a range, in float32. Where the steps lie is found on the host."""

from __future__ import annotations

import functools

import numpy as np

from toolkit.kernels.cpu.common import require, shape_text
from toolkit.kernels.cpu.quantized.quantize import fake_quant_attributes, fake_quant_channels, fake_quant_steps
from toolkit.kernels.cuda.device import CudaDevice, device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import KernelBuffer, SimtKernel, Value
from toolkit.kernels.gpu.primitives.block_sums import sum_of_block
from toolkit.kernels.gpu.primitives.indexing import BLOCK, Divisor, blocks_for, divisors, index_type
from toolkit.kernels.gpu.registering import gpu_kernel
from toolkit.kernels.registry import Compute, KernelNode
from toolkit.kernels.types import Array

_F = "float"
_NUMBERS = 6  # for each channel: low, high, step, 1 / step, which step 0 is, and whether the range is empty


def _channel(k: KernelBuilder, table: KernelBuffer, i: Value, channels: Divisor, index: str) -> list[Value]:
    """What is known of the channel of an element."""
    _, c = channels.divide(k, i)
    first = k.mul(c, k.number(_NUMBERS, index))
    return [k.load(table, k.add(first, k.number(number, index))) for number in range(_NUMBERS)]


@functools.cache
def _forward(index: str) -> SimtKernel:
    k = KernelBuilder("fake_quant", BLOCK)
    x, y, table = k.buffer("x", _F), k.buffer("y", _F, written=True), k.buffer("table", _F)
    n, channels = k.scalar("n", index), Divisor.argument(k, "channels", index)
    zero, half = k.number(0.0, _F), k.number(0.5, _F)
    i = k.global_thread(index)
    with k.when(k.compare("slt", i, n)):
        low, high, step, inverse, origin, is_empty = _channel(k, table, i, channels, index)
        value = k.load(x, i)
        clipped = k.select(k.compare("olt", value, low), low, value)
        clipped = k.select(k.compare("ogt", clipped, high), high, clipped)
        level = k.intrinsic("floor", k.add(k.sub(k.mul(k.sub(clipped, low), inverse), origin), half))
        k.store(y, i, k.select(k.compare("one", is_empty, zero), zero, k.mul(level, step)))
    return k.finish()


@functools.cache
def _backward(index: str) -> SimtKernel:
    """dy where x is inside of the range, below, and above; a range of nothing passes all."""
    k = KernelBuilder("fake_quant_gradient", BLOCK)
    dy, x, table = k.buffer("dy", _F), k.buffer("x", _F), k.buffer("table", _F)
    made = [k.buffer(name, _F, written=True) for name in ("inside", "below", "above")]
    n, channels = k.scalar("n", index), Divisor.argument(k, "channels", index)
    zero = k.number(0.0, _F)
    i = k.global_thread(index)
    with k.when(k.compare("slt", i, n)):
        low, high, _, _, _, empty = _channel(k, table, i, channels, index)
        value, given = k.load(x, i), k.load(dy, i)
        is_empty = k.compare("one", empty, zero)
        below, above = k.compare("olt", value, low), k.compare("ogt", value, high)
        inside = k.both(k.compare("oge", value, low), k.compare("ole", value, high))
        holds = (
            k.either(is_empty, inside), k.both(k.inverse(is_empty), below), k.both(k.inverse(is_empty), above)
        )  # fmt: skip
        for buffer, condition in zip(made, holds, strict=True):
            k.store(buffer, i, k.select(condition, given, zero))
    return k.finish()


def _table(device: CudaDevice, a: Array, b: Array, bits: int, narrow: bool) -> tuple[GpuArray, int]:
    """What is known of each channel, in memory of the device, and how many there are."""
    with np.errstate(all="ignore"):
        columns = [np.asarray(each, np.float32).reshape(-1) for each in fake_quant_steps(a, b, bits, narrow)]
    return device.to_device(np.stack(columns, axis=1)), len(columns[0])


def _moved(device: CudaDevice, x: GpuArray, a: Array, b: Array, bits: int, narrow: bool) -> GpuArray:
    y = device.empty(x.shape, np.float32)
    if y.size:
        table, channels = _table(device, a, b, bits, narrow)
        index = index_type(x.size)
        device.launch(_forward(index), blocks_for(x.size), x, y, table, x.size, *divisors([channels], index))
    return y


def _gradients(
    device: CudaDevice, dy: GpuArray, x: GpuArray, a: Array, b: Array, bits: int, narrow: bool
) -> list[GpuArray]:
    require(dy.shape == x.shape, f"gradient and input must be the same size: {shape_text(dy)} vs. {shape_text(x)}")
    made = [device.empty(x.shape, np.float32) for _ in range(3)]
    if x.size:
        table, channels = _table(device, a, b, bits, narrow)
        index = index_type(x.size)
        numbers = x.size, *divisors([channels], index)
        device.launch(_backward(index), blocks_for(x.size), dy, x, table, *made, *numbers)
    return made


@gpu_kernel("FakeQuantWithMinMaxArgs", "FakeQuantWithMinMaxArgsGradient")
def fake_quant_args(op: KernelNode) -> Compute:
    device, (bits, narrow) = device_of(op.node), fake_quant_attributes(op)
    a, b = np.float32(op.attr("min")), np.float32(op.attr("max"))
    require(a < b, f"min has to be smaller than max, was: {a} >= {b}")
    low, high = np.asarray(a), np.asarray(b)

    def forward(x: GpuArray) -> GpuArray:
        return _moved(device, x, low, high, bits, narrow)

    def backward(dy: GpuArray, x: GpuArray) -> GpuArray:
        return _gradients(device, dy, x, low, high, bits, narrow)[0]

    return backward if op.op.endswith("Gradient") else forward


@gpu_kernel("FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel")
def fake_quant_vars(op: KernelNode) -> Compute:
    device, (bits, narrow) = device_of(op.node), fake_quant_attributes(op)
    by_channel = op.op.endswith("PerChannel")

    def compute(x: GpuArray, a: Array, b: Array) -> GpuArray:
        fake_quant_channels(x, a, b, by_channel)
        return _moved(device, x, a, b, bits, narrow)

    return compute


@functools.cache
def _sums(index: str) -> SimtKernel:
    """Sums of columns, a block for each."""
    k = KernelBuilder("fake_quant_sums", BLOCK)
    x, y = k.buffer("x", _F), k.buffer("y", _F, written=True)
    rows, columns = k.scalar("rows", index), k.scalar("columns", index)
    shared = k.shared("sums", _F, BLOCK)
    column = k.convert(k.block_index, index)
    total = k.variable(k.number(0.0, _F))
    with k.loop(k.convert(k.thread, index), rows, BLOCK) as row:
        total.set(k.add(total.get(), k.load(x, k.add(k.mul(row, columns), column))))
    whole = sum_of_block(k, shared, total.get())
    with k.when(k.compare("eq", k.thread, k.number(0, "i32"))):
        k.store(y, k.block_index, whole)
    return k.finish()


def _summed(device: CudaDevice, x: GpuArray, columns: int) -> GpuArray:
    """Sums of the columns of a matrix."""
    y = device.empty((columns,), np.float32)
    device.launch(_sums(index_type(x.size)), columns, x, y, x.size // max(columns, 1), columns)
    return y


@gpu_kernel("FakeQuantWithMinMaxVarsGradient", "FakeQuantWithMinMaxVarsPerChannelGradient")
def fake_quant_vars_gradient(op: KernelNode) -> Compute:
    device, (bits, narrow) = device_of(op.node), fake_quant_attributes(op)
    by_channel = "PerChannel" in op.op

    def compute(dy: GpuArray, x: GpuArray, a: Array, b: Array) -> list[GpuArray]:
        fake_quant_channels(x, a, b, by_channel)
        inside, below, above = _gradients(device, dy, x, a, b, bits, narrow)
        if by_channel:
            return [inside, *(_summed(device, each, x.shape[-1]) for each in (below, above))]
        # a block for each of 256 columns, or for fewer, and one for their sums
        return [inside, *(_whole_sum(device, each) for each in (below, above))]

    return compute


def _whole_sum(device: CudaDevice, x: GpuArray) -> GpuArray:
    """The sum of all numbers: of many, columns first."""
    columns = BLOCK if x.size % BLOCK == 0 and x.size > BLOCK else 1
    made = _summed(device, x, columns)
    return (_summed(device, made, 1) if columns > 1 else made).reshaped(())
