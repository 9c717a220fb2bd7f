"""Binomial random numbers, with given seeds or a generator in a variable."""

from __future__ import annotations

import math
from typing import Any

from toolkit.errors import InvalidArgumentError
from toolkit.graph import dtypes
from toolkit.kernels.context import StepContext
from toolkit.kernels.cpu.common import np, require, shape_text
from toolkit.kernels.cpu.random.basic import output_shape
from toolkit.kernels.cpu.random.generator import advance
from toolkit.kernels.cpu.random.stateless import from_seed
from toolkit.kernels.random.binomial import binomial
from toolkit.kernels.random.philox import Philox
from toolkit.kernels.registry import INDEX, Compute, KernelNode, Kind, kernel
from toolkit.kernels.types import Array

_FLOATS = {dtypes.float16, dtypes.float32, dtypes.float64}
_TYPES = {"T": _FLOATS, "dtype": _FLOATS | INDEX}


def _sizes(shape: Array, counts: Array, probabilities: Array) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The output's shape and the parameters' common one, which it ends with.

    Raises:
        InvalidArgumentError: the parameters do not broadcast, or the shape does not end so.
    """
    try:
        common = np.broadcast_shapes(counts.shape, probabilities.shape)
    except ValueError:
        raise InvalidArgumentError(
            "counts and probs must have compatible batch dimensions: "
            f"{shape_text(counts)} vs. {shape_text(probabilities)}"
        ) from None
    sizes = output_shape(shape)
    ends = sizes[len(sizes) - len(common) :] if len(sizes) >= len(common) else None
    require(ends == common, "Shape passed in must end with broadcasted shape.")
    return sizes, common


def _draw(generator: Philox, sizes: tuple[int, ...], parameters: list[Array], dtype: Any) -> Array:
    n, p = (value.reshape(-1) for value in np.broadcast_arrays(*parameters))
    return binomial(generator, n, p, math.prod(sizes) // n.size).reshape(sizes).astype(dtype)


@kernel("StatelessRandomBinomial", types=_TYPES)
def stateless_binomial(op: KernelNode) -> Compute:
    dtype = op.attr("dtype").numpy

    def compute(shape: Array, seed: Array, counts: Array, probabilities: Array) -> Array:
        generator = from_seed(seed)
        sizes, _ = _sizes(shape, counts, probabilities)
        return np.zeros(sizes, dtype) if 0 in sizes else _draw(generator, sizes, [counts, probabilities], dtype)

    return compute


@kernel("StatefulRandomBinomial", types=_TYPES, kind=Kind.STATEFUL)
def stateful_binomial(op: KernelNode) -> Compute:
    dtype = op.attr("dtype").numpy

    def compute(
        step: StepContext, handle: Any, algorithm: Array, shape: Array, counts: Array, probabilities: Array
    ) -> Array:
        sizes, common = _sizes(shape, counts, probabilities)
        batches = math.prod(common)
        each = math.prod(sizes[: len(sizes) - len(common)])
        generator, _ = advance(step, handle, algorithm, batches * 2 * 100 * (each + 3) // 4)
        return np.zeros(sizes, dtype) if 0 in sizes else _draw(generator, sizes, [counts, probabilities], dtype)

    return compute
