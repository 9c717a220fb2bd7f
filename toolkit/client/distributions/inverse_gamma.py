"""The inverse gamma distribution: one over a gamma variable."""

from __future__ import annotations

import math
from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.checks.assertions import assert_less, assert_positive, assert_same_float_dtype
from toolkit.client.construction.scopes import control_dependencies, name_scope
from toolkit.client.construction.tensor import Tensor
from toolkit.client.distributions.base import FULLY_REPARAMETERIZED
from toolkit.client.distributions.location_scale import BroadcastScalars
from toolkit.client.distributions.parameters import filled
from toolkit.client.flow.control_flow import with_dependencies
from toolkit.client.math import math_ops
from toolkit.client.nn import nn_ops
from toolkit.client.random.more_random_ops import random_gamma


class InverseGamma(BroadcastScalars):
    """One over a gamma variable of shape `concentration` and `rate`."""

    _PARAMETERS = ("concentration", "rate")

    def __init__(
        self, concentration: Any, rate: Any, validate_args: bool = False, allow_nan_stats: bool = True,
        name: str = "InverseGamma",
    ):  # fmt: skip
        parameters = dict(locals())
        with name_scope(name, None, [concentration, rate]) as scope:
            checks = [assert_positive(concentration), assert_positive(rate)] if validate_args else []
            with control_dependencies(checks):
                self._concentration = array_ops.identity(concentration, name="concentration")
                self._rate = array_ops.identity(rate, name="rate")
                assert_same_float_dtype([self._concentration, self._rate])
        self._tensors = [self._concentration, self._rate]
        super().__init__(
            self._concentration.dtype, FULLY_REPARAMETERIZED, validate_args, allow_nan_stats, parameters,
            self._tensors, scope,
        )  # fmt: skip

    @property
    def concentration(self) -> Tensor:
        return self._concentration

    @property
    def rate(self) -> Tensor:
        return self._rate

    def _positive(self, value: Tensor) -> Tensor:
        return with_dependencies([assert_positive(value)], value) if self._validate_args else value

    def _sample_n(self, n: Any, seed: int | None = None) -> Any:
        return 1.0 / random_gamma(array_ops.stack([n]), self._concentration, self._rate, self._dtype, seed)

    def _log_prob(self, value: Tensor) -> Any:
        x, shape = self._positive(value), self._concentration
        normalization = ops.lgamma(shape) - shape * math_ops.log(self._rate)
        return -(1.0 + shape) * math_ops.log(x) - self._rate / x - normalization

    def _cdf(self, value: Tensor) -> Any:
        inverse = self._rate / self._positive(value)
        zeros = array_ops.zeros_like(inverse + self._concentration)  # the op does not broadcast
        return ops.igammac(self._concentration + zeros, inverse + zeros)

    def _entropy(self) -> Any:
        shape = self._concentration
        return shape + math_ops.log(self._rate) + ops.lgamma(shape) - (1.0 + shape) * ops.digamma(shape)

    def _defined(self, found: Tensor, above: float, what: str) -> Tensor:
        """NaN, or a failing step, where the concentration is not above a number."""
        if not self._allow_nan_stats:
            message = f"there is no {what} for a concentration <= {above:g}"
            least = filled(array_ops.shape(self._concentration), above, self._dtype)
            return with_dependencies([assert_less(least, self._concentration, message=message)], found)
        nan = filled(self.batch_shape_tensor(), math.nan, self._dtype, name="nan")
        return array_ops.where_v2(ops.greater(self._concentration, above), found, nan)

    def _mean(self) -> Any:
        return self._defined(self._rate / (self._concentration - 1.0), 1.0, "mean")

    def _variance(self) -> Any:
        shape = self._concentration
        found = math_ops.square(self._rate) / math_ops.square(shape - 1.0) / (shape - 2.0)
        return self._defined(found, 2.0, "variance")

    def _mode(self) -> Any:
        return self._rate / (1.0 + self._concentration)


class InverseGammaWithSoftplusConcentrationRate(InverseGamma):
    """The same, with the softplus of both."""

    def __init__(
        self, concentration: Any, rate: Any, validate_args: bool = False, allow_nan_stats: bool = True,
        name: str = "InverseGammaWithSoftplusConcentrationRate",
    ):  # fmt: skip
        shape, speed = nn_ops.softplus(concentration), nn_ops.softplus(rate)
        super().__init__(shape, speed, validate_args, allow_nan_stats, name)
        self._parameters |= {"concentration": concentration, "rate": rate}
