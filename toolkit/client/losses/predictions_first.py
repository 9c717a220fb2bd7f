"""Losses as tf.contrib.losses had them: predictions before labels, weights of whole examples."""

from __future__ import annotations

from typing import Any

from toolkit.client import ops
from toolkit.client.argument_scopes import add_arg_scope
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor
from toolkit.client.losses import weighted as losses
from toolkit.client.math import math_ops
from toolkit.client.nn import nn_ops
from toolkit.graph import dtypes
from toolkit.graph.metagraph import GraphKeys


def _for_examples(weights: Any, values: Any) -> Any:
    """Weights with as many axes as the values, and none of size 1 at their end."""
    weights = convert_to_tensor(weights)
    shape, rank = weights.static_shape, convert_to_tensor(values).static_shape.rank
    if shape.rank is not None and shape.rank > 1 and shape[-1] in (None, 1):
        weights = array_ops.squeeze(weights, [-1])
    mine = weights.static_shape.rank
    if not mine or rank is None or mine == rank:
        return weights
    sizes = [-1 if size is None else size for size in weights.static_shape]
    return array_ops.reshape(weights, [*sizes, *([1] * (rank - mine))])


def compute_weighted_loss(losses: Any, weights: Any = 1.0, scope: Any = None) -> Tensor:
    """The mean of the values whose weight is not 0, in LOSSES."""
    return _weighted(losses, weights, scope)


def _weighted(values: Any, weights: Any, scope: Any) -> Tensor:
    return losses.compute_weighted_loss(values, _for_examples(weights, values), scope)


@add_arg_scope
def add_loss(loss: Any, loss_collection: Any = GraphKeys.LOSSES) -> None:
    """Keep a loss."""
    losses.add_loss(loss, loss_collection)


def get_losses(scope: Any = None, loss_collection: Any = GraphKeys.LOSSES) -> list[Any]:
    """The losses that are kept."""
    return losses.get_losses(scope, loss_collection)


def get_regularization_losses(scope: Any = None) -> list[Any]:
    """The losses of regularizers."""
    return losses.get_regularization_losses(scope)


def get_total_loss(add_regularization_losses: bool = True, name: str = "total_loss") -> Tensor:
    """The sum of all losses."""
    return losses.get_total_loss(add_regularization_losses, name)


def absolute_difference(predictions: Any, labels: Any = None, weights: Any = 1.0, scope: Any = None) -> Tensor:
    """abs(predictions - labels)."""
    return losses.absolute_difference(labels, predictions, _for_examples(weights, predictions), scope)


def mean_squared_error(predictions: Any, labels: Any = None, weights: Any = 1.0, scope: Any = None) -> Tensor:
    """(predictions - labels) ** 2."""
    return losses.mean_squared_error(labels, predictions, _for_examples(weights, predictions), scope)


def mean_pairwise_squared_error(predictions: Any, labels: Any = None, weights: Any = 1.0, scope: Any = None) -> Tensor:
    """How much the differences between the elements of one example differ from those of its labels, squared.

    By all pairs of elements, n ** 2 of them, where tf.losses takes the n * (n - 1) of different ones.
    """
    with name_scope(scope, "mean_pairwise_squared_error", [predictions, labels, weights]):
        difference = math_ops.subtract(
            math_ops.cast(predictions, dtypes.float32), math_ops.cast(labels, dtypes.float32)
        )  # fmt: skip
        heavy = math_ops.cast(_for_examples(weights, difference), dtypes.float32)
        axes = math_ops.range(1, array_ops.rank(difference))
        spread = math_ops.multiply(array_ops.ones_like(difference), heavy)
        present = math_ops.cast(math_ops.not_equal(spread, 0.0), dtypes.float32)
        count = math_ops.reduce_sum(present, axes, keepdims=True)
        squares = math_ops.reduce_sum(math_ops.square(difference), axes, keepdims=True)
        sums = math_ops.reduce_sum(difference, axes, keepdims=True)
        first = 2.0 * ops.div_no_nan(squares, count)
        second = 2.0 * ops.div_no_nan(math_ops.square(sums), math_ops.square(count))
        loss = math_ops.reduce_sum(math_ops.multiply(first - second, heavy))
        add_loss(loss)
        return loss


def log_loss(
    predictions: Any, labels: Any = None, weights: Any = 1.0, epsilon: float = 1e-7, scope: Any = None
) -> Tensor:
    """The cross entropy of probabilities."""
    return losses.log_loss(labels, predictions, _for_examples(weights, predictions), epsilon, scope)


def cosine_distance(
    predictions: Any, labels: Any = None, axis: Any = None, weights: Any = 1.0, scope: Any = None, dim: Any = None
) -> Tensor:
    """1 - the product of the two along an axis.

    Raises:
        ValueError: no axis is given.
    """
    chosen = dim if axis is None else axis
    if chosen is None:
        raise ValueError("axis: expected the axis of the vectors, got None")
    return losses.cosine_distance(labels, predictions, chosen, weights, scope)


def hinge_loss(logits: Any, labels: Any = None, scope: Any = None) -> Tensor:
    """max(0, 1 - logits) for labels of 1, max(0, 1 + logits) for 0: of each element, and not kept."""
    with name_scope(scope, "hinge_loss", [logits, labels]):
        labels = math_ops.cast(labels, dtypes.float32)
        ones = array_ops.ones_like(labels)
        signs = math_ops.subtract(2 * labels, ones)
        return nn_ops.relu(math_ops.subtract(ones, math_ops.multiply(signs, logits)))


def sigmoid_cross_entropy(
    logits: Any, multi_class_labels: Any, weights: Any = 1.0, label_smoothing: float = 0, scope: Any = None
) -> Tensor:
    """The cross entropy of each class by itself."""
    heavy = _for_examples(weights, logits)
    return losses.sigmoid_cross_entropy(multi_class_labels, logits, heavy, label_smoothing, scope)


def softmax_cross_entropy(
    logits: Any, onehot_labels: Any, weights: Any = 1.0, label_smoothing: float = 0, scope: Any = None
) -> Tensor:
    """The cross entropy of classes that exclude each other."""
    return losses.softmax_cross_entropy(onehot_labels, logits, _of_rank_one(weights), label_smoothing, scope)


def sparse_softmax_cross_entropy(logits: Any, labels: Any, weights: Any = 1.0, scope: Any = None) -> Tensor:
    """`softmax_cross_entropy` of class numbers [batch] or [batch, 1]."""
    labels = array_ops.reshape(labels, [array_ops.shape(labels)[0]])
    return losses.sparse_softmax_cross_entropy(labels, logits, _of_rank_one(weights), scope)


def _of_rank_one(weights: Any) -> Any:
    weights = convert_to_tensor(weights)
    return array_ops.squeeze(weights, [-1]) if weights.static_shape.rank == 2 else weights
