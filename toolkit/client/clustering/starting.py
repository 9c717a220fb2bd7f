"""Where the centers of clusters begin."""

from __future__ import annotations

from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import constant
from toolkit.client.construction.tensor import Tensor
from toolkit.client.flow.control_flow import while_loop
from toolkit.client.math import math_ops
from toolkit.client.random import random_ops
from toolkit.graph import dtypes


def distances(points: Tensor, centers: Tensor) -> Tensor:
    """Squared distances [points, centers]."""
    of_points = math_ops.reduce_sum(math_ops.square(points), 1, keepdims=True)
    of_centers = array_ops.transpose(math_ops.reduce_sum(math_ops.square(centers), 1, keepdims=True))
    return of_points - 2 * math_ops.matmul(points, centers, transpose_b=True) + of_centers


def random_points(points: Tensor, count: Any, seed: Any) -> Tensor:
    """So many of the points, drawn one by one; some may come twice."""
    most = math_ops.cast(array_ops.shape(points)[0], dtypes.int64)
    at = random_ops.random_uniform(array_ops.reshape(count, [-1]), 0, most, dtype=dtypes.int64, seed=seed)
    return array_ops.gather(points, at)


def spread_points(points: Tensor, count: Any, seed: Any, retries: int) -> Tensor:
    """So many of the points, each far from those before (kmeans++).

    Args:
        retries: how many more points are drawn for each; the one that leaves the least distances is kept.

    Source: Arthur and Vassilvitskii, "k-means++: The Advantages of Careful Seeding", 2007.
    """
    first = random_points(points, [1], seed)
    nearest = array_ops.squeeze(math_ops.maximum(distances(points, first), 0.0), [1])
    loop_seed = None if seed is None else seed + 1

    def add(at: Any, centers: Any, nearest: Any) -> Any:
        # of points that are all chosen already, any may come again
        some = ops.greater(math_ops.reduce_sum(nearest), 0.0)
        shares = array_ops.where(some, nearest, array_ops.ones_like(nearest))
        drawn = random_ops.multinomial(array_ops.expand_dims(math_ops.log(shares), 0), 1 + retries, seed=loop_seed)
        candidates = array_ops.gather(points, drawn[0])
        left = math_ops.minimum(array_ops.expand_dims(nearest, 1), math_ops.maximum(distances(points, candidates), 0.0))
        best = math_ops.argmin(math_ops.reduce_sum(left, 0), 0)
        chosen = array_ops.gather(candidates, best)
        return (
            at + 1,
            array_ops.concat([centers, array_ops.expand_dims(chosen, 0)], 0),
            array_ops.gather(left, best, axis=1),
        )

    start = [constant(1, dtypes.int32), first, nearest]
    shapes = [[], [None, points.static_shape[1]], [None]]
    total = math_ops.cast(count, dtypes.int32)
    return while_loop(lambda at, *_: ops.less(at, total), add, start, shape_invariants=shapes)[1]
