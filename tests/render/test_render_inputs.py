"""What must not get lost in a picture: inputs with defaults, calls of empty functions, nodes that feed themselves."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from commands.main import run
from schemas import graph_pb2
from tests.render.graphs import add, perceptron
from tests.render.test_render_scene import check_accounts
from toolkit.formats.bundle import save
from toolkit.formats.models.model import from_graph, read_model, write_model
from toolkit.graph import dtypes
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node
from toolkit.graph.shape import Shape
from toolkit.render.picture import PictureOptions, make_picture
from toolkit.render.scene import Box, Scene


def drawn(definition: Any, **options: Any) -> Scene:
    data: bytes = definition.SerializeToString()
    scene = make_picture(Graph.from_proto(graph_pb2.GraphDef.FromString(data)), "g", PictureOptions(**options))
    check_accounts(scene)
    return scene


@pytest.mark.tensorflow
def test_an_input_with_a_default_is_an_input(tf: ModuleType) -> None:
    """What it is without a feed is a constant; it is there to be fed."""
    v1 = tf.compat.v1
    with v1.Graph().as_default() as graph:
        x = v1.placeholder(tf.float32, [None, 4], name="x")
        rate = v1.placeholder_with_default(0.5, [], name="rate")
        tf.multiply(x, tf.subtract(1.0, rate, name="keep"), name="y")
    scene = drawn(graph.as_graph_def())
    boxes = {box.label: box for box in scene.boxes}
    assert (boxes["rate"].kind, boxes["rate"].lines) == ("input", ["input float32 scalar", "default 0.5"])
    ends = {(arc.src.label, arc.dst.label) for arc in scene.arcs}
    assert {("rate", "keep"), ("keep", "y"), ("x", "y")} == ends


@pytest.mark.tensorflow
def test_the_file_name_of_a_saver_is_no_input_of_the_model(tf: ModuleType, tmp_path: Path) -> None:
    class Doubling(tf.Module):
        def __init__(self) -> None:
            self.factor = tf.Variable(2.0)

        @tf.function
        def double(self, x: Any) -> Any:
            return x * self.factor

    module = Doubling()
    signature = module.double.get_concrete_function(tf.TensorSpec([3], tf.float32, name="x"))
    tf.saved_model.save(module, str(tmp_path), signatures=signature)
    scene = make_picture(read_model(tmp_path).graph, "m", PictureOptions())
    check_accounts(scene)
    top = {box.label for box in scene.boxes if box.element is not None and box.element.op == "Placeholder"}
    assert top == {"serving_default_x"}
    (saver,) = (box for box in scene.asides if box.label == "save and restore")
    assert "saver_filename" in {scene.model.elements[i].name for i in saver.members}


@pytest.mark.tensorflow
@pytest.mark.parametrize("depth", [None, 9])
def test_the_call_of_a_function_that_hands_back_is_a_box(tf: ModuleType, depth: int | None) -> None:
    """Its body has nothing to show; an empty frame would look like a mistake."""

    @tf.function
    def last(count: Any) -> Any:
        return tf.data.Dataset.range(count).reduce(tf.constant(0, tf.int64), lambda _, new: new)

    concrete = last.get_concrete_function(tf.TensorSpec([], tf.int64, name="count"))
    scene = drawn(concrete.graph.as_graph_def(), depth=depth)
    (call,) = (box for box in scene.boxes if box.label.startswith("ReduceDataset"))
    assert call.kind == "function" and call.lines[-2:] == ["1 node", "ReduceDataset"]
    assert all(cluster.first_box() is not None for cluster in scene.root.walk())
    assert {arc.src.label for arc in scene.arcs if arc.dst is call} == {"RangeDataset"}


def test_a_checkpoint_of_another_model_is_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A page without the values that were asked for would look like one of a model that has none."""
    write_model(from_graph(perceptron()), tmp_path / "p.pb")
    kernel = np.ones((8, 4), np.float32)
    save(str(tmp_path / "other"), {"dense/kernel": kernel})
    save(str(tmp_path / "own"), {"layer1/kernel": kernel})
    page = tmp_path / "p.html"
    command = ["visualize", str(tmp_path / "p.pb"), "-o", str(page), "--checkpoint"]
    assert run([*command, str(tmp_path / "other")]) == 2
    error = capfd.readouterr().err
    assert "none of the graph's 2 variables, such as 'layer1/kernel', is in it; it holds 1 tensors" in error
    assert "such as 'dense/kernel'" in error and not page.exists()
    assert run([*command, str(tmp_path / "own")]) == 0


def test_what_a_name_without_suffix_and_a_slip_are_told(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_model(from_graph(perceptron()), tmp_path / "p.pb")
    assert run(["visualize", str(tmp_path / "p.pb"), "-o", str(tmp_path / "picture")]) == 2
    assert "its name has no suffix to tell a format; expected .svg" in capfd.readouterr().err
    assert run(["visualize", str(tmp_path / "p.pb"), "-o", str(tmp_path / "p.svg"), "--focus", "layer1/kernal"]) == 2
    hint = capfd.readouterr().err.partition("did you mean ")[2]
    assert hint.count("'layer1/kernel'") == 1, "a variable has the name of its scope"


def test_a_node_that_feeds_itself_is_seen_to() -> None:
    """No runtime takes such a graph; the picture is for finding out why."""
    definition = graph_pb2.GraphDef()
    for name, op, inputs in (("a", "Placeholder", []), ("b", "AddV2", ["a", "b"])):
        node = definition.node.add(name=name, op=op, input=inputs)
        node.attr["dtype" if op == "Placeholder" else "T"].type = 1  # pyright: ignore[reportAttributeAccessIssue]
    scene = drawn(definition)
    assert {(arc.src.label, arc.dst.label) for arc in scene.arcs} == {("a", "b"), ("b", "b")}


@pytest.mark.parametrize("constants", ["equal", "different"])
def test_like_nodes_are_a_series_whatever_their_constants(constants: str) -> None:
    """Constants are text in their users; 30 products of one input with numbers are one thing to the reader."""
    graph = Graph()
    x = add(graph, "Placeholder", "x", dtype=dtypes.float32, shape=Shape([2]))
    one = add(graph, "Placeholder", "y", dtype=dtypes.float32, shape=Shape([2]))
    products: list[Node] = []
    for i in range(30):
        factor = one
        if constants == "different":
            factor = add(graph, "Const", f"scaled/by{i}/y", dtype=dtypes.float32)
        products.append(add(graph, "Mul", f"scaled/by{i}", x, factor, T=dtypes.float32))
    graph.add("AddN", "sum", products, attrs={"N": 30, "T": dtypes.float32})
    scene = make_picture(graph, "g", PictureOptions(depth=2))
    check_accounts(scene)
    (series,) = (box for box in scene.boxes if box.kind == "series")
    assert (series.label, series.lines) == ("by0 … by29", ["30 × Mul"])
    assert all(isinstance(arc.src, Box) for arc in scene.arcs)
