"""Partition over the table of a large graph gives the files that partition node by node gives, and its messages."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from commands.main import run
from schemas.graph_pb2 import GraphDef
from tests.formats.test_node_table import CHANGES, Change
from tests.passes.test_place_table import damaged, is_table, random_graph, with_unusual
from tests.tables import block_bytes, read_all_as_tables, unmade
from toolkit.errors import GraphmillError
from toolkit.formats.models import graphdef, node_bytes
from toolkit.formats.settings.placement_rules import parse_rules
from toolkit.graph.check import check, require_valid
from toolkit.graph.device import DeviceSpec
from toolkit.passes.base import run_pass
from toolkit.passes.partitioning import partition_table
from toolkit.passes.partitioning.crossing_table import crossing_bytes
from toolkit.passes.partitioning.partition import Partitioned, PartitionGraph
from toolkit.passes.placement.costs import CrossingBytes
from toolkit.passes.placement.place import Place

DEVICES = [
    "/job:a/replica:0/task:0/device:CPU:0", "/job:a/replica:0/task:0/device:CPU:1",
    "/job:a/replica:0/task:1/device:CPU:0", "/job:b/replica:0/task:0/device:GPU:0",
]  # fmt: skip


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables are read of graphs of any size, and kept however many nodes are made."""
    read_all_as_tables(monkeypatch)
    monkeypatch.setattr(partition_table, "MOST_MADE", 2.0)


@pytest.fixture
def block() -> bytes:
    return block_bytes()


def facts(parts: Partitioned) -> Any:
    """What is told of parts, and their bytes."""
    return (
        {name: b"".join(graphdef.to_parts(part)) for name, part in parts.graphs.items()},
        parts.transfers, parts.control_loops,
        {name: (len(part), part.device_names(), list(part.library)) for name, part in parts.graphs.items()},
    )  # fmt: skip


def both(data: bytes, by: str = "device", compress: str = "", shares: bool = True) -> bool:
    """Compare the two ways; returns whether there were no nodes on the first."""
    splitter = PartitionGraph(by, compress=compress, share_controls=shares)
    graph, other = unmade(data), unmade(data)
    assert len(other.nodes) == len(graph)
    try:
        parts = splitter.split_unmade(graph)
        mine = None if parts is None else facts(parts)
    except GraphmillError as error:
        parts, mine = None, str(error)
    try:
        require_valid(other)
    except GraphmillError:
        assert parts is None
        return False
    sizes = CrossingBytes(other)
    try:
        made = splitter.split(other, keep=False)
        theirs = facts(made)
    except GraphmillError as error:
        assert mine in (None, str(error))
        return mine is not None
    assert mine in (None, theirs)
    if parts is None:
        return False
    assert graph.unmade is not None
    assert crossing_bytes(graph, parts) == sizes.of(made)
    for name, part in parts.graphs.items():
        assert part.unmade is not None
        same = graphdef.from_bytes(theirs[0][name])
        assert same is not None
        assert [str(each) for each in check(part, shapes=False)] == [str(each) for each in check(same, shapes=False)]
        assert [edges(node) for node in part] == [edges(node) for node in made.graphs[name]]
        assert b"".join(graphdef.to_parts(part)) == theirs[0][name]  # of nodes
    return True


def edges(node: Any) -> Any:
    return node.id, node.name, node.op, node.device, node.input_refs(), sorted(node.attrs)


