"""8-bit operations: TensorFlow computes from them what it computes from the Graph Transform Tool's, bit for bit."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from commands.main import run
from tests.passes.graphs import run_in_tensorflow
from tests.passes.optimize.oracle import changed, kept, made, ops, transformed, unchanged
from tests.passes.optimize.plain_tensorflow import Plain, plain_tensorflow
from toolkit.errors import UsageError
from toolkit.formats.models.model import from_meta_graph, read_model, write_model
from toolkit.graph import dtypes
from toolkit.graph.graph import Graph
from toolkit.graph.metagraph import MetaGraph
from toolkit.graph.shape import Shape
from toolkit.passes.models.surroundings import record_signature
from toolkit.passes.optimize.notation import parse_passes
from toolkit.passes.optimize.quantization.quantize_nodes import QuantizeNodes
from toolkit.passes.optimize.run import optimize
from toolkit.runtime.session import Session

Array = Any


def numbers(seed: int, *shape: int) -> Array:
    """Normal numbers as multiples of 1/64.

    Products of two are multiples of 2^-12, so float32 holds sums of a few hundred below 2^11 exactly, in whatever order
    a processor adds them: a last bit of a convolution that stays float would else move the range that the operations
    behind it are quantized to, and with it every number by a step.
    """
    return (np.rint(np.random.default_rng(seed).normal(size=shape) * 64) / 64).astype(np.float32)


def network(v1: Any) -> Any:
    x = v1.placeholder("float32", [None, 8, 8, 3], name="x")
    y = v1.nn.conv2d(x, v1.constant(numbers(1, 3, 3, 3, 4), name="w"), strides=[1, 1, 1, 1], padding="SAME")
    y = v1.nn.relu6(v1.nn.bias_add(y, v1.constant(numbers(2, 4))))
    y = v1.nn.max_pool(y, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
    y = v1.raw_ops.Concat(concat_dim=3, values=[y, v1.nn.relu(y)])
    y = v1.raw_ops.ResizeBilinear(images=y, size=[4, 4])
    y = v1.matmul(v1.reshape(y, [-1, 128]), v1.constant(numbers(3, 128, 5)))
    return v1.identity(v1.nn.softmax(v1.raw_ops.Add(x=y, y=v1.constant(numbers(4, 5)))), name="out")


def ranges(v1: Any) -> Any:
    """FakeQuant behind a product, behind an activation of one, behind what has no sums, and of a tensor read twice."""
    fake = v1.quantization.fake_quant_with_min_max_vars
    x = v1.placeholder("float32", [None, 8], name="x")
    y = fake(v1.matmul(x, v1.constant(numbers(5, 8, 8))), -4.0, 4.5)
    y = fake(v1.nn.relu(v1.matmul(y, v1.constant(numbers(6, 8, 8)))), -1.0, 6.0)
    z = v1.matmul(y, v1.constant(numbers(7, 8, 8)))
    y = fake(z, -2.0, 2.0) + v1.nn.relu(z)
    return v1.identity(v1.quantization.fake_quant_with_min_max_args(v1.nn.relu(v1.tanh(y)), 0.0, 1.0), name="out")


def feeds(graph: Graph, seed: int = 3) -> dict[str, Array]:
    shape = [2 if size is None else size for size in graph.node("x").attr("shape")]
    return {"x:0": numbers(seed, *shape)}


@pytest.fixture(scope="module")
def plain(tf: Any) -> Iterator[Plain]:
    with plain_tensorflow() as process:
        yield process


def ours(graph: Graph, given: dict[str, Array], *fetches: str) -> list[Array]:
    """What the kernels compute that define the ops."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRAPHMILL_SEGMENTS", "off")
        patch.setenv("GRAPHMILL_ONEDNN", "off")
        with Session(graph.copy()) as session:
            return session.run(list(fetches), given)


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    "given", ["", "fallback_min=-20, fallback_max=30", "ignore_op=Conv2D, ignore_op=Relu", "input_min=-3, input_max=3"]
)
def test_the_numbers_of_the_tool(tf: Any, plain: Plain, given: str) -> None:
    graph = made(tf, network)
    text = f"quantize_nodes({given})" if given else "quantize_nodes"
    [pass_] = parse_passes(text)
    result = changed(replace(pass_, kept=kept("out")), graph)
    theirs = transformed(graph, "x", "out", text)
    quantized = sorted(op for op in ops(result.graph) if op.startswith(("Quantized", "Requantiz")))
    assert quantized == sorted(op for op in ops(theirs) if op.startswith(("Quantized", "Requantiz")))
    fed = feeds(graph)
    if "input" in given:
        assert result.report["inputs"] == ["x"]
        fed = {"x:0": np.random.default_rng(1).integers(0, 256, (2, 8, 8, 3)).astype(np.uint8)}
    names = [n.name + ":0" for n in result.graph if n.op == "Dequantize" and n.name in theirs]
    want = plain.run(theirs, [*names, "out:0"], fed)
    mine = ours(result.graph, fed, *names, "out:0")
    for name, a, b, c in zip(
        [*names, "out:0"], plain.run(result.graph, [*names, "out:0"], fed), want, mine, strict=True
    ):
        np.testing.assert_array_equal(a, b, err_msg=name)
        if name == "out:0":  # exp is another function
            np.testing.assert_allclose(c, b, rtol=2**-18, atol=2**-24)
        else:
            np.testing.assert_array_equal(c, b, err_msg=name)


