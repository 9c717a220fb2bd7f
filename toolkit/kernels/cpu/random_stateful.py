"""Random ops with a state of their own: RandomUniform, RandomStandardNormal, TruncatedNormal, RandomUniformInt.

The same words as TensorFlow's CPU kernels for the same seeds, call after call (GuardedPhiloxRandom).
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable

import numpy as np

from toolkit.errors import InvalidArgumentError
from toolkit.graph.dtypes import DType
from toolkit.kernels.context import StepContext
from toolkit.kernels.random import distributions
from toolkit.kernels.random.philox import Philox
from toolkit.kernels.registry import FLOATING, INDEX, Compute, KernelNode, Kind, kernel
from toolkit.kernels.types import Array

#: blocks set aside for each output of one call, whatever the distribution takes
_RESERVED = 256


class GuardedPhilox:
    """A generator that several steps may draw from; seeds 0 and 0 mean "surprise me"."""

    def __init__(self, seed: int, seed2: int):
        if seed == 0 and seed2 == 0:
            seed, seed2 = secrets.randbits(64), secrets.randbits(64)
        self._generator = Philox.seeded(seed, seed2)
        self._lock = threading.Lock()

    def reserve(self, outputs: int, multiplier: int = _RESERVED) -> Philox:
        """A generator for one call that makes so many outputs."""
        return self.reserve_blocks(outputs * multiplier)

    def reserve_blocks(self, blocks: int) -> Philox:
        with self._lock:
            mine = self._generator.copy()
            self._generator.skip(blocks)
        return mine


def generator_of(op: KernelNode) -> Callable[[StepContext], GuardedPhilox]:
    """The generator of a random op, kept with the session under the node's name."""
    name, seed, seed2 = op.name, op.attr("seed", 0), op.attr("seed2", 0)

    def get(step: StepContext) -> GuardedPhilox:
        found = step.graph_seed_state.get(name)
        if found is None:
            found = step.graph_seed_state.setdefault(name, GuardedPhilox(seed, seed2))
        return found

    return get


def checked_shape(shape: Array) -> list[int]:
    """The dimensions a shape input asks for.

    Raises:
        InvalidArgumentError: it is not a vector of sizes.
    """
    if np.ndim(shape) != 1 and not (np.ndim(shape) == 0 and int(shape) == -1):
        raise InvalidArgumentError(f"shape must be a vector, got shape {list(np.shape(shape))}")
    sizes = [int(d) for d in np.ravel(shape)]
    if any(d < 0 for d in sizes):
        raise InvalidArgumentError(f"Dimension {min(sizes)} must be >= 0")
    return sizes


_FILLS: dict[str, Callable[[DType], distributions.Fill]] = {
    "RandomUniform": distributions.uniform,
    "RandomStandardNormal": distributions.normal,
    "TruncatedNormal": distributions.truncated_normal,
}


@kernel(*_FILLS, types={"dtype": FLOATING}, kind=Kind.STATEFUL)
def random_floats(op: KernelNode) -> Compute:
    fill = _FILLS[op.op](op.output_types[0])
    generator = generator_of(op)

    def compute(step: StepContext, shape: Array) -> Array:
        sizes = checked_shape(shape)
        count = int(np.prod(sizes, dtype=np.int64))
        return fill(generator(step).reserve(count), count).reshape(sizes)

    return compute


@kernel("RandomUniformInt", types={"Tout": INDEX}, kind=Kind.STATEFUL)
def random_uniform_int(op: KernelNode) -> Compute:
    dtype = op.output_types[0]
    generator = generator_of(op)

    def compute(step: StepContext, shape: Array, low: Array, high: Array) -> Array:
        sizes = checked_shape(shape)
        count = int(np.prod(sizes, dtype=np.int64))
        if np.ndim(low) or np.ndim(high):
            raise InvalidArgumentError("minval and maxval must be 0-D")
        if count and int(low) >= int(high):
            raise InvalidArgumentError(f"Need minval < maxval, got {int(low)} >= {int(high)}")
        fill = distributions.uniform_int(dtype, int(low), int(high))
        return fill(generator(step).reserve(count), count).reshape(sizes)

    return compute
