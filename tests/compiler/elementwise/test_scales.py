"""Gates of channels that go into the filter of the 1x1 convolution behind them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.compiler.compare import assert_close, check, compiled, explained, node_by_node
from tests.compiler.elementwise.test_fusion import image, needs_onednn, weights
from toolkit import client as gm
from toolkit.kernels.cpu.onednn.library import multiplies_bfloat16
from toolkit.runtime.session import Session


def _gates(x: Any, channels: int) -> Any:
    mean = gm.ops.mean(x, [1, 2], keep_dims=True)
    return gm.sigmoid(gm.bias_add(gm.conv2d(mean, 4 * weights(1, 1, channels, channels)), weights(channels)))


def _is_gated(graph: Any, feeds: dict[str, Any], fetches: Any = ("out:0",), **session: Any) -> bool:
    """Whether a product has become part of the convolution after it."""
    lines = explained(graph, list(fetches), feeds, **session).splitlines()
    return any(" conv " in line and "Mul + Conv2D" in line for line in lines)


@settings(max_examples=25, deadline=None)
@given(
    inputs=st.sampled_from([3, 16, 24, 40, 144]),
    outputs=st.sampled_from([1, 7, 16, 24, 40]),
    stride=st.sampled_from([1, 2]),
    residual=st.booleans(),
    swapped=st.booleans(),
)
def test_gates(inputs: int, outputs: int, stride: int, residual: bool, swapped: bool) -> None:
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [1, 25, 25, inputs], name="x")
        y = gm.relu(gm.conv2d(x, weights(3, 3, inputs, inputs)))
        gates = _gates(y, inputs)
        z = gm.bias_add(gm.conv2d(gates * y if swapped else y * gates, weights(1, 1, inputs, outputs), stride),
                        weights(outputs))  # fmt: skip
        if residual:
            z = z + gm.conv2d(x, weights(1, 1, inputs, outputs), stride)
        gm.identity(gm.tanh(z), name="out")
    check(graph, ["out:0"], {"x:0": image(1, 25, inputs)})


def _graph(batch: int = 1, gate: Any = gm.sigmoid, kernel: int = 1) -> tuple[Any, dict[str, Any]]:
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [batch, 24, 24, 48], name="x")
        scale = gate(gm.conv2d(gm.ops.mean(x, [1, 2], keep_dims=True), weights(1, 1, 48, 48)))
        y = gm.multiply(x, scale, name="product")
        gm.conv2d(y, weights(kernel, kernel, 48, 16), name="out")
        gm.relu(y, name="other")
    return graph, {"x:0": image(batch, 24, 48)}


@needs_onednn
def test_what_is_scaled() -> None:
    graph, feeds = _graph()
    check(graph, ["out:0"], feeds)
    assert _is_gated(graph, feeds)
    check(graph, ["out:0", "product:0"], feeds)
    assert not _is_gated(graph, feeds, ["out:0", "product:0"])
    check(graph, ["out:0", "other:0"], feeds)
    assert not _is_gated(graph, feeds, ["out:0", "other:0"])


def _twice(y: Any) -> Any:
    return 2.0 * gm.sigmoid(y)


_OTHERS: list[dict[str, Any]] = [{"batch": 2}, {"kernel": 3}, {"gate": gm.relu}, {"gate": _twice}]


@needs_onednn
@pytest.mark.parametrize("what", _OTHERS)
def test_what_is_not(what: dict[str, Any]) -> None:
    graph, feeds = _graph(**what)
    check(graph, ["out:0"], feeds)
    assert not _is_gated(graph, feeds)


def test_no_gate_is_kept_from_one_step_to_the_next() -> None:
    graph, feeds = _graph()
    other = {"x:0": 3 * feeds["x:0"][:, ::-1]}
    with Session(graph) as session:
        for given_now in (feeds, other, feeds):
            assert_close(graph, ["out:0"], given_now, session.run(["out:0"], given_now))


@needs_onednn
@pytest.mark.parametrize("special", [np.nan, np.inf])
def test_special_values(special: float) -> None:
    graph, feeds = _graph()
    feeds["x:0"][0, 5, 5, 5] = special
    made = compiled(graph, ["out:0"], feeds)[0]
    np.testing.assert_array_equal(np.isnan(made), np.isnan(node_by_node(graph, ["out:0"], feeds)[0]))


@needs_onednn
@pytest.mark.skipif(not multiplies_bfloat16(), reason="there is no bfloat16")
def test_in_bfloat16() -> None:
    graph, feeds = _graph()
    check(graph, ["out:0"], feeds, precision="bf16")
    assert _is_gated(graph, feeds, precision="bf16")


@needs_onednn
@pytest.mark.parametrize("precision", ["tf32", "fp16"])
def test_what_gpus_alone_have_is_float32_here(precision: str) -> None:
    graph, feeds = _graph()
    assert _is_gated(graph, feeds, precision=precision)
    (made,), (wanted,) = (compiled(graph, ["out:0"], feeds, precision=each) for each in (precision, "f32"))
    np.testing.assert_array_equal(made, wanted)
