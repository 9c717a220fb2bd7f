"""Metrics of tf.contrib alone: the best F1, precision and recall where the other is given, Cohen's kappa, curves."""

from __future__ import annotations

from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.grouping import group
from toolkit.client.construction.tensor import Tensor
from toolkit.client.math import math_ops
from toolkit.client.metrics import ranking
from toolkit.client.metrics.confusion import confusion_matrix
from toolkit.client.metrics.curves import check_in_unit_interval, levels_between
from toolkit.client.metrics.state import Collections, Metric, kept, metric_variable, streamed, together
from toolkit.client.metrics.thresholds import (
    EPSILON,
    FALSE_NEGATIVES,
    FALSE_POSITIVES,
    TRUE_NEGATIVES,
    TRUE_POSITIVES,
    Counted,
    counts_at,
)
from toolkit.client.variables.store import variable_scope
from toolkit.graph import dtypes

#: what is added to counts of a curve, so that nothing is divided by 0
_SMALL = 1e-6
_FOUND = (TRUE_POSITIVES, FALSE_POSITIVES, FALSE_NEGATIVES)


def f1_score(
    labels: Any, predictions: Any, weights: Any = None, num_thresholds: int = 200,
    metrics_collections: Collections = None, updates_collections: Collections = None, name: Any = None,
) -> Metric:  # fmt: skip
    """The largest harmonic mean of precision and recall, over thresholds."""

    def best(counted: Counted, name: str) -> Tensor:
        hits, wrong, missed = (counted[each] for each in _FOUND)
        precision = math_ops.divide(hits, EPSILON + hits + wrong, name=f"precision_{name}")
        recall = math_ops.divide(hits, EPSILON + hits + missed, name=f"recall_{name}")
        return math_ops.reduce_max(2.0 * precision * recall / (precision + recall + EPSILON))

    with variable_scope(name, "f1", (labels, predictions, weights)):
        levels = levels_between(num_thresholds, 1.0 + EPSILON)
        values, updates = counts_at(labels, predictions, levels, weights, _FOUND)
        return streamed(best, (values,), (updates,), metrics_collections, updates_collections, ("value", "update"))


def precision_at_recall(
    labels: Any, predictions: Any, target_recall: float, weights: Any = None, num_thresholds: int = 200,
    metrics_collections: Collections = None, updates_collections: Collections = None, name: Any = None,
) -> Metric:  # fmt: skip
    """The precision at the highest threshold whose recall is at least `target_recall`.

    Raises:
        ValueError: that is no share.
    """
    check_in_unit_interval("target_recall", target_recall)

    def compute(counted: Counted, name: str) -> Tensor:
        hits, wrong, missed = (counted[each] for each in _FOUND)
        enough = ops.greater_equal(math_ops.divide(hits, hits + missed + EPSILON), target_recall)
        last = math_ops.reduce_sum(math_ops.cast(enough, dtypes.int64)) - 1
        return math_ops.divide(hits[last] + EPSILON, hits[last] + wrong[last] + EPSILON, name)

    with variable_scope(name, "precision_at_recall", (predictions, labels, weights)):
        values, updates = counts_at(labels, predictions, levels_between(num_thresholds, 1.0 + EPSILON), weights)
        return streamed(compute, (values,), (updates,), metrics_collections, updates_collections)


def recall_at_precision(
    labels: Any, predictions: Any, precision: float, weights: Any = None, num_thresholds: int = 200,
    metrics_collections: Collections = None, updates_collections: Collections = None, name: Any = None,
    strict_mode: bool = False,
) -> Metric:  # fmt: skip
    """The recall at the threshold whose precision is nearest to the given one.

    Args:
        strict_mode: the nearest above it; 0 where there is none.

    Raises:
        ValueError: `precision` is no share.
    """
    check_in_unit_interval("precision", precision)

    def compute(counted: Counted, name: str) -> Tensor:
        hits, wrong, missed = (counted[each] for each in _FOUND)
        found = math_ops.divide(hits, hits + wrong + EPSILON)
        if strict_mode:
            # the largest inverse is of the smallest excess; what is below has a negative one
            place = math_ops.argmax(math_ops.divide(1.0, found - precision + EPSILON), 0, output_type=dtypes.int32)
        else:
            place = math_ops.argmin(math_ops.abs(found - precision), 0, output_type=dtypes.int32)
        recall = math_ops.divide(hits[place], hits[place] + missed[place] + EPSILON, name)
        if not strict_mode:
            return recall
        return array_ops.where_v2(ops.greater_equal(found[place], precision), recall, array_ops.zeros_like(recall))

    with variable_scope(name, "recall_at_precision", (predictions, labels, weights)):
        values, updates = counts_at(labels, predictions, levels_between(num_thresholds, 1.0 + EPSILON), weights)
        return streamed(compute, (values,), (updates,), metrics_collections, updates_collections)


