# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""Heads: from logits to predictions, losses, metrics and the training operation."""

from __future__ import annotations

import abc
from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.checks.assertions import assert_equal, assert_less_equal, assert_non_negative
from toolkit.client.construction import context
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.grouping import group
from toolkit.client.construction.scopes import control_dependencies, name_scope
from toolkit.client.feature_columns import vocabularies
from toolkit.client.feature_columns.base import FeatureCache
from toolkit.client.feature_columns.layers import VariablesOfScopes
from toolkit.client.feature_columns.numeric import NumericColumn, numeric_column
from toolkit.client.losses import weighted
from toolkit.client.losses.poisson import log_poisson_loss
from toolkit.client.math import math_ops
from toolkit.client.metrics import accuracy as accuracy_metric
from toolkit.client.metrics import auc as auc_metric
from toolkit.client.metrics import means, precision_at_thresholds, recall_at_thresholds
from toolkit.client.metrics import precision as precision_metric
from toolkit.client.metrics import recall as recall_metric
from toolkit.client.nn import nn_ops
from toolkit.client.sparse.tensor import SparseTensor
from toolkit.client.summaries import summary
from toolkit.client.train.global_step import get_global_step
from toolkit.graph import dtypes
from toolkit.graph.metagraph import GraphKeys
from toolkit.tensorflow.estimators import export_outputs as exports
from toolkit.tensorflow.estimators.model_functions import arguments_of
from toolkit.tensorflow.estimators.run_config import ModeKeys
from toolkit.tensorflow.estimators.spec import EstimatorSpec

#: the reductions of later releases by the names that losses have in TensorFlow 1
_REDUCTIONS = {"sum": "weighted_sum", "sum_over_batch_size": "weighted_sum_over_batch_size"}
_SUM = "weighted_sum"


