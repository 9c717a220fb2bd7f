"""Pads, resizing and batches of phases taken into convolutions, beside TensorFlow and the Graph Transform Tool."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from tests.passes.optimize.oracle import agree, changed, feed, kept, made, ops, transformed, unchanged
from toolkit.graph.graph import Graph
from toolkit.passes.optimize.nn.flatten_atrous_conv import FlattenAtrousConv
from toolkit.passes.optimize.nn.fold_pads import FoldPads
from toolkit.passes.optimize.nn.fuse_pad_and_conv import FusePadAndConv, FuseResizeAndConv, FuseResizePadAndConv

R = np.random.default_rng(7)
W = R.normal(size=(3, 3, 3, 4)).astype(np.float32)
PADS = [[0, 0], [1, 2], [2, 0], [0, 0]]


def image(v1: Any, batch: int | None = None) -> Any:
    return v1.placeholder("float32", [batch, 8, 8, 3], name="x")


def built(tf: Any, build: Callable[[Any], Any]) -> Graph:
    return made(tf, lambda v1: v1.identity(build(v1), name="out"))


@pytest.mark.tensorflow
@pytest.mark.parametrize("more", ["VALID", PADS])
def test_pads(tf: Any, more: Any) -> None:
    graph = built(tf, lambda v1: v1.nn.conv2d(v1.pad(image(v1), PADS), W, [1, 2, 1, 1], more))
    result = changed(FoldPads(kept=kept("out")), graph)
    assert ops(result.graph) == ["Conv2D"]
    agree(tf, graph, result.graph, ["out:0"], feed(graph))


@pytest.mark.tensorflow
def test_pads_that_stay(tf: Any) -> None:
    def twice(v1: Any) -> Any:
        padded = v1.pad(image(v1), PADS)
        return v1.reduce_sum(padded) + v1.nn.conv2d(padded, W, 1, "VALID")

    cases: list[Callable[[Any], Any]] = [
        lambda v1: v1.nn.conv2d(v1.pad(image(v1), PADS), W, 1, "SAME"),
        lambda v1: v1.nn.conv2d(v1.pad(image(v1), PADS, constant_values=1.0), W, 1, "VALID"),
        lambda v1: v1.nn.conv2d(v1.pad(image(v1), [[1, 0], [0, 0], [0, 0], [0, 0]]), W, 1, "VALID"),
        lambda v1: v1.nn.conv2d(v1.pad(image(v1), v1.placeholder("int32", [4, 2])), W, 1, "VALID"),
        lambda v1: v1.nn.conv2d(v1.pad(image(v1), PADS, "REFLECT"), W, 1, "VALID"),
        # TensorFlow's optimizer would fuse it with what follows, and end the process over the explicit padding
        lambda v1: v1.nn.depthwise_conv2d_native(v1.pad(image(v1), PADS), W, [1, 1, 1, 1], "VALID"),
        twice,
    ]
    for case in cases:
        unchanged(FoldPads(kept=kept("out")), built(tf, case))
    unchanged(
        FoldPads(kept=kept("out", "Pad")), built(tf, lambda v1: v1.nn.conv2d(v1.pad(image(v1), PADS), W, 1, "VALID"))
    )


def mirrored(v1: Any, batch: int | None = 1, **more: Any) -> Any:
    return v1.nn.conv2d(v1.pad(image(v1, batch), PADS, "REFLECT"), W, [1, 1, 1, 1], "VALID", **more)


def resized(v1: Any, batch: int | None = 1, pads: bool = False, **more: Any) -> Any:
    made = v1.image.resize_bilinear(image(v1, batch), [11, 9], **more)
    return v1.nn.conv2d(v1.pad(made, PADS, "SYMMETRIC") if pads else made, W, [1, 2, 2, 1], "SAME")


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    ("build", "pass_", "op"),
    [
        (mirrored, FusePadAndConv, "FusedPadConv2D"),
        (resized, FuseResizeAndConv, "FusedResizeAndPadConv2D"),
        (partial(resized, align_corners=True), FuseResizeAndConv, "FusedResizeAndPadConv2D"),
        (partial(resized, pads=True), FuseResizePadAndConv, "FusedResizeAndPadConv2D"),
    ],
)
def test_as_the_tool_fused(tf: Any, build: Any, pass_: Any, op: str) -> None:
    graph = built(tf, build)
    result = changed(pass_(kept=kept("out")), graph)
    assert ops(result.graph) == [op]
    agree(tf, graph, result.graph, ["out:0"], feed(graph))
    theirs = transformed(graph, "x", "out", pass_.name)
    assert len(result.graph) <= len(theirs)
    agree(tf, theirs, result.graph, ["out:0"], feed(graph))


@pytest.mark.tensorflow
def test_batches_are_not_fused(tf: Any) -> None:
    """TensorFlow's fused kernels give other numbers for all images but the first."""
    for batch in (2, None):
        graph = built(tf, partial(mirrored, batch=batch))
        unchanged(FusePadAndConv(kept=kept("out")), graph)
        changed(FusePadAndConv(any_batch=True, kept=kept("out")), graph)
    for build in (partial(resized, half_pixel_centers=True), partial(mirrored, dilations=[1, 2, 2, 1])):
        graph = built(tf, build)
        unchanged(FuseResizeAndConv(kept=kept("out")), graph)
        unchanged(FusePadAndConv(kept=kept("out")), graph)


