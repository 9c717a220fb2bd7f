"""Edits of batch sizes and layouts; beside TensorFlow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import tolerance
from tests.passes.edits import baked, edited, refusals, small
from tests.passes.graphs import F, run_in_tensorflow
from toolkit.formats.arrays import tensor
from toolkit.formats.models.model import read_model, write_model
from toolkit.graph.graph import Graph
from toolkit.graph.metagraph import MetaGraph, Signature, TensorInfo
from toolkit.graph.shape import Shape


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    ("size", "sizes", "new", "expected"),
    [
        (3, [3, 24], 5, [5, 24]),
        (3, [3, 24], None, [-1, 24]),
        (1, [1, 24], 5, [5, 24]),
        (1, [1, 2, 12], None, [-1, 2, 12]),
        (3, [3, -1], 5, [5, -1]),
        (3, [-1, 24], 5, [-1, 24]),
    ],
)
def test_batch_size_in_a_reshape(
    tf: Any, size: int, sizes: list[int], new: int | None, expected: list[int]
) -> None:  # fmt: skip
    made = edited(baked(size, sizes), f"- set_batch_size: {{size: {'null' if new is None else new}}}").meta
    assert tensor.to_array(made.graph.node("shape").attr("value")).tolist() == expected
    count = new or 7
    x = np.arange(count * 24, dtype=np.float32).reshape(count, 4, 6)
    [y] = run_in_tensorflow(tf, made.graph, ["y:0"], {"x:0": x})
    assert y.tolist() == x.reshape(count, *y.shape[1:]).tolist()
    assert made.signatures["s"].inputs["x"].shape == Shape([new, 4, 6])
    assert made.signatures["s"].outputs["y"].shape[0] == new
    assert made.graph.node("y").attr("_output_shapes")[0][0] == new


@pytest.mark.tensorflow
def test_inputs_with_their_channels_first(tf: Any) -> None:
    """There and back again; a graph that computes with its input as it was."""
    graph = Graph()
    x = graph.add("Placeholder", "x", attrs={"dtype": F, "shape": Shape([None, 4, 6, 3])})
    graph.add("Placeholder", "rows", attrs={"dtype": F, "shape": Shape([None, 3])})
    weights = tensor.from_array(np.arange(12, dtype=np.float32).reshape(2, 2, 3, 1))
    w = graph.add("Const", "w", attrs={"dtype": F, "value": weights})
    attrs = {"T": F, "strides": [1, 1, 1, 1], "padding": "SAME", "dilations": [1, 1, 1, 1]}
    graph.add("Conv2D", "y", [x.output(), w.output()], attrs=attrs)
    infos = {"x": TensorInfo("x:0", F, Shape([None, 4, 6, 3]))}
    meta = MetaGraph(graph, {"s": Signature(infos, {"y": TensorInfo("y:0", F, Shape([None, 4, 6, 1]))})})
    result = edited(meta, "- set_input_layout: {layout: NCHW}")
    made = result.meta
    assert result.done[0]["did"] == "1 input in NCHW"
    assert made.graph.node("x").attr("shape") == made.signatures["s"].inputs["x"].shape == Shape([None, 3, 4, 6])
    assert made.signatures["s"].outputs["y"].shape == Shape([None, 4, 6, 1])
    value = np.random.default_rng(1).normal(size=(2, 4, 6, 3)).astype(np.float32)
    [wanted] = run_in_tensorflow(tf, graph, ["y:0"], {"x:0": value})
    [found] = run_in_tensorflow(tf, made.graph, ["y:0"], {"x:0": value.transpose(0, 3, 1, 2)})
    np.testing.assert_array_equal(found, wanted)
    back = edited(made, "- set_input_layout: {layout: NHWC, nodes: x}").meta
    assert back.signatures["s"].inputs["x"].shape == Shape([None, 4, 6, 3])
    [again] = run_in_tensorflow(tf, back.graph, ["y:0"], {"x:0": value})
    np.testing.assert_array_equal(again, wanted)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{layout: NCHW}", "no placeholder has 4 dimensions; set_shape gives one a shape"),
        ("{layout: CHWN}", "'CHWN' is no layout; expected NCHW, NHWC, NCDHW, NDHWC, NCW, NWC"),
        ("{layout: NCHW, nodes: x}", "node 'x': its shape [?,2] has not the 4 sizes of NHWC"),
        ("{layout: NCHW, nodes: h}", "it is a Tanh, not a placeholder"),
    ],
)
def test_layouts_that_do_not_fit(text: str, told: str) -> None:
    [message] = refusals(small(), f"- set_input_layout: {text}")
    assert told in message


def test_batch_size_that_is_not_proven_stays_and_is_told() -> None:
    result = edited(baked(1, [1, -1]), "- set_batch_size: {size: 5}")
    assert tensor.to_array(result.meta.graph.node("shape").attr("value")).tolist() == [1, -1]
    assert result.done[0]["did"] == "1 input of batch size 5; 'shape' may say the batch size, and stay"


def test_a_batch_size_that_does_not_fit_is_refused() -> None:
    graph = small()
    graph.add("EnsureShape", "e", [graph.node("x")], attrs={"T": F, "shape": Shape([3, 2])})
    assert len(edited(graph, "- set_batch_size: {size: 3}").done) == 1
    [message] = refusals(graph, "- set_batch_size: {size: 4}")
    assert message.startswith("node 'e': the edited graph is not sound")


@pytest.mark.tensorflow
def test_batch_size_of_a_saved_model(tf: Any, tmp_path: Path) -> None:
    """Functions, their arguments and what the object graph says of them follow."""
    module = tf.Module()
    module.weight = tf.Variable(np.ones((12, 3), np.float32))

    @tf.function(input_signature=[tf.TensorSpec([2, 3, 4], "float32", name="x")])
    def serve(x: Any) -> Any:
        return {"y": tf.reshape(x, [2, 12]) @ module.weight}

    module.serve = serve
    tf.saved_model.save(module, str(tmp_path / "a"), signatures=serve)
    model = read_model(tmp_path / "a")
    result = edited(model.meta, "- set_batch_size: {size: 5}")
    write_model(model.with_meta(result.meta), tmp_path / "b")
    loaded = tf.saved_model.load(str(tmp_path / "b"))
    x = np.arange(60, dtype=np.float32).reshape(5, 3, 4)
    for call in (loaded.signatures["serving_default"], loaded.serve):
        np.testing.assert_allclose(call(x=x)["y"], x.reshape(5, 12) @ np.ones((12, 3)), rtol=tolerance.gamma(16))
    assert loaded.signatures["serving_default"].structured_outputs["y"].shape == [5, 3]
