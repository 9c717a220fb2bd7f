"""Distributions that reject samples: gamma and Poisson, all outputs at once.

Every output owns 256 blocks of the generator and takes from them what it needs, so that outputs do not depend on
each other; within a block TensorFlow uses the numbers from the last to the first.
"""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from toolkit.errors import InvalidArgumentError
from toolkit.kernels.random import libm
from toolkit.kernels.random.distributions import normal, per_block, uniform
from toolkit.kernels.random.philox import Philox
from toolkit.kernels.types import Array

RESERVED = 256
_DOUBLE = np.dtype(np.float64)


#: rounds of tries; more than every third is accepted, of parameters for which there are samples at all
MOST_ROUNDS = 1000


def rounds(what: str) -> Iterator[int]:
    """Numbers the rounds of a sampler, which leaves when all outputs are drawn.

    Raises:
        InvalidArgumentError: in place of a round more, where no sample is ever accepted.
    """
    yield from range(MOST_ROUNDS)
    raise InvalidArgumentError(f"no sample was accepted in {MOST_ROUNDS} tries: the {what} cannot be drawn from")


class Streams:
    """One position in the generator for each output that is still being drawn, `reserved` blocks apart."""

    def __init__(self, generator: Philox, outputs: Array, reserved: int = RESERVED):
        self.generator = generator
        self.next = outputs.astype(np.uint64) * np.uint64(reserved)

    def blocks(self, which: Array) -> Array:
        out = self.generator.blocks_at(self.next[which])
        self.next[which] += np.uint64(1)
        return out

    def keep(self, which: Array) -> None:
        self.next = self.next[which]


class Buffer:
    """Numbers of one distribution for each stream, used up from the back."""

    def __init__(self, streams: Streams, make: Callable[[Array, Any], Array], dtype: Any):
        self.streams = streams
        self.make = make
        self.dtype = dtype
        self.size = per_block(dtype)
        self.values = np.zeros((streams.next.size, self.size), dtype)
        self.left = np.zeros(streams.next.size, np.int64)

    def take(self, which: Array) -> Array:
        """The next number of each of these streams."""
        empty = which[self.left[which] == 0]
        if empty.size:
            self.values[empty] = self.make(self.streams.blocks(empty), self.dtype)
            self.left[empty] = self.size
        self.left[which] -= 1
        return self.values[which, self.left[which]]

    def keep(self, which: Array) -> None:
        self.values, self.left = self.values[which], self.left[which]


def gamma(generator: Philox, alpha: Array, count: int) -> Array:
    """float64 [count, n]: `count` samples for each shape parameter in `alpha` [n], of scale 1.

    Marsaglia and Tsang, A simple method for generating gamma variables (2000); exponential where alpha is 1.
    """
    flat = np.repeat(alpha.astype(np.float64), count)
    out = np.empty(flat.size)
    (simple,) = np.nonzero(flat == 1)
    if simple.size:
        streams = Streams(generator, simple)
        out[simple] = -libm.log1p(-Buffer(streams, uniform, _DOUBLE).take(np.arange(simple.size)))
    (place,) = np.nonzero(flat != 1)
    streams = Streams(generator, place)
    normals, uniforms = Buffer(streams, normal, _DOUBLE), Buffer(streams, uniform, _DOUBLE)
    alphas = flat[place]
    d = alphas + np.where(alphas < 1, 2 / 3, -1 / 3)
    c = 1 / 3 / np.sqrt(d)
    for _ in rounds("shape parameters"):
        if not place.size:
            break
        everyone = np.arange(place.size)
        x = normals.take(everyone)
        v = 1 + c * x
        (tried,) = np.nonzero(~(v <= 0))  # NaN is accepted below, as in TensorFlow, and is the sample
        accepted = np.zeros(place.size, bool)
        if tried.size:
            u, x, cube, dd = uniforms.take(tried), x[tried], v[tried] * v[tried] * v[tried], d[tried]
            squeeze = u < 1 - 0.0331 * (x * x) * (x * x)
            good = squeeze | (libm.log(u) < 0.5 * x * x + dd * (1 - cube + libm.log(cube)))
            chosen = tried[good]
            accepted[chosen] = True
            result = dd[good] * cube[good]
            (small,) = np.nonzero(alphas[chosen] < 1)
            if small.size:
                result[small] *= libm.power(uniforms.take(chosen[small]), 1 / alphas[chosen[small]])
            out[place[chosen]] = result
        (left,) = np.nonzero(~accepted)
        place, alphas, d, c = place[left], alphas[left], d[left], c[left]
        for part in (streams, normals, uniforms):
            part.keep(left)
    return out.reshape(-1, count).T


def poisson(generator: Philox, rate: Array, count: int, highest: float) -> Array:
    """float64 [count, n]: `count` samples for each rate in `rate` [n], none above `highest`.

    Small rates multiply uniforms (Knuth); rates from 10 on use transformed rejection (Hoermann 1993). An infinite
    rate gives infinity; negative ones and NaN give NaN.
    """
    flat = np.repeat(rate.astype(np.float64), count)
    out = np.where(flat == np.inf, np.inf, np.nan)
    (small,) = np.nonzero((flat >= 0) & (flat < 10))
    (large,) = np.nonzero(np.isfinite(flat) & (flat >= 10))
    _small_rates(generator, flat, small, out)
    _large_rates(generator, flat, large, out, highest)
    return out.reshape(-1, count).T


def _small_rates(generator: Philox, flat: Array, place: Array, out: Array) -> None:
    streams = Streams(generator, place)
    uniforms = Buffer(streams, uniform, _DOUBLE)
    limit = libm.exp(-flat[place])
    product = np.ones(place.size)
    for number in rounds("rates"):
        if not place.size:
            break
        product = product * uniforms.take(np.arange(place.size))
        done = product <= limit
        out[place[done]] = number
        (left,) = np.nonzero(~done)
        place, limit, product = place[left], limit[left], product[left]
        for part in (streams, uniforms):
            part.keep(left)


def _large_rates(generator: Philox, flat: Array, place: Array, out: Array, highest: float) -> None:
    streams = Streams(generator, place)
    uniforms = Buffer(streams, uniform, _DOUBLE)
    rate = flat[place]
    log_rate = libm.log(rate)
    b = 0.931 + 2.53 * np.sqrt(rate)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    for _ in rounds("rates"):
        if not place.size:
            break
        everyone = np.arange(place.size)
        u = uniforms.take(everyone) - 0.5
        v = uniforms.take(everyone)
        shifted = 0.5 - np.abs(u)
        with np.errstate(all="ignore"):
            k = np.floor((2 * a / shifted + b) * u + rate + 0.43)
            quick = (shifted >= 0.07) & (v <= 0.9277 - 3.6224 / (b - 2))
            never = (k < 0) | ((shifted < 0.013) & (v > shifted))
            s = libm.log(v * inverse_alpha / (a / (shifted * shifted) + b))
            t = -rate + k * log_rate - _log_factorial(k)
            done = (k <= highest) & (quick | (~never & (s <= t)))
        out[place[done]] = k[done]
        (left,) = np.nonzero(~done)
        place, rate, log_rate, a, b, inverse_alpha = (
            part[left] for part in (place, rate, log_rate, a, b, inverse_alpha)
        )
        for part in (streams, uniforms):
            part.keep(left)


def _log_factorial(k: Array) -> Array:
    from toolkit.kernels.cpu.math.special_gamma import lgamma

    return lgamma(k + 1)