def atrous(v1: Any, pads: Any, crops: Any, block: Any = (2, 2), padding: str = "VALID", depthwise: bool = False) -> Any:
    x = v1.space_to_batch_nd(image(v1, 2), list(block), pads)
    make = v1.nn.depthwise_conv2d_native if depthwise else v1.nn.conv2d
    return v1.batch_to_space_nd(make(x, v1.constant(W), [1, 1, 1, 1], padding), list(block), crops)


PHASES = [
    ([[2, 2], [2, 2]], [[0, 0], [0, 0]], (2, 2), "VALID", "SAME"),
    ([[0, 0], [0, 0]], [[0, 0], [0, 0]], (2, 2), "VALID", "VALID"),
    ([[0, 0], [0, 0]], [[0, 0], [0, 0]], (2, 1), "SAME", "SAME"),
    ([[3, 4], [3, 4]], [[0, 1], [0, 1]], (3, 3), "VALID", "SAME"),
    ([[4, 2], [0, 2]], [[1, 0], [0, 1]], (2, 2), "VALID", "EXPLICIT"),
]


@pytest.mark.tensorflow
@pytest.mark.parametrize("case", PHASES)
def test_phases(tf: Any, case: Any) -> None:
    pads, crops, block, padding, now = case
    for depthwise, upsample in ((False, False), (False, True), (True, False)):
        graph = built(tf, partial(atrous, pads=pads, crops=crops, block=block, padding=padding, depthwise=depthwise))
        if depthwise and now == "EXPLICIT":  # which TensorFlow's optimizer stumbles over
            unchanged(FlattenAtrousConv(kept=kept("out")), graph)
            continue
        result = changed(FlattenAtrousConv(upsample=upsample, kept=kept("out")), graph)
        conv = next(node for node in result.graph if node.op in ("Conv2D", "DepthwiseConv2dNative"))
        assert ops(result.graph) == [conv.op] and conv.text("padding") == now
        agree(tf, graph, result.graph, ["out:0"], feed(graph))


@pytest.mark.tensorflow
def test_phases_as_the_tool(tf: Any) -> None:
    graph = built(tf, lambda v1: atrous(v1, *PHASES[0][:2]))
    theirs = transformed(graph, "x", "out", "flatten_atrous_conv")
    ours = changed(FlattenAtrousConv(kept=kept("out")), graph).graph
    assert len(ours) <= len(theirs)
    agree(tf, theirs, ours, ["out:0"], feed(graph))


@pytest.mark.tensorflow
def test_phases_that_stay(tf: Any) -> None:
    """Where the result is cut more than was added, or the filter may not be changed."""
    unchanged(FlattenAtrousConv(kept=kept("out")), built(tf, lambda v1: atrous(v1, [[0, 0], [0, 0]], [[1, 0], [0, 0]])))
    graph = built(tf, lambda v1: atrous(v1, *PHASES[0][:2]))
    inner = next(node.name for node in graph if node.op == "Conv2D")
    unchanged(FlattenAtrousConv(kept=kept("out", inner)), graph)
    weights = next(
        node.name for node in graph if node.op == "Const" and node.attr("value").tensor_shape.dim[0].size == 3
    )
    unchanged(FlattenAtrousConv(upsample=True, kept=kept("out", weights)), graph)
