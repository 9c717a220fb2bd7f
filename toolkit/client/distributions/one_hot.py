"""Classes as vectors: OneHotCategorical, and what is nearly one and has gradients (the Gumbel softmax)."""

from __future__ import annotations

from typing import Any

import numpy as np

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.checks.assertions import assert_positive
from toolkit.client.construction.convert import DTypeLike
from toolkit.client.construction.scopes import control_dependencies, name_scope
from toolkit.client.construction.tensor import Tensor
from toolkit.client.distributions.base import FULLY_REPARAMETERIZED, NOT_REPARAMETERIZED
from toolkit.client.distributions.divergence import RegisterKL
from toolkit.client.distributions.forms import LogitsDistribution, ScalarDistribution
from toolkit.client.distributions.gamma import negative_products
from toolkit.client.distributions.heavier_tails import Logistic
from toolkit.client.distributions.parameters import logits_and_probs
from toolkit.client.losses.cross_entropy import softmax_cross_entropy
from toolkit.client.math import math_ops
from toolkit.client.nn import nn_ops
from toolkit.client.random import random_ops
from toolkit.graph import dtypes


class _Vectors(LogitsDistribution):
    """Vectors [..., classes] with a probability for each class."""

    def _batch_shape(self) -> Any:
        return self._logits.static_shape.slice(0, -1)

    def _batch_shape_tensor(self) -> Any:
        return array_ops.shape(self._logits)[:-1]

    def _event_shape(self) -> Any:
        return self._logits.static_shape.slice(-1)

    def _event_shape_tensor(self) -> Any:
        return array_ops.shape(self._logits)[-1:]

    @property
    def event_size(self) -> Tensor:
        """How many classes there are."""
        return array_ops.shape(self._logits)[-1]

    def _rows(self, tensor: Tensor) -> Tensor:
        return array_ops.reshape(tensor, array_ops.stack([-1, self.event_size]))

    def _drawn_shape(self, n: Any) -> Tensor:
        return array_ops.concat([array_ops.stack([n]), array_ops.shape(self._logits)], 0)

    def _fitted(self, value: Tensor) -> tuple[Tensor, Tensor]:
        """Values and logits, broadcast to each other."""
        logits = array_ops.ones_like(value, dtype=self._logits.dtype.base) * self._logits
        return array_ops.ones_like(logits, dtype=value.dtype.base) * value, logits


class OneHotCategorical(_Vectors):
    """A vector that is 1 at a class and 0 elsewhere, with the probabilities `probs` (the softmax of `logits`)."""

    def __init__(
        self, logits: Any = None, probs: Any = None, dtype: DTypeLike = dtypes.int32, validate_args: bool = False,
        allow_nan_stats: bool = True, name: str = "OneHotCategorical",
    ):  # fmt: skip
        parameters = dict(locals())
        with name_scope(name, None, [logits, probs]) as scope:
            self._logits, self._probs = logits_and_probs(logits, probs, True, validate_args, scope)
        super().__init__(
            dtype, NOT_REPARAMETERIZED, validate_args, allow_nan_stats, parameters, [self._logits, self._probs], scope
        )

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        drawn = random_ops.multinomial(self._rows(self._logits), n, seed=seed)
        found = array_ops.one_hot(array_ops.transpose(drawn), self.event_size, dtype=self._dtype)
        return array_ops.reshape(found, self._drawn_shape(n))

    def _log_prob(self, value: Tensor) -> Any:
        vectors, logits = self._fitted(value)
        found = -softmax_cross_entropy(math_ops.cast(self._rows(vectors), logits.dtype.base), self._rows(logits))
        return array_ops.reshape(found, array_ops.shape(logits)[:-1])

    def _entropy(self) -> Any:
        return -math_ops.reduce_sum(nn_ops.log_softmax(self._logits) * self._probs, -1)

    def _mean(self) -> Any:
        return array_ops.identity(self._probs)

    def _mode(self) -> Any:
        found = array_ops.one_hot(math_ops.argmax(self._logits, -1), self.event_size, dtype=self._dtype)
        found.set_shape(self._logits.static_shape)
        return found

    def _covariance(self) -> Any:
        return negative_products(self._probs, self._variance())

    def _variance(self) -> Any:
        return self._probs * (1.0 - self._probs)


@RegisterKL(OneHotCategorical, OneHotCategorical)
def _one_hots(a: OneHotCategorical, b: OneHotCategorical, name: str | None = None) -> Tensor:
    with name_scope(name, "kl_categorical_categorical", [a.logits, b.logits]):
        apart = nn_ops.log_softmax(a.logits) - nn_ops.log_softmax(b.logits)
        return math_ops.reduce_sum(nn_ops.softmax(a.logits) * apart, -1)


