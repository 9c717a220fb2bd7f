"""First values of variables: callables `(shape, dtype) -> Tensor` that add their nodes to the default graph."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import constant as make_constant
from toolkit.client.construction.tensor import Tensor
from toolkit.client.random import random_ops
from toolkit.errors import UsageError, did_you_mean
from toolkit.graph import dtypes
from toolkit.graph.dtypes import DType

Initializer = Callable[[Sequence[int], DType], Tensor]


@dataclass(frozen=True)
class Zeros:
    def __call__(self, shape: Sequence[int], dtype: DType) -> Tensor:
        return array_ops.zeros(list(shape), dtype)


@dataclass(frozen=True)
class Ones:
    def __call__(self, shape: Sequence[int], dtype: DType) -> Tensor:
        return array_ops.ones(list(shape), dtype)


@dataclass(frozen=True)
class Constant:
    """One value everywhere, or an array of the variable's size."""

    value: Any = 0

    def __call__(self, shape: Sequence[int], dtype: DType) -> Tensor:
        return make_constant(self.value, dtype, list(shape))


@dataclass(frozen=True)
class RandomUniform:
    """Uniform in [minval, maxval)."""

    minval: float = -0.05
    maxval: float = 0.05
    seed: int | None = None

    def __call__(self, shape: Sequence[int], dtype: DType) -> Tensor:
        return random_ops.random_uniform(list(shape), self.minval, self.maxval, dtype, self.seed)


@dataclass(frozen=True)
class RandomNormal:
    mean: float = 0.0
    stddev: float = 1.0
    seed: int | None = None

    def __call__(self, shape: Sequence[int], dtype: DType) -> Tensor:
        return random_ops.random_normal(list(shape), self.mean, self.stddev, dtype, self.seed)


@dataclass(frozen=True)
class TruncatedNormal:
    """Normal, without what is more than two standard deviations off."""

    mean: float = 0.0
    stddev: float = 1.0
    seed: int | None = None

    def __call__(self, shape: Sequence[int], dtype: DType) -> Tensor:
        return random_ops.truncated_normal(list(shape), self.mean, self.stddev, dtype, self.seed)


#: the standard deviation of a unit normal cut off at two standard deviations
_TRUNCATED_STDDEV = 0.87962566103423978


@dataclass(frozen=True)
class VarianceScaling:
    """Random values whose variance is `scale / n` for the layer's number of inputs, outputs, or their mean.

    Args:
        mode: fan_in, fan_out or fan_avg.
        distribution: truncated_normal (or "normal"), untruncated_normal, uniform.

    Raises:
        UsageError: another mode or distribution.
    """

    scale: float = 1.0
    mode: str = "fan_in"
    distribution: str = "truncated_normal"
    seed: int | None = None
    fan_shape: tuple[int, ...] | None = None  # of the whole, where the variable is a part of it

    def __post_init__(self) -> None:
        modes = ("fan_in", "fan_out", "fan_avg")
        kinds = ("truncated_normal", "normal", "untruncated_normal", "uniform")
        if self.mode not in modes:
            raise UsageError(f"mode '{self.mode}' is unknown{did_you_mean(self.mode, modes)} ({', '.join(modes)})")
        if self.distribution not in kinds:
            hint = did_you_mean(self.distribution, kinds)
            raise UsageError(f"distribution '{self.distribution}' is unknown{hint} ({', '.join(kinds)})")

    def __call__(self, shape: Sequence[int], dtype: DType) -> Tensor:
        fan_in, fan_out = fans(self.fan_shape or shape)
        count = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2.0}[self.mode]
        scale = self.scale / max(1.0, count)
        if self.distribution == "uniform":
            limit = math.sqrt(3.0 * scale)
            return random_ops.random_uniform(list(shape), -limit, limit, dtype, self.seed)
        if self.distribution == "untruncated_normal":
            return random_ops.random_normal(list(shape), 0.0, math.sqrt(scale), dtype, self.seed)
        return random_ops.truncated_normal(list(shape), 0.0, math.sqrt(scale) / _TRUNCATED_STDDEV, dtype, self.seed)


