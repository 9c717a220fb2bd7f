"""Metrics of the curve that the thresholds draw: its area, and one rate where another has a given value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.tensor import Tensor
from toolkit.client.math import math_ops
from toolkit.client.metrics.state import Collections, Metric, streamed
from toolkit.client.metrics.thresholds import (
    COUNTS,
    EPSILON,
    FALSE_NEGATIVES,
    FALSE_POSITIVES,
    TRUE_NEGATIVES,
    TRUE_POSITIVES,
    Counted,
    counts_at,
)  # fmt: skip
from toolkit.client.variables.store import variable_scope

#: what is added to counts of the area under a curve
_SMALL = 1e-6


def auc(
    labels: Any, predictions: Any, weights: Any = None, num_thresholds: int = 200,
    metrics_collections: Collections = None, updates_collections: Collections = None, curve: str = "ROC",
    name: Any = None, summation_method: str = "trapezoidal", thresholds: Any = None,
) -> Metric:  # fmt: skip
    """The area under the ROC curve or the precision-recall curve ("PR").

    Args:
        summation_method: "trapezoidal", "minoring" (from below), "majoring" (from above), or, for PR,
            "careful_interpolation" (Davis and Goadrich 2006).

    Raises:
        ValueError: another curve or method.
    """
    with variable_scope(name, "auc", (labels, predictions, weights)):
        if curve not in ("ROC", "PR"):
            raise ValueError(f"curve: expected 'ROC' or 'PR', got {curve!r}")
        if thresholds is None:
            inner = [(i + 1) * 1.0 / (num_thresholds - 1) for i in range(num_thresholds - 2)]
        else:
            inner = sorted(thresholds)
        levels = [0.0 - EPSILON, *inner, 1.0 + EPSILON]
        values, updates = counts_at(labels, predictions, levels, weights)
        last = len(levels) - 1

        def area(counted: Counted, name: str) -> Tensor:
            if curve == "PR" and summation_method == "careful_interpolation":
                return _interpolated(counted, last)
            return _area(counted, last, curve, summation_method, name)

        return streamed(area, (values,), (updates,), metrics_collections, updates_collections)


def _area(counted: Counted, last: int, curve: str, method: str, name: str) -> Tensor:
    """The sum of what stands under the curve between two thresholds."""
    hits, missed = counted[TRUE_POSITIVES], counted[FALSE_NEGATIVES]
    right, wrong = counted[TRUE_NEGATIVES], counted[FALSE_POSITIVES]
    recall = math_ops.divide(hits + _SMALL, hits + missed + _SMALL)
    if curve == "ROC":
        x, y = math_ops.divide(wrong, wrong + right + _SMALL), recall
    else:
        x, y = recall, math_ops.divide(hits + _SMALL, hits + wrong + _SMALL)
    if method not in _HEIGHTS:
        raise ValueError(f"summation_method: expected one of {', '.join(_HEIGHTS)}, got {method!r}")
    if method == "trapezoidal":
        width = x[:last] - x[1:]
        return math_ops.reduce_sum(math_ops.multiply(width, (y[:last] + y[1:]) / 2.0), name=name)
    width = x[:last] - x[1:]
    return math_ops.reduce_sum(math_ops.multiply(width, _HEIGHTS[method](y[:last], y[1:])), name=name)


#: the height of the curve between two points, by how areas are added up
_HEIGHTS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "trapezoidal": lambda left, right: (left + right) / 2.0,
    "minoring": math_ops.minimum,
    "majoring": math_ops.maximum,
}


def _interpolated(counted: Counted, last: int) -> Tensor:
    """The area under the precision-recall curve, where counts, not rates, lie on a line between two thresholds."""
    hits, wrong, missed = counted[TRUE_POSITIVES], counted[FALSE_POSITIVES], counted[FALSE_NEGATIVES]
    gained = hits[:last] - hits[1:]
    said = hits + wrong
    slope = ops.div_no_nan(gained, math_ops.maximum(said[:last] - said[1:], 0), name="prec_slope")
    intercept = hits[1:] - math_ops.multiply(slope, said[1:])
    both = ops.logical_and(ops.greater(said[:last], 0), ops.greater(said[1:], 0))
    ratio = array_ops.where(
        both,
        ops.div_no_nan(said[:last], math_ops.maximum(said[1:], 0), name="recall_relative_ratio"),
        array_ops.ones_like(said[1:]),
    )
    area = slope * (gained + intercept * math_ops.log(ratio))
    whole = math_ops.maximum(hits[1:] + missed[1:], 0)
    return math_ops.reduce_sum(ops.div_no_nan(area, whole, name="pr_auc_increment"), name="interpolate_pr_auc")


def check_in_unit_interval(name: str, value: float) -> None:
    if value < 0 or value > 1:
        raise ValueError(f"{name}: expected a number from 0 to 1, got {value}")


def levels_between(count: int, last: float) -> list[float]:
    return [0.0 - EPSILON, *((i + 1) * 1.0 / (count - 1) for i in range(count - 2)), last]


def sensitivity_at_specificity(
    labels: Any, predictions: Any, specificity: float, weights: Any = None, num_thresholds: int = 200,
    metrics_collections: Collections = None, updates_collections: Collections = None, name: Any = None,
) -> Metric:  # fmt: skip
    """The share of what is there that is found, at the threshold whose specificity is nearest to the given one."""
    check_in_unit_interval("specificity", specificity)

    def compute(counted: Counted, name: str) -> Tensor:
        right, wrong = counted[TRUE_NEGATIVES], counted[FALSE_POSITIVES]
        hits, missed = counted[TRUE_POSITIVES], counted[FALSE_NEGATIVES]
        rates = math_ops.divide(right, right + wrong + EPSILON)
        nearest = math_ops.argmin(math_ops.abs(rates - specificity), 0)
        place = math_ops.cast(nearest, "int32")
        return math_ops.divide(hits[place], hits[place] + missed[place] + EPSILON, name)

    with variable_scope(name, "sensitivity_at_specificity", (predictions, labels, weights)):
        values, updates = counts_at(labels, predictions, levels_between(num_thresholds, 1.0 + EPSILON), weights, COUNTS)
        return streamed(compute, (values,), (updates,), metrics_collections, updates_collections)


def specificity_at_sensitivity(
    labels: Any, predictions: Any, sensitivity: float, weights: Any = None, num_thresholds: int = 200,
    metrics_collections: Collections = None, updates_collections: Collections = None, name: Any = None,
) -> Metric:  # fmt: skip
    """The share of what is not there that is not found, at the last of the thresholds nearest to a sensitivity."""
    check_in_unit_interval("sensitivity", sensitivity)

    def compute(counted: Counted, name: str) -> Tensor:
        right, wrong = counted[TRUE_NEGATIVES], counted[FALSE_POSITIVES]
        hits, missed = counted[TRUE_POSITIVES], counted[FALSE_NEGATIVES]
        rates = math_ops.divide(hits, hits + missed + EPSILON)
        least = math_ops.reduce_min(math_ops.abs(rates - sensitivity))
        at_least = math_ops.equal(math_ops.abs(rates - sensitivity), least)
        seen = math_ops.cumsum(math_ops.cast(at_least, "int64"))
        place = math_ops.cast(math_ops.argmax(seen, 0), "int32")
        return math_ops.divide(right[place], right[place] + wrong[place] + EPSILON, name)

    with variable_scope(name, "specificity_at_sensitivity", (predictions, labels, weights)):
        values, updates = counts_at(labels, predictions, levels_between(num_thresholds, 1.0 - EPSILON), weights, COUNTS)
        return streamed(compute, (values,), (updates,), metrics_collections, updates_collections)
