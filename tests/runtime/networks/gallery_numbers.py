"""Models of tables, graphs and equations: trees, message passing, clustering, solvers, quantised layers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from tests.runtime.networks.gallery import example

RANDOM = np.random.default_rng(54)


def _normal(*shape: int, scale: float = 1.0) -> Any:
    return (scale * RANDOM.standard_normal(shape)).astype(np.float32)


EDGES = np.int32([[0, 1, 2, 3, 4, 5, 1, 0], [1, 2, 0, 4, 5, 3, 0, 2]])


@example(
    {
        "nodes": _normal(6, 4),
        "edges": EDGES,
        "weight": np.float32([1, 2, 1, 3, 1, 1, 2, 0.5]),
        "graph": np.int32([0, 0, 0, 1, 1, 1]),
    },
    {"message": _normal(9, 5, scale=0.5), "update": _normal(9, 4, scale=0.5), "read": _normal(8, 3)},
)
def message_passing(tf: Any, w: SimpleNamespace, x: SimpleNamespace) -> dict[str, Any]:
    """A graph network: messages along edges, softmax over each node's edges, sums, means and maxima of graphs."""
    source, target = x.edges[0], x.edges[1]
    count = tf.shape(x.nodes)[0]
    state = x.nodes
    for _ in range(2):
        pair = tf.concat([tf.gather(state, source), tf.gather(state, target), x.weight[:, None]], 1)
        message = tf.nn.selu(pair @ w.message)
        score = message[:, 0]
        score = tf.exp(score - tf.gather(tf.math.unsorted_segment_max(score, target, count), target))
        share = score / tf.gather(tf.math.unsorted_segment_sum(score, target, count), target)
        arrived = tf.math.unsorted_segment_sum(message * share[:, None], target, count)
        state = tf.tanh(tf.concat([state, arrived], 1) @ w.update)
    pooled = tf.concat([tf.math.segment_mean(state, x.graph), tf.math.segment_max(state, x.graph)], 1)
    degree = tf.math.bincount(target, minlength=count)
    adjacency = tf.scatter_nd(tf.transpose(x.edges), x.weight, [count, count])
    sparse = tf.sparse.reorder(
        tf.SparseTensor(tf.cast(tf.transpose(x.edges), tf.int64), x.weight, tf.cast([count, count], tf.int64))
    )
    spread = tf.sparse.sparse_dense_matmul(sparse, state, adjoint_a=True)
    return {
        "graphs": pooled @ w.read,
        "degree": degree,
        "adjacency": adjacency,
        "spread": spread,
        "rms": tf.math.unsorted_segment_sqrt_n(state, x.graph, 2),
    }


@example({"row": _normal(4)})
def tree_of_branches(tf: Any, w: SimpleNamespace, x: SimpleNamespace) -> dict[str, Any]:
    """A decision tree as nested conds, of which some leaves compute and some only answer."""
    a, b, c = x.row[0], x.row[1], x.row[2]

    def right() -> Any:
        return tf.cond(c > 0.0, lambda: (tf.constant("warm"), a + b), lambda: (tf.constant("cold"), tf.sqrt(tf.abs(c))))

    def left() -> Any:
        inner = lambda: tf.cond(b > c, lambda: (tf.constant("even"), b), lambda: (tf.constant("odd"), -b))  # noqa: E731
        return tf.cond(b > 0.5, lambda: (tf.constant("high"), tf.reduce_max(x.row)), inner)

    name, value = tf.cond(a > 0.0, left, right)
    deeper = tf.switch_case(
        tf.cast(tf.abs(a) * 10, tf.int32) % 3, [lambda: value, lambda: value * 2, right_value(tf, x)]
    )
    return {"name": name, "value": value, "deeper": deeper}


def right_value(tf: Any, x: SimpleNamespace) -> Any:
    return lambda: tf.foldl(
        lambda total, item: tf.cond(item > 0, lambda: total + item, lambda: total), x.row, tf.constant(0.0)
    )


