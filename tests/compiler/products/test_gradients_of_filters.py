"""Gradients of convolutions whose filters the library keeps in layouts of its own, and of depthwise ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.compiler.compare import check, explained
from toolkit import client as gm
from toolkit.client.gradients import gradients
from toolkit.kernels.cpu.onednn.library import library
from toolkit.runtime.session import Session

pytestmark = pytest.mark.skipif(library() is None, reason="needs oneDNN")


def _numbers(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def _graph(filter: tuple[int, ...], *, depthwise: bool, stride: int) -> tuple[Any, dict[str, Any]]:
    """The gradients of a convolution of two images of 16 times 16 by them and by the filter."""
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [2, 16, 16, filter[2]], name="x")
        w = gm.placeholder(gm.float32, filter, name="w")
        made = gm.ops.depthwise_conv2d_native if depthwise else gm.ops.conv2d
        y = made(x, w, strides=[1, stride, stride, 1], padding="SAME")
        by_input, by_filter = gradients(gm.ops.tanh(y), [x, w])
        gm.identity(by_input, name="by_input")
        gm.identity(by_filter, name="by_filter")
    return graph, {"x:0": _numbers(1, 2, 16, 16, filter[2]), "w:0": _numbers(2, *filter)}


@pytest.mark.parametrize(
    ("filter", "depthwise"),
    [
        ((4, 4, 64, 1), False), ((3, 3, 1, 8), False), ((3, 3, 5, 7), False),
        ((4, 4, 16, 1), True), ((3, 3, 32, 1), True), ((3, 3, 6, 2), True), ((3, 3, 4, 3), True),
    ],
)  # fmt: skip
@pytest.mark.parametrize("stride", [1, 2])
def test_no_gradient_is_left_to_its_kernel(filter: tuple[int, ...], depthwise: bool, stride: int) -> None:
    graph, feeds = _graph(filter, depthwise=depthwise, stride=stride)
    fetches = ["by_input:0", "by_filter:0"]
    with Session(graph) as session:
        session.run(fetches, feeds)
        assert session.notes() == []
    told = explained(graph, fetches, feeds)
    assert " conv_filter " in told
    check(graph, fetches, feeds)
