"""Distributions of 0, 1, 2, ...: Poisson, Geometric, Binomial, NegativeBinomial."""

from __future__ import annotations

from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.checks.assertions import assert_less_equal, assert_non_negative, assert_positive
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.scopes import control_dependencies, name_scope
from toolkit.client.construction.tensor import Tensor
from toolkit.client.distributions.base import NOT_REPARAMETERIZED
from toolkit.client.distributions.forms import LogitsDistribution, ScalarDistribution
from toolkit.client.distributions.heavier_tails import uniform_above_zero
from toolkit.client.distributions.parameters import (
    joined_shape,
    joined_shape_tensor,
    logits_and_probs,
    salted,
    whole_numbers,
)
from toolkit.client.math import math_ops
from toolkit.client.nn import nn_ops
from toolkit.client.random.more_random_ops import random_gamma, random_poisson
from toolkit.errors import UsageError


class Poisson(ScalarDistribution):
    """How many events there are, `rate` on average.

    Raises:
        UsageError: `rate` and `log_rate` are both given or both missing.
    """

    _PARAMETERS = ("rate",)

    def __init__(
        self, rate: Any = None, log_rate: Any = None, validate_args: bool = False, allow_nan_stats: bool = True,
        name: str = "Poisson",
    ):  # fmt: skip
        parameters = dict(locals())
        with name_scope(name, None, [rate]) as scope:
            if (rate is None) == (log_rate is None):
                raise UsageError("a Poisson distribution takes rate or log_rate, one of both")
            if log_rate is None:
                given = convert_to_tensor(rate, name="rate")
                with control_dependencies([assert_positive(given)] if validate_args else []):
                    self._rate = array_ops.identity(given, name="rate")
                self._log_rate = math_ops.log(self._rate, name="log_rate")
            else:
                self._log_rate = convert_to_tensor(log_rate, name="log_rate")
                self._rate = math_ops.exp(self._log_rate, name="rate")
        super().__init__(
            self._rate.dtype, NOT_REPARAMETERIZED, validate_args, allow_nan_stats, parameters, [self._rate], scope
        )

    @property
    def rate(self) -> Tensor:
        return self._rate

    @property
    def log_rate(self) -> Tensor:
        return self._log_rate

    def _batch_shape(self) -> Any:
        return self._rate.static_shape

    def _batch_shape_tensor(self) -> Any:
        return array_ops.shape(self._rate)

    def _checked(self, value: Tensor) -> Tensor:
        return whole_numbers(value, "a count") if self._validate_args else value

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        return random_poisson(self._rate, array_ops.stack([n]), self._dtype, seed=seed)

    def _log_prob(self, value: Tensor) -> Any:
        count = self._checked(value)
        return count * self._log_rate - ops.lgamma(1.0 + count) - self._rate

    def _cdf(self, value: Tensor) -> Any:
        above = 1.0 + self._checked(value)
        # the op does not broadcast
        zeros = array_ops.zeros_like(above + self._rate)
        return ops.igammac(above + zeros, self._rate + zeros)

    def _mean(self) -> Any:
        return array_ops.identity(self._rate)

    def _variance(self) -> Any:
        return array_ops.identity(self._rate)

    def _mode(self) -> Any:
        return ops.floor(self._rate)


class Geometric(LogitsDistribution, ScalarDistribution):
    """How often something fails before it works, which it does with probability `probs` (or `logits`)."""

    _PARAMETERS = ("logits",)

    def __init__(
        self, logits: Any = None, probs: Any = None, validate_args: bool = False, allow_nan_stats: bool = True,
        name: str = "Geometric",
    ):  # fmt: skip
        parameters = dict(locals())
        with name_scope(name, None, [logits, probs]) as scope:
            self._logits, self._probs = logits_and_probs(logits, probs, validate_args=validate_args, name=scope)
            with control_dependencies([assert_positive(self._probs)] if validate_args else []):
                self._probs = array_ops.identity(self._probs, name="probs")
        super().__init__(
            self._probs.dtype, NOT_REPARAMETERIZED, validate_args, allow_nan_stats, parameters,
            [self._probs, self._logits], scope,
        )  # fmt: skip

    def _batch_shape(self) -> Any:
        return self._probs.static_shape

    def _batch_shape_tensor(self) -> Any:
        return array_ops.shape(self._probs)

    def _checked(self, value: Tensor) -> Tensor:
        return whole_numbers(value, "a count") if self._validate_args else ops.floor(value)

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        shape = array_ops.concat([array_ops.stack([n]), self.batch_shape_tensor()], 0)
        drawn = uniform_above_zero(self, shape, seed)
        return ops.floor(math_ops.log(drawn) / ops.log1p(-self._probs))

    def _log_prob(self, value: Tensor) -> Any:
        count = self._checked(value)
        return ops.xlog1py(count, -self._probs) + math_ops.log(self._probs)

    def _cdf(self, value: Tensor) -> Any:
        count = self._checked(value)
        none = array_ops.zeros_like(count * self._probs)
        below = 1.0 - ops.pow(1.0 - self._probs, count + 1.0)
        return array_ops.where_v2(count < 0.0, none, below)

    def _entropy(self) -> Any:
        return nn_ops.softplus(self._logits) / self._probs - self._logits

    def _mean(self) -> Any:
        return math_ops.exp(-self._logits)

    def _variance(self) -> Any:
        return self._mean() / self._probs

    def _mode(self) -> Any:
        return array_ops.zeros(self.batch_shape_tensor(), self._dtype)