class Head(abc.ABC):
    """From logits [batch, dimension] and labels to an EstimatorSpec."""

    _weight_column: Any = None
    _reduction = _SUM
    _name: Any = None
    _loss_fn: Any = None

    @property
    def name(self) -> Any:
        return self._name

    @property
    @abc.abstractmethod
    def logits_dimension(self) -> int:
        """How many logits each example has."""

    @property
    def loss_reduction(self) -> str:
        return self._reduction

    @abc.abstractmethod
    def predictions(self, logits: Any, keys: Any = None) -> dict[str, Any]:
        """What is predicted, by name; of `keys` alone where they are given."""

    @abc.abstractmethod
    def _outputs(self, predictions: dict[str, Any]) -> dict[str, Any]:
        """What is exported."""

    @abc.abstractmethod
    def _processed(self, labels: Any, logits: Any) -> Any:
        """Labels as the loss takes them."""

    @abc.abstractmethod
    def _unreduced(self, labels: Any, logits: Any, features: Any) -> Any:
        """The loss of each example, [batch, 1] or [batch, dimension]."""

    @abc.abstractmethod
    def _metrics(self, labels: Any, predictions: dict[str, Any], weights: Any, unreduced: Any) -> dict[str, Any]:
        """Metrics by name, each a value and its update."""

    def loss(
        self, labels: Any, logits: Any, features: Any = None, mode: Any = None, regularization_losses: Any = None
    ) -> Any:
        """The loss to be minimised, regularization included."""
        loss = self._weighted(labels, logits, features)[0]
        return math_ops.add_n([loss, math_ops.add_n(regularization_losses)]) if regularization_losses else loss

    def metrics(self, regularization_losses: Any = None) -> dict[str, Any]:
        """The dict that `update_metrics` fills: metrics of TensorFlow 1 are made where the labels are."""
        return {}

    def update_metrics(
        self, eval_metrics: Any, features: Any, logits: Any, labels: Any, regularization_losses: Any = None
    ) -> Any:
        """Add the metrics, each a value and its update, to a dict; returns it."""
        _, unreduced, weights, processed = self._weighted(labels, logits, features)
        eval_metrics.update(self._named(self._metrics(processed, self.predictions(logits), weights, unreduced)))
        if regularization_losses:
            key = self._key("regularization_loss")
            eval_metrics[key] = means.mean(math_ops.add_n(regularization_losses), name="regularization_loss")
        return eval_metrics

    def create_estimator_spec(
        self, features: Any, mode: Any, logits: Any, labels: Any = None, optimizer: Any = None,
        trainable_variables: Any = None, train_op_fn: Any = None, update_ops: Any = None,
        regularization_losses: Any = None,
    ) -> EstimatorSpec:  # fmt: skip
        """The model's parts for a mode.

        Raises:
            ValueError: to train, both an optimizer and a function that makes the operation are given, or neither;
                labels or logits of another shape.
        """
        with name_scope(self._name, "head"):
            logits = self._checked_logits(logits)
            with name_scope(None, "predictions", [logits]):
                predictions = self.predictions(logits)
            if mode == ModeKeys.PREDICT:
                return EstimatorSpec(mode, predictions=predictions, export_outputs=self._outputs(predictions))
            plain, unreduced, weights, processed = self._weighted(labels, logits, features)
            extra = math_ops.add_n(regularization_losses) if regularization_losses else None
            loss = plain if extra is None else math_ops.add_n([plain, extra])
            if mode == ModeKeys.EVAL:
                with name_scope(None, "metrics"):
                    metrics = self._named(self._metrics(processed, predictions, weights, unreduced))
                    if extra is not None:
                        key = self._key("regularization_loss")
                        metrics[key] = means.mean(extra, name="regularization_loss")
                return EstimatorSpec(mode, predictions=predictions, loss=loss, eval_metric_ops=metrics)
            train_op = self._train_op(loss, optimizer, trainable_variables, train_op_fn, update_ops)
            average = None
            if self._reduction == _SUM:
                average = plain / math_ops.reduce_sum(weights * array_ops.ones_like(unreduced))
        with name_scope(""):
            summary.scalar(self._key("loss"), loss)
            if average is not None:
                summary.scalar(self._key("average_loss"), average)
            if extra is not None:
                summary.scalar(self._key("regularization_loss"), extra)
        return EstimatorSpec(mode, predictions=predictions, loss=loss, train_op=train_op)

    def _train_op(self, loss: Any, optimizer: Any, chosen: Any, train_op_fn: Any, update_ops: Any) -> Any:
        if (optimizer is None) == (train_op_fn is None):
            raise ValueError("to train, give an optimizer or train_op_fn, one of them")
        if optimizer is not None:
            train_op = optimizer.minimize(loss, global_step=get_global_step(), var_list=chosen)
        else:
            train_op = train_op_fn(loss)
        updates = context.get_default_graph().get_collection(GraphKeys.UPDATE_OPS) if update_ops is None else update_ops
        return group([train_op, *updates]) if updates else train_op

    def _key(self, name: str) -> str:
        return f"{name}/{self._name}" if self._name else name

    def _named(self, metrics: dict[str, Any]) -> dict[str, Any]:
        return {self._key(name): value for name, value in metrics.items()}

    def _weighted(self, labels: Any, logits: Any, features: Any) -> tuple[Any, Any, Any, Any]:
        """The reduced loss, that of each example, the weights, the labels as the loss takes them."""
        labels = self._processed(self._shaped(labels, logits), logits)
        unreduced = (
            self._custom(labels, logits, features) if self._loss_fn else self._unreduced(labels, logits, features)
        )
        weights = self._weights(features, logits)
        return weighted.compute_weighted_loss(unreduced, weights, reduction=self._reduction), unreduced, weights, labels

    def _custom(self, labels: Any, logits: Any, features: Any) -> Any:
        more = {"features": features} if "features" in arguments_of(self._loss_fn) else {}
        return self._loss_fn(labels=labels, logits=logits, **more)

    @property
    def _label_dimension(self) -> int:
        return 1

    def _shaped(self, labels: Any, logits: Any) -> Any:
        """Labels [batch, dimension]."""
        if labels is None:
            raise ValueError("the labels are missing; input_fn must return features and labels")
        if isinstance(labels, SparseTensor):
            raise ValueError("the labels are sparse; a dense tensor is needed")
        wanted = self._label_dimension
        with name_scope(None, "labels", [labels, logits]) as scope:
            labels = convert_to_tensor(labels)
            if labels.static_shape.rank is not None and labels.static_shape.rank == logits.static_shape.rank - 1:
                labels = array_ops.expand_dims(labels, -1)
            last = labels.static_shape[-1] if labels.static_shape.rank else None
            if last is not None and last != wanted:
                raise ValueError(f"the labels have {last} numbers for each example; expected {wanted}")
            sizes = array_ops.concat([array_ops.shape(logits)[:-1], [wanted]], 0)
            same = assert_equal(sizes, array_ops.shape(labels), message=f"labels must be of shape [batch, {wanted}]")
            with control_dependencies([same]):
                return array_ops.identity(labels, name=scope)

    def _checked_logits(self, logits: Any) -> Any:
        logits = math_ops.cast(logits, dtypes.float32)
        last = logits.static_shape[-1] if logits.static_shape.rank else None
        if last is not None and last != self.logits_dimension:
            raise ValueError(f"the logits have {last} numbers for each example; expected {self.logits_dimension}")
        return logits

    def _weights(self, features: Any, logits: Any) -> Any:
        if self._weight_column is None:
            return 1.0
        column = self._weight_column
        with name_scope(None, "weights", [logits]):
            column = numeric_column(column) if isinstance(column, str) else column
            if not isinstance(column, NumericColumn):
                raise TypeError(f"weight_column must be a name or a numeric_column; got {column!r}")
            weights = column.dense(FeatureCache(features), VariablesOfScopes([], False))
            if weights.static_shape.rank is not None and weights.static_shape.rank == logits.static_shape.rank - 1:
                weights = array_ops.expand_dims(weights, -1)
            return weights


