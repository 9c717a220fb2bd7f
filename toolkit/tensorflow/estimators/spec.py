# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""What a model function returns."""

from __future__ import annotations

from typing import Any, NamedTuple

from toolkit.client.arrays import array_ops
from toolkit.client.construction import context
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.tensor import Tensor
from toolkit.client.variables.base import BaseVariable
from toolkit.tensorflow.estimators import export_outputs as exports
from toolkit.tensorflow.estimators.run_config import ModeKeys
from toolkit.tensorflow.families.train.scaffold import Scaffold
from toolkit.tensorflow.families.train.session_hooks import SessionRunHook


class _Spec(NamedTuple):
    mode: Any
    predictions: Any
    loss: Any
    train_op: Any
    eval_metric_ops: Any
    export_outputs: Any
    training_chief_hooks: Any
    training_hooks: Any
    scaffold: Any
    evaluation_hooks: Any
    prediction_hooks: Any


class EstimatorSpec(_Spec):
    """The parts of a model, checked for its mode: training needs a loss and a train_op, evaluation a loss, prediction
    predictions.

    Raises:
        ValueError: a part is missing, of another graph, or of a shape that it cannot have.
        TypeError: a part is of another kind.
    """

    def __new__(
        cls, mode: Any, predictions: Any = None, loss: Any = None, train_op: Any = None, eval_metric_ops: Any = None,
        export_outputs: Any = None, training_chief_hooks: Any = None, training_hooks: Any = None,
        scaffold: Any = None, evaluation_hooks: Any = None, prediction_hooks: Any = None,
    ) -> EstimatorSpec:  # fmt: skip
        _require(mode, predictions, loss, train_op)
        if train_op is not None:
            _check_kind("train_op", train_op, Operation | Tensor | BaseVariable, "an operation or a tensor")
            _check_graph("train_op", train_op)
        predictions = _checked_predictions(predictions)
        if mode == ModeKeys.PREDICT:
            export_outputs = exports.checked_outputs(export_outputs, predictions)
        scaffold = scaffold or Scaffold()
        _check_kind("scaffold", scaffold, Scaffold, "a tf.train.Scaffold")
        groups = (training_chief_hooks, training_hooks, evaluation_hooks, prediction_hooks)
        chief, training, evaluation, prediction = (_checked_hooks(hooks) for hooks in groups)
        return super().__new__(
            cls, mode, predictions, _checked_loss(loss), train_op, _checked_metrics(eval_metric_ops), export_outputs,
            chief, training, scaffold, evaluation, prediction,
        )  # fmt: skip

    def _replace(self, **kwds: Any) -> EstimatorSpec:
        if kwds.get("mode", self.mode) != self.mode:
            raise ValueError(f"the mode of an EstimatorSpec stays '{self.mode}'")
        return EstimatorSpec(**{**self._asdict(), **kwds})


def _require(mode: Any, predictions: Any, loss: Any, train_op: Any) -> None:
    lacking = {
        ModeKeys.TRAIN: {"train_op": train_op, "loss": loss},
        ModeKeys.EVAL: {"loss": loss},
        ModeKeys.PREDICT: {"predictions": predictions},
    }.get(mode, {})
    for name, value in lacking.items():
        if value is None:
            raise ValueError(f"an EstimatorSpec of the mode '{mode}' needs {name}; it is missing")


def _check_kind(name: str, value: Any, kind: Any, expected: str) -> None:
    if not isinstance(value, kind):
        raise TypeError(f"{name} must be {expected}; got {value!r}")


def _check_graph(name: str, value: Any) -> None:
    if value.graph is not context.get_default_graph():
        raise ValueError(
            f"{name} '{value.name}' is of another graph than the one the model function was called in; make it inside "
            "of the function"
        )


def _checked_loss(loss: Any) -> Any:
    if loss is None:
        return None
    _check_kind("loss", loss, Tensor | BaseVariable, "a tensor")
    shape = loss.static_shape
    if shape.is_fully_defined and any(size != 1 for size in shape):
        raise ValueError(f"loss must be one number; '{loss.name}' is of shape {shape}")
    _check_graph("loss", loss)
    return loss if shape.rank in (0, None) else array_ops.reshape(loss, [])


def _checked_predictions(predictions: Any) -> Any:
    if predictions is None:
        return {}
    items = predictions.items() if isinstance(predictions, dict) else [("predictions", predictions)]
    for key, value in items:
        _check_kind(f"predictions['{key}']", value, Tensor | BaseVariable, "a tensor")
        _check_graph(f"predictions['{key}']", value)
    return predictions


def _checked_hooks(hooks: Any) -> tuple[Any, ...]:
    found = tuple(hooks or ())
    for hook in found:
        _check_kind("a hook", hook, SessionRunHook, "a tf.train.SessionRunHook")
    return found


def _checked_metrics(metrics: Any) -> dict[str, Any]:
    if metrics is None:
        return {}
    _check_kind("eval_metric_ops", metrics, dict, "a dict")
    for key, value in metrics.items():
        if not isinstance(value, tuple) or len(value) != 2:
            raise TypeError(f"eval_metric_ops['{key}'] must be a value and its update; got {value!r}")
        for each in value:
            _check_graph(f"eval_metric_ops['{key}']", each)
    return dict(metrics)
