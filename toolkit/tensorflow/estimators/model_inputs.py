# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""What goes into a model and comes out of it: iterators that are started, inputs that end, chosen predictions."""

from __future__ import annotations

from typing import Any

from toolkit.client.construction import context
from toolkit.client.construction.tensor import Tensor
from toolkit.client.structures.nest import flatten
from toolkit.graph.metagraph import GraphKeys
from toolkit.tensorflow.families.train.session_hooks import SessionRunHook


class IteratorHook(SessionRunHook):
    """Starts an iterator in each session."""

    def __init__(self, iterator: Any):
        self._iterator = iterator

    def begin(self) -> None:
        self._initializer = self._iterator.initializer

    def after_create_session(self, session: Any, coord: Any) -> None:
        session.run(self._initializer)


def has_an_end(features: Any) -> bool:
    """Whether features come from an iterator or from queues."""
    tensors = [each for each in flatten(features) if isinstance(each, Tensor)]
    return any(each.op.type == "IteratorGetNext" for each in tensors) or bool(
        context.get_default_graph().get_collection(GraphKeys.QUEUE_RUNNERS)
    )


def chosen(predictions: Any, keys: Any) -> Any:
    """The predictions of these names; all without names. Raises ValueError where there is none of them."""
    if not keys:
        return predictions
    if not isinstance(predictions, dict):
        raise ValueError("predict_keys choose from predictions by name, and the model has one prediction alone")
    found = {key: value for key, value in predictions.items() if key in keys}
    if not found:
        raise ValueError(f"no prediction is called {keys}; there are: {', '.join(predictions)}")
    return found


def rows_of(batch: dict[str, Any]) -> int:
    """How many examples a batch of predictions has. Raises ValueError where they differ."""
    counts = {key: len(value) for key, value in batch.items()}
    if len(set(counts.values())) > 1:
        raise ValueError(f"predictions are of different numbers of examples: {counts}")
    return next(iter(counts.values()), 0)
