"""Gradients against TensorFlow's own: the same graph, extended by us and by TensorFlow, run by TensorFlow."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests import perturbation
from toolkit import client as gm
from toolkit.client import ops
from toolkit.client.construction.tensor import IndexedSlices, Tensor
from toolkit.client.gradients import registry
from toolkit.errors import GraphError

pytestmark = pytest.mark.tensorflow


def _compare(
    tf: ModuleType, build: Callable[[], tuple[list[Tensor], list[Tensor]]], feeds: dict[str, Any]
) -> list[Any]:
    """Run dy/dx made by us and by TensorFlow on one imported graph; returns ours."""
    graph = gm.Graph()
    with graph.as_default():
        ys, xs = build()
        ours = gm.grad(ys, xs)
        names = [None if g is None else (g if isinstance(g, Tensor) else g.to_tensor()).name for g in ours]
    v1 = tf.compat.v1
    theirs = tf.Graph()
    with theirs.as_default():
        # our names are kept: TensorFlow's gradients go to "gradients_1"
        tf.import_graph_def(tf.compat.v1.GraphDef.FromString(graph.as_graph_def().SerializeToString()), name="")
        wanted = v1.gradients(
            [theirs.get_tensor_by_name(y.name) for y in ys], [theirs.get_tensor_by_name(x.name) for x in xs]
        )
        wanted = [None if w is None else tf.convert_to_tensor(w) for w in wanted]
        assert [n is None for n in names] == [w is None for w in wanted]
        with v1.Session() as session:
            present = [n for n in names if n is not None]
            fed = {f"{name}:0": value for name, value in feeds.items()}
            found, expected = session.run([present, [w for w in wanted if w is not None]], fed)
    perturbation.assert_close(graph, present, fed, [found, expected])
    return found


X = np.array([[0.3, -0.7, 1.2], [0.9, 0.1, -0.4]], np.float32)
Y = np.array([[0.5, 0.2, -0.3]], np.float32)
POSITIVE = np.abs(X) + 0.1

UNARY = {
    "Neg": X, "Abs": X, "Reciprocal": POSITIVE, "Square": X, "Sqrt": POSITIVE, "Rsqrt": POSITIVE, "Exp": X,
    "Expm1": X, "Log": POSITIVE, "Log1p": POSITIVE, "Tanh": X, "Sinh": X, "Cosh": X, "Asinh": X, "Acosh": POSITIVE + 1,
    "Atanh": X / 2, "Sin": X, "Cos": X, "Tan": X, "Asin": X / 2, "Acos": X / 2, "Atan": X, "Erf": X, "Erfc": X,
    "Sigmoid": X,
    "Sign": X, "Softplus": X, "Softsign": X, "Relu": X, "Relu6": X * 5, "Elu": X, "Selu": X,
    "LeakyRelu": X, "Softmax": X, "LogSoftmax": X, "L2Loss": X, "Lgamma": POSITIVE, "Digamma": POSITIVE,
    "Erfinv": X / 2,
    "Ndtri": POSITIVE / 3, "Identity": X, "ZerosLike": X, "Floor": X,
}  # fmt: skip


@pytest.mark.parametrize("op", UNARY)
def test_unary(tf: ModuleType, op: str) -> None:
    def build() -> tuple[list[Tensor], list[Tensor]]:
        x = gm.placeholder(gm.float32, [None, 3], name="x")
        y = ops.function(op)(x)
        return [y * y] if op not in ("Floor", "ZerosLike") else [y], [x]

    _compare(tf, build, {"x": UNARY[op]})


BINARY = [
    "AddV2", "Sub", "Mul", "RealDiv", "DivNoNan", "Maximum", "Minimum", "SquaredDifference", "Pow", "FloorMod", "Atan2",
    "Xdivy", "Xlogy", "Xlog1py", "MulNoNan", "Igamma", "Add", "Div",
]  # fmt: skip


@pytest.mark.parametrize("op", BINARY)
@pytest.mark.parametrize("shapes", [([None, 3], [None, 3]), ([2, 3], [3]), ([1, 3], [2, 1]), (None, None)])
def test_binary_with_broadcasting(tf: ModuleType, op: str, shapes: Any) -> None:
    sizes = [
        [2 if s is None else s for s in shape] if shape is not None else n
        for shape, n in zip(shapes, ([2, 3], [3]), strict=True)
    ]
    rng = np.random.default_rng(3)
    a, b = (rng.uniform(0.2, 1.5, size).astype(np.float32) for size in sizes)

    def build() -> tuple[list[Tensor], list[Tensor]]:
        x = gm.placeholder(gm.float32, shapes[0], name="x")
        y = gm.placeholder(gm.float32, shapes[1], name="y")
        z = ops.function(op)(x, y)
        return [z * z], [x, y]

    _compare(tf, build, {"x": a, "y": b})


@pytest.mark.parametrize("op", ["Sum", "Mean", "Max", "Min", "Prod"])
@pytest.mark.parametrize("axes", [0, [1], [0, 2], [-1], None])
@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("shape", [[2, 3, 4], [None, 3, None], None])
def test_reductions(tf: ModuleType, op: str, axes: Any, keep: bool, shape: Any) -> None:
    value = np.random.default_rng(1).normal(size=(2, 3, 4)).astype(np.float32)

    def build() -> tuple[list[Tensor], list[Tensor]]:
        x = gm.placeholder(gm.float32, shape, name="x")
        from toolkit.client.math.math_ops import reduction_axes

        y = ops.function(op)(x, reduction_axes(x, axes), keep_dims=keep)
        return [y * y], [x]

    _compare(tf, build, {"x": value})


def test_product_with_zeros(tf: ModuleType) -> None:
    def build() -> tuple[list[Tensor], list[Tensor]]:
        x = gm.placeholder(gm.float32, [2, 3], name="x")
        return [gm.reduce_prod(x, 1)], [x]

    found = _compare(tf, build, {"x": np.array([[0, 2, 3], [0, 0, 4]], np.float32)})
    assert found[0].tolist() == [[6, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize("ta", [False, True])
@pytest.mark.parametrize("tb", [False, True])
def test_matrix_products(tf: ModuleType, ta: bool, tb: bool) -> None:
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=(4, 3) if ta else (3, 4)), rng.normal(size=(2, 4) if tb else (4, 2))

    def build() -> tuple[list[Tensor], list[Tensor]]:
        x = gm.placeholder(gm.float32, a.shape, name="x")
        y = gm.placeholder(gm.float32, b.shape, name="y")
        u = gm.placeholder(gm.float32, [None, *a.shape], name="u")
        flat = gm.matmul(x, y, transpose_a=ta, transpose_b=tb)
        batch = ops.batch_mat_mul_v2(u, gm.expand_dims(y, 0), adj_x=ta, adj_y=tb)
        return [flat * flat, batch * batch], [x, y, u]

    _compare(tf, build, {"x": a, "y": b, "u": rng.normal(size=(2, *a.shape))})


def _array_programs() -> dict[str, Callable[[Tensor], Any]]:
    return {
        "reshape": lambda x: gm.reshape(x, [-1]),
        "transpose": lambda x: gm.transpose(x, [1, 0]),
        "concat": lambda x: gm.concat([x, x * 2.0], 1),
        "concat_negative": lambda x: gm.concat([x, x * 2.0, x[:, :1]], -1),
        "stack": lambda x: gm.stack([x, x * 3.0], 1),
        "unstack": lambda x: gm.unstack(x, axis=1, num=3)[1],
        "split": lambda x: gm.split(x, 3, 1)[2],
        "split_v": lambda x: gm.split(x, [1, 2], 1)[1],
        "slice": lambda x: gm.slice(x, [0, 1], [1, 2]),
        "strided": lambda x: x[:, ::-1] + x[:1, None, 1],
        "pad": lambda x: gm.pad(x, [[1, 0], [2, 1]]),
        "pad_v2": lambda x: gm.pad(x, [[1, 0], [2, 1]], constant_values=3.0),
        "mirror": lambda x: gm.pad(x, [[1, 0], [1, 1]], "reflect"),
        "tile": lambda x: gm.tile(x, [2, 3]),
        "gather": lambda x: gm.gather(x, [1, 0, 1]),
        "gather_axis": lambda x: gm.gather(x, [2, 0, 2], axis=1),
        "gather_batch": lambda x: ops.gather_v2(x, [[2, 0], [1, 1]], 1, batch_dims=1),
        "gather_nd": lambda x: gm.gather_nd(x, [[1, 2], [0, 0], [1, 2]]),
        "gather_nd_rows": lambda x: gm.gather_nd(x, [[1], [1]]),
        "scatter_nd": lambda x: ops.scatter_nd([[2], [0]], x, [4, 3]),
        "expand": lambda x: gm.squeeze(gm.expand_dims(x, 0) * 2.0, [0]),
        "broadcast": lambda x: gm.broadcast_to(x, [4, 2, 3]),
        "reverse": lambda x: gm.reverse(x, [1]),
        "where": lambda x: gm.where(x > 0.0, x, x * x),
        "select": lambda x: ops.select(x > 0.0, x, x * x),
        "where_scalar": lambda x: gm.where_v2(x > 0.0, x, 1.0),
        "cast": lambda x: gm.cast(gm.cast(x, gm.float64) * 2.0, gm.float32),
        "cumsum": lambda x: gm.cumsum(x, 1, exclusive=True),
        "cumprod": lambda x: ops.cumprod(x, 1, reverse=True),
        "top_k": lambda x: gm.top_k(x, 2)[0],
        "segment_sum": lambda x: ops.segment_sum(x, [0, 0]),
        "segment_mean": lambda x: ops.segment_mean(x, [0, 0]),
        "unsorted_sum": lambda x: ops.unsorted_segment_sum(x, [1, 0], 3),
        "unsorted_max": lambda x: ops.unsorted_segment_max(x, [1, 1], 2),
        "sparse_segment": lambda x: ops.sparse_segment_mean(x, [0, 1, 1], [0, 0, 1]),
        "dynamic_partition": lambda x: ops.dynamic_partition(x, [1, 0], num_partitions=2)[1],
        "dynamic_stitch": lambda x: ops.dynamic_stitch([[1], [0, 2]], [x[:1], x]),
        "logsumexp": lambda x: gm.reduce_logsumexp(x, 1),
        "clip": lambda x: ops.clip_by_value(x, -0.5, 0.5),
        "identity_n": lambda x: ops.identity_n([x, x * 2.0])[1],
        "stop": lambda x: gm.stop_gradient(x) * x,
        "add_n": lambda x: gm.add_n([x, x, x * 2.0]),
        "tensor_scatter": lambda x: ops.tensor_scatter_update(x, [[0]], x[1:] * 2.0),
        "diag": lambda x: ops.matrix_diag_part(ops.matrix_diag(x)) + ops.matrix_band_part(x, 0, 1),
        "softmax_axis": lambda x: gm.softmax(x, axis=0),
    }


@pytest.mark.parametrize("program", _array_programs())
@pytest.mark.parametrize("shape", [[2, 3], [None, 3]])
def test_moving_elements(tf: ModuleType, program: str, shape: Any) -> None:
    def build() -> tuple[list[Tensor], list[Tensor]]:
        x = gm.placeholder(gm.float32, shape, name="x")
        y = _array_programs()[program](x)
        return [y * y], [x]

    _compare(tf, build, {"x": X})


def _network_programs() -> dict[str, Callable[[Tensor, Tensor], Any]]:
    return {
        "conv2d": lambda x, w: gm.conv2d(x, w, 1, "SAME"),
        "conv2d_strided": lambda x, w: gm.conv2d(x, w, 2, "VALID"),
        "conv2d_dilated": lambda x, w: gm.conv2d(x, w, 1, "SAME", dilations=2),
        "conv2d_explicit": lambda x, w: gm.conv2d(x, w, 1, [[0, 0], [1, 2], [0, 1], [0, 0]]),
        "depthwise": lambda x, w: gm.depthwise_conv2d(x, w, 1, "SAME"),
        "transposed": lambda x, w: gm.conv2d_transpose(x, gm.transpose(w, [0, 1, 3, 2]), [2, 12, 12, 3], 2, "SAME"),
        "max_pool": lambda x, w: gm.max_pool(x, 2, 2, "SAME") * gm.reduce_sum(w),
        "avg_pool": lambda x, w: gm.avg_pool(x, 3, 2, "VALID") * gm.reduce_sum(w),
        "bias": lambda x, w: gm.bias_add(x, gm.reduce_sum(w, [0, 1, 3])),
        "lrn": lambda x, w: gm.local_response_normalization(x, 2) * gm.reduce_sum(w),
        "batch_norm": lambda x, w: gm.fused_batch_norm(x, w[0, 0, :, 0], w[0, 1, :, 1])[0],
        "batch_norm_inference": lambda x, w: gm.fused_batch_norm(
            x, w[0, 0, :, 0], w[0, 1, :, 1], [0.1, 0.2], [0.5, 0.7], is_training=False
        )[0],
        "resize": lambda x, w: ops.resize_bilinear(x, [4, 9]) * gm.reduce_sum(w),
        "nearest": lambda x, w: ops.resize_nearest_neighbor(x, [4, 9]) * gm.reduce_sum(w),
        "space": lambda x, w: ops.depth_to_space(ops.space_to_depth(x, block_size=2), block_size=2) * gm.reduce_sum(w),
        "space_to_batch": lambda x, w: ops.space_to_batch_nd(x, [2, 2], [[0, 0], [0, 0]]) * gm.reduce_sum(w),
    }


@pytest.mark.parametrize("program", _network_programs())
def test_networks(tf: ModuleType, program: str) -> None:
    rng = np.random.default_rng(4)

    def build() -> tuple[list[Tensor], list[Tensor]]:
        x = gm.placeholder(gm.float32, [None, 6, 6, 2], name="x")
        w = gm.placeholder(gm.float32, [3, 3, 2, 3], name="w")
        y = _network_programs()[program](x, w)
        return [y * y], [x, w]

    feeds = {"x": rng.normal(size=(2, 6, 6, 2)), "w": rng.normal(size=(3, 3, 2, 3))}
    # Sums over many float32 products, in TensorFlow's blocked order for both sides: small absolute error.
    _compare(tf, build, feeds)


@pytest.mark.parametrize("loss", ["sparse", "dense", "sigmoid"])
def test_losses(tf: ModuleType, loss: str) -> None:
    def build() -> tuple[list[Tensor], list[Tensor]]:
        x = gm.placeholder(gm.float32, [None, 3], name="x")
        labels = gm.constant([[0.1, 0.7, 0.2], [0.5, 0.3, 0.2]])
        if loss == "sparse":
            y = gm.sparse_softmax_cross_entropy_with_logits(gm.constant([2, 0]), x)
        elif loss == "dense":
            y = gm.softmax_cross_entropy_with_logits_v2(labels, x)
        else:
            y = gm.sigmoid_cross_entropy_with_logits(labels, x)
        return [gm.reduce_mean(y)], [x]

    _compare(tf, build, {"x": X})


def test_second_derivatives(tf: ModuleType) -> None:
    def build() -> tuple[list[Tensor], list[Tensor]]:
        x = gm.placeholder(gm.float32, [2, 3], name="x")
        y = gm.tanh(x) * gm.sigmoid(x) + gm.sqrt(gm.square(x) + 1.0) + ops.reciprocal(ops.exp(x))
        y = y + gm.relu(x) * gm.elu(x) + ops.rsqrt(gm.square(x) + 2.0) + gm.softplus(x)
        first = gm.grad(y, x)[0]
        loss = gm.softmax_cross_entropy_with_logits_v2(gm.softmax(x), x * x)
        inner = gm.grad(loss, x)[0]
        return [first, inner], [x]

    _compare(tf, build, {"x": X})


def test_complex_numbers(tf: ModuleType) -> None:
    def build() -> tuple[list[Tensor], list[Tensor]]:
        x = gm.placeholder(gm.float32, [2, 3], name="x")
        z = ops.complex(x, x * x, Tout=gm.complex64)
        w = z * ops.conj(z) * z / (z + z)
        return [ops.real(w), ops.imag(w), gm.abs(w), ops.angle(z)], [x]

    _compare(tf, build, {"x": POSITIVE})


def test_conditionals_and_loops(tf: ModuleType) -> None:
    """TensorFlow takes gradients through our Switch and Merge nodes as well: it reads the contexts we write."""
    from toolkit.formats.models.metagraph import to_proto

    graph = gm.Graph()
    with graph.as_default():
        x = gm.placeholder(gm.float32, [None], name="x")
        w = gm.placeholder(gm.float32, [], name="w")
        total = gm.reduce_sum(x)
        y = gm.cond(total > 1.0, lambda: x * w * w, lambda: gm.sqrt(x) + w)

        def body(i: Tensor, a: Tensor) -> tuple[Tensor, Tensor]:
            b = gm.while_loop(
                lambda j, b: j < 2,
                lambda j, b: (j + 1, b * w + gm.cond(b[0] > 1.0, lambda: b * 0.5, lambda: b * b)),
                [gm.constant(0), a],
            )[1]
            return i + 1, ops.sin(b) + x

        _, z = gm.while_loop(lambda i, a: i < 3, body, [gm.constant(0), y])
        # TensorFlow does not know the frame names of imported loops: its own would clash with "gradients"
        ours = gm.grad([z], [x, w], name="ours")
        meta = gm.to_meta_graph()
    v1 = tf.compat.v1
    theirs = tf.Graph()
    with theirs.as_default():
        v1.train.import_meta_graph(v1.MetaGraphDef.FromString(to_proto(meta).SerializeToString()))
        sources = [theirs.get_tensor_by_name("x:0"), theirs.get_tensor_by_name("w:0")]
        wanted = v1.gradients(theirs.get_tensor_by_name(z.name), sources)
        with v1.Session() as session:
            for value in ([0.2, 0.3], [0.9, 0.8]):
                feeds = {"x:0": np.array(value, np.float32), "w:0": np.float32(0.7)}
                names = [g.name for g in ours]  # type: ignore[union-attr]
                perturbation.assert_close(graph, names, feeds, session.run([names, wanted], feeds))


def test_embedding_in_a_loop_gives_rows(tf: ModuleType) -> None:
    graph = gm.Graph()
    with graph.as_default():
        table = gm.placeholder(gm.float32, [4, 2], name="table")
        _, y = gm.while_loop(
            lambda i, a: i < 3, lambda i, a: (i + 1, a + gm.reduce_sum(gm.gather(table, [i, 0]))), [gm.constant(0), 0.0]
        )
        (grad,) = gm.grad(y, table)
        assert isinstance(grad, IndexedSlices)
        dense = ops.unsorted_segment_sum(grad.values, grad.indices, 4)
    imported = tf.Graph()
    with imported.as_default():
        tf.import_graph_def(tf.compat.v1.GraphDef.FromString(graph.as_graph_def().SerializeToString()), name="")
        with tf.compat.v1.Session() as session:
            found = session.run(dense.name, {"table:0": np.ones((4, 2), np.float32)})
    assert found.tolist() == [[4, 4], [1, 1], [1, 1], [0, 0]]


@st.composite
def _programs(draw: st.DrawFn) -> list[tuple[str, int, int]]:
    kinds = st.sampled_from(["add", "mul", "sub", "tanh", "sin", "matmul", "concat", "sum", "slice", "max", "where"])
    return draw(st.lists(st.tuples(kinds, st.integers(0, 20), st.integers(0, 20)), min_size=2, max_size=14))


@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(program=_programs())
def test_random_graphs(tf: ModuleType, program: list[tuple[str, int, int]]) -> None:
    def build() -> tuple[list[Tensor], list[Tensor]]:
        x = gm.placeholder(gm.float32, [None, 3], name="x")
        y = gm.placeholder(gm.float32, [1, 3], name="y")
        w = gm.placeholder(gm.float32, [3, 3], name="w")
        values: list[Tensor] = [x, y, x + y]
        for kind, i, j in program:
            a, b = values[i % len(values)], values[j % len(values)]
            match kind:
                case "add":
                    made = a + b
                case "mul":
                    made = a * b
                case "sub":
                    made = a - b
                case "tanh":
                    made = gm.tanh(a)
                case "sin":
                    made = ops.sin(a)
                case "matmul":
                    made = gm.tanh(gm.matmul(a, w))
                case "concat":
                    made = gm.concat([a + b, b - a], 1)[:, 1:4]
                case "sum":
                    made = a * gm.reduce_sum(b, 1, keepdims=True)
                case "slice":
                    made = a + b[:1]
                case "max":
                    made = gm.maximum(a, b)
                case _:
                    made = gm.where_v2(a > b, a, gm.tanh(b))
            values.append(gm.tanh(made) if kind in ("mul", "sum") else made)
        return [gm.reduce_sum(v) for v in values[-2:]], [x, y, w]

    rng = np.random.default_rng(len(program))
    _compare(tf, build, {"x": rng.normal(size=(2, 3)), "y": rng.normal(size=(1, 3)), "w": rng.normal(size=(3, 3))})


def test_an_op_without_gradient_is_named() -> None:
    with gm.Graph().as_default():
        x = gm.placeholder(gm.float32, [2, 2])
        y = ops.lu(x)[0]
        with pytest.raises(GraphError, match="the op Lu has no gradient"):
            gm.grad(y, x)


def test_integers_have_no_gradients() -> None:
    with gm.Graph().as_default():
        x = gm.placeholder(gm.int32, [2])
        with pytest.raises(GraphError, match="has type int32; gradients are of floating point"):
            gm.grad(x + 1, x)


def test_unconnected_and_stopped() -> None:
    with gm.Graph().as_default():
        x, y = gm.placeholder(gm.float32, [2]), gm.placeholder(gm.float32, [2])
        assert gm.grad(x * 2.0, [y]) == [None]
        zeros = gm.grad(x * 2.0, [y], unconnected_gradients="zero")[0]
        assert zeros is not None and zeros.op.type == "Const"
        z = x * y
        assert gm.grad(z * z, [x], stop_gradients=[z]) == [None]


def test_two_gradients_for_one_op_are_refused() -> None:
    with pytest.raises(KeyError, match=r"^two gradients for 'Mul'$"):  # what programs catch
        gm.gradient("Mul")(lambda op, grad: [grad, grad])


def test_override_and_wrong_count() -> None:
    gm.gradient("TestDoubled")(lambda op, grad: grad * 2.0)
    gm.gradient("TestWrong")(lambda op, grad: [grad, grad])
    try:
        graph = gm.Graph()
        with graph.as_default():
            x = gm.placeholder(gm.float32, [])
            with graph.gradient_override_map({"Identity": "TestDoubled"}):
                y = gm.identity(x)
            grad = gm.grad(y, x)[0]
            assert grad is not None and grad.op.type == "Mul"
            with graph.gradient_override_map({"Identity": "TestWrong"}):
                y = gm.identity(x)
            with pytest.raises(GraphError, match="returned 2 gradients for 1 inputs"):
                gm.grad(y, x)
    finally:
        for name in ("TestDoubled", "TestWrong"):
            registry._entries.pop(name)


def test_every_registered_gradient_is_for_a_known_op() -> None:
    # in a process of its own: programs of other tests register gradients of ops that are theirs
    code = (
        "from toolkit.client.gradients import registry\n"
        "from toolkit.graph import opdefs\n"
        "registered = registry.registered()\n"
        "print(len(registered), *(op for op in registered if opdefs.find(op) is None))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    count, *unknown = done.stdout.split()
    assert int(count) > 300  # TensorFlow's ops with a gradient
    assert unknown == []
