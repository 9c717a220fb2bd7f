"""Fused convolutions and products: TensorFlow runs them, where they must not be, and the way back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.passes.graphs import F
from tests.passes.optimize.oracle import agree, changed, constant, feed, kept, made, ops, unchanged
from toolkit.graph import dtypes
from toolkit.graph.graph import Graph
from toolkit.passes.optimize.nn.fuse_epilogues import FuseEpilogues
from toolkit.passes.optimize.nn.unfuse_epilogues import UnfuseEpilogues

R = np.random.default_rng(5)
W = R.normal(size=(3, 3, 3, 4)).astype(np.float32)


def normal(*shape: int) -> np.ndarray:
    return R.normal(size=shape).astype(np.float32)


def image(v1: Any, channels: int | None = 3) -> Any:
    return v1.placeholder("float32", [None, 6, 6, channels], name="x")


def conv(v1: Any, w: Any = W, **more: Any) -> Any:
    return v1.nn.conv2d(image(v1), w, **{"strides": [1, 1, 1, 1], "padding": "SAME", **more})


def product(v1: Any, dtype: Any = np.float32, **more: Any) -> Any:
    return v1.matmul(v1.placeholder(dtype, [None, 6], name="x"), R.normal(size=(6, 4)).astype(dtype), **more)


def depthwise(v1: Any) -> Any:
    return v1.nn.depthwise_conv2d_native(image(v1), W[..., :1], [1, 1, 1, 1], "SAME")


def bias(v1: Any, y: Any, n: int = 4) -> Any:
    return v1.nn.bias_add(y, R.normal(size=n).astype(y.dtype.as_numpy_dtype))


def norm(v1: Any, y: Any, training: bool = False) -> Any:
    stats = [np.zeros(0, np.float32)] * 2 if training else [R.uniform(1, 2, 4).astype(np.float32) for _ in range(2)]
    given = [normal(4) for _ in range(2)]
    names = ("x", "scale", "offset", "mean", "variance")
    return v1.raw_ops.FusedBatchNormV3(**dict(zip(names, [y, *given, *stats], strict=True)), is_training=training)[0]


FUSED: dict[str, tuple[Callable[[Any], Any], str, list[str]]] = {
    "bias": (lambda v1: bias(v1, conv(v1)), "_FusedConv2D", ["BiasAdd"]),
    "relu": (lambda v1: v1.nn.relu(bias(v1, conv(v1))), "_FusedConv2D", ["BiasAdd", "Relu"]),
    "relu6": (lambda v1: v1.nn.relu6(bias(v1, conv(v1))), "_FusedConv2D", ["BiasAdd", "Relu6"]),
    "elu": (lambda v1: v1.nn.elu(bias(v1, conv(v1))), "_FusedConv2D", ["BiasAdd", "Elu"]),
    "leaky": (lambda v1: v1.nn.leaky_relu(bias(v1, conv(v1)), 0.3), "_FusedConv2D", ["BiasAdd", "LeakyRelu"]),
    "dilated": (lambda v1: v1.nn.relu(bias(v1, conv(v1, dilations=[1, 2, 2, 1]))), "_FusedConv2D", ["BiasAdd", "Relu"]),
    "explicit": (
        lambda v1: v1.nn.relu(bias(v1, conv(v1, padding=[[0, 0], [2, 1], [0, 1], [0, 0]]))),
        "_FusedConv2D", ["BiasAdd", "Relu"],
    ),
    "added": (lambda v1: v1.nn.relu(conv(v1) + normal(4)), "_FusedConv2D", ["BiasAdd", "Relu"]),
    "added from the left": (lambda v1: normal(4) + conv(v1), "_FusedConv2D", ["BiasAdd"]),
    "norm": (lambda v1: norm(v1, conv(v1)), "_FusedConv2D", ["FusedBatchNorm"]),
    "norm relu": (lambda v1: v1.nn.relu(norm(v1, conv(v1))), "_FusedConv2D", ["FusedBatchNorm", "Relu"]),
    "product": (lambda v1: bias(v1, product(v1)), "_FusedMatMul", ["BiasAdd"]),
    "product tanh": (lambda v1: v1.tanh(bias(v1, product(v1))), "_FusedMatMul", ["BiasAdd", "Tanh"]),
    "product sigmoid": (lambda v1: v1.sigmoid(bias(v1, product(v1))), "_FusedMatMul", ["BiasAdd", "Sigmoid"]),
    "product leaky": (lambda v1: v1.nn.leaky_relu(bias(v1, product(v1))), "_FusedMatMul", ["BiasAdd", "LeakyRelu"]),
    "conv tanh": (lambda v1: v1.tanh(bias(v1, conv(v1))), "_FusedConv2D", ["BiasAdd"]),
    "depthwise": (
        lambda v1: v1.nn.relu(bias(v1, depthwise(v1), 3)), "_FusedDepthwiseConv2dNative", ["BiasAdd", "Relu"],
    ),
}  # fmt: skip


@pytest.mark.tensorflow
@pytest.mark.parametrize("case", FUSED)
def test_fused_and_back(tf: Any, case: str) -> None:
    build, op, parts = FUSED[case]
    graph = made(tf, lambda v1: v1.identity(build(v1), name="out"))
    result = changed(FuseEpilogues(depthwise=True, kept=kept("out")), graph)
    node = next(node for node in result.graph if node.op == op)
    assert [part.decode() for part in node.attr("fused_ops")] == parts
    agree(tf, graph, result.graph, ["out:0"], feed(graph))
    back = changed(UnfuseEpilogues(kept=kept("out")), result.graph)
    assert not any(each.op.startswith("_Fused") for each in back.graph)
    assert len(ops(back.graph)) == len(ops(graph))
    agree(tf, graph, back.graph, ["out:0"], feed(graph))


def _grouped(v1: Any) -> Any:
    return v1.nn.relu(bias(v1, v1.nn.conv2d(image(v1, 6), W, [1, 1, 1, 1], "SAME")))


def _read_twice(v1: Any) -> Any:
    y = conv(v1)
    return bias(v1, y) + v1.abs(y)


MUST_NOT: dict[str, Callable[[Any], Any]] = {
    "groups": _grouped,
    "channels that are not known": lambda v1: v1.nn.relu(bias(v1, v1.nn.conv2d(image(v1, None), W, 1, "SAME"))),
    "read twice": _read_twice,
    "training": lambda v1: norm(v1, conv(v1), training=True),
    "no bias": lambda v1: v1.nn.relu(conv(v1)),
    "half": lambda v1: bias(v1, product(v1, np.float16)),
    "double products": lambda v1: bias(v1, product(v1, np.float64)),
    "depthwise, not asked for": lambda v1: v1.nn.relu(bias(v1, depthwise(v1), 3)),
    "rows added": lambda v1: conv(v1) + normal(6, 4),
    "one number added": lambda v1: conv(v1) + 2.0,
    "bias that is computed": lambda v1: conv(v1) + v1.reduce_sum(v1.placeholder("float32", [4, 2]), 1),
}  # fmt: skip


@pytest.mark.tensorflow
@pytest.mark.parametrize("case", MUST_NOT)
def test_where_it_must_not(tf: Any, case: str) -> None:
    graph = made(tf, lambda v1: v1.identity(MUST_NOT[case](v1), name="out"))
    unchanged(FuseEpilogues(kept=kept("out")), graph)


@pytest.mark.tensorflow
def test_what_is_asked_for_stays(tf: Any) -> None:
    graph = made(tf, lambda v1: v1.identity(v1.nn.relu(bias(v1, conv(v1))), name="out"))
    unchanged(FuseEpilogues(kept=kept("out", "Conv2D")), graph)
    partly = changed(FuseEpilogues(kept=kept("out", "BiasAdd")), graph).graph
    assert ops(partly) == ["_FusedConv2D", "Relu"]
    agree(tf, graph, partly, ["BiasAdd:0", "out:0"], feed(graph))


@pytest.mark.tensorflow
def test_other_fused_ops_taken_apart(tf: Any) -> None:
    def build(v1: Any) -> None:
        x = v1.placeholder("float32", [1, 6, 6, 3], name="x")  # TensorFlow's kernels are wrong beyond the first image
        given = {"input": x, "paddings": [[0, 0], [1, 1], [1, 2], [0, 0]], "filter": W}
        more = {"mode": "REFLECT", "strides": [1, 1, 1, 1], "padding": "VALID"}
        v1.raw_ops.FusedPadConv2D(**given, **more, name="padded")
        v1.raw_ops.FusedResizeAndPadConv2D(**given, **more, size=[9, 7], resize_align_corners=True, name="resized")

    graph = made(tf, build)
    result = changed(UnfuseEpilogues(kept=kept("padded", "resized")), graph)
    assert sorted(ops(result.graph)) == ["Conv2D", "Conv2D", "MirrorPad", "MirrorPad", "ResizeBilinear"]
    agree(tf, graph, result.graph, ["padded:0", "resized:0"], feed(graph))


def test_norms_with_more_taken_apart() -> None:
    graph = Graph()
    x = graph.add("Placeholder", "x", attrs={"dtype": F})
    stats = [constant(graph, name, R.uniform(1, 2, 4).astype(np.float32)) for name in "abcd"]
    attrs = {"T": F, "U": F, "is_training": False, "num_side_inputs": 1, "activation_mode": "Relu"}
    graph.add("_FusedBatchNormEx", "out", [x, *stats, x], attrs=attrs)
    result = changed(UnfuseEpilogues(kept=kept("out")), graph)
    assert sorted(ops(result.graph)) == ["AddV2", "FusedBatchNormV3", "Relu"]
    assert result.report == {"unfused": {"_FusedBatchNormEx": 1}}


def test_unknown_parts_are_left_and_told() -> None:
    graph = Graph()
    x = graph.add("Placeholder", "x", attrs={"dtype": dtypes.float32})
    attrs = {"T": F, "num_args": 1, "fused_ops": ["BiasAdd", "_MklSwish"]}
    w, b = constant(graph, "w", np.ones((2, 2), np.float32)), constant(graph, "b", np.ones(2, np.float32))
    graph.add("_FusedMatMul", "out", [x, w, b], attrs=attrs)
    assert unchanged(UnfuseEpilogues(kept=kept("out")), graph).report["left"] == ["out"]
