"""Metrics of the k classes with the highest scores, beside the labels of each example.

labels: int64 [..., labels of an example], or [...] where each has one.
"""

from __future__ import annotations

from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.scopes import control_dependencies, name_scope
from toolkit.client.construction.tensor import Tensor
from toolkit.client.flow import control_flow
from toolkit.client.losses.weights import assert_broadcastable, broadcast_weights
from toolkit.client.math import math_ops
from toolkit.client.metrics.state import Collections, Metric, kept, metric_variable
from toolkit.errors import GraphError
from toolkit.graph import dtypes

#: what is counted: predictions and labels of an example as sets
_HIT, _MISS, _ALARM = "intersection", "b-a", "a-b"
_SCOPES = {_HIT: "true_positives", _MISS: "false_negatives", _ALARM: "false_positives"}
_NAMES = {_HIT: "true_positive", _MISS: "false_negative", _ALARM: "false_positive"}


def _name(what: str, k: int | None, class_id: int | None = None) -> str:
    found = f"{what}_at_k" if k is None else f"{what}_at_{k}"
    return found if class_id is None else f"{found}_class{class_id}"


def _with_label_axis(labels: Any, predictions: Tensor) -> Tensor:
    """The labels with an axis for the labels of one example, where it is missing."""
    with name_scope(None, "expand_labels", (labels, predictions)) as scope:
        labels = convert_to_tensor(labels)
        given, wanted = labels.static_shape.rank, predictions.static_shape.rank
        if given is not None and wanted is not None:
            if wanted == given:
                return labels
            if wanted == given + 1:
                return array_ops.expand_dims(labels, -1, name=scope)
            raise GraphError(
                f"labels '{labels.name}' have {given} dimensions, predictions '{predictions.name}' {wanted}; "
                "labels have as many, or one less"
            )
        return control_flow.cond(
            math_ops.equal(array_ops.rank(predictions), array_ops.rank(labels) + 1),
            lambda: array_ops.expand_dims(labels, -1, name=scope),
            lambda: labels,
        )


def _of_class(ids: Tensor, class_id: int) -> tuple[Tensor, Tensor, Tensor]:
    """Which ids are of one class, as the parts of a sparse tensor of the same shape."""
    sizes = array_ops.shape(ids, out_type=dtypes.int64)
    last = array_ops.reshape(array_ops.size(sizes) - 1, [1])
    rank = array_ops.size(sizes)
    axes = (last + rank) % rank
    count = array_ops.shape(axes)
    places = [math_ops.range(rank), axes]
    one_each: Tensor = ops.dynamic_stitch(places, [sizes, array_ops.ones(count, dtypes.int64)])
    wanted = array_ops.fill(one_each, math_ops.cast(class_id, dtypes.int64))
    places, values, _ = ops.dense_to_dense_set_operation(wanted, ids, set_operation=_HIT)
    return places, values, sizes


def _set_sizes(predictions: Tensor, labels: Tensor, operation: str, class_id: int | None) -> Tensor:
    """How many ids of each example are in both sets, or in one and not in the other."""
    if class_id is None:
        parts = ops.dense_to_dense_set_operation(predictions, labels, set_operation=operation)
    else:
        right = _of_class(labels, class_id)
        parts = ops.sparse_to_sparse_set_operation(*_of_class(predictions, class_id), *right, set_operation=operation)
    return math_ops.cast(ops.set_size(*parts), dtypes.float64)


def _counts(labels: Tensor, predictions: Tensor, operation: str, class_id: int | None, weights: Any) -> Tensor:
    with name_scope(None, _SCOPES[operation], (predictions, labels, weights)):
        found = _set_sizes(predictions, labels, operation, class_id)
        if weights is not None:
            with control_dependencies((assert_broadcastable(weights, found),)):
                weights = math_ops.cast(weights, dtypes.float64)
                found = math_ops.multiply(found, weights)
        return found


def _streamed_count(
    labels: Tensor, predictions: Tensor, operation: str, k: int | None, class_id: int | None, weights: Any
) -> tuple[Any, Any]:
    """A count over all batches, as a variable, and its update."""
    with name_scope(None, _name(_NAMES[operation], k, class_id), (predictions, labels, weights)) as scope:
        found = _counts(labels, predictions, operation, class_id, weights)
        batch = math_ops.cast(math_ops.reduce_sum(found), dtypes.float64)
        total = metric_variable([], dtypes.float64, name=scope)
        return total, total.assign_add(batch, name="update")


