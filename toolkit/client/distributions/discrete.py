"""Distributions of events and counts: Bernoulli, Categorical, Multinomial, DirichletMultinomial."""

from __future__ import annotations

from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.arrays.masks import sequence_mask
from toolkit.client.checks.assertions import assert_equal, assert_positive
from toolkit.client.construction.convert import DTypeLike, constant, convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor
from toolkit.client.distributions.base import NOT_REPARAMETERIZED, Distribution
from toolkit.client.distributions.divergence import RegisterKL
from toolkit.client.distributions.forms import ConcentrationDistribution, LogitsDistribution, ScalarDistribution
from toolkit.client.distributions.gamma import negative_products
from toolkit.client.distributions.parameters import log_combinations, logits_and_probs, salted, whole_numbers
from toolkit.client.flow.control_flow import with_dependencies
from toolkit.client.flow.functional_ops import map_fn
from toolkit.client.math import math_ops, special_ops
from toolkit.client.nn import nn_ops
from toolkit.client.random import random_ops
from toolkit.client.random.more_random_ops import random_gamma
from toolkit.errors import UsageError
from toolkit.graph import dtypes


class Bernoulli(LogitsDistribution, ScalarDistribution):
    """1 with probability `probs` (the sigmoid of `logits`), else 0."""

    _PARAMETERS = ("logits",)

    def __init__(
        self, logits: Any = None, probs: Any = None, dtype: DTypeLike = dtypes.int32, validate_args: bool = False,
        allow_nan_stats: bool = True, name: str = "Bernoulli",
    ):  # fmt: skip
        parameters = dict(locals())
        with name_scope(name) as scope:
            self._logits, self._probs = logits_and_probs(logits, probs, validate_args=validate_args, name=scope)
        super().__init__(
            dtype, NOT_REPARAMETERIZED, validate_args, allow_nan_stats, parameters, [self._logits, self._probs], scope
        )

    def _batch_shape(self) -> Any:
        return self._logits.static_shape

    def _batch_shape_tensor(self) -> Any:
        return array_ops.shape(self._logits)

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        shape = array_ops.concat([array_ops.stack([n]), self.batch_shape_tensor()], 0)
        drawn = random_ops.random_uniform(shape, seed=seed, dtype=self._probs.dtype.base)
        return math_ops.cast(ops.less(drawn, self._probs), self._dtype)

    def _log_prob(self, value: Tensor) -> Any:
        event = whole_numbers(value, "an event") if self._validate_args else value
        event, logits = math_ops.cast(event, self._logits.dtype.base), self._logits
        same = event.static_shape.is_fully_defined and event.static_shape == logits.static_shape
        if not same:
            logits, event = array_ops.ones_like(event) * logits, array_ops.ones_like(logits) * event
        return -nn_ops.sigmoid_cross_entropy_with_logits(labels=event, logits=logits)

    def _entropy(self) -> Any:
        return -self._logits * (math_ops.sigmoid(self._logits) - 1) + nn_ops.softplus(-self._logits)

    def _mean(self) -> Any:
        return array_ops.identity(self._probs)

    def _variance(self) -> Any:
        return self._mean() * (1.0 - self._probs)

    def _mode(self) -> Any:
        return math_ops.cast(ops.greater(self._probs, 0.5), self._dtype)


@RegisterKL(Bernoulli, Bernoulli)
def _bernoullis(a: Bernoulli, b: Bernoulli, name: str | None = None) -> Tensor:
    with name_scope(name, "kl_bernoulli_bernoulli", [a.logits, b.logits]):
        no = nn_ops.softplus(-b.logits) - nn_ops.softplus(-a.logits)
        yes = nn_ops.softplus(b.logits) - nn_ops.softplus(a.logits)
        return math_ops.sigmoid(a.logits) * no + math_ops.sigmoid(-a.logits) * yes


