# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""The heads of tf.contrib.learn: from logits to predictions, losses, metrics and the training operation."""

from __future__ import annotations

import abc
from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.grouping import group
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor
from toolkit.client.math import math_ops
from toolkit.client.metrics import mean
from toolkit.client.mode_keys import ModeKeys
from toolkit.client.scoped_layers.dense import linear
from toolkit.client.sparse.tensor import SparseTensor, convert_to_tensor_or_sparse_tensor
from toolkit.client.summaries import summary
from toolkit.client.variables.creation import Variable
from toolkit.client.variables.store import variable_scope
from toolkit.tensorflow.families.train.optimizers import AdagradOptimizer
from toolkit.tensorflow.learn import head_losses
from toolkit.tensorflow.learn.keys import MetricKey, PredictionKey, ProblemType
from toolkit.tensorflow.learn.model_fn_ops import ModelFnOps

#: how fast the centred bias learns
_BIAS_RATE = 0.1


class LearnHead(abc.ABC):
    """From features, labels and logits to the parts of a model."""

    head_name: Any = None

    @property
    @abc.abstractmethod
    def logits_dimension(self) -> int:
        """How many logits each example has."""

    @abc.abstractmethod
    def create_model_fn_ops(
        self, features: Any, mode: Any, labels: Any = None, train_op_fn: Any = None, logits: Any = None,
        logits_input: Any = None, scope: Any = None,
    ) -> ModelFnOps:  # fmt: skip
        """The parts of a model in a mode.

        Args:
            features: tensors by name.
            train_op_fn: from a loss to the operation that trains.
            logits: [batch, logits_dimension]; or `logits_input`, of which one dense layer makes them.

        Raises:
            ValueError: an unknown mode, labels or logits of another shape, neither or both of the logits, no
                train_op_fn to train.
        """


def check_trains(train_op_fn: Any) -> None:
    """Raises ValueError: there is no function that trains."""
    if train_op_fn is None:
        raise ValueError("to train, a head needs train_op_fn, from a loss to the operation that trains; it is missing")