def _in_range(labels: Any, count: int) -> Any:
    """Labels that are checked to be classes when the step runs."""
    with name_scope(None, "assert_range", [labels]):
        most = convert_to_tensor(count - 1, labels.dtype.base)
        least = [
            assert_less_equal(labels, most, message=f"labels must be at most {count - 1}"),
            assert_non_negative(labels, message="labels must be at least 0"),
        ]
        with control_dependencies(least):
            return array_ops.identity(labels)


def _class_names(count: int, vocabulary: Any) -> Any:
    return convert_to_tensor(list(vocabulary)) if vocabulary else ops.as_string(math_ops.range(count))


def _for_each_example(row: Any, like: Any) -> Any:
    return array_ops.tile(array_ops.expand_dims(row, 0), [array_ops.shape(like)[0], 1])


def _words(labels: Any, vocabulary: Any) -> Any:
    """Classes of labels that are words."""
    if labels.dtype.base is not dtypes.string:
        raise ValueError(f"there is a label_vocabulary, so labels must be strings; they are {labels.dtype.base}")
    table = vocabularies.of_words(tuple(vocabulary), dtypes.string, -1, 0, "class_id_lookup")
    return table.find(labels)


class _Classes(Head):
    """What heads of one class for each example share."""

    _n_classes: int
    _vocabulary: Any

    def _classes(self, class_ids: Any) -> Any:
        if not self._vocabulary:
            return ops.as_string(class_ids, name="str_classes")
        return array_ops.gather(convert_to_tensor(list(self._vocabulary)), class_ids, name="classes")

    def _of_classes(self, class_ids: Any, logits: Any) -> dict[str, Any]:
        return {
            "class_ids": class_ids,
            "classes": self._classes(class_ids),
            "all_class_ids": _for_each_example(math_ops.range(self._n_classes), logits),
            "all_classes": _for_each_example(_class_names(self._n_classes, self._vocabulary), logits),
        }

    def _classification(self, predictions: dict[str, Any]) -> Any:
        scores = predictions["probabilities"]
        names = _for_each_example(_class_names(self._n_classes, self._vocabulary), scores)
        return exports.ClassificationOutput(scores=scores, classes=names)


