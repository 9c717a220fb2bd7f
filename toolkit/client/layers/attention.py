"""Normalization over features, and attention: what transformers are made of."""

from __future__ import annotations

from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.layers.base import last_size
from toolkit.client.layers.functions import dense
from toolkit.client.math import math_ops
from toolkit.client.nn import nn_ops
from toolkit.client.variables import initializers
from toolkit.client.variables.store import get_variable, variable_scope
from toolkit.errors import GraphError
from toolkit.graph import dtypes

#: what is added to scores of places that nobody may look at: exp of it is 0 in float32, and no sum overflows
_FAR = -1e9


def layer_normalization(
    x: TensorLike, epsilon: float = 1e-6, center: bool = True, scale: bool = True, name: str | None = None,
    reuse: Any = None,
) -> Tensor:  # fmt: skip
    """(x - mean) / sqrt(variance + epsilon) * gamma + beta over the last axis (Ba et al., arXiv 1607.06450).

    Raises:
        GraphError: the size of the last axis is not known.
    """
    with variable_scope(name, "layer_normalization", [x], reuse=reuse):
        x = convert_to_tensor(x)
        size = last_size(x.static_shape)
        if size is None:
            raise GraphError(f"the size of the last axis of '{x.name}' is not known; its shape is {x.static_shape}")
        gamma = get_variable("gamma", [size], x.dtype.base, initializers.Ones()) if scale else None
        beta = get_variable("beta", [size], x.dtype.base, initializers.Zeros()) if center else None
        mean, variance = nn_ops.moments(x, [-1], keepdims=True)
        return nn_ops.batch_normalization(x, mean, variance, beta, gamma, epsilon)


def multi_head_attention(
    queries: TensorLike,
    memory: TensorLike | None = None,
    heads: int = 1,
    units: int | None = None,
    lengths: TensorLike | None = None,
    causal: bool = False,
    kernel_initializer: Any = None,
    kernel_regularizer: Any = None,
    name: str | None = None,
    reuse: Any = None,
) -> Tensor:
    """softmax(Q K^T / sqrt(d)) V in several heads, from linear maps of the inputs, and a linear map of the result
    (Vaswani et al., arXiv 1706.03762).

    Args:
        queries: [batch, steps, features].
        memory: [batch, places, features], what is looked at; by default the queries themselves.
        units: of Q, K and V together, a multiple of `heads`; by default the features of the queries.
        lengths: [batch]: how many places of the memory of each example count.
        causal: a step sees no later place.

    Returns:
        [batch, steps, features of the queries].

    Raises:
        GraphError: another rank, unknown features, `units` that the heads cannot share.
    """
    with variable_scope(name, "attention", [queries, memory], reuse=reuse):
        queries = convert_to_tensor(queries)
        seen = queries if memory is None else convert_to_tensor(memory)
        for each in (queries, seen):
            if each.static_shape.rank not in (3, None) or last_size(each.static_shape) is None:
                raise GraphError(f"attention takes [batch, steps, features]; '{each.name}' has {each.static_shape}")
        features = last_size(queries.static_shape)
        assert features is not None
        units = features if units is None else units
        if units % heads:
            raise GraphError(f"{units} units cannot be shared by {heads} heads: give a multiple")

        def mapped(x: Tensor, size: int, name: str) -> Tensor:
            return dense(
                x, size, use_bias=False, kernel_initializer=kernel_initializer, kernel_regularizer=kernel_regularizer,
                name=name,
            )  # fmt: skip

        query = _in_heads(mapped(queries, units, "query"), heads, units // heads)
        key = _in_heads(mapped(seen, units, "key"), heads, units // heads)
        value = _in_heads(mapped(seen, units, "value"), heads, units // heads)
        scores = math_ops.matmul(query * (units // heads) ** -0.5, key, transpose_b=True, name="scores")
        scores = _masked(scores, lengths, causal)
        mixed = math_ops.matmul(nn_ops.softmax(scores, name="weights"), value)
        together = array_ops.transpose(mixed, [0, 2, 1, 3])
        sizes = array_ops.shape(queries)
        joined = array_ops.reshape(together, array_ops.stack([sizes[0], sizes[1], units]))
        joined.set_shape([*queries.static_shape.slice(0, 2), units])
        return mapped(joined, features, "output")


def _in_heads(x: Tensor, heads: int, depth: int) -> Tensor:
    """[batch, steps, units] -> [batch, heads, steps, depth]."""
    sizes = array_ops.shape(x)
    apart = array_ops.reshape(x, array_ops.stack([sizes[0], sizes[1], heads, depth]))
    return array_ops.transpose(apart, [0, 2, 1, 3])


def _masked(scores: Tensor, lengths: TensorLike | None, causal: bool) -> Tensor:
    """Scores [batch, heads, steps, places] with those far down that may not be looked at."""
    places = array_ops.shape(scores)[3]
    if lengths is not None:
        counted = math_ops.cast(lengths, dtypes.int32)
        beyond = ops.greater_equal(math_ops.range(places), array_ops.expand_dims(counted, 1))
        beyond = math_ops.cast(array_ops.expand_dims(array_ops.expand_dims(beyond, 1), 1), scores.dtype.base)
        scores = scores + beyond * _FAR
    if causal:
        row = array_ops.expand_dims(math_ops.range(array_ops.shape(scores)[2]), 1)
        later = math_ops.cast(ops.greater(math_ops.range(places), row), scores.dtype.base)
        scores = scores + later * _FAR
    return scores
