"""A 1x1 convolution and the depthwise one behind it, strip by strip."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.compiler import compare
from tests.compiler.compare import node_by_node
from tests.compiler.targets import changed
from toolkit import client as gm
from toolkit.kernels.cpu.native.compiler import compiler
from toolkit.kernels.cpu.onednn.library import library
from toolkit.target import rows

pytestmark = pytest.mark.skipif(library() is None or compiler() is None, reason="needs LLVM and oneDNN")


#: small images, in strips of a few rows; other processors compute the same with the instructions that they have
_ALWAYS = changed(rows.AVX512, threads={"product": 1}, strips={"least": 1, "strip": 1 << 14})
check, compiled, explained = (
    functools.partial(each, processor=_ALWAYS) for each in (compare.check, compare.compiled, compare.explained)
)


@pytest.fixture(autouse=True)
def _strict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHMILL_SEGMENTS", "strict")


def _numbers(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def _graph(x: tuple[int, ...], channels: int, window: tuple[int, int] = (3, 3), strides: int = 1, padding: Any = "SAME",
           dilation: int = 1, other: bool = False) -> tuple[Any, dict[str, Any]]:  # fmt: skip
    with gm.Graph().as_default() as graph:
        given = gm.placeholder(gm.float32, x, name="x")
        y = gm.ops.relu6(gm.bias_add(gm.conv2d(given, _numbers(1, 1, 1, x[-1], channels)), _numbers(2, channels)))
        z = gm.ops.depthwise_conv2d_native(
            y, _numbers(3, *window, channels, 1), strides=[1, strides, strides, 1], padding=padding,
            dilations=[1, dilation, dilation, 1],
        )  # fmt: skip
        gm.relu(gm.bias_add(z, _numbers(4, channels)), name="out")
        if other:
            gm.tanh(y, name="other")
    return graph, {"x:0": _numbers(0, *x)}


def _is_used(graph: Any, feeds: dict[str, Any], fetches: Any = ("out:0",), **session: Any) -> bool:
    return " strips " in explained(graph, list(fetches), feeds, **session)


@settings(max_examples=40, deadline=None)
@given(
    images=st.integers(1, 3),
    height=st.integers(5, 40),
    width=st.integers(9, 40),
    inputs=st.sampled_from([3, 16, 24]),
    groups=st.integers(1, 4),
    window=st.sampled_from([(3, 3), (5, 5), (1, 3), (3, 1)]),
    strides=st.sampled_from([1, 2, 3]),
    dilation=st.sampled_from([1, 1, 2]),
    padding=st.sampled_from(["SAME", "VALID"]),
    threads=st.integers(1, 4),
)
def test_any_geometry(
    images: int, height: int, width: int, inputs: int, groups: int, window: tuple[int, int], strides: int,
    dilation: int, padding: str, threads: int,
) -> None:  # fmt: skip
    dilation = dilation if strides == 1 else 1  # TensorFlow has no other
    if any(size < (reach - 1) * dilation + 1 for size, reach in zip((height, width), window, strict=True)):
        return
    graph, feeds = _graph((images, height, width, inputs), 16 * groups, window, strides, padding, dilation)
    check(graph, ["out:0"], feeds, threads=threads)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_strips_and_shares(threads: int) -> None:
    graph, feeds = _graph((2, 30, 30, 16), 48)
    check(graph, ["out:0"], feeds, threads=threads)
    assert _is_used(graph, feeds, threads=threads)


def test_high_windows() -> None:
    """Windows that are about as high as the image."""
    graph, feeds = _graph((1, 6, 40, 16), 32, (5, 5))
    check(graph, ["out:0"], feeds, threads=3)
    assert _is_used(graph, feeds, threads=3)


def test_what_somebody_else_takes_is_written() -> None:
    graph, feeds = _graph((1, 24, 24, 16), 32, other=True)
    check(graph, ["out:0", "other:0"], feeds)
    assert not _is_used(graph, feeds, ["out:0", "other:0"])


def test_numbers_that_are_not_finite() -> None:
    graph, feeds = _graph((1, 24, 24, 16), 32)
    feeds["x:0"][0, 11, 13, 2] = np.nan
    (got,), (wanted,) = compiled(graph, ["out:0"], feeds, threads=2), node_by_node(graph, ["out:0"], feeds)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(wanted))
    assert np.isnan(got).sum() == 9 * 32
