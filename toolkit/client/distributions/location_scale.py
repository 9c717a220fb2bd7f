"""Distributions that are moved and stretched: Normal, Laplace, StudentT, Uniform."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.checks.assertions import assert_less, assert_positive, assert_same_float_dtype
from toolkit.client.construction.convert import constant
from toolkit.client.construction.scopes import control_dependencies, name_scope
from toolkit.client.construction.tensor import Tensor
from toolkit.client.distributions.base import FULLY_REPARAMETERIZED
from toolkit.client.distributions.divergence import RegisterKL
from toolkit.client.distributions.forms import ScalarDistribution
from toolkit.client.distributions.parameters import filled, joined_shape, joined_shape_tensor, salted
from toolkit.client.distributions.special import log_cdf_laplace, log_ndtr, ndtr
from toolkit.client.flow.control_flow import with_dependencies
from toolkit.client.math import math_ops, special_ops
from toolkit.client.random import random_ops
from toolkit.client.random.more_random_ops import random_gamma


class BroadcastScalars(ScalarDistribution):
    """Distributions of single numbers, whose parameters are broadcast together."""

    _tensors: list[Tensor]

    def _batch_shape(self) -> Any:
        return joined_shape(self._tensors)

    def _batch_shape_tensor(self) -> Any:
        return joined_shape_tensor(self._tensors)

    def _drawn_shape(self, n: Any) -> Tensor:
        return array_ops.concat([array_ops.stack([n]), self.batch_shape_tensor()], 0)


class LocationScale(BroadcastScalars):
    """What Normal and Laplace share: `loc` and a positive `scale`."""

    _PARAMETERS = ("loc", "scale")

    def __init__(
        self, loc: Any, scale: Any, validate_args: bool, allow_nan_stats: bool, name: str, parameters: dict[str, Any]
    ):
        with name_scope(name, None, [loc, scale]) as scope:
            checks = [assert_positive(scale)] if validate_args else []
            with control_dependencies(checks):
                self._loc = array_ops.identity(loc, name="loc")
                self._scale = array_ops.identity(scale, name="scale")
                assert_same_float_dtype([self._loc, self._scale])
        self._tensors = [self._loc, self._scale]
        super().__init__(
            self._scale.dtype, FULLY_REPARAMETERIZED, validate_args, allow_nan_stats, parameters, self._tensors, scope
        )

    @property
    def loc(self) -> Tensor:
        return self._loc

    @property
    def scale(self) -> Tensor:
        return self._scale

    def _mode(self) -> Any:
        return self._mean()


class Normal(LocationScale):
    """The normal distribution with mean `loc` and standard deviation `scale`."""

    def __init__(
        self, loc: Any, scale: Any, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "Normal"
    ):
        super().__init__(loc, scale, validate_args, allow_nan_stats, name, dict(locals()))

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        drawn = random_ops.random_normal(self._drawn_shape(n), dtype=self._loc.dtype.base, seed=seed)
        return drawn * self._scale + self._loc

    def _log_prob(self, value: Tensor) -> Any:
        return -0.5 * math_ops.square(self._standard(value)) - self._log_normalization()

    def _log_normalization(self) -> Tensor:
        return 0.5 * math.log(2.0 * math.pi) + math_ops.log(self._scale)

    def _standard(self, value: Tensor) -> Tensor:
        with name_scope("standardize", None, [value]):
            return (value - self._loc) / self._scale

    def _log_cdf(self, value: Tensor) -> Any:
        return log_ndtr(self._standard(value))

    def _cdf(self, value: Tensor) -> Any:
        return ndtr(self._standard(value))

    def _log_survival_function(self, value: Tensor) -> Any:
        return log_ndtr(-self._standard(value))

    def _survival_function(self, value: Tensor) -> Any:
        return ndtr(-self._standard(value))

    def _quantile(self, value: Tensor) -> Any:
        found = ops.ndtri(value)
        with name_scope("reconstruct", None, [found]):
            return found * self._scale + self._loc

    def _entropy(self) -> Any:
        scale = self._scale * array_ops.ones_like(self._loc)
        return 0.5 * math.log(2.0 * math.pi * math.e) + math_ops.log(scale)

    def _mean(self) -> Any:
        return self._loc * array_ops.ones_like(self._scale)

    def _stddev(self) -> Any:
        return self._scale * array_ops.ones_like(self._loc)


@RegisterKL(Normal, Normal)
def _normals(a: Normal, b: Normal, name: str | None = None) -> Tensor:
    with name_scope(name, "kl_normal_normal", [a.loc, b.loc]):
        one, two, half = (constant(value, a.dtype) for value in (1, 2, 0.5))
        mine, other = math_ops.square(a.scale), math_ops.square(b.scale)
        ratio = mine / other
        apart = ops.squared_difference(a.loc, b.loc) / (two * other)
        return apart + half * (ratio - one - math_ops.log(ratio))


class Laplace(LocationScale):
    """Laplace's distribution: exponential on both sides of `loc`."""

    def __init__(
        self, loc: Any, scale: Any, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "Laplace"
    ):
        super().__init__(loc, scale, validate_args, allow_nan_stats, name, dict(locals()))

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        kind = self._dtype.numpy
        low = np.nextafter(np.asarray(-1.0, kind), np.asarray(0.0, kind))
        drawn = random_ops.random_uniform(self._drawn_shape(n), low, 1.0, self._dtype, seed)
        return self._loc - self._scale * ops.sign(drawn) * ops.log1p(-ops.abs(drawn))

    def _standard(self, value: Tensor) -> Tensor:
        return (value - self._loc) / self._scale

    def _log_prob(self, value: Tensor) -> Any:
        return -ops.abs(self._standard(value)) - (math.log(2.0) + math_ops.log(self._scale))

    def _prob(self, value: Tensor) -> Any:
        return math_ops.exp(self._log_prob(value))

    def _log_cdf(self, value: Tensor) -> Any:
        return log_cdf_laplace(self._standard(value))

    def _log_survival_function(self, value: Tensor) -> Any:
        return log_cdf_laplace(-self._standard(value))

    def _cdf(self, value: Tensor) -> Any:
        z = self._standard(value)
        return 0.5 + 0.5 * ops.sign(z) * (1.0 - math_ops.exp(-ops.abs(z)))

    def _entropy(self) -> Any:
        return math.log(2.0) + 1.0 + math_ops.log(self._scale + array_ops.zeros_like(self._loc))

    def _mean(self) -> Any:
        return self._loc + array_ops.zeros_like(self._scale)

    def _stddev(self) -> Any:
        return math.sqrt(2.0) * self._scale + array_ops.zeros_like(self._loc)


