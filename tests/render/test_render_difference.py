"""Pictures of two graphs as one: what was added, removed, renamed, changed, function bodies included."""

from __future__ import annotations

from pathlib import Path

import pytest

from commands.main import run
from schemas import function_pb2
from tests.render.graphs import FLOAT, add, perceptron, stack
from tests.render.test_render_scene import check_accounts
from toolkit.formats.models.model import from_graph, write_model
from toolkit.graph.functions import FunctionLibrary
from toolkit.graph.graph import Graph
from toolkit.render.colors import ColorInput
from toolkit.render.difference import Differences, key, merge
from toolkit.render.picture import PictureOptions, make_picture
from toolkit.render.scene import Scene
from toolkit.render.themes import find_theme


def picture(old: Graph, new: Graph, **options: object) -> tuple[Scene, Differences]:
    merged, found = merge(old, new)
    chosen = PictureOptions(color="diff", **options)  # type: ignore[arg-type]
    scene = make_picture(merged, "d", chosen, ColorInput(changes=found))
    check_accounts(scene)
    return scene, found


def rename_scope(graph: Graph, old: str, new: str) -> Graph:
    for node in list(graph.nodes):
        if node.name.startswith(old + "/"):
            node.name = new + node.name[len(old) :]
    return graph


def test_equal_graphs() -> None:
    merged, found = merge(perceptron(), perceptron())
    assert found.kinds == {} and len(merged) == len(perceptron())


def test_a_renamed_scope_is_neither_added_nor_removed() -> None:
    new = rename_scope(perceptron(), "layer2", "head")
    merged, found = merge(perceptron(), new)
    assert set(found.kinds.values()) == {"renamed"} and len(merged) == len(new)
    assert found.notes["head/MatMul"] == ("was layer2/MatMul",)
    scene, _ = picture(perceptron(), new)
    box = next(box for box in scene.boxes if box.full_name == "head/MatMul")
    assert box.lines[:2] == ["renamed", "was layer2/MatMul"]
    assert box.fills == [(find_theme("light").renamed, 1.0)]


def test_added_removed_and_changed() -> None:
    new = perceptron()
    relu = new.node("layer2/Relu")
    relu.op = "Tanh"
    new.remove([new.node("y")])
    add(new, "Sigmoid", "z", relu, T=FLOAT)
    scene, found = picture(perceptron(), new)
    assert found.kinds == {"layer2/Relu": "changed", "y": "removed", "z": "added"}
    boxes = {box.full_name: box for box in scene.boxes}
    assert boxes["layer2/Relu"].lines[:2] == ["changed", "op Tanh, was Relu"]
    assert (boxes["y"].lines[0], boxes["z"].lines[0]) == ("removed", "added")
    into = {arc.dst.label for arc in scene.arcs if arc.src is boxes["layer2/Relu"]}
    assert into == {"y", "z"}, "a removed node hangs where it was"
    legend = {text for _, text, _ in scene.legend}
    assert legend >= {"added: 1 node", "removed: 1 node", "changed: 1 node", "same: 13 nodes"}


def test_a_removed_node_whose_name_is_taken() -> None:
    """x is another op now, and both are in the picture."""
    old, new = Graph(), Graph()
    add(old, "Relu", "b", add(old, "Tanh", "x", add(old, "Placeholder", "a", dtype=FLOAT), T=FLOAT), T=FLOAT)
    add(new, "Relu", "b", add(new, "Placeholder", "a", dtype=FLOAT), T=FLOAT)
    add(new, "Const", "x", dtype=FLOAT)
    _, found = merge(old, new)
    assert sorted(found.kinds.values()).count("changed") >= 1
    picture(old, new)


def test_the_picture_opens_where_something_changed() -> None:
    new = stack(30)
    new.node("layer_17/Tanh").op = "Sigmoid"
    scene, _ = picture(stack(30), new)
    assert "layer_17/Tanh" in {box.full_name for box in scene.boxes}
    closed, _ = picture(stack(30), new, depth=1)
    assert "1 changed" in [line for box in closed.boxes for line in box.lines]


def with_function(name: str, *ops: str) -> Graph:
    """A graph that calls a function of these ops in a row."""
    function = function_pb2.FunctionDef()
    function.signature.name = name
    function.signature.input_arg.add(name="v", type=1)
    function.signature.output_arg.add(name="r", type=1)
    last = "v"
    for op in ops:
        node = function.node_def.add(name=op.lower(), op=op, input=[last])
        node.attr["T"].type = 1
        last = f"{op.lower()}:{'activations' if op == 'Relu' else 'y'}:0"
    function.ret["r"] = last
    graph = Graph()
    graph.library = FunctionLibrary()
    graph.library.add(function)
    x = add(graph, "Placeholder", "x", dtype=FLOAT)
    add(graph, name, "call", x)
    return graph


def test_bodies_of_functions() -> None:
    """The function has another number, as after every export; in it a node is new and one is gone."""
    old = with_function("__inference_f_12", "Tanh", "Relu", "Exp")
    new = with_function("__inference_f_99", "Tanh", "Log", "Exp")
    scene, found = picture(old, new)
    function = "__inference_f_99"
    assert found.kinds[key(function, "log")] == "added"
    assert found.kinds[key(function, "relu")] == "removed"
    kinds = {
        box.full_name: next(iter(box.lines), "")
        for box in scene.boxes
        if box.id.startswith("call/") and box.kind == "op"
    }
    assert kinds["call/log"] == "added" and kinds["call/relu"] == "removed"
    assert "call/tanh" in kinds and kinds["call/tanh"] not in ("added", "removed", "renamed")


@pytest.mark.graphviz
def test_from_the_command_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """`graphmill diff -o` draws what `visualize --against` draws, and keeps its exit code."""
    write_model(from_graph(perceptron()), tmp_path / "a.pb")
    write_model(from_graph(rename_scope(perceptron(), "layer2", "head")), tmp_path / "b.pb")
    a, b = str(tmp_path / "a.pb"), str(tmp_path / "b.pb")
    for suffix in ("svg", "html", "dot", "txt"):
        one, two = tmp_path / f"one.{suffix}", tmp_path / f"two.{suffix}"
        assert run(["diff", a, b, "-o", str(one)]) == 1
        assert run(["visualize", b, "--against", a, "-o", str(two)]) == 0
        assert one.read_bytes() == two.read_bytes()
    assert "renamed" in (tmp_path / "one.svg").read_text()
    assert run(["diff", a, a, "-o", str(tmp_path / "same.svg")]) == 0
    assert capfd.readouterr().out == ""
    assert run(["diff", a, b, "-o", str(tmp_path / "x.jpg")]) == 2
    assert "no picture format has the suffix '.jpg'" in capfd.readouterr().err
