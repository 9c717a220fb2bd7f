"""Distributions made of gamma functions: Gamma, Exponential, Beta, Dirichlet."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.checks.assertions import assert_less, assert_near, assert_positive, assert_same_float_dtype
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.scopes import control_dependencies, name_scope
from toolkit.client.construction.tensor import Tensor
from toolkit.client.distributions.base import FULLY_REPARAMETERIZED, Distribution
from toolkit.client.distributions.divergence import RegisterKL
from toolkit.client.distributions.forms import ConcentrationDistribution, ScalarDistribution
from toolkit.client.distributions.parameters import filled, joined_shape, joined_shape_tensor, salted
from toolkit.client.flow.control_flow import with_dependencies
from toolkit.client.math import math_ops, special_ops
from toolkit.client.random import random_ops
from toolkit.client.random.more_random_ops import random_gamma


def _checked_mode(
    distribution: Distribution, mode: Tensor, above_one: Sequence[Tensor], where: Tensor, shape: Tensor
) -> Tensor:
    """NaN, or a failing step, where a concentration is not above 1."""
    if distribution.allow_nan_stats:
        return array_ops.where_v2(where, mode, filled(shape, math.nan, distribution.dtype, name="nan"))
    one = array_ops.ones([], distribution.dtype)
    checks = [assert_less(one, each, message="there is no mode for a concentration <= 1") for each in above_one]
    return with_dependencies(checks, mode)


def _positive(x: Any, validate: bool, what: str) -> Any:
    return with_dependencies([assert_positive(x, message=f"{what} must be above 0")], x) if validate else x


class Gamma(ScalarDistribution):
    """The gamma distribution with shape `concentration` and `rate`."""

    _PARAMETERS = ("concentration", "rate")

    def __init__(
        self, concentration: Any, rate: Any, validate_args: bool = False, allow_nan_stats: bool = True,
        name: str = "Gamma",
    ):  # fmt: skip
        parameters = dict(locals())
        with name_scope(name, None, [concentration, rate]) as scope:
            checks = [assert_positive(concentration), assert_positive(rate)] if validate_args else []
            with control_dependencies(checks):
                self._concentration = array_ops.identity(concentration, name="concentration")
                self._rate = array_ops.identity(rate, name="rate")
                assert_same_float_dtype([self._concentration, self._rate])
        super().__init__(
            self._concentration.dtype, FULLY_REPARAMETERIZED, validate_args, allow_nan_stats, parameters,
            [self._concentration, self._rate], scope,
        )  # fmt: skip

    @property
    def concentration(self) -> Tensor:
        return self._concentration

    @property
    def rate(self) -> Tensor:
        return self._rate

    def _batch_shape(self) -> Any:
        return joined_shape([self._concentration, self._rate])

    def _batch_shape_tensor(self) -> Any:
        return joined_shape_tensor([self._concentration, self._rate])

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        return random_gamma(array_ops.stack([n]), self._concentration, self._rate, self._dtype, seed)

    def _log_prob(self, value: Tensor) -> Any:
        x = _positive(value, self._validate_args, "a value")
        return ops.xlogy(self._concentration - 1.0, x) - self._rate * x - self._log_normalization()

    def _log_normalization(self) -> Tensor:
        return ops.lgamma(self._concentration) - self._concentration * math_ops.log(self._rate)

    def _cdf(self, value: Tensor) -> Any:
        x = self._rate * _positive(value, self._validate_args, "a value")
        shape = array_ops.zeros_like(x) + self._concentration
        return ops.igamma(shape, x + array_ops.zeros_like(shape))

    def _entropy(self) -> Any:
        shape = self._concentration
        return shape - math_ops.log(self._rate) + ops.lgamma(shape) + (1.0 - shape) * ops.digamma(shape)

    def _mean(self) -> Any:
        return self._concentration / self._rate

    def _variance(self) -> Any:
        return self._concentration / math_ops.square(self._rate)

    def _stddev(self) -> Any:
        return math_ops.sqrt(self._concentration) / self._rate

    def _mode(self) -> Any:
        shape, mode = self._concentration, (self._concentration - 1.0) / self._rate
        return _checked_mode(self, mode, [shape], ops.greater(shape, 1.0), self.batch_shape_tensor())


@RegisterKL(Gamma, Gamma)
def _gammas(a: Gamma, b: Gamma, name: str | None = None) -> Tensor:
    with name_scope(name, "kl_gamma_gamma", [a.concentration, a.rate, b.concentration, b.rate]):
        return (
            (a.concentration - b.concentration) * ops.digamma(a.concentration) + ops.lgamma(b.concentration)
            - ops.lgamma(a.concentration) + b.concentration * math_ops.log(a.rate)
            - b.concentration * math_ops.log(b.rate) + a.concentration * (b.rate / a.rate - 1.0)
        )  # fmt: skip


class Exponential(Gamma):
    """The exponential distribution with `rate`: a gamma distribution of shape 1."""

    _PARAMETERS = ("rate",)

    def __init__(self, rate: Any, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "Exponential"):
        parameters = dict(locals())
        with name_scope(name, None, [rate]) as scope:
            given = convert_to_tensor(rate, name="rate")
        one = array_ops.ones([], given.dtype.base)
        super().__init__(one, given, validate_args, allow_nan_stats, scope)
        self._parameters = {
            key: value for key, value in parameters.items() if key != "self" and not key.startswith("__")
        }

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        shape = array_ops.concat([array_ops.stack([n]), array_ops.shape(self._rate)], 0)
        least = np.finfo(self._dtype.numpy).tiny
        return -math_ops.log(random_ops.random_uniform(shape, least, 1.0, self._dtype, seed)) / self._rate

    def _log_survival_function(self, value: Tensor) -> Any:
        return self._log_prob(value) - math_ops.log(self._rate)


class Beta(ScalarDistribution):
    """The beta distribution on (0, 1), with the shapes `concentration1` (of x) and `concentration0` (of 1 - x)."""

    _PARAMETERS = ("concentration1", "concentration0")

    def __init__(
        self, concentration1: Any = None, concentration0: Any = None, validate_args: bool = False,
        allow_nan_stats: bool = True, name: str = "Beta",
    ):  # fmt: skip
        parameters = dict(locals())
        with name_scope(name, None, [concentration1, concentration0]) as scope:
            first = convert_to_tensor(concentration1, name="concentration1")
            self._concentration1 = _positive(first, validate_args, "concentration1")
            second = convert_to_tensor(concentration0, name="concentration0")
            self._concentration0 = _positive(second, validate_args, "concentration0")
            assert_same_float_dtype([self._concentration1, self._concentration0])
            self._total = self._concentration1 + self._concentration0
        super().__init__(
            self._total.dtype, FULLY_REPARAMETERIZED, validate_args, allow_nan_stats, parameters,
            [self._concentration1, self._concentration0, self._total], scope,
        )  # fmt: skip

    @property
    def concentration1(self) -> Tensor:
        return self._concentration1

    @property
    def concentration0(self) -> Tensor:
        return self._concentration0

    @property
    def total_concentration(self) -> Tensor:
        return self._total

    def _batch_shape(self) -> Any:
        return self._total.static_shape

    def _batch_shape_tensor(self) -> Any:
        return array_ops.shape(self._total)

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        ones = array_ops.ones_like(self._total)
        first, second = ones * self._concentration1, ones * self._concentration0
        drawn = random_gamma(array_ops.stack([n]), first, dtype=self._dtype, seed=seed)
        other = random_gamma(array_ops.stack([n]), second, dtype=self._dtype, seed=salted(seed, "beta"))
        return drawn / (drawn + other)

    def _log_prob(self, value: Tensor) -> Any:
        x = value
        if self._validate_args:
            one = array_ops.ones([], self._dtype)
            checks = [
                assert_positive(x, message="a value must be above 0"),
                assert_less(x, one, message="a value must be below 1"),
            ]
            x = with_dependencies(checks, x)
        density = ops.xlogy(self._concentration1 - 1.0, x) + (self._concentration0 - 1.0) * ops.log1p(-x)
        return density - self.log_normalization()

    def _prob(self, value: Tensor) -> Any:
        return math_ops.exp(self._log_prob(value))

    def log_normalization(self) -> Tensor:
        """The logarithm of the beta function."""
        return ops.lgamma(self._concentration1) + ops.lgamma(self._concentration0) - ops.lgamma(self._total)

    def _log_cdf(self, value: Tensor) -> Any:
        return math_ops.log(self._cdf(value))

    def _cdf(self, value: Tensor) -> Any:
        zeros = array_ops.zeros_like(value + self._total)
        return ops.betainc(self._concentration1 + zeros, self._concentration0 + zeros, value + zeros)

    def _entropy(self) -> Any:
        total = self._total
        return (
            self.log_normalization() - (self._concentration1 - 1.0) * ops.digamma(self._concentration1)
            - (self._concentration0 - 1.0) * ops.digamma(self._concentration0) + (total - 2.0) * ops.digamma(total)
        )  # fmt: skip

    def _mean(self) -> Any:
        return self._concentration1 / self._total

    def _variance(self) -> Any:
        return self._mean() * (1.0 - self._mean()) / (1.0 + self._total)

    def _mode(self) -> Any:
        mode = (self._concentration1 - 1.0) / (self._total - 2.0)
        above = [self._concentration1, self._concentration0]
        where = ops.logical_and(*(ops.greater(each, 1.0) for each in above))
        return _checked_mode(self, mode, above, where, self.batch_shape_tensor())


@RegisterKL(Beta, Beta)
def _betas(a: Beta, b: Beta, name: str | None = None) -> Tensor:
    with name_scope(name, "kl_beta_beta", [a.concentration1, a.concentration0, b.concentration1, b.concentration0]):
        return (
            b.log_normalization() - a.log_normalization()
            - ops.digamma(a.concentration1) * (b.concentration1 - a.concentration1)
            - ops.digamma(a.concentration0) * (b.concentration0 - a.concentration0)
            + ops.digamma(a.total_concentration) * (b.total_concentration - a.total_concentration)
        )  # fmt: skip


def negative_products(x: Tensor, diagonal: Tensor) -> Tensor:
    """The matrices -x x^T with another diagonal: covariances of shares."""
    products = math_ops.matmul(array_ops.expand_dims(x, -1), array_ops.expand_dims(x, -2))
    return ops.matrix_set_diag_v3(-products, diagonal, 0)


class Dirichlet(ConcentrationDistribution):
    """Dirichlet's distribution of shares [..., k], with `concentration` [..., k]."""

    def __init__(
        self, concentration: Any, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "Dirichlet"
    ):
        parameters = dict(locals())
        with name_scope(name, None, [concentration]) as scope:
            given = convert_to_tensor(concentration, name="concentration")
            if validate_args:
                several = assert_less(1, array_ops.shape(given)[-1], message="there must be two shares or more")
                given = with_dependencies([several], _positive(given, True, "concentration"))
            self._concentration = given
            self._total = math_ops.reduce_sum(given, -1)
        super().__init__(
            given.dtype, FULLY_REPARAMETERIZED, validate_args, allow_nan_stats, parameters, [given, self._total], scope
        )

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        drawn = random_gamma(array_ops.stack([n]), self._concentration, dtype=self._dtype, seed=seed)
        return drawn / math_ops.reduce_sum(drawn, -1, keepdims=True)

    def _log_prob(self, value: Tensor) -> Any:
        x = value
        if self._validate_args:
            one = array_ops.ones([], self._dtype)
            total = assert_near(one, math_ops.reduce_sum(x, -1), message="shares must add up to 1")
            x = with_dependencies([total], _positive(x, True, "a share"))
        density = math_ops.reduce_sum(ops.xlogy(self._concentration - 1.0, x), -1)
        return density - special_ops.lbeta(self._concentration)

    def _prob(self, value: Tensor) -> Any:
        return math_ops.exp(self._log_prob(value))

    def _count(self) -> Tensor:
        return math_ops.cast(self.event_shape_tensor()[0], self._dtype)

    def _entropy(self) -> Any:
        each = (self._concentration - 1.0) * ops.digamma(self._concentration)
        return (
            special_ops.lbeta(self._concentration) + (self._total - self._count()) * ops.digamma(self._total)
            - math_ops.reduce_sum(each, -1)
        )  # fmt: skip

    def _mean(self) -> Any:
        return self._concentration / array_ops.expand_dims(self._total, -1)

    def _scale(self) -> Tensor:
        return math_ops.rsqrt(1.0 + array_ops.expand_dims(self._total, -1))

    def _covariance(self) -> Any:
        return negative_products(self._scale() * self._mean(), self._variance())

    def _variance(self) -> Any:
        scale = self._scale()
        x = scale * self._mean()
        return x * (scale - x)

    def _mode(self) -> Any:
        mode = (self._concentration - 1.0) / (array_ops.expand_dims(self._total, -1) - self._count())
        where = math_ops.reduce_all(ops.greater(self._concentration, 1.0), -1, keepdims=True)
        return _checked_mode(self, mode, [self._concentration], where, array_ops.shape(mode))


@RegisterKL(Dirichlet, Dirichlet)
def _dirichlets(a: Dirichlet, b: Dirichlet, name: str | None = None) -> Tensor:
    with name_scope(name, "kl_dirichlet_dirichlet", [a.concentration, b.concentration]):
        total = ops.digamma(math_ops.reduce_sum(a.concentration, -1, keepdims=True))
        logs = ops.digamma(a.concentration) - total
        return (
            math_ops.reduce_sum((a.concentration - b.concentration) * logs, -1) - special_ops.lbeta(a.concentration)
            + special_ops.lbeta(b.concentration)
        )  # fmt: skip
