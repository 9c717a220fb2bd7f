# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tf.contrib.learn.LogisticRegressor: a program's own model of probabilities, with the metrics of such models."""

from __future__ import annotations

from typing import Any

from toolkit.client import ops
from toolkit.client.math import math_ops
from toolkit.client.metrics import accuracy, auc, mean, precision, recall
from toolkit.client.mode_keys import ModeKeys
from toolkit.graph import dtypes
from toolkit.tensorflow.learn.estimator import LearnEstimator
from toolkit.tensorflow.learn.keys import MetricKey, ProblemType
from toolkit.tensorflow.learn.model_fn_ops import ModelFnOps


def LogisticRegressor(  # noqa: N802 - TensorFlow's name
    model_fn: Any, thresholds: Any = None, model_dir: Any = None, config: Any = None, feature_engineering_fn: Any = None
) -> LearnEstimator:
    """An estimator of probabilities of examples.

    Args:
        model_fn: of features, labels and mode; returns probabilities [batch] or [batch, 1], a loss and a training
            operation.
        thresholds: from which on an example counts as one of the class, for metrics; default: 0.5.
    """

    def with_metrics(features: Any, labels: Any, mode: Any, params: Any) -> ModelFnOps:
        predictions, loss, train_op = model_fn(features, labels, mode)
        metrics = None
        if mode == ModeKeys.EVAL:
            metrics = _metrics(labels, predictions, params.get("thresholds") or [0.5])
        served = {"head": (ProblemType.LOGISTIC_REGRESSION, {"predictions": predictions})}
        return ModelFnOps(mode, predictions, loss, train_op, metrics, served)

    return LearnEstimator(with_metrics, model_dir, config, {"thresholds": thresholds}, feature_engineering_fn)


def _metrics(labels: Any, predictions: Any, thresholds: Any) -> dict[str, Any]:
    if isinstance(labels, dict) and len(labels) == 1:
        labels = next(iter(labels.values()))
    found = {
        MetricKey.PREDICTION_MEAN: mean(predictions), MetricKey.LABEL_MEAN: mean(labels),
        MetricKey.ACCURACY_BASELINE: mean(labels), MetricKey.AUC: auc(labels, predictions),
    }  # fmt: skip
    for each in thresholds:
        name = f"predictions_at_threshold_{each:f}"
        over = math_ops.cast(ops.greater_equal(predictions, each), dtypes.float32, name=name)
        found[MetricKey.ACCURACY_MEAN % each] = accuracy(labels, over)
        found[MetricKey.PRECISION_MEAN % each] = precision(labels, over)
        found[MetricKey.RECALL_MEAN % each] = recall(labels, over)
    return found
