# TensorFlow's arguments may be anything, so what they are is for tests to say, not for types.
# pyright: basic
"""tf.repeat."""

from __future__ import annotations

from typing import Any

import numpy as np

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.arrays.masks import sequence_mask
from toolkit.client.arrays.spread_ops import int32_tensor
from toolkit.client.construction.convert import constant, convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor
from toolkit.client.math import math_ops
from toolkit.errors import UsageError
from toolkit.graph import dtypes


def repeat(input: Any, repeats: Any, axis: Any = None, name: Any = None) -> Tensor:
    """Elements along an axis, each as often as `repeats` says: one number for all, or one for each.

    Raises:
        UsageError: the axis is no number, or out of range.
    """
    if axis is None:
        input, axis = array_ops.reshape(input, [-1]), 0
    with name_scope(name, "Repeat", [input, repeats]):
        data = convert_to_tensor(input, name="data")
        counts = int32_tensor(repeats, "repeats")
        if not data.static_shape.rank and data.static_shape.rank is not None:
            data = array_ops.reshape(data, [-1])
        sizes = array_ops.shape(data)
        axis = _axis(axis, data)
        if counts.static_shape.num_elements == 1:
            counts = array_ops.reshape(counts, [])
            tiled = _tiled(array_ops.expand_dims(data, axis + 1), axis + 1, counts)
            shape = array_ops.concat([sizes[:axis], [counts * sizes[axis]], sizes[axis + 1 :]], 0)
            return array_ops.reshape(tiled, shape)
        counts = each = array_ops.broadcast_to(counts, [sizes[axis]])
        if each.static_shape.rank != axis + 1:
            shape, rank = array_ops.shape(each), array_ops.rank(each)
            each = array_ops.broadcast_to(each, array_ops.concat([sizes[: axis + 1 - rank], shape], 0))
            each.set_shape([None] * (axis + 1))
        most = math_ops.reduce_max(each, _all_axes(each))
        most = ops.maximum(convert_to_tensor(0, dtypes.int32, name="zero"), most)
        mask = sequence_mask(each, most)
        tiled = _tiled(array_ops.expand_dims(data, axis + 1), axis + 1, most)
        found = array_ops.boolean_mask(tiled, mask)
        if axis:
            total = ops.sum(counts, ops.range(0, array_ops.rank(counts), 1))
            shape = array_ops.concat([sizes[:axis], [total], sizes[axis + 1 :]], 0)
            found = array_ops.reshape(found, shape)
        known = data.static_shape
        if known.rank is not None:
            found.set_shape([*list(known)[:axis], None, *list(known)[axis + 1 :]])
        return found


def _axis(axis: Any, data: Tensor) -> int:
    if not isinstance(axis, int):
        raise UsageError(f"axis: expected a number, not {axis!r}")
    rank = data.static_shape.rank
    if rank is None and axis < 0:
        raise UsageError(f"axis {axis}: '{data.name}' has no known rank to count it from")
    if rank is not None and not -rank <= axis < rank:
        raise UsageError(f"axis {axis} is out of range for '{data.name}' of shape {data.static_shape}")
    return axis + (rank or 0) if axis < 0 else axis


def _all_axes(x: Tensor) -> Any:
    rank = x.static_shape.rank
    return ops.range(0, array_ops.rank(x), 1) if rank is None else constant(np.arange(rank), dtypes.int32)


def _tiled(data: Tensor, axis: int, multiple: Tensor) -> Tensor:
    """Repeated along one axis."""
    rank = data.static_shape.rank
    if rank is not None:
        multiples: Any = [1] * rank
        multiples[axis] = multiple
    else:
        single = array_ops.ones(array_ops.rank(data), dtypes.int32)
        multiples = array_ops.concat([single[:axis], [multiple], single[axis + 1 :]], 0)
    return array_ops.tile(data, multiples)