def _share_at(
    what: str, against: str, labels: Any, predictions_idx: Any, k: int | None, class_id: int | None, weights: Any,
    metrics_collections: Collections, updates_collections: Collections, name: Any,
) -> Metric:  # fmt: skip
    """hits / (hits + others)."""
    with name_scope(name, _name(what, k, class_id), (predictions_idx, labels, weights)) as scope:
        predictions_idx = convert_to_tensor(predictions_idx)
        labels = _with_label_axis(labels, predictions_idx)
        top = math_ops.cast(predictions_idx, dtypes.int64)
        hits, more_hits = _streamed_count(labels, top, _HIT, k, class_id, weights)
        others, more_others = _streamed_count(labels, top, against, k, class_id, weights)
        value = kept(math_ops.divide(hits, math_ops.add(hits, others), name=scope), metrics_collections)
        update = math_ops.divide(more_hits, math_ops.add(more_hits, more_others), name="update")
        return value, kept(update, updates_collections)


def recall_at_top_k(
    labels: Any, predictions_idx: Any, k: Any = None, class_id: Any = None, weights: Any = None,
    metrics_collections: Collections = None, updates_collections: Collections = None, name: Any = None,
) -> Metric:  # fmt: skip
    """What share of the labels is among the predictions, which are the ids of the best classes."""
    return _share_at(
        "recall", _MISS, labels, predictions_idx, k, class_id, weights, metrics_collections, updates_collections, name
    )


def recall_at_k(
    labels: Any, predictions: Any, k: Any, class_id: Any = None, weights: Any = None,
    metrics_collections: Collections = None, updates_collections: Collections = None, name: Any = None,
) -> Metric:  # fmt: skip
    """What share of the labels is among the `k` best classes; `predictions` are scores [..., classes]."""
    with name_scope(name, _name("recall", k, class_id), (predictions, labels, weights)) as scope:
        best = ops.top_kv2(predictions, k)[1]
        return recall_at_top_k(labels, best, k, class_id, weights, metrics_collections, updates_collections, scope)


def precision_at_top_k(
    labels: Any, predictions_idx: Any, k: Any = None, class_id: Any = None, weights: Any = None,
    metrics_collections: Collections = None, updates_collections: Collections = None, name: Any = None,
) -> Metric:  # fmt: skip
    """What share of the predictions, which are the ids of the best classes, is among the labels."""
    return _share_at(
        "precision", _ALARM, labels, predictions_idx, k, class_id, weights, metrics_collections, updates_collections,
        name,
    )  # fmt: skip


def precision_at_k(
    labels: Any, predictions: Any, k: Any, class_id: Any = None, weights: Any = None,
    metrics_collections: Collections = None, updates_collections: Collections = None, name: Any = None,
) -> Metric:  # fmt: skip
    """What share of the `k` best classes is among the labels; `predictions` are scores [..., classes]."""
    with name_scope(name, _name("precision", k, class_id), (predictions, labels, weights)) as scope:
        best = ops.top_kv2(predictions, k)[1]
        return precision_at_top_k(labels, best, k, class_id, weights, metrics_collections, updates_collections, scope)


def sparse_precision_at_k(
    labels: Any, predictions: Any, k: Any, class_id: Any = None, weights: Any = None,
    metrics_collections: Collections = None, updates_collections: Collections = None, name: Any = None,
) -> Metric:  # fmt: skip
    """`precision_at_k` by its older name."""
    return precision_at_k(labels, predictions, k, class_id, weights, metrics_collections, updates_collections, name)


# -- average precision ---------------------------------------------------------------------------------------------


def _within(labels: Tensor, classes: Tensor) -> Tensor:
    """Labels beyond the last class as -1, which is no class."""

    def cleaned() -> Tensor:
        return array_ops.where_v2(ops.greater_equal(labels, classes), -1 * array_ops.ones_like(labels), labels)

    largest = math_ops.reduce_max(labels)
    return control_flow.cond(ops.greater_equal(largest, classes), cleaned, lambda: labels)


def _repeated(labels: Tensor, k: int) -> Tensor:
    """The labels of each example `k` times: [..., labels] to [..., k, labels]."""
    with name_scope("labels_per_k", None, (labels, k, -1)) as scope:
        wide = array_ops.expand_dims(labels, -2, name="expand")
        if k == 1:
            return wide
        ones = array_ops.ones_like(array_ops.shape(labels))
        times = array_ops.concat((ones[:-1], (k,), ones[-1:]), 0, name="multiples")
        return array_ops.tile(wide, times, name=scope)


