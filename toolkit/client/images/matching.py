"""Pixels that belong together, and rows matched with columns."""

from __future__ import annotations

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import constant, convert_to_tensor
from toolkit.client.construction.scopes import name_scope
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.flow.control_flow import while_loop
from toolkit.client.math import math_ops
from toolkit.graph import dtypes


def connected_components(images: TensorLike) -> Tensor:
    """Numbers from 1 on for areas of equal pixels that touch at their sides, in the order of their first pixels.

    TensorFlow 1.15 had an op of its own for it; here each pixel takes the smallest number around it, and that pixel's,
    until nothing changes.

    Args:
        images: [rows, columns] or [batch, rows, columns]; what is 0 (or false, or empty) is in no area and stays 0.

    Returns:
        int64, of the shape of `images`.

    Raises:
        TypeError: another rank.
    """
    with name_scope("connected_components"):
        given = convert_to_tensor(images, name="images")
        if given.static_shape.rank not in (2, 3):
            raise TypeError(f"images: expected 2 or 3 dimensions, got a tensor of shape {given.static_shape}")
        batch = given[None, :, :] if given.static_shape.rank == 2 else given
        size = array_ops.shape(batch)
        inside = ops.not_equal(batch, array_ops.zeros_like(batch))
        own = array_ops.reshape(math_ops.range(array_ops.size(batch)), size)
        # far more than any pixel's number, so that it is never the smallest
        nobody = dtypes.int32.max
        links = [ops.equal(a, b) for a, b in (_neighbours(batch, axis) for axis in (1, 2))]

        def smallest(labels: Tensor) -> Tensor:
            for axis, linked in zip((1, 2), links, strict=True):
                before, after = _neighbours(labels, axis)
                least = ops.minimum(before, after)
                edge = array_ops.zeros_like(labels[:, :1] if axis == 1 else labels[:, :, :1])
                labels = ops.minimum(
                    array_ops.concat([array_ops.where_v2(linked, least, before), edge + nobody], axis),
                    array_ops.concat([edge + nobody, array_ops.where_v2(linked, least, after)], axis),
                )
            return labels

        def step(labels: Tensor, changed: Tensor) -> tuple[Tensor, Tensor]:
            del changed
            around = smallest(labels)
            nearer = array_ops.gather(array_ops.reshape(around, [-1]), around)
            return nearer, math_ops.reduce_any(ops.not_equal(nearer, labels))

        labels, _ = while_loop(lambda labels, changed: changed, step, [own, constant(True)])
        first = ops.logical_and(ops.equal(labels, own), inside)
        numbers = ops.cumsum(array_ops.reshape(math_ops.cast(first, dtypes.int64), [-1]), 0)
        found = array_ops.where_v2(inside, array_ops.gather(numbers, labels), constant(0, dtypes.int64))
        found.set_shape(batch.static_shape)
        return found[0, :, :] if given.static_shape.rank == 2 else found


def _neighbours(values: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    """All but the last, and all but the first, along an axis."""
    return (values[:, :-1], values[:, 1:]) if axis == 1 else (values[:, :, :-1], values[:, :, 1:])


def bipartite_match(
    distance_mat: TensorLike, num_valid_rows: TensorLike, top_k: int = -1, name: str = "bipartite_match"
) -> tuple[Tensor, Tensor]:
    """Rows and columns paired, the nearest pair first, each once.

    Args:
        distance_mat: [rows, columns] of float32.
        num_valid_rows: how many rows take part, a number or [1]; all, if it is negative.
        top_k: how many pairs at most; -1 for as many as there can be.

    Returns:
        The column of each row and the row of each column, int32; -1 where there is none.
    """
    with name_scope(name):
        distances = convert_to_tensor(distance_mat, dtypes.float32)
        rows, columns = array_ops.unstack(array_ops.shape(distances), num=2)
        valid = math_ops.cast(array_ops.reshape(convert_to_tensor(num_valid_rows), []), dtypes.int32)
        valid = array_ops.where_v2(ops.less(valid, 0), rows, ops.minimum(valid, rows))
        pairs = ops.minimum(valid, columns)
        if top_k >= 0:
            pairs = ops.minimum(pairs, top_k)
        far = constant(float("inf"), dtypes.float32)
        row_numbers, column_numbers = math_ops.range(rows), math_ops.range(columns)
        open_rows = array_ops.expand_dims(ops.less(row_numbers, valid), 1)

        def step(count: Tensor, of_rows: Tensor, of_columns: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            free = ops.logical_and(
                ops.logical_and(open_rows, array_ops.expand_dims(ops.less(of_rows, 0), 1)),
                array_ops.expand_dims(ops.less(of_columns, 0), 0),
            )
            left = array_ops.reshape(array_ops.where_v2(free, distances, far), [-1])
            best = math_ops.argmin(left, 0, output_type=dtypes.int32)
            row, column = ops.floor_div(best, columns), ops.floor_mod(best, columns)
            return (
                count + 1,
                array_ops.where_v2(ops.equal(row_numbers, row), column, of_rows),
                array_ops.where_v2(ops.equal(column_numbers, column), row, of_columns),
            )

        start = [constant(0), array_ops.fill([rows], -1), array_ops.fill([columns], -1)]
        _, of_rows, of_columns = while_loop(lambda count, *_: ops.less(count, pairs), step, start)
        return of_rows, of_columns
