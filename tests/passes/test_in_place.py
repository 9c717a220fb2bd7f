"""Passes that change the graph they are given make what they make of a copy; what they changed is looked at again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench.large_graphs import write_graph
from toolkit.errors import GraphError
from toolkit.formats.models import graphdef
from toolkit.formats.models.model import read_model
from toolkit.formats.settings.placement_rules import PlacementRule
from toolkit.graph.check import require_valid, require_valid_changes
from toolkit.graph.device import local_device
from toolkit.graph.graph import Graph
from toolkit.passes.base import InPlacePass, run_pass
from toolkit.passes.partitioning.partition import PartitionGraph
from toolkit.passes.placement.place import Place
from toolkit.passes.pruning.prune import Prune

_HALF = PlacementRule("block_0000000/dense_[0-3]*", False, "/device:CPU:1", "rules:1:1")
PASSES: dict[str, InPlacePass] = {
    "a fetch": Prune(fetches=("y",)),
    "a target in the middle": Prune(targets=("block_0000000/dense_3/kernel/Assign",)),
    "a feed": Prune(feeds=("block_0000000/dense_3/add",), fetches=("y",)),
    "a feed that is not needed": Prune(feeds=("x",), fetches=("block_0000000/dense_2/kernel/read",)),
    "devices": Place([local_device(), local_device(index=1)], rules=(_HALF,)),
    "a strategy": Place([local_device(), local_device(index=1)], strategy="round-robin"),
}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("graphs") / "block.pb"
    write_graph(path, 300)
    return path


def written(graph: Graph) -> bytes:
    return b"".join(graphdef.to_parts(graph))


@pytest.mark.parametrize("name", PASSES)
def test_in_place_as_in_a_copy(file: Path, name: str) -> None:
    kept, given = read_model(file).graph, read_model(file).graph
    before = written(kept)
    of_copy = run_pass(PASSES[name], kept)
    in_place = run_pass(PASSES[name], given, keep=False)
    assert written(kept) == before
    assert written(in_place.graph) == written(of_copy.graph)
    assert (in_place.modified, in_place.report) == (of_copy.modified, of_copy.report)
    require_valid(in_place.graph, shapes=True)
    assert all(in_place.graph.node(node.name) is node and node.id == at for at, node in enumerate(in_place.graph.nodes))


def test_groups_whose_leader_goes_gather_anew() -> None:
    graphs: list[Graph] = []
    for _ in range(2):
        graph = Graph()
        graph.add("NoOp", "leader", device="/device:CPU:1")
        for name in ("first", "second"):
            graph.add("NoOp", name, attrs={"_class": [b"loc:@leader"]})
        graphs.append(graph)
    pruning = Prune(targets=("first", "second"))
    of_copy, in_place = pruning.apply(graphs[0]), pruning.change(graphs[1])
    assert written(of_copy.graph) == written(in_place.graph) and of_copy.report == in_place.report
    assert in_place.graph.node("first").device == "/device:CPU:1"
    assert of_copy.changed == of_copy.graph.nodes and in_place.changed == in_place.graph.nodes


@pytest.mark.parametrize("shares", [True, False])
def test_parts_of_a_graph_that_is_not_kept(file: Path, shares: bool) -> None:
    """Its loop crosses, so control loops come into it as well."""
    rules = (PlacementRule("*while/add", False, "/device:CPU:1", "rules:2:1"), _HALF)
    placing = Place([local_device(), local_device(index=1)], rules=rules)
    kept, given = (run_pass(placing, read_model(file).graph).graph for _ in range(2))
    before = written(kept)
    splitting = PartitionGraph("device", share_controls=shares)
    of_copy, in_place = splitting.split(kept), splitting.split(given, keep=False)
    assert of_copy.control_loops and written(kept) == before and not len(given)
    assert {name: written(part) for name, part in in_place.graphs.items()} == {
        name: written(part) for name, part in of_copy.graphs.items()
    }
    assert in_place.transfers == of_copy.transfers
    for part in in_place.graphs.values():
        require_valid(part)
        assert all(node.graph is part and node.id == at for at, node in enumerate(part.nodes))


def test_what_changed_is_looked_at(file: Path) -> None:
    graph = read_model(file).graph
    require_valid_changes(graph, ())
    node = graph.node("block_0000000/dense_1/Relu")
    node.inputs[0] = graph.node("block_0000000/dense_1/moments/axes").output()
    require_valid_changes(graph, ())  # nobody said so
    with pytest.raises(GraphError, match="is int32; Relu expects float32"):
        require_valid_changes(graph, [node])
    graph.node("x").device = "/device"
    with pytest.raises(GraphError, match="device name"):
        require_valid_changes(graph, ())