def in_blocks(data: bytes, devices: Sequence[str], size: int) -> bytes:
    """With devices that change every so many nodes."""
    graph = GraphDef.FromString(data)
    for number, node in enumerate(graph.node):
        node.device = devices[number // size % len(devices)]
    return graph.SerializeToString(deterministic=True)


@pytest.mark.parametrize("by", ["task", "device"])
def test_blocks_on_devices_in_turn(block: bytes, by: str) -> None:
    """Layers, conditionals and functions cross; a loop that is spread over devices is left to nodes."""
    graph = GraphDef.FromString(block)
    for node in graph.node:
        number = node.name[6:13]
        node.device = DEVICES[int(number) % 4] if number.isdigit() else DEVICES[0]
    data = graph.SerializeToString(deterministic=True)
    assert both(data, by)
    assert both(data, by, compress="bfloat16") and both(data, by, compress="half", shares=False)
    assert not both(in_blocks(block, DEVICES[::3], 50), by)


def test_layers_are_split(block: bytes) -> None:
    rng = random.Random(3)
    graph = GraphDef.FromString(block)
    places = {key: rng.choice(DEVICES) for key in range(64)}
    for node in graph.node:
        scopes = node.name.split("/")
        layer = len(scopes) > 1 and scopes[1].startswith("dense")
        node.device = places[hash_of("/".join(scopes[:2])) % 64] if layer else DEVICES[0]
    assert both(graph.SerializeToString(deterministic=True))


def hash_of(text: str) -> int:
    return sum(map(ord, text))


def test_nodes_of_groups_apart(block: bytes) -> None:
    """What a `_class` names of other partitions goes; what is left of the list stays."""
    graph = GraphDef.FromString(block)
    for number, node in enumerate(graph.node):
        node.device = DEVICES[0]
        if node.op == "MatMul":
            node.device = DEVICES[number % 2]
            node.attr["_class"].list.s.extend([b"loc:@x", b"loc:@" + node.name.encode(), b"other"])
        elif node.op == "Relu":
            node.device = DEVICES[1]
            node.attr["_class"].list.s.append(b"loc:@x")
    assert both(graph.SerializeToString(deterministic=True))


def test_random_graphs() -> None:
    rng = random.Random(21)
    without = 0
    for _ in range(150):
        graph = GraphDef.FromString(random_graph(rng))
        devices = rng.sample(DEVICES, rng.choice((2, 3)))
        first = rng.choice(devices)
        share = rng.choice((0.1, 0.5, 1))
        for node in graph.node:
            node.device = rng.choice(devices) if rng.random() < share else first
        if rng.random() < 0.05:
            graph.node[0].device = rng.choice(["", "/cpu:0", "/device:CPU:1"])
        data = graph.SerializeToString(deterministic=True)
        if graphdef.from_bytes(data) is not None:
            without += both(
                data, rng.choice(("task", "device")), rng.choice(("", "bfloat16")), shares=rng.random() < 0.5
            )
    assert without > 60


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_unusual_nodes(block: bytes, change: Change) -> None:
    graph = GraphDef.FromString(block)
    for node in graph.node:
        node.device = DEVICES[node.name.startswith("block_0000000/dense_1")]
    data = with_unusual(graph.SerializeToString(deterministic=True), change)
    for device in ("", DEVICES[0], DEVICES[2]):
        graph = GraphDef.FromString(data)
        for node in graph.node:
            if not node.device:
                node.device = device
        data_with = graph.SerializeToString(deterministic=True)
        if is_table(data_with):
            both(data_with)


def test_damaged_files(block: bytes) -> None:
    rng = random.Random(13)
    graph = GraphDef.FromString(block)
    del graph.node[120:]
    for node in graph.node:
        node.device = DEVICES[rng.random() < 0.1]
    whole = graph.SerializeToString(deterministic=True)
    for _ in range(100):
        data = damaged(whole, rng)
        if is_table(data):
            both(data, rng.choice(("task", "device")))


def test_loops_that_are_not_as_they_should_be(block: bytes) -> None:
    """Frames that do not fit together are told of by those who look at nodes."""
    rng = random.Random(14)
    graph = GraphDef.FromString(block)
    for node in graph.node:
        node.device = DEVICES[0]
    graph.node[0].device = DEVICES[1]
    loops = [number for number, node in enumerate(graph.node) if "/while/" in node.name]
    floats = [node.name for node in graph.node if "T" in node.attr and node.attr["T"].type == 1]
    whole = graph.SerializeToString(deterministic=True)
    for _ in range(60):
        graph = GraphDef.FromString(whole)
        node = graph.node[rng.choice(loops)]
        how = rng.randrange(4)
        if how == 0 and node.input and "T" in node.attr and node.attr["T"].type == 1:
            node.input[0] = rng.choice(floats)
        elif how == 1:
            node.input.append("^" + rng.choice(floats))
        elif how == 2 and node.op == "Enter":
            node.attr["frame_name"].s = rng.choice((b"", b"block_0000001/while", b"another"))
        else:
            node.device = DEVICES[1]
        data = graph.SerializeToString(deterministic=True)
        if is_table(data):
            both(data)


@pytest.mark.tensorflow
def test_tensorflow_imports_the_parts(block: bytes, tf: Any) -> None:
    graph = GraphDef.FromString(block)
    for node in graph.node:
        node.device = DEVICES[node.name.startswith("block_0000001")]
    parts = PartitionGraph("device").split_unmade(unmade(graph.SerializeToString(deterministic=True)))
    assert parts is not None
    for part in parts.graphs.values():
        assert part.unmade is not None
        with tf.Graph().as_default() as made:
            data = b"".join(graphdef.to_parts(part))
            tf.import_graph_def(tf.compat.v1.GraphDef.FromString(data), name="")
        assert len(made.get_operations()) == len(part)


def test_what_was_placed_is_split(block: bytes) -> None:
    """Without a file in between."""
    cpus = [DeviceSpec.parse(each) for each in DEVICES[:2]]
    place = Place(cpus, details=False, rules=parse_rules('"block_0000001/*": /device:CPU:1\n'))
    placed = run_pass(place, unmade(block), keep=False).graph
    assert placed.unmade is not None
    data = b"".join(graphdef.to_parts(placed))
    parts, same = (PartitionGraph("device").split_unmade(graph) for graph in (placed, unmade(data)))
    assert parts is not None and same is not None
    assert facts(parts) == facts(same)


def test_a_command_writes_the_same_folder(
    block: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    graph = GraphDef.FromString(block)
    for node in graph.node:
        node.device = DEVICES[node.name.startswith("block_0000001")]
    file = tmp_path / "m.pb"
    file.write_bytes(graph.SerializeToString(deterministic=True))
    said: list[str] = []
    for name, many in (("table", 1), ("nodes", 1 << 30)):
        monkeypatch.setattr(node_bytes, "_MANY", many)
        assert run(["partition", str(file), "--by", "device", "-o", str(tmp_path / name)]) == 0
        said.append(capfd.readouterr().err)
    assert said[0] == said[1]
    written = [sorted((p.name, p.read_bytes()) for p in (tmp_path / name).iterdir()) for name in ("table", "nodes")]
    assert written[0] == written[1]


def test_many_nodes_are_made_all_at_once(block: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_table, "MOST_MADE", 0.01)
    assert not both(in_blocks(block, DEVICES[:2], 1))