@example(
    {"rows": _normal(5, 3)},
    {
        "feature": np.int32([[0, 1, 2, -1, -1, -1, -1], [2, 0, 1, -1, -1, -1, -1]]),
        "cut": _normal(2, 7, scale=0.4),
        "leaf": _normal(2, 7),
    },
)
def boosted_trees(tf: Any, w: SimpleNamespace, x: SimpleNamespace) -> dict[str, Any]:
    """Trees in arrays: every row walks down every tree in a loop until all stand on leaves."""
    count = tf.shape(x.rows)[0]
    feature, cut = tf.convert_to_tensor(w.feature), tf.convert_to_tensor(w.cut)

    def down(at: Any) -> Any:
        asked = tf.gather(feature, at, batch_dims=1)
        value = tf.gather(tf.tile(x.rows[None], [2, 1, 1]), tf.maximum(asked, 0), batch_dims=2)
        after = 2 * at + 1 + tf.cast(value > tf.gather(cut, at, batch_dims=1), tf.int32)
        return [tf.where(asked < 0, at, after)]

    start = tf.zeros([2, count], tf.int32)
    (at,) = tf.while_loop(lambda at: tf.reduce_any(tf.gather(feature, at, batch_dims=1) >= 0), down, [start])
    margin = tf.reduce_sum(tf.gather(w.leaf, at, batch_dims=1), 0)
    return {"leaves": tf.transpose(at), "probability": tf.sigmoid(margin)}


@example({"points": _normal(12, 3), "wanted": np.int32(3)})
def clusters(tf: Any, w: SimpleNamespace, x: SimpleNamespace) -> dict[str, Any]:
    """Centres that move until they rest, their members, the nearest neighbours of every point."""

    def nearest(centers: Any) -> Any:
        return tf.argmin(tf.reduce_sum((x.points[:, None] - centers[None]) ** 2, -1), 1, tf.int32)

    def move(step: Any, centers: Any, change: Any) -> list[Any]:
        member = nearest(centers)
        after = tf.math.unsorted_segment_mean(x.points, member, x.wanted)
        return [step + 1, after, tf.reduce_max(tf.abs(after - centers))]

    state = [0, x.points[: x.wanted], tf.constant(1.0)]
    shapes = [tf.TensorShape([]), tf.TensorShape([None, None]), tf.TensorShape([])]
    steps, centers, _ = tf.while_loop(
        lambda step, _, change: tf.logical_and(change > 1e-5, step < 30), move, state, shape_invariants=shapes
    )
    square = tf.reduce_sum(x.points**2, 1)
    distance = square[:, None] + square[None] - 2.0 * tf.matmul(x.points, x.points, transpose_b=True)
    apart = tf.linalg.set_diag(distance, tf.fill([tf.shape(x.points)[0]], 1e6))
    _, neighbours = tf.math.top_k(-apart, 3)
    near = tf.gather(x.points, neighbours)
    return {
        "steps": steps,
        "centers": centers,
        "member": nearest(centers),
        "neighbours": neighbours,
        "local": near - x.points[:, None],
        "spread": tf.math.reduce_std(near, 1),
    }


