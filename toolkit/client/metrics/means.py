"""Metrics that are means: of values, of errors, of what is right."""

from __future__ import annotations

from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.scopes import control_dependencies
from toolkit.client.construction.tensor import Tensor
from toolkit.client.losses.weights import broadcast_weights, check_same_shape, fitted_weights
from toolkit.client.math import math_ops
from toolkit.client.metrics.confusion import same_rank
from toolkit.client.metrics.state import Collections, Metric, as_float, kept, metric_variable, streamed, together
from toolkit.client.variables.store import variable_scope


def _safe_mean(total: Any, count: Any, name: str | None) -> Tensor:
    """total / count; 0 where nothing counts."""
    return ops.div_no_nan(total, math_ops.maximum(count, 0), name=name)


def mean(
    values: Any, weights: Any = None, metrics_collections: Collections = None, updates_collections: Collections = None,
    name: Any = None,
) -> Metric:  # fmt: skip
    """The weighted mean of all values."""
    with variable_scope(name, "mean", (values, weights)):
        values = as_float(values)
        total = metric_variable([], name="total")
        count = metric_variable([], name="count")
        if weights is None:
            number = as_float(array_ops.size(values))
        else:
            weights = broadcast_weights(as_float(fitted_weights(weights, values)), values)
            values = math_ops.multiply(values, weights)
            number = math_ops.reduce_sum(weights)
        new_total = total.assign_add(math_ops.reduce_sum(values))
        with control_dependencies([values]):
            new_count = count.assign_add(number)
        return streamed(_safe_mean, (total, count), (new_total, new_count), metrics_collections, updates_collections)


def mean_tensor(
    values: Any, weights: Any = None, metrics_collections: Collections = None, updates_collections: Collections = None,
    name: Any = None,
) -> Metric:  # fmt: skip
    """The mean over batches of each element, in the shape of the values."""
    with variable_scope(name, "mean", (values, weights)):
        values = as_float(values)
        total = metric_variable(values.static_shape, name="total_tensor")
        count = metric_variable(values.static_shape, name="count_tensor")
        number = array_ops.ones_like(values)
        if weights is not None:
            weights = broadcast_weights(as_float(fitted_weights(weights, values)), values)
            values = math_ops.multiply(values, weights)
            number = math_ops.multiply(number, weights)
        new_total = total.assign_add(values)
        with control_dependencies([values]):
            new_count = count.assign_add(number)
        return streamed(_safe_mean, (total, count), (new_total, new_count), metrics_collections, updates_collections)


def accuracy(
    labels: Any, predictions: Any, weights: Any = None, metrics_collections: Collections = None,
    updates_collections: Collections = None, name: Any = None,
) -> Metric:  # fmt: skip
    """How often predictions equal labels."""
    predictions, labels, weights = together(predictions, labels, weights)
    predictions = math_ops.cast(predictions, labels.dtype.base)
    right = as_float(math_ops.equal(predictions, labels))
    return mean(right, weights, metrics_collections, updates_collections, name or "accuracy")


def _pair(labels: Any, predictions: Any, weights: Any) -> tuple[Tensor, Tensor, Tensor | None]:
    return together(as_float(predictions), as_float(labels), weights)


def mean_absolute_error(
    labels: Any, predictions: Any, weights: Any = None, metrics_collections: Collections = None,
    updates_collections: Collections = None, name: Any = None,
) -> Metric:  # fmt: skip
    predictions, labels, weights = _pair(labels, predictions, weights)
    errors = math_ops.abs(predictions - labels)
    return mean(errors, weights, metrics_collections, updates_collections, name or "mean_absolute_error")


def mean_squared_error(
    labels: Any, predictions: Any, weights: Any = None, metrics_collections: Collections = None,
    updates_collections: Collections = None, name: Any = None,
) -> Metric:  # fmt: skip
    predictions, labels, weights = _pair(labels, predictions, weights)
    errors = ops.squared_difference(labels, predictions)
    return mean(errors, weights, metrics_collections, updates_collections, name or "mean_squared_error")


def root_mean_squared_error(
    labels: Any, predictions: Any, weights: Any = None, metrics_collections: Collections = None,
    updates_collections: Collections = None, name: Any = None,
) -> Metric:  # fmt: skip
    predictions, labels, weights = _pair(labels, predictions, weights)
    value, update = mean_squared_error(labels, predictions, weights, None, None, name or "root_mean_squared_error")
    root = kept(math_ops.sqrt(value), metrics_collections)
    return root, kept(math_ops.sqrt(update), updates_collections)


def mean_relative_error(
    labels: Any, predictions: Any, normalizer: Any, weights: Any = None, metrics_collections: Collections = None,
    updates_collections: Collections = None, name: Any = None,
) -> Metric:  # fmt: skip
    """|labels - predictions| / normalizer; 0 where the normalizer is 0."""
    predictions, labels, weights = _pair(labels, predictions, weights)

    predictions, normalizer = same_rank(predictions, normalizer)
    check_same_shape(predictions, normalizer)
    is_zero = math_ops.equal(normalizer, 0.0)
    errors = array_ops.where(
        is_zero, array_ops.zeros_like(labels), math_ops.divide(math_ops.abs(labels - predictions), normalizer)
    )
    return mean(errors, weights, metrics_collections, updates_collections, name or "mean_relative_error")


def mean_cosine_distance(
    labels: Any, predictions: Any, dim: Any, weights: Any = None, metrics_collections: Collections = None,
    updates_collections: Collections = None, name: Any = None,
) -> Metric:  # fmt: skip
    """1 - the mean of labels . predictions along `dim`; both are unit vectors already."""
    predictions, labels, weights = _pair(labels, predictions, weights)
    alike = math_ops.reduce_sum(math_ops.multiply(predictions, labels), [dim], keepdims=True)
    value, update = mean(alike, weights, None, None, name or "mean_cosine_distance")
    distance = kept(math_ops.subtract(1.0, value), metrics_collections)
    return distance, kept(math_ops.subtract(1.0, update), updates_collections)


def percentage_below(
    values: Any, threshold: Any, weights: Any = None, metrics_collections: Collections = None,
    updates_collections: Collections = None, name: Any = None,
) -> Metric:  # fmt: skip
    """How many values are below a threshold."""
    below = as_float(ops.less(values, threshold))
    return mean(below, weights, metrics_collections, updates_collections, name or "percentage_below_threshold")