class SingleHead(LearnHead):
    """A head of one question.

    Raises:
        ValueError: fewer than one logit.
    """

    #: its scope, where it has no name
    _scope: str
    _problem: int
    _loss: head_losses.Loss

    def __init__(self, dimension: Any, label_name: Any, weight_key: Any, is_centred: Any, head_name: Any):
        if dimension is None or dimension < 1:
            raise ValueError(f"a head has at least one logit for each example; got {dimension}")
        self._dimension, self._label_name, self._weight_key = dimension, label_name, weight_key
        self._is_centred, self.head_name = is_centred, head_name

    @property
    def logits_dimension(self) -> int:
        return self._dimension

    @property
    def label_name(self) -> Any:
        return self._label_name

    @property
    def weight_column_name(self) -> Any:
        return self._weight_key

    @abc.abstractmethod
    def _predictions(self, logits: Any) -> dict[str, Any]:
        """What is predicted, by name."""

    @abc.abstractmethod
    def _metrics(self, predictions: dict[str, Any], labels: Any, weights: Any) -> dict[str, Any]:
        """Metrics by name, besides the loss."""

    def _served(self, predictions: dict[str, Any]) -> dict[str, Any]:
        """What is exported."""
        return predictions

    def _processed(self, labels: Any) -> Any:
        """Labels as the loss and the metrics take them.

        Raises:
            ValueError: they are sparse.
        """
        labels = self._chosen(labels)
        if isinstance(labels, SparseTensor):
            raise ValueError("the labels are a SparseTensor; only a multi_label_head takes one")
        return labels

    def _chosen(self, labels: Any) -> Any:
        if isinstance(labels, dict):
            if self._label_name not in labels:
                raise ValueError(f"there is no label '{self._label_name}'; there are: {', '.join(map(str, labels))}")
            labels = labels[self._label_name]
        return convert_to_tensor_or_sparse_tensor(labels)

    def create_model_fn_ops(
        self, features: Any, mode: Any, labels: Any = None, train_op_fn: Any = None, logits: Any = None,
        logits_input: Any = None, scope: Any = None,
    ) -> ModelFnOps:  # fmt: skip
        values = [*features.values(), *(labels.values() if isinstance(labels, dict) else [labels]), logits]
        with variable_scope(scope, self.head_name or self._scope, [*values, logits_input]):
            is_asked = mode == ModeKeys.INFER or labels is None
            labels = None if is_asked else self._processed(labels)
            logits = self._logits(logits_input, logits)
            ModeKeys.validate(mode)
            bias = None
            if self._is_centred:
                bias = self._centred_bias()
                logits = ops.bias_add(logits, bias)
            with name_scope(None, "predictions", (logits,)):
                predictions = self._predictions(logits)
            loss = train_op = metrics = None
            if not is_asked:
                weights = head_losses.weights_of(features, self._weight_key)
                loss, shown = self._loss(labels, logits, weights)
                with name_scope(""):
                    summary.scalar(self.key(MetricKey.LOSS), array_ops.identity(shown))
                if mode == ModeKeys.TRAIN:
                    check_trains(train_op_fn)
                    train_op = self._train_op(loss, labels, train_op_fn, bias, logits, weights)
                metrics = self._all_metrics(shown, predictions, labels, weights)
            return ModelFnOps(
                mode=mode, predictions=predictions, loss=loss, train_op=train_op, eval_metric_ops=metrics,
                output_alternatives={self.head_name: (self._problem, self._served(predictions))},
            )  # fmt: skip

    def key(self, name: str) -> str:
        """What a metric is called: with the head's name, if it has one."""
        return f"{name}/{self.head_name}" if self.head_name else name

    def _logits(self, given: Any, logits: Any) -> Tensor:
        if (logits is None) == (given is None):
            raise ValueError("give logits or logits_input, one of them")
        if logits is None:
            return linear(given, self._dimension, scope="logits")
        logits = convert_to_tensor(logits, name="logits")
        shape = logits.static_shape
        if shape.rank and shape[-1] not in (None, self._dimension):
            raise ValueError(f"the logits are of shape {shape}; the head has {self._dimension} for each example")
        return logits

    def _all_metrics(self, shown: Any, predictions: dict[str, Any], labels: Any, weights: Any) -> dict[str, Any]:
        with name_scope("metrics", values=[shown, labels, weights, *predictions.values()]):
            found = {MetricKey.LOSS: mean(shown), **self._metrics(predictions, labels, weights)}
        return {self.key(name): each for name, each in found.items()}

    # -- the bias that is trained by itself: the logits of examples of which nothing is known ------------------------

    def _centred_bias(self) -> Any:
        bias = Variable(array_ops.zeros((self._dimension,)), name="centered_bias_weight")
        for number in range(self._dimension):
            summary.scalar(self.key(f"centered_bias/bias_{number}"), bias[number])
        return bias

    def _train_op(self, loss: Any, labels: Any, train_op_fn: Any, bias: Any, logits: Any, weights: Any) -> Any:
        count = array_ops.shape(logits)[0]
        step = None
        if bias is not None:
            with name_scope(None, "centered_bias_step", (labels,)) as scope:
                size = array_ops.shape(bias)[0]
                alone = array_ops.reshape(array_ops.tile(bias, (count,)), (count, size))
                with name_scope(None, "centered_bias", (labels, alone)):
                    # as 1.15 does, which takes the mean of the loss and of what is shown of it
                    pair = array_ops.stack(self._loss(labels, alone, weights))
                    of_bias = math_ops.reduce_mean(pair, name="training_loss")
            step = AdagradOptimizer(_BIAS_RATE).minimize(of_bias, var_list=(bias,), name=scope)
        with name_scope(None, "train_op", (loss, labels)):
            train_op = train_op_fn(loss)
            return train_op if step is None else group([train_op, step])


class LearnRegressionHead(SingleHead):
    """Numbers: what a link function makes of the logits."""

    _scope, _problem = "regression_head", ProblemType.LINEAR_REGRESSION

    def __init__(
        self, loss: head_losses.Loss, link_fn: Any, dimension: Any, label_name: Any, weight_key: Any, is_centred: Any,
        head_name: Any,
    ):  # fmt: skip
        super().__init__(dimension, label_name, weight_key, is_centred, head_name)
        self._loss, self._link = loss, link_fn

    def _predictions(self, logits: Any) -> dict[str, Any]:
        key = PredictionKey.SCORES
        if self._dimension == 1:
            logits = array_ops.squeeze(logits, axis=(1,), name=key)
        return {key: self._link(logits)}

    def _metrics(self, predictions: dict[str, Any], labels: Any, weights: Any) -> dict[str, Any]:
        return {}
