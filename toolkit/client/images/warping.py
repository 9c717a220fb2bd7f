"""Pictures warped by a field of offsets, or by points that are to come to lie elsewhere."""

from __future__ import annotations

from toolkit.client import ops
from toolkit.client.arrays import array_ops, grids
from toolkit.client.checks.assertions import assert_greater_equal, assert_rank
from toolkit.client.construction.convert import constant, convert_to_tensor
from toolkit.client.construction.scopes import control_dependencies, name_scope
from toolkit.client.construction.tensor import Tensor, TensorLike
from toolkit.client.linalg import linalg_ops
from toolkit.client.math import math_ops
from toolkit.graph import dtypes

#: in place of squared distances below it, so that neither log nor the gradient of the root meets 0
_NO_DISTANCE = 1e-10


def dense_image_warp(image: TensorLike, flow: TensorLike, name: str = "dense_image_warp") -> Tensor:
    """Each pixel (row, column) taken from (row, column) - flow, between four pixels; beyond the edge, from the edge.

    Args:
        image: [batch, rows, columns, channels], at least 2 by 2 pixels.
        flow: [batch, rows, columns, 2].

    Raises:
        ValueError: `image` has not four dimensions.
    """
    with name_scope(name):
        image, flow = convert_to_tensor(image), convert_to_tensor(flow)
        batch, height, width, channels = array_ops.unstack(array_ops.shape(image), num=4)
        columns, rows = grids.meshgrid([math_ops.range(width), math_ops.range(height)])
        here = math_ops.cast(array_ops.stack([rows, columns], axis=2), flow.dtype.base)
        points = array_ops.reshape(array_ops.expand_dims(here, 0) - flow, [batch, height * width, 2])
        return array_ops.reshape(_between_pixels(image, points), [batch, height, width, channels])


def _between_pixels(image: Tensor, points: Tensor) -> Tensor:
    """Values [batch, n, channels] at points [batch, n, 2], bilinear between the four pixels around each."""
    if image.static_shape.rank not in (None, 4):
        raise ValueError(f"image: expected [batch, rows, columns, channels], got shape {image.static_shape}")
    batch, height, width, channels = array_ops.unstack(array_ops.shape(image), num=4)
    enough = [
        assert_greater_equal(size, 2, message=f"image: expected at least 2 {what}")
        for size, what in ((height, "rows"), (width, "columns"))
    ]
    with control_dependencies([*enough, assert_rank(points, 3)]):
        parts = array_ops.unstack(points, num=2, axis=2)
    firsts: list[Tensor] = []
    shares: list[Tensor] = []
    for part, size in zip(parts, (height, width), strict=True):
        last = math_ops.cast(size - 2, part.dtype.base)
        first = ops.minimum(ops.maximum(constant(0.0, part.dtype.base), ops.floor(part)), last)
        share = math_ops.cast(part - first, image.dtype.base)
        low, high = (constant(bound, image.dtype.base) for bound in (0.0, 1.0))
        shares.append(array_ops.expand_dims(ops.minimum(ops.maximum(low, share), high), 2))
        firsts.append(math_ops.cast(first, dtypes.int32))
    pixels = array_ops.reshape(image, [batch * height * width, channels])
    starts = array_ops.reshape(math_ops.range(batch) * height * width, [batch, 1])

    def at(rows: Tensor, columns: Tensor) -> Tensor:
        return array_ops.gather(pixels, starts + rows * width + columns)

    (top, left), (down, right) = firsts, shares
    upper, lower = (right * (at(rows, left + 1) - at(rows, left)) + at(rows, left) for rows in (top, top + 1))
    return down * (lower - upper) + upper


