"""Losses: one number out of a value for each example, weighted, and kept in the collection of losses.

What a loss takes:

    labels, predictions: of the same shape, up to a last axis of size 1.
    weights: a scalar, or sizes that are 1 or those of the values; 0 leaves an example out.
    scope: the name of the loss.
    loss_collection: where it is kept; None: nowhere.
    reduction: one of `Reduction`.

All raise a GraphError where shapes do not fit, and a ValueError for an unknown reduction. Names and order of the nodes
are those of tf.losses.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.convert import constant, convert_to_tensor
from toolkit.client.construction.scopes import control_dependencies, name_scope
from toolkit.client.construction.tensor import Tensor
from toolkit.client.losses.weights import assert_broadcastable, broadcast_weights, check_same_shape
from toolkit.client.math import math_ops
from toolkit.client.metrics.confusion import same_rank
from toolkit.client.nn import nn_ops
from toolkit.graph import dtypes
from toolkit.graph.metagraph import GraphKeys


class Reduction:
    """What becomes of the values of the examples."""

    NONE = "none"
    SUM = "weighted_sum"
    SUM_OVER_BATCH_SIZE = "weighted_sum_over_batch_size"
    MEAN = "weighted_mean"
    SUM_BY_NONZERO_WEIGHTS = "weighted_sum_by_nonzero_weights"
    SUM_OVER_NONZERO_WEIGHTS = SUM_BY_NONZERO_WEIGHTS

    @classmethod
    def all(cls) -> tuple[str, ...]:
        return (
            cls.NONE, cls.SUM, cls.MEAN, cls.SUM_OVER_BATCH_SIZE, cls.SUM_OVER_NONZERO_WEIGHTS,
            cls.SUM_BY_NONZERO_WEIGHTS,
        )  # fmt: skip

    @classmethod
    def validate(cls, key: str) -> None:
        """Raise a ValueError for what is no reduction."""
        if key not in cls.all():
            known = ", ".join(dict.fromkeys(cls.all()))
            raise ValueError(f"reduction: expected one of {known}, got {key!r}")


_BY_NONZERO = Reduction.SUM_BY_NONZERO_WEIGHTS


def _given(**arguments: Any) -> None:
    for name, value in arguments.items():
        if value is None:
            raise ValueError(f"{name} is needed")


def compute_weighted_loss(
    losses: Any, weights: Any = 1.0, scope: Any = None, loss_collection: Any = GraphKeys.LOSSES,
    reduction: str = _BY_NONZERO,
) -> Tensor:  # fmt: skip
    """The values times their weights, reduced; in the type of the values."""
    Reduction.validate(reduction)
    with (
        name_scope(scope, "weighted_loss", (losses, weights)),
        control_dependencies((assert_broadcastable(weights, losses),)),
    ):
        losses = convert_to_tensor(losses)
        dtype = losses.dtype.base
        values = math_ops.cast(losses, dtypes.float32)
        weights = math_ops.cast(weights, dtypes.float32)
        weighted = math_ops.multiply(values, weights)
        loss = _REDUCED[reduction](weighted, values, weights)
        loss = math_ops.cast(loss, dtype)
        add_loss(loss, loss_collection)
        return loss


def _mean(weighted: Tensor, values: Tensor, weights: Tensor) -> Tensor:
    total = math_ops.reduce_sum(weighted)
    return _ratio(total, math_ops.reduce_sum(array_ops.ones_like(values) * weights))


def _over_present(weighted: Tensor, values: Tensor, weights: Tensor) -> Tensor:
    total = math_ops.reduce_sum(weighted)
    return _ratio(total, _present(values, weights))


def _over_elements(weighted: Tensor, values: Tensor, weights: Tensor) -> Tensor:
    total = math_ops.reduce_sum(weighted)
    with name_scope(None, "num_elements", [values]) as scope:
        count = math_ops.cast(array_ops.size(values, name=scope), values.dtype.base)
    return _ratio(total, count)


#: what makes one number of weighted values, the values and the weights
_REDUCED: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    Reduction.NONE: lambda weighted, values, weights: weighted,
    Reduction.SUM: lambda weighted, values, weights: math_ops.reduce_sum(weighted),
    Reduction.MEAN: _mean,
    Reduction.SUM_BY_NONZERO_WEIGHTS: _over_present,
    Reduction.SUM_OVER_BATCH_SIZE: _over_elements,
}


def _ratio(values: Tensor, count: Tensor) -> Tensor:
    """The mean; 0 where nothing counts."""
    total = math_ops.reduce_sum(values)
    return ops.div_no_nan(total, count, name="value")


def _present(values: Tensor, weights: Tensor, per_batch: bool = False) -> Tensor:
    """How many values have a weight other than 0, of all or (in shape [batch, 1, ...]) of each example."""
    with name_scope(None, "num_present", (values, weights)) as scope:
        weights = math_ops.cast(weights, dtypes.float32)
        counted = array_ops.where(
            math_ops.equal(weights, 0.0), array_ops.zeros_like(weights), array_ops.ones_like(weights)
        )
        counted = broadcast_weights(counted, values)
        if per_batch:
            return math_ops.reduce_sum(counted, _example_axes(counted), keepdims=True, name=scope)
        return math_ops.reduce_sum(counted, name=scope)


def _example_axes(values: Tensor) -> Tensor:
    return math_ops.range(1, array_ops.rank(values))


# -- what is kept --------------------------------------------------------------------------------------------------


def add_loss(loss: Any, loss_collection: Any = GraphKeys.LOSSES) -> None:
    """Keep a loss made by hand."""
    if loss_collection:
        get_default_graph().add_to_collection(loss_collection, loss)


def get_losses(scope: Any = None, loss_collection: Any = GraphKeys.LOSSES) -> list[Any]:
    return get_default_graph().get_collection(loss_collection, scope)


def get_regularization_losses(scope: Any = None) -> list[Any]:
    return get_default_graph().get_collection(GraphKeys.REGULARIZATION_LOSSES, scope)


def get_regularization_loss(scope: Any = None, name: Any = "total_regularization_loss") -> Tensor:
    """The sum of what the regularizers of variables have made; 0 where there is none."""
    found = get_regularization_losses(scope)
    return math_ops.add_n(found, name=name) if found else constant(0.0)


def get_total_loss(add_regularization_losses: bool = True, name: Any = "total_loss", scope: Any = None) -> Tensor:
    """The sum of all losses that are kept."""
    found = get_losses(scope)
    if add_regularization_losses:
        found = found + get_regularization_losses(scope)
    return math_ops.add_n(found, name=name)


# -- the losses ----------------------------------------------------------------------------------------------------


def _pair(labels: Any, predictions: Any) -> tuple[Tensor, Tensor]:
    """Both in float32.

    Raises:
        GraphError: their shapes do not fit.
    """
    predictions = math_ops.cast(predictions, dtypes.float32)
    labels = math_ops.cast(labels, dtypes.float32)
    check_same_shape(predictions, labels)
    return labels, predictions


def absolute_difference(
    labels: Any, predictions: Any, weights: Any = 1.0, scope: Any = None, loss_collection: Any = GraphKeys.LOSSES,
    reduction: str = _BY_NONZERO,
) -> Tensor:  # fmt: skip
    """|predictions - labels|."""
    _given(labels=labels, predictions=predictions)
    with name_scope(scope, "absolute_difference", (predictions, labels, weights)) as entered:
        labels, predictions = _pair(labels, predictions)
        values = math_ops.abs(math_ops.subtract(predictions, labels))
        return compute_weighted_loss(values, weights, entered, loss_collection, reduction)


def cosine_distance(
    labels: Any, predictions: Any, axis: Any = None, weights: Any = 1.0, scope: Any = None,
    loss_collection: Any = GraphKeys.LOSSES, reduction: str = _BY_NONZERO, dim: Any = None,
) -> Tensor:  # fmt: skip
    """1 - labels . predictions along `axis`; both are unit vectors already. `dim` is the axis by its older name."""
    if dim is not None:
        if axis is not None:
            raise ValueError("dim is the older name of axis; give one of them")
        axis = dim
    if axis is None:
        raise ValueError("axis is needed")
    _given(labels=labels, predictions=predictions)
    with name_scope(scope, "cosine_distance_loss", (predictions, labels, weights)) as entered:
        labels, predictions = _pair(labels, predictions)
        alike = math_ops.multiply(predictions, labels)
        values = 1 - math_ops.reduce_sum(alike, (axis,), keepdims=True)
        return compute_weighted_loss(values, weights, entered, loss_collection, reduction)


def hinge_loss(
    labels: Any, logits: Any, weights: Any = 1.0, scope: Any = None, loss_collection: Any = GraphKeys.LOSSES,
    reduction: str = _BY_NONZERO,
) -> Tensor:  # fmt: skip
    """max(0, 1 - y * logits), where labels of 0 and 1 are y of -1 and 1."""
    _given(labels=labels, logits=logits)
    with name_scope(scope, "hinge_loss", (logits, labels, weights)) as entered:
        logits = math_ops.cast(logits, dtypes.float32)
        labels = math_ops.cast(labels, dtypes.float32)
        check_same_shape(logits, labels)
        ones = array_ops.ones_like(labels)
        signs = math_ops.subtract(2 * labels, ones)
        values = nn_ops.relu(math_ops.subtract(ones, math_ops.multiply(signs, logits)))
        return compute_weighted_loss(values, weights, entered, loss_collection, reduction)


def huber_loss(
    labels: Any, predictions: Any, weights: Any = 1.0, delta: float = 1.0, scope: Any = None,
    loss_collection: Any = GraphKeys.LOSSES, reduction: str = _BY_NONZERO,
) -> Tensor:  # fmt: skip
    """Half the square of the error up to `delta`, linear beyond (Huber 1964)."""
    _given(labels=labels, predictions=predictions)
    with name_scope(scope, "huber_loss", (predictions, labels, weights)) as entered:
        labels, predictions = _pair(labels, predictions)
        error = math_ops.abs(math_ops.subtract(predictions, labels))
        small = math_ops.minimum(error, delta)
        rest = math_ops.subtract(error, small)
        half = convert_to_tensor(0.5, small.dtype.base)
        values = math_ops.add(math_ops.multiply(half, math_ops.multiply(small, small)), math_ops.multiply(delta, rest))
        return compute_weighted_loss(values, weights, entered, loss_collection, reduction)


def log_loss(
    labels: Any, predictions: Any, weights: Any = 1.0, epsilon: float = 1e-07, scope: Any = None,
    loss_collection: Any = GraphKeys.LOSSES, reduction: str = _BY_NONZERO,
) -> Tensor:  # fmt: skip
    """-y log(p + epsilon) - (1 - y) log(1 - p + epsilon)."""
    _given(labels=labels, predictions=predictions)
    with name_scope(scope, "log_loss", (predictions, labels, weights)) as entered:
        labels, predictions = _pair(labels, predictions)
        hit = -math_ops.multiply(labels, math_ops.log(predictions + epsilon))
        miss = math_ops.multiply(1 - labels, math_ops.log(1 - predictions + epsilon))
        return compute_weighted_loss(hit - miss, weights, entered, loss_collection, reduction)


def mean_squared_error(
    labels: Any, predictions: Any, weights: Any = 1.0, scope: Any = None, loss_collection: Any = GraphKeys.LOSSES,
    reduction: str = _BY_NONZERO,
) -> Tensor:  # fmt: skip
    """(predictions - labels) ** 2."""
    _given(labels=labels, predictions=predictions)
    with name_scope(scope, "mean_squared_error", (predictions, labels, weights)) as entered:
        labels, predictions = _pair(labels, predictions)
        values = ops.squared_difference(predictions, labels)
        return compute_weighted_loss(values, weights, entered, loss_collection, reduction)


def mean_pairwise_squared_error(
    labels: Any, predictions: Any, weights: Any = 1.0, scope: Any = None, loss_collection: Any = GraphKeys.LOSSES
) -> Tensor:
    """How much the differences between the elements of one example differ from those of its labels, squared."""
    _given(labels=labels, predictions=predictions)
    with name_scope(scope, "mean_pairwise_squared_error", (predictions, labels, weights)):
        weights = math_ops.cast(weights, dtypes.float32)
        labels = math_ops.cast(labels, dtypes.float32)
        with control_dependencies((assert_broadcastable(weights, labels),)):
            predictions = math_ops.cast(predictions, dtypes.float32)
            check_same_shape(predictions, labels)
            difference = math_ops.subtract(predictions, labels)
            axes = _example_axes(difference)
            squares = math_ops.reduce_sum(math_ops.square(difference), axes, keepdims=True)
            present = _present(difference, weights, per_batch=True)
            first = 2.0 * ops.div_no_nan(squares, math_ops.maximum(present - 1, 0), name="value")
            sums = math_ops.reduce_sum(difference, axes, keepdims=True)
            squared_sums = math_ops.square(sums)
            pairs = math_ops.maximum(math_ops.multiply(present, present - 1), 0)
            second = 2.0 * ops.div_no_nan(squared_sums, pairs, name="value")
            weighted = math_ops.multiply(first - second, weights)
            loss = math_ops.reduce_sum(weighted)
            some = math_ops.reduce_sum(present) > 0
            loss = array_ops.where(some, loss, array_ops.zeros_like(loss), name="value")
            add_loss(loss, loss_collection)
            return loss


def sigmoid_cross_entropy(
    multi_class_labels: Any, logits: Any, weights: Any = 1.0, label_smoothing: float = 0, scope: Any = None,
    loss_collection: Any = GraphKeys.LOSSES, reduction: str = _BY_NONZERO,
) -> Tensor:  # fmt: skip
    """The logistic loss of each class on its own; smoothing moves labels towards one half."""
    _given(multi_class_labels=multi_class_labels, logits=logits)
    with name_scope(scope, "sigmoid_cross_entropy_loss", (logits, multi_class_labels, weights)) as entered:
        logits = convert_to_tensor(logits)
        labels = math_ops.cast(multi_class_labels, logits.dtype.base)
        check_same_shape(logits, labels)
        if label_smoothing > 0:
            labels = labels * (1 - label_smoothing) + 0.5 * label_smoothing
        values = nn_ops.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits, name="xentropy")
        return compute_weighted_loss(values, weights, entered, loss_collection, reduction)


def softmax_cross_entropy(
    onehot_labels: Any, logits: Any, weights: Any = 1.0, label_smoothing: float = 0, scope: Any = None,
    loss_collection: Any = GraphKeys.LOSSES, reduction: str = _BY_NONZERO,
) -> Tensor:  # fmt: skip
    """The cross entropy of rows of probabilities; smoothing moves labels towards all classes alike."""
    _given(onehot_labels=onehot_labels, logits=logits)
    with name_scope(scope, "softmax_cross_entropy_loss", (logits, onehot_labels, weights)) as entered:
        logits = convert_to_tensor(logits)
        labels = math_ops.cast(onehot_labels, logits.dtype.base)
        check_same_shape(logits, labels)
        if label_smoothing > 0:
            classes = math_ops.cast(array_ops.shape(labels)[-1], logits.dtype.base)
            kept, spread = 1.0 - label_smoothing, label_smoothing / classes
            labels = labels * kept + spread
        labels = array_ops.stop_gradient(labels, name="labels_stop_gradient")
        values = nn_ops.softmax_cross_entropy_with_logits_v2(labels=labels, logits=logits, name="xentropy")
        return compute_weighted_loss(values, weights, entered, loss_collection, reduction)


def sparse_softmax_cross_entropy(
    labels: Any, logits: Any, weights: Any = 1.0, scope: Any = None, loss_collection: Any = GraphKeys.LOSSES,
    reduction: str = _BY_NONZERO,
) -> Tensor:  # fmt: skip
    """The cross entropy of rows of logits, whose right class has a number."""
    _given(labels=labels, logits=logits)
    with name_scope(scope, "sparse_softmax_cross_entropy_loss", (logits, labels, weights)) as entered:
        labels, logits, weights = _without_last_axis(labels, logits, weights)
        values = nn_ops.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits, name="xentropy")
        return compute_weighted_loss(values, weights, entered, loss_collection, reduction)


def _without_last_axis(labels: Any, logits: Any, weights: Any) -> tuple[Tensor, Tensor, Any]:
    """Labels, and weights like the labels, without a last axis of size 1 that they have beside the logits' classes."""
    labels, logits = same_rank(labels, logits, 1)
    if weights is None:
        return labels, logits, 1.0
    weights = convert_to_tensor(weights)
    given, wanted = weights.static_shape.rank, labels.static_shape.rank
    if given is not None and wanted is not None:
        if given - wanted == 1:
            weights = array_ops.squeeze(weights, [-1])
        return labels, logits, weights
    if given == 0:
        return labels, logits, weights
    from toolkit.client.flow import control_flow

    more = array_ops.rank(weights) - array_ops.rank(labels)
    if given is None or weights.static_shape[-1] in (1, None):
        squeezable = weights
        weights = control_flow.cond(
            math_ops.equal(1, more), lambda: array_ops.squeeze(squeezable, [-1]), lambda: squeezable
        )
    return labels, logits, weights