class BinaryClassHead(_Classes):
    """Two classes, from one logit.

    Raises:
        ValueError: a threshold that is no probability, an unknown reduction.
    """

    _n_classes = 2

    def __init__(
        self, weight_column: Any = None, thresholds: Any = None, label_vocabulary: Any = None,
        loss_reduction: str = "sum_over_batch_size", loss_fn: Any = None, name: Any = None,
    ):  # fmt: skip
        self._weight_column, self._vocabulary, self._name = weight_column, label_vocabulary, name
        self._thresholds = tuple(thresholds or ())
        for each in self._thresholds:
            if not 0.0 < each < 1.0:
                raise ValueError(f"thresholds must be between 0 and 1; got {each}")
        self._reduction, self._loss_fn = _reduction(loss_reduction), _checked_loss_fn(loss_fn)

    @property
    def logits_dimension(self) -> int:
        return 1

    def predictions(self, logits: Any, keys: Any = None) -> dict[str, Any]:
        logistic = math_ops.sigmoid(logits, name="logistic")
        both = array_ops.concat((array_ops.zeros_like(logits), logits), axis=-1, name="two_class_logits")
        found = {"logits": logits, "logistic": logistic, "probabilities": nn_ops.softmax(both, name="probabilities")}
        class_ids = array_ops.expand_dims(math_ops.argmax(both, -1, name="class_ids"), -1)
        return _of_keys({**found, **self._of_classes(class_ids, logits)}, keys)

    def _outputs(self, predictions: dict[str, Any]) -> dict[str, Any]:
        classes = self._classification(predictions)
        return {
            exports.DEFAULT_KEY: classes, "classification": classes,
            "regression": exports.RegressionOutput(predictions["logistic"]),
            "predict": exports.PredictOutput(predictions),
        }  # fmt: skip

    def _processed(self, labels: Any, logits: Any) -> Any:
        if self._vocabulary:
            labels = _words(labels, self._vocabulary)
        return _in_range(math_ops.cast(labels, dtypes.float32), 2)

    def _unreduced(self, labels: Any, logits: Any, features: Any) -> Any:
        return nn_ops.sigmoid_cross_entropy_with_logits(labels, logits)

    def _metrics(self, labels: Any, predictions: dict[str, Any], weights: Any, unreduced: Any) -> dict[str, Any]:
        classes, logistic = predictions["class_ids"], predictions["logistic"]
        share = means.mean(labels, weights, name="label/mean")
        value, update = share
        found: dict[str, Any] = {
            "average_loss": means.mean(unreduced, weights, name="average_loss"),
            "accuracy": accuracy_metric(labels, classes, weights, name="accuracy"),
            "precision": precision_metric(labels, classes, weights, name="precision"),
            "recall": recall_metric(labels, classes, weights, name="recall"),
            "prediction/mean": means.mean(logistic, weights, name="prediction/mean"),
            "label/mean": share,
            "accuracy_baseline": (math_ops.maximum(value, 1.0 - value), math_ops.maximum(update, 1.0 - update)),
            "auc": auc_metric(labels, logistic, weights, name="auc"),
            "auc_precision_recall": auc_metric(labels, logistic, weights, curve="PR", name="auc_precision_recall"),
        }
        for each in self._thresholds:
            over = math_ops.cast(ops.greater_equal(logistic, each), dtypes.float32)
            key = f"positive_threshold_{each:g}"
            found[f"accuracy/{key}"] = accuracy_metric(labels, over, weights, name=f"accuracy/{key}")
            for kind, metric in (("precision", precision_at_thresholds), ("recall", recall_at_thresholds)):
                pair = metric(labels, logistic, [each], weights, name=f"{kind}/{key}")
                found[f"{kind}/{key}"] = tuple(array_ops.squeeze(part) for part in pair)
        return found


class MultiClassHead(_Classes):
    """One of more than two classes, from a logit for each.

    Raises:
        ValueError: fewer than three classes, an unknown reduction.
    """

    def __init__(
        self, n_classes: Any, weight_column: Any = None, label_vocabulary: Any = None,
        loss_reduction: str = "sum_over_batch_size", loss_fn: Any = None, name: Any = None,
    ):  # fmt: skip
        if n_classes is None or n_classes <= 2:
            raise ValueError(f"n_classes must be above 2; got {n_classes}")
        self._n_classes = n_classes
        self._weight_column, self._vocabulary, self._name = weight_column, label_vocabulary, name
        self._reduction, self._loss_fn = _reduction(loss_reduction), _checked_loss_fn(loss_fn)

    @property
    def logits_dimension(self) -> int:
        return self._n_classes

    def predictions(self, logits: Any, keys: Any = None) -> dict[str, Any]:
        class_ids = array_ops.expand_dims(math_ops.argmax(logits, -1, name="class_ids"), -1)
        found = {"logits": logits, "probabilities": nn_ops.softmax(logits, name="probabilities")}
        return _of_keys({**found, **self._of_classes(class_ids, logits)}, keys)

    def _outputs(self, predictions: dict[str, Any]) -> dict[str, Any]:
        classes = self._classification(predictions)
        return {
            exports.DEFAULT_KEY: classes, "classification": classes, "predict": exports.PredictOutput(predictions)
        }  # fmt: skip

    def _processed(self, labels: Any, logits: Any) -> Any:
        if self._vocabulary:
            labels = _words(labels, self._vocabulary)
        elif not labels.dtype.is_integer:
            raise ValueError(f"labels must be integers; they are {labels.dtype.base}")
        return _in_range(labels, self._n_classes)

    def _unreduced(self, labels: Any, logits: Any, features: Any) -> Any:
        found = weighted.sparse_softmax_cross_entropy(labels=labels, logits=logits, reduction="none")
        return array_ops.expand_dims(found, -1)

    def _metrics(self, labels: Any, predictions: dict[str, Any], weights: Any, unreduced: Any) -> dict[str, Any]:
        return {
            "average_loss": means.mean(unreduced, weights, name="average_loss"),
            "accuracy": accuracy_metric(labels, predictions["class_ids"], weights, name="accuracy"),
        }