class ExpRelaxedOneHotCategorical(_Vectors):
    """Logarithms of RelaxedOneHotCategorical's draws, which are exact where these are rounded to 0.

    Args:
        temperature: near 0 draws are nearly one-hot; large, nearly all the same.
    """

    def __init__(
        self, temperature: Any, logits: Any = None, probs: Any = None, dtype: DTypeLike = None,
        validate_args: bool = False, allow_nan_stats: bool = True, name: str = "ExpRelaxedOneHotCategorical",
    ):  # fmt: skip
        parameters = dict(locals())
        with name_scope(name, None, [logits, probs, temperature]) as scope:
            self._logits, self._probs = logits_and_probs(logits, probs, True, validate_args, scope)
            given = math_ops.cast(temperature, self._logits.dtype.base)
            with control_dependencies([assert_positive(given)] if validate_args else []):
                self._temperature = array_ops.identity(given, name="temperature")
        kind = self._logits.dtype if dtype is None else dtype
        super().__init__(
            kind, FULLY_REPARAMETERIZED, validate_args, allow_nan_stats, parameters,
            [self._logits, self._probs, self._temperature], scope,
        )  # fmt: skip

    @property
    def temperature(self) -> Tensor:
        return self._temperature

    def _cold(self) -> Tensor:
        return array_ops.reshape(self._temperature, [-1, 1])

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        shape = self._drawn_shape(n)
        rows = self._rows(self._logits * array_ops.ones(shape, self._dtype))
        least = np.finfo(self._dtype.numpy).tiny
        drawn = random_ops.random_uniform(array_ops.shape(rows), least, 1.0, self._dtype, seed)
        gumbel = -math_ops.log(-math_ops.log(drawn))
        return array_ops.reshape(nn_ops.log_softmax((gumbel + rows) / self._cold()), shape)

    def _log_prob(self, value: Tensor) -> Any:
        vectors, logits = self._fitted(value)
        count = math_ops.cast(self.event_size, vectors.dtype.base)
        normalization = ops.lgamma(count) + (count - 1.0) * math_ops.log(self._temperature)
        found = nn_ops.log_softmax(self._rows(logits) - self._rows(vectors) * self._cold())
        found = normalization + math_ops.reduce_sum(found, -1)
        return array_ops.reshape(found, array_ops.shape(logits)[:-1])


class RelaxedOneHotCategorical(ExpRelaxedOneHotCategorical):
    """Vectors that add up to 1, nearly one-hot, with gradients (Jang et al., arXiv 1611.01144; Maddison et al.,
    1611.00712)."""

    def __init__(
        self, temperature: Any, logits: Any = None, probs: Any = None, dtype: DTypeLike = None,
        validate_args: bool = False, allow_nan_stats: bool = True, name: str = "RelaxedOneHotCategorical",
    ):  # fmt: skip
        super().__init__(temperature, logits, probs, dtype, validate_args, allow_nan_stats, name)

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        return math_ops.exp(super()._sample_n(n, seed))

    def _log_prob(self, value: Tensor) -> Any:
        logs = math_ops.log(value)
        return super()._log_prob(logs) - math_ops.reduce_sum(logs, -1)


class RelaxedBernoulli(LogitsDistribution, ScalarDistribution):
    """Numbers between 0 and 1, nearly one of them, with gradients: the sigmoid of a logistic variable.

    Args:
        temperature: near 0 draws are nearly 0 or 1.
    """

    _PARAMETERS = ("logits",)

    def __init__(
        self, temperature: Any, logits: Any = None, probs: Any = None, validate_args: bool = False,
        allow_nan_stats: bool = True, name: str = "RelaxedBernoulli",
    ):  # fmt: skip
        parameters = dict(locals())
        with name_scope(name, None, [logits, probs, temperature]) as scope:
            with control_dependencies([assert_positive(temperature)] if validate_args else []):
                self._temperature = array_ops.identity(temperature, name="temperature")
            self._logits, self._probs = logits_and_probs(
                logits, probs, validate_args=validate_args, name="get_logits_and_probs"
            )
            self.distribution = Logistic(
                self._logits / self._temperature, 1.0 / self._temperature, validate_args, allow_nan_stats
            )
        super().__init__(
            self._logits.dtype, FULLY_REPARAMETERIZED, validate_args, allow_nan_stats, parameters,
            [self._logits, self._probs, self._temperature], scope,
        )  # fmt: skip

    @property
    def temperature(self) -> Tensor:
        return self._temperature

    def _batch_shape(self) -> Any:
        return self.distribution.batch_shape

    def _batch_shape_tensor(self) -> Any:
        return self.distribution.batch_shape_tensor()

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        return math_ops.sigmoid(self.distribution.sample(n, seed))

    def _log_prob(self, value: Tensor) -> Any:
        odds = math_ops.log(value) - ops.log1p(-value)
        # the slope of the sigmoid there is value * (1 - value)
        return self.distribution.log_prob(odds) - math_ops.log(value) - ops.log1p(-value)

    def _cdf(self, value: Tensor) -> Any:
        return self.distribution.cdf(math_ops.log(value) - ops.log1p(-value))
