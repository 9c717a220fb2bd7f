"""Distributions of one value."""

from __future__ import annotations

from typing import Any

from toolkit.client.arrays import array_ops
from toolkit.client.checks.assertions import assert_non_negative
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor
from toolkit.client.distributions.base import NOT_REPARAMETERIZED, Distribution
from toolkit.client.distributions.forms import ScalarDistribution
from toolkit.client.flow.control_flow import with_dependencies
from toolkit.client.math import math_ops
from toolkit.errors import ArgumentValueError


class PointDistribution(Distribution):
    """Everything is at `loc`; a value is there that is at most atol + rtol |loc| from it."""

    def __init__(
        self, loc: Any, atol: Any, rtol: Any, validate_args: bool, allow_nan_stats: bool, name: str,
        parameters: dict[str, Any],
    ):  # fmt: skip
        with name_scope(name, None, [loc, atol, rtol]) as scope:
            self._loc = convert_to_tensor(loc, name="loc")
            self._atol, self._rtol = (self._tolerance(given, validate_args) for given in (atol, rtol))
            self._slack: Any = self._atol if rtol is None else self._atol + self._rtol * math_ops.abs(self._loc)
        super().__init__(
            self._loc.dtype, NOT_REPARAMETERIZED, validate_args, allow_nan_stats, parameters, [self._loc], scope
        )

    def _tolerance(self, given: Any, validate_args: bool) -> Tensor:
        tolerance = convert_to_tensor(0 if given is None else given, self._loc.dtype.base)
        if given is None or not validate_args:
            return tolerance
        return with_dependencies([assert_non_negative(tolerance, message="a tolerance is not negative")], tolerance)

    @property
    def loc(self) -> Tensor:
        return self._loc

    @property
    def atol(self) -> Tensor:
        return self._atol

    @property
    def rtol(self) -> Tensor:
        return self._rtol

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        del seed
        times = array_ops.concat([array_ops.stack([n]), array_ops.ones_like(array_ops.shape(self._loc))], 0)
        return array_ops.tile(self._loc[None, ...], times)

    def _entropy(self) -> Any:
        return array_ops.zeros(self.batch_shape_tensor(), self._dtype)

    def _mean(self) -> Any:
        return array_ops.identity(self._loc)

    def _variance(self) -> Any:
        return array_ops.zeros_like(self._loc)

    def _mode(self) -> Any:
        return self._mean()


class Deterministic(ScalarDistribution, PointDistribution):
    """A number that is always the same.

    Args:
        atol, rtol: how far from it a value may be that still counts, as a number and as a part of it.
    """

    def __init__(
        self, loc: Any, atol: Any = None, rtol: Any = None, validate_args: bool = False, allow_nan_stats: bool = True,
        name: str = "Deterministic",
    ):  # fmt: skip
        PointDistribution.__init__(self, loc, atol, rtol, validate_args, allow_nan_stats, name, dict(locals()))

    def _batch_shape(self) -> Any:
        return self._loc.static_shape

    def _batch_shape_tensor(self) -> Any:
        return array_ops.shape(self._loc)

    def _prob(self, value: Tensor) -> Any:
        return math_ops.cast(math_ops.abs(value - self._loc) <= self._slack, self._dtype)

    def _cdf(self, value: Tensor) -> Any:
        return math_ops.cast(value >= self._loc - self._slack, self._dtype)


class VectorDeterministic(PointDistribution):
    """A vector that is always the same.

    Raises:
        ValueError: `loc` is a number.
    """

    def __init__(
        self, loc: Any, atol: Any = None, rtol: Any = None, validate_args: bool = False, allow_nan_stats: bool = True,
        name: str = "VectorDeterministic",
    ):  # fmt: skip
        super().__init__(loc, atol, rtol, validate_args, allow_nan_stats, name, dict(locals()))
        if self._loc.static_shape.rank == 0:
            raise ArgumentValueError(f"loc: expected a vector, got the number '{self._loc.name}'")

    def _batch_shape(self) -> Any:
        return self._loc.static_shape.slice(0, -1)

    def _batch_shape_tensor(self) -> Any:
        return array_ops.shape(self._loc)[:-1]

    def _event_shape(self) -> Any:
        return self._loc.static_shape.slice(-1)

    def _event_shape_tensor(self) -> Any:
        return array_ops.shape(self._loc)[-1:]

    def _prob(self, value: Tensor) -> Any:
        near = math_ops.abs(value - self._loc) <= self._slack
        return math_ops.cast(math_ops.reduce_all(near, -1), self._dtype)
