"""Distributions whose parameters are made positive first, by softplus or by taking their size; and Chi2."""

from __future__ import annotations

from typing import Any

import numpy as np

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.distributions.gamma import Beta, Exponential, Gamma
from toolkit.client.distributions.location_scale import Laplace, Normal, StudentT
from toolkit.client.math import math_ops
from toolkit.client.nn import nn_ops


class NormalWithSoftplusScale(Normal):
    def __init__(
        self, loc: Any, scale: Any, validate_args: bool = False, allow_nan_stats: bool = True,
        name: str = "NormalWithSoftplusScale",
    ):  # fmt: skip
        super().__init__(loc, nn_ops.softplus(scale), validate_args, allow_nan_stats, name)
        self._parameters["scale"] = scale


class LaplaceWithSoftplusScale(Laplace):
    def __init__(
        self, loc: Any, scale: Any, validate_args: bool = False, allow_nan_stats: bool = True,
        name: str = "LaplaceWithSoftplusScale",
    ):  # fmt: skip
        super().__init__(loc, nn_ops.softplus(scale), validate_args, allow_nan_stats, name)
        self._parameters["scale"] = scale


class StudentTWithAbsDfSoftplusScale(StudentT):
    def __init__(
        self, df: Any, loc: Any, scale: Any, validate_args: bool = False, allow_nan_stats: bool = True,
        name: str = "StudentTWithAbsDfSoftplusScale",
    ):  # fmt: skip
        whole = ops.floor(ops.abs(df))
        super().__init__(whole, loc, nn_ops.softplus(scale), validate_args, allow_nan_stats, name)
        self._parameters |= {"df": df, "scale": scale}


class GammaWithSoftplusConcentrationRate(Gamma):
    def __init__(
        self, concentration: Any, rate: Any, validate_args: bool = False, allow_nan_stats: bool = True,
        name: str = "GammaWithSoftplusConcentrationRate",
    ):  # fmt: skip
        shape, speed = nn_ops.softplus(concentration), nn_ops.softplus(rate)
        super().__init__(shape, speed, validate_args, allow_nan_stats, name)
        self._parameters |= {"concentration": concentration, "rate": rate}


class ExponentialWithSoftplusRate(Exponential):
    def __init__(
        self, rate: Any, validate_args: bool = False, allow_nan_stats: bool = True,
        name: str = "ExponentialWithSoftplusRate",
    ):  # fmt: skip
        super().__init__(nn_ops.softplus(rate), validate_args, allow_nan_stats, name)
        self._parameters["rate"] = rate


class BetaWithSoftplusConcentration(Beta):
    def __init__(
        self, concentration1: Any, concentration0: Any, validate_args: bool = False, allow_nan_stats: bool = True,
        name: str = "BetaWithSoftplusConcentration",
    ):  # fmt: skip
        one, zero = nn_ops.softplus(concentration1), nn_ops.softplus(concentration0)
        super().__init__(one, zero, validate_args, allow_nan_stats, name)
        self._parameters |= {"concentration1": concentration1, "concentration0": concentration0}


class Chi2(Gamma):
    """The sum of `df` squares of standard normal variables: a gamma distribution of shape df / 2 and rate 1 / 2."""

    def __init__(self, df: Any, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "Chi2"):
        self._df = convert_to_tensor(df, name="df")
        half = array_ops.fill([], convert_to_tensor(0.5, self._df.dtype.base))
        super().__init__(0.5 * self._df, half, validate_args, allow_nan_stats, name)
        self._parameters = {
            "df": df, "validate_args": validate_args, "allow_nan_stats": allow_nan_stats, "name": name
        }  # fmt: skip

    @property
    def df(self) -> Tensor:
        return self._df


class Chi2WithAbsDf(Chi2):
    def __init__(self, df: Any, validate_args: bool = False, allow_nan_stats: bool = True, name: str = "Chi2WithAbsDf"):
        super().__init__(ops.floor(ops.abs(df)), validate_args, allow_nan_stats, name)
        self._parameters["df"] = df


def softplus_inverse(x: TensorLike, name: str | None = None) -> Tensor:
    """What softplus makes x of: log(exp(x) - 1), exact for small and large x."""
    with name_scope(name, "softplus_inverse", [x]):
        given = convert_to_tensor(x, name="x")
        # below it softplus is exp to within rounding, above its negative it is x
        edge = float(np.log(np.finfo(given.dtype.base.numpy).eps)) + 2.0
        small, large = given < float(np.exp(edge)), given > -edge
        safe = array_ops.where_v2(ops.logical_or(small, large), array_ops.ones_like(given), given)
        middle = safe + math_ops.log(-ops.expm1(-safe))
        return array_ops.where_v2(small, math_ops.log(given), array_ops.where_v2(large, given, middle))