class Binomial(LogitsDistribution, ScalarDistribution):
    """How often something works in `total_count` tries; each works with probability `probs` (or `logits`).

    As in TensorFlow 1 it draws nothing.
    """

    def __init__(
        self, total_count: Any, logits: Any = None, probs: Any = None, validate_args: bool = False,
        allow_nan_stats: bool = True, name: str = "Binomial",
    ):  # fmt: skip
        parameters = dict(locals())
        with name_scope(name, None, [total_count, logits, probs]) as scope:
            count = convert_to_tensor(total_count, name="total_count")
            checks = [assert_non_negative(count, message="total_count must not be negative")] if validate_args else []
            with control_dependencies(checks):
                self._total_count = array_ops.identity(count) if checks else count
            self._logits, self._probs = logits_and_probs(logits, probs, validate_args=validate_args, name=scope)
        super().__init__(
            self._probs.dtype, NOT_REPARAMETERIZED, validate_args, allow_nan_stats, parameters,
            [self._total_count, self._logits, self._probs], scope,
        )  # fmt: skip

    @property
    def total_count(self) -> Tensor:
        return self._total_count

    def _batch_shape(self) -> Any:
        return joined_shape([self._total_count, self._probs])

    def _batch_shape_tensor(self) -> Any:
        return joined_shape_tensor([self._total_count, self._probs])

    def _checked(self, value: Tensor) -> Tensor:
        if not self._validate_args:
            return value
        count = whole_numbers(value, "a count")
        few = assert_less_equal(count, self._total_count, message="a count must not be greater than total_count")
        with control_dependencies([few]):
            return array_ops.identity(count)

    def _log_prob(self, value: Tensor) -> Any:
        count, total = self._checked(value), self._total_count
        chances = count * math_ops.log(self._probs) + (total - count) * ops.log1p(-self._probs)
        ways = ops.lgamma(1.0 + total - count) + ops.lgamma(1.0 + count) - ops.lgamma(1.0 + total)
        return chances - ways

    def _cdf(self, value: Tensor) -> Any:
        count = self._checked(value)
        zeros = array_ops.zeros_like(count + self._total_count + self._probs)  # the op does not broadcast
        failures = self._total_count - count + zeros
        is_all = math_ops.equal(failures, 0.0)
        ones = array_ops.ones_like(failures)
        found = ops.betainc(array_ops.where_v2(is_all, ones, failures), count + 1.0 + zeros, 1.0 - self._probs + zeros)
        return array_ops.where_v2(is_all, ones, found)

    def _mean(self) -> Any:
        return self._total_count * self._probs

    def _variance(self) -> Any:
        return self._mean() * (1.0 - self._probs)

    def _mode(self) -> Any:
        return ops.floor((1.0 + self._total_count) * self._probs)


class NegativeBinomial(LogitsDistribution, ScalarDistribution):
    """How often something works before it has failed `total_count` times; it works with probability `probs`."""

    def __init__(
        self, total_count: Any, logits: Any = None, probs: Any = None, validate_args: bool = False,
        allow_nan_stats: bool = True, name: str = "NegativeBinomial",
    ):  # fmt: skip
        parameters = dict(locals())
        with name_scope(name, None, [total_count, logits, probs]) as scope:
            self._logits, self._probs = logits_and_probs(logits, probs, validate_args=validate_args, name=scope)
            count = convert_to_tensor(total_count, self._probs.dtype.base, name="total_count")
            with control_dependencies([assert_positive(count)] if validate_args else []):
                self._total_count = array_ops.identity(count)
        super().__init__(
            self._probs.dtype, NOT_REPARAMETERIZED, validate_args, allow_nan_stats, parameters,
            [self._total_count, self._probs, self._logits], scope,
        )  # fmt: skip

    @property
    def total_count(self) -> Tensor:
        return self._total_count

    def _batch_shape(self) -> Any:
        return joined_shape([self._total_count, self._probs])

    def _batch_shape_tensor(self) -> Any:
        return joined_shape_tensor([self._total_count, self._probs])

    def _checked(self, value: Tensor) -> Tensor:
        return whole_numbers(value, "a count") if self._validate_args else value

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        rate = random_gamma(array_ops.stack([n]), self._total_count, math_ops.exp(-self._logits), self._dtype, seed)
        return random_poisson(rate, [], self._dtype, seed=salted(seed, "negative_binom"))

    def _log_prob(self, value: Tensor) -> Any:
        count = self._checked(value)
        chances = -self._total_count * nn_ops.softplus(self._logits) - count * nn_ops.softplus(-self._logits)
        ways = ops.lgamma(self._total_count + count) - ops.lgamma(1.0 + count) - ops.lgamma(self._total_count)
        return chances + ways

    def _cdf(self, value: Tensor) -> Any:
        above = 1.0 + self._checked(value)
        zeros = array_ops.zeros_like(above + self._total_count + self._logits)  # the op does not broadcast
        return ops.betainc(self._total_count + zeros, above + zeros, math_ops.sigmoid(-self._logits) + zeros)

    def _mean(self) -> Any:
        return self._total_count * math_ops.exp(self._logits)

    def _variance(self) -> Any:
        return self._mean() / math_ops.sigmoid(-self._logits)

    def _mode(self) -> Any:
        none = array_ops.zeros_like(self._total_count)
        before = array_ops.where_v2(self._total_count > 1.0, self._total_count - 1.0, none)
        return ops.floor(before * math_ops.exp(self._logits))
