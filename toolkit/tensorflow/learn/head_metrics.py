# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""The metrics of tf.contrib.learn's heads, each a value and its update."""

from __future__ import annotations

from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.scopes import name_scope
from toolkit.client.losses.weights import broadcast_weights
from toolkit.client.math import math_ops
from toolkit.client.metrics import accuracy as accuracy_metric
from toolkit.client.metrics import auc as auc_metric
from toolkit.client.metrics import mean, precision_at_thresholds, recall_at_thresholds
from toolkit.graph import dtypes
from toolkit.tensorflow.deprecation import log

Metric = tuple[Any, Any]


def _floats(weights: Any) -> Any:
    if weights is None:
        return None
    with name_scope(None, "float_weights", (weights,)) as scope:
        return math_ops.cast(weights, dtypes.float32, name=scope)


def _like(weights: Any, values: Any) -> Any:
    weights = _floats(weights)
    return None if weights is None else broadcast_weights(weights, values)


def mean_of(values: Any, weights: Any = None, number: int | None = None) -> Metric:
    """The mean of numbers [batch, classes], or of those of one class."""
    values = math_ops.cast(values, dtypes.float32)
    weights = _like(weights, values)
    if number is not None:
        weights = None if weights is None else weights[:, number]
        values = values[:, number]
    return mean(values, weights)


def share_of(number: int, classes: Any, weights: Any) -> Metric:
    """How often a class is the one."""
    is_it = math_ops.equal(math_ops.cast(number, dtypes.int32), math_ops.cast(classes, dtypes.int32))
    return mean(array_ops.where(is_it, array_ops.ones_like(classes), array_ops.zeros_like(classes)), weights)


def area(predictions: Any, labels: Any, weights: Any = None, number: int | None = None, curve: str = "ROC") -> Metric:
    """The area under a curve, of all classes or of one."""
    predictions = math_ops.cast(predictions, dtypes.float32)
    if labels.dtype.base is not dtypes.bool_:
        log().warning("the labels are of type %s; taken as true and false", labels.dtype.base)
        labels = math_ops.cast(labels, dtypes.bool_)
    weights = _like(weights, predictions)
    if number is not None:
        weights = None if weights is None else weights[:, number]
        predictions, labels = predictions[:, number], labels[:, number]
    return auc_metric(labels, predictions, weights, curve=curve)


def accuracy_at(threshold: float, predictions: Any, labels: Any, weights: Any) -> Metric:
    over = math_ops.cast(ops.greater_equal(predictions, threshold), dtypes.float32)
    return accuracy_metric(labels, over, weights)


def precision_at(threshold: float, predictions: Any, labels: Any, weights: Any) -> Metric:
    value, update = precision_at_thresholds(labels, predictions, (threshold,), _floats(weights))
    return array_ops.squeeze(value), array_ops.squeeze(update)


def recall_at(threshold: float, predictions: Any, labels: Any, weights: Any) -> Metric:
    value, update = recall_at_thresholds(labels, predictions, (threshold,), _floats(weights))
    return array_ops.squeeze(value), array_ops.squeeze(update)
