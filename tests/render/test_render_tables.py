"""Pictures of graphs whose nodes are a table are, byte for byte, those of graphs whose nodes have been made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from schemas.graph_pb2 import GraphDef
from tests import models
from tests.render.graphs import large
from tests.render.test_render_scene import check_accounts, random_graphs
from tests.tables import block_bytes, read_all_as_tables, unmade
from toolkit.formats.models import graphdef
from toolkit.formats.models.model import read_model
from toolkit.graph.graph import Graph
from toolkit.render import describe
from toolkit.render.absorb import absorb, data_users
from toolkit.render.build import build_model
from toolkit.render.elements import Model
from toolkit.render.picture import PictureOptions, arrange, draw, make_page, make_picture
from toolkit.render.scene import Scene
from toolkit.render.scopes import lead_scopes
from toolkit.render.visible import make_scene, open_to_budget, open_to_depth

_FLOAT = 1
#: what is drawn from columns; other colours and a focus look at nodes
_WAYS: list[dict[str, Any]] = [
    {}, {"depth": 1}, {"depth": 2}, {"depth": 9}, {"fold": False, "depth": 3}, {"auxiliary": "inline"},
    {"auxiliary": "hide", "depth": 3}, {"color": "device"}, {"color": "structure", "depth": 2}, {"color": "dtype"},
    {"functions": False, "depth": 4},
]  # fmt: skip
_OTHER_WAYS: list[dict[str, Any]] = [{"color": "cost"}, {"focus": "y"}]


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables are read of graphs of any size, and no shapes inferred, as of large ones."""
    read_all_as_tables(monkeypatch)
    monkeypatch.setattr(describe, "MOST_INFERRED", 0)


def drawn(graph: Graph, options: dict[str, Any]) -> tuple[Scene, bytes]:
    chosen = PictureOptions(**options)
    scene = make_picture(graph, "g", chosen)
    if chosen.auxiliary != "hide":
        check_accounts(scene)
    return scene, draw(scene, "dot", chosen) + draw(scene, "txt", chosen)


def require_same(data: bytes, ways: list[dict[str, Any]]) -> None:
    """The pictures of a graph over its table are those over its nodes, and no node is made for them."""
    for options in ways:
        graph, other = unmade(data), unmade(data)
        assert other.nodes
        scene, picture = drawn(graph, options)
        expected, expected_picture = drawn(other, options)
        assert picture == expected_picture, options
        assert [list(arc.links) for arc in scene.arcs] == [list(arc.links) for arc in expected.arcs]
        assert [sorted(box.members) for box in scene.boxes] == [sorted(box.members) for box in expected.boxes]
        assert list(scene.model.links) == list(expected.model.links)


@pytest.mark.parametrize("options", _WAYS, ids=str)
def test_blocks(options: dict[str, Any]) -> None:
    require_same(block_bytes(), [options])


@pytest.mark.parametrize("options", [*_WAYS[:3], *_WAYS[7:]], ids=str)
def test_no_node_is_made(options: dict[str, Any]) -> None:
    graph = unmade(block_bytes())
    drawn(graph, options)
    assert graph.unmade is not None


@pytest.mark.parametrize("options", _OTHER_WAYS, ids=str)
def test_what_looks_at_nodes_has_them(options: dict[str, Any]) -> None:
    graph = unmade(block_bytes())
    chosen = PictureOptions(**options)
    assert draw(make_picture(graph, "g", chosen), "dot", chosen)
    assert graph.unmade is None


def test_a_page_is_that_of_nodes() -> None:
    graph, other = unmade(block_bytes()), unmade(block_bytes())
    assert other.nodes
    assert make_page(graph, "g", PictureOptions()) == make_page(other, "g", PictureOptions())


