"""Draws for decoders: whether to sample, and which class."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import DTypeLike, convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.math import math_ops
from toolkit.client.random import random_ops
from toolkit.graph import dtypes


def _drawn(draw: Callable[[Tensor], Tensor], sample_shape: Any) -> Tensor:
    """[*sample_shape, ...] draws, by a function that makes [n, ...] of them."""
    with name_scope(None, "call_sampler", [sample_shape]):
        sizes = convert_to_tensor(sample_shape, dtypes.int32, name="sample_shape")
        is_scalar = math_ops.cast(ops.equal(array_ops.rank(sizes), 0), dtypes.int32)
        padding = array_ops.reshape(array_ops.stack([is_scalar, 0]), [1, 2])
        sizes = array_ops.reshape(sizes, array_ops.pad(array_ops.shape(sizes), padding, constant_values=1))
        draws = draw(math_ops.reduce_prod(sizes))
        inner = array_ops.shape(draws)[1:]
        return array_ops.reshape(draws, array_ops.concat([sizes, inner], 0))


def bernoulli_sample(
    probs: TensorLike, dtype: DTypeLike = dtypes.int32, sample_shape: Any = (), seed: int | None = None
) -> Tensor:
    """True (1) with the probabilities `probs`: [*sample_shape, *shape of probs]."""
    chances = convert_to_tensor(probs, name="probs")
    batch = array_ops.shape(chances)

    def draw(count: Tensor) -> Tensor:
        shape = array_ops.concat([array_ops.stack([count]), batch], 0)
        uniform = random_ops.random_uniform(shape, seed=seed, dtype=chances.dtype.base)
        return math_ops.cast(ops.less(uniform, chances), dtype)

    return _drawn(draw, sample_shape)


def categorical_sample(
    logits: TensorLike, dtype: DTypeLike = dtypes.int32, sample_shape: Any = (), seed: int | None = None
) -> Tensor:
    """Class numbers drawn with the probabilities softmax(logits [..., classes]): [*sample_shape, ...]."""
    given = convert_to_tensor(logits, name="logits")
    classes, batch = array_ops.shape(given)[-1], array_ops.shape(given)[:-1]

    def draw(count: Tensor) -> Tensor:
        flat = given if given.static_shape.rank == 2 else array_ops.reshape(given, array_ops.stack([-1, classes]))
        kind = dtypes.int64 if given.dtype.base is dtypes.float64 else dtypes.int32
        draws = random_ops.multinomial(flat, count, seed=seed, output_dtype=kind)
        shape = array_ops.concat([array_ops.stack([count]), batch], 0)
        return math_ops.cast(array_ops.reshape(array_ops.transpose(draws), shape), dtype)

    return _drawn(draw, sample_shape)
