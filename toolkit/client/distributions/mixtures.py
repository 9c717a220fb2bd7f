"""Mixtures: a draw is of one of several distributions, which another distribution chooses."""

from __future__ import annotations

from typing import Any

from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import as_shape
from toolkit.client.construction.tensor import Tensor
from toolkit.client.distributions.base import NOT_REPARAMETERIZED, Distribution
from toolkit.client.math import math_ops
from toolkit.client.nn import nn_ops
from toolkit.errors import ArgumentValueError


class MixtureSameFamily(Distribution):
    """A mixture of the last dimension of a batch.

    Args:
        mixture_distribution: a Categorical, of the batch or of each its own.
        components_distribution: a batch [..., k].

    Raises:
        ValueError: the numbers of components, or the batches, differ; the choice is no number.
    """

    def __init__(
        self, mixture_distribution: Any, components_distribution: Any, validate_args: bool = False,
        allow_nan_stats: bool = True, name: str = "MixtureSameFamily",
    ):  # fmt: skip
        parameters = dict(locals())
        self._choice, self._parts = mixture_distribution, components_distribution
        if not self._choice.dtype.is_integer:
            raise ArgumentValueError(f"mixture_distribution: expected one of whole numbers, got {self._choice.dtype}")
        batch, event = as_shape(self._parts.batch_shape), as_shape(self._parts.event_shape)
        if event.rank is None or batch.rank is None or batch.rank < 1:
            raise ArgumentValueError(
                f"components_distribution: expected a batch of components, got shape {batch} of events {event}"
            )
        self._rank = event.rank
        own, chosen = as_shape(self._choice.batch_shape), self._choice.logits.static_shape[-1]
        if own.rank and not own.is_compatible_with(batch.slice(0, -1)):
            raise ArgumentValueError(f"the batch {own} of mixture_distribution does not fit {batch.slice(0, -1)}")
        if None not in (chosen, batch[-1]) and chosen != batch[-1]:
            raise ArgumentValueError(f"mixture_distribution chooses of {chosen}, but there are {batch[-1]} components")
        super().__init__(
            self._parts.dtype, NOT_REPARAMETERIZED, validate_args, allow_nan_stats, parameters,
            [*self._choice._graph_parents, *self._parts._graph_parents], name,
        )  # fmt: skip

    @property
    def mixture_distribution(self) -> Any:
        return self._choice

    @property
    def components_distribution(self) -> Any:
        return self._parts

    def _batch_shape(self) -> Any:
        return as_shape(self._parts.batch_shape).slice(0, -1)

    def _batch_shape_tensor(self) -> Any:
        return self._parts.batch_shape_tensor()[:-1]

    def _event_shape(self) -> Any:
        return self._parts.event_shape

    def _event_shape_tensor(self) -> Any:
        return self._parts.event_shape_tensor()

    def _beside(self, x: Any) -> Any:
        """A value [..., *event] as [..., 1, *event], for each component."""
        return array_ops.expand_dims(x, -1 - self._rank)

    def _weights(self, weights: Any, more: int = 0) -> Any:
        """Weights [..., k] as [..., k, 1, ...], one for each number of an event."""
        for _ in range(self._rank + more):
            weights = array_ops.expand_dims(weights, -1)
        return weights

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        drawn = self._parts.sample(n, seed)
        chosen = self._choice.sample(n, None if seed is None else seed + 1)
        count = self._choice.logits.static_shape[-1]
        depth: Any = array_ops.shape(self._choice.logits)[-1] if count is None else count
        mask = array_ops.one_hot(chosen, depth, dtype=self._dtype)
        outer = as_shape(self._parts.batch_shape).rank or 1
        for _ in range(outer - 1 - (as_shape(self._choice.batch_shape).rank or 0)):
            mask = array_ops.expand_dims(mask, 1)
        return math_ops.reduce_sum(drawn * self._weights(mask), -1 - self._rank)

    def _joined(self, logs: Tensor) -> Tensor:
        return math_ops.reduce_logsumexp(logs + nn_ops.log_softmax(self._choice.logits), -1)

    def _log_prob(self, value: Tensor) -> Any:
        return self._joined(self._parts.log_prob(self._beside(value)))

    def _log_cdf(self, value: Tensor) -> Any:
        return self._joined(self._parts.log_cdf(self._beside(value)))

    def _mean(self) -> Any:
        return math_ops.reduce_sum(self._weights(self._choice.probs) * self._parts.mean(), -1 - self._rank)

    def _variance(self) -> Any:
        weights = self._weights(self._choice.probs)
        inside = math_ops.reduce_sum(weights * self._parts.variance(), -1 - self._rank)
        apart = math_ops.square(self._parts.mean() - self._beside(self._mean()))
        return inside + math_ops.reduce_sum(weights * apart, -1 - self._rank)

    def _covariance(self) -> Any:
        if self._rank != 1:
            raise NotImplementedError(f"the covariance is of vectors; events have {self._rank} dimensions")
        weights = self._weights(self._choice.probs, 1)
        apart = self._parts.mean() - self._beside(self._mean())
        outer = apart[..., None, :] * apart[..., None]
        inside = math_ops.reduce_sum(weights * self._parts.covariance(), -3)
        return inside + math_ops.reduce_sum(weights * outer, -3)
