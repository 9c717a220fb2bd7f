"""Numbers at even distances, in one dimension or between tensors."""

from __future__ import annotations

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.math import math_ops
from toolkit.graph import dtypes


def linspace(start: TensorLike, stop: TensorLike, num: TensorLike, name: str | None = None, axis: int = 0) -> Tensor:
    """`num` numbers from `start` to `stop`, both included, along a new axis.

    Args:
        start, stop: tensors that broadcast against each other; integers give floats.
        axis: where the new axis stands.
    """
    with name_scope(name, "linspace", [start, stop]):
        first = convert_to_tensor(start, name="start")
        last = convert_to_tensor(stop, first.dtype.base, name="stop")
        count = ops.cast(convert_to_tensor(num, name="num"), DstT=dtypes.int32)
        math_ops.cast(count, first.dtype.base)  # a node that nothing reads, as in TensorFlow
        shape = ops.broadcast_args(array_ops.shape(first), array_ops.shape(last))
        first, last = array_ops.broadcast_to(first, shape), array_ops.broadcast_to(last, shape)
        first, last = array_ops.expand_dims(first, axis), array_ops.expand_dims(last, axis)
        sizes = array_ops.shape(first)
        rank = array_ops.shape(sizes)[0]
        place = array_ops.where_v2(axis >= 0, axis, rank + axis)
        between = ops.maximum(count - 2, 0)
        steps = ops.maximum(count - 1, 1)
        delta = (last - first) / math_ops.cast(steps, last.dtype.base)
        first, last = math_ops.cast(first, delta.dtype.base), math_ops.cast(last, delta.dtype.base)
        end = array_ops.where_v2(count >= 0, steps, -1)
        at = math_ops.cast(math_ops.range(1, end, dtype=dtypes.int64), delta.dtype.base)
        is_axis = ops.equal(place, math_ops.range(rank))
        at = array_ops.reshape(at, array_ops.where_v2(is_axis, between, 1))
        inner = first + delta * at
        joined = array_ops.concat([first, inner, last], place)
        begin = array_ops.zeros_like(sizes)
        lengths = [sizes[0:place], array_ops.reshape(count, [1]), sizes[place + 1 :]]
        return array_ops.slice(joined, begin, array_ops.concat(lengths, 0))
