"""How often one class is taken for another."""

from __future__ import annotations

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.checks.assertions import assert_less, assert_non_negative
from toolkit.client.construction.convert import DTypeLike, as_dtype, convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.flow.control_flow import cond, with_dependencies
from toolkit.client.math import math_ops
from toolkit.graph import dtypes


def confusion_matrix(
    labels: TensorLike,
    predictions: TensorLike,
    num_classes: TensorLike = None,
    dtype: DTypeLike = dtypes.int32,
    name: str | None = None,
    weights: TensorLike = None,
) -> Tensor:
    """How many examples of each class (rows) are taken for each class (columns), or the sum of their weights.

    Args:
        num_classes: default: one more than the largest class number.
    """
    kind = as_dtype(dtype)
    with name_scope(name, "confusion_matrix", [labels, predictions, num_classes, weights]):
        labels, predictions = same_rank(
            convert_to_tensor(labels, name="labels"), convert_to_tensor(predictions, name="predictions")
        )
        predictions, labels = math_ops.cast(predictions, dtypes.int64), math_ops.cast(labels, dtypes.int64)
        labels = with_dependencies(
            [assert_non_negative(labels, message="`labels` contains negative values")], labels
        )  # fmt: skip
        predictions = with_dependencies(
            [assert_non_negative(predictions, message="`predictions` contains negative values")], predictions
        )
        if num_classes is None:
            num_classes = ops.maximum(math_ops.reduce_max(predictions), math_ops.reduce_max(labels)) + 1
            count: TensorLike = num_classes
        else:
            count = num_classes
            limit = math_ops.cast(num_classes, dtypes.int64)
            labels = with_dependencies([assert_less(labels, limit, message="`labels` out of bound")], labels)
            predictions = with_dependencies(
                [assert_less(predictions, limit, message="`predictions` out of bound")], predictions
            )
        if weights is not None:
            weights = math_ops.cast(weights, kind)
        shape = array_ops.stack([count, count])
        places = array_ops.stack([labels, predictions], axis=1)
        values = array_ops.ones_like(predictions, kind) if weights is None else weights
        return ops.scatter_nd(places, values, math_ops.cast(shape, dtypes.int64))


def same_rank(
    labels: TensorLike, predictions: TensorLike, expected: int = 0, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """The two without the last dimension of size 1 that one of them has more than the other.

    Args:
        expected: how much larger the rank of predictions is meant to be.
    """
    with name_scope(name, "remove_squeezable_dimensions", [labels, predictions]):
        predictions, labels = convert_to_tensor(predictions), convert_to_tensor(labels)
        ours, theirs = predictions.static_shape, labels.static_shape
        if ours.rank is not None and theirs.rank is not None:
            more = ours.rank - theirs.rank
            if more == expected + 1 and ours[-1] in (None, 1):
                predictions = array_ops.squeeze(predictions, [-1])
            elif more == expected - 1 and theirs[-1] in (None, 1):
                labels = array_ops.squeeze(labels, [-1])
            return labels, predictions
        more_now = array_ops.rank(predictions) - array_ops.rank(labels)
        if ours.rank is None or ours[-1] in (None, 1):
            whole = predictions
            predictions = cond(ops.equal(expected + 1, more_now), lambda: array_ops.squeeze(whole, [-1]), lambda: whole)
        if theirs.rank is None or theirs[-1] in (None, 1):
            kept = labels
            labels = cond(ops.equal(expected - 1, more_now), lambda: array_ops.squeeze(kept, [-1]), lambda: kept)
        return labels, predictions