def _average_precision(labels: Any, predictions_idx: Any) -> Tensor:
    """Of each example: the mean, over its labels that are found, of the precision up to where each is found."""
    with name_scope(None, "average_precision", (predictions_idx, labels)) as scope:
        top = math_ops.cast(predictions_idx, dtypes.int64, name="predictions_idx")
        k = top.static_shape[-1] if top.static_shape.rank else None
        if k is None:
            raise GraphError(f"'{top.name}' has shape {top.static_shape}; its last size must be known")
        labels = _with_label_axis(labels, top)
        each = array_ops.expand_dims(top, -1, name="predictions_idx_per_k")
        repeated = _repeated(labels, k)
        with name_scope("relevant_per_k", None, (each, repeated)):
            relevant = _set_sizes(each, repeated, _HIT, None)
        found = math_ops.cumsum(relevant, -1, name="tp_per_k")
        tried = math_ops.cumsum(array_ops.ones_like(relevant), -1, name="retrieved_per_k")
        precision = math_ops.divide(
            math_ops.cast(found, dtypes.float64), math_ops.cast(tried, dtypes.float64), name="precision_per_k"
        )
        counted = math_ops.multiply(precision, math_ops.cast(relevant, dtypes.float64), name="relevant_precision_per_k")
        total = math_ops.reduce_sum(counted, (-1,), name="precision_sum")
        return math_ops.divide(total, math_ops.cast(_label_count(labels, k), dtypes.float64), name=scope)


def _label_count(labels: Tensor, k: int) -> Tensor:
    """How many labels each example has, at most `k`."""
    with name_scope(None, "num_relevant", (labels,)) as scope:
        there = array_ops.where_v2(
            ops.greater_equal(labels, 0), array_ops.ones_like(labels), array_ops.zeros_like(labels)
        )
        return math_ops.minimum(math_ops.reduce_sum(there, -1), k, name=scope)


def average_precision_at_k(
    labels: Any, predictions: Any, k: Any, weights: Any = None, metrics_collections: Collections = None,
    updates_collections: Collections = None, name: Any = None,
) -> Metric:  # fmt: skip
    """The mean over examples of the average precision of the `k` best classes.

    Raises:
        ValueError: `k` is below 1.
    """
    if k < 1:
        raise ValueError(f"k: expected a number from 1 on, got {k}")
    with name_scope(name, _name("average_precision", k), (predictions, labels, weights)) as scope:
        best = ops.top_kv2(predictions, k)[1]
        labels = convert_to_tensor(labels)
        classes = math_ops.cast(array_ops.shape(convert_to_tensor(predictions))[-1], dtypes.int64)
        labels = _within(labels, classes)
        return average_precision_at_top_k(best, labels, weights, metrics_collections, updates_collections, scope)


def average_precision_at_top_k(
    top_k_predictions: Any, labels: Any, weights: Any = None, metrics_collections: Collections = None,
    updates_collections: Collections = None, name: Any = None,
) -> Metric:  # fmt: skip
    """The same, of the best classes, [..., k], the best first."""
    with name_scope(name, "average_precision_at_top_k", (top_k_predictions, labels, weights)) as scope:
        best, found = convert_to_tensor(top_k_predictions), convert_to_tensor(labels)
        return _streamed_average(found, best, weights, metrics_collections, updates_collections, scope)


def _streamed_average(
    labels: Tensor, best: Tensor, weights: Any, metrics: Collections, updates: Collections, scope: str
) -> Metric:
    precision = _average_precision(labels, best)
    if weights is not None:
        weights = broadcast_weights(math_ops.cast(weights, dtypes.float64), precision)
        precision = math_ops.multiply(precision, weights)
    with name_scope(None, "max", (precision,)) as max_scope:
        most = metric_variable([], dtypes.float64, name=max_scope)
        if weights is None:
            batch = math_ops.cast(array_ops.size(precision, name="batch_max"), dtypes.float64)
        else:
            batch = math_ops.reduce_sum(weights, name="batch_max")
        new_most = most.assign_add(batch, name="update")
    with name_scope(None, "total", (precision,)) as total_scope:
        total = metric_variable([], dtypes.float64, name=total_scope)
        batch = math_ops.reduce_sum(precision, name="batch_total")
        new_total = total.assign_add(batch, name="update")
    value = kept(ops.div_no_nan(total, most, name="mean"), metrics)
    return value, kept(ops.div_no_nan(new_total, new_most, name=scope), updates)


def sparse_average_precision_at_k(
    labels: Any, predictions: Any, k: Any, weights: Any = None, metrics_collections: Collections = None,
    updates_collections: Collections = None, name: Any = None,
) -> Metric:  # fmt: skip
    """`average_precision_at_k` by its older name."""
    return average_precision_at_k(labels, predictions, k, weights, metrics_collections, updates_collections, name)
