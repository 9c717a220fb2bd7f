# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tf.contrib.estimator's functions that make heads; their arguments stand in another order."""

from __future__ import annotations

from typing import Any

from toolkit.tensorflow.estimators import heads
from toolkit.tensorflow.estimators.multi_head import MultiHead

_MEAN = "weighted_sum_over_batch_size"


def binary_classification_head(
    weight_column: Any = None, thresholds: Any = None, label_vocabulary: Any = None, loss_reduction: str = _MEAN,
    loss_fn: Any = None, name: Any = None,
) -> heads.Head:  # fmt: skip
    return heads.BinaryClassHead(weight_column, thresholds, label_vocabulary, loss_reduction, loss_fn, name)


def multi_class_head(
    n_classes: Any, weight_column: Any = None, label_vocabulary: Any = None, loss_reduction: str = _MEAN,
    loss_fn: Any = None, name: Any = None,
) -> heads.Head:  # fmt: skip
    return heads.MultiClassHead(n_classes, weight_column, label_vocabulary, loss_reduction, loss_fn, name)


def multi_label_head(
    n_classes: Any, weight_column: Any = None, thresholds: Any = None, label_vocabulary: Any = None,
    loss_reduction: str = _MEAN, loss_fn: Any = None, classes_for_class_based_metrics: Any = None, name: Any = None,
) -> heads.Head:  # fmt: skip
    return heads.MultiLabelHead(
        n_classes, weight_column, thresholds, label_vocabulary, loss_reduction, loss_fn,
        classes_for_class_based_metrics, name,
    )  # fmt: skip


def regression_head(
    weight_column: Any = None, label_dimension: int = 1, loss_reduction: str = _MEAN, loss_fn: Any = None,
    inverse_link_fn: Any = None, name: Any = None,
) -> heads.Head:  # fmt: skip
    return heads.RegressionHead(label_dimension, weight_column, loss_reduction, loss_fn, inverse_link_fn, name)


def poisson_regression_head(
    weight_column: Any = None, label_dimension: int = 1, loss_reduction: str = _MEAN, compute_full_loss: bool = True,
    name: Any = None,
) -> heads.Head:  # fmt: skip
    return heads.PoissonRegressionHead(label_dimension, weight_column, loss_reduction, compute_full_loss, name)


def logistic_regression_head(weight_column: Any = None, loss_reduction: str = _MEAN, name: Any = None) -> heads.Head:
    return heads.LogisticRegressionHead(weight_column, loss_reduction, name)


def multi_head(heads: Any, head_weights: Any = None) -> MultiHead:
    return MultiHead(heads, head_weights)
