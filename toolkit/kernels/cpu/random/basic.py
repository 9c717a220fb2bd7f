"""Random ops seeded by attributes: uniform, normal, truncated normal, integers, shuffle, multinomial.

The generator of a node starts from its (seed, seed2) and moves on with every execution, for the whole session:
its state is the node's entry in `step.graph_seed_state`. Seeds of zero draw from the system's entropy.
"""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from toolkit.errors import InvalidArgumentError
from toolkit.kernels.context import StepContext
from toolkit.kernels.cpu.common import shape_text
from toolkit.kernels.random import distributions
from toolkit.kernels.random.philox import GuardedPhilox, Philox
from toolkit.kernels.registry import FLOATING, INDEX, Compute, KernelNode, Kind, kernel
from toolkit.kernels.types import Array

#: words set aside for each result, so that rejection never runs into the next one
RESERVED = 256


def output_shape(shape: Array) -> tuple[int, ...]:
    """A shape tensor as a tuple.

    Raises:
        InvalidArgumentError: it is no vector, or has a negative size.
    """
    if np.ndim(shape) != 1:
        raise InvalidArgumentError(f"shape must be a vector of {{int32,int64}}, got shape {shape_text(shape)}")
    if np.asarray(shape).dtype.kind not in "iu":  # some ops' definitions allow any type
        raise InvalidArgumentError(f"shape must be of int32 or int64, not {np.asarray(shape).dtype}")
    sizes = tuple(int(n) for n in shape)
    if any(n < 0 for n in sizes):
        raise InvalidArgumentError(f"Dimension {min(sizes)} must be >= 0 in the shape {list(sizes)}")
    return sizes


def guarded(op: KernelNode) -> Callable[[StepContext], GuardedPhilox]:
    """The node's own generator, made on first use in a session."""
    seed, seed2 = op.attr("seed"), op.attr("seed2")
    name = op.name

    def generator(step: StepContext) -> GuardedPhilox:
        state = step.graph_seed_state
        found = state.get(name)
        return state.setdefault(name, GuardedPhilox(seed, seed2)) if found is None else found

    return generator


FILLS: dict[str, Callable[[Philox, tuple[int, ...], Any], Array]] = {
    "Uniform": lambda generator, shape, dtype: distributions.fill(generator, shape, dtype, distributions.uniform),
    "Normal": lambda generator, shape, dtype: distributions.fill(generator, shape, dtype, distributions.normal),
    "TruncatedNormal": distributions.truncated_normal,
    "FullInt": lambda generator, shape, dtype: distributions.fill(generator, shape, dtype, distributions.full_integers),
}
_STATEFUL = {"RandomUniform": "Uniform", "RandomStandardNormal": "Normal", "TruncatedNormal": "TruncatedNormal"}


@kernel(*_STATEFUL, types={"dtype": FLOATING}, kind=Kind.STATEFUL)
def random_float(op: KernelNode) -> Compute:
    generator, dtype = guarded(op), op.attr("dtype").numpy
    fill = FILLS[_STATEFUL[op.op]]

    def compute(step: StepContext, shape: Array) -> Array:
        sizes = output_shape(shape)
        return fill(generator(step).reserve(math.prod(sizes) * RESERVED), sizes, dtype)

    return compute


def fill_integers(generator: Philox, shape: tuple[int, ...], low: Array, high: Array) -> Array:
    """Integers in [low, high); the bounds are scalars."""
    dtype = np.asarray(low).dtype
    return distributions.fill(
        generator, shape, dtype, lambda blocks, _: distributions.integers(blocks, np.asarray(low), np.asarray(high))
    )


def check_bounds(low: Array, high: Array) -> None:
    """Refuse bounds that are no scalars or leave nothing between them.

    Raises:
        InvalidArgumentError: so.
    """
    for name, value in (("minval", low), ("maxval", high)):
        if np.ndim(value) != 0:
            raise InvalidArgumentError(f"{name} must be 0-D, got shape {shape_text(value)}")
    if not low < high:
        raise InvalidArgumentError(f"Need minval < maxval, got {low} >= {high}")


