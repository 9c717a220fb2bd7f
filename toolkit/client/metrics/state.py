"""What all metrics do: variables that add up, and a value and an update that are kept in collections."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from toolkit.client.arrays import array_ops
from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.convert import DTypeLike
from toolkit.client.construction.tensor import Tensor
from toolkit.client.losses.weights import check_same_shape, fitted_weights
from toolkit.client.math import math_ops
from toolkit.client.metrics.confusion import same_rank
from toolkit.client.variables.creation import Variable
from toolkit.graph import dtypes
from toolkit.graph.metagraph import GraphKeys

#: what tf.metrics returns
Metric = tuple[Any, Any]
Collections = Any


def metric_variable(
    shape: Any, dtype: DTypeLike = dtypes.float32, validate_shape: bool = True, name: str | None = None
) -> Any:
    """Zeros that a metric adds to: local, not trainable."""
    return Variable(
        lambda: array_ops.zeros(shape, dtype), trainable=False, name=name, validate_shape=validate_shape,
        collections=[GraphKeys.LOCAL_VARIABLES, GraphKeys.METRIC_VARIABLES],
    )  # fmt: skip


def kept(value: Any, collections: Collections) -> Any:
    """A value, once it is in the collections that are asked for."""
    if collections:
        get_default_graph().add_to_collections(collections, value)
    return value


def streamed(
    compute: Callable[..., Any], states: Sequence[Any], updates: Sequence[Any], metrics_collections: Collections,
    updates_collections: Collections, names: tuple[str | None, str | None] = ("value", "update_op"),
) -> Metric:  # fmt: skip
    """The same function of the variables, and of what the updates make of them; both named and kept."""
    value = kept(compute(*states, names[0]), metrics_collections)
    return value, kept(compute(*updates, names[1]), updates_collections)


def together(predictions: Any, labels: Any, weights: Any) -> tuple[Tensor, Tensor, Tensor | None]:
    """Predictions, labels and weights with the same number of axes, where a last axis of size 1 was all that differed.

    Raises:
        GraphError: the shapes of labels and predictions do not fit.
    """
    from toolkit.client.construction.convert import convert_to_tensor

    predictions = convert_to_tensor(predictions)
    labels, predictions = same_rank(labels, predictions)
    check_same_shape(predictions, labels)
    return predictions, labels, None if weights is None else fitted_weights(weights, predictions)


def flattened(x: Tensor) -> Tensor:
    """A vector of all elements; a vector stays."""
    return x if x.static_shape.rank is not None and x.static_shape.rank <= 1 else array_ops.reshape(x, [-1])


def as_float(x: Any) -> Tensor:
    return math_ops.cast(x, dtypes.float32)
