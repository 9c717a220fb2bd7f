"""Binomial random numbers, all outputs at once.

Means below 10 add geometric numbers until they exceed the count; others use transformed rejection (Hoermann 1993,
"The generation of binomial random variates").
"""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import math

import numpy as np

from toolkit.kernels.random import libm
from toolkit.kernels.random.distributions import uniform
from toolkit.kernels.random.philox import Philox
from toolkit.kernels.random.rejection import RESERVED, Buffer, Streams, rounds
from toolkit.kernels.types import Array

_MEAN_FOR_REJECTION = 10
_RESERVED_INVERSION = 42  # blocks set aside for each output of a small mean
_DOUBLE = np.dtype(np.float64)
#: log(k!) less Stirling's approximation, for k below 10
_TAILS = np.array([math.lgamma(k + 1) - ((k + 0.5) * math.log(k + 1) - (k + 1) + 0.5 * math.log(2 * math.pi))
                   for k in range(10)])  # fmt: skip


def binomial(generator: Philox, counts: Array, probabilities: Array, samples: int) -> Array:
    """float64 [samples, n]: so many for each count and probability, [n] of one floating type.

    No trials or no probability give 0, a probability of 1 and more the count, and NaN NaN.
    """
    kind = counts.dtype.type
    trials = counts.astype(np.float64)
    reflected = probabilities > kind(0.5)
    chance = np.where(reflected, kind(1) - probabilities, probabilities).astype(counts.dtype)
    none = (trials <= 0) | (probabilities <= 0)
    every = ~none & (probabilities >= 1)
    drawn = ~none & ~every & ~np.isnan(probabilities) & ~np.isnan(trials)
    large = counts * chance >= kind(_MEAN_FOR_REJECTION)
    out = np.full((counts.size, samples), np.nan)
    out[none] = 0
    out[every] = trials[every, None]
    for which, sample in ((drawn & ~large, _inversion), (drawn & large, _transformed_rejection)):
        (rows,) = np.nonzero(which)
        places = (rows[:, None] * samples + np.arange(samples)).reshape(-1)
        n = np.repeat(trials[rows], samples)
        values = sample(generator, places, n, np.repeat(chance[rows].astype(np.float64), samples))
        out[rows] = np.where(np.repeat(reflected[rows], samples), n - values, values).reshape(-1, samples)
    return out.T


def _inversion(generator: Philox, places: Array, n: Array, p: Array) -> Array:
    streams = Streams(generator, places, _RESERVED_INVERSION)
    uniforms = Buffer(streams, uniform, _DOUBLE)
    scale = libm.log1p(-p)
    out = np.zeros(places.size)
    where = np.arange(places.size)
    total = np.zeros(places.size)
    for number in rounds("counts and probabilities"):
        if not where.size:
            break
        with np.errstate(divide="ignore"):
            total = total + np.ceil(libm.log(uniforms.take(np.arange(where.size))) / scale)
        done = total > n
        out[where[done]] = number
        (left,) = np.nonzero(~done)
        where, n, scale, total = where[left], n[left], scale[left], total[left]
        for part in (streams, uniforms):
            part.keep(left)
    return out


def _transformed_rejection(generator: Philox, places: Array, n: Array, p: Array) -> Array:
    streams = Streams(generator, places, RESERVED)
    uniforms = Buffer(streams, uniform, _DOUBLE)
    deviation = np.sqrt(n * p * (1 - p))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    alpha = (2.83 + 5.1 / b) * deviation
    out = np.zeros(places.size)
    where = np.arange(places.size)
    for _ in rounds("counts and probabilities"):
        if not where.size:
            break
        everyone = np.arange(where.size)
        u = uniforms.take(everyone) - 0.5
        v = uniforms.take(everyone)
        shifted = 0.5 - np.abs(u)
        with np.errstate(all="ignore"):
            k = np.floor((2 * a / shifted + b) * u + (n * p + 0.5))
            quick = (shifted >= 0.07) & (v <= 0.92 - 4.2 / b)
            ratio = libm.log(v * alpha / (a / (shifted * shifted) + b))
            done = quick | ((k >= 0) & (k <= n) & (ratio <= _log_ratio(k, n, p)))
        out[where[done]] = k[done]
        (left,) = np.nonzero(~done)
        where, n, p, a, b, alpha = (part[left] for part in (where, n, p, a, b, alpha))
        for part in (streams, uniforms):
            part.keep(left)
    return out


def _log_ratio(k: Array, n: Array, p: Array) -> Array:
    """The logarithm of P(k) / P(mode)."""
    odds = p / (1 - p)
    mode = np.floor((n + 1) * p)
    return (
        (mode + 0.5) * libm.log((mode + 1) / (odds * (n - mode + 1)))
        + (n + 1) * libm.log((n - mode + 1) / (n - k + 1))
        + (k + 0.5) * libm.log(odds * (n - k + 1) / (k + 1))
        + _tail(mode)
        + _tail(n - mode)
        - _tail(k)
        - _tail(n - k)
    )


def _tail(k: Array) -> Array:
    square = (k + 1) * (k + 1)
    series = (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / (k + 1)
    return np.where(k <= 9, _TAILS[np.clip(np.nan_to_num(k), 0, 9).astype(np.int64)], series)
