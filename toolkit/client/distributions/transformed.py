"""What a bijector makes of the draws of a distribution."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from toolkit.client.arrays import array_ops
from toolkit.client.bijectors.elementwise import Identity
from toolkit.client.construction.convert import as_shape, convert_to_tensor
from toolkit.client.construction.static_values import static_value
from toolkit.client.construction.tensor import Tensor
from toolkit.client.distributions.base import Distribution
from toolkit.client.math import math_ops
from toolkit.errors import ArgumentValueError
from toolkit.graph import dtypes
from toolkit.graph.shape import Shape


class TransformedDistribution(Distribution):
    """The distribution of y = bijector(x) for x of another one.

    Args:
        batch_shape: of many of a distribution that is no batch.
        event_shape: of vectors of draws of a distribution of single numbers.

    Raises:
        ValueError: a shape is not known now or no positive one; the distribution has such a shape itself.
    """

    def __init__(
        self, distribution: Any, bijector: Any = None, batch_shape: Any = None, event_shape: Any = None,
        validate_args: bool = False, name: str | None = None,
    ):  # fmt: skip
        parameters = dict(locals())
        self._distribution = distribution
        label = name or ("" if bijector is None else bijector.name) + distribution.name.rstrip("/")
        self._bijector: Any = Identity(validate_args) if bijector is None else bijector
        self._batch = _override(batch_shape, "batch_shape", as_shape(distribution.batch_shape))
        self._event = _override(event_shape, "event_shape", as_shape(distribution.event_shape))
        base_batch = as_shape(distribution.batch_shape).rank
        self._is_turned = bool(self._event and not self._batch and base_batch)
        super().__init__(
            distribution.dtype, distribution.reparameterization_type, validate_args, distribution.allow_nan_stats,
            parameters, [*distribution._graph_parents, *self._bijector.graph_parents], label,
        )  # fmt: skip

    @property
    def distribution(self) -> Any:
        return self._distribution

    @property
    def bijector(self) -> Any:
        return self._bijector

    def _batch_shape(self) -> Any:
        return Shape(self._batch) if self._batch else as_shape(self._distribution.batch_shape)

    def _batch_shape_tensor(self) -> Any:
        return convert_to_tensor(self._batch) if self._batch else self._distribution.batch_shape_tensor()

    def _event_shape(self) -> Any:
        return self._bijector.forward_event_shape(self._event or self._distribution.event_shape)

    def _event_shape_tensor(self) -> Any:
        inner: Any = self._event or self._distribution.event_shape_tensor()
        return self._bijector.forward_event_shape_tensor(inner)

    def _event_rank(self) -> Any:
        rank = as_shape(self._event_shape()).rank
        return array_ops.size(self._event_shape_tensor()) if rank is None else rank

    # -- draws -----------------------------------------------------------------------------------------------------

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        count = [n] if isinstance(n, Tensor) else [int(n)]
        shape: list[Any] = [*self._event, *count] if self._is_turned else [*count, *self._batch, *self._event]
        sizes: Any = array_ops.stack(shape) if isinstance(n, Tensor) else shape
        drawn = self._distribution.sample(sizes, seed)
        if self._is_turned:
            drawn = _turned(drawn, len(self._event))
        return self._bijector.forward(drawn)

    # -- densities -------------------------------------------------------------------------------------------------

    def _fibers(self, y: Tensor) -> list[tuple[Tensor, Any]]:
        """Each x that y may come from, and the logarithm of its determinant."""
        x = self._bijector.inverse(y)
        logs = self._bijector.inverse_log_det_jacobian(y, self._event_rank())
        return [(x, logs)] if self._bijector._is_injective else list(zip(x, logs, strict=True))

    def _base(self, x: Tensor, method: Callable[[Tensor], Tensor], join: Callable[[Tensor, Any], Tensor]) -> Tensor:
        """A density of the distribution itself, joined over the events that are made of its draws."""
        if self._is_turned:
            x = _turned(x, -len(self._event))
        found = method(x)
        if not self._event:
            return found
        count = len(self._event)
        return join(found, list(range(count)) if self._is_turned else list(range(-count, 0)))

    def _log_prob(self, value: Tensor) -> Any:
        parts = [
            self._base(x, self._distribution.log_prob, math_ops.reduce_sum) + math_ops.cast(logs, self._dtype)
            for x, logs in self._fibers(value)
        ]
        return parts[0] if len(parts) == 1 else math_ops.reduce_logsumexp(array_ops.stack(parts), 0)

    def _prob(self, value: Tensor) -> Any:
        total: Any = 0
        for x, logs in self._fibers(value):
            density = self._base(x, self._distribution.prob, math_ops.reduce_prod)
            total = total + density * math_ops.exp(math_ops.cast(logs, self._dtype))
        return total

    def _origin(self, value: Tensor, what: str) -> Tensor:
        """x of y, where y's order is that of x.

        Raises:
            NotImplementedError: events are made of several draws, or have several origins.
        """
        if self._event or not self._bijector._is_injective:
            raise NotImplementedError(f"{self.name} has no {what}: its events are no single numbers of one origin")
        return self._bijector.inverse(value)

    def _log_cdf(self, value: Tensor) -> Any:
        return self._distribution.log_cdf(self._origin(value, "log_cdf"))

    def _cdf(self, value: Tensor) -> Any:
        return self._distribution.cdf(self._origin(value, "cdf"))

    def _log_survival_function(self, value: Tensor) -> Any:
        return self._distribution.log_survival_function(self._origin(value, "log_survival_function"))

    def _survival_function(self, value: Tensor) -> Any:
        return self._distribution.survival_function(self._origin(value, "survival_function"))

    def _quantile(self, value: Tensor) -> Any:
        if self._event or not self._bijector._is_injective:
            raise NotImplementedError(f"{self.name} has no quantile: its events are no single numbers of one origin")
        return self._bijector.forward(self._distribution.quantile(value))

    def _entropy(self) -> Any:
        if not self._bijector.is_constant_jacobian or not self._bijector._is_injective:
            raise NotImplementedError(f"{self.name} has no entropy: the determinant of its bijector is not constant")
        entropy: Any = self._distribution.entropy() * float(np.prod(self._event))
        if self._batch:
            entropy = entropy + array_ops.zeros(self._batch, entropy.dtype.base)
        zeros = array_ops.zeros(
            array_ops.concat([self.batch_shape_tensor(), self.event_shape_tensor()], 0), self._dtype
        )
        logs = self._bijector.inverse_log_det_jacobian(zeros, self._event_rank())
        return entropy - math_ops.cast(logs, entropy.dtype.base)


class ConditionalTransformedDistribution(TransformedDistribution):
    """One whose bijector and distribution take further arguments, by keyword."""


def _override(given: Any, what: str, base: Shape) -> list[int]:
    """A shape as sizes.

    Raises:
        ValueError: it is not known now, not positive, or the distribution has such a shape itself.
    """
    if given is None:
        return []
    known = static_value(convert_to_tensor(given, dtypes.int32))
    if known is None or known.ndim != 1 or (known <= 0).any():
        raise ArgumentValueError(f"{what}: expected a vector of positive sizes that is known now, got {given}")
    if known.size and base.rank:
        raise ArgumentValueError(f"{what}: the distribution has the shape {base} itself; leave it out")
    return known.tolist()


def _turned(x: Tensor, count: int) -> Tensor:
    """The first dimensions behind the others; of a negative number, the last ones before them."""
    rank = x.static_shape.rank
    if rank is not None:
        order = [*range(count % rank, rank), *range(count % rank)]
        return array_ops.transpose(x, order)
    total = array_ops.rank(x)
    first = count if count > 0 else total + count
    return array_ops.transpose(x, array_ops.concat([math_ops.range(first, total), math_ops.range(first)], 0))
