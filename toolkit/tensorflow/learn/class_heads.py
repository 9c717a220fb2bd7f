# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""The heads of tf.contrib.learn that answer with classes."""

from __future__ import annotations

from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor
from toolkit.client.lookup.vocabularies import index_table_from_tensor, index_to_string_table_from_tensor
from toolkit.client.math import math_ops
from toolkit.client.metrics import accuracy
from toolkit.client.nn import nn_ops
from toolkit.client.sparse import sparse_ops
from toolkit.client.sparse.tensor import SparseTensor
from toolkit.graph import dtypes
from toolkit.tensorflow.learn import head_losses, head_metrics
from toolkit.tensorflow.learn.heads import SingleHead
from toolkit.tensorflow.learn.keys import MetricKey, PredictionKey, ProblemType

#: metrics of one class that are the mean of a prediction
_PER_CLASS = (
    (MetricKey.CLASS_PROBABILITY_MEAN, PredictionKey.PROBABILITIES),
    (MetricKey.CLASS_LOGITS_MEAN, PredictionKey.LOGITS),
)


class _ClassHead(SingleHead):
    """Classes with probabilities."""

    def _class_names(self, scores: Any) -> Tensor:
        count = array_ops.shape(scores)[0]
        numbers = math_ops.range(array_ops.shape(scores)[1])
        each = array_ops.tile(array_ops.expand_dims(numbers, 0), [count, 1])
        return ops.as_string(each, name="classes_tensor")

    def _served(self, predictions: dict[str, Any]) -> dict[str, Any]:
        scores = predictions[PredictionKey.PROBABILITIES]
        with name_scope(None, "_classification_output_alternatives", (scores,)):
            return {PredictionKey.PROBABILITIES: scores, PredictionKey.CLASSES: self._class_names(scores)}


def _both_logits(logits: Any) -> Tensor:
    return array_ops.concat((array_ops.zeros_like(logits), logits), 1)


class BinaryLogisticHead(_ClassHead):
    """Two classes, from one logit."""

    _scope, _problem = "binary_logistic_head", ProblemType.LOGISTIC_REGRESSION

    def __init__(
        self, label_name: Any, weight_key: Any, is_centred: Any, head_name: Any, thresholds: Any, loss_fn: Any
    ):
        super().__init__(1, label_name, weight_key, is_centred, head_name)
        self._thresholds = thresholds or (0.5,)
        self._loss = loss_fn or head_losses.logistic

    def _predictions(self, logits: Any) -> dict[str, Any]:
        both = _both_logits(logits)
        return {
            PredictionKey.LOGITS: logits,
            PredictionKey.LOGISTIC: math_ops.sigmoid(logits, name=PredictionKey.LOGISTIC),
            PredictionKey.PROBABILITIES: nn_ops.softmax(both, name=PredictionKey.PROBABILITIES),
            PredictionKey.CLASSES: math_ops.argmax(both, 1, name=PredictionKey.CLASSES),
        }

    def _metrics(self, predictions: dict[str, Any], labels: Any, weights: Any) -> dict[str, Any]:
        likely = predictions[PredictionKey.LOGISTIC]
        found = {
            MetricKey.ACCURACY: accuracy(labels, predictions[PredictionKey.CLASSES], weights),
            MetricKey.PREDICTION_MEAN: head_metrics.mean_of(likely, weights),
            MetricKey.LABEL_MEAN: head_metrics.mean_of(labels, weights),
            MetricKey.ACCURACY_BASELINE: head_metrics.mean_of(labels, weights),
            MetricKey.AUC: head_metrics.area(likely, labels, weights),
            MetricKey.AUC_PR: head_metrics.area(likely, labels, weights, curve="PR"),
        }
        for each in self._thresholds:
            found[MetricKey.ACCURACY_MEAN % each] = head_metrics.accuracy_at(each, likely, labels, weights)
            found[MetricKey.PRECISION_MEAN % each] = head_metrics.precision_at(each, likely, labels, weights)
            found[MetricKey.RECALL_MEAN % each] = head_metrics.recall_at(each, likely, labels, weights)
        return found


class BinarySvmHead(SingleHead):
    """Two classes on either side of a margin, from one logit."""

    _scope, _problem = "binary_svm_head", ProblemType.LOGISTIC_REGRESSION

    def __init__(self, label_name: Any, weight_key: Any, is_centred: Any, head_name: Any):
        super().__init__(1, label_name, weight_key, is_centred, head_name)
        self._loss = head_losses.hinge

    def _predictions(self, logits: Any) -> dict[str, Any]:
        classes = math_ops.argmax(_both_logits(logits), 1, name=PredictionKey.CLASSES)
        return {PredictionKey.LOGITS: logits, PredictionKey.CLASSES: classes}

    def _metrics(self, predictions: dict[str, Any], labels: Any, weights: Any) -> dict[str, Any]:
        return {MetricKey.ACCURACY: accuracy(labels, predictions[PredictionKey.CLASSES], weights)}


def _checked_classes(numbers: Any, count: int) -> tuple[int, ...]:
    numbers = tuple(numbers or ())
    strange = [number for number in numbers if not 0 <= number < count]
    if strange:
        raise ValueError(f"metric_class_ids has {strange[0]}; the classes are 0 to {count - 1}")
    return numbers


