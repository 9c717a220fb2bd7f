"""Functions of the standard normal distribution, and of Laplace's."""

from __future__ import annotations

import math

import numpy as np

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import constant, convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.math import math_ops
from toolkit.errors import UsageError
from toolkit.graph import dtypes

#: below the first the series is exact in the type, above the second the logarithm is the probability of the rest
_BOUNDS = {dtypes.float32: (-10.0, 5.0), dtypes.float64: (-20.0, 8.0)}
#: terms of the series
_TERMS = 3


def ndtr(x: TensorLike, name: str = "ndtr") -> Tensor:
    """The probability of values up to x."""
    with name_scope(name, None, [x]):
        return _ndtr(convert_to_tensor(x, name="x"))


def _ndtr(x: Tensor) -> Tensor:
    half = constant(0.5 * np.sqrt(2.0), x.dtype.base, name="half_sqrt_2")
    w = x * half
    z = ops.abs(w)
    tails = array_ops.where_v2(ops.greater(w, 0.0), 2.0 - ops.erfc(z), ops.erfc(z))
    return 0.5 * array_ops.where_v2(ops.less(z, half), 1.0 + ops.erf(w), tails)


def log_ndtr(x: TensorLike, name: str = "log_ndtr") -> Tensor:
    """Its logarithm: far below by an asymptotic series, far above by what is left.

    Raises:
        UsageError: x is neither float32 nor float64.
    """
    with name_scope(name, None, [x]):
        given = convert_to_tensor(x, name="x")
        bounds = _BOUNDS.get(given.dtype.base)
        if bounds is None:
            raise UsageError(f"log_ndtr takes float32 or float64, not {given.dtype.base.name}")
        low, high = bounds
        middle = math_ops.log(_ndtr(math_ops.maximum(given, low)))
        below = array_ops.where_v2(ops.greater(given, low), middle, _far_below(math_ops.minimum(given, low)))
        return array_ops.where_v2(ops.greater(given, high), -_ndtr(-given), below)


def _far_below(x: Tensor) -> Tensor:
    """log(phi(x) / -x (1 - 1/x^2 + 3/x^4 - 15/x^6))"""
    square = math_ops.square(x)
    total, power, factor = array_ops.ones_like(x), square, 1.0
    for n in range(1, _TERMS + 1):
        factor *= 2 * n - 1
        term = factor / power
        total = total - term if n % 2 else total + term
        power = power * square
    return -0.5 * square - math_ops.log(-x) - 0.5 * math.log(2 * math.pi) + math_ops.log(total)


def log_cdf_laplace(x: TensorLike, name: str = "log_cdf_laplace") -> Tensor:
    """The logarithm of the probability of values up to x, for Laplace's distribution."""
    with name_scope(name, None, [x]):
        given = convert_to_tensor(x, name="x")
        above = ops.log1p(-0.5 * math_ops.exp(-ops.abs(given)))
        return array_ops.where_v2(ops.less(given, 0.0), -math.log(2.0) + given, above)