@example({"start": np.float32([1.0, 0.5]), "until": np.float32(3.0)}, {"rate": np.float32([1.1, 0.4, 0.1, 0.4])})
def equations(tf: Any, w: SimpleNamespace, x: SimpleNamespace) -> dict[str, Any]:
    """Runge and Kutta's steps of a predator and its prey with a step size that adapts; all values kept."""

    def slope(y: Any) -> Any:
        prey, hunter = y[0], y[1]
        return tf.stack([w.rate[0] * prey - w.rate[1] * prey * hunter, w.rate[2] * prey * hunter - w.rate[3] * hunter])

    def step(n: Any, time: Any, size: Any, y: Any, kept: Any) -> list[Any]:
        k1 = slope(y)
        k2 = slope(y + size / 2 * k1)
        k3 = slope(y + size / 2 * k2)
        k4 = slope(y + size * k3)
        after = y + size / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        error = tf.reduce_max(tf.abs(after - (y + size * k2)))
        good = error < 0.02
        kept = kept.write(n, tf.concat([[time], y], 0))
        return [
            n + 1,
            tf.where(good, time + size, time),
            tf.where(good, size * 1.2, size * 0.5),
            tf.where(good, after, y),
            kept,
        ]

    kept = tf.TensorArray(tf.float32, 0, dynamic_size=True, element_shape=[3], clear_after_read=False)
    state = [0, tf.constant(0.0), tf.constant(0.2), x.start, kept]
    n, time, _, y, kept = tf.while_loop(lambda n, time, *_: tf.logical_and(time < x.until, n < 60), step, state)
    return {"count": n, "end": y, "path": kept.stack(), "middle": kept.read(n // 2), "time": time}


@example({"matrix": _normal(2, 4, 4), "right": _normal(2, 4, 2)})
def algebra(tf: Any, w: SimpleNamespace, x: SimpleNamespace) -> dict[str, Any]:
    """Solving, least squares, eigenvalues, singular values, projections, matrix functions."""
    symmetric = tf.matmul(x.matrix, x.matrix, transpose_b=True) + tf.eye(4)
    values, vectors = tf.linalg.eigh(symmetric)
    whiten = tf.einsum("bij,bj,bkj->bik", vectors, tf.math.rsqrt(values), vectors)
    singular = tf.linalg.svd(x.matrix, compute_uv=False)
    q, r = tf.linalg.qr(x.matrix)
    return {
        "solved": tf.linalg.solve(symmetric, x.right),
        "values": values,
        "singular": singular,
        "white": whiten @ x.right,
        "same": q @ r,
        "exponential": tf.linalg.expm(0.3 * x.matrix),
        "root": tf.linalg.sqrtm(symmetric),
        "fit": tf.linalg.lstsq(x.matrix, x.right, l2_regularizer=0.1),
        "determinant": tf.linalg.det(symmetric),
        "band": tf.linalg.band_part(x.matrix, 1, 0),
        "pinv": tf.linalg.pinv(symmetric),
        "cross": tf.linalg.cross(x.matrix[:, :3, 0], x.matrix[:, :3, 1]),
        "chol": tf.linalg.cholesky_solve(tf.linalg.cholesky(symmetric), x.right),
    }


@example({"x": _normal(3, 6)}, {"kernel": _normal(6, 4, scale=0.5), "low": np.float32(-1.5), "high": np.float32(1.5)})
def quantised(tf: Any, w: SimpleNamespace, x: SimpleNamespace) -> dict[str, Any]:
    """Weights and activations rounded to eight bits in training's way, and a product of integers."""
    kernel = tf.quantization.fake_quant_with_min_max_vars(w.kernel, w.low, w.high, num_bits=8, narrow_range=True)
    hidden = tf.quantization.fake_quant_with_min_max_args(x.x @ kernel, -6.0, 6.0)
    scale = tf.reduce_max(tf.abs(x.x)) / 127.0
    whole = tf.cast(tf.round(x.x / scale), tf.int32)
    weights = tf.cast(tf.round(w.kernel * 50.0), tf.int32)
    product = tf.cast(tf.matmul(whole, weights), tf.float32) * scale / 50.0
    packed = tf.bitcast(tf.cast(whole, tf.int8), tf.uint8)
    bits = tf.reduce_sum(tf.cast(tf.raw_ops.PopulationCount(x=packed), tf.int32), 1)
    return {
        "hidden": hidden,
        "product": product,
        "bits": bits,
        "half": tf.cast(tf.cast(x.x, tf.bfloat16) * 2, tf.float32),
        "mask": tf.bitwise.bitwise_and(packed, tf.constant(15, tf.uint8)),
    }


@example(
    {"mean": _normal(2, 3), "seed": np.int32([5, 6])}, {"decode": _normal(3, 8), "scale": np.float32([0.1, 0.2, 0.3])}
)
def sampled_decoder(tf: Any, w: SimpleNamespace, x: SimpleNamespace) -> dict[str, Any]:
    """A variational decoder with noise of a seed, and the bound it is trained by."""
    noise = tf.random.stateless_normal(tf.shape(x.mean), x.seed)
    code = x.mean + noise * w.scale
    pixels = tf.sigmoid(code @ w.decode)
    divergence = -0.5 * tf.reduce_sum(1 + 2 * tf.math.log(w.scale) - x.mean**2 - w.scale**2, 1)
    drawn = tf.random.stateless_uniform(tf.shape(pixels), x.seed + 1) < pixels
    return {
        "pixels": pixels,
        "drawn": drawn,
        "divergence": divergence,
        "gamma": tf.math.lgamma(tf.exp(x.mean)) + tf.math.digamma(tf.exp(x.mean)),
        "erf": tf.math.erfinv(pixels - 0.5),
    }
