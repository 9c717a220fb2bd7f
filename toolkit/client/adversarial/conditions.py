# What models are made of may be of any type, so what it is is for tests to say, not for types.
# pyright: basic
"""What generators and discriminators are told besides, and a pool of generated data (tf.contrib.gan.features)."""

from __future__ import annotations

from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.scopes import control_dependencies, name_scope
from toolkit.client.construction.tensor import Tensor
from toolkit.client.flow.control_flow import cond
from toolkit.client.inputs.queues import RandomShuffleQueue
from toolkit.client.math import math_ops
from toolkit.client.nn import nn_ops
from toolkit.client.random import random_ops
from toolkit.client.scoped_layers import dense, shapes
from toolkit.client.structures import nest
from toolkit.client.variables.store import get_variable
from toolkit.errors import ArgumentValueError


def condition_tensor(tensor: Any, conditioning: Any) -> Tensor:
    """A tensor plus what a linear layer makes of something else [batch, ...].

    Raises:
        ValueError: the tensor's sizes behind the batch are unknown; or the other one has less than two dimensions.
    """
    shape = tensor.static_shape
    if shape.dims is None or None in shape.dims[1:]:
        raise ArgumentValueError(f"tensor: sizes have to be known but that of the batch, got {shape}")
    if (conditioning.static_shape.rank or 0) < 2:
        raise ArgumentValueError(f"conditioning: expected [batch, ...], got {conditioning.static_shape}")
    count = 1
    for size in shape.dims[1:]:
        count *= size
    mapped = dense.linear(shapes.flatten(conditioning), count)
    if not mapped.static_shape.is_compatible_with(shape):
        mapped = array_ops.reshape(mapped, array_ops.shape(tensor))
    return tensor + mapped


def condition_tensor_from_onehot(tensor: Any, one_hot_labels: Any, embedding_size: int = 256) -> Tensor:
    """A tensor plus what a linear layer makes of the embeddings of classes.

    Args:
        one_hot_labels: [batch, classes], of a known number of classes.
    """
    shape = one_hot_labels.static_shape
    if shape.rank != 2 or shape[1] is None:
        raise ArgumentValueError(f"one_hot_labels: expected [batch, classes], got {shape}")
    table = get_variable("embedding", [shape[1], embedding_size])
    rows = nn_ops.embedding_lookup(table, math_ops.argmax(one_hot_labels, 1), name="token_to_embedding")
    return condition_tensor(tensor, rows)


def tensor_pool(
    input_values: Any, pool_size: int = 50, pooling_probability: float = 0.5, name: str = "tensor_pool"
) -> Any:
    """Values, or those of some steps before, which each step replaces in a pool (Shrivastava et al., 2017).

    Args:
        input_values: a tensor, or a structure of such.
        pool_size: 0: there is no pool.
        pooling_probability: with which older ones are taken once the pool is full.

    Raises:
        ValueError: the size is negative.
    """
    size = int(pool_size)
    if size < 0:
        raise ArgumentValueError(f"pool_size: expected 0 or more, got {size}")
    if size == 0:
        return input_values
    values = [convert_to_tensor(each) for each in nest.flatten(input_values)]
    with name_scope(f"{name}_pool_queue", None, values):
        queue = RandomShuffleQueue(capacity=size, min_after_dequeue=0, component_types=[each.dtype for each in values])

        def add() -> list[Tensor]:
            with control_dependencies([queue.enqueue(values)]):
                return [array_ops.identity(each) for each in values]

        def replace() -> list[Tensor]:
            taken: Any = queue.dequeue()
            older: list[Tensor] = [taken] if isinstance(taken, Tensor) else list(taken)
            with control_dependencies(older), control_dependencies([queue.enqueue(values)]):
                use = ops.less(random_ops.random_uniform([]), pooling_probability)
                kept = [array_ops.identity(each) for each in values]
                return _listed(cond(use, lambda: older, lambda: kept))

        found = _listed(cond(ops.less(queue.size(), size), add, replace))
        for each, given in zip(found, values, strict=True):
            each.set_shape(given.static_shape)
    return nest.pack_sequence_as(input_values, found)


def _listed(found: Any) -> list[Tensor]:
    return [found] if isinstance(found, Tensor) else list(found)
