"""Normal numbers between bounds, with a mean and deviation for each batch (ParameterizedTruncatedNormal).

Per batch one of three samplers is chosen, as in Robert, Simulation of truncated normal variables (1995): normal
proposals, uniform proposals, or exponential ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from toolkit.errors import InternalError, InvalidArgumentError
from toolkit.kernels.random import libm
from toolkit.kernels.random.distributions import normal, per_block, uniform
from toolkit.kernels.random.philox import Philox
from toolkit.kernels.types import Array

MAX_ITERATIONS = 1000
_INSIDE_FOR_NORMAL = 1.3  # with so many deviations inside the bounds, normal proposals do

#: proposals and which are accepted, from a number of rounds at a generator; blocks per round
_Proposal = tuple[Callable[[Philox, int], tuple[Array, Array]], int]


def _check(mean: Any, stddev: Any, low: Any, high: Any) -> None:
    if not (stddev > 0 and low < high and (np.isfinite(low) or np.isfinite(high))):
        raise InvalidArgumentError("Invalid parameters")
    if not (np.isfinite(mean) and np.isfinite(stddev)):  # nothing would ever be accepted
        raise InvalidArgumentError(f"Invalid parameters: mean {mean} and deviation {stddev} must be finite")


def batch(generator: Philox, count: int, mean: Any, stddev: Any, low: Any, high: Any) -> tuple[Array, Philox]:
    """`count` samples and the generator after them; the parameters are scalars of the results' type.

    Raises:
        InvalidArgumentError: the deviation is not positive, the bounds are empty or both infinite.
        InternalError: no sample was accepted for a thousand tries.
    """
    _check(mean, stddev, low, high)
    dtype = np.asarray(mean).dtype
    kind = dtype.type
    if (np.isinf(low) and low < 0) or high < mean:  # make the one-sided bound the lower one
        low, high, stddev = high, low, -stddev
    least, most = kind((low - mean) / stddev), kind((high - mean) / stddev)
    propose, per_round = _proposal(dtype, least, most)
    parts: list[Array] = []
    missing, failures = count, 0
    width = 0
    while missing > 0:
        rounds = max(missing // 2, 16)
        values, accepted = propose(generator, rounds)
        width = values.size // rounds
        (good,) = np.nonzero(accepted)
        enough = good.size >= missing
        good = good[:missing]
        failures = failures + values.size if not good.size else 0
        if failures > MAX_ITERATIONS:
            raise InternalError("TruncatedNormal rejection sampler failed to accept a sample.")
        parts.append(values[good] * stddev + mean)
        missing -= good.size
        used = int(good[-1]) // width + 1 if enough else rounds
        generator = generator.skip(used * per_round)
    return (np.concatenate(parts) if parts else np.zeros(0, dtype)).astype(dtype), generator


def _proposal(dtype: Any, least: Any, most: Any) -> _Proposal:
    kind = dtype.type
    root = kind(np.sqrt(least * least + kind(4)))
    cutoff = kind(2) * kind(libm.exp(kind(0.5) + (least * (least - root)) / kind(4))) / (least + root)
    difference = most - least
    if (least < -_INSIDE_FOR_NORMAL and most >= 0) or (most > _INSIDE_FOR_NORMAL and least <= 0):

        def normals(generator: Philox, rounds: int) -> tuple[Array, Array]:
            values = normal(generator.blocks(rounds), dtype).reshape(-1)
            return values, (values >= least) & (values <= most)

        return normals, 1
    if difference < cutoff:
        plus = kind(0) if least < 0 else least * least

        def uniforms(generator: Philox, rounds: int) -> tuple[Array, Array]:
            numbers = uniform(generator.blocks(2 * rounds), dtype).reshape(rounds, 2, -1)
            values = numbers[:, 0] * difference + least
            accepted = numbers[:, 1] <= libm.exp((plus - values * values) / kind(2)).astype(dtype)
            return values.reshape(-1), accepted.reshape(-1)

        return uniforms, 2
    alpha = (least + root) / kind(2)

    def exponentials(generator: Philox, rounds: int) -> tuple[Array, Array]:
        numbers = uniform(generator.blocks(rounds), dtype).reshape(rounds, per_block(dtype) // 2, 2)
        with np.errstate(divide="ignore"):
            values = -libm.log(numbers[..., 0]).astype(dtype) / alpha + least
        x = alpha - values if least < alpha else np.full_like(values, least - alpha)
        accepted = (numbers[..., 1] <= libm.exp(-x * x / kind(2)).astype(dtype)) & (values < most)
        return values.reshape(-1), accepted.reshape(-1)

    return exponentials, 1
