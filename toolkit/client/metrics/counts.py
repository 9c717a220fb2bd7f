"""Metrics that count hits and misses of yes-or-no predictions: the four counts, precision, recall."""

from __future__ import annotations

from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.scopes import control_dependencies, name_scope
from toolkit.client.construction.tensor import Tensor
from toolkit.client.losses.weights import assert_broadcastable
from toolkit.client.math import math_ops
from toolkit.client.metrics.state import Collections, Metric, as_float, kept, metric_variable, streamed, together
from toolkit.client.variables.store import variable_scope
from toolkit.errors import GraphError
from toolkit.graph import dtypes


def _counted(values: Tensor, weights: Any, metrics: Collections, updates: Collections) -> Metric:
    """The (weighted) number of values that are true."""
    static_check("assert_type")
    count = metric_variable([], name="count")
    numbers = as_float(values)
    if weights is not None:
        weights = as_float(weights)
        with control_dependencies((_scalar_or_of_rank(weights, numbers),)):
            numbers = math_ops.multiply(numbers, weights)
    value = kept(array_ops.identity(count), metrics)
    return value, kept(count.assign_add(math_ops.reduce_sum(numbers)), updates)


def static_check(scope: str, name: str = "statically_determined_correct_type") -> Any:
    """The operation that TensorFlow leaves where a check was decided while the graph was made."""
    with name_scope(scope):
        return ops.no_op(name=name)


def _scalar_or_of_rank(weights: Tensor, values: Tensor) -> Any:
    """An operation that fails unless weights are a scalar or have as many axes as the values.

    Raises:
        GraphError: they are known not to.
    """
    array_ops.rank(values)
    given, wanted = weights.static_shape.rank, values.static_shape.rank
    if given is None or wanted is None:
        return assert_broadcastable(weights, values)
    if given not in (0, wanted):
        raise GraphError(f"weights '{weights.name}' have {given} dimensions; expected none or {wanted}, as the values")
    with name_scope("assert_rank_in"):
        array_ops.constant(0, name="rank")
        array_ops.shape(weights)
        static_check("assert_type")
        static_check("assert_type")
        return ops.no_op(name="static_checks_determined_all_ok")


def _hits(
    labels: Any, predictions: Any, weights: Any, metrics: Collections, updates: Collections, name: Any, default: str,
    label: bool, prediction: bool,
) -> Metric:  # fmt: skip
    """How often a label is `label` where the prediction is `prediction`."""
    with variable_scope(name, default, (predictions, labels, weights)):
        predictions, labels, weights = together(
            math_ops.cast(predictions, dtypes.bool_), math_ops.cast(labels, dtypes.bool_), weights
        )
        both = ops.logical_and(math_ops.equal(labels, label), math_ops.equal(predictions, prediction))
        return _counted(both, weights, metrics, updates)


def true_positives(
    labels: Any, predictions: Any, weights: Any = None, metrics_collections: Collections = None,
    updates_collections: Collections = None, name: Any = None,
) -> Metric:  # fmt: skip
    return _hits(
        labels, predictions, weights, metrics_collections, updates_collections, name, "true_positives", True, True
    )


def true_negatives(
    labels: Any, predictions: Any, weights: Any = None, metrics_collections: Collections = None,
    updates_collections: Collections = None, name: Any = None,
) -> Metric:  # fmt: skip
    return _hits(
        labels, predictions, weights, metrics_collections, updates_collections, name, "true_negatives", False, False
    )


def false_positives(
    labels: Any, predictions: Any, weights: Any = None, metrics_collections: Collections = None,
    updates_collections: Collections = None, name: Any = None,
) -> Metric:  # fmt: skip
    return _hits(
        labels, predictions, weights, metrics_collections, updates_collections, name, "false_positives", False, True
    )


def false_negatives(
    labels: Any, predictions: Any, weights: Any = None, metrics_collections: Collections = None,
    updates_collections: Collections = None, name: Any = None,
) -> Metric:  # fmt: skip
    return _hits(
        labels, predictions, weights, metrics_collections, updates_collections, name, "false_negatives", True, False
    )


def _share(hits: Any, others: Any, name: str | None) -> Tensor:
    """hits / (hits + others); 0 where there is neither."""
    hit = hits if isinstance(hits, Tensor) else hits.to_tensor()
    positive = ops.greater(hit + others, 0)
    return array_ops.where(positive, math_ops.divide(hit, hit + others), 0, name=name)


def precision(
    labels: Any, predictions: Any, weights: Any = None, metrics_collections: Collections = None,
    updates_collections: Collections = None, name: Any = None,
) -> Metric:  # fmt: skip
    """What share of what is predicted is right."""
    with variable_scope(name, "precision", (predictions, labels, weights)):
        predictions, labels, weights = together(
            math_ops.cast(predictions, dtypes.bool_), math_ops.cast(labels, dtypes.bool_), weights
        )
        hits, more_hits = true_positives(labels, predictions, weights)
        wrong, more_wrong = false_positives(labels, predictions, weights)
        return streamed(_share, (hits, wrong), (more_hits, more_wrong), metrics_collections, updates_collections)


def recall(
    labels: Any, predictions: Any, weights: Any = None, metrics_collections: Collections = None,
    updates_collections: Collections = None, name: Any = None,
) -> Metric:  # fmt: skip
    """What share of what is there is predicted."""
    with variable_scope(name, "recall", (predictions, labels, weights)):
        predictions, labels, weights = together(
            math_ops.cast(predictions, dtypes.bool_), math_ops.cast(labels, dtypes.bool_), weights
        )
        hits, more_hits = true_positives(labels, predictions, weights)
        missed, more_missed = false_negatives(labels, predictions, weights)
        return streamed(_share, (hits, missed), (more_hits, more_missed), metrics_collections, updates_collections)
