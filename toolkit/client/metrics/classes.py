"""Metrics of each class, of which the mean is taken."""

from __future__ import annotations

from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.losses.weights import check_same_shape
from toolkit.client.math import math_ops
from toolkit.client.metrics.confusion import confusion_matrix
from toolkit.client.metrics.state import Collections, Metric, as_float, flattened, kept, metric_variable
from toolkit.client.variables.scatter import scatter
from toolkit.client.variables.store import variable_scope
from toolkit.graph import dtypes


def streaming_confusion_matrix(labels: Any, predictions: Any, num_classes: Any, weights: Any = None) -> tuple[Any, Any]:
    """The counts [label, prediction] as a variable, and its update."""
    total = metric_variable([num_classes, num_classes], dtypes.float64, name="total_confusion_matrix")
    predictions = math_ops.cast(predictions, dtypes.int64)
    labels = math_ops.cast(labels, dtypes.int64)
    number = math_ops.cast(num_classes, dtypes.int64)
    predictions, labels = flattened(predictions), flattened(labels)
    if weights is not None:
        weights = flattened(convert_to_tensor(weights))
    return total, total.assign_add(confusion_matrix(labels, predictions, number, dtypes.float64, weights=weights))


def mean_iou(
    labels: Any, predictions: Any, num_classes: Any, weights: Any = None, metrics_collections: Collections = None,
    updates_collections: Collections = None, name: Any = None,
) -> Metric:  # fmt: skip
    """The mean over classes of hits / (hits + misses + false alarms); the update is the table of counts."""
    with variable_scope(name, "mean_iou", (predictions, labels, weights)):
        labels, predictions = convert_to_tensor(labels), convert_to_tensor(predictions)
        check_same_shape(predictions, labels)
        table, update = streaming_confusion_matrix(labels, predictions, num_classes, weights)
        predicted = as_float(math_ops.reduce_sum(table, 0))
        labelled = as_float(math_ops.reduce_sum(table, 1))
        hits = as_float(ops.diag_part(table))
        union = predicted + labelled - hits
        present = math_ops.reduce_sum(as_float(math_ops.not_equal(union, 0)))
        union = array_ops.where(ops.greater(union, 0), union, array_ops.ones_like(union))
        each = math_ops.divide(hits, union)
        found = array_ops.where(ops.greater(present, 0), math_ops.reduce_sum(each, name="mean_iou") / present, 0)
        return kept(found, metrics_collections), kept(update, updates_collections)


def mean_per_class_accuracy(
    labels: Any, predictions: Any, num_classes: Any, weights: Any = None, metrics_collections: Collections = None,
    updates_collections: Collections = None, name: Any = None,
) -> Metric:  # fmt: skip
    """The mean over classes of how often a label of the class is predicted."""
    with variable_scope(name, "mean_accuracy", (predictions, labels, weights)):
        labels = math_ops.cast(labels, dtypes.int64)
        labels = flattened(labels)
        predictions = convert_to_tensor(predictions)
        check_same_shape(predictions, labels)
        total = metric_variable([num_classes], name="total")
        count = metric_variable([num_classes], name="count")
        ones = array_ops.ones([array_ops.size(labels)], dtypes.float32)
        predictions = math_ops.cast(flattened(predictions), labels.dtype.base)
        right = as_float(math_ops.equal(predictions, labels))
        if weights is not None:
            weights = as_float(flattened(convert_to_tensor(weights)))
            right = right * weights
            ones = ones * weights
        new_total = scatter("ScatterAdd", total, labels, ones)
        new_count = scatter("ScatterAdd", count, labels, right)
        shares = ops.div_no_nan(count, math_ops.maximum(total, 0), name="div_no_nan")
        found = math_ops.reduce_mean(shares, name="mean_accuracy")
        update = ops.div_no_nan(new_count, math_ops.maximum(new_total, 0), name="update_op")
        return kept(found, metrics_collections), kept(update, updates_collections)
