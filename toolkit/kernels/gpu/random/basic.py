"""Random ops seeded by attributes: uniform, normal, truncated normal, integers.

The generator is the CPU's: blocks are reserved on the host, as many as there, and the numbers are the same; in a
recorded step each replay reserves them (`toolkit.kernels.cuda.draws`).
"""

from __future__ import annotations

import math

from toolkit.errors import InvalidArgumentError
from toolkit.kernels.context import StepContext
from toolkit.kernels.cpu.common import np, shape_text
from toolkit.kernels.cpu.random.basic import RESERVED, check_bounds, guarded, output_shape
from toolkit.kernels.cuda.device import device_of
from toolkit.kernels.cuda.draws import drawn
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.gpu.elementwise.node import number_kernel
from toolkit.kernels.gpu.random.philox import fill_random
from toolkit.kernels.registry import Compute, KernelNode, Kind
from toolkit.kernels.types import Array

_FLOATS = {"RandomUniform": "Uniform", "RandomStandardNormal": "Normal", "TruncatedNormal": "TruncatedNormal"}


@number_kernel(*_FLOATS, kind=Kind.STATEFUL)
def random_float(op: KernelNode) -> Compute:
    device, generator, dtype = device_of(op.node), guarded(op), op.attr("dtype").numpy
    distribution = _FLOATS[op.op]

    def compute(step: StepContext, shape: Array) -> GpuArray:
        sizes = output_shape(shape)
        source = drawn(device, generator(step), math.prod(sizes) * RESERVED)
        return fill_random(device, source, sizes, dtype, distribution)

    return compute


@number_kernel("RandomUniformInt", kind=Kind.STATEFUL)
def random_uniform_int(op: KernelNode) -> Compute:
    device, generator, dtype = device_of(op.node), guarded(op), op.attr("Tout").numpy

    def compute(step: StepContext, shape: Array, low: Array, high: Array) -> GpuArray:
        sizes = output_shape(shape)
        for name, value in (("minval", low), ("maxval", high)):
            if np.ndim(value) != 0:
                raise InvalidArgumentError(f"{name} must be 0-D, got shape {shape_text(value)}")
        if 0 in sizes:  # whatever the bounds
            return device.empty(sizes, dtype)
        check_bounds(low, high)
        source = drawn(device, generator(step), math.prod(sizes) * RESERVED)
        return fill_random(device, source, sizes, dtype, "Integers", int(low), int(high))

    return compute
