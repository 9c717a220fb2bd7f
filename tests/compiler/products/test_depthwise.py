"""Depthwise convolutions by compiled kernels, beside NumPy's."""

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
from toolkit.kernels.cpu.onednn.library import library, multiplies_bfloat16
from toolkit.target import rows

pytestmark = pytest.mark.skipif(library() is None or compiler() is None, reason="needs LLVM and oneDNN")


#: small ones over threads too; other processors compute the same with the instructions that they have
_ALWAYS = changed(rows.AVX512, threads={"product": 1})
check, compiled, explained = (
    functools.partial(each, processor=_ALWAYS) for each in (compare.check, compare.compiled, compare.explained)
)


@pytest.fixture(autouse=True)
def _strict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHMILL_SEGMENTS", "strict")


def _numbers(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def _graph(x: tuple[int, ...], window: tuple[int, int], strides: int = 1, padding: Any = "SAME", dilation: int = 1,
           after: Any = None, seed: int = 0) -> tuple[Any, dict[str, Any]]:  # fmt: skip
    with gm.Graph().as_default() as graph:
        given = gm.placeholder(gm.float32, x, name="x")
        y = gm.ops.depthwise_conv2d_native(
            given, _numbers(seed + 1, *window, x[-1], 1), strides=[1, strides, strides, 1], padding=padding,
            dilations=[1, dilation, dilation, 1],
        )  # fmt: skip
        gm.identity(after(y) if after else y, name="out")
    return graph, {"x:0": _numbers(seed, *x)}


def _is_used(graph: Any, feeds: dict[str, Any], **session: Any) -> bool:
    return " depthwise " in explained(graph, ["out:0"], feeds, **session)


@settings(max_examples=40, deadline=None)
@given(
    images=st.integers(1, 3),
    height=st.integers(1, 21),
    width=st.integers(4, 40),
    groups=st.integers(1, 4),
    window=st.sampled_from([(3, 3), (5, 5), (7, 7), (1, 3), (3, 1), (2, 4)]),
    strides=st.sampled_from([1, 2, 3]),
    dilation=st.sampled_from([1, 1, 2]),
    padding=st.sampled_from(["SAME", "VALID"]),
    threads=st.integers(1, 4),
    seed=st.integers(0, 1000),
)
def test_any_geometry(
    images: int, height: int, width: int, groups: int, window: tuple[int, int], strides: int, dilation: int,
    padding: str, threads: int, seed: int,
) -> None:  # fmt: skip
    reach = [(size - 1) * dilation + 1 for size in window]
    if padding == "VALID" and (height < reach[0] or width < reach[1]):
        return
    dilation = dilation if strides == 1 else 1  # TensorFlow has no other
    graph, feeds = _graph((images, height, width, 16 * groups), window, strides, padding, dilation, seed=seed)
    (got,) = check(graph, ["out:0"], feeds, threads=threads)
    if got.size >= 4096 and got.shape[2] >= 4:
        assert _is_used(graph, feeds, threads=threads)


_EPILOGUES: dict[str, Any] = {
    "bias and relu6": lambda y: gm.ops.relu6(gm.bias_add(y, _numbers(5, 48))),
    "swish": lambda y: y * gm.sigmoid(y),
    "scaled": lambda y: gm.relu(y) * _numbers(6, 48),
    "sigmoid": lambda y: gm.sigmoid(gm.bias_add(y, _numbers(5, 48))),
}


@pytest.mark.parametrize("after", list(_EPILOGUES.values()), ids=list(_EPILOGUES))
def test_epilogues(after: Any) -> None:
    graph, feeds = _graph((2, 14, 15, 48), (3, 3), after=after)
    check(graph, ["out:0"], feeds, threads=2)
    assert _is_used(graph, feeds, threads=2)


@pytest.mark.parametrize("size", [4, 5, 7, 8, 9, 14, 15, 28, 56])
@pytest.mark.parametrize("strides", [1, 2])
def test_every_tile(size: int, strides: int) -> None:
    graph, feeds = _graph((1, 20, size * strides, 32), (5, 5), strides)
    check(graph, ["out:0"], feeds)
    assert _is_used(graph, feeds)


def test_neighbours_of_numbers_that_are_not_finite() -> None:
    """Tiles reach beyond the window; their outputs must not."""
    graph, feeds = _graph((1, 12, 24, 32), (3, 3))
    feeds["x:0"][0, 5, 9, 3] = np.nan
    feeds["x:0"][0, 8, 20, 4] = np.inf
    (got,) = compiled(graph, ["out:0"], feeds)
    (wanted,) = node_by_node(graph, ["out:0"], feeds)
    np.testing.assert_array_equal(np.isfinite(got), np.isfinite(wanted))
    assert np.isnan(got[0, 4:7, 8:11, 3]).all() and np.isnan(got).sum() == 9


@pytest.mark.parametrize(("channels", "width"), [(40, 20), (32, 3)])
def test_what_is_left_to_onednn(channels: int, width: int) -> None:
    graph, feeds = _graph((1, 50, width, channels), (3, 3))
    check(graph, ["out:0"], feeds)
    assert not _is_used(graph, feeds)


@pytest.mark.skipif(not multiplies_bfloat16(), reason="needs a processor with bfloat16")
@pytest.mark.parametrize("name", ["bias and relu6", "swish"])
def test_bfloat16(name: str) -> None:
    """Between products numbers are bfloat16; sums are not."""
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [1, 28, 28, 48], name="x")
        y = gm.conv2d(x, _numbers(1, 1, 1, 48, 48) / 7)
        y = gm.ops.depthwise_conv2d_native(y, _numbers(2, 5, 5, 48, 1) / 5, strides=[1, 1, 1, 1], padding="SAME")
        gm.conv2d(_EPILOGUES[name](y), _numbers(3, 1, 1, 48, 48) / 7, name="out")
    feeds = {"x:0": _numbers(0, 1, 28, 28, 48)}
    assert _is_used(graph, feeds, precision="bf16", threads=2)
    (got,) = check(graph, ["out:0"], feeds, precision="bf16", threads=2)
    (wanted,) = node_by_node(graph, ["out:0"], feeds)
    assert np.sqrt(np.mean((got - wanted) ** 2)) < 0.01 * np.sqrt(np.mean(wanted**2))
