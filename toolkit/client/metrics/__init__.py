"""Metrics over many batches: variables that add up, a value computed from them, an operation that adds a batch.

Every metric returns `value, update_op`. Its variables are local and in METRIC_VARIABLES; `metrics_collections` are
given the value, `updates_collections` the update. Weights are broadcast to the values; 0 leaves a value out. Names and
order of the nodes are those of tf.metrics.
"""

from __future__ import annotations

from toolkit.client.metrics.classes import mean_iou, mean_per_class_accuracy
from toolkit.client.metrics.counts import (
    false_negatives,
    false_positives,
    precision,
    recall,
    true_negatives,
    true_positives,
)  # fmt: skip
from toolkit.client.metrics.curves import auc, sensitivity_at_specificity, specificity_at_sensitivity
from toolkit.client.metrics.means import (
    accuracy,
    mean,
    mean_absolute_error,
    mean_cosine_distance,
    mean_relative_error,
    mean_squared_error,
    mean_tensor,
    percentage_below,
    root_mean_squared_error,
)  # fmt: skip
from toolkit.client.metrics.ranking import (
    average_precision_at_k,
    precision_at_k,
    precision_at_top_k,
    recall_at_k,
    recall_at_top_k,
    sparse_average_precision_at_k,
    sparse_precision_at_k,
)  # fmt: skip
from toolkit.client.metrics.thresholds import (
    false_negatives_at_thresholds,
    false_positives_at_thresholds,
    precision_at_thresholds,
    recall_at_thresholds,
    true_negatives_at_thresholds,
    true_positives_at_thresholds,
)  # fmt: skip

__all__ = [
    "accuracy", "auc", "average_precision_at_k", "false_negatives", "false_negatives_at_thresholds", "false_positives",
    "false_positives_at_thresholds", "mean", "mean_absolute_error", "mean_cosine_distance", "mean_iou",
    "mean_per_class_accuracy", "mean_relative_error", "mean_squared_error", "mean_tensor", "percentage_below",
    "precision", "precision_at_k", "precision_at_thresholds", "precision_at_top_k", "recall", "recall_at_k",
    "recall_at_thresholds", "recall_at_top_k", "root_mean_squared_error", "sensitivity_at_specificity",
    "sparse_average_precision_at_k", "sparse_precision_at_k", "specificity_at_sensitivity", "true_negatives",
    "true_negatives_at_thresholds", "true_positives", "true_positives_at_thresholds",
]  # fmt: skip
