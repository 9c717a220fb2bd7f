"""Weights in fewer bits: the same bytes and numbers as the Graph Transform Tool's, errors told as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.passes.graphs import run_in_tensorflow
from tests.passes.optimize.oracle import changed, feed, kept, made, ops, transformed, unchanged
from tests.tolerance import assert_within, gamma
from toolkit.errors import UsageError
from toolkit.formats.arrays import tensor
from toolkit.graph.graph import Graph
from toolkit.passes.optimize.quantization.compress_weights import CompressWeights
from toolkit.passes.optimize.quantization.quantize_weights import QuantizeWeights
from toolkit.passes.optimize.quantization.round_weights import RoundWeights
from toolkit.runtime.session import Session

R = np.random.default_rng(9)


def product(tf: Any, weights: np.ndarray) -> Graph:
    def build(v1: Any) -> Any:
        x = v1.placeholder("float32", [None, weights.shape[0]], name="x")
        return v1.identity(v1.matmul(x, v1.constant(weights, name="w")) + np.float32(1), name="out")

    return made(tf, build)


def same(tf: Any, before: Graph, after: Graph, weights: np.ndarray, errors: dict[str, Any]) -> None:
    """TensorFlow and this runtime read the stored weights as what the report says they are."""
    theirs = run_in_tensorflow(tf, after, ["w:0"], {})[0]
    with Session(after) as session:
        assert_within(session.run("w:0"), theirs, gamma(3) * np.abs(weights).max(), "w")  # scaled, added, divided
    off = np.abs(theirs.astype(np.float64) - weights)
    assert errors["w"]["largest"] == pytest.approx(off.max(), rel=1e-4)  # six digits are told
    results = [run_in_tensorflow(tf, graph, ["out:0"], feed(before))[0] for graph in (before, after)]
    x = np.abs(feed(before)["x:0"])
    room = (
        x.sum(1, keepdims=True) * off.max() * 1.01
    )  # products are as far off as the weights are; a hundredth for sums
    assert (np.abs(results[0] - results[1]) <= room + 1e-5).all()  # and what rounding does to sums of 64 about 8


WEIGHTS = {
    "normal": R.normal(size=(64, 20)).astype(np.float32),
    "positive": R.uniform(1, 2, size=(64, 20)).astype(np.float32),
    "negative": R.uniform(-2, -1, size=(64, 20)).astype(np.float32),
    "one number": np.full((64, 20), 0.25, np.float32),
}


@pytest.mark.tensorflow
@pytest.mark.parametrize("kind", WEIGHTS)
def test_eight_bits(tf: Any, kind: str) -> None:
    weights = WEIGHTS[kind]
    graph = product(tf, weights)
    result = changed(QuantizeWeights(kept=kept("out")), graph)
    assert result.report["bytes_saved"] == weights.nbytes * 3 // 4
    same(tf, graph, result.graph, weights, result.report["errors"])
    theirs = transformed(graph, "x", "out", "quantize_weights")
    for name in ("w_quantized_const", "w_quantized_min", "w_quantized_max"):
        ours = tensor.to_array(result.graph.node(name).attr("value")).astype(np.float64)
        other = tensor.to_array(theirs.node(name).attr("value")).astype(np.float64)
        assert np.abs(ours - other).max() <= (np.finfo(np.float32).tiny if "const" not in name else 0)  # theirs is no 0
    assert result.graph.node("w").op == theirs.node("w").op == "Dequantize"
    unchanged(QuantizeWeights(kept=kept("out")), result.graph)


@pytest.mark.tensorflow
@pytest.mark.parametrize("kind", ["half", "bfloat16"])
def test_sixteen_bits(tf: Any, kind: Any) -> None:
    weights = WEIGHTS["normal"]
    graph = product(tf, weights)
    result = changed(CompressWeights(type=kind, kept=kept("out")), graph)
    assert ops(result.graph).count("Cast") == 1 and result.report["bytes_saved"] == weights.nbytes // 2
    same(tf, graph, result.graph, weights, result.report["errors"])
    assert result.report["errors"]["w"]["relative"] < 2.0 ** (-10 if kind == "half" else -7)  # a rounding is half of it
    unchanged(CompressWeights(type=kind, kept=kept("out")), result.graph)


@pytest.mark.tensorflow
def test_rounded(tf: Any) -> None:
    weights = WEIGHTS["normal"]
    graph = product(tf, weights)
    for steps in (2, 16, 256):
        result = changed(RoundWeights(num_steps=steps, kept=kept("out")), graph)
        ours = tensor.to_array(result.graph.node("w").attr("value"))
        assert len(np.unique(ours)) <= steps
        theirs = tensor.to_array(
            transformed(graph, "x", "out", f"round_weights(num_steps={steps})").node("w").attr("value")
        )
        width = (weights.max() - weights.min()) / steps
        assert (np.abs(ours - theirs) <= width * 1e-3).mean() > 0.999  # theirs gives the largest a step of its own
        same(tf, graph, result.graph, weights, result.report["errors"])
        assert result.report["errors"]["w"]["largest"] <= width * 0.5001  # half a step, in float32


@pytest.mark.tensorflow
def test_what_stays(tf: Any) -> None:
    small = product(tf, WEIGHTS["normal"][:, :2])
    unchanged(QuantizeWeights(kept=kept("out")), small)
    changed(QuantizeWeights(minimum_size=128, kept=kept("out")), small)
    unchanged(QuantizeWeights(kept=kept("out", "w", fed=("x", "w"))), product(tf, WEIGHTS["normal"]))
    wide = WEIGHTS["normal"].copy()
    wide[3, 3] = 1e30
    assert unchanged(CompressWeights(kept=kept("out")), product(tf, wide)).report["beyond"] == ["w"]
    changed(CompressWeights(type="bfloat16", kept=kept("out")), product(tf, wide))
    wide[3, 3] = np.nan
    for pass_ in (QuantizeWeights(kept=kept("out")), CompressWeights(kept=kept("out")), RoundWeights(kept=kept("out"))):
        unchanged(pass_, product(tf, wide))


def test_parameters() -> None:
    for wrong in (
        lambda: RoundWeights(num_steps=0),
        *(lambda kind=kind: kind(minimum_size=-1) for kind in (QuantizeWeights, CompressWeights, RoundWeights)),
    ):
        with pytest.raises(UsageError):
            wrong()
