"""Gamma, Poisson and bounded normal random numbers, with seeds of the op or given seeds."""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import math
from typing import Any

from toolkit.errors import InvalidArgumentError
from toolkit.graph import dtypes
from toolkit.kernels.context import StepContext
from toolkit.kernels.cpu.common import np, require, shape_text
from toolkit.kernels.cpu.random.basic import guarded, output_shape
from toolkit.kernels.cpu.random.stateless import from_key, from_seed
from toolkit.kernels.random import parameterized
from toolkit.kernels.random.philox import Philox
from toolkit.kernels.random.rejection import RESERVED, gamma, poisson
from toolkit.kernels.registry import Compute, KernelNode, Kind, kernel
from toolkit.kernels.types import Array

_FLOATS = {dtypes.float16, dtypes.float32, dtypes.float64}
_RATES = _FLOATS | {dtypes.int32, dtypes.int64}


def _gamma(generator: Philox, alpha: Array, count: int, shape: tuple[int, ...]) -> Array:
    samples = gamma(generator, alpha.ravel(), count).reshape(shape).astype(alpha.dtype)
    if samples.dtype.itemsize > 2:  # TensorFlow computes with subnormal numbers flushed to zero
        samples[samples < np.finfo(samples.dtype).tiny] = 0
    return samples


@kernel("RandomGamma", types={"T": _FLOATS}, kind=Kind.STATEFUL)
def random_gamma(op: KernelNode) -> Compute:
    generator = guarded(op)

    def compute(step: StepContext, shape: Array, alpha: Array) -> Array:
        lead = output_shape(shape)
        count, sizes = math.prod(lead), (*lead, *alpha.shape)
        if count * alpha.size == 0:
            return np.zeros(sizes, alpha.dtype)
        return _gamma(generator(step).reserve(count * alpha.size * RESERVED), alpha, count, sizes)

    return compute


def stateless_count(sizes: tuple[int, ...], parameter: Any, what: str) -> int:
    """How many samples each parameter has in a shape that ends with the parameters' shape."""
    require(
        sizes[len(sizes) - parameter.ndim :] == parameter.shape and len(sizes) >= parameter.ndim,
        f"Shape passed in must end with broadcasted shape: {list(sizes)} vs. {shape_text(parameter)}",
    )
    require(parameter.size > 0, f"Input {what} should have non-zero element count, got: {parameter.size}")
    return math.prod(sizes) // parameter.size


@kernel("StatelessRandomGammaV2", types={"dtype": _FLOATS})
def stateless_gamma_v2(op: KernelNode) -> Compute:
    return lambda shape, seed, alpha: _stateless_gamma(from_seed(seed), shape, alpha)


@kernel("StatelessRandomGammaV3", types={"dtype": _FLOATS})
def stateless_gamma_v3(op: KernelNode) -> Compute:
    def compute(shape: Array, key: Array, counter: Array, algorithm: Array, alpha: Array) -> Array:
        return _stateless_gamma(from_key(key, counter, algorithm), shape, alpha)

    return compute


def _stateless_gamma(generator: Philox, shape: Array, alpha: Array) -> Array:
    sizes = output_shape(shape)
    if 0 in sizes:
        return np.zeros(sizes, alpha.dtype)
    return _gamma(generator, alpha, stateless_count(sizes, alpha, "alpha"), sizes)


def _poisson(generator: Philox, rate: Array, count: int, shape: tuple[int, ...], dtype: Any) -> Array:
    highest = np.iinfo(dtype).max if dtype.kind in "iu" else np.finfo(dtype).max
    samples = poisson(generator, rate.ravel(), count, float(highest)).reshape(shape)
    if dtype.kind in "iu":  # what has no value in the type becomes 0
        samples = np.where(np.isfinite(samples), samples, 0)
    return samples.astype(dtype)


@kernel("RandomPoisson", types={"dtype": _FLOATS}, kind=Kind.STATEFUL)
@kernel("RandomPoissonV2", types={"R": _RATES, "dtype": _RATES}, kind=Kind.STATEFUL)
def random_poisson(op: KernelNode) -> Compute:
    generator, dtype = guarded(op), op.attr("dtype").numpy

    def compute(step: StepContext, shape: Array, rate: Array) -> Array:
        lead = output_shape(shape)
        count, sizes = math.prod(lead), (*lead, *rate.shape)
        if count * rate.size == 0:
            return np.zeros(sizes, dtype)
        return _poisson(generator(step).reserve(count * rate.size * RESERVED), rate, count, sizes, dtype)

    return compute


