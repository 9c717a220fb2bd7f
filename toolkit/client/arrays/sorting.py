"""Order of elements: `sort`, `argsort`, `searchsorted`."""

from __future__ import annotations

from typing import Any

import numpy as np

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import DTypeLike, as_dtype, constant, convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.static_values import static_value
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.math import math_ops
from toolkit.errors import UsageError
from toolkit.graph import dtypes


def sort(values: TensorLike, axis: Any = -1, direction: str = "ASCENDING", name: str | None = None) -> Tensor:
    """The values along an axis in rising order, or falling ("DESCENDING").

    Raises:
        UsageError: another direction; an axis that is not known while the graph is made.
    """
    with name_scope(name, "sort"):
        return _sorted(values, axis, direction, False)


def argsort(
    values: TensorLike, axis: Any = -1, direction: str = "ASCENDING", stable: bool = False, name: str | None = None
) -> Tensor:
    """Where the values along an axis come from when they are sorted, int32; equal ones keep their order.

    Raises:
        UsageError: as `sort`.
    """
    del stable  # it always is
    with name_scope(name, "argsort"):
        return _sorted(values, axis, direction, True)


def _sorted(values: TensorLike, axis: Any, direction: str, places: bool) -> Tensor:
    if direction not in ("ASCENDING", "DESCENDING"):
        raise UsageError(f"direction {direction!r}: expected ASCENDING or DESCENDING")
    known = static_value(convert_to_tensor(axis, name="axis"))
    if known is None or known.ndim:
        raise UsageError("the axis to sort along must be a number that is known while the graph is made")
    values = convert_to_tensor(values, name="values")
    if direction == "DESCENDING":
        return _falling(values, int(known), places)
    dtype = values.dtype.base
    if dtype.kind == "u":
        largest = int(np.iinfo(dtype.numpy).max)
        found = _falling(largest - values, int(known), places)
        return found if places else largest - found
    if dtype.is_integer:  # the least has no negative
        found = _falling(-values - 1, int(known), places)
        return found if places else -found - 1
    found = _falling(-values, int(known), places)
    return found if places else -found


def _falling(values: Tensor, axis: int, places: bool) -> Tensor:
    """By the op for the k largest of the last axis."""
    count = array_ops.shape(values)[axis]
    rank = array_ops.rank(values)
    known = values.static_shape.rank
    order: Any = None
    if axis != -1 and axis + 1 != known:
        if known is not None:
            axis = axis + known if axis < 0 else axis
            swapped = np.r_[np.arange(axis), [known - 1], np.arange(axis + 1, known - 1), [axis]]
            order = constant(swapped, name="transposition")
        else:
            place: Any = axis + rank if axis < 0 else axis
            order = ops.tensor_scatter_update(math_ops.range(rank), [[place], [rank - 1]], [rank - 1, place])
        values = array_ops.transpose(values, order)
    found = ops.top_kv2(values, count)[1 if places else 0]
    return found if order is None else array_ops.transpose(found, order)


def searchsorted(
    sorted_sequence: TensorLike,
    values: TensorLike,
    side: str = "left",
    out_type: DTypeLike = dtypes.int32,
    name: str | None = None,
) -> Tensor:
    """Where each of `values` belongs in the sorted last axis: before ("left") or behind ("right") what is equal.

    Raises:
        UsageError: another side.
    """
    if side not in ("left", "right"):
        raise UsageError(f"side {side!r}: expected left or right")
    lengths = [_shape(each)[-1] for each in (sorted_sequence, values)]
    sequence = array_ops.reshape(sorted_sequence, [-1, lengths[0]])
    wanted = array_ops.reshape(values, [-1, lengths[1]])
    bound = ops.upper_bound if side == "right" else ops.lower_bound
    found = bound(sequence, wanted, out_type=as_dtype(out_type), name=name)
    return array_ops.reshape(found, _shape(values))


def _shape(value: TensorLike) -> Tensor:
    """The shape under the name that TensorFlow gives one whose type nobody asked for."""
    with name_scope(None, "Shape", [value]) as scope:
        tensor = convert_to_tensor(value)
        if tensor.static_shape.is_fully_defined:
            return convert_to_tensor(tensor.static_shape)
        return ops.shape(tensor, name=scope)
