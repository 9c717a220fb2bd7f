"""Random ops whose generator lives in a variable (tf.random.Generator): Stateful*, RngSkip, RngReadAndSkip.

The state is int64 [3 or more]: two words of counter, one of key. An op of V1 (StatefulStandardNormal) keeps the
algorithm's number in front.
"""

from __future__ import annotations

import math
import secrets
from typing import Any

from toolkit.errors import InvalidArgumentError, UnimplementedError
from toolkit.graph import dtypes
from toolkit.kernels.context import StepContext
from toolkit.kernels.cpu.common import integer, np, shape_text
from toolkit.kernels.cpu.random.basic import FILLS, RESERVED, check_bounds, fill_integers, output_shape
from toolkit.kernels.cpu.random.stateless import is_philox
from toolkit.kernels.random.philox import Philox
from toolkit.kernels.registry import FLOATING, Compute, KernelNode, Kind, kernel
from toolkit.kernels.resources import variables
from toolkit.kernels.types import Array

_U64 = (1 << 64) - 1
_THREE_FRY = 2
_FULL = {dtypes.int32, dtypes.int64, dtypes.uint32, dtypes.uint64}


def advance(step: StepContext, handle: Any, algorithm: Array | None, samples: int) -> tuple[Philox, Array]:
    """Take the variable's generator and move it on by so many samples; also the state that was found.

    Raises:
        InvalidArgumentError: the state has another type, rank or size, or the algorithm is not Philox.
    """
    return advance_cell(variables.cell_of(step, handle, dtypes.int64), algorithm, samples)


def advance_cell(cell: variables.Cell, algorithm: Array | None, samples: int) -> tuple[Philox, Array]:
    """Likewise, of a variable that was found."""
    with cell.lock:
        state = variables.read(cell)
        if state.ndim != 1:
            raise InvalidArgumentError(f"RNG state must have one and only one dimension, not {state.ndim}")
        skip = 1 if algorithm is None else 0
        if state.size < 1:
            raise InvalidArgumentError("Size of tensor must be at least 1")
        number = state[0] if algorithm is None else algorithm
        if np.ndim(number) != 0:
            raise InvalidArgumentError(f"algorithm must have shape [], not {shape_text(number)}")
        if int(number) == _THREE_FRY:
            raise UnimplementedError("Non-XLA devices don't support the ThreeFry algorithm.")
        if not is_philox(number):
            raise InvalidArgumentError(f"Unsupported algorithm id: {int(number)}")
        if state.size < skip + 3:
            raise InvalidArgumentError(
                f"For the Philox algorithm, the size of state must be at least {skip + 3}; got {state.size}"
            )
        low, high, key = (int(word) & _U64 for word in state[skip : skip + 3])
        found = Philox(key, high << 64 | low)
        after = found.skip(samples * RESERVED).counter
        fresh = state.copy()
        fresh[skip : skip + 2] = np.array([after & _U64, after >> 64], np.uint64).view(np.int64)
        cell.value = fresh
    return found, state


_FLOATS = {
    "StatefulStandardNormalV2": "Normal", "StatefulUniform": "Uniform", "StatefulTruncatedNormal": "TruncatedNormal",
}  # fmt: skip


@kernel(*_FLOATS, types={"dtype": FLOATING}, kind=Kind.STATEFUL)
@kernel("StatefulUniformFullInt", types={"dtype": _FULL}, kind=Kind.STATEFUL)
def stateful_fill(op: KernelNode) -> Compute:
    dtype, fill = op.attr("dtype").numpy, FILLS[_FLOATS.get(op.op, "FullInt")]

    def compute(step: StepContext, handle: Any, algorithm: Array, shape: Array) -> Array:
        sizes = output_shape(shape)
        generator, _ = advance(step, handle, algorithm, math.prod(sizes))
        return fill(generator, sizes, dtype)

    return compute


@kernel("StatefulStandardNormal", types={"dtype": FLOATING}, kind=Kind.STATEFUL)
def stateful_standard_normal(op: KernelNode) -> Compute:
    dtype = op.attr("dtype").numpy

    def compute(step: StepContext, handle: Any, shape: Array) -> Array:
        sizes = output_shape(shape)
        generator, _ = advance(step, handle, None, math.prod(sizes))
        return FILLS["Normal"](generator, sizes, dtype)

    return compute


@kernel("StatefulUniformInt", types={"dtype": _FULL}, kind=Kind.STATEFUL)
def stateful_uniform_int(op: KernelNode) -> Compute:
    def compute(step: StepContext, handle: Any, algorithm: Array, shape: Array, low: Array, high: Array) -> Array:
        check_bounds(low, high)
        sizes = output_shape(shape)
        generator, _ = advance(step, handle, algorithm, math.prod(sizes))
        return fill_integers(generator, sizes, low, high)

    return compute


@kernel("RngSkip", kind=Kind.STATEFUL)
def rng_skip(op: KernelNode) -> Compute:
    def compute(step: StepContext, handle: Any, algorithm: Array, delta: Array) -> None:
        advance(step, handle, algorithm, integer(delta, "delta"))

    return compute


@kernel("RngReadAndSkip", kind=Kind.STATEFUL)
def rng_read_and_skip(op: KernelNode) -> Compute:
    """The state before skipping, int64 [3]."""

    def compute(step: StepContext, handle: Any, algorithm: Array, delta: Array) -> Array:
        return advance(step, handle, algorithm, integer(delta, "delta"))[1][:3].copy()

    return compute


@kernel("NonDeterministicInts", types={"dtype": _FULL}, kind=Kind.STATEFUL)
def non_deterministic_ints(op: KernelNode) -> Compute:
    dtype = op.attr("dtype").numpy

    def compute(step: StepContext, shape: Array) -> Array:
        sizes = output_shape(shape)
        raw = secrets.token_bytes(math.prod(sizes) * dtype.itemsize)
        return np.frombuffer(raw, dtype).reshape(sizes)

    return compute