@kernel("StatelessRandomPoisson", types={"Rtype": _RATES, "dtype": _RATES})
def stateless_poisson(op: KernelNode) -> Compute:
    dtype = op.attr("dtype").numpy

    def compute(shape: Array, seed: Array, rate: Array) -> Array:
        sizes = output_shape(shape)
        if 0 in sizes:
            return np.zeros(sizes, dtype)
        return _poisson(from_seed(seed), rate, stateless_count(sizes, rate, "rate"), sizes, dtype)

    return compute


#: samples drawn as one batch when all have the same parameters
_BATCH = 100


@kernel("StatelessParameterizedTruncatedNormal", types={"dtype": _FLOATS})
def stateless_parameterized_truncated_normal(op: KernelNode) -> Compute:
    """Parameters broadcast together; the shape ends with theirs.

    TensorFlow splits results over so many that they occupy several threads, and each part starts elsewhere in the
    generator; here they are one part always.
    """
    dtype = op.attr("dtype").numpy

    def compute(shape: Array, seed: Array, *parameters: Array) -> Array:
        at = from_seed(seed)
        try:
            common = np.broadcast_shapes(*(p.shape for p in parameters))
        except ValueError:
            shapes = " vs. ".join(map(shape_text, parameters))
            raise InvalidArgumentError(f"means, stddevs, minvals and maxvals must broadcast: {shapes}") from None
        sizes = output_shape(shape)
        ends = sizes[len(sizes) - len(common) :] if len(sizes) >= len(common) else None
        require(ends == common, "Shape passed in must end with broadcasted shape.")
        batches = math.prod(common)
        if 0 in sizes:
            return np.zeros(sizes, dtype)
        rows = [np.broadcast_to(p, common).reshape(-1) for p in parameters]
        out = np.empty((math.prod(sizes) // batches, batches), dtype)
        for number in range(batches):
            out[:, number], at = parameterized.batch(at, len(out), *(row[number] for row in rows))
        return out.reshape(sizes)

    return compute


@kernel("ParameterizedTruncatedNormal", types={"dtype": _FLOATS}, kind=Kind.STATEFUL)
def parameterized_truncated_normal(op: KernelNode) -> Compute:
    """The first dimension of the shape is of batches; parameters are scalars or have one value for each batch."""
    generator, dtype = guarded(op), op.attr("dtype").numpy

    def compute(step: StepContext, shape: Array, *parameters: Array) -> Array:
        sizes = output_shape(shape)
        require(sizes, "Shape tensor must not be empty")
        names = ("means", "stddevs", "minvals", "maxvals")
        for name, value in zip(names, parameters, strict=True):
            require(value.ndim <= 1, f"Input {name} should be a scalar or vector, got shape: {shape_text(value)}")
        batches, each, size = sizes[0], math.prod(sizes[1:]), math.prod(sizes)
        means, stddevs, lows, highs = parameters
        if means.size == 1 and stddevs.size == 1 and lows.ndim == 0 and highs.ndim == 0:
            batches, each = -(-size // _BATCH), _BATCH
        else:
            for name, value in zip(names, parameters, strict=True):
                if value.ndim and value.size not in (1, batches):
                    raise InvalidArgumentError(
                        f"Input {name} should have length 1 or shape[0], got shape: {shape_text(value)}"
                    )
        reserved = batches * 2 * parameterized.MAX_ITERATIONS * (each + 3) // 4
        at = generator(step).reserve(reserved)
        parts: list[Array] = []
        rows = [value.reshape(-1) for value in parameters]
        for number in range(batches):
            count = min((number + 1) * each, size) - number * each
            values = [row[0 if row.size == 1 else number] for row in rows]
            part, at = parameterized.batch(at, count, *values)
            parts.append(part)
        out = np.concatenate(parts) if parts else np.zeros(0, dtype)
        return out.reshape(sizes)

    return compute
