"""Metrics as tf.contrib.metrics had them: predictions before labels, and called "streaming"."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.scopes import control_dependencies, name_scope
from toolkit.client.construction.tensor import Tensor
from toolkit.client.losses.weights import broadcast_weights, fitted_weights
from toolkit.client.math import math_ops
from toolkit.client.metrics import (
    classes,
    counts,
    curves,
    means,
    ranking,
    thresholds,
)
from toolkit.client.metrics.state import Collections, Metric, kept, metric_variable, streamed, together
from toolkit.client.nn import nn_ops
from toolkit.client.variables.store import variable_scope
from toolkit.graph import dtypes

_PARAMETERS = tuple[str, ...]


def _turned(function: Callable[..., Any], without: _PARAMETERS = (), predictions: str = "predictions") -> Any:
    """A metric that takes its predictions first.

    Args:
        without: arguments that it does not have.
        predictions: what they are called.
    """
    labels, given, *rest = inspect.signature(function).parameters.values()
    empty = inspect.Parameter.empty
    first = [each.replace(default=empty, annotation=Any) for each in (given.replace(name=predictions), labels)]
    others = [each.replace(annotation=Any) for each in rest if each.name not in without]
    signature = inspect.Signature([*first, *others])

    def metric(*args: Any, **kwargs: Any) -> Any:
        found = dict(signature.bind(*args, **kwargs).arguments)
        found[given.name] = found.pop(predictions)
        return function(**found)

    metric.__name__ = metric.__qualname__ = f"streaming_{function.__name__}"
    metric.__doc__ = f"`{function.__name__}`, with the predictions before the labels."
    metric.__dict__["__signature__"] = signature
    return metric


_NO_COLLECTIONS = ("metrics_collections", "updates_collections", "name")

streaming_true_positives = _turned(counts.true_positives)
streaming_true_negatives = _turned(counts.true_negatives)
streaming_false_positives = _turned(counts.false_positives)
streaming_false_negatives = _turned(counts.false_negatives)
streaming_precision = _turned(counts.precision)
streaming_recall = _turned(counts.recall)
streaming_mean = means.mean
streaming_mean_tensor = means.mean_tensor
streaming_percentage_less = means.percentage_below
streaming_accuracy = _turned(means.accuracy)
streaming_mean_absolute_error = _turned(means.mean_absolute_error)
streaming_mean_relative_error = _turned(means.mean_relative_error)
streaming_mean_squared_error = _turned(means.mean_squared_error)
streaming_root_mean_squared_error = _turned(means.root_mean_squared_error)
streaming_mean_cosine_distance = _turned(means.mean_cosine_distance)
streaming_mean_iou = _turned(classes.mean_iou)
streaming_auc = _turned(curves.auc, ("summation_method", "thresholds"))
streaming_specificity_at_sensitivity = _turned(curves.specificity_at_sensitivity)
streaming_sensitivity_at_specificity = _turned(curves.sensitivity_at_specificity)
streaming_precision_at_thresholds = _turned(thresholds.precision_at_thresholds)
streaming_recall_at_thresholds = _turned(thresholds.recall_at_thresholds)
streaming_true_positives_at_thresholds = _turned(thresholds.true_positives_at_thresholds, _NO_COLLECTIONS)
streaming_true_negatives_at_thresholds = _turned(thresholds.true_negatives_at_thresholds, _NO_COLLECTIONS)
streaming_false_positives_at_thresholds = _turned(thresholds.false_positives_at_thresholds, _NO_COLLECTIONS)
streaming_false_negatives_at_thresholds = _turned(thresholds.false_negatives_at_thresholds, _NO_COLLECTIONS)
streaming_sparse_recall_at_k = _turned(ranking.recall_at_k)
streaming_sparse_precision_at_k = _turned(ranking.precision_at_k)
streaming_sparse_average_precision_at_k = _turned(ranking.average_precision_at_k)
streaming_sparse_precision_at_top_k = _turned(ranking.precision_at_top_k, ("k",), "top_k_predictions")


def sparse_recall_at_top_k(
    labels: Any, top_k_predictions: Any, class_id: Any = None, weights: Any = None,
    metrics_collections: Collections = None, updates_collections: Collections = None, name: Any = None,
) -> Metric:  # fmt: skip
    """What share of the labels is among the predicted classes."""
    return ranking.recall_at_top_k(
        labels, top_k_predictions, None, class_id, weights, metrics_collections, updates_collections, name
    )


def streaming_recall_at_k(
    predictions: Any, labels: Any, k: Any, weights: Any = None, metrics_collections: Collections = None,
    updates_collections: Collections = None, name: Any = None,
) -> Metric:  # fmt: skip
    """How often the label is among the `k` largest predictions."""
    hits = math_ops.cast(nn_ops.in_top_k(predictions, labels, k), dtypes.float32, name="ToFloat")
    return means.mean(hits, weights, metrics_collections, updates_collections, name or f"recall_at_{k}")


def _share_or_zero(hits: Any, others: Any, name: str | None) -> Tensor:
    hit = hits if isinstance(hits, Tensor) else hits.to_tensor()
    return array_ops.where(ops.greater(hit + others, 0), ops.real_div(hit, hit + others), 0, name=name)


def _rate(kind: str, name: Any, predictions: Any, labels: Any, weights: Any, wrong: Any, right: Any, collections: Any):
    with variable_scope(name, kind, (predictions, labels, weights)):
        predictions, labels, weights = together(
            math_ops.cast(predictions, dtypes.bool_), math_ops.cast(labels, dtypes.bool_), weights
        )
        first, more_first = wrong(labels, predictions, weights)
        second, more_second = right(labels, predictions, weights)
        return streamed(_share_or_zero, (first, second), (more_first, more_second), *collections)


def streaming_false_positive_rate(
    predictions: Any, labels: Any, weights: Any = None, metrics_collections: Collections = None,
    updates_collections: Collections = None, name: Any = None,
) -> Metric:  # fmt: skip
    """What share of what is false is predicted to be true."""
    return _rate(
        "false_positive_rate", name, predictions, labels, weights, counts.false_positives, counts.true_negatives,
        (metrics_collections, updates_collections),
    )  # fmt: skip


def streaming_false_negative_rate(
    predictions: Any, labels: Any, weights: Any = None, metrics_collections: Collections = None,
    updates_collections: Collections = None, name: Any = None,
) -> Metric:  # fmt: skip
    """What share of what is true is predicted to be false."""
    return _rate(
        "false_negative_rate", name, predictions, labels, weights, counts.false_negatives, counts.true_positives,
        (metrics_collections, updates_collections),
    )  # fmt: skip


def _rates_at(
    kind: str,
    name: Any,
    predictions: Any,
    labels: Any,
    levels: Any,
    weights: Any,
    used: tuple[Any, Any],
    collections: Any,
) -> Metric:
    def share(wrong: Any, right: Any, label: str) -> Tensor:
        return math_ops.divide(wrong, thresholds.EPSILON + wrong + right, name=f"{kind}_{label}")

    with variable_scope(name, f"{kind}_at_thresholds", (predictions, labels, weights)):
        values, updates = thresholds.counts_at(labels, predictions, levels, weights, used)
        return streamed(share, [values[each] for each in used], [updates[each] for each in used], *collections)


def streaming_false_positive_rate_at_thresholds(
    predictions: Any, labels: Any, thresholds: Any, weights: Any = None, metrics_collections: Collections = None,
    updates_collections: Collections = None, name: Any = None,
) -> Metric:  # fmt: skip
    """`streaming_false_positive_rate` for each threshold above which a prediction counts as true."""
    return _rates_at(
        "fpr", name or "false_positive_rate_at_thresholds", predictions, labels, thresholds, weights, _FALSE_TRUE,
        (metrics_collections, updates_collections),
    )  # fmt: skip


def streaming_false_negative_rate_at_thresholds(
    predictions: Any, labels: Any, thresholds: Any, weights: Any = None, metrics_collections: Collections = None,
    updates_collections: Collections = None, name: Any = None,
) -> Metric:  # fmt: skip
    """`streaming_false_negative_rate` for each threshold above which a prediction counts as true."""
    return _rates_at(
        "fnr", name or "false_negative_rate_at_thresholds", predictions, labels, thresholds, weights, _MISSED_TRUE,
        (metrics_collections, updates_collections),
    )  # fmt: skip


#: wrong and right among what is false, and among what is true
_FALSE_TRUE = (thresholds.FALSE_POSITIVES, thresholds.TRUE_NEGATIVES)
_MISSED_TRUE = (thresholds.FALSE_NEGATIVES, thresholds.TRUE_POSITIVES)


def count(
    values: Any, weights: Any = None, metrics_collections: Collections = None, updates_collections: Collections = None,
    name: Any = None,
) -> Metric:  # fmt: skip
    """How many values there were, or the sum of their weights."""
    with variable_scope(name, "count", (values, weights)):
        total = metric_variable([], name="count")
        if weights is None:
            found = math_ops.cast(array_ops.size(values), dtypes.float32)
        else:
            values = math_ops.cast(values, dtypes.float32)
            weights = fitted_weights(weights, values)
            found = math_ops.reduce_sum(broadcast_weights(math_ops.cast(weights, dtypes.float32), values))
        with control_dependencies([values]):
            update = total.assign_add(found)
        return kept(array_ops.identity(total), metrics_collections), kept(update, updates_collections)


def streaming_covariance(
    predictions: Any, labels: Any, weights: Any = None, metrics_collections: Collections = None,
    updates_collections: Collections = None, name: Any = None,
) -> Metric:  # fmt: skip
    """The unbiased covariance of predictions and labels, updated batch by batch (Chan, Golub and LeVeque, 1979)."""
    with variable_scope(name, "covariance", (predictions, labels, weights)):
        predictions, labels, weights = together(predictions, labels, weights)
        seen = metric_variable([], name="count")
        mean_p, mean_l = metric_variable([], name="mean_prediction"), metric_variable([], name="mean_label")
        moment = metric_variable([], name="comoment")
        if weights is None:
            batch = math_ops.cast(array_ops.size(labels), dtypes.float32)
            heavy: tuple[Any, Any] = (predictions, labels)
        else:
            weights = broadcast_weights(weights, labels)
            batch = math_ops.reduce_sum(weights)
            heavy = (math_ops.multiply(predictions, weights), math_ops.multiply(labels, weights))
        more = seen.assign_add(batch)
        before = more - batch

        def moved(kept_mean: Any, values: Any) -> tuple[Tensor, Tensor]:
            """The batch's mean, and the kept one before it."""
            batch_mean = ops.div_no_nan(math_ops.reduce_sum(values), batch)
            step = ops.div_no_nan((batch_mean - kept_mean) * batch, more)
            return batch_mean, kept_mean.assign_add(step) - step

        (batch_p, before_p), (batch_l, before_l) = moved(mean_p, heavy[0]), moved(mean_l, heavy[1])
        residuals = (predictions - batch_p) * (labels - batch_l)
        within = math_ops.reduce_sum(residuals if weights is None else residuals * weights)
        between = (before_p - batch_p) * (before_l - batch_l) * (before * batch / more)
        updated = moment.assign_add(within + between)

        def shared(total: Any, number: Any, label: str) -> Tensor:
            free = number - 1
            nothing = array_ops.constant(float("nan"), dtypes.float32)
            return array_ops.where(ops.less_equal(free, 0), nothing, math_ops.divide(total, free), name=label)

        value = kept(shared(moment, seen, "covariance"), metrics_collections)
        return value, kept(shared(updated, more, "update_op"), updates_collections)