@pytest.mark.tensorflow
def test_ranges_that_the_graph_says(tf: Any, plain: Plain) -> None:
    graph = made(tf, ranges)
    result = changed(QuantizeNodes(kept=kept("out")), graph)
    assert result.report["quantized"] == {
        "MatMul": 3, "FakeQuantWithMinMaxVars": 3, "Relu": 3, "FakeQuantWithMinMaxArgs": 1
    }  # fmt: skip
    assert ops(result.graph).count("RequantizationRange") == 1  # what a FakeQuant shares with another reader
    for seed in range(3):
        fed = feeds(graph, seed)
        exact = plain.run(graph, ["out:0"], fed)[0]
        quantized = plain.run(result.graph, ["out:0", "FakeQuantWithMinMaxVars_2:0"], fed)
        mine = ours(result.graph, fed, "FakeQuantWithMinMaxVars_2:0")
        np.testing.assert_array_equal(mine[0], quantized[1])
        # four roundings to steps of ranges of 9, 7, 15 and 4 and of 1 in the end; tanh makes them smaller
        assert np.abs(exact - quantized[0]).max() <= 0.2


@pytest.mark.tensorflow
def test_with_weights_that_have_8_bits(tf: Any, plain: Plain) -> None:
    """The tool's recipe for 8-bit networks: weights first, then nodes; nothing is made float and back."""
    graph = made(tf, network)
    text = "quantize_weights(minimum_size=16) quantize_nodes strip_unused_nodes"
    done = optimize(graph, parse_passes(text), kept("out"))
    theirs = transformed(graph, "x", "out", text)
    assert done.settled
    assert ops(done.graph).count("QuantizeV2") <= ops(theirs).count("QuantizeV2")
    want, found = (plain.run(each, ["out:0"], feeds(graph)) for each in (theirs, done.graph))
    np.testing.assert_array_equal(found[0], want[0])


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    ("why", "build"),
    [
        ("channels first", lambda v1, x: v1.nn.max_pool(x, [1, 1, 2, 2], [1, 1, 2, 2], "SAME", data_format="NCHW")),
        ("dilated", lambda v1, x: v1.nn.conv2d(x, numbers(1, 2, 2, 4, 3), 1, "SAME", dilations=2)),
        ("two strides", lambda v1, x: v1.nn.conv2d(x, numbers(1, 2, 2, 4, 3), [1, 1, 2, 1], "SAME")),
        ("groups", lambda v1, x: v1.nn.conv2d(x, numbers(1, 2, 2, 2, 4), 1, "SAME")),
        ("explicit pads", lambda v1, x: v1.nn.conv2d(x, numbers(1, 2, 2, 4, 3), 1, [[0, 0], [1, 0], [0, 1], [0, 0]])),
        ("unequal shapes", lambda v1, x: x + v1.constant(numbers(1, 4, 1))),
        ("double", lambda v1, x: v1.nn.relu(v1.cast(x, "float64"))),
        ("another device", lambda v1, x: _on(v1, "/device:GPU:0", lambda: v1.nn.relu(x))),
        ("no 8-bit form", lambda v1, x: v1.tanh(x)),
    ],
)
def test_what_stays(tf: Any, why: str, build: Callable[[Any, Any], Any]) -> None:
    graph = made(tf, lambda v1: v1.identity(build(v1, v1.placeholder("float32", [2, 4, 4, 4], name="x")), name="out"))
    unchanged(QuantizeNodes(kept=kept("out")), graph)


def _on(v1: Any, device: str, build: Callable[[], Any]) -> Any:
    with v1.device(device):
        return build()


@pytest.mark.tensorflow
def test_zeros_and_what_is_fed(tf: Any) -> None:
    """A range of nothing but zeros is no mistake, and a node that is fed says nothing of its numbers."""

    def build(v1: Any) -> Any:
        x = v1.placeholder("float32", [2, 4], name="x")
        y = v1.matmul(x, v1.constant(numbers(1, 4, 4)), name="y")
        return v1.identity(v1.nn.relu(y) * y + v1.constant(2.0), name="out")

    graph = made(tf, build)
    result = changed(QuantizeNodes(kept=kept("out")), graph)
    zeros = {"x:0": np.zeros((2, 4), np.float32)}
    for found in (run_in_tensorflow(tf, result.graph, ["out:0"], zeros), ours(result.graph, zeros, "out:0")):
        assert np.abs(found[0] - 2).max() <= 2 / 255
    middle = changed(QuantizeNodes(kept=kept("out", fed=("x", "y"))), graph)
    assert middle.graph.node("y").op == "MatMul"
    unchanged(QuantizeNodes(kept=kept("out")), result.graph)