class MultiLabelHead(Head):
    """Any of several classes, from a logit for each; labels are [batch, n_classes] of 0 and 1."""

    def __init__(
        self, n_classes: Any, weight_column: Any = None, thresholds: Any = None, label_vocabulary: Any = None,
        loss_reduction: str = "sum_over_batch_size", loss_fn: Any = None,
        classes_for_class_based_metrics: Any = None, name: Any = None,
    ):  # fmt: skip
        if n_classes is None or n_classes < 2:
            raise ValueError(f"n_classes must be above 1; got {n_classes}")
        if label_vocabulary is not None and len(label_vocabulary) != n_classes:
            raise ValueError(f"label_vocabulary has {len(label_vocabulary)} words for {n_classes} classes")
        self._n_classes, self._vocabulary = n_classes, label_vocabulary
        self._weight_column, self._name = weight_column, name
        self._thresholds = tuple(thresholds or ())
        self._based_on = tuple(classes_for_class_based_metrics or ())
        self._reduction, self._loss_fn = _reduction(loss_reduction), _checked_loss_fn(loss_fn)

    @property
    def logits_dimension(self) -> int:
        return self._n_classes

    @property
    def _label_dimension(self) -> int:
        return self._n_classes

    def predictions(self, logits: Any, keys: Any = None) -> dict[str, Any]:
        probabilities = math_ops.sigmoid(logits, name="probabilities")
        return _of_keys({"logits": logits, "probabilities": probabilities}, keys)

    def _outputs(self, predictions: dict[str, Any]) -> dict[str, Any]:
        scores = predictions["probabilities"]
        names = _for_each_example(_class_names(self._n_classes, self._vocabulary), scores)
        classes = exports.ClassificationOutput(scores=scores, classes=names)
        return {
            exports.DEFAULT_KEY: classes, "classification": classes, "predict": exports.PredictOutput(predictions)
        }  # fmt: skip

    def _processed(self, labels: Any, logits: Any) -> Any:
        return _in_range(labels, 2)

    def _unreduced(self, labels: Any, logits: Any, features: Any) -> Any:
        each = weighted.sigmoid_cross_entropy(labels, logits, reduction="none")
        return math_ops.reduce_mean(each, axis=-1, keepdims=True)

    def _metrics(self, labels: Any, predictions: dict[str, Any], weights: Any, unreduced: Any) -> dict[str, Any]:
        probabilities = predictions["probabilities"]
        found: dict[str, Any] = {
            "average_loss": means.mean(unreduced, weights, name="average_loss"),
            "auc": auc_metric(labels, probabilities, weights, name="auc"),
            "auc_precision_recall": auc_metric(labels, probabilities, weights, curve="PR", name="auc_precision_recall"),
        }
        for each in self._thresholds:
            over = math_ops.cast(ops.greater_equal(probabilities, each), dtypes.float32)
            key = f"positive_threshold_{each:g}"
            found[f"accuracy/{key}"] = accuracy_metric(labels, over, weights, name=f"accuracy/{key}")
            for kind, metric in (("precision", precision_metric), ("recall", recall_metric)):
                found[f"{kind}/{key}"] = metric(labels, over, weights, name=f"{kind}/{key}")
        for each in self._based_on:
            number = list(self._vocabulary or ()).index(each) if isinstance(each, str) else each
            key = f"class_{each}" if isinstance(each, str) else f"class_id_{each}"
            one, right = probabilities[:, number : number + 1], labels[:, number : number + 1]
            found[f"probability_mean/{key}"] = means.mean(one, weights)
            found[f"auc/{key}"] = auc_metric(right, one, weights)
            found[f"auc_precision_recall/{key}"] = auc_metric(right, one, weights, curve="PR")
        return found


