"""Random tensors. Seeds follow `toolkit.client.random.seeds`; values are drawn anew in every step."""

from __future__ import annotations

from typing import Any

from toolkit.client import ops
from toolkit.client.construction.convert import DTypeLike, as_dtype, convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.math import math_ops
from toolkit.client.random.seeds import get_seed
from toolkit.errors import GraphError
from toolkit.graph import dtypes


def _shape(shape: TensorLike) -> Tensor:
    return convert_to_tensor(shape, None if hasattr(shape, "dtype") else dtypes.int32, name="shape")


def _scaled(op: str, shape: TensorLike, mean: TensorLike, stddev: TensorLike, dtype: Any, seed: int | None, scope: str):
    dtype = as_dtype(dtype)
    sizes = _shape(shape)
    center = convert_to_tensor(mean, dtype, name="mean")
    width = convert_to_tensor(stddev, dtype, name="stddev")
    first, second = get_seed(seed)
    drawn: Tensor = ops.function(op)(sizes, dtype=dtype, seed=first, seed2=second)
    return math_ops.add(drawn * width, center, name=scope)


def random_normal(
    shape: TensorLike,
    mean: TensorLike = 0.0,
    stddev: TensorLike = 1.0,
    dtype: DTypeLike = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Normally distributed values."""
    with name_scope(name, "random_normal", [shape, mean, stddev]) as scope:
        return _scaled("RandomStandardNormal", shape, mean, stddev, dtype, seed, scope)


def truncated_normal(
    shape: TensorLike,
    mean: TensorLike = 0.0,
    stddev: TensorLike = 1.0,
    dtype: DTypeLike = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Normally distributed values, drawn again when they are more than two standard deviations off."""
    with name_scope(name, "truncated_normal", [shape, mean, stddev]) as scope:
        return _scaled("TruncatedNormal", shape, mean, stddev, dtype, seed, scope)


def random_uniform(
    shape: TensorLike,
    minval: TensorLike = 0,
    maxval: TensorLike = None,
    dtype: DTypeLike = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Uniformly distributed values in [minval, maxval).

    Raises:
        GraphError: integers without maxval.
    """
    wanted = as_dtype(dtype)
    if maxval is None:
        if wanted.is_integer:
            raise GraphError("random_uniform of integers needs maxval")
        maxval = 1
    with name_scope(name, "random_uniform", [shape, minval, maxval]) as scope:
        sizes = _shape(shape)
        from_zero = isinstance(minval, int) and minval == 0
        to_one = isinstance(maxval, int) and maxval == 1
        low, high = minval, maxval
        if not (from_zero and to_one) or wanted.is_integer:
            low = convert_to_tensor(minval, wanted, name="min")
            high = convert_to_tensor(maxval, wanted, name="max")
        first, second = get_seed(seed)
        if wanted.is_integer:
            return ops.random_uniform_int(sizes, low, high, seed=first, seed2=second, name=scope)
        drawn = ops.random_uniform(sizes, dtype=wanted, seed=first, seed2=second)
        if from_zero:  # written as the integer, as TensorFlow asks
            return drawn if to_one else ops.mul(drawn, high)
        return math_ops.add(drawn * (high - low), low, name=scope)


def random_shuffle(value: TensorLike, seed: int | None = None, name: str | None = None) -> Tensor:
    """The rows in random order."""
    first, second = get_seed(seed)
    return ops.random_shuffle(value, seed=first, seed2=second, name=name)


def multinomial(
    logits: TensorLike, num_samples: TensorLike, seed: int | None = None, output_dtype: DTypeLike = dtypes.int64,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """Class numbers drawn with the probabilities that `logits` [batch, classes] give."""
    first, second = get_seed(seed)
    return ops.multinomial(logits, num_samples, seed=first, seed2=second, output_dtype=output_dtype, name=name)