def streaming_pearson_correlation(
    predictions: Any, labels: Any, weights: Any = None, metrics_collections: Collections = None,
    updates_collections: Collections = None, name: Any = None,
) -> Metric:  # fmt: skip
    """The correlation of predictions and labels, updated batch by batch."""
    with variable_scope(name, "pearson_r", (predictions, labels, weights)):
        predictions, labels, weights = together(predictions, labels, weights)
        if weights is not None:
            weights = broadcast_weights(weights, labels)
        pairs = (("covariance", predictions, labels), ("variance_predictions", predictions, predictions),
                 ("variance_labels", labels, labels))  # fmt: skip
        found = [streaming_covariance(one, other, weights, name=label) for label, one, other in pairs]

        def correlation(parts: Sequence[Any], label: str) -> Tensor:
            both, one, other = parts
            return math_ops.divide(both, math_ops.multiply(math_ops.sqrt(one), math_ops.sqrt(other)), name=label)

        value = kept(correlation([each for each, _ in found], "pearson_r"), metrics_collections)
        return value, kept(correlation([each for _, each in found], "update_op"), updates_collections)


def accuracy(predictions: Any, labels: Any, weights: Any = None, name: Any = None) -> Tensor:
    """The share of predictions that are their labels, of this batch alone.

    Raises:
        ValueError: labels are floating point numbers, or of another type than the predictions.
    """
    if labels.dtype.base.is_floating:
        raise ValueError(f"labels: expected whole numbers, flags or texts, got {labels.dtype.base}")
    if labels.dtype.base is not predictions.dtype.base:
        raise ValueError(f"predictions have type {predictions.dtype.base}, labels {labels.dtype.base}; expected one")
    with name_scope(name, "accuracy", [predictions, labels]):
        hits = math_ops.cast(math_ops.equal(predictions, labels), dtypes.float32)
        if weights is None:
            return math_ops.reduce_mean(hits)
        hits = math_ops.multiply(hits, weights)
        total = math_ops.multiply(weights, array_ops.ones_like(hits))
        return ops.real_div(math_ops.reduce_sum(hits), math_ops.reduce_sum(total))


def aggregate_metrics(*value_update_tuples: Any) -> tuple[list[Any], list[Any]]:
    """The values of several metrics, and their updates.

    Raises:
        ValueError: there are none.
    """
    if not value_update_tuples:
        raise ValueError("aggregate_metrics needs at least one pair of a value and its update")
    return [value for value, _ in value_update_tuples], [update for _, update in value_update_tuples]


def aggregate_metric_map(names_to_tuples: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The values of several metrics by their names, and their updates."""
    values = {name: value for name, (value, _) in names_to_tuples.items()}
    return values, {name: update for name, (_, update) in names_to_tuples.items()}
