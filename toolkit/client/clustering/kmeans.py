"""k-means: each point belongs to the nearest center, each center is the mean of its points."""

from __future__ import annotations

from typing import Any

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.checks.assertions import assert_equal, assert_greater_equal
from toolkit.client.clustering.starting import distances, random_points, spread_points
from toolkit.client.construction.convert import constant, convert_to_tensor
from toolkit.client.construction.grouping import group
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.scopes import control_dependencies
from toolkit.client.construction.tensor import Tensor
from toolkit.client.flow.control_flow import cond
from toolkit.client.math import math_ops
from toolkit.client.variables.creation import Variable
from toolkit.errors import ArgumentValueError
from toolkit.graph import dtypes

SQUARED_EUCLIDEAN_DISTANCE = "squared_euclidean"
COSINE_DISTANCE = "cosine"
RANDOM_INIT = "random"
KMEANS_PLUS_PLUS_INIT = "kmeans_plus_plus"
CENTERS = "clusters"
#: what keeps a center without points finite
_EPSILON = 1e-6
#: what is added under the root of a length (tf.nn.l2_normalize)
_LENGTH = 1e-12


def check_choices(initial_clusters: Any, distance_metric: str) -> None:
    """Raise a ValueError for a way to begin, or a distance, that is none."""
    starts = (RANDOM_INIT, KMEANS_PLUS_PLUS_INIT)
    if isinstance(initial_clusters, str) and initial_clusters not in starts:
        raise ArgumentValueError(f"initial_clusters: expected one of {', '.join(starts)}, got {initial_clusters!r}")
    metrics = (SQUARED_EUCLIDEAN_DISTANCE, COSINE_DISTANCE)
    if distance_metric not in metrics:
        raise ArgumentValueError(f"distance_metric: expected one of {', '.join(metrics)}, got {distance_metric!r}")


def _unit(x: Any) -> Tensor:
    """Rows of length 1."""
    x = convert_to_tensor(x)
    squares = math_ops.reduce_sum(math_ops.square(x), 1, keepdims=True)
    return x * math_ops.rsqrt(math_ops.maximum(squares, _LENGTH))


