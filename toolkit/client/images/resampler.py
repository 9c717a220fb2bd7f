"""Pictures read at given places, with the gradient for both (tf.contrib.resampler)."""

from __future__ import annotations

from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor
from toolkit.client.math import math_ops
from toolkit.errors import GraphError
from toolkit.graph import dtypes


def resampler(data: Any, warp: Any, name: str | None = "resampler") -> Tensor:
    """What is found at each place, bilinear between four pixels; outside of the picture there is 0.

    Args:
        data: [batch, height, width, channels], floats.
        warp: places (x, y) in pixels, [batch, ..., 2].

    Returns:
        [batch, ..., channels].

    Raises:
        GraphError: the shapes are others, or known sizes of the batch differ.
    """
    with name_scope(name, "resampler", [data, warp]):
        data, warp = convert_to_tensor(data, name="data"), convert_to_tensor(warp, name="warp")
        given, places = data.static_shape, warp.static_shape
        if given.rank not in (None, 4):
            raise GraphError(f"data: expected [batch, height, width, channels], got shape {given}")
        if places.rank is not None and (places.rank < 2 or places[-1] not in (None, 2)):
            raise GraphError(f"warp: expected [batch, ..., 2], got shape {places}")
        sizes = array_ops.shape(data)
        batch, height, width = sizes[0], sizes[1], sizes[2]
        flat = array_ops.reshape(warp, array_ops.stack([batch, -1, 2]))
        x, y = flat[:, :, 0], flat[:, :, 1]
        left, top = ops.floor(x), ops.floor(y)
        right_share, low_share = x - left, y - top
        example = array_ops.expand_dims(math_ops.range(0, batch), 1) + array_ops.zeros_like(left, dtypes.int32)
        inside = _between(x, width) * _between(y, height)  # further out, and NaN: nothing
        total = None
        for column, of_x in ((left, 1 - right_share), (left + 1, right_share)):
            for row, of_y in ((top, 1 - low_share), (top + 1, low_share)):
                pixels = _pixels(data, example, row, column, height, width)
                part = pixels * array_ops.expand_dims(of_x * of_y, 2)
                total = part if total is None else total + part
        assert total is not None
        found = array_ops.where(
            array_ops.broadcast_to(array_ops.expand_dims(inside, 2) > 0.5, array_ops.shape(total)),
            total, array_ops.zeros_like(total),
        )  # fmt: skip
        shape = array_ops.concat([array_ops.shape(warp)[:-1], sizes[3:]], 0)
        shaped = array_ops.reshape(found, shape)
        if places.dims is not None and given.dims is not None:
            shaped.set_shape([*places.dims[:-1], given.dims[3]])
        return shaped


def _between(places: Tensor, size: Tensor) -> Tensor:
    """1 where a pixel of a side is at most one away, else 0."""
    end = math_ops.cast(size, places.dtype)
    return math_ops.cast(ops.logical_and(ops.greater(places, -1.0), ops.less(places, end)), places.dtype)


def _pixels(data: Tensor, example: Tensor, row: Tensor, column: Tensor, height: Tensor, width: Tensor) -> Tensor:
    """Pixels [batch, places, channels], 0 outside of the picture."""
    last_row, last_column = (math_ops.cast(size - 1, row.dtype) for size in (height, width))
    inside = ops.logical_and(
        ops.logical_and(ops.greater_equal(row, 0.0), ops.less_equal(row, last_row)),
        ops.logical_and(ops.greater_equal(column, 0.0), ops.less_equal(column, last_column)),
    )
    near_row = math_ops.cast(math_ops.minimum(math_ops.maximum(row, 0.0), last_row), dtypes.int32)
    near_column = math_ops.cast(math_ops.minimum(math_ops.maximum(column, 0.0), last_column), dtypes.int32)
    found = array_ops.gather_nd(data, array_ops.stack([example, near_row, near_column], axis=2))
    return found * array_ops.expand_dims(math_ops.cast(inside, data.dtype), 2)