@pytest.mark.tensorflow
@pytest.mark.parametrize("functional", [True, False])
def test_in_loops_and_branches(tf: Any, plain: Plain, functional: bool) -> None:
    def build(v1: Any) -> Any:
        x = v1.placeholder("float32", [2, 4], name="x")
        w = v1.constant(numbers(1, 4, 4))

        def step(i: Any, y: Any) -> Any:
            return i + 1, v1.cond(v1.equal(i, 1), lambda: v1.nn.relu(v1.matmul(y, w)), lambda: v1.matmul(y, w) + 1.0)

        return v1.identity(v1.while_loop(lambda i, y: i < 3, step, [0, x])[1], name="out")

    graph = made(tf, build, functional=functional)
    result = optimize(graph, [QuantizeNodes()], kept("out"))
    assert result.modified and result.settled
    exact, quantized = (plain.run(each, ["out:0"], feeds(graph))[0] for each in (graph, result.graph))
    np.testing.assert_array_equal(ours(result.graph, feeds(graph), "out:0")[0], quantized)
    # each of three rounds is off by steps of 1/255 of its range, which the products pass on
    assert np.abs(exact - quantized).max() <= np.abs(exact).max() * 0.1


@pytest.mark.tensorflow
@pytest.mark.parametrize("seed", range(6))
def test_random_networks(tf: Any, plain: Plain, seed: int) -> None:
    """Operations in random order: TensorFlow takes them, and both runtimes compute the tool's numbers."""
    rng = random.Random(seed)

    def build(v1: Any) -> Any:
        tensors = [v1.placeholder("float32", [2, 6, 6, 4], name="x")]
        for number in range(8):
            x = rng.choice(tensors[-3:])
            other = rng.choice(tensors)
            kind = rng.choice(["conv", "bias", "relu", "relu6", "max", "avg", "cat", "add", "mul", "tanh"])
            if kind == "conv":
                x = v1.nn.conv2d(x, numbers(number, 3, 3, x.shape[3], 4) * np.float32(0.3), 1, "SAME")
            elif kind == "bias":
                x = v1.nn.bias_add(x, numbers(number, x.shape[3]))
            elif kind in ("max", "avg"):  # means of 8-bit numbers are rounded by what the processor has
                x = v1.nn.max_pool(x, [1, 3, 3, 1], [1, 1, 1, 1], "SAME")
            elif kind == "cat":
                if other is x:
                    continue  # the tool breaks on a tensor that is read twice
                x = v1.raw_ops.Concat(concat_dim=3, values=[x, other])
            elif kind in ("add", "mul"):
                op = v1.raw_ops.Add if kind == "add" else v1.raw_ops.Mul
                x = op(x=v1.tanh(x), y=v1.constant(numbers(number, x.shape[3])))
            else:
                x = {"relu": v1.nn.relu, "relu6": v1.nn.relu6, "tanh": v1.tanh}[kind](x)
            tensors.append(x)
        return v1.identity(tensors[-1], name="out")

    graph = made(tf, build)
    result = changed(QuantizeNodes(kept=kept("out")), graph)
    theirs = transformed(graph, "x", "out", "quantize_nodes")
    want = plain.run(theirs, ["out:0"], feeds(graph))[0]
    np.testing.assert_array_equal(plain.run(result.graph, ["out:0"], feeds(graph))[0], want)
    # the numbers in 8 bits; floats in between, whose last digits may differ, are fed
    floats = {n.name + ":0" for n in result.graph if n.op == "Tanh"}
    given = dict(zip(floats, plain.run(result.graph, list(floats), feeds(graph)), strict=True)) | feeds(graph)
    np.testing.assert_array_equal(ours(result.graph, given, "out:0")[0], want)


def test_signatures_say_what_is_fed(tmp_path: Path) -> None:
    graph = Graph()
    x = graph.add("Placeholder", "x", attrs={"dtype": dtypes.float32, "shape": Shape([2])})
    graph.add("Relu", "y", [x.output()], attrs={"T": dtypes.float32})
    meta = MetaGraph(graph)
    record_signature(meta, {"x": "x:0"}, {"y": "y:0"})
    files = [str(tmp_path / name) for name in ("model.meta", "small.meta")]
    write_model(from_meta_graph(meta), files[0])
    assert run(["optimize", files[0], "--passes", "quantize_nodes(input_min=-1, input_max=1)", "-o", files[1]]) == 0
    [signature] = read_model(files[1]).meta.signatures.values()
    infos = [*signature.inputs.values(), *signature.outputs.values()]
    assert [info.dtype.name for info in infos] == ["quint8", "float32"]


def test_parameters() -> None:
    for text, says in (
        ("input_min=1", "together"),
        ("input_min=1, input_max=0", "a smaller and a larger"),
        ("fallback_min=1, fallback_max=2", "leaves 0 out"),
        ("ignore_op=Conv2", "did you mean 'Conv2D'"),
    ):
        with pytest.raises(UsageError, match=says):
            parse_passes(f"quantize_nodes({text})")