class StudentT(BroadcastScalars):
    """Student's distribution with `df` degrees of freedom, moved by `loc` and stretched by `scale`."""

    _PARAMETERS = ("df", "loc", "scale")

    def __init__(
        self, df: Any, loc: Any, scale: Any, validate_args: bool = False, allow_nan_stats: bool = True,
        name: str = "StudentT",
    ):  # fmt: skip
        parameters = dict(locals())
        with name_scope(name, None, [df, loc, scale]) as scope:
            checks = [assert_positive(df)] if validate_args else []
            with control_dependencies(checks):
                self._df = array_ops.identity(df, name="df")
                self._loc = array_ops.identity(loc, name="loc")
                self._scale = array_ops.identity(scale, name="scale")
                assert_same_float_dtype([self._df, self._loc, self._scale])
        self._tensors = [self._df, self._loc, self._scale]
        super().__init__(
            self._scale.dtype, FULLY_REPARAMETERIZED, validate_args, allow_nan_stats, parameters, self._tensors, scope
        )

    @property
    def df(self) -> Tensor:
        return self._df

    @property
    def loc(self) -> Tensor:
        return self._loc

    @property
    def scale(self) -> Tensor:
        return self._scale

    def _ones(self) -> Tensor:
        return array_ops.ones(self.batch_shape_tensor(), self._dtype)

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        normal = random_ops.random_normal(self._drawn_shape(n), dtype=self._dtype, seed=seed)
        df = self._df * self._ones()
        gamma = random_gamma(
            array_ops.stack([n]), 0.5 * df, beta=0.5, dtype=self._dtype, seed=salted(seed, "student_t")
        )
        return normal * math_ops.rsqrt(gamma / df) * self._scale + self._loc

    def _log_prob(self, value: Tensor) -> Any:
        y = (value - self._loc) / self._scale
        normalization = (
            math_ops.log(ops.abs(self._scale)) + 0.5 * math_ops.log(self._df) + 0.5 * math.log(math.pi)
            + ops.lgamma(0.5 * self._df) - ops.lgamma(0.5 * (self._df + 1.0))
        )  # fmt: skip
        return -0.5 * (self._df + 1.0) * ops.log1p(y**2.0 / self._df) - normalization

    def _cdf(self, value: Tensor) -> Any:
        y = (value - self._loc) / ops.abs(self._scale)
        x = self._df / (y**2.0 + self._df)
        zeros = array_ops.zeros_like(x)  # the op does not broadcast
        tail = 0.5 * ops.betainc(0.5 * self._df + zeros, 0.5 + zeros, x)
        return array_ops.where_v2(ops.less(y, 0.0), tail, 1.0 - tail)

    def _entropy(self) -> Any:
        ones = array_ops.expand_dims(self._ones(), -1)
        halves = array_ops.concat([ones * array_ops.expand_dims(self._df, -1), ones], -1) / 2.0
        above = 0.5 * (self._df + 1.0)
        return (
            math_ops.log(ops.abs(self._scale)) + 0.5 * math_ops.log(self._df) + special_ops.lbeta(halves)
            + above * (ops.digamma(above) - ops.digamma(0.5 * self._df))
        )  # fmt: skip

    def _defined(self, found: Tensor, what: str) -> Tensor:
        """NaN, or a failing step, where there are too few degrees of freedom."""
        if not self._allow_nan_stats:
            one = array_ops.ones([], self._dtype)
            return with_dependencies([assert_less(one, self._df, message=f"there is no {what} for df <= 1")], found)
        nan = filled(self.batch_shape_tensor(), math.nan, self._dtype, name="nan")
        return array_ops.where_v2(ops.greater(self._df, self._ones()), found, nan)

    def _mean(self) -> Any:
        return self._defined(self._loc * self._ones(), "mean")

    def _variance(self) -> Any:
        df = self._df
        rest = array_ops.where_v2(ops.greater(df, 2.0), df - 2.0, array_ops.ones_like(df))
        found = self._ones() * math_ops.square(self._scale) * df / rest
        shape = self.batch_shape_tensor()
        infinite = filled(shape, math.inf, self._dtype, name="inf")
        found = array_ops.where_v2(ops.greater(df, filled(shape, 2.0, self._dtype)), found, infinite)
        return self._defined(found, "variance")

    def _mode(self) -> Any:
        return array_ops.identity(self._loc)


