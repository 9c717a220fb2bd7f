"""Summaries of tensors by what they are, and of whole collections."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable
from typing import Any

from toolkit.client import ops
from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.tensor import Tensor
from toolkit.client.math import math_ops
from toolkit.client.summaries import summary
from toolkit.graph import dtypes
from toolkit.graph.metagraph import GraphKeys

#: ops of activations that are 0 (or 6) for a part of what they are given
_CUT_BELOW = ("Relu", "Softplus", "Relu6")


def _as_tensor(value: Any) -> Any:
    return value if isinstance(value, Tensor) else value.to_tensor()


def _share(op: Callable[..., Tensor], x: Tensor, bound: float, tag: str) -> Tensor:
    """The share of numbers beyond a bound, as a scalar."""
    beyond = math_ops.cast(op(x, math_ops.cast(bound, x.dtype.base)), dtypes.float32, name="ToFloat")
    return summary.scalar(tag, math_ops.reduce_mean(beyond))


def summarize_activation(op: Any) -> Tensor:
    """A histogram of an activation; for those that cut, the share of numbers that were cut."""
    kind, name = op.op.type, op.op.name
    if kind in _CUT_BELOW:
        _share(ops.less, op.op.inputs[0], 0.0, f"{name}/zeros")
    if kind == "Relu6":
        _share(ops.greater, op.op.inputs[0], 6.0, f"{name}/sixes")
    return summary.histogram(f"{name}/activation", op)


def summarize_tensor(tensor: Any, tag: str | None = None) -> Tensor | None:
    """A scalar or a histogram; None for texts and flags."""
    if tensor.dtype.base in (dtypes.string, dtypes.bool_):
        return None
    make = summary.scalar if tensor.static_shape.rank == 0 else summary.histogram
    return make(tag or f"{tensor.op.name}_summary", _as_tensor(tensor))


def summarize_tensors(tensors: Iterable[Any], summarizer: Callable[[Any], Any] = summarize_tensor) -> list[Any]:
    """The summaries of several tensors."""
    return [summarizer(tensor) for tensor in tensors]


def summarize_collection(
    collection: str, name_filter: str | None = None, summarizer: Callable[[Any], Any] = summarize_tensor
) -> list[Any]:
    """The summaries of a collection, or of what matches a pattern by its name."""
    found = get_default_graph().get_collection(collection)
    chosen = [each for each in found if name_filter is None or re.match(name_filter, each.op.name)]
    return summarize_tensors(chosen, summarizer)


summarize_variables = functools.partial(summarize_collection, GraphKeys.GLOBAL_VARIABLES)
summarize_weights = functools.partial(summarize_collection, "weights")
summarize_biases = functools.partial(summarize_collection, "biases")


def summarize_activations(
    name_filter: str | None = None, summarizer: Callable[[Any], Any] = summarize_activation
) -> list[Any]:
    """The summaries of the collection of activations."""
    return summarize_collection("activations", name_filter, summarizer)
