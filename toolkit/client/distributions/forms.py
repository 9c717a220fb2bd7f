"""What several distributions have in common by the form of their parameters and draws."""

from __future__ import annotations

from typing import Any

from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import constant
from toolkit.client.construction.tensor import Tensor
from toolkit.client.distributions.base import Distribution
from toolkit.graph import dtypes
from toolkit.graph.shape import Shape


class ScalarDistribution(Distribution):
    """A distribution of single numbers: the shape of an event is []."""

    def _event_shape(self) -> Any:
        return Shape([])

    def _event_shape_tensor(self) -> Any:
        return constant([], dtypes.int32)


class LogitsDistribution(Distribution):
    """A distribution by probabilities; the constructor sets `_logits` and `_probs`, of one shape."""

    _logits: Tensor
    _probs: Tensor

    @property
    def logits(self) -> Tensor:
        return self._logits

    @property
    def probs(self) -> Tensor:
        return self._probs


class ConcentrationDistribution(Distribution):
    """A distribution of vectors; the constructor sets `_concentration`, [*batch, size], and its sums, `_total`."""

    _concentration: Tensor
    _total: Tensor

    @property
    def concentration(self) -> Tensor:
        return self._concentration

    @property
    def total_concentration(self) -> Tensor:
        return self._total

    def _batch_shape(self) -> Any:
        return self._total.static_shape

    def _batch_shape_tensor(self) -> Any:
        return array_ops.shape(self._total)

    def _event_shape(self) -> Any:
        return self._concentration.static_shape.slice(-1)

    def _event_shape_tensor(self) -> Any:
        return array_ops.shape(self._concentration)[-1:]