class Categorical(LogitsDistribution, ScalarDistribution):
    """A class number, with the probabilities `probs` (the softmax of `logits`), [..., classes]."""

    def __init__(
        self, logits: Any = None, probs: Any = None, dtype: DTypeLike = dtypes.int32, validate_args: bool = False,
        allow_nan_stats: bool = True, name: str = "Categorical",
    ):  # fmt: skip
        parameters = dict(locals())
        with name_scope(name, None, [logits, probs]) as scope:
            self._logits, self._probs = logits_and_probs(logits, probs, True, validate_args, scope)
            shape = self._logits.static_shape
            if not shape.rank:
                raise UsageError(f"a Categorical needs a last axis of classes; its parameter has shape {shape}")
            self._batch_rank = convert_to_tensor(shape.rank - 1, dtypes.int32, name="batch_rank")
            sizes = array_ops.shape(self._logits, name="logits_shape")
            if shape[-1] is not None:
                self._event_size = convert_to_tensor(shape[-1], dtypes.int32, name="event_size")
            else:
                with name_scope("event_size"):
                    self._event_size = sizes[self._batch_rank]
            if shape.slice(0, -1).is_fully_defined:
                self._sizes = constant(shape.slice(0, -1).as_list(), dtypes.int32, name="batch_shape")
            else:
                with name_scope("batch_shape"):
                    self._sizes = sizes[:-1]
        super().__init__(
            dtype, NOT_REPARAMETERIZED, validate_args, allow_nan_stats, parameters, [self._logits, self._probs], scope
        )

    @property
    def event_size(self) -> Tensor:
        """How many classes there are."""
        return self._event_size

    def _batch_shape(self) -> Any:
        return self._logits.static_shape.slice(0, -1)

    def _batch_shape_tensor(self) -> Any:
        return array_ops.identity(self._sizes)

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        logits = self._logits
        if logits.static_shape.rank != 2:
            logits = array_ops.reshape(logits, array_ops.stack([-1, self._event_size]))
        kind = dtypes.int64 if self._dtype.numpy.itemsize > 4 else dtypes.int32
        drawn = random_ops.multinomial(logits, n, seed=seed, output_dtype=kind)
        shape = array_ops.concat([array_ops.stack([n]), self.batch_shape_tensor()], 0)
        return math_ops.cast(array_ops.reshape(array_ops.transpose(drawn), shape), self._dtype)

    def _fitted(self, k: Tensor, parameter: Tensor) -> tuple[Tensor, Tensor]:
        """Class numbers and a parameter, broadcast to the same batch."""
        k = whole_numbers(k, "a class number") if self._validate_args else k
        if k.dtype.base.is_floating:
            k = math_ops.cast(k, dtypes.int32)
        outer = parameter.static_shape.slice(0, -1)
        if not (outer.is_fully_defined and outer == k.static_shape):
            parameter = parameter * array_ops.ones_like(array_ops.expand_dims(k, -1), dtype=parameter.dtype.base)
            k = k * array_ops.ones(array_ops.shape(parameter)[:-1], k.dtype.base)
            if parameter.static_shape.rank is not None:
                k.set_shape(parameter.static_shape.slice(0, -1))
        return k, parameter

    def _cdf(self, value: Tensor) -> Any:
        k, probs = self._fitted(value, self._probs)
        rows = array_ops.reshape(probs, array_ops.stack([-1, self._event_size]))
        before = sequence_mask(array_ops.reshape(k, [-1]), self._event_size)
        found = math_ops.reduce_sum(array_ops.where(before, rows, array_ops.zeros_like(rows)), -1)
        return array_ops.reshape(found, array_ops.shape(k))

    def _log_prob(self, value: Tensor) -> Any:
        k, logits = self._fitted(value, self._logits)
        return -nn_ops.sparse_softmax_cross_entropy_with_logits(labels=k, logits=logits)

    def _entropy(self) -> Any:
        return -math_ops.reduce_sum(nn_ops.log_softmax(self._logits) * self._probs, -1)

    def _mode(self) -> Any:
        found = math_ops.cast(math_ops.argmax(self._logits, self._batch_rank), self._dtype)
        found.set_shape(self._batch_shape())
        return found


@RegisterKL(Categorical, Categorical)
def _categoricals(a: Categorical, b: Categorical, name: str | None = None) -> Tensor:
    with name_scope(name, "kl_categorical_categorical", [a.logits, b.logits]):
        apart = nn_ops.log_softmax(a.logits) - nn_ops.log_softmax(b.logits)
        return math_ops.reduce_sum(nn_ops.softmax(a.logits) * apart, -1)


class _Counts(Distribution):
    """Counts [..., k] that add up to `total_count` [...]."""

    _total_count: Tensor

    @property
    def total_count(self) -> Tensor:
        return self._total_count

    def _checked(self, counts: Tensor) -> Tensor:
        if not self._validate_args:
            return counts
        counts = whole_numbers(counts, "counts")
        total = math_ops.reduce_sum(counts, -1)
        return with_dependencies(
            [assert_equal(self._total_count, total, message="counts must add up to total_count")], counts
        )


