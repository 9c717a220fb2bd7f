# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""How an exported model receives its inputs: raw tensors, or serialized examples that it parses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from toolkit.client.arrays import array_ops
from toolkit.client.construction.tensor import Tensor
from toolkit.client.inputs import parsing
from toolkit.client.sparse.tensor import SparseTensor
from toolkit.graph import dtypes
from toolkit.graph.shape import Shape


def _check_tensor(what: str, value: Any) -> None:
    if not isinstance(value, Tensor | SparseTensor):
        raise ValueError(f"{what} must be a tensor; got {value!r}")


def _named(what: str, tensors: Any, single: str) -> dict[Any, Any]:
    if tensors is None:
        raise ValueError(f"{what} are missing")
    found = tensors if isinstance(tensors, dict) else {single: tensors}
    for key, value in found.items():
        if not isinstance(key, str | int):
            raise ValueError(f"the keys of {what} must be texts; got {key!r}")
        _check_tensor(f"{what}['{key}']", value)
    return found


class _Receiver(NamedTuple):
    features: Any
    receiver_tensors: Any
    receiver_tensors_alternatives: Any


def _checked(features: Any, receiver_tensors: Any, alternatives: Any) -> tuple[Any, Any, Any]:
    receivers = _named("receiver_tensors", receiver_tensors, "receiver_tensor")
    if alternatives is not None:
        if not isinstance(alternatives, dict):
            raise ValueError(f"receiver_tensors_alternatives must be a dict; got {alternatives!r}")
        alternatives = {
            name: _named(f"receiver_tensors_alternatives['{name}']", value, "receiver_tensor")
            for name, value in alternatives.items()
        }
    return features, receivers, alternatives


class ServingInputReceiver(_Receiver):
    """The placeholders that are fed, and the features that the model gets of them.

    Raises:
        ValueError: something is no tensor, or missing.
    """

    def __new__(
        cls, features: Any, receiver_tensors: Any, receiver_tensors_alternatives: Any = None
    ) -> ServingInputReceiver:
        found = _named("features", features, "feature")
        return super().__new__(cls, *_checked(found, receiver_tensors, receiver_tensors_alternatives))


class TensorServingInputReceiver(_Receiver):
    """As ServingInputReceiver, for a model whose features are one tensor."""

    def __new__(
        cls, features: Any, receiver_tensors: Any, receiver_tensors_alternatives: Any = None
    ) -> TensorServingInputReceiver:
        _check_tensor("features", features)
        return super().__new__(cls, *_checked(features, receiver_tensors, receiver_tensors_alternatives))


class SupervisedInputReceiver(NamedTuple):
    """What a graph that is exported for training or evaluation is fed."""

    features: Any
    labels: Any
    receiver_tensors: Any


def build_parsing_serving_input_receiver_fn(
    feature_spec: Any, default_batch_size: Any = None
) -> Callable[[], ServingInputReceiver]:
    """A function that makes a placeholder of serialized examples and parses them."""

    def serving_input_receiver_fn() -> ServingInputReceiver:
        examples = array_ops.placeholder(dtypes.string, [default_batch_size], "input_example_tensor")
        features = parsing.parse_example(examples, feature_spec)
        return ServingInputReceiver(features, {"examples": examples})

    return serving_input_receiver_fn


def build_raw_serving_input_receiver_fn(
    features: Any, default_batch_size: Any = None
) -> Callable[[], ServingInputReceiver]:
    """A function that makes a placeholder for each feature."""

    def serving_input_receiver_fn() -> ServingInputReceiver:
        found = _placeholders(features, default_batch_size)
        return ServingInputReceiver(found, dict(found))

    return serving_input_receiver_fn


def build_raw_supervised_input_receiver_fn(
    features: Any, labels: Any, default_batch_size: Any = None
) -> Callable[[], SupervisedInputReceiver]:
    """A function that makes a placeholder for each feature and label.

    Raises:
        ValueError: a feature and a label have the same name.
    """
    both = set(features) & set(labels) if isinstance(features, dict) and isinstance(labels, dict) else ()
    if both:
        raise ValueError(f"features and labels are both called {', '.join(sorted(both))}")

    def supervised_input_receiver_fn() -> SupervisedInputReceiver:
        inputs, targets = _placeholders(features, default_batch_size), _placeholders(labels, default_batch_size)
        named = {**_by_name(inputs, "input"), **_by_name(targets, "label")}
        return SupervisedInputReceiver(inputs, targets, named)

    return supervised_input_receiver_fn


def _by_name(tensors: Any, single: str) -> dict[str, Any]:
    return dict(tensors) if isinstance(tensors, dict) else {single: tensors}


def _placeholders(tensors: Any, batch: Any) -> Any:
    if not isinstance(tensors, dict):
        return _placeholder(tensors, None, batch)
    return {key: _placeholder(tensor, key, batch) for key, tensor in tensors.items()}


def _placeholder(tensor: Any, name: str | None, batch: Any) -> Any:
    shape: Any = tensor.static_shape
    if shape.rank:
        shape = Shape([batch, *list(shape)[1:]])
    return array_ops.placeholder(tensor.dtype.base, shape, name or tensor.op.name)