def test_small_graphs_have_their_nodes_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their shapes are inferred, which takes inputs."""
    monkeypatch.setattr(describe, "MOST_INFERRED", 20_000)
    graph = unmade(block_bytes())
    make_picture(graph, "g", PictureOptions())
    assert graph.unmade is None


@pytest.mark.parametrize("scopes", [0, 7, 50])
def test_long_levels(scopes: int) -> None:
    require_same(b"".join(graphdef.to_parts(large(3000, scopes))), _WAYS[:3])


@pytest.mark.tensorflow
@pytest.mark.parametrize("model", [models.lenet_ref, models.lenet_resource, models.control_flow_v1])
def test_training_and_loops(model: Callable[[], models.Built]) -> None:
    """Savers, gradients, optimizers, variables of both kinds; loops and conditionals."""
    graph = read_model(model().path).graph
    require_same(b"".join(graphdef.to_parts(graph)), _WAYS)


@settings(max_examples=60, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(random_graphs())
def test_random_graphs(graph: Graph) -> None:
    data = b"".join(graphdef.to_parts(graph))
    require_same(data, [{}, {"depth": 2}, {"depth": 9, "auxiliary": "inline"}])


def _with_loops(scopes: list[str], frames: list[str]) -> bytes:
    """Loops around an addition, each in a scope; their values follow each other."""
    graph = GraphDef()
    graph.versions.producer = 1395
    x = graph.node.add(name="x", op="Placeholder")
    x.attr["dtype"].type = _FLOAT  # type: ignore[assignment]
    before = "x"

    def add(op: str, name: str, *inputs: str) -> Any:
        node = graph.node.add(name=name, op=op, input=inputs)
        if op != "LoopCond":
            node.attr["T"].type = _FLOAT  # type: ignore[assignment]
        return node

    for number, (scope, frame) in enumerate(zip(scopes, frames, strict=True)):
        head = f"{scope}/n{number}_"
        enter = add("Enter", f"{head}Enter", before)
        enter.attr["frame_name"].s = frame.encode()
        enter.attr["parallel_iterations"].i = 10
        enter.attr["is_constant"].b = False
        merge = add("Merge", f"{head}Merge", enter.name, f"{head}NextIteration")
        merge.attr["N"].i = 2
        less = add("Less", f"{head}Less", merge.name, merge.name)
        wanted = add("LoopCond", f"{head}LoopCond", less.name)
        switch = add("Switch", f"{head}Switch", merge.name, wanted.name)
        body = add("Neg", f"{head}Neg", f"{switch.name}:1")
        add("NextIteration", f"{head}NextIteration", body.name)
        before = add("Exit", f"{head}Exit", switch.name).name
    add("Identity", "y", before)
    return graph.SerializeToString(deterministic=True)


@pytest.mark.parametrize(
    ("scopes", "frames"),
    [
        (["a/while", "b/while"], ["a/while", "b/while"]),  # each has its scope
        (["a", "a", "b"], ["one", "two", "three"]),  # two share one: which is first matters
        (["", "c"], ["one", "two"]),  # a scope without a name
    ],
)
def test_loops(scopes: list[str], frames: list[str]) -> None:
    require_same(_with_loops(scopes, frames), [{}, {"depth": 9}])


def test_several_parts() -> None:
    """Graphs side by side, of which some have a table."""

    def parts(have_nodes: str) -> dict[str, Graph]:
        graphs = {name: unmade(block_bytes()) for name in "abc"}
        for name in have_nodes:
            assert graphs[name].nodes
        return graphs

    for options in (PictureOptions(), PictureOptions(depth=3, color="partition")):
        expected = make_picture(parts("abc"), "p", options)
        for have_nodes in ("", "a", "b"):
            found = make_picture(parts(have_nodes), "p", options)
            check_accounts(found)
            assert draw(found, "dot", options) == draw(expected, "dot", options)
            assert list(found.model.links) == list(expected.model.links)


def test_notes_are_those_that_are_written_at_once() -> None:
    """A note is found when it is asked for, whoever asks."""

    def absorbed(graph: Graph) -> Any:
        model = build_model(graph, "g", tables=True)
        lead_scopes(model)
        return absorb(model, data_users(model))

    graph, other = unmade(block_bytes()), unmade(block_bytes())
    assert other.nodes
    found, expected = absorbed(graph), absorbed(other)
    assert dict(found.notes) == expected.notes
    assert (found.host, found.noted) == (expected.host, expected.noted)
    assert list(found.host) == list(expected.host)
    assert len(found.notes) == len(expected.notes) and 0 not in found.notes


@pytest.mark.parametrize("depth", [None, 1, 2, 3, 9])
@pytest.mark.parametrize("is_table", [False, True])
def test_levels_that_are_folded_when_they_are_looked_into_are_those_of_all(depth: int | None, is_table: bool) -> None:
    def scene(is_late: bool) -> Scene:
        model: Model = build_model(unmade(block_bytes()), "g", tables=is_table)
        ready = arrange(model, is_late=is_late)
        assert (ready.folding is None) == (not is_late)
        if depth is None:
            opened = open_to_budget(model.root, folding=ready.folding)
        else:
            opened = open_to_depth(model.root, depth, ready.folding)
        return make_scene(model, opened, ready.absorbed, ready.aside, ready.folding)

    late, whole = scene(True), scene(False)
    assert [(box.id, box.lines, sorted(box.members)) for box in late.boxes] == [
        (box.id, box.lines, sorted(box.members)) for box in whole.boxes
    ]
    assert [(arc.src.id, arc.dst.id, arc.label, arc.links) for arc in late.arcs] == [
        (arc.src.id, arc.dst.id, arc.label, arc.links) for arc in whole.arcs
    ]
