"""The cross-entropy of softmax probabilities, over any axis."""

from __future__ import annotations

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.math import math_ops


def softmax_cross_entropy(labels: TensorLike, logits: TensorLike, axis: int = -1, name: str | None = None) -> Tensor:
    """Cross-entropies of classes along an axis, with the nodes that TensorFlow makes: all other axes as one."""
    if axis == -1:
        with name_scope(name, "softmax_cross_entropy_with_logits", [logits, labels]) as scope:
            logits = convert_to_tensor(logits, name="logits")
            labels = math_ops.cast(convert_to_tensor(labels, name="labels"), logits.dtype.base)
            rank, whole = array_ops.rank(logits), array_ops.shape(logits)
            flat_logits, flat_labels = _rows(logits), _rows(labels)
            cost = ops.softmax_cross_entropy_with_logits(flat_logits, flat_labels, name=scope)[0]
            sizes = array_ops.slice(whole, [0], [ops.sub(rank, 1)])
            found = array_ops.reshape(cost, sizes)
            known = logits.static_shape
            if known.rank is not None:
                found.set_shape(known.slice(0, -1))
            return found
    logits = convert_to_tensor(logits)
    order = list(range(logits.static_shape.rank or 0))
    order[axis], order[-1] = order[-1], order[axis]
    return softmax_cross_entropy(array_ops.transpose(labels, order), array_ops.transpose(logits, order), -1, name)


def _rows(x: Tensor) -> Tensor:
    """All axes but the last as one."""
    rank = array_ops.rank(x)
    last = array_ops.slice(array_ops.shape(x), [ops.sub(rank, 1)], [1])
    found = array_ops.reshape(x, array_ops.concat([[-1], last], 0))
    known = x.static_shape
    if known.rank is not None:
        found.set_shape([known.slice(0, -1).num_elements, known[-1]])
    return found
