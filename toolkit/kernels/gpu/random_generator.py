"""Random ops whose generator lives in a variable (tf.random.Generator): Stateful*, RngSkip, RngReadAndSkip.

The state is worked on in host memory, where it stays: three numbers that the next op wants there again.
"""

from __future__ import annotations

import math
from typing import Any

from toolkit.kernels.context import StepContext
from toolkit.kernels.cpu.common import integer
from toolkit.kernels.cpu.random_basic import check_bounds, output_shape
from toolkit.kernels.cpu.random_generator import advance
from toolkit.kernels.cuda.device import device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.gpu.elementwise_node import number_kernel
from toolkit.kernels.gpu.philox import fill_random
from toolkit.kernels.registry import Compute, KernelNode, Kind
from toolkit.kernels.types import Array

_FILLS = {
    "StatefulStandardNormalV2": "Normal", "StatefulUniform": "Uniform", "StatefulTruncatedNormal": "TruncatedNormal",
    "StatefulUniformFullInt": "FullInt",
}  # fmt: skip


@number_kernel(*_FILLS, kind=Kind.STATEFUL)
def stateful_fill(op: KernelNode) -> Compute:
    device, dtype, distribution = device_of(op.node), op.attr("dtype").numpy, _FILLS[op.op]

    def compute(step: StepContext, handle: Any, algorithm: Array, shape: Array) -> GpuArray:
        sizes = output_shape(shape)
        source, _ = advance(step, handle, algorithm, math.prod(sizes))
        return fill_random(device, source, sizes, dtype, distribution)

    return compute


@number_kernel("StatefulUniformInt", kind=Kind.STATEFUL)
def stateful_uniform_int(op: KernelNode) -> Compute:
    device, dtype = device_of(op.node), op.attr("dtype").numpy

    def compute(step: StepContext, handle: Any, algorithm: Array, shape: Array, low: Array, high: Array) -> GpuArray:
        check_bounds(low, high)
        sizes = output_shape(shape)
        source, _ = advance(step, handle, algorithm, math.prod(sizes))
        return fill_random(device, source, sizes, dtype, "Integers", int(low), int(high))

    return compute


@number_kernel("RngSkip", kind=Kind.STATEFUL)
def rng_skip(op: KernelNode) -> Compute:
    def compute(step: StepContext, handle: Any, algorithm: Array, delta: Array) -> None:
        advance(step, handle, algorithm, integer(delta, "delta"))

    return compute


@number_kernel("RngReadAndSkip", kind=Kind.STATEFUL)
def rng_read_and_skip(op: KernelNode) -> Compute:
    """The state before skipping, int64 [3]."""
    device = device_of(op.node)

    def compute(step: StepContext, handle: Any, algorithm: Array, delta: Array) -> GpuArray:
        return device.to_device(advance(step, handle, algorithm, integer(delta, "delta"))[1][:3])

    return compute
