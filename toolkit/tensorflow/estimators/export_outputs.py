# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""What a model gives when it is served, and the signatures that come of it."""

from __future__ import annotations

from typing import Any

from toolkit.client.construction.tensor import Tensor
from toolkit.client.metagraphs import signatures
from toolkit.graph import dtypes

DEFAULT_KEY = "serving_default"


class ExportOutput:
    """What a signature is made of; made by its subclasses."""

    def as_signature_def(self, receiver_tensors: Any) -> Any:
        """The signature of these inputs."""
        raise NotImplementedError(f"{type(self).__name__} has no as_signature_def")


class ClassificationOutput(ExportOutput):
    """Scores of classes, names of classes, or both.

    Raises:
        ValueError: scores are no floats, classes no strings, or there is neither.
    """

    def __init__(self, scores: Any = None, classes: Any = None):
        if scores is not None and not (isinstance(scores, Tensor) and scores.dtype.is_floating):
            raise ValueError(f"scores must be a tensor of floats; got {scores!r}")
        if classes is not None and not (isinstance(classes, Tensor) and classes.dtype.base is dtypes.string):
            raise ValueError(f"classes must be a tensor of strings; got {classes!r}")
        if scores is None and classes is None:
            raise ValueError("a ClassificationOutput has scores, classes or both; both are None")
        self.scores, self.classes = scores, classes

    def as_signature_def(self, receiver_tensors: Any) -> Any:
        return signatures.classification_signature(_examples(receiver_tensors, self), self.classes, self.scores)


class RegressionOutput(ExportOutput):
    """A number for each example.

    Raises:
        ValueError: they are no floats.
    """

    def __init__(self, value: Any):
        if not (isinstance(value, Tensor) and value.dtype.is_floating):
            raise ValueError(f"value must be a tensor of floats; got {value!r}")
        self.value = value

    def as_signature_def(self, receiver_tensors: Any) -> Any:
        return signatures.regression_signature(_examples(receiver_tensors, self), self.value)


class PredictOutput(ExportOutput):
    """Any tensors, by name; one tensor alone is called "output"."""

    def __init__(self, outputs: Any):
        self.outputs = named_outputs(outputs)

    def as_signature_def(self, receiver_tensors: Any) -> Any:
        return signatures.predict_signature(receiver_tensors, self.outputs)


class SupervisedOutput(ExportOutput):
    """Loss, predictions and metrics of a graph that is exported for training or evaluation."""

    def __init__(self, method: str, loss: Any, predictions: Any, metrics: Any):
        self._method = method
        self._outputs = (
            {} if loss is None else {"loss": loss},
            {f"predictions/{key}": value for key, value in named_outputs(predictions or {}).items()},
            _metric_outputs(metrics or {}),
        )

    def as_signature_def(self, receiver_tensors: Any) -> Any:
        return signatures.supervised_signature(self._method, receiver_tensors, *self._outputs)


def _metric_outputs(metrics: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, (value, update) in metrics.items():
        found[f"metrics/{key}/value"] = value
        found[f"metrics/{key}/update_op"] = update if isinstance(update, Tensor) else value
    return found


def named_outputs(outputs: Any) -> dict[str, Any]:
    """Outputs by name.

    Raises:
        ValueError: a name is no text, or an output no tensor.
    """
    found = outputs if isinstance(outputs, dict) else {"output": outputs}
    for key, value in found.items():
        if not isinstance(key, str):
            raise ValueError(f"the names of outputs must be texts; got {key!r}")
        if not isinstance(value, Tensor):
            raise ValueError(f"the output '{key}' must be a tensor; got {value!r}")
    return dict(found)


def _examples(receivers: Any, output: ExportOutput) -> Any:
    if len(receivers) != 1:
        raise ValueError(f"a {type(output).__name__} takes one input; there are {len(receivers)}")
    (examples,) = receivers.values()
    if examples.dtype.base is not dtypes.string:
        raise ValueError(f"a {type(output).__name__} takes serialized examples; '{examples.name}' is no string")
    return examples


def checked_outputs(export_outputs: Any, predictions: Any) -> dict[str, ExportOutput]:
    """The outputs of a model, of which one is the default.

    Raises:
        TypeError: it is no dict, or holds something else.
        ValueError: there are several, and none is the default.
    """
    if export_outputs is None:
        return {DEFAULT_KEY: PredictOutput(predictions)}
    if not isinstance(export_outputs, dict):
        raise TypeError(f"export_outputs must be a dict; got {export_outputs!r}")
    for key, value in export_outputs.items():
        if not isinstance(value, ExportOutput):
            raise TypeError(f"export_outputs['{key}'] must be an ExportOutput; got {value!r}")
    found = dict(export_outputs)
    if len(found) == 1:
        found[DEFAULT_KEY] = next(iter(found.values()))
    elif DEFAULT_KEY not in found and found:
        raise ValueError(f"export_outputs has {len(found)} entries, and none is called '{DEFAULT_KEY}'")
    return found


def signature_defs(receiver: Any, outputs: dict[str, ExportOutput], is_serving: bool) -> dict[str, Any]:
    """The signatures of a model: one for each output, and for each other way to give its inputs."""
    tensors = receiver.receiver_tensors
    tensors = tensors if isinstance(tensors, dict) else {"input": tensors}
    default = outputs.get(DEFAULT_KEY)
    found: dict[str, Any] = {}
    for key, output in outputs.items():
        try:
            found[key] = output.as_signature_def(tensors)
        except ValueError:
            if output is not default and not is_serving:
                raise
            continue  # what takes serialized examples cannot be served from raw tensors
    for name, other in (getattr(receiver, "receiver_tensors_alternatives", None) or {}).items():
        given = other if isinstance(other, dict) else {"input": other}
        for key, output in outputs.items():
            try:
                found[f"{name}:{key}"] = output.as_signature_def(given)
            except ValueError:
                continue
    valid = {key: each for key, each in found.items() if not is_serving or signatures.is_valid_signature(each)}
    if default is not None and DEFAULT_KEY not in valid and isinstance(default, PredictOutput):
        raise ValueError(f"the output '{DEFAULT_KEY}' cannot be served from the inputs {', '.join(tensors)}")
    return valid
