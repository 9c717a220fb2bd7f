# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tf.initializers: what variables start with, with TensorFlow 1's arguments."""

from __future__ import annotations

import functools
import inspect
from typing import Any

from toolkit.client.construction.convert import as_dtype
from toolkit.client.variables import initializers as client
from toolkit.graph import dtypes


class Initializer:
    """Base: `initializer(shape, dtype)` gives the first value.

    Attributes:
        plain: the client's initializer, which does the work.
    """

    plain: Any
    _given: dict[str, Any]

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        return self.plain(list(shape), self.dtype if dtype is None else as_dtype(dtype).base)

    dtype: dtypes.DType = dtypes.float32

    def _is(self, plain: Any, dtype: Any = dtypes.float32) -> None:
        self.plain = plain
        self.dtype = as_dtype(dtype).base

    def __init_subclass__(cls) -> None:
        """Remember what is given to the constructor, for `get_config`."""
        super().__init_subclass__()
        make, signature = cls.__init__, inspect.signature(cls.__init__)

        @functools.wraps(make)
        def keep(self: Any, *arguments: Any, **keywords: Any) -> None:
            make(self, *arguments, **keywords)
            if type(self) is cls:
                bound = signature.bind(self, *arguments, **keywords)
                bound.apply_defaults()
                self._given = {name: value for name, value in bound.arguments.items() if name != "self"}

        cls.__init__ = keep  # pyright: ignore[reportAttributeAccessIssue]  # takes what the other takes

    def get_config(self) -> dict[str, Any]:
        """What the constructor takes to make it again; types by name."""
        given = dict(getattr(self, "_given", {}))
        if "dtype" in given:
            given["dtype"] = self.dtype.name
        return given

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        """One made of what `get_config` gave."""
        return cls(**config)


def plain(initializer: Any) -> Any:
    """The client's initializer behind one of these (or a class of them); anything else as it is.

    What users write takes (shape, dtype, partition_info), or fewer.
    """
    if isinstance(initializer, type) and issubclass(initializer, Initializer):
        made: Any = initializer
        initializer = made()
    if not isinstance(initializer, Initializer) or type(initializer).__call__ is not Initializer.__call__:
        return initializer  # a subclass of a program's own says itself what it makes
    return initializer.plain


class zeros_initializer(Initializer):  # noqa: N801
    def __init__(self, dtype: Any = dtypes.float32):
        self._is(client.Zeros(), dtype)


class ones_initializer(Initializer):  # noqa: N801
    def __init__(self, dtype: Any = dtypes.float32):
        self._is(client.Ones(), dtype)


class constant_initializer(Initializer):  # noqa: N801
    def __init__(self, value: Any = 0, dtype: Any = dtypes.float32, verify_shape: bool = False):
        self._is(client.Constant(value), dtype)


class random_uniform_initializer(Initializer):  # noqa: N801
    def __init__(self, minval: Any = 0.0, maxval: Any = None, seed: Any = None, dtype: Any = dtypes.float32):
        self._is(client.RandomUniform(minval, 1.0 if maxval is None else maxval, seed), dtype)


class random_normal_initializer(Initializer):  # noqa: N801
    def __init__(self, mean: Any = 0.0, stddev: Any = 1.0, seed: Any = None, dtype: Any = dtypes.float32):
        self._is(client.RandomNormal(mean, stddev, seed), dtype)


class truncated_normal_initializer(Initializer):  # noqa: N801
    def __init__(self, mean: Any = 0.0, stddev: Any = 1.0, seed: Any = None, dtype: Any = dtypes.float32):
        self._is(client.TruncatedNormal(mean, stddev, seed), dtype)


class variance_scaling_initializer(Initializer):  # noqa: N801
    def __init__(
        self, scale: float = 1.0, mode: str = "fan_in", distribution: str = "truncated_normal", seed: Any = None,
        dtype: Any = dtypes.float32,
    ):  # fmt: skip
        self._is(client.VarianceScaling(scale, mode, distribution, seed), dtype)


class uniform_unit_scaling_initializer(Initializer):  # noqa: N801
    def __init__(self, factor: float = 1.0, seed: Any = None, dtype: Any = dtypes.float32):
        self._is(client.UniformUnitScaling(factor, seed), dtype)


class glorot_uniform_initializer(Initializer):  # noqa: N801
    def __init__(self, seed: Any = None, dtype: Any = dtypes.float32):
        self._is(client.glorot_uniform(seed), dtype)


class glorot_normal_initializer(Initializer):  # noqa: N801
    def __init__(self, seed: Any = None, dtype: Any = dtypes.float32):
        self._is(client.glorot_normal(seed), dtype)


class orthogonal_initializer(Initializer):  # noqa: N801
    def __init__(self, gain: float = 1.0, seed: Any = None, dtype: Any = dtypes.float32):
        self._is(client.Orthogonal(gain, seed), dtype)


def he_normal(seed: Any = None) -> Initializer:
    return variance_scaling_initializer(2.0, "fan_in", "truncated_normal", seed)


def he_uniform(seed: Any = None) -> Initializer:
    return variance_scaling_initializer(2.0, "fan_in", "uniform", seed)


def lecun_normal(seed: Any = None) -> Initializer:
    return variance_scaling_initializer(1.0, "fan_in", "truncated_normal", seed)


def lecun_uniform(seed: Any = None) -> Initializer:
    return variance_scaling_initializer(1.0, "fan_in", "uniform", seed)


def no_regularizer(_: Any) -> None:
    """Regularizes nothing, and shuts off a scope's regularizer."""
    return
