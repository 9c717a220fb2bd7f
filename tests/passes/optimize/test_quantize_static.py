"""Networks with ranges measured on data: 8 bits from end to end, and the same numbers as in TensorFlow.

Generated networks have weights, ranges and biases for which float32 adds exactly, in whatever order, and no sum lies
between two steps: then TensorFlow, the definitions and 8-bit products give the same bits.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from commands.main import run
from tests import tolerance
from tests.compiler.compare import explained
from tests.compiler.integers.test_round_trips import needs_int8
from tests.passes.graphs import run_in_tensorflow
from tests.passes.optimize.oracle import changed, kept, made, ops, unchanged
from toolkit.errors import GraphmillError, UsageError
from toolkit.formats.models.model import from_meta_graph, read_model, write_model
from toolkit.graph import dtypes
from toolkit.graph.graph import Graph
from toolkit.graph.metagraph import MetaGraph
from toolkit.graph.tensorref import parse_tensor
from toolkit.passes.models.surroundings import record_signature
from toolkit.passes.optimize import table
from toolkit.passes.optimize.notation import parse_passes
from toolkit.passes.optimize.quantization.quantize_static import QuantizeStatic, ends_of
from toolkit.passes.optimize.run import optimize
from toolkit.runtime.analysis.calibration import Calibration, read_calibration
from toolkit.runtime.session import Session

Array = Any
#: a step of activations, of weights, and what keeps sums of their products off the middle between two steps
_STEP, _UNIT, _OFF = 2.0**-4, 2.0**-9, 2.0**-14
#: a mean of 4 x 4 numbers in steps is in sixteenths of them
_MEANS = 16


def _weights(rng: Any, *shape: int, axis: int = -1) -> Array:
    """Whole multiples of a power of two, the largest of each output channel 127 of them."""
    numbers = rng.integers(-100, 101, shape)
    numbers.reshape(-1, shape[-1])[0] = 127
    if axis != -1:
        numbers[0, 0] = 127
    return (numbers * _UNIT).astype(np.float32)


def _bias(rng: Any, size: int) -> Array:
    return (rng.integers(-4, 17, size) * _STEP + _OFF).astype(np.float32)


def generated(v1: Any, seed: int) -> Any:
    """A small network of convolutions, depthwise ones, pools, sums and products over images of 8 x 8."""
    rng, choose = np.random.default_rng(seed), random.Random(seed)
    x = v1.placeholder("float32", [None, 8, 8, 4], name="x")
    y: Any = x
    channels, side = 4, 8

    def conv(t: Any, size: int, out: int, stride: int = 1) -> Any:
        into = int(t.shape[-1])
        return v1.nn.bias_add(v1.nn.conv2d(t, _weights(rng, size, size, into, out), stride, "SAME"), _bias(rng, out))

    for _ in range(choose.randint(2, 4)):
        kind = choose.choice(["conv", "depthwise", "residual", "projected", "pool"])
        clip: Any = choose.choice([v1.nn.relu, v1.nn.relu6, v1.identity])
        if kind == "depthwise":
            w = _weights(rng, 3, 3, channels, 1, axis=2)
            y = clip(v1.nn.bias_add(v1.nn.depthwise_conv2d(y, w, [1] * 4, "SAME"), _bias(rng, channels)))
        elif kind == "residual":
            y = clip(conv(v1.nn.relu(conv(y, 3, 8)), 1, channels) + y)
        elif kind == "projected":
            y, channels = clip(conv(y, 1, 8) + conv(v1.nn.relu(conv(y, 3, 6)), 1, 8)), 8
        elif kind == "pool" and side > 4:
            y, side = v1.nn.max_pool(v1.nn.relu(conv(y, 3, channels)), 2, 2, "SAME"), side // 2
        else:
            y, channels = clip(conv(y, choose.choice([1, 3]), 6)), 6
    y = conv(y, 3, 16, 2 if side == 8 else 1)
    y = v1.reduce_mean(v1.nn.relu(y), axis=[1, 2])
    return v1.identity(v1.nn.bias_add(v1.matmul(y, _weights(rng, 16, 5)), _bias(rng, 5)), name="out")


def exact_ranges(graph: Graph, tensors: Sequence[str], percentile: float | None) -> Mapping[str, tuple[float, float]]:
    """Ranges whose steps are powers of two."""
    steps = {name: _STEP / _MEANS if graph.node(parse_tensor(name).node).op == "Mean" else _STEP for name in tensors}
    return {name: (-128 * step, 127 * step) for name, step in steps.items()}


def given(seed: int, *shape: int) -> Array:
    """Numbers that are no multiples of a step, and not between two."""
    numbers = np.random.default_rng(seed).integers(-40, 41, shape) * _STEP
    return (numbers + _OFF).astype(np.float32)


def ours(graph: Graph, fetches: Sequence[str], feeds: Mapping[str, Array], **settings: Any) -> list[Array]:
    with Session(graph, **settings) as session:
        return session.run(list(fetches), dict(feeds))


@pytest.mark.tensorflow
@pytest.mark.parametrize("seed", range(8))
def test_the_numbers_of_tensorflow(tf: Any, seed: int) -> None:
    graph = made(tf, lambda v1: generated(v1, seed))
    result = changed(QuantizeStatic(kept=kept("out"), measure=exact_ranges), graph)
    rounded = [node.name + ":0" for node in result.graph if node.op == "FakeQuantWithMinMaxVars"]
    products = sum(node.op in ("Conv2D", "DepthwiseConv2dNative", "MatMul") for node in graph)
    assert sum(result.report["quantized"].values()) == products
    assert result.report["left"] == {}
    feeds = {"x:0": given(seed, 2, 8, 8, 4)}
    want = run_in_tensorflow(tf, result.graph, [*rounded, "out:0"], feeds)
    for settings in ({}, {"precision": "exact"}):
        for name, one, other in zip(
            [*rounded, "out:0"], ours(result.graph, [*rounded, "out:0"], feeds, **settings), want, strict=True
        ):
            np.testing.assert_array_equal(one, other, err_msg=name)
    np.testing.assert_array_equal(ours(result.graph, ["out:0"], feeds)[0], want[-1])  # nothing is looked at in between
    assert all(len(np.unique(value)) > 4 for value in want[:-1])


@pytest.mark.tensorflow
def test_calls_between_rounded_tensors(tf: Any) -> None:
    """Keras exports layers, and models within models, as functions: a convolution in one follows one in another."""

    def build(v1: Any, *, calls: bool) -> Any:
        rng = np.random.default_rng(5)
        weights = [_weights(rng, 3, 3, 4, 8), _weights(rng, 1, 1, 8, 8), _weights(rng, 3, 3, 8, 8), _weights(rng, 8, 5)]
        bias = _bias(rng, 8)

        def layer(t: Any, w: Any) -> Any:
            return v1.nn.relu(v1.nn.bias_add(v1.nn.conv2d(t, w, 1, "SAME"), bias))

        def block(t: Any) -> Any:
            first = one(t, weights[0])
            return v1.nn.max_pool(one(first, weights[1]), 2, 2, "SAME"), v1.nn.max_pool(first, 2, 2, "SAME")

        one = tf.function(layer) if calls else layer
        both = tf.function(block) if calls else block
        y, shortcut = both(v1.placeholder("float32", [2, 8, 8, 4], name="x"))
        y = v1.reduce_mean(v1.nn.relu(one(y, weights[2]) + shortcut), axis=[1, 2])
        return v1.identity(v1.matmul(y, weights[3]), name="out")

    def quantized(graph: Graph) -> Graph:
        result = changed(QuantizeStatic(kept=kept("out"), measure=exact_ranges), graph)
        assert result.report["quantized"] == {"Conv2D": 3, "MatMul": 1} and result.report["left"] == {}
        return result.graph

    graph, plain = (made(tf, lambda v1, calls=calls: build(v1, calls=calls)) for calls in (True, False))
    assert not any(node.op == "Conv2D" for node in graph)  # they are all in functions
    found, wanted = quantized(graph), quantized(plain)
    counts, expected = Counter(ops(found)), Counter(ops(wanted))
    assert counts["FakeQuantWithMinMaxVars"] == expected["FakeQuantWithMinMaxVars"]
    feeds = {"x:0": given(5, 2, 8, 8, 4)}
    [theirs] = run_in_tensorflow(tf, found, ["out:0"], feeds)
    np.testing.assert_array_equal(run_in_tensorflow(tf, wanted, ["out:0"], feeds)[0], theirs)
    for settings in ({}, {"precision": "exact"}):
        np.testing.assert_array_equal(ours(found, ["out:0"], feeds, **settings)[0], theirs)
    with pytest.raises(UsageError, match="ignore is 'Conv3D', which is no node or op of the graph"):
        QuantizeStatic(kept=kept("out"), ignore=("Conv3D",)).apply(graph)
    half = changed(QuantizeStatic(kept=kept("out"), measure=exact_ranges, ignore=("Conv2D",)), graph)
    assert half.report["quantized"] == {"MatMul": 1}


@needs_int8
@pytest.mark.tensorflow
@pytest.mark.parametrize("fused", [False, True])
def test_8_bits_from_end_to_end(tf: Any, fused: bool) -> None:
    """Only the input is quantized, and the result of the mean once more; fused epilogues are taken apart."""

    def build(v1: Any) -> Any:
        rng = np.random.default_rng(3)
        x = v1.placeholder("float32", [16, 8, 8, 4], name="x")
        y = v1.nn.relu(v1.nn.bias_add(v1.nn.conv2d(x, _weights(rng, 3, 3, 4, 16), 1, "SAME"), _bias(rng, 16)))
        y = v1.nn.max_pool(y, 2, 2, "SAME")
        y = v1.nn.conv2d(v1.pad(y, [[0, 0], [1, 1], [1, 1], [0, 0]]), _weights(rng, 3, 3, 16, 16), 1, "VALID")
        y = v1.nn.relu(y * v1.rsqrt(v1.constant([0.25] * 16)) + _bias(rng, 16))  # a batch norm, spelled out
        z = v1.nn.relu(v1.nn.bias_add(v1.nn.conv2d(y, _weights(rng, 3, 3, 16, 16), 1, "SAME"), _bias(rng, 16)))
        z = v1.nn.bias_add(v1.nn.conv2d(z, _weights(rng, 1, 1, 16, 16), 1, "SAME"), _bias(rng, 16))
        y = v1.nn.conv2d(v1.nn.relu(y + z), _weights(rng, 1, 1, 16, 64), 1, "SAME")
        y = v1.reduce_mean(v1.nn.relu(v1.nn.bias_add(y, _bias(rng, 64))), axis=[1, 2])
        return v1.identity(v1.matmul(y, _weights(rng, 64, 96)), name="out")

    graph = made(tf, build)
    before = table.preset("inference") if fused else []
    done = optimize(graph, [*before, QuantizeStatic(measure=exact_ranges)], kept("out"))
    assert done.settled
    assert done.contrary == ([("quantize_static", "fuse_epilogues")] if fused else [])
    feeds = {"x:0": given(1, 16, 8, 8, 4)}
    text = explained(done.graph, ["out:0"], feeds)
    words = Counter(line.split()[1] for line in text.partition("\n\n")[0].splitlines()[2:])
    assert (words["int8_conv"], words["int8_matmul"], words["quantize"]) == (5, 1, 2), text
    assert words["convolution"] == words["matmul"] == 0, text
    np.testing.assert_array_equal(
        ours(done.graph, ["out:0"], feeds)[0], run_in_tensorflow(tf, done.graph, ["out:0"], feeds)[0]
    )


@pytest.mark.tensorflow
def test_batch_norms_go_into_weights(tf: Any) -> None:
    def build(v1: Any) -> Any:
        rng = np.random.default_rng(5)
        x = v1.placeholder("float32", [None, 8, 8, 3], name="x")
        y = v1.nn.conv2d(x, rng.normal(size=(3, 3, 3, 8)).astype(np.float32), 1, "SAME")
        scale, offset, mean = (rng.normal(size=8).astype(np.float32) for _ in range(3))
        y = v1.raw_ops.FusedBatchNormV3(
            x=y, scale=scale, offset=offset, mean=mean, variance=scale**2 + 1, is_training=False
        ).y
        return v1.identity(v1.nn.conv2d(v1.nn.relu(y), rng.normal(size=(1, 1, 8, 4)).astype(np.float32), 1, "SAME"),
                           name="out")  # fmt: skip

    graph = made(tf, build)
    data = np.random.default_rng(6).normal(size=(10, 8, 8, 3)).astype(np.float32)
    result = changed(QuantizeStatic(kept=kept("out"), measure=_data({"x": data}).measure), graph)
    assert Counter(ops(result.graph)) == Counter({
        "Conv2D": 2, "BiasAdd": 1, "Relu": 1, "FakeQuantWithMinMaxVars": 2, "QuantizeAndDequantizeV3": 2
    })  # fmt: skip
    feeds = {"x:0": data[:4]}
    want, theirs = (run_in_tensorflow(tf, each, ["out:0"], feeds)[0] for each in (graph, result.graph))
    [mine] = ours(result.graph, ["out:0"], feeds)
    spread = np.abs(want).max()
    # each of four tensors is off by half a step of 127 to 255 at most: 1/254 of its largest number, and errors of one
    # sum go in all directions; 0.05 is 12 of these
    assert np.abs(theirs - want).max() < 0.05 * spread
    # a tie moves one of the 8 numbers that make an output by a step, 1/255 of the largest there: 0.02 are 5 of them
    assert np.abs(mine - theirs).max() < 0.02 * spread
    # float32's own error is 2^-24 of a number, 2^-16 of a step: one number in a thousand near a tie is many
    assert np.mean(np.abs(mine - theirs) > spread / 255 / 8) < 0.01


def _data(arrays: Mapping[str, Array]) -> Calibration:
    return Calibration(arrays, "data.npz")


def relu_network(v1: Any) -> Any:
    rng = np.random.default_rng(1)
    x = v1.placeholder("float32", [None, 6], name="x")
    y = v1.nn.relu(v1.matmul(x, rng.normal(size=(6, 8)).astype(np.float32)), name="hidden")
    return v1.identity(v1.matmul(y, rng.normal(size=(8, 3)).astype(np.float32)), name="out")


# -- ranges --------------------------------------------------------------------------------------------------------


@pytest.mark.tensorflow
@pytest.mark.parametrize("percentile", [None, 99.0])
def test_ranges_are_those_of_all_rows(tf: Any, tmp_path: Path, percentile: float | None) -> None:
    graph = made(tf, relu_network)
    x = np.random.default_rng(2).standard_cauchy(size=(1001, 6)).astype(np.float32)
    np.savez(tmp_path / "d.npz", **{"x": x, "other": np.zeros(3), "^no tensor": np.zeros(3), "x:1": np.zeros(3)})
    found = read_calibration(str(tmp_path / "d.npz")).measure(graph, ["x:0", "hidden:0"], percentile)
    [hidden] = run_in_tensorflow(tf, graph, ["hidden:0"], {"x:0": x})
    for name, values in (("x:0", x), ("hidden:0", hidden)):
        ends = (0.0, 100.0) if percentile is None else (0.5, 99.5)
        want = np.percentile(values, ends)
        part = 0.0 if percentile is None else (values.max() - values.min()) / 4096  # in so many numbers are counted
        np.testing.assert_allclose(found[name], want, atol=part + tolerance.gamma(8) * 8 * np.abs(x).max())


@pytest.mark.parametrize(
    ("low", "high"),
    [(1.0, 1.0 + 2.0**-20), (-3e38, 3e38), (-(2.0**-140), 2.0**-140), (5.0, 5.0)],
    ids=["narrow", "wide", "small", "nothing"],
)
def test_ranges_that_float32_does_not_divide(low: float, high: float) -> None:
    """4096 parts of them have no width in float32, or an infinite one."""
    graph = Graph()
    graph.add("Placeholder", "x", attrs={"dtype": dtypes.float32})
    x = np.linspace(low, high, 101).astype(np.float32)
    [(least, most)] = _data({"x": x}).measure(graph, ["x:0"], 99.0).values()
    part = (high - low) / 4096
    want = np.percentile(x.astype(np.float64), (0.5, 99.5))
    # the 1st and the 101st of 101 numbers are half a percent beyond the ends
    np.testing.assert_allclose((least, most), want, rtol=0, atol=part + 0.005 * (high - low))


@pytest.mark.parametrize(
    ("low", "high", "want"),
    [
        (0.5, 2.55, (0.0, 2.55)),
        (-3.0, -1.0, (-3.0, 0.0)),
        (0.0, 0.0, (0.0, 1.0)),
        (-1e-38, 1e-38, (0.0, 1.0)),
        (np.nan, 1.0, None),
        (-np.inf, 1.0, None),
        (-3e38, 3e38, None),
    ],
)
def test_ends(low: float, high: float, want: tuple[float, float] | None) -> None:
    found = ends_of(low, high)
    assert (found is None) is (want is None)
    if found is not None:
        assert found == pytest.approx(want, rel=tolerance.gamma(2, np.float64), abs=0)


def test_zero_is_a_step() -> None:
    for low, high in np.random.default_rng(3).uniform(-3, 3, (50, 2)):
        ends = ends_of(min(low, high), max(low, high))
        assert ends is not None
        step = (ends[1] - ends[0]) / 255
        assert abs(ends[0] / step - round(ends[0] / step)) <= 255 * tolerance.gamma(6, np.float64)


# -- what stays ----------------------------------------------------------------------------------------------------


def _switched(v1: Any, x: Any) -> Any:
    taken = v1.raw_ops.Switch(data=x, pred=v1.placeholder("bool", [], name="p"))
    return v1.matmul(taken[0], np.ones((4, 2), np.float32))


_ONES = np.ones((4, 4), np.float32)
_LINE = np.ones((400, 1), np.float32)  # a product of two is too large to be folded
STAYS: dict[str, Callable[[Any, Any], Any]] = {
    "its weights are no constants": lambda v1, x: v1.matmul(x, v1.transpose(x)),
    "it is float64": lambda v1, x: v1.matmul(v1.cast(x, "float64"), _ONES.astype(np.float64)),
    "its weights are not finite": lambda v1, x: v1.matmul(x, _ONES * np.float32("nan")),
    "there is no 8-bit BatchMatMulV2": lambda v1, x: v1.matmul(x[None], _ONES[None]),
    "what it takes is constant": lambda v1, x: x + v1.matmul(_LINE, _LINE.T)[:4, :4],
    "it is in a loop or a branch, or behind a call or an effect": _switched,
}


@pytest.mark.tensorflow
@pytest.mark.parametrize("why", STAYS)
def test_what_stays_is_said(tf: Any, why: str) -> None:
    build = STAYS[why]
    graph = made(tf, lambda v1: v1.identity(build(v1, v1.placeholder("float32", [4, 4], name="x")), name="out"))
    result = unchanged(QuantizeStatic(kept=kept("out"), measure=exact_ranges), graph)
    assert list(result.report["left"].values()) == [why]
    [note] = result.report["notes"]
    assert note.startswith("1 of 1 convolutions and products stay float32")
    assert why in note


@pytest.mark.tensorflow
def test_numbers_that_are_not_finite(tf: Any) -> None:
    graph = made(tf, relu_network)
    x = np.ones((4, 6), np.float32)
    x[2, 1] = np.inf
    result = unchanged(QuantizeStatic(kept=kept("out"), measure=_data({"x": x}).measure), graph)
    assert "'x:0' has no finite range on these data" in result.report["notes"][0]


@pytest.mark.tensorflow
def test_what_is_ignored_or_rounded_already(tf: Any) -> None:
    graph = made(tf, relu_network)
    first = changed(QuantizeStatic(kept=kept("out"), measure=exact_ranges, ignore=("MatMul_1",)), graph)
    assert first.report["quantized"] == {"MatMul": 1}
    assert first.report["notes"] == []
    unchanged(QuantizeStatic(kept=kept("out"), measure=exact_ranges, ignore=("MatMul",)), graph)
    both = changed(QuantizeStatic(kept=kept("out"), measure=exact_ranges), first.graph)
    assert Counter(ops(both.graph))["FakeQuantWithMinMaxVars"] == 2
    assert Counter(ops(both.graph))["QuantizeAndDequantizeV3"] == 2
    with pytest.raises(UsageError, match="ignore is 'Matmul', which is no node or op of the graph; did you mean"):
        QuantizeStatic(kept=kept("out"), ignore=("Matmul",)).apply(graph)


@pytest.mark.tensorflow
def test_a_float_tensor_stays_for_others(tf: Any) -> None:
    """What no product makes is rounded for the product alone."""

    def build(v1: Any) -> Any:
        x = v1.tanh(v1.placeholder("float32", [3, 4], name="x"))
        return v1.identity(v1.matmul(x, np.ones((4, 4), np.float32)) * v1.exp(x), name="out")

    graph = made(tf, build)
    result = changed(QuantizeStatic(kept=kept("out"), measure=exact_ranges), graph)
    assert result.graph.node("Exp").inputs[0].node.op == "Tanh"
    assert result.graph.node("MatMul").inputs[0].node.op == "FakeQuantWithMinMaxVars"


# -- the command ---------------------------------------------------------------------------------------------------


@pytest.fixture
def model(tf: Any, tmp_path: Path) -> Path:
    """relu_network as a file, with data beside it."""
    meta = MetaGraph(made(tf, relu_network))
    record_signature(meta, {"x": "x:0"}, {"y": "out:0"})
    write_model(from_meta_graph(meta), str(tmp_path / "net.meta"))
    np.savez(tmp_path / "good.npz", x=np.random.default_rng(1).normal(size=(9, 6)))
    np.save(tmp_path / "good.npy", np.random.default_rng(1).normal(size=(9, 6)).astype(np.float32))
    return tmp_path / "net.meta"


@pytest.mark.tensorflow
@pytest.mark.parametrize("data", ["good.npz", "good.npy", "good.npz:x"])
@pytest.mark.parametrize("options", ["", "(method=percentile,percentile=99.9)"])
def test_the_command(tf: Any, model: Path, data: str, options: str, capsys: pytest.CaptureFixture[str]) -> None:
    folder = model.parent
    out, report = str(folder / "8.meta"), str(folder / "report.json")
    passes = f"quantize_static{options}"
    code = run(
        ["optimize", str(model), "--passes", passes, "--calibrate", str(folder / data), "-o", out, "--report", report,
         "--verify", str(folder / "good.npz"), "--atol", "0.3"]
    )  # fmt: skip
    said = capsys.readouterr().err
    assert code == 0, said
    assert re.search(r"optimize: \d+ nodes became \d+\n", said)
    facts = json.loads(Path(report).read_text())["passes"][0]["report"]
    assert facts["quantized"] == {"MatMul": 2}
    assert set(facts["ranges"]) == {"x:0", "hidden:0"}
    graph = read_model(out).graph
    feeds = {"x:0": np.load(folder / "good.npy")}
    mine, theirs = ours(graph, ["out:0"], feeds)[0], run_in_tensorflow(tf, graph, ["out:0"], feeds)[0]
    # a tie moves one hidden number by a step, 1/255 of the largest, and weights are 3 at most: 0.1 is one of those
    np.testing.assert_allclose(mine, theirs, atol=0.1)


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "another output": ({"x:1": np.ones((2, 6))}, "has no array for the input 'x'; it has x:1"),
    "another name": ({"xx": np.ones((2, 6))}, "has no array for the input 'x'; did you mean 'xx'?"),
    "nothing in it": ({}, "has no array for the input 'x'"),
    "strings": ({"x": np.array([["a"] * 6])}, "cannot feed strings for 'x:0', which is float32"),
    "complex": ({"x": np.ones((2, 6), np.complex64)}, "cannot feed complex64 for 'x:0', which is float32"),
    "no rows": ({"x": np.ones((0, 6))}, "has no rows for 'x'"),
    "another size": ({"x": np.ones((2, 7))}, "has an array of shape [2,7] for 'x', which has shape [?,6]"),
    "a row alone": ({"x": np.ones(6)}, "has an array of shape [6] for 'x', which has shape [?,6]"),
}


@pytest.mark.tensorflow
@pytest.mark.parametrize("case", WRONG)
def test_wrong_data(model: Path, case: str, capsys: pytest.CaptureFixture[str]) -> None:
    arrays, want = WRONG[case]
    file = str(model.parent / "bad.npz")
    np.savez(file, **arrays)
    assert run(["optimize", str(model), "--passes", "quantize_static", "--calibrate", file, "-o", "never.pb"]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("graphmill: error: --calibrate: ")
    assert want in line


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    ("options", "want"),
    [
        (["--passes", "quantize_static"], "measures ranges on calibration data: --calibrate FILE.npz"),
        (["--passes", "quantize_static", "--calibrate", "nowhere.npz"], "--calibrate: nowhere.npz"),
        (["--passes", "quantize_static", "--calibrate", "net.meta"], "--calibrate: "),
        (["--calibrate", "good.npz"], "--calibrate is data for the pass quantize_static; add --passes"),
        (["--passes", "quantize_static(method=entropy)"], "expected minmax or percentile"),
        (["--passes", "quantize_static(percentile=20)"], "percentile is 20; expected more than 50, up to 100"),
    ],
)
def test_wrong_options(
    model: Path, options: list[str], want: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(model.parent)
    assert run(["optimize", "net.meta", *options, "-o", "never.pb"]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert want in line


@pytest.mark.tensorflow
def test_inputs_of_different_lengths(tf: Any, tmp_path: Path) -> None:
    """Rows go together; what has none is the same in each step; a fixed size is taken whole."""

    def build(v1: Any) -> Any:
        x, y = (v1.placeholder("float32", [None, 4], name=name) for name in "xy")
        z, scale = v1.placeholder("float32", [2, 4], name="z"), v1.placeholder("float32", [], name="scale")
        w = np.ones((4, 4), np.float32)
        return v1.identity(v1.matmul((x + y) * scale, w) + v1.reduce_sum(v1.matmul(z, w)), name="out")

    graph = made(tf, build)
    arrays = {"x": np.ones((9, 4)), "y": np.ones((9, 4)), "z": np.full((2, 4), 3.0), "scale": np.float32(2)}
    tensors = [graph.node("MatMul").inputs[0].name, "z:0"]
    assert _data(arrays).measure(graph, tensors, None) == {tensors[0]: (4.0, 4.0), "z:0": (3.0, 3.0)}
    for name, array, want in (
        ("y", np.ones((8, 4)), "has 8 rows for 'y' and 9 for 'x'; expected as many for each input"),
        ("y", np.ones((10, 4)), "has 9 rows for 'x' and 10 for 'y'; expected as many for each input"),
        ("z", np.ones((3, 4)), "has 3 rows for 'z', which takes 2 at a time"),
        ("x:0", np.ones((9, 4)), "has several arrays for the input 'x': x, x:0"),
    ):
        with pytest.raises(UsageError, match=want):
            _data({**arrays, name: array}).measure(graph, tensors, None)
    np.save(tmp_path / "one.npy", np.ones((2, 4)))
    with pytest.raises(UsageError, match=r"is one array, and the network has 4 inputs \(x, y, z, scale\)"):
        read_calibration(str(tmp_path / "one.npy")).measure(graph, tensors, None)


@pytest.mark.tensorflow
def test_the_notation(tf: Any) -> None:
    [pass_] = parse_passes("quantize_static(method=percentile, ignore=Conv2D, ignore=MatMul_1)")
    assert isinstance(pass_, QuantizeStatic)
    assert (pass_.method, pass_.ignore) == ("percentile", ("Conv2D", "MatMul_1"))
    with pytest.raises(GraphmillError, match="is no node or op"):
        replace(pass_, kept=kept("out")).apply(made(tf, relu_network))
