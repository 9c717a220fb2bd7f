"""Places of elements: bins, rows of batches."""

from __future__ import annotations

from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.flow.control_flow import Assert, with_dependencies
from toolkit.client.math import clip_ops, math_ops
from toolkit.client.variables.scatter import scatter_nd
from toolkit.errors import GraphError, UsageError
from toolkit.graph import dtypes


def int32_tensor(value: TensorLike, name: str) -> Tensor:
    """A number of elements.

    Raises:
        UsageError: it is no integer.
    """
    tensor = convert_to_tensor(value, name=name, preferred_dtype=dtypes.int32)
    if not tensor.dtype.base.is_integer:
        raise UsageError(f"{name}: '{tensor.name}' is of {tensor.dtype}, expected integers")
    return ops.cast(tensor, DstT=dtypes.int32)


def histogram_fixed_width_bins(
    values: TensorLike, value_range: TensorLike, nbins: TensorLike = 100, name: str | None = None
) -> Tensor:
    """The number of the bin that each value falls into, int32; what is out of range is in the first or the last."""
    with name_scope(name, "histogram_fixed_width_bins", [values, value_range, nbins]):
        values = convert_to_tensor(values, name="values")
        shape = array_ops.shape(values)
        values = array_ops.reshape(values, [-1])
        bounds = convert_to_tensor(value_range, name="value_range")
        count = convert_to_tensor(nbins, dtypes.int32, name="nbins")
        positive = Assert(count > 0, [f'nbins Tensor("{count.name}", shape=(), dtype=int32) must > 0'])
        bins = math_ops.cast(with_dependencies([positive], count), values.dtype.base)
        scaled = _quotient(values - bounds[0], bounds[1] - bounds[0], "scaled_values")
        places = clip_ops.clip_by_value(ops.floor(bins * scaled, name="indices"), 0, bins - 1)
        return array_ops.reshape(math_ops.cast(places, dtypes.int32), shape)


def _quotient(x: Tensor, y: Tensor, name: str) -> Tensor:
    with name_scope(name, "truediv", [x, y]) as scope:
        return ops.real_div(x, y, name=scope)


def batch_gather(params: TensorLike, indices: TensorLike, name: str | None = None) -> Tensor:
    """Elements along the last axis of the batches that `indices` has.

    Raises:
        GraphError: the indices' rank is not known.
    """
    with name_scope(name, "BatchGather", [params, indices]):
        indices = convert_to_tensor(indices, name="indices")
        params = convert_to_tensor(params, name="params")
        rank = indices.static_shape.rank
        if rank is None:
            raise GraphError(f"batch_gather: '{indices.name}' has no known rank")
        return _from_batches(params, indices, rank - 1)


def _from_batches(params: Tensor, indices: Tensor, batch: int) -> Tensor:
    """One gather over all batches laid end to end."""
    rank, kind = indices.static_shape.rank or 0, indices.dtype.base
    shape, whole = array_ops.shape(indices), array_ops.shape(params)
    places = indices
    stride = array_ops.ones([], kind)
    sizes = ops.cast(whole, DstT=kind)
    for axis in range(batch, 0, -1):
        size = sizes[axis - 1]
        stride = stride * sizes[axis]
        start, step = array_ops.zeros([], kind), array_ops.ones([], kind)
        offsets = ops.range(start, size, step) * stride
        where = array_ops.stack([1] * (axis - 1) + [size] + [1] * (rank - axis), 0)
        places = places + array_ops.reshape(offsets, where)
    flat = array_ops.reshape(places, [-1])
    rest = whole[batch + 1 :]
    rows = ops.prod(whole[: batch + 1], [0], keep_dims=False)
    found = array_ops.gather(array_ops.reshape(params, array_ops.concat([[rows], rest], 0)), flat)
    found = array_ops.reshape(found, array_ops.concat([shape, rest], 0))
    if params.static_shape.rank is not None:
        tail = list(params.static_shape)[batch + 1 :]
        known = [a if a is not None else b for a, b in zip(indices.static_shape, params.static_shape, strict=False)]
        found.set_shape([*known[:batch], *list(indices.static_shape)[batch:], *tail])
    return found


def batch_scatter_update(
    ref: Any, indices: TensorLike, updates: TensorLike, use_locking: bool = True, name: str | None = None
) -> Any:
    """Write elements along the last axis of the batches that `indices` has.

    Raises:
        GraphError: the indices' rank is not known.
    """
    with name_scope(name, "", None):
        indices = convert_to_tensor(indices, name="indices")
        shape, rank = array_ops.shape(indices), indices.static_shape.rank
        if rank is None:
            raise GraphError(f"batch_scatter_update: '{indices.name}' has no known rank")
        last = array_ops.expand_dims(indices, -1)
        parts: list[Tensor] = []
        for axis in range(rank - 1):
            size = shape[axis]
            wide: list[Any] = [1] * (rank + 1)
            wide[axis] = size
            numbers = array_ops.reshape(ops.range(0, size, 1), wide)
            if numbers.dtype.base is not last.dtype.base:
                numbers = ops.cast(numbers, DstT=last.dtype.base)
            parts.append(numbers * array_ops.ones_like(last))
        places = array_ops.concat([*parts, last], -1)
        return scatter_nd("ScatterNdUpdate", ref, places, updates, use_locking)
