"""Edits that take nodes in and out and join graphs; beside TensorFlow."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import tolerance
from tests.passes.edits import X, Y, edited, refusals, small
from tests.passes.graphs import F, random_dag, run_in_tensorflow, structure, variable
from toolkit.formats.models.model import write_model
from toolkit.graph.graph import Graph
from toolkit.graph.metagraph import MetaGraph, Signature, TensorInfo
from toolkit.graph.shape import Shape
from toolkit.passes.edit.apply import apply_edits
from toolkit.passes.edit.table import Step, kinds


@pytest.mark.tensorflow
@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6))
def test_inserted_and_removed_again(tf: Any, seed: int) -> None:
    """Identities anywhere change no number; taken out again they leave the graph as it was."""
    rng = random.Random(seed)
    graph = random_dag(rng, count=20)
    steps: list[Step] = []
    names: list[str] = []
    for index in range(5):
        name = f"probe{index}"
        names.append(name)
        takers = [node for node in graph if node.inputs]
        if rng.random() < 0.5:
            node = rng.choice(takers)
            position = rng.randrange(len(node.inputs))
            edit: Any = kinds()["insert_before"](node=node.name, input=position, op="Identity", called=name)  # type: ignore[call-arg]
        else:
            source = rng.choice([node for node in graph if node.op != "NoOp"])
            edit = kinds()["insert_after"](tensor=f"{source.name}:0", op="Identity", called=name)  # type: ignore[call-arg]
        steps.append(Step(edit))
    middle = apply_edits(MetaGraph(graph), steps).meta
    assert len(middle.graph) == len(graph) + 5
    fetches = [f"{node.name}:0" for node in rng.sample([node for node in graph if node.op != "NoOp"], 3)]
    feeds = {"x:0": X, "y:0": Y}
    expected = run_in_tensorflow(tf, graph, fetches, feeds)
    np.testing.assert_array_equal(run_in_tensorflow(tf, middle.graph, fetches, feeds), expected)
    after = apply_edits(middle, [Step(kinds()["remove_nodes"](nodes=tuple(names)))]).meta  # type: ignore[call-arg]
    assert structure(after.graph) == structure(graph)


@pytest.mark.tensorflow
@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6))
def test_identities_taken_out_change_no_number(tf: Any, seed: int) -> None:
    rng = random.Random(seed)
    graph = random_dag(rng, count=40)
    identities = tuple(node.name for node in graph if node.op in ("Identity", "IdentityN"))
    fetches = [f"{node.name}:0" for node in graph if node.op not in ("NoOp", "Identity", "IdentityN")][-5:]
    feeds = {"x:0": X, "y:0": Y}
    made = apply_edits(MetaGraph(graph), [Step(kinds()["remove_nodes"](nodes=identities))]).meta.graph  # type: ignore[call-arg]
    assert not any(name in made for name in identities)
    expected = run_in_tensorflow(tf, graph, fetches, feeds)
    np.testing.assert_array_equal(run_in_tensorflow(tf, made, fetches, feeds), expected)


def test_removal_keeps_the_order_of_control_edges() -> None:
    graph = Graph()
    var, _, assign = variable(graph, "v")
    read = graph.add("Identity", "read", [var], control_inputs=[assign], attrs={"T": F})
    graph.add("Neg", "y", [read], attrs={"T": F})
    graph.add("NoOp", "done", control_inputs=[read])
    made = edited(graph, "- remove_nodes: {nodes: read}").meta.graph
    assert made.node("y").input_refs() == ["v", "^v/Assign"]
    assert made.node("done").input_refs() == ["^v", "^v/Assign"]


def test_what_signatures_name_follows_a_removed_node() -> None:
    meta = MetaGraph(small())
    info = TensorInfo("pair:1", F, Shape([None, 2]))
    other = TensorInfo("y:0", F, Shape([None, 2]))
    meta.signatures["s"] = Signature({"x": TensorInfo("x:0", F, Shape([None, 2]))}, {"p": info, "y": other})
    meta.collections["losses"] = ["pair:0", "unused:0"]
    made = edited(meta, "- remove_nodes: {nodes: pair}\n- remove_nodes: {nodes: unused, cascade: true}")
    assert made.meta.signatures["s"].outputs["p"].name == "x:0"
    assert made.meta.collections["losses"] == ["h:0"]
    assert made.notes == ["dropped 1 entry of the collection 'losses'"]
    made = edited(meta, "- remove_nodes: {nodes: h, cascade: true}")
    assert [node.name for node in made.meta.graph] == ["x"] and not made.meta.signatures


def test_a_new_node_may_have_the_name_of_a_removed_one() -> None:
    meta = MetaGraph(small())
    meta.signatures["s"] = Signature({}, {"u": TensorInfo("unused:0", F, Shape([None, 2]))})
    text = """
    - remove_nodes: {nodes: unused, cascade: true}
    - add_node: {op: Abs, called: unused, inputs: x}
    """
    made = edited(meta, text)
    assert made.meta.graph.node("unused").op == "Abs" and not made.meta.signatures
    made = edited(meta, "- remove_nodes: {nodes: unused, cascade: true}\n- rename_nodes: {nodes: y, to: unused}")
    assert made.meta.graph.node("unused").op == "AddV2" and not made.meta.signatures


@pytest.mark.tensorflow
def test_new_nodes_have_the_attributes_that_inputs_decide(tf: Any) -> None:
    text = """
    - add_node: {op: ConcatV2, called: both, inputs: [h, x, 1]}
    - add_node: {op: Pack, called: packed, inputs: [h, x], attrs: {axis: 1}}
    - insert_after: {tensor: h, op: Mul, called: twice, inputs: [$, 2.0]}
    - insert_before: {node: y, input: 1, op: Sub, inputs: [$, [0.5, 1.5]]}
    - replace_node: {node: unused, op: Squeeze, inputs: [packed], attrs: {squeeze_dims: []}}
    - reconnect: {node: pair, input: 1, to: h}
    - redirect: {tensor: both, to: x}
    """
    text = text.replace("    - redirect: {tensor: both, to: x}\n", "")
    made = edited(small(), text).meta.graph
    x = np.float32([[0.5, -1.0], [2.0, 3.0]])
    h = np.tanh(x)
    both, packed, y = run_in_tensorflow(tf, made, ["both:0", "packed:0", "y:0"], {"x:0": x})
    np.testing.assert_allclose(both, np.concatenate([2 * h, x], 1), rtol=tolerance.gamma(16))
    np.testing.assert_allclose(packed, np.stack([2 * h, x], 1), rtol=tolerance.gamma(16))
    np.testing.assert_allclose(y, 2 * h + (h - np.float32([0.5, 1.5])), rtol=tolerance.gamma(16))
    assert made.node("pair").input_refs() == ["twice", "h"] and made.node("both").attr("N") == 2


@pytest.mark.tensorflow
def test_two_graphs_become_one(tf: Any, tmp_path: Path) -> None:
    encoder, decoder = Graph(), Graph()
    x = encoder.add("Placeholder", "x", attrs={"dtype": F, "shape": Shape([2])})
    encoder.add("Tanh", "out", [x], attrs={"T": F})
    x = decoder.add("Placeholder", "x", attrs={"dtype": F, "shape": Shape([2])})
    decoder.add("Neg", "out", [x], attrs={"T": F})
    write_model(read_from(decoder, tmp_path / "d.pb"), tmp_path / "d.pb")
    file = tmp_path / "d.pb"
    text = f"- merge: {{file: {file}, prefix: d, connect: {{'d/x': 'out:0'}}}}"
    made = edited(encoder, text).meta.graph
    assert [node.name for node in made] == ["x", "out", "d/out"]
    np.testing.assert_allclose(
        run_in_tensorflow(tf, made, ["d/out:0"], {"x:0": X})[0], -np.tanh(X), rtol=tolerance.gamma(16)
    )
    assert refusals(encoder, f"- merge: {{file: {file}}}") == [
        "edits:1:3: 'x' and 1 other node are in both graphs; give a prefix"
    ]
    assert "there is no node 'd/z'" in refusals(encoder, text.replace("d/x", "d/z"))[0]


def read_from(graph: Graph, path: Path) -> Any:
    from toolkit.formats.models.model import from_graph

    return from_graph(graph, str(path))