class RegressionHead(Head):
    """Numbers, by the squared error.

    Raises:
        ValueError: fewer than one number, an unknown reduction.
    """

    def __init__(
        self, label_dimension: Any = 1, weight_column: Any = None, loss_reduction: str = "sum_over_batch_size",
        loss_fn: Any = None, inverse_link_fn: Any = None, name: Any = None,
    ):  # fmt: skip
        if label_dimension < 1:
            raise ValueError(f"label_dimension must be at least 1; got {label_dimension}")
        self._dimension, self._weight_column, self._name = label_dimension, weight_column, name
        self._reduction, self._loss_fn = _reduction(loss_reduction), _checked_loss_fn(loss_fn)
        self._inverse_link = inverse_link_fn

    @property
    def logits_dimension(self) -> int:
        return self._dimension

    @property
    def _label_dimension(self) -> int:
        return self._dimension

    def predictions(self, logits: Any, keys: Any = None) -> dict[str, Any]:
        if self._inverse_link is None:
            return _of_keys({"predictions": logits}, keys)
        return _of_keys({"predictions": self._inverse_link(logits), "logits": logits}, keys)

    def _outputs(self, predictions: dict[str, Any]) -> dict[str, Any]:
        values = exports.RegressionOutput(predictions["predictions"])
        return {exports.DEFAULT_KEY: values, "regression": values, "predict": exports.PredictOutput(predictions)}

    def _processed(self, labels: Any, logits: Any) -> Any:
        return math_ops.cast(labels, dtypes.float32)

    def _unreduced(self, labels: Any, logits: Any, features: Any) -> Any:
        return weighted.mean_squared_error(labels=labels, predictions=logits, reduction="none")

    def _metrics(self, labels: Any, predictions: dict[str, Any], weights: Any, unreduced: Any) -> dict[str, Any]:
        return {
            "average_loss": means.mean(unreduced, weights),
            "prediction/mean": means.mean(predictions["predictions"], weights, name="prediction/mean"),
            "label/mean": means.mean(labels, weights),
        }


class PoissonRegressionHead(RegressionHead):
    """Counts, by the Poisson loss of exp(logits)."""

    def __init__(
        self, label_dimension: Any = 1, weight_column: Any = None, loss_reduction: str = "sum_over_batch_size",
        compute_full_loss: bool = True, name: Any = None,
    ):  # fmt: skip
        super().__init__(label_dimension, weight_column, loss_reduction, None, math_ops.exp, name)
        self._is_full = compute_full_loss

    def _unreduced(self, labels: Any, logits: Any, features: Any) -> Any:
        return log_poisson_loss(labels, logits, self._is_full)


class LogisticRegressionHead(RegressionHead):
    """Probabilities, by the cross entropy of sigmoid(logits)."""

    def __init__(self, weight_column: Any = None, loss_reduction: str = "sum_over_batch_size", name: Any = None):
        super().__init__(1, weight_column, loss_reduction, None, math_ops.sigmoid, name)

    def _unreduced(self, labels: Any, logits: Any, features: Any) -> Any:
        return nn_ops.sigmoid_cross_entropy_with_logits(labels, logits)


def head_of(n_classes: Any, weight_column: Any, label_vocabulary: Any, loss_reduction: str) -> Head:
    """The head of a classifier."""
    if n_classes == 2:
        return BinaryClassHead(weight_column, None, label_vocabulary, loss_reduction)
    return MultiClassHead(n_classes, weight_column, label_vocabulary, loss_reduction)


def _of_keys(predictions: dict[str, Any], keys: Any) -> dict[str, Any]:
    if keys is None:
        return predictions
    strange = [key for key in keys if key not in predictions]
    if strange:
        raise ValueError(f"there is no prediction '{strange[0]}'; there are: {', '.join(predictions)}")
    return {key: predictions[key] for key in keys}


def _reduction(name: str) -> str:
    found = _REDUCTIONS.get(name, name)
    if found not in vars(weighted.Reduction).values() or found == "none":
        raise ValueError(f"there is no loss_reduction '{name}'; there are: {', '.join(_REDUCTIONS)}")
    return found


def _checked_loss_fn(loss_fn: Any) -> Any:
    if loss_fn is not None:
        takes = set(arguments_of(loss_fn))
        if not {"labels", "logits"} <= takes <= {"labels", "logits", "features"}:
            raise ValueError(f"loss_fn must take labels and logits, and may take features; it takes {sorted(takes)}")
    return loss_fn
