"""Distributions of single numbers that programs took from tf.contrib: Logistic, Cauchy, HalfNormal."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.checks.assertions import assert_positive
from toolkit.client.construction.scopes import control_dependencies, name_scope
from toolkit.client.construction.tensor import Tensor
from toolkit.client.distributions.base import FULLY_REPARAMETERIZED
from toolkit.client.distributions.location_scale import BroadcastScalars, LocationScale
from toolkit.client.distributions.parameters import filled
from toolkit.client.math import math_ops
from toolkit.client.nn import nn_ops
from toolkit.client.random import random_ops


def uniform_above_zero(distribution: Any, shape: Tensor, seed: int | None) -> Tensor:
    """Draws whose logarithm is finite."""
    least = np.finfo(distribution.dtype.numpy).tiny
    return random_ops.random_uniform(shape, least, 1.0, distribution.dtype, seed)


class Logistic(LocationScale):
    """The distribution whose probability of values up to x is the sigmoid of (x - loc) / scale."""

    def __init__(
        self, loc: Any, scale: Any, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "Logistic"
    ):
        super().__init__(loc, scale, validate_args, allow_nan_stats, name, dict(locals()))

    def _standard(self, value: Tensor) -> Tensor:
        return (value - self._loc) / self._scale

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        drawn = uniform_above_zero(self, self._drawn_shape(n), seed)
        return (math_ops.log(drawn) - ops.log1p(-1.0 * drawn)) * self._scale + self._loc

    def _log_prob(self, value: Tensor) -> Any:
        z = self._standard(value)
        return -z - 2.0 * nn_ops.softplus(-z) - math_ops.log(self._scale)

    def _log_cdf(self, value: Tensor) -> Any:
        return -nn_ops.softplus(-self._standard(value))

    def _cdf(self, value: Tensor) -> Any:
        return math_ops.sigmoid(self._standard(value))

    def _log_survival_function(self, value: Tensor) -> Any:
        return -nn_ops.softplus(self._standard(value))

    def _survival_function(self, value: Tensor) -> Any:
        return math_ops.sigmoid(-self._standard(value))

    def _entropy(self) -> Any:
        return 2 + math_ops.log(self._scale * array_ops.ones_like(self._loc))

    def _mean(self) -> Any:
        return self._loc * array_ops.ones_like(self._scale)

    def _stddev(self) -> Any:
        return self._scale * array_ops.ones_like(self._loc) * math.pi / math.sqrt(3)


class Cauchy(LocationScale):
    """Cauchy's distribution, which has neither mean nor variance.

    Raises:
        ValueError: these are asked for, and `allow_nan_stats` is false.
    """

    def __init__(
        self, loc: Any, scale: Any, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "Cauchy"
    ):
        super().__init__(loc, scale, validate_args, allow_nan_stats, name, dict(locals()))

    def _standard(self, value: Tensor) -> Tensor:
        return (value - self._loc) / self._scale

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        return self._quantile(random_ops.random_uniform(self._drawn_shape(n), 0.0, 1.0, self._dtype, seed))

    def _log_prob(self, value: Tensor) -> Any:
        density = -ops.log1p(math_ops.square(self._standard(value)))
        return density - (math.log(math.pi) + math_ops.log(self._scale))

    def _cdf(self, value: Tensor) -> Any:
        return ops.atan(self._standard(value)) / math.pi + 0.5

    def _log_cdf(self, value: Tensor) -> Any:
        return ops.log1p(2 / math.pi * ops.atan(self._standard(value))) - math.log(2)

    def _quantile(self, value: Tensor) -> Any:
        return self._loc + self._scale * ops.tan(math.pi * (value - 0.5))

    def _entropy(self) -> Any:
        return (math.log(4 * math.pi) + math_ops.log(self._scale)) * array_ops.ones_like(self._loc)

    def _undefined(self, what: str) -> Tensor:
        if not self._allow_nan_stats:
            raise ValueError(f"a Cauchy distribution has no {what}")
        return filled(self.batch_shape_tensor(), math.nan, self._dtype)

    def _mean(self) -> Any:
        return self._undefined("mean")

    def _stddev(self) -> Any:
        return self._undefined("stddev")

    def _mode(self) -> Any:
        return self._loc * array_ops.ones_like(self._scale)


class HalfNormal(BroadcastScalars):
    """The size of a normal variable with mean 0 and standard deviation `scale`."""

    _PARAMETERS = ("scale",)

    def __init__(self, scale: Any, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "HalfNormal"):
        parameters = dict(locals())
        with name_scope(name, None, [scale]) as scope:
            checks = [assert_positive(scale)] if validate_args else []
            with control_dependencies(checks):
                self._scale = array_ops.identity(scale, name="scale")
        self._tensors = [self._scale]
        super().__init__(
            self._scale.dtype, FULLY_REPARAMETERIZED, validate_args, allow_nan_stats, parameters, self._tensors, scope
        )

    @property
    def scale(self) -> Tensor:
        return self._scale

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        return ops.abs(random_ops.random_normal(self._drawn_shape(n), dtype=self._dtype, seed=seed) * self._scale)

    def _prob(self, value: Tensor) -> Any:
        density = math.sqrt(2 / math.pi) / self._scale * math_ops.exp(-0.5 * math_ops.square(value / self._scale))
        return density * math_ops.cast(value >= 0, self._dtype)

    def _cdf(self, value: Tensor) -> Any:
        return ops.erf(nn_ops.relu(value) / self._scale / math.sqrt(2.0))

    def _quantile(self, value: Tensor) -> Any:
        return math.sqrt(2.0) * self._scale * ops.erfinv(value)

    def _entropy(self) -> Any:
        return 0.5 * math_ops.log(math.pi * math_ops.square(self._scale) / 2.0) + 0.5

    def _mean(self) -> Any:
        return self._scale * math.sqrt(2.0 / math.pi)

    def _mode(self) -> Any:
        return array_ops.zeros(self.batch_shape_tensor(), self._dtype)

    def _variance(self) -> Any:
        return math_ops.square(self._scale) * (1.0 - 2.0 / math.pi)
