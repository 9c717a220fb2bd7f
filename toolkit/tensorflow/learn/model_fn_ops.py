# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""What a model function of tf.contrib.learn returns."""

from __future__ import annotations

from typing import Any, NamedTuple

from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.operation import Operation
from toolkit.client.metagraphs import signatures
from toolkit.client.mode_keys import ModeKeys
from toolkit.client.sparse.tensor import convert_to_tensor_or_sparse_tensor
from toolkit.graph import dtypes
from toolkit.tensorflow.estimators import export_outputs as exports
from toolkit.tensorflow.estimators import run_config
from toolkit.tensorflow.estimators.spec import EstimatorSpec
from toolkit.tensorflow.families.train.session_hooks import SessionRunHook
from toolkit.tensorflow.learn.keys import MetricKey, PredictionKey, ProblemType


class _Ops(NamedTuple):
    predictions: Any
    loss: Any
    train_op: Any
    eval_metric_ops: Any
    output_alternatives: Any
    training_chief_hooks: Any
    training_hooks: Any
    scaffold: Any
    mode: Any


class ModelFnOps(_Ops):
    """The parts of a model, checked for its mode.

    Raises:
        ValueError: a part is missing or of a shape that it cannot have.
        TypeError: a hook is none.
    """

    def __new__(
        cls, mode: Any, predictions: Any = None, loss: Any = None, train_op: Any = None, eval_metric_ops: Any = None,
        output_alternatives: Any = None, training_chief_hooks: Any = None, training_hooks: Any = None,
        scaffold: Any = None,
    ) -> ModelFnOps:  # fmt: skip
        ModeKeys.validate(mode)
        lacking = {
            ModeKeys.TRAIN: {"train_op": train_op, "loss": loss},
            ModeKeys.EVAL: {"loss": loss, "predictions": predictions},
            ModeKeys.INFER: {"predictions": predictions},
        }[mode]
        for name, value in lacking.items():
            if value is None:
                raise ValueError(f"the model function must give {name} in the mode '{mode}'; it is missing")
        if train_op is not None and not isinstance(train_op, Operation):
            train_op = convert_to_tensor(train_op).op
        if eval_metric_ops is not None and not isinstance(eval_metric_ops, dict):
            raise ValueError(f"eval_metric_ops must be a dict; got {eval_metric_ops!r}")
        chief, hooks = list(training_chief_hooks or []), list(training_hooks or [])
        for hook in (*chief, *hooks):
            if not isinstance(hook, SessionRunHook):
                raise TypeError(f"a hook must be a tf.train.SessionRunHook; got {hook!r}")
        return super().__new__(
            cls, _predictions(predictions), _loss(loss), train_op, {} if eval_metric_ops is None else eval_metric_ops,
            output_alternatives, chief, hooks, scaffold, mode,
        )  # fmt: skip

    def _replace(self, **kwds: Any) -> ModelFnOps:
        return ModelFnOps(**{**self._asdict(), **kwds})

    def estimator_spec(self, default_serving_output_alternative_key: Any = None) -> EstimatorSpec:
        """The same for tf.estimator.

        Args:
            default_serving_output_alternative_key: which of several heads is served where none is asked for.

        Raises:
            ValueError: a head has no problem that is known.
        """
        outputs = dict(self.output_alternatives or {})
        if len(outputs) > 1 and exports.DEFAULT_KEY not in outputs:
            outputs[exports.DEFAULT_KEY] = outputs[default_serving_output_alternative_key]
        modes = {ModeKeys.INFER: run_config.ModeKeys.PREDICT}
        return EstimatorSpec(
            mode=modes.get(self.mode, self.mode), predictions=self.predictions, loss=self.loss,
            train_op=self.train_op,
            eval_metric_ops={key: each for key, each in self.eval_metric_ops.items() if key != MetricKey.LOSS},
            export_outputs={key: _export(*each) for key, each in outputs.items()} or None,
            training_chief_hooks=self.training_chief_hooks, training_hooks=self.training_hooks, scaffold=self.scaffold,
        )  # fmt: skip


def _predictions(given: Any) -> Any:
    if given is None:
        return None
    if isinstance(given, dict):
        return {key: convert_to_tensor_or_sparse_tensor(value) for key, value in given.items()}
    return convert_to_tensor_or_sparse_tensor(given)


def _loss(given: Any) -> Any:
    if given is None:
        return None
    loss = convert_to_tensor(given)
    shape = loss.static_shape
    if shape.is_fully_defined and any(size != 1 for size in shape):
        raise ValueError(f"loss must be one number; '{loss.name}' is of shape {shape}")
    return loss if shape.rank in (0, None) else array_ops.reshape(loss, [])


def scores_of(outputs: dict[str, Any]) -> Any:
    """The scores of classes, or their probabilities, or None."""
    found = outputs.get(PredictionKey.SCORES)
    return outputs.get(PredictionKey.PROBABILITIES) if found is None else found


def class_names_of(outputs: dict[str, Any]) -> Any:
    """The classes, where they are texts, which alone can be served; else None."""
    found = outputs.get(PredictionKey.CLASSES)
    return found if found is not None and found.dtype.base is dtypes.string else None


def _export(problem: Any, outputs: dict[str, Any]) -> exports.ExportOutput:
    if problem == ProblemType.LINEAR_REGRESSION:
        return exports.RegressionOutput(scores_of(outputs))
    if problem in (ProblemType.CLASSIFICATION, ProblemType.LOGISTIC_REGRESSION):
        return exports.ClassificationOutput(scores_of(outputs), class_names_of(outputs))
    if problem == ProblemType.UNSPECIFIED:
        return exports.PredictOutput(outputs)
    raise ValueError(f"there is no problem type {problem}; see tf.contrib.learn.ProblemType")


def signature_of(inputs: dict[str, Any], outputs: dict[str, Any], problem: Any) -> Any:
    """How a head is served from inputs: by Classify or Regress where it can be, else by Predict.

    Raises:
        ValueError: there are no inputs or no outputs.
    """
    if not inputs or not outputs:
        raise ValueError("a signature has inputs and outputs; one of them is empty")
    first = next(iter(inputs.values()))
    if problem in (ProblemType.CLASSIFICATION, ProblemType.LOGISTIC_REGRESSION) and len(inputs) == 1:
        scores, classes = scores_of(outputs), class_names_of(outputs)
        if scores is None and classes is None and len(outputs) == 1:
            only = next(iter(outputs.values()))
            scores, classes = (None, only) if only.dtype.base is dtypes.string else (only, None)
        if scores is not None or classes is not None:
            return signatures.classification_signature(first, classes, scores)
    if problem == ProblemType.LINEAR_REGRESSION and len(inputs) == 1 and len(outputs) == 1:
        return signatures.regression_signature(first, next(iter(outputs.values())))
    return signatures.predict_signature(inputs, outputs)
