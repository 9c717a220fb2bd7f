"""Batch norms folded into weights: every form and where they may not be, beside TensorFlow and its older tool."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.passes.graphs import F
from tests.passes.optimize.oracle import agree, changed, constant, feed, kept, made, ops, transformed, unchanged
from toolkit.graph.graph import Graph
from toolkit.graph.node import Output
from toolkit.passes.optimize.nn.fold_batch_norms import FoldBatchNorms

R = np.random.default_rng(3)
X = R.normal(size=(2, 6, 6, 3)).astype(np.float32)
W = R.normal(size=(3, 3, 3, 4)).astype(np.float32)


def vector(n: int = 4, low: float = 0.5) -> np.ndarray:
    return R.uniform(low, low + 1, n).astype(np.float32)


def image(v1: Any) -> Any:
    return v1.placeholder("float32", [None, *X.shape[1:]], name="x")


def normal(*shape: int) -> np.ndarray:
    return R.normal(size=shape).astype(np.float32)


def conv(v1: Any, x: Any = None, w: Any = W, padding: str = "SAME", **more: Any) -> Any:
    x = image(v1) if x is None else x
    return v1.nn.conv2d(
        x, v1.constant(w, name=f"{more.get('name', 'conv')}_w"), [1, 1, 1, 1], padding, **{"name": "conv", **more}
    )


def fused(v1: Any, y: Any, n: int = 4, op: str = "FusedBatchNormV3", training: bool = False) -> Any:
    mean, variance = (vector(0), vector(0)) if training else (vector(n, -0.5), vector(n))
    given = {"x": y, "scale": vector(n), "offset": vector(n, -0.5), "mean": mean, "variance": variance}
    return getattr(v1.raw_ops, op)(**given, epsilon=1e-3, is_training=training)[0]


def spelled(v1: Any, y: Any, n: int = 4) -> Any:
    mean, variance, offset, scale = vector(n, -0.5), vector(n), vector(n, -0.5), vector(n)
    return (y - mean) / v1.constant(np.sqrt(variance + 1e-3)) * scale + offset


def folded(v1: Any, y: Any, n: int = 4) -> Any:
    return v1.constant(vector(n)) * y + vector(n, -0.5)


def _depthwise(v1: Any) -> Any:
    x = image(v1)
    return v1.nn.depthwise_conv2d_native(x, normal(3, 3, 3, 2), [1, 1, 1, 1], "SAME")


def _product(v1: Any, transpose_b: bool = False) -> Any:
    x = v1.placeholder("float32", [None, 6], name="x")
    w = R.normal(size=(4, 6) if transpose_b else (6, 4)).astype(np.float32)
    return v1.matmul(x, w, transpose_b=transpose_b)


def _transposed(v1: Any) -> Any:
    x = v1.placeholder("float32", [2, *X.shape[1:]], name="x")
    return v1.nn.conv2d_transpose(x, normal(3, 3, 4, 3), [2, 12, 12, 4], [1, 2, 2, 1])


def _joined(v1: Any, axis: int, last_bias: bool) -> Any:
    first = v1.nn.bias_add(conv(v1), vector())
    x = v1.get_default_graph().get_tensor_by_name("x:0")
    second = conv(v1, x, name="second")
    return v1.concat([first, v1.nn.bias_add(second, vector()) if last_bias else second], axis)


def _atrous(v1: Any) -> Any:
    x = v1.placeholder("float32", [2, 6, 6, 3], name="x")
    inner = v1.space_to_batch_nd(x, [2, 2], [[2, 2], [2, 2]])
    return v1.batch_to_space_nd(conv(v1, inner, padding="VALID"), [2, 2], [[0, 0], [0, 0]])


def _conv1d(v1: Any) -> Any:
    rows = v1.expand_dims(v1.placeholder("float32", [2, 9, 3], name="x"), 1)
    return v1.squeeze(conv(v1, rows, normal(1, 3, 3, 4)), [1])


def _double(v1: Any) -> Any:
    x = v1.placeholder("float64", [None, *X.shape[1:]], name="x")
    y = v1.nn.conv2d(x, W.astype(np.float64), [1, 1, 1, 1], "SAME")
    return y * vector().astype(np.float64) + vector().astype(np.float64)


def _towers(v1: Any, alike: bool) -> Any:
    """One network over two inputs, as a siamese one, or one for two signatures; with the same norm, or two."""
    w, scales = v1.constant(W, name="w"), vector()
    x = image(v1)
    first = v1.nn.conv2d(x, w, [1, 1, 1, 1], "SAME") * scales
    second = v1.nn.conv2d(v1.abs(x), w, [1, 1, 1, 1], "SAME") * (scales if alike else vector())
    return first - second


#: name to what is built, and the ops that are left
FORMS: dict[str, tuple[Callable[[Any], Any], list[str]]] = {
    "mul": (lambda v1: conv(v1) * vector(), ["Conv2D"]),
    "mul from the left": (lambda v1: v1.constant(vector()) * conv(v1), ["Conv2D"]),
    "mul add": (lambda v1: folded(v1, conv(v1)), ["BiasAdd", "Conv2D"]),
    "spelled out": (lambda v1: spelled(v1, conv(v1)), ["BiasAdd", "Conv2D"]),
    "bias and spelled out": (lambda v1: spelled(v1, v1.nn.bias_add(conv(v1), vector())), ["BiasAdd", "Conv2D"]),
    "FusedBatchNorm": (lambda v1: fused(v1, conv(v1), op="FusedBatchNorm"), ["BiasAdd", "Conv2D"]),
    "FusedBatchNormV2": (lambda v1: fused(v1, conv(v1), op="FusedBatchNormV2"), ["BiasAdd", "Conv2D"]),
    "FusedBatchNormV3": (lambda v1: fused(v1, conv(v1)), ["BiasAdd", "Conv2D"]),
    "bias and FusedBatchNormV3": (lambda v1: fused(v1, v1.nn.bias_add(conv(v1), vector())), ["BiasAdd", "Conv2D"]),
    "twice": (lambda v1: fused(v1, spelled(v1, conv(v1))), ["BiasAdd", "Conv2D"]),
    "subtracted": (lambda v1: vector() - conv(v1), ["BiasAdd", "Conv2D"]),
    "scalars": (lambda v1: conv(v1) * 2.0 / 3.0, ["Conv2D"]),
    "as rank 4": (lambda v1: conv(v1) * vector().reshape(1, 1, 1, 4), ["Conv2D"]),
    "depthwise": (lambda v1: folded(v1, _depthwise(v1), 6), ["BiasAdd", "DepthwiseConv2dNative"]),
    "matmul": (lambda v1: folded(v1, _product(v1)), ["BiasAdd", "MatMul"]),
    "matmul turned": (lambda v1: folded(v1, _product(v1, True)), ["BiasAdd", "MatMul"]),
    "transposed convolution": (lambda v1: folded(v1, _transposed(v1)), ["BiasAdd", "Conv2DBackpropInput"]),
    "through concat": (
        lambda v1: fused(v1, _joined(v1, 3, True), 8), ["BiasAdd", "BiasAdd", "ConcatV2", "Conv2D", "Conv2D"],
    ),
    "through concat with one bias": (
        lambda v1: fused(v1, _joined(v1, 3, False), 8), ["BiasAdd", "BiasAdd", "ConcatV2", "Conv2D", "Conv2D"],
    ),
    "through concat of rows": (
        lambda v1: fused(v1, _joined(v1, 1, False)), ["BiasAdd", "BiasAdd", "ConcatV2", "Conv2D", "Conv2D"],
    ),
    "through batch to space": (
        lambda v1: fused(v1, _atrous(v1)), ["BatchToSpaceND", "BiasAdd", "Conv2D", "SpaceToBatchND"],
    ),
    "through average pool": (
        lambda v1: folded(v1, v1.nn.avg_pool2d(conv(v1), 2, 2, "SAME")), ["AvgPool", "BiasAdd", "Conv2D"],
    ),
    "conv1d": (lambda v1: folded(v1, _conv1d(v1)), ["BiasAdd", "Conv2D", "ExpandDims", "Squeeze"]),
    "double": (_double, ["BiasAdd", "Conv2D"]),
    "weights of two": (lambda v1: _towers(v1, True), ["Abs", "Conv2D", "Conv2D", "Sub"]),
    "weights of two, with two norms": (lambda v1: _towers(v1, False), ["Abs", "Conv2D", "Conv2D", "Sub"]),
    "before VALID": (
        lambda v1: conv(v1, folded(v1, image(v1), 3), padding="VALID"),
        ["BiasAdd", "Conv2D"],
    ),
    "scale before SAME": (
        lambda v1: conv(v1, image(v1) * vector(3)), ["Conv2D"],
    ),
    "before and after": (
        lambda v1: fused(v1, conv(v1, fused(v1, image(v1), 3), padding="VALID")),
        ["BiasAdd", "Conv2D"],
    ),
    "before matmul": (
        lambda v1: v1.matmul(folded(v1, v1.placeholder("float32", [None, 6], name="x"), 6), normal(6, 4)),
        ["BiasAdd", "MatMul"],
    ),
}  # fmt: skip


def build(tf: Any, form: Callable[[Any], Any]) -> Graph:
    return made(tf, lambda v1: v1.identity(v1.nn.relu(form(v1), name="last"), name="out"))


@pytest.mark.tensorflow
@pytest.mark.parametrize("form", FORMS)
def test_every_form(tf: Any, form: str) -> None:
    graph = build(tf, FORMS[form][0])
    result = changed(FoldBatchNorms(kept=kept("out")), graph)
    for _ in range(3):
        result = FoldBatchNorms(kept=kept("out")).apply(result.graph)
    if FORMS[form][1]:
        assert sorted(ops(result.graph)) == sorted([*FORMS[form][1], "Relu"])
    agree(tf, graph, result.graph, ["out:0"], feed(graph))


@pytest.mark.tensorflow
@pytest.mark.parametrize("after", [True, False])
def test_the_old_op(tf: Any, after: bool) -> None:
    """BatchNormWithGlobalNormalization, which only graphs of old producers may have."""
    graph = build(tf, FORMS["FusedBatchNorm"][0])
    node = next(node for node in graph if node.op == "FusedBatchNorm")
    node.op = "BatchNormWithGlobalNormalization"
    y, scale, offset, mean, variance = node.inputs
    node.inputs = [y, mean, variance, offset, scale]
    node.attrs.clear()
    node.attrs.update(T=F, variance_epsilon=1e-3, scale_after_normalization=after)
    graph.versions.producer = 8
    result = changed(FoldBatchNorms(kept=kept("out")), graph)
    assert sorted(ops(result.graph)) == ["BiasAdd", "Conv2D", "Relu"]
    theirs = transformed(graph, "x", "out", "fold_old_batch_norms")
    assert len(result.graph) <= len(theirs)
    agree(tf, theirs, result.graph, ["out:0"], feed(graph))
    agree(tf, graph, result.graph, ["out:0"], feed(graph))


@pytest.mark.tensorflow
@pytest.mark.parametrize("form", ["mul", "mul add", "FusedBatchNorm", "depthwise", "matmul"])
def test_never_more_nodes_than_the_tool(tf: Any, form: str) -> None:
    graph = build(tf, FORMS[form][0])
    theirs = transformed(graph, "x", "out", "fold_batch_norms fold_old_batch_norms")
    ours = FoldBatchNorms(kept=kept("out")).apply(graph).graph
    assert len(ours) <= len(theirs)
    agree(tf, theirs, ours, ["out:0"], feed(graph))


def _shared(v1: Any) -> Any:
    w = v1.constant(W)
    x = image(v1)
    first = v1.nn.conv2d(x, w, [1, 1, 1, 1], "SAME")
    return first * vector() + v1.nn.conv2d(v1.abs(x), w, [1, 1, 1, 1], "SAME")


def _read_twice(v1: Any) -> Any:
    y = conv(v1)
    return y * vector() + v1.abs(y)


def _waited_for(v1: Any) -> Any:
    y = conv(v1)
    with v1.control_dependencies([y]):
        return v1.abs(y * vector())


def _unknown_scale(v1: Any) -> Any:
    return conv(v1) * v1.placeholder_with_default(vector(), [4], name="scale")


def _before_same(v1: Any) -> Any:
    return conv(v1, image(v1) + vector(3))


def _placeholder_weights(v1: Any) -> Any:
    x = image(v1)
    return v1.nn.conv2d(x, v1.placeholder_with_default(W, W.shape), [1, 1, 1, 1], "SAME") * vector()


MUST_NOT: dict[str, Callable[[Any], Any]] = {
    "shared weights": _shared,
    "read twice": _read_twice,
    "waited for": _waited_for,
    "training": lambda v1: fused(v1, conv(v1), training=True),
    "statistics that are not constant": _unknown_scale,
    "weights that are not constant": _placeholder_weights,
    "along rows": lambda v1: conv(v1) * normal(6, 1, 1),
    "along rows of as many": lambda v1: conv(v1, w=normal(3, 3, 3, 6)) * normal(6, 1),
    "of a higher rank": lambda v1: conv(v1) * normal(1, 1, 1, 1, 4),
    "widened": lambda v1: conv(v1, w=normal(3, 3, 3, 1)) * vector(5),
    "divided by zero": lambda v1: conv(v1) / np.array([1, 0, 1, 1], np.float32),
    "infinite": lambda v1: conv(v1) * np.array([1, np.inf, 1, 1], np.float32),
    "beyond float32": lambda v1: conv(v1, w=W * np.float32(1e30)) * np.array([1e20, 1, 1, 1], np.float32),
    "shift before SAME": _before_same,
    "behind an activation": lambda v1: v1.nn.relu(conv(v1)) * vector(),
    "joined with something else": lambda v1: v1.concat([conv(v1), v1.abs(conv(v1))], 3) * vector(8),
    "whole numbers": lambda v1: v1.matmul(v1.placeholder("int32", [2, 2]), v1.constant([[1, 2], [3, 4]])) * [2, 3],
}  # fmt: skip


@pytest.mark.tensorflow
@pytest.mark.parametrize("case", MUST_NOT)
def test_where_it_must_not(tf: Any, case: str) -> None:
    graph = made(tf, lambda v1: v1.identity(MUST_NOT[case](v1), name="out"))
    unchanged(FoldBatchNorms(kept=kept("out")), graph)


@pytest.mark.tensorflow
def test_what_is_asked_for_stays(tf: Any) -> None:
    graph = build(tf, FORMS["mul add"][0])
    for name in ("conv", "conv_w"):
        unchanged(FoldBatchNorms(kept=kept("out", name)), graph)
    inner = next(n.name for n in graph if n.op == "Mul")
    result = changed(FoldBatchNorms(kept=kept("out", inner)), graph)  # the product may, the sum may not
    agree(tf, graph, result.graph, [f"{inner}:0", "out:0"], feed(graph))


@pytest.mark.tensorflow
def test_weights_that_are_waited_for(tf: Any) -> None:
    """As frozen functions leave them: a NoOp waits for every read of a variable."""

    def form(v1: Any) -> Any:
        y = conv(v1)
        weights = v1.get_default_graph().get_tensor_by_name("conv_w:0")
        with v1.control_dependencies([weights, v1.no_op()]):
            return y * vector()

    graph = build(tf, form)
    result = changed(FoldBatchNorms(kept=kept("out")), graph)
    assert "Mul" not in ops(result.graph)
    agree(tf, graph, result.graph, ["out:0"], feed(graph))


@pytest.mark.tensorflow
def test_training_norms_are_told(tf: Any) -> None:
    graph = made(tf, lambda v1: v1.identity(fused(v1, conv(v1), training=True), name="out"))
    result = unchanged(FoldBatchNorms(kept=kept("out")), graph)
    assert result.report["training"] == ["FusedBatchNormV3"]


@pytest.mark.tensorflow
def test_in_branches(tf: Any) -> None:
    """Constants of a branch stay in it: what is made of them is dead where it is not taken."""

    def branches(v1: Any) -> Any:
        x = v1.placeholder("float32", [2, 3], name="x")
        w = normal(3, 3)
        taken = v1.cond(
            v1.reduce_sum(x) > 0, lambda: v1.matmul(x, v1.constant(w)) * vector(3) + vector(3), lambda: x * 2.0
        )
        return v1.identity(taken, name="out")

    graph = made(tf, branches, functional=False)
    assert "Switch" in ops(graph)
    result = changed(FoldBatchNorms(kept=kept("out")), graph)
    for sign in (1, -1):
        agree(tf, graph, result.graph, ["out:0"], {"x:0": sign * np.ones((2, 3), np.float32)})


LINKS: list[Callable[[Any, Any, int], Any]] = [
    folded, fused, spelled, lambda v1, y, n: v1.nn.bias_add(y, vector(n)), lambda v1, y, n: y * 2.0,
    lambda v1, y, n: v1.nn.relu(y), lambda v1, y, n: v1.identity(y) - vector(n),
]  # fmt: skip


@pytest.mark.tensorflow
def test_random_chains(tf: Any) -> None:
    """Chains of products, norms and sums, channels first and last: the same numbers, never more nodes."""
    for seed in range(12):
        rng = np.random.default_rng(seed)

        def chain(v1: Any, rng: np.random.Generator = rng) -> Any:
            y = image(v1)
            for index in range(int(rng.integers(1, 4))):
                channels = int(rng.integers(2, 6))
                w = rng.normal(size=(3, 3, int(y.shape[-1]), channels)).astype(np.float32) / 3
                y = conv(v1, y, w, str(rng.choice(["SAME", "VALID"])) if index < 2 else "SAME", name=f"conv{index}")
                for _ in range(int(rng.integers(0, 4))):
                    y = LINKS[int(rng.integers(len(LINKS)))](v1, y, channels)
            return v1.identity(y, name="out")

        graph = made(tf, chain)
        result = FoldBatchNorms(kept=kept("out")).apply(graph)
        assert len([n for n in result.graph if n.op != "Const"]) <= len([n for n in graph if n.op != "Const"])
        agree(tf, graph, result.graph, ["out:0"], feed(graph))


def test_channels_first() -> None:
    """NCHW: constants lie along the third dimension from behind."""
    from toolkit.runtime.session import Session

    for shape, folds in (((4, 1, 1), True), ((1, 4, 1, 1), True), ((), True), ((4,), False), ((1, 4), False)):
        graph = Graph()
        x = graph.add("Placeholder", "x", attrs={"dtype": F})
        attrs = {"T": F, "strides": [1, 1, 1, 1], "padding": "SAME", "data_format": "NCHW"}
        y = graph.add("Conv2D", "conv", [x, constant(graph, "w", W)], attrs=attrs)
        scaled = graph.add("Mul", "mul", [y, constant(graph, "s", np.full(shape, 3, np.float32))], attrs={"T": F})
        graph.add("Relu", "out", [Output(scaled, 0)], attrs={"T": F})
        if not folds:
            unchanged(FoldBatchNorms(kept=kept("out")), graph)
            continue
        result = changed(FoldBatchNorms(kept=kept("out")), graph)
        assert ops(result.graph) == ["Conv2D", "Relu"]
        with Session(graph) as before, Session(result.graph) as after:
            given = {"x:0": np.ones((1, 3, 6, 6), np.float32)}
            wanted, got = before.run("out:0", given), after.run("out:0", given)
        np.testing.assert_allclose(got, wanted, rtol=1e-5)  # 27 products and a factor, all of one sign or small
