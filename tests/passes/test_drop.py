"""prune --drop: nodes go, what was read of them is fed."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from commands.main import run
from tests.passes.graphs import random_dag
from toolkit.errors import UsageError
from toolkit.formats.models.model import from_graph, from_meta_graph, read_model, write_model
from toolkit.graph import dtypes
from toolkit.graph.graph import Graph
from toolkit.graph.metagraph import MetaGraph
from toolkit.graph.node import Output
from toolkit.graph.shape import Shape
from toolkit.passes.base import run_pass
from toolkit.passes.models.surroundings import record_signature
from toolkit.passes.pruning.drop import Drop
from toolkit.runtime.session import Session

F = dtypes.float32


@pytest.mark.parametrize("seed", range(20))
def test_random_graphs(seed: int) -> None:
    """Fed with what the nodes gave, the rest computes what it did, but for who waited for them."""
    rng = random.Random(seed)
    graph = random_dag(rng)
    gone = rng.sample([node.name for node in graph if node.op != "Placeholder"], 6)
    result = run_pass(Drop(tuple(gone)), graph)
    assert result.report["dropped"] == 6
    names = [o.name for node in graph if node.name not in gone for o in map(node.output, range(node.num_outputs))]
    feeds = {"x:0": np.float32([1, 2]), "y:0": np.float32([3, -1])}
    old = list(result.report["inputs"])
    with Session(graph) as session:
        want = session.run(names, feeds)
        given = dict(zip(result.report["inputs"].values(), session.run(old, feeds), strict=True)) if old else {}
    with Session(result.graph) as session:
        for name, found, wanted in zip(names, session.run(names, feeds | given), want, strict=True):
            np.testing.assert_array_equal(found, wanted, err_msg=name)
    assert not [node for node in result.graph if node.name in gone and node.op != "Placeholder"]


def network() -> Graph:
    graph = Graph()
    x = graph.add("Placeholder", "x", attrs={"dtype": F, "shape": Shape([2])})
    h = graph.add("Tanh", "body/h", [x], attrs={"T": F})
    two = graph.add("Split", "body/split", [_axis(graph), h.output()], attrs={"T": F, "num_split": 2})
    graph.add("AddV2", "head/y", [Output(two, 0), Output(two, 1)], attrs={"T": F})
    graph.add("Neg", "side", [x], attrs={"T": F}, control_inputs=[h])
    return graph


def _axis(graph: Graph) -> Output:
    from toolkit.formats.arrays.tensor import from_array

    attrs = {"dtype": dtypes.int32, "value": from_array(np.int32(0))}
    return graph.add("Const", "axis", attrs=attrs).output()


def test_from_the_command_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source, dest = str(tmp_path / "in.pb"), str(tmp_path / "out.pb")
    write_model(from_graph(network()), source)
    assert run(["prune", source, "--drop", "body/*", "-o", dest]) == 0
    graph = read_model(dest).graph
    assert {node.name: node.op for node in graph} == {
        "x": "Placeholder", "axis": "Const", "head/y": "AddV2", "side": "Neg", "body/split": "Placeholder",
        "body/split_1": "Placeholder",
    }  # fmt: skip
    assert graph.node("body/split_1").attr("shape") == Shape([1]) and not graph.node("side").control_inputs
    said = capfd.readouterr().err
    assert "cut away 2 nodes" in said and "'body/split:1' is an input now: body/split_1:0" in said
    assert run(["prune", source, "--drop", "body/*", "--fetch", "head/y", "-o", dest]) == 0
    assert {node.name for node in read_model(dest).graph} == {"head/y", "body/split", "body/split_1"}
    for arguments, says in (
        (["--drop", "boby/*"], "--drop: no node matches 'boby/*'"),
        (["--drop", "head/*", "--fetch", "head/y"], "head/y"),
    ):
        assert run(["prune", source, *arguments, "-o", dest]) == 2
        assert says in capfd.readouterr().err


def test_signatures_lose_what_is_gone(tmp_path: Path) -> None:
    meta = MetaGraph(network())
    record_signature(meta, {"x": "x:0"}, {"y": "head/y:0", "z": "side:0"})
    source, dest = str(tmp_path / "in.meta"), str(tmp_path / "out.meta")
    write_model(from_meta_graph(meta), source)
    assert run(["prune", source, "--drop", "head/y", "-o", dest]) == 0
    [signature] = read_model(dest).meta.signatures.values()
    assert list(signature.outputs) == ["z"]


def test_what_cannot_be_fed() -> None:
    graph = Graph()
    handle = graph.add("VarHandleOp", "v", attrs={"dtype": F, "shape": Shape([2])})
    graph.add("ReadVariableOp", "read", [handle], attrs={"dtype": F})
    with pytest.raises(UsageError, match="drop what reads it, too"):
        Drop(("v",)).apply(graph)
    assert len(Drop(("v", "read")).apply(graph).graph) == 0