@kernel("RandomUniformInt", types={"Tout": INDEX}, kind=Kind.STATEFUL)
def random_uniform_int(op: KernelNode) -> Compute:
    generator = guarded(op)

    def compute(step: StepContext, shape: Array, low: Array, high: Array) -> Array:
        sizes = output_shape(shape)
        for name, value in (("minval", low), ("maxval", high)):
            if np.ndim(value) != 0:
                raise InvalidArgumentError(f"{name} must be 0-D, got shape {shape_text(value)}")
        if 0 in sizes:  # whatever the bounds
            return np.zeros(sizes, np.asarray(low).dtype)
        check_bounds(low, high)
        return fill_integers(generator(step).reserve(math.prod(sizes) * RESERVED), sizes, low, high)

    return compute


def shuffled(value: Array, words: Callable[[int], Array]) -> Array:
    """Rows in random order, by exchanging each with one at or after it; `words` gives so many random uint32."""
    if value.size <= 1 or value.shape[0] <= 1:
        return value
    rows = value.shape[0]
    # each draw is over what is left, so the exchanges have to be done in order
    offsets = words(rows - 1) % np.arange(rows, 1, -1).astype(np.uint32)
    chosen: list[int] = (np.arange(rows - 1) + offsets).tolist()
    order = list(range(rows))
    for i, j in enumerate(chosen):
        order[i], order[j] = order[j], order[i]
    return value[order]


@kernel("RandomShuffle", kind=Kind.STATEFUL)
def random_shuffle(op: KernelNode) -> Compute:
    generator = guarded(op)

    def compute(step: StepContext, value: Array) -> Array:
        return shuffled(value, lambda count: generator(step).reserve(-(-count // 4)).words(count))

    return compute


def check_multinomial(logits: Array, samples: Array) -> int:
    """The number of samples.

    Raises:
        InvalidArgumentError: a wrong rank, no classes, a negative number.
    """
    if logits.ndim != 2:
        raise InvalidArgumentError(f"Input logits should be a matrix, got shape: {shape_text(logits)}")
    if np.ndim(samples) != 0:
        raise InvalidArgumentError(f"Input num_samples should be a scalar, got shape: {shape_text(samples)}")
    count = int(samples)
    if count < 0:
        raise InvalidArgumentError(f"num_samples should be nonnegative, got {count}")
    if logits.shape[1] <= 0:
        raise InvalidArgumentError(f"num_classes should be positive, got {logits.shape[1]}")
    return count


def multinomial(generator: Philox, logits: Array, count: int, dtype: Any) -> Array:
    """Classes [batch, count] drawn with probabilities softmax(logits); logits that are not finite count as -inf."""
    batch = logits.shape[0]
    wide = logits.astype(np.float64)
    finite = np.isfinite(wide)
    highest = np.where(finite, wide, -np.inf).max(axis=1, keepdims=True) if batch else np.zeros((0, 1))
    weights = np.where(finite, np.exp(np.where(finite, wide, 0) - np.where(np.isfinite(highest), highest, 0)), 0)
    cumulative = np.cumsum(weights, axis=1)
    pairs = generator.words(2 * batch * count).reshape(-1, 2)
    points = distributions.uniform(np.concatenate([pairs, pairs], axis=1), np.dtype(np.float64))[:, 0]
    points = points.reshape(batch, count) * cumulative[:, -1:]
    rows = [np.searchsorted(cumulative[b], points[b], side="right") for b in range(batch)]
    return np.array(rows, dtype).reshape(batch, count)


@kernel("Multinomial", types={"T": FLOATING, "output_dtype": INDEX}, kind=Kind.STATEFUL)
def random_multinomial(op: KernelNode) -> Compute:
    generator, dtype = guarded(op), op.attr("output_dtype").numpy

    def compute(step: StepContext, logits: Array, samples: Array) -> Array:
        count = check_multinomial(logits, samples)
        if logits.shape[0] * count == 0:
            return np.zeros((logits.shape[0], count), dtype)
        reserved = -(-count // 4) * 4 * 2 * logits.shape[0] * RESERVED  # doubles take two words
        return multinomial(generator(step).reserve(reserved), logits, count, dtype)

    return compute
