"""Losses for embeddings: near each other where labels agree, apart where they do not.

    labels: whole numbers [batch]; embeddings: floats [batch, dimensions].

All give a scalar.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor
from toolkit.client.math import math_ops
from toolkit.client.nn import nn_ops
from toolkit.client.sparse.tensor import SparseTensor
from toolkit.errors import GraphError, OperandTypeError
from toolkit.graph import dtypes

#: under the root where two embeddings are the same, so that the gradient stays finite
_SAME = 1e-16


def distances(embeddings: Any, squared: bool = False) -> Tensor:
    """Euclidean distances [batch, batch] between all pairs, exactly 0 of each with itself; their gradient is finite."""
    embeddings = convert_to_tensor(embeddings)
    squares = math_ops.square(embeddings)
    columns = math_ops.reduce_sum(squares, [1], keepdims=True)
    rows = math_ops.reduce_sum(math_ops.square(array_ops.transpose(embeddings)), [0], keepdims=True)
    found = columns + rows - 2.0 * math_ops.matmul(embeddings, embeddings, transpose_b=True)
    found = math_ops.maximum(found, 0.0)
    same = math_ops.cast(ops.less_equal(found, 0.0), found.dtype)
    if not squared:
        found = math_ops.sqrt(found + same * _SAME)
    return found * (1.0 - same) * (1.0 - _identity(embeddings, found.dtype))


def _identity(rows: Any, dtype: Any = dtypes.float32) -> Tensor:
    """The unit matrix of as many rows as there are examples."""
    return ops.matrix_diag(array_ops.ones([array_ops.shape(rows)[0]], dtype))


def _column(labels: Any) -> Tensor:
    labels = convert_to_tensor(labels)
    if labels.static_shape.rank not in (None, 1):
        raise GraphError(f"labels: expected a number for each example, got shape {labels.static_shape}")
    return array_ops.reshape(labels, [-1, 1])


def _agreeing(labels: Any) -> Tensor:
    """Whether two examples have one label [batch, batch]."""
    column = _column(labels)
    return math_ops.equal(column, array_ops.transpose(column))


def contrastive_loss(labels: Any, embeddings_anchor: Any, embeddings_positive: Any, margin: Any = 1.0) -> Tensor:
    """Squared distances of pairs that belong together (labels 1), and what others (0) lack of the margin, squared.

    Source: Hadsell, Chopra and LeCun, "Dimensionality Reduction by Learning an Invariant Mapping", 2006.
    """
    apart = math_ops.sqrt(math_ops.reduce_sum(ops.squared_difference(embeddings_anchor, embeddings_positive), 1))
    together = math_ops.cast(labels, apart.dtype)
    pushed = math_ops.square(math_ops.maximum(margin - apart, 0.0))
    return math_ops.reduce_mean(together * math_ops.square(apart) + (1.0 - together) * pushed, name="contrastive_loss")


def triplet_semihard_loss(labels: Any, embeddings: Any, margin: Any = 1.0) -> Tensor:
    """For each pair of one label: by how much the other is not nearer by `margin` than a stranger.

    The stranger is the nearest one that is further away than the other, or, where there is none, the furthest.

    Source: Schroff, Kalenichenko and Philbin, "FaceNet", 2015.
    """
    apart = distances(embeddings, squared=True)
    agreeing = math_ops.cast(_agreeing(labels), apart.dtype)
    strangers = 1.0 - agreeing
    # [anchor, other, stranger]
    to_strangers, to_other = array_ops.expand_dims(apart, 1), array_ops.expand_dims(apart, 2)
    outside = math_ops.cast(ops.greater(to_strangers, to_other), apart.dtype) * array_ops.expand_dims(strangers, 1)
    nearest = _least(to_strangers, outside, 2)
    furthest = _most(apart, strangers, 1)
    some = ops.greater(math_ops.reduce_sum(outside, 2), 0.0)
    stranger = array_ops.where(some, nearest, array_ops.broadcast_to(furthest, array_ops.shape(nearest)))
    others = agreeing - _identity(apart, apart.dtype)
    lacking = math_ops.maximum((margin + apart - stranger) * others, 0.0)
    return math_ops.divide(math_ops.reduce_sum(lacking), math_ops.reduce_sum(others), name="triplet_semihard_loss")


def _most(values: Tensor, mask: Tensor, axis: int) -> Tensor:
    """The largest value along the axis, which stays, of those whose mask is 1; the least of all where there is none."""
    least = math_ops.reduce_min(values, axis, keepdims=True)
    return math_ops.reduce_max((values - least) * mask, axis, keepdims=True) + least


def _least(values: Tensor, mask: Tensor, axis: int) -> Tensor:
    """The least value along the axis of those whose mask is 1; the largest of all where there is none."""
    most = math_ops.reduce_max(values, axis, keepdims=True)
    return math_ops.reduce_min((values - most) * mask, axis) + array_ops.squeeze(most, [axis])


def lifted_struct_loss(labels: Any, embeddings: Any, margin: Any = 1.0) -> Tensor:
    """Each pair of one label against all strangers of both, softly the nearest of them.

    Source: Song, Xiang, Jegelka and Savarese, "Deep Metric Learning via Lifted Structured Feature Embedding", 2016.
    """
    apart = distances(embeddings)
    agreeing = math_ops.cast(_agreeing(labels), apart.dtype)
    strangers = 1.0 - agreeing
    lacking = margin - apart
    worst = _most(lacking, strangers, 1)
    worst = math_ops.maximum(worst, array_ops.transpose(worst))  # of either one of a pair
    shifted = array_ops.expand_dims(lacking, 1) - array_ops.expand_dims(worst, 2)
    of_one = math_ops.reduce_sum(math_ops.exp(shifted) * array_ops.expand_dims(strangers, 1), 2)
    loss = worst + math_ops.log(of_one + array_ops.transpose(of_one)) + apart
    others = agreeing - _identity(apart, apart.dtype)
    total = math_ops.reduce_sum(math_ops.square(math_ops.maximum(loss * others, 0.0)))
    pairs = math_ops.reduce_sum(others) / 2.0
    return math_ops.divide(0.25 * total, pairs, name="liftedstruct_loss")


def npairs_loss(
    labels: Any, embeddings_anchor: Any, embeddings_positive: Any, reg_lambda: float = 0.002, print_losses: bool = False
) -> Tensor:
    """The cross entropy of each anchor's similarity to all others, one of which has its label; and a norm's penalty.

    Source: Sohn, "Improved Deep Metric Learning with Multi-class N-pair Loss Objective", 2016.
    """
    agreeing = math_ops.cast(_agreeing(labels), dtypes.float32)
    return _npairs(agreeing, embeddings_anchor, embeddings_positive, reg_lambda, print_losses)


def npairs_loss_multilabel(
    sparse_labels: Sequence[SparseTensor], embeddings_anchor: Any, embeddings_positive: Any, reg_lambda: float = 0.002,
    print_losses: bool = False,
) -> Tensor:  # fmt: skip
    """`npairs_loss` of examples with several labels each; two agree by as much as they have in common.

    Args:
        sparse_labels: a SparseTensor [1, classes] for each example.

    Raises:
        TypeError: something else is among them.
    """
    for at, one in enumerate(sparse_labels):
        if not isinstance(one, SparseTensor):
            raise OperandTypeError(f"sparse_labels[{at}]: expected a SparseTensor, got {type(one).__name__}")
    with name_scope("NpairsLossMultiLabel"):
        dense = [ops.sparse_to_dense(one.indices, one.dense_shape, one.values, 0) for one in sparse_labels]
        rows = array_ops.stack([array_ops.reshape(one, [-1]) for one in dense])
        common = math_ops.minimum(array_ops.expand_dims(rows, 0), array_ops.expand_dims(rows, 1))
        agreeing = math_ops.cast(math_ops.reduce_sum(common, 2), dtypes.float32)
        return _npairs(agreeing, embeddings_anchor, embeddings_positive, reg_lambda, print_losses)


def _npairs(agreeing: Tensor, anchors: Any, positives: Any, reg_lambda: float, print_losses: bool) -> Tensor:
    norms = [math_ops.reduce_mean(math_ops.reduce_sum(math_ops.square(x), 1)) for x in (anchors, positives)]
    penalty = math_ops.multiply(0.25 * reg_lambda, norms[0] + norms[1], name="l2loss")
    similar = math_ops.matmul(anchors, positives, transpose_b=True)
    wanted = agreeing / math_ops.reduce_sum(agreeing, 1, keepdims=True)
    entropy = nn_ops.softmax_cross_entropy_with_logits(labels=array_ops.stop_gradient(wanted), logits=similar)
    entropy = math_ops.reduce_mean(entropy, name="xentropy")
    if print_losses:
        entropy = ops.print(entropy, ["cross entropy:", entropy, "l2loss:", penalty])
    return penalty + entropy