@dataclass(frozen=True)
class UniformUnitScaling:
    """Uniform values that keep the scale of a layer's input, up to `factor * sqrt(3 / inputs)` (arXiv 1412.6558)."""

    factor: float = 1.0
    seed: int | None = None
    fan_shape: tuple[int, ...] | None = None  # of the whole, where the variable is a part of it

    def __call__(self, shape: Sequence[int], dtype: DType) -> Tensor:
        inputs = max(math.prod((self.fan_shape or tuple(shape))[:-1]), 1)
        limit = math.sqrt(3.0 / inputs) * self.factor
        return random_ops.random_uniform(list(shape), -limit, limit, dtype, self.seed)


@dataclass(frozen=True)
class Orthogonal:
    """Rows or columns that are orthonormal, times `gain` (QR of a normal matrix; Saxe et al., arXiv 1312.6120)."""

    gain: float = 1.0
    seed: int | None = None

    def __call__(self, shape: Sequence[int], dtype: DType) -> Tensor:
        if len(shape) < 2:
            raise UsageError(f"an orthogonal initializer needs at least two dimensions, not shape {list(shape)}")
        rows, columns = math.prod(shape[:-1]), shape[-1]
        drawn = random_ops.random_normal([max(rows, columns), min(rows, columns)], dtype=dtype, seed=self.seed)
        q, r = ops.qr(drawn, full_matrices=False)
        q = q * ops.sign(ops.diag_part(r))  # makes the decomposition unique, so the result uniform
        if rows < columns:
            q = array_ops.transpose(q, [1, 0])
        return self.gain * array_ops.reshape(q, list(shape))


def glorot_uniform(seed: int | None = None) -> VarianceScaling:
    """Glorot and Bengio (2010); the default of float variables."""
    return VarianceScaling(1.0, "fan_avg", "uniform", seed)


def glorot_normal(seed: int | None = None) -> VarianceScaling:
    return VarianceScaling(1.0, "fan_avg", "truncated_normal", seed)


def he_uniform(seed: int | None = None) -> VarianceScaling:
    """He et al. (arXiv 1502.01852); for layers with ReLU."""
    return VarianceScaling(2.0, "fan_in", "uniform", seed)


def he_normal(seed: int | None = None) -> VarianceScaling:
    return VarianceScaling(2.0, "fan_in", "truncated_normal", seed)


def lecun_uniform(seed: int | None = None) -> VarianceScaling:
    return VarianceScaling(1.0, "fan_in", "uniform", seed)


def lecun_normal(seed: int | None = None) -> VarianceScaling:
    return VarianceScaling(1.0, "fan_in", "truncated_normal", seed)


def fans(shape: Sequence[int]) -> tuple[float, float]:
    """How many inputs and outputs one unit of a weight has; kernels count their window."""
    if not shape:
        return 1, 1
    if len(shape) == 1:
        return shape[0], shape[0]
    window = math.prod(shape[:-2])
    return window * shape[-2], window * shape[-1]


#: initializers by the names that specs use
BY_NAME: dict[str, Callable[..., Initializer]] = {
    "zeros": Zeros,
    "ones": Ones,
    "constant": Constant,
    "random_uniform": RandomUniform,
    "random_normal": RandomNormal,
    "truncated_normal": TruncatedNormal,
    "variance_scaling": VarianceScaling,
    "glorot_uniform": glorot_uniform,
    "glorot_normal": glorot_normal,
    "he_uniform": he_uniform,
    "he_normal": he_normal,
    "lecun_uniform": lecun_uniform,
    "lecun_normal": lecun_normal,
    "orthogonal": Orthogonal,
}


def default_for(dtype: DType) -> Initializer:
    """What get_variable uses when no initializer is given.

    Raises:
        UsageError: the type has no default.
    """
    if dtype.is_floating:
        return glorot_uniform()
    if dtype.is_integer or dtype is dtypes.bool_ or dtype is dtypes.string:
        return Zeros()
    raise UsageError(f"a variable of type {dtype} needs an initializer")
