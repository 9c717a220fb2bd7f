"""Cross entropy over the steps of sequences, weighted and averaged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.math import math_ops
from toolkit.client.nn import nn_ops
from toolkit.errors import GraphError

#: keeps an average over weights that are all 0 finite
_TINY = 1e-12

#: what a loss function takes: labels=, logits=
LossFunction = Callable[..., Tensor]


def _entropy(function: LossFunction | None, targets: Any, logits: Any) -> Tensor:
    chosen = nn_ops.sparse_softmax_cross_entropy_with_logits if function is None else function
    return chosen(labels=targets, logits=logits)


def sequence_loss(
    logits: TensorLike, targets: TensorLike, weights: TensorLike, average_across_timesteps: bool = True,
    average_across_batch: bool = True, sum_over_timesteps: bool = False, sum_over_batch: bool = False,
    softmax_loss_function: LossFunction | None = None, name: str | None = None,
) -> Tensor:  # fmt: skip
    """The weighted cross entropy of sequences: a scalar, or [batch], [steps] or [batch, steps], by what is averaged.

    Args:
        logits: [batch, steps, classes].
        targets: [batch, steps], integers.
        weights: [batch, steps]; 0 where a step does not count.
        average_across_timesteps: divides by the sum of the weights; `sum_over_timesteps` by the number of weights
            that are not 0. The same for the batch.
        softmax_loss_function: called with labels= and logits=, [batch * steps] and [batch * steps, classes].

    Raises:
        GraphError: the ranks are others, or an axis is both averaged and summed.
    """
    logits, targets, weights = (convert_to_tensor(value) for value in (logits, targets, weights))
    for what, value, rank in (("logits", logits, 3), ("targets", targets, 2), ("weights", weights, 2)):
        if value.static_shape.rank not in (None, rank):
            raise GraphError(f"sequence_loss: {what} {value.name} have shape {value.static_shape}, not rank {rank}")
    if (average_across_timesteps and sum_over_timesteps) or (average_across_batch and sum_over_batch):
        raise GraphError("sequence_loss: an axis is averaged or summed over, not both")
    with name_scope(name, "sequence_loss", [logits, targets, weights]):
        classes = array_ops.shape(logits)[2]
        flat = array_ops.reshape(logits, [-1, classes])
        losses = _entropy(softmax_loss_function, array_ops.reshape(targets, [-1]), flat)
        losses = losses * array_ops.reshape(weights, [-1])
        both_averaged, both_summed = (
            average_across_timesteps and average_across_batch, sum_over_timesteps and sum_over_batch,
        )  # fmt: skip
        if both_averaged or both_summed:
            counted = weights if both_averaged else _nonzero(weights)
            return _divided(math_ops.reduce_sum(losses), math_ops.reduce_sum(counted), exact=both_summed)
        losses = array_ops.reshape(losses, array_ops.shape(logits)[0:2])
        axes = [
            axis for axis, wanted in ((0, average_across_batch or sum_over_batch),
                                      (1, average_across_timesteps or sum_over_timesteps)) if wanted
        ]  # fmt: skip
        for axis in reversed(axes):
            summed = sum_over_batch if axis == 0 else sum_over_timesteps
            if summed:
                counted = math_ops.reduce_sum(_nonzero(weights), axis)
            else:
                counted = math_ops.reduce_sum(weights, axis)
            losses = _divided(math_ops.reduce_sum(losses, axis), counted, exact=summed)
        return losses


def _nonzero(weights: Tensor) -> Tensor:
    """1 where a weight counts, of the weights' type."""
    return math_ops.cast(ops.not_equal(weights, array_ops.zeros_like(weights)), weights.dtype.base)


def _divided(total: Tensor, count: Tensor, exact: bool) -> Tensor:
    """A sum by a count; 0 where a count of elements is 0, and finite where a sum of weights is."""
    return ops.div_no_nan(total, count) if exact else total / (count + _TINY)


def sequence_loss_by_example(
    logits: Sequence[TensorLike], targets: Sequence[TensorLike], weights: Sequence[TensorLike],
    average_across_timesteps: bool = True, softmax_loss_function: LossFunction | None = None, name: str | None = None,
) -> Tensor:  # fmt: skip
    """[batch]: the weighted cross entropy of sequences that are lists of steps.

    Args:
        logits: [batch, classes] for each step; targets and weights: [batch] for each.

    Raises:
        GraphError: the lists have different lengths.
    """
    if not len(logits) == len(targets) == len(weights):
        raise GraphError(
            f"sequence_loss_by_example: {len(logits)} logits, {len(targets)} targets and {len(weights)} weights"
        )
    with name_scope(name, "sequence_loss_by_example", [*logits, *targets, *weights]):
        losses = [
            _entropy(softmax_loss_function, array_ops.reshape(target, [-1]), logit) * weight
            for logit, target, weight in zip(logits, targets, weights, strict=True)
        ]
        total = math_ops.add_n(losses)
        if average_across_timesteps:
            total = total / (math_ops.add_n(list(weights)) + _TINY)
        return total


def unrolled_sequence_loss(
    logits: Sequence[TensorLike], targets: Sequence[TensorLike], weights: Sequence[TensorLike],
    average_across_timesteps: bool = True, average_across_batch: bool = True,
    softmax_loss_function: LossFunction | None = None, name: str | None = None,
) -> Tensor:  # fmt: skip
    """The sum of `sequence_loss_by_example` over the batch, by the batch's size where that is averaged."""
    with name_scope(name, "sequence_loss", [*logits, *targets, *weights]):
        cost = math_ops.reduce_sum(
            sequence_loss_by_example(logits, targets, weights, average_across_timesteps, softmax_loss_function)
        )
        if average_across_batch:
            cost = cost / math_ops.cast(array_ops.shape(targets[0])[0], cost.dtype.base)
        return cost
