"""Sparsemax: the probabilities that are nearest to the logits, many of them exactly 0 (tf.contrib.sparsemax).

Source: Martins and Astudillo, "From Softmax to Sparsemax", 2016.
"""

from __future__ import annotations

from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import constant, convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor
from toolkit.client.math import math_ops
from toolkit.client.nn import nn_ops
from toolkit.graph import dtypes


def sparsemax(logits: Any, name: str | None = None) -> Tensor:
    """Probabilities, of logits [examples, classes].

    A row with a NaN or an infinite logit that leaves no sum is NaN.
    """
    with name_scope(name, "sparsemax", [logits]):
        logits = convert_to_tensor(logits, name="logits")
        dtype, sizes = logits.dtype, array_ops.shape(logits)
        classes = sizes[1]
        falling, _ = nn_ops.top_k(logits, classes)
        sums = math_ops.cumsum(falling, axis=1)
        counts = math_ops.range(1, math_ops.cast(classes, dtype) + 1, dtype=dtype)
        inside = math_ops.cast(ops.greater(1 + counts * falling, sums), dtypes.int32)
        support = math_ops.reduce_sum(inside, 1)
        last = array_ops.stack([math_ops.range(0, sizes[0]), math_ops.maximum(support, 1) - 1], axis=1)
        threshold = (array_ops.gather_nd(sums, last) - 1) / math_ops.cast(support, dtype)
        found = math_ops.maximum(math_ops.cast(0, dtype), logits - array_ops.expand_dims(threshold, 1))
        unknown = ops.logical_or(math_ops.equal(support, 0), ops.is_nan(sums[:, -1]))
        return array_ops.where(unknown, array_ops.fill(sizes, constant(float("nan"), dtype)), found)


def sparsemax_loss(logits: Any, sparsemax: Any, labels: Any, name: str | None = None) -> Tensor:
    """The loss [examples] whose gradient is sparsemax minus labels.

    Args:
        sparsemax: that of the logits.
        labels: probabilities, of the logits' shape.
    """
    with name_scope(name, "sparsemax_loss", [logits, sparsemax, labels]):
        logits, labels = convert_to_tensor(logits, name="logits"), convert_to_tensor(labels, name="labels")
        chosen = convert_to_tensor(sparsemax, name="sparsemax")
        nothing = array_ops.zeros_like(chosen)
        used = ops.logical_or(ops.greater(chosen, 0), ops.is_nan(chosen))
        of_chosen = array_ops.where(used, chosen * (logits - 0.5 * chosen), nothing)
        never = ops.logical_and(math_ops.equal(labels, 0), ops.is_inf(logits))
        of_labels = array_ops.where(never, nothing, labels * (0.5 * labels - logits))
        return math_ops.reduce_sum(of_chosen + of_labels, 1)