def cohen_kappa(
    labels: Any, predictions_idx: Any, num_classes: int, weights: Any = None,
    metrics_collections: Collections = None, updates_collections: Collections = None, name: Any = None,
) -> Metric:  # fmt: skip
    """How far labels and predicted classes agree beyond chance (Cohen, 1960): at most 1.

    Raises:
        ValueError: fewer than two classes.
    """
    if num_classes < 2:
        raise ValueError(f"num_classes: expected at least 2, got {num_classes}")
    with variable_scope(name, "cohen_kappa", (labels, predictions_idx, weights)):
        labels = convert_to_tensor(labels)
        if labels.static_shape.rank == 2:
            labels = array_ops.squeeze(labels, [-1])
        predicted, labels, weights = together(predictions_idx, labels, weights)
        kind = dtypes.int64 if weights is None or weights.dtype.base.is_integer else dtypes.float32
        agreed, of_rows, of_columns = (
            metric_variable([num_classes], kind, name=label) for label in ("po", "pe_row", "pe_col")
        )
        table = confusion_matrix(labels, predicted, num_classes, kind, name="counts_in_table", weights=weights)
        updates = [
            agreed.assign_add(ops.diag_part(table)),
            of_rows.assign_add(math_ops.reduce_sum(table, 0)),
            of_columns.assign_add(math_ops.reduce_sum(table, 1)),
        ]

        def kappa(agreed: Any, of_rows: Any, of_columns: Any, name: str) -> Tensor:
            total = math_ops.cast(math_ops.reduce_sum(of_rows), dtypes.float64)
            by_chance = math_ops.reduce_sum(ops.div_no_nan(math_ops.cast(of_rows * of_columns, dtypes.float64), total))
            observed = math_ops.cast(math_ops.reduce_sum(agreed), dtypes.float64)
            return ops.div_no_nan(observed - by_chance, total - by_chance, name=name)

        states = (agreed, of_rows, of_columns)
        return streamed(kappa, states, updates, metrics_collections, updates_collections)


def streaming_curve_points(
    labels: Any = None, predictions: Any = None, weights: Any = None, num_thresholds: int = 200,
    metrics_collections: Collections = None, updates_collections: Collections = None, curve: str = "ROC",
    name: Any = None,
) -> Metric:  # fmt: skip
    """Points [num_thresholds, 2] of the ROC curve, or of recall and precision ("PR").

    Raises:
        ValueError: another curve.
    """
    with variable_scope(name, "curve_points", (labels, predictions, weights)):
        if curve not in ("ROC", "PR"):
            raise ValueError(f"curve: expected 'ROC' or 'PR', got {curve!r}")
        values, updates = counts_at(labels, predictions, levels_between(num_thresholds, 1.0 + EPSILON), weights)
        hits, missed = values[TRUE_POSITIVES], values[FALSE_NEGATIVES]
        right, wrong = values[TRUE_NEGATIVES], values[FALSE_POSITIVES]
        recall = math_ops.divide(hits + _SMALL, hits + missed + _SMALL)
        if curve == "ROC":
            pair = [math_ops.divide(wrong, wrong + right + _SMALL), recall]
        else:
            pair = [recall, math_ops.divide(hits + _SMALL, hits + wrong + _SMALL)]
        update = group(list(updates.values()))
        return kept(array_ops.stack(pair, 1), metrics_collections), kept(update, updates_collections)


def streaming_sparse_average_precision_at_top_k(
    top_k_predictions: Any, labels: Any, weights: Any = None, metrics_collections: Collections = None,
    updates_collections: Collections = None, name: Any = None,
) -> Metric:  # fmt: skip
    """`average_precision_at_k` of classes that are the largest k already, [..., k], the largest first."""
    return ranking.average_precision_at_top_k(
        top_k_predictions, labels, weights, metrics_collections, updates_collections, name
    )
