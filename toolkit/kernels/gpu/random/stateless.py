"""Stateless random ops: the same seeds always give the same numbers, on CPUs too.

Seeds of the first version are in host memory; keys and counters of the second on the device, where a kernel reads them.
"""

from __future__ import annotations

from toolkit.kernels.cpu.random.basic import check_bounds, output_shape
from toolkit.kernels.cpu.random.stateless import from_seed
from toolkit.kernels.cuda.device import device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.gpu.elementwise.node import number_kernel
from toolkit.kernels.gpu.random.philox import fill_random, require_generator
from toolkit.kernels.gpu.registering import cpu_compute
from toolkit.kernels.registry import Compute, KernelNode
from toolkit.kernels.types import Array

_FILLS = {
    "StatelessRandomUniform": "Uniform", "StatelessRandomNormal": "Normal",
    "StatelessTruncatedNormal": "TruncatedNormal", "StatelessRandomUniformFullInt": "FullInt",
}  # fmt: skip


@number_kernel(*_FILLS)
def stateless(op: KernelNode) -> Compute:
    device, dtype, distribution = device_of(op.node), op.attr("dtype").numpy, _FILLS[op.op]

    def compute(shape: Array, seed: Array) -> GpuArray:
        return fill_random(device, from_seed(seed), output_shape(shape), dtype, distribution)

    return compute


@number_kernel(*(f"{name}V2" for name in _FILLS))
def stateless_v2(op: KernelNode) -> Compute:
    device, dtype, distribution = device_of(op.node), op.attr("dtype").numpy, _FILLS[op.op.removesuffix("V2")]

    def compute(shape: Array, key: GpuArray, counter: GpuArray, algorithm: Array) -> GpuArray:
        require_generator(key, counter, algorithm)
        return fill_random(device, (key, counter), output_shape(shape), dtype, distribution)

    return compute


@number_kernel("StatelessRandomUniformInt")
def stateless_int(op: KernelNode) -> Compute:
    device, dtype = device_of(op.node), op.attr("dtype").numpy

    def compute(shape: Array, seed: Array, low: Array, high: Array) -> GpuArray:
        source, sizes = from_seed(seed), output_shape(shape)
        check_bounds(low, high)
        return fill_random(device, source, sizes, dtype, "Integers", int(low), int(high))

    return compute


@number_kernel("StatelessRandomUniformIntV2")
def stateless_int_v2(op: KernelNode) -> Compute:
    device, dtype = device_of(op.node), op.attr("dtype").numpy

    def compute(shape: Array, key: GpuArray, counter: GpuArray, algorithm: Array, low: Array, high: Array) -> GpuArray:
        require_generator(key, counter, algorithm)
        sizes = output_shape(shape)
        check_bounds(low, high)
        return fill_random(device, (key, counter), sizes, dtype, "Integers", int(low), int(high))

    return compute


@number_kernel("StatelessRandomGetKeyCounter", "StatelessRandomGetKeyCounterAlg", "StatelessRandomGetAlg")
def on_host(op: KernelNode) -> Compute:
    """Keys and counters are worked out in host memory."""
    return cpu_compute(op)