class LearnMultiClassHead(_ClassHead):
    """One of more than two classes, from a logit for each.

    Raises:
        ValueError: there are no such classes, or not as many words.
    """

    _scope, _problem = "multi_class_head", ProblemType.CLASSIFICATION

    def __init__(
        self, n_classes: int, label_name: Any, weight_key: Any, is_centred: Any, head_name: Any, numbers: Any,
        loss_fn: Any, words: Any,
    ):  # fmt: skip
        super().__init__(n_classes, label_name, weight_key, is_centred, head_name)
        self._numbers = _checked_classes(numbers, n_classes)
        if words and len(words) != n_classes:
            raise ValueError(f"label_keys has {len(words)} words for {n_classes} classes")
        self._words = list(words or ())
        self._loss_of_ids = loss_fn or head_losses.softmax

    def _processed(self, labels: Any) -> tuple[Any, Any]:
        """Labels as they are given, and as numbers."""
        labels = super()._processed(labels)
        if not self._words:
            return labels, labels
        return labels, index_table_from_tensor(self._words, name="label_id_lookup").lookup(labels)

    def _loss(self, labels: Any, logits: Any, weights: Any) -> tuple[Any, Any]:
        return self._loss_of_ids(labels[1], logits, weights)

    def _predictions(self, logits: Any) -> dict[str, Any]:
        classes = math_ops.argmax(logits, 1, name=PredictionKey.CLASSES)
        if self._words:
            classes = index_to_string_table_from_tensor(self._words, name="class_string_lookup").lookup(classes)
        return {
            PredictionKey.LOGITS: logits,
            PredictionKey.PROBABILITIES: nn_ops.softmax(logits, name=PredictionKey.PROBABILITIES),
            PredictionKey.CLASSES: classes,
        }

    def _class_names(self, scores: Any) -> Tensor:
        if not self._words:
            return super()._class_names(scores)
        words = array_ops.expand_dims(self._words, 0)
        return array_ops.tile(words, [array_ops.shape(scores)[0], 1], name="classes_tensor")

    def _metrics(self, predictions: dict[str, Any], labels: Any, weights: Any) -> dict[str, Any]:
        given, ids = labels
        classes = predictions[PredictionKey.CLASSES]
        found = {MetricKey.ACCURACY: accuracy(given, classes, weights)}
        for number in () if self._words else self._numbers:
            found[MetricKey.CLASS_PREDICTION_MEAN % number] = head_metrics.share_of(number, classes, weights)
            found[MetricKey.CLASS_LABEL_MEAN % number] = head_metrics.share_of(number, ids, weights)
            for key, of in _PER_CLASS:
                found[key % number] = head_metrics.mean_of(predictions[of], weights, number)
        return found


class LearnMultiLabelHead(_ClassHead):
    """Any of several classes, from a logit for each.

    Raises:
        ValueError: there are no such classes.
    """

    _scope, _problem = "multi_label_head", ProblemType.CLASSIFICATION

    def __init__(
        self, n_classes: int, label_name: Any, weight_key: Any, is_centred: Any, head_name: Any, numbers: Any,
        loss_fn: Any,
    ):  # fmt: skip
        super().__init__(n_classes, label_name, weight_key, is_centred, head_name)
        self._numbers = _checked_classes(numbers, n_classes)
        self._loss = loss_fn or head_losses.sigmoid

    def _processed(self, labels: Any) -> Any:
        labels = self._chosen(labels)
        if isinstance(labels, SparseTensor):
            return math_ops.cast(sparse_ops.to_indicator(labels, self._dimension), dtypes.int64)
        return labels

    def _predictions(self, logits: Any) -> dict[str, Any]:
        return {
            PredictionKey.LOGITS: logits,
            PredictionKey.PROBABILITIES: math_ops.sigmoid(logits, name=PredictionKey.PROBABILITIES),
            PredictionKey.CLASSES: math_ops.cast(
                ops.greater(logits, 0), dtypes.int64, name=PredictionKey.CLASSES
            ),
        }  # fmt: skip

    def _metrics(self, predictions: dict[str, Any], labels: Any, weights: Any) -> dict[str, Any]:
        classes, likely = predictions[PredictionKey.CLASSES], predictions[PredictionKey.PROBABILITIES]
        found = {
            MetricKey.ACCURACY: accuracy(labels, classes, weights),
            MetricKey.AUC: head_metrics.area(likely, labels, weights),
            MetricKey.AUC_PR: head_metrics.area(likely, labels, weights, curve="PR"),
        }
        for number in self._numbers:
            found[MetricKey.CLASS_PREDICTION_MEAN % number] = head_metrics.mean_of(classes, weights, number)
            found[MetricKey.CLASS_LABEL_MEAN % number] = head_metrics.mean_of(labels, weights, number)
            for key, of in _PER_CLASS:
                found[key % number] = head_metrics.mean_of(predictions[of], weights, number)
            found[MetricKey.CLASS_AUC % number] = head_metrics.area(likely, labels, weights, number)
            found[MetricKey.CLASS_AUC_PR % number] = head_metrics.area(likely, labels, weights, number, "PR")
        return found
