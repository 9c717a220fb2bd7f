"""Random ops whose generator lives in a variable (tf.random.Generator): Stateful*, RngSkip, RngReadAndSkip.

The state is worked on in host memory, where it stays: three numbers that the next op wants there again. In a recorded
step each replay moves it on (`toolkit.kernels.cuda.draws`).
"""

from __future__ import annotations

import math
from typing import Any

from toolkit.graph import dtypes
from toolkit.kernels.context import StepContext
from toolkit.kernels.cpu.common import integer, np
from toolkit.kernels.cpu.random.basic import RESERVED, check_bounds, output_shape
from toolkit.kernels.cpu.random.generator import advance_cell
from toolkit.kernels.cuda.device import CudaDevice, device_of
from toolkit.kernels.cuda.draws import drawn
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.gpu.elementwise.node import number_kernel
from toolkit.kernels.gpu.random.philox import fill_random
from toolkit.kernels.random.philox import Philox
from toolkit.kernels.registry import Compute, KernelNode, Kind, kernel
from toolkit.kernels.resources import variables
from toolkit.kernels.types import Array

_FILLS = {
    "StatefulStandardNormalV2": "Normal", "StatefulUniform": "Uniform", "StatefulTruncatedNormal": "TruncatedNormal",
    "StatefulUniformFullInt": "FullInt",
}  # fmt: skip
_U64 = (1 << 64) - 1


class VariableGenerator:
    """The generator in a variable."""

    def __init__(self, step: StepContext, handle: Any, algorithm: Array):
        self._cell = variables.cell_of(step, handle, dtypes.int64)
        self._algorithm = algorithm

    def __eq__(self, other: object) -> bool:
        """Two are one generator if they are in one variable."""
        return isinstance(other, VariableGenerator) and other._cell is self._cell

    def __hash__(self) -> int:
        return id(self._cell)

    def take(self, blocks: int) -> tuple[int, int]:
        """See `toolkit.kernels.cuda.draws.Source`; a sample has so many blocks.

        Raises:
            InvalidArgumentError: the variable holds no state of a generator.
        """
        found, _ = advance_cell(self._cell, self._algorithm, blocks // RESERVED)
        return found.key, found.counter


def _drawn(device: CudaDevice, step: StepContext, handle: Any, algorithm: Array, samples: int) -> Any:
    return drawn(device, VariableGenerator(step, handle, algorithm), samples * RESERVED)


@number_kernel(*_FILLS, kind=Kind.STATEFUL)
def stateful_fill(op: KernelNode) -> Compute:
    device, dtype, distribution = device_of(op.node), op.attr("dtype").numpy, _FILLS[op.op]

    def compute(step: StepContext, handle: Any, algorithm: Array, shape: Array) -> GpuArray:
        sizes = output_shape(shape)
        source = _drawn(device, step, handle, algorithm, math.prod(sizes))
        return fill_random(device, source, sizes, dtype, distribution)

    return compute


@number_kernel("StatefulUniformInt", kind=Kind.STATEFUL)
def stateful_uniform_int(op: KernelNode) -> Compute:
    device, dtype = device_of(op.node), op.attr("dtype").numpy

    def compute(step: StepContext, handle: Any, algorithm: Array, shape: Array, low: Array, high: Array) -> GpuArray:
        check_bounds(low, high)
        sizes = output_shape(shape)
        source = _drawn(device, step, handle, algorithm, math.prod(sizes))
        return fill_random(device, source, sizes, dtype, "Integers", int(low), int(high))

    return compute


@kernel("RngSkip", device="GPU", kind=Kind.STATEFUL, label="simt")
def rng_skip(op: KernelNode) -> Compute:
    """Nothing of it is on the device, but each replay has to do it."""
    device = device_of(op.node)

    def compute(step: StepContext, handle: Any, algorithm: Array, delta: Array) -> None:
        _drawn(device, step, handle, algorithm, integer(delta, "delta"))

    return compute


@number_kernel("RngReadAndSkip", kind=Kind.STATEFUL)
def rng_read_and_skip(op: KernelNode) -> Compute:
    """The state before skipping, int64 [3]: two words of the counter, one of the key."""
    device = device_of(op.node)

    def compute(step: StepContext, handle: Any, algorithm: Array, delta: Array) -> GpuArray:
        found = _drawn(device, step, handle, algorithm, integer(delta, "delta"))
        if isinstance(found, Philox):
            words = [found.counter & _U64, found.counter >> 64, found.key]
            return device.to_device(np.array(words, np.uint64).view(np.int64))
        key, counter = found
        state = device.empty((3,), np.int64)
        device.context.copy(state.address, counter.address, counter.nbytes, device.compute)
        device.context.copy(state.address + counter.nbytes, key.address, key.nbytes, device.compute)
        return state

    return compute