class Uniform(BroadcastScalars):
    """The same density from `low` to `high`."""

    _PARAMETERS = ("low", "high")

    def __init__(
        self, low: Any = 0.0, high: Any = 1.0, validate_args: bool = False, allow_nan_stats: bool = True,
        name: str = "Uniform",
    ):  # fmt: skip
        parameters = dict(locals())
        with name_scope(name, None, [low, high]) as scope:
            checks = [assert_less(low, high, message="low must be below high")] if validate_args else []
            with control_dependencies(checks):
                self._low = array_ops.identity(low, name="low")
                self._high = array_ops.identity(high, name="high")
                assert_same_float_dtype([self._low, self._high])
        self._tensors = [self._low, self._high]
        super().__init__(
            self._low.dtype, FULLY_REPARAMETERIZED, validate_args, allow_nan_stats, parameters, self._tensors, scope
        )

    @property
    def low(self) -> Tensor:
        return self._low

    @property
    def high(self) -> Tensor:
        return self._high

    def range(self, name: str = "range") -> Tensor:
        """How far high is from low."""
        with self._name_scope(name):
            return self._high - self._low

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        drawn = random_ops.random_uniform(self._drawn_shape(n), dtype=self._dtype, seed=seed)
        return self._low + self.range() * drawn

    def _prob(self, value: Tensor) -> Any:
        x = value * array_ops.ones(self.batch_shape_tensor(), value.dtype.base)
        outside = ops.logical_or(ops.less(x, self._low), ops.greater_equal(x, self._high))
        inside = array_ops.ones_like(x) / self.range()
        found = array_ops.where_v2(outside, array_ops.zeros_like(x), inside)
        return array_ops.where_v2(ops.is_nan(x), x, found)

    def _cdf(self, value: Tensor) -> Any:
        shape = ops.broadcast_args(array_ops.shape(value), self.batch_shape_tensor())
        zeros, ones = array_ops.zeros(shape, self._dtype), array_ops.ones(shape, self._dtype)
        share = (value * ones - self._low) / self.range()
        below = array_ops.where_v2(ops.less(value, self._low), zeros, share)
        return array_ops.where_v2(ops.greater_equal(value, self._high), ones, below)

    def _entropy(self) -> Any:
        return math_ops.log(self.range())

    def _mean(self) -> Any:
        return (self._low + self._high) / 2.0

    def _variance(self) -> Any:
        return math_ops.square(self.range()) / 12.0

    def _stddev(self) -> Any:
        return self.range() / math.sqrt(12.0)