class KMeans:
    """The graph of k-means.

    Args:
        inputs: points [count, size], or a list of such.
        num_clusters: how many centers.
        initial_clusters: "random", "kmeans_plus_plus", centers, or a function of the inputs and of how many lack.
        distance_metric: "squared_euclidean" or "cosine".
        use_mini_batch: centers move towards the points of each step; else they become the mean of the inputs.
        mini_batch_steps_per_iteration: so many steps use the same centers.
        random_seed: of what is drawn.
        kmeans_plus_plus_num_retries: see `starting.spread_points`.
        kmc2_chain_length: nothing draws by chains here.

    Raises:
        ValueError: an unknown way to begin, or distance.
    """

    def __init__(
        self, inputs: Any, num_clusters: Any, initial_clusters: Any = RANDOM_INIT,
        distance_metric: str = SQUARED_EUCLIDEAN_DISTANCE, use_mini_batch: bool = False,
        mini_batch_steps_per_iteration: int = 1, random_seed: Any = 0, kmeans_plus_plus_num_retries: int = 2,
        kmc2_chain_length: int = 200,
    ):  # fmt: skip
        check_choices(initial_clusters, distance_metric)
        several: Any = inputs if isinstance(inputs, list) else [inputs]  # pyright: ignore[reportUnknownVariableType]  # anything
        self._inputs = [convert_to_tensor(each) for each in several]
        self._count, self._start, self._seed = num_clusters, initial_clusters, random_seed
        self._cosine = distance_metric == COSINE_DISTANCE
        self._mini, self._steps = use_mini_batch, int(mini_batch_steps_per_iteration)
        self._retries = kmeans_plus_plus_num_retries

    def training_graph(self) -> tuple[Any, Any, Any, Any, Any, Any]:
        """Distances to all centers, the nearest center and the distance to it, each a tuple with one entry for each of
        the inputs; the variable that says whether the centers are there; what makes them; and a step of training."""
        given = self._start
        if not isinstance(given, str) and not callable(given):
            given = convert_to_tensor(given)
            self._count = array_ops.shape(given)[0]
        count = convert_to_tensor(self._count)
        late = self._mini and self._steps > 1
        nothing = constant([], dtypes.float32)
        centers = Variable(nothing, name=CENTERS, validate_shape=False, use_resource=False)
        there = Variable(False, dtype=dtypes.bool_, name="initialized", use_resource=False)
        updated, waiting, totals = centers, None, None
        if late:
            updated = Variable(nothing, name="clusters_updated", validate_shape=False, use_resource=False)
            waiting = Variable(self._steps, dtype=dtypes.int64, name="update_in_steps", use_resource=False)
            totals = Variable(array_ops.zeros([count], dtypes.int64), use_resource=False)
        elif self._mini:
            totals = Variable(array_ops.ones([count], dtypes.int64), use_resource=False)
        begin = self._begin(given, count, centers, updated, there)
        points, used = self._inputs, centers.to_tensor()
        unit = self._cosine and (not self._mini or late)  # the variable's rows have length 1
        if self._cosine:
            points = [_unit(each) for each in points]
            used = used if unit else _unit(used)
        found = [self._nearest(each, used) for each in points]
        everything, nearest, least = (tuple(each) for each in zip(*found, strict=True))
        if not self._mini:
            step: Any = self._full_step(points, count, nearest, centers, unit)
        else:
            moved = ops.no_op() if waiting is None else self._publish(waiting, centers, updated, totals)
            with control_dependencies([moved]):
                step = self._mini_step(points, nearest, updated, totals)
        return everything, nearest, least, there, begin, step

    def _nearest(self, points: Tensor, centers: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        if self._cosine:
            everything = 1 - math_ops.matmul(points, centers, transpose_b=True)
        else:
            everything = distances(points, centers)
        least, at = ops.nearest_neighbors(points, centers, 1)[::-1]
        if self._cosine:
            least = least * 0.5  # half the squared distance of points of length 1
        return everything, array_ops.squeeze(at, [-1]), array_ops.squeeze(least, [-1])

    def _full_step(self, points: list[Tensor], count: Tensor, nearest: Any, centers: Any, unit: bool) -> Any:
        sums: list[Tensor] = []
        counts: list[Tensor] = []
        for each, at in zip(points, nearest, strict=True):
            sums.append(math_ops.unsorted_segment_sum(each, at, count))
            ones = array_ops.ones(array_ops.stack([array_ops.shape(each)[0], 1]))
            counts.append(math_ops.unsorted_segment_sum(ones, at, count))
        means = math_ops.add_n(sums) / (math_ops.cast(math_ops.add_n(counts), sums[0].dtype) + _EPSILON)
        return _assign(centers, _unit(means) if unit else means)

    def _mini_step(self, points: list[Tensor], nearest: Any, centers: Any, totals: Any) -> Operation:
        """Centers become means of all points that they were the nearest of."""
        updates: list[Any] = []
        for each, at in zip(points, nearest, strict=True):
            ids, places = ops.unique(array_ops.reshape(at, [-1]))
            several = array_ops.size(ids)
            before = array_ops.gather(totals.read_value(), ids)
            old = array_ops.gather(centers.read_value(), ids)
            new = math_ops.unsorted_segment_sum(array_ops.ones_like(places, dtypes.int64), places, several)
            sums = math_ops.unsorted_segment_sum(each, places, several)
            as_column = array_ops.expand_dims(math_ops.cast(new, each.dtype), 1)
            share = ops.reciprocal(array_ops.expand_dims(math_ops.cast(before + new, each.dtype), 1))
            updates.append(ops.scatter_add(totals.handle, ids, new))
            updates.append(ops.scatter_add(centers.handle, ids, (sums - as_column * old) * share))
        return group(updates)

    def _publish(self, waiting: Any, centers: Any, updated: Any, totals: Any) -> Any:
        """Once in so many steps the centers become those that were updated meanwhile."""

        def publish() -> Tensor:
            new = _unit(updated) if self._cosine else updated.to_tensor()
            again = [waiting.assign(self._steps - 1), _assign(centers, new)]
            with control_dependencies([*again, totals.assign(array_ops.zeros_like(totals))]):
                return constant(0, dtypes.int64)

        return cond(ops.less_equal(waiting, 0), publish, lambda: array_ops.identity(waiting.assign_sub(1)))

    def _begin(self, given: Any, count: Tensor, centers: Any, updated: Any, there: Any) -> Any:
        """What adds centers, as many as lack or as the inputs give; it is run until `there`."""
        chosen = array_ops.shape(centers)[0]
        lacking = count - chosen
        points = array_ops.concat(self._inputs, 0) if len(self._inputs) > 1 else self._inputs[0]
        have = array_ops.shape(points)[0]

        def new() -> Any:
            if given == RANDOM_INIT:
                return cond(
                    ops.less_equal(have, lacking), lambda: array_ops.identity(points),
                    lambda: random_points(points, lacking, self._seed),
                )  # fmt: skip
            if given == KMEANS_PLUS_PLUS_INIT:
                with control_dependencies([assert_greater_equal(have, lacking)]):
                    inputs = array_ops.identity(_unit(points) if self._cosine else points)
                    return spread_points(inputs, lacking, self._seed, self._retries)
            if callable(given):
                return convert_to_tensor(given(self._inputs, lacking))
            with control_dependencies([assert_equal(lacking, array_ops.shape(given)[0])]):
                return array_ops.identity(given)

        def add() -> Tensor:
            found = new()
            found = _unit(found) if self._cosine else found
            whole = cond(
                math_ops.equal(chosen, 0), lambda: array_ops.identity(found),
                lambda: array_ops.concat([centers, found], 0),
            )  # fmt: skip
            kept = _assign(centers, whole)
            if updated is not centers:
                kept = _assign(updated, kept)
            left = count - array_ops.shape(kept)[0]
            return cond(
                math_ops.equal(left, 0), lambda: array_ops.identity(there.assign(True)), lambda: constant(False)
            )

        return cond(math_ops.equal(lacking, 0), lambda: array_ops.identity(there), add).op


def _assign(variable: Any, value: Any) -> Tensor:
    return ops.assign(variable.handle, value, validate_shape=False)