class Multinomial(_Counts, LogitsDistribution):
    """How often each class is drawn in `total_count` draws with the probabilities `probs` (or `logits`)."""

    def __init__(
        self, total_count: Any, logits: Any = None, probs: Any = None, validate_args: bool = False,
        allow_nan_stats: bool = True, name: str = "Multinomial",
    ):  # fmt: skip
        parameters = dict(locals())
        with name_scope(name, None, [total_count, logits, probs]) as scope:
            total = convert_to_tensor(total_count, name="total_count")
            self._total_count = whole_numbers(total, "total_count") if validate_args else total
            self._logits, self._probs = logits_and_probs(logits, probs, True, validate_args, scope)
            self._expected = array_ops.expand_dims(self._total_count, -1) * self._probs
        super().__init__(
            self._probs.dtype, NOT_REPARAMETERIZED, validate_args, allow_nan_stats, parameters,
            [self._total_count, self._logits, self._probs], scope,
        )  # fmt: skip

    def _batch_shape(self) -> Any:
        return self._expected.static_shape.slice(0, -1)

    def _batch_shape_tensor(self) -> Any:
        return array_ops.shape(self._expected)[:-1]

    def _event_shape(self) -> Any:
        return self._expected.static_shape.slice(-1)

    def _event_shape_tensor(self) -> Any:
        return array_ops.shape(self._expected)[-1:]

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        classes = self.event_shape_tensor()[0]
        counts = math_ops.cast(self._total_count, dtypes.int32)
        counts = array_ops.ones_like(self._logits[..., 0], dtype=dtypes.int32) * counts
        spread = array_ops.ones_like(array_ops.expand_dims(counts, -1), dtype=self._logits.dtype.base)
        rows = array_ops.reshape(spread * self._logits, array_ops.stack([-1, classes]))
        counts = n * array_ops.reshape(counts, [-1])

        def drawn(row: Any) -> Tensor:
            logits, count = row
            found = random_ops.multinomial(array_ops.expand_dims(logits, 0), count, seed)
            found = array_ops.reshape(found, array_ops.stack([n, -1]))
            return math_ops.reduce_sum(array_ops.one_hot(found, classes, dtype=self._dtype), -2)

        found = array_ops.transpose(map_fn(drawn, [rows, counts], dtype=self._dtype), [1, 0, 2])
        shape = array_ops.concat(
            [array_ops.stack([n]), self.batch_shape_tensor(), array_ops.stack([classes])], 0
        )  # fmt: skip
        return array_ops.reshape(found, shape)

    def _log_prob(self, value: Tensor) -> Any:
        counts = self._checked(value)
        found = math_ops.reduce_sum(counts * nn_ops.log_softmax(self._logits), -1)
        return found + log_combinations(self._total_count, counts)

    def _mean(self) -> Any:
        return array_ops.identity(self._expected)

    def _shares(self) -> Tensor:
        return self._probs * array_ops.expand_dims(array_ops.ones_like(self._total_count), -1)

    def _covariance(self) -> Any:
        root = math_ops.sqrt(array_ops.expand_dims(self._total_count, -1))
        return negative_products(root * self._shares(), self._variance())

    def _variance(self) -> Any:
        return self._expected - self._expected * self._shares()


class DirichletMultinomial(_Counts, ConcentrationDistribution):
    """Counts of a Multinomial whose probabilities are drawn of a Dirichlet distribution first."""

    def __init__(
        self, total_count: Any, concentration: Any, validate_args: bool = False, allow_nan_stats: bool = True,
        name: str = "DirichletMultinomial",
    ):  # fmt: skip
        parameters = dict(locals())
        with name_scope(name, None, [total_count, concentration]) as scope:
            total = convert_to_tensor(total_count, name="total_count")
            self._total_count = whole_numbers(total, "total_count") if validate_args else total
            given = convert_to_tensor(concentration, name="concentration")
            if validate_args:
                given = with_dependencies([assert_positive(given, message="concentration must be above 0")], given)
            self._concentration = given
            self._total = math_ops.reduce_sum(given, -1)
        super().__init__(
            given.dtype, NOT_REPARAMETERIZED, validate_args, allow_nan_stats, parameters, [self._total_count, given],
            scope,
        )  # fmt: skip

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        classes = self.event_shape_tensor()[0]
        shares = random_gamma(array_ops.stack([n]), self._concentration, dtype=self._dtype, seed=seed)
        logits = array_ops.reshape(math_ops.log(shares), array_ops.stack([-1, classes]))
        count = math_ops.cast(self._total_count, dtypes.int32)
        drawn = random_ops.multinomial(logits, count, seed=salted(seed, "dirichlet_multinomial"))
        found = math_ops.reduce_sum(array_ops.one_hot(drawn, classes), -2)
        shape = array_ops.concat(
            [array_ops.stack([n]), self.batch_shape_tensor(), array_ops.stack([classes])], 0
        )  # fmt: skip
        return math_ops.cast(array_ops.reshape(found, shape), self._dtype)

    def _log_prob(self, value: Tensor) -> Any:
        counts = self._checked(value)
        ordered = special_ops.lbeta(self._concentration + counts) - special_ops.lbeta(self._concentration)
        return ordered + log_combinations(self._total_count, counts)

    def _prob(self, value: Tensor) -> Any:
        return math_ops.exp(self._log_prob(value))

    def _mean(self) -> Any:
        return self._total_count * (self._concentration / array_ops.expand_dims(self._total, -1))

    def _scale(self) -> Tensor:
        total = array_ops.expand_dims(self._total, -1)
        return math_ops.sqrt((1.0 + total / self._total_count) / (1.0 + total))

    def _covariance(self) -> Any:
        return negative_products(self._scale() * self._mean(), self._variance())

    def _variance(self) -> Any:
        scale = self._scale()
        x = scale * self._mean()
        return x * (self._total_count * scale - x)
