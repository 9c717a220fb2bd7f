"""Metrics of scores between 0 and 1, at thresholds from which on a score predicts yes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.checks.assertions import assert_greater_equal, assert_less_equal
from toolkit.client.construction.convert import constant
from toolkit.client.construction.scopes import control_dependencies
from toolkit.client.construction.tensor import Tensor
from toolkit.client.losses.weights import broadcast_weights
from toolkit.client.math import math_ops
from toolkit.client.metrics.state import Collections, Metric, as_float, kept, metric_variable, streamed, together
from toolkit.client.variables.store import variable_scope
from toolkit.graph import dtypes

#: what keeps shares of nothing from dividing by zero
EPSILON = 1e-7


@dataclass(frozen=True)
class Count:
    """One cell of the table of labels and predictions.

    Attributes:
        label, prediction: which of them are counted.
        name: of the variable.
    """

    label: bool
    prediction: bool
    name: str


TRUE_POSITIVES = Count(True, True, "true_positives")
FALSE_NEGATIVES = Count(True, False, "false_negatives")
TRUE_NEGATIVES = Count(False, False, "true_negatives")
FALSE_POSITIVES = Count(False, True, "false_positives")
#: in the order in which their nodes are made
COUNTS = (TRUE_POSITIVES, FALSE_NEGATIVES, TRUE_NEGATIVES, FALSE_POSITIVES)

Counted = dict[Count, Any]


_RANGE = "predictions must be in [0, 1]"


def counts_at(
    labels: Any, predictions: Any, thresholds: Sequence[float], weights: Any, wanted: Sequence[Count] = COUNTS
) -> tuple[Counted, Counted]:
    """The counts at each threshold, as variables and as updates of them.

    Raises:
        GraphError: the shapes do not fit.
    """
    from toolkit.client.construction.convert import convert_to_tensor

    predictions = convert_to_tensor(predictions)
    at_least = assert_greater_equal(predictions, math_ops.cast(0.0, predictions.dtype), message=_RANGE)
    at_most = assert_less_equal(predictions, math_ops.cast(1.0, predictions.dtype), message=_RANGE)
    checks = [at_least, at_most]
    with control_dependencies(checks):
        predictions, labels, weights = together(as_float(predictions), math_ops.cast(labels, dtypes.bool_), weights)
    number = len(thresholds)
    column = array_ops.reshape(predictions, [-1, 1])
    row = array_ops.reshape(math_ops.cast(labels, dtypes.bool_), [1, -1])
    examples: Any = column.static_shape[0]
    if examples is None:
        examples = array_ops.shape(column)[0]
    levels = array_ops.expand_dims(constant(list(thresholds)), [1])
    levels = array_ops.tile(levels, array_ops.stack([1, examples]))
    says = {True: ops.greater(array_ops.tile(array_ops.transpose(column), [number, 1]), levels)}
    if any(not count.prediction for count in wanted):
        says[False] = ops.logical_not(says[True])
    holds = {True: array_ops.tile(row, [number, 1])}
    if any(not count.label for count in wanted):
        holds[False] = ops.logical_not(holds[True])
    if weights is not None:
        weights = broadcast_weights(as_float(weights), predictions)
        weights = array_ops.tile(array_ops.reshape(weights, [1, -1]), [number, 1])
    values: Counted = {}
    updates: Counted = {}
    for count in COUNTS:
        if count in wanted:
            state = metric_variable([number], name=count.name)
            found = as_float(ops.logical_and(holds[count.label], says[count.prediction]))
            if weights is not None:
                found = found * weights
            updates[count] = state.assign_add(math_ops.reduce_sum(found, 1))
            values[count] = state
    return values, updates


def _one(
    count: Count, labels: Any, predictions: Any, thresholds: Any, weights: Any, metrics: Collections,
    updates: Collections, name: Any,
) -> Metric:  # fmt: skip
    with variable_scope(name, count.name, (predictions, labels, weights)):
        values, more = counts_at(labels, predictions, thresholds, weights, [count])
        value = kept(array_ops.identity(values[count]), metrics)
        return value, kept(more[count], updates)


def true_positives_at_thresholds(
    labels: Any, predictions: Any, thresholds: Any, weights: Any = None, metrics_collections: Collections = None,
    updates_collections: Collections = None, name: Any = None,
) -> Metric:  # fmt: skip
    return _one(
        TRUE_POSITIVES, labels, predictions, thresholds, weights, metrics_collections, updates_collections, name
    )


def true_negatives_at_thresholds(
    labels: Any, predictions: Any, thresholds: Any, weights: Any = None, metrics_collections: Collections = None,
    updates_collections: Collections = None, name: Any = None,
) -> Metric:  # fmt: skip
    return _one(
        TRUE_NEGATIVES, labels, predictions, thresholds, weights, metrics_collections, updates_collections, name
    )


def false_positives_at_thresholds(
    labels: Any, predictions: Any, thresholds: Any, weights: Any = None, metrics_collections: Collections = None,
    updates_collections: Collections = None, name: Any = None,
) -> Metric:  # fmt: skip
    return _one(
        FALSE_POSITIVES, labels, predictions, thresholds, weights, metrics_collections, updates_collections, name
    )


def false_negatives_at_thresholds(
    labels: Any, predictions: Any, thresholds: Any, weights: Any = None, metrics_collections: Collections = None,
    updates_collections: Collections = None, name: Any = None,
) -> Metric:  # fmt: skip
    return _one(
        FALSE_NEGATIVES, labels, predictions, thresholds, weights, metrics_collections, updates_collections, name
    )


def _share(prefix: str) -> Callable[[Any, Any, str], Tensor]:
    """hits / (hits + others), named after what it is and where it is used."""

    def compute(hits: Any, others: Any, name: str) -> Tensor:
        return math_ops.divide(hits, EPSILON + hits + others, name=f"{prefix}_{name}")

    return compute


def precision_at_thresholds(
    labels: Any, predictions: Any, thresholds: Any, weights: Any = None, metrics_collections: Collections = None,
    updates_collections: Collections = None, name: Any = None,
) -> Metric:  # fmt: skip
    with variable_scope(name, "precision_at_thresholds", (predictions, labels, weights)):
        used = (TRUE_POSITIVES, FALSE_POSITIVES)
        values, updates = counts_at(labels, predictions, thresholds, weights, used)
        return streamed(
            _share("precision"), [values[c] for c in used], [updates[c] for c in used], metrics_collections,
            updates_collections,
        )  # fmt: skip


def recall_at_thresholds(
    labels: Any, predictions: Any, thresholds: Any, weights: Any = None, metrics_collections: Collections = None,
    updates_collections: Collections = None, name: Any = None,
) -> Metric:  # fmt: skip
    with variable_scope(name, "recall_at_thresholds", (predictions, labels, weights)):
        used = (TRUE_POSITIVES, FALSE_NEGATIVES)
        values, updates = counts_at(labels, predictions, thresholds, weights, used)
        return streamed(
            _share("recall"), [values[c] for c in used], [updates[c] for c in used], metrics_collections,
            updates_collections,
        )  # fmt: skip