def interpolate_spline(
    train_points: TensorLike, train_values: TensorLike, query_points: TensorLike, order: int,
    regularization_weight: float = 0.0, name: str = "interpolate_spline",
) -> Tensor:  # fmt: skip
    """Values [batch, m, k] at points, by the polyharmonic spline through known ones.

    Args:
        train_points: [batch, n, d], d known.
        train_values: [batch, n, k], k known.
        query_points: [batch, m, d].
        order: of the spline: 1 is r, 2 the thin plate r^2 log r, 3 is r^3.
        regularization_weight: from 0, through all values, on to smoother ones.

    Raises:
        ValueError: d or k is not known.
    """
    with name_scope(name):
        points, values, asked = (convert_to_tensor(each) for each in (train_points, train_values, query_points))
        dimensions, count = points.static_shape.with_rank(3)[2], values.static_shape.with_rank(3)[2]
        if dimensions is None or count is None:
            raise ValueError(
                "interpolate_spline: the last dimensions of train_points and train_values have to be known"
            )
        batch, known, _ = array_ops.unstack(array_ops.shape(points), num=3)
        matrix = _radial(_squared_distances(points, points), order)
        if regularization_weight > 0:
            matrix = matrix + regularization_weight * array_ops.expand_dims(
                linalg_ops.eye(known, dtype=points.dtype.base), 0
            )
        plane = _with_ones(points)
        corner = array_ops.zeros([batch, dimensions + 1, dimensions + 1], points.dtype.base)
        left = array_ops.concat([matrix, array_ops.transpose(plane, [0, 2, 1])], 1)
        system = array_ops.concat([left, array_ops.concat([plane, corner], 1)], 2)
        right = array_ops.concat([values, array_ops.zeros([batch, dimensions + 1, count], points.dtype.base)], 1)
        solved = ops.matrix_solve(system, right)
        bumps = math_ops.matmul(_radial(_squared_distances(asked, points), order), solved[:, :known, :])
        return bumps + math_ops.matmul(_with_ones(asked), solved[:, known:, :])


def _with_ones(points: Tensor) -> Tensor:
    return array_ops.concat([points, array_ops.ones_like(points[..., :1])], 2)


def _squared_distances(one: Tensor, other: Tensor) -> Tensor:
    """[batch, n, m], of rows of [batch, n, d] and [batch, m, d]."""
    squares, others = (math_ops.reduce_sum(ops.square(each), 2) for each in (one, other))
    products = math_ops.matmul(one, other, adjoint_b=True)
    return array_ops.expand_dims(squares, 2) - 2 * products + array_ops.expand_dims(others, 1)


def _radial(squares: Tensor, order: int) -> Tensor:
    """r^order for odd orders, r^order log r for even ones, of r^2."""
    positive = ops.maximum(squares, _NO_DISTANCE)
    if order == 1:
        return ops.sqrt(positive)
    if order == 2:
        return 0.5 * squares * ops.log(positive)
    if order == 4:
        return 0.5 * ops.square(squares) * ops.log(positive)
    if order % 2 == 0:
        return 0.5 * ops.pow(positive, 0.5 * order) * ops.log(positive)
    return ops.pow(positive, 0.5 * order)


def sparse_image_warp(
    image: TensorLike, source_control_point_locations: TensorLike, dest_control_point_locations: TensorLike,
    interpolation_order: int = 2, regularization_weight: float = 0.0, num_boundary_points: int = 0,
    name: str = "sparse_image_warp",
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """A picture warped so that control points come to lie where they are said to, and the flow that does it.

    Args:
        image: [batch, rows, columns, channels], all but the last known.
        source_control_point_locations, dest_control_point_locations: [batch, points, 2], rows and columns.
        num_boundary_points: 0 lets the edges move; from 1 on the corners stay, and n - 1 points of each edge.

    Raises:
        ValueError: the size of `image` is not known.
    """
    image = convert_to_tensor(image)
    source = convert_to_tensor(source_control_point_locations)
    target = convert_to_tensor(dest_control_point_locations)
    moves = target - source
    with name_scope(name):
        batch, height, width, _ = image.static_shape.with_rank(4)
        if batch is None or height is None or width is None:
            raise ValueError(f"image: batch, rows and columns have to be known, got shape {image.static_shape}")
        grid = [[float(row), float(column)] for row in range(height) for column in range(width)]
        everywhere = constant([grid] * batch, image.dtype.base)
        if num_boundary_points > 0:
            edge = _edge(height, width, num_boundary_points - 1)
            target = array_ops.concat([target, constant([edge] * batch, target.dtype.base)], 1)
            moves = array_ops.concat([moves, array_ops.zeros([batch, len(edge), 2], target.dtype.base)], 1)
        flow = interpolate_spline(target, moves, everywhere, interpolation_order, regularization_weight)
        flow = array_ops.reshape(flow, [batch, height, width, 2])
        return dense_image_warp(image, flow), flow


def _edge(height: int, width: int, between: int) -> list[list[float]]:
    """Points along the edge: corners, and `between` on each side, by rows."""
    steps = range(between + 2)
    last = between + 1
    return [
        [(height - 1) * row / last, (width - 1) * column / last]
        for row in steps
        for column in steps
        if row in (0, last) or column in (0, last)
    ]
