"""Placement over the table of a large graph gives the file that placement node by node gives, and its reports."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from schemas.graph_pb2 import GraphDef
from tests.formats.test_node_table import CHANGES, Change
from tests.passes.graphs import plain_config
from tests.tables import block_bytes, read_all_as_tables, unmade
from toolkit.errors import GraphmillError
from toolkit.formats.models import graphdef
from toolkit.formats.node_tables.table import NodeTable
from toolkit.formats.settings.placement_rules import parse_rules
from toolkit.graph.device import DeviceSpec
from toolkit.graph.graph import Graph
from toolkit.passes.base import run_pass
from toolkit.passes.placement.devices import DeviceSet
from toolkit.passes.placement.place import Place

TASK = "/job:localhost/replica:0/task:0"
CPUS = [f"{TASK}/device:CPU:0", f"{TASK}/device:CPU:1"]
MIXED = [
    f"{TASK}/device:GPU:0",
    *CPUS,
    "/job:ps/replica:0/task:0/device:CPU:0",
    "/job:ps/replica:0/task:1/device:CPU:0",
]
WISHES = [
    "",
    "",
    "/cpu:0",
    "/device:CPU:1",
    "/device:GPU:0",
    "/job:ps",
    f"{TASK}/device:CPU:0",
    "/job:ps/task:1",
    "/gpu:7",
]


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables are read of graphs of any size."""
    read_all_as_tables(monkeypatch)


@pytest.fixture
def block() -> bytes:
    return block_bytes()


def outcome(graph: Graph, place: Place) -> Any:
    """What placing a graph says, and the bytes of what it makes."""
    try:
        result = run_pass(place, graph, keep=False)
    except GraphmillError as error:
        return str(error)
    return result.modified, result.report, b"".join(graphdef.to_parts(result.graph))


def both(data: bytes, devices: Sequence[str], **options: Any) -> bool:
    """Compare the two ways; returns whether there were no nodes on the first."""
    place = Place(DeviceSet([DeviceSpec.parse(each) for each in devices]), details=False, **options)
    graph, other = unmade(data), unmade(data)
    assert len(other.nodes) == len(graph)
    mine, theirs = outcome(graph, place), outcome(other, place)
    assert mine == theirs
    return graph.unmade is not None


RULES = {
    "none": "", "a pattern": '"block_0000000/*": /device:CPU:1\n', "several": 're:dense_[01]: /cpu:1\n"*": /cpu:0\n',
    "forget": '"*": ""\n', "a query": "op = MatMul: /device:CPU:1\n", "a node": '"*/MatMul": "@x"\n',
    "of variables": '"*/kernel": /device:CPU:1\n"*/dense_1/bias/read": /cpu:1\n',
    "against colocation": '"*/kernel": /device:CPU:1\n"*/kernel/read": /cpu:0\n',
}  # fmt: skip


@pytest.mark.parametrize("rules", RULES.values(), ids=RULES.keys())
@pytest.mark.parametrize("devices", [CPUS, MIXED, MIXED[3:]], ids=["cpus", "mixed", "others"])
def test_rules(block: bytes, rules: str, devices: list[str]) -> None:
    found = parse_rules(rules) if rules else ()
    for soft in (False, True):
        both(block, devices, rules=found, allow_soft_placement=soft)


def test_no_node_is_made_of_what_is_usual(block: bytes) -> None:
    assert both(block, CPUS, rules=parse_rules(RULES["a pattern"]))
    assert both(block, MIXED)
    assert both(block, MIXED, variables="/job:ps", balance="bytes")


@pytest.mark.parametrize("balance", ["round-robin", "bytes"])
@pytest.mark.parametrize("where", ["/job:ps", "/job:localhost", "/job:nowhere"])
def test_variables(block: bytes, where: str, balance: str) -> None:
    assert both(block, MIXED, variables=where, balance=balance)


def test_devices_that_nodes_ask_for(block: bytes) -> None:
    """Random wishes, of single nodes, of groups, and of all of a kind, on clusters that have them and that do not."""
    rng = random.Random(5)
    without = 0
    for number in range(30):
        graph = GraphDef.FromString(block)
        wishes = rng.sample(WISHES, rng.choice((1, 2, 3)))
        share = rng.choice((0.002, 0.05, 0.5))
        by_op = {node.op: rng.choice(wishes) for node in graph.node}
        for node in graph.node:
            if rng.random() < share:
                node.device = rng.choice(wishes) if number % 2 else by_op[node.op]
        devices = rng.choice((CPUS, MIXED, MIXED[::-1]))
        without += both(graph.SerializeToString(deterministic=True), devices, allow_soft_placement=number % 3 == 0)
    assert without > 5


def random_graph(rng: random.Random) -> bytes:
    """A graph of ops that placement treats in its own ways, wired at random."""
    graph = GraphDef()
    graph.versions.producer = 2474
    floats, resources, refs, shapes = list[str](), list[str](), list[str](), list[str]()
    wishes = rng.choice(([""], ["", "", "/cpu:0"], ["", "/device:CPU:1", f"{TASK}/device:CPU:1"], WISHES))

    def add(op: str, inputs: Sequence[str], **types: int) -> str:
        name = f"n{len(graph.node)}"
        node = graph.node.add(name=name, op=op, input=inputs, device=rng.choice(wishes))
        for key, value in types.items():
            node.attr[key].type = value  # type: ignore[assignment]
        if op in ("VarHandleOp", "VariableV2"):
            node.attr["shape"].shape.dim.add().size = rng.randrange(1, 9)
        if op == "Const":
            node.attr["value"].tensor.dtype = 1  # type: ignore[assignment]
            node.attr["value"].tensor.tensor_shape.SetInParent()
            node.attr["value"].tensor.float_val.append(1)
        earlier = graph.node[:-1]
        if earlier and rng.random() < 0.1:
            named = rng.sample(range(len(earlier)), min(len(earlier), rng.choice((1, 1, 2))))
            node.attr["_class"].list.s.extend(b"loc:@" + graph.node[at].name.encode() for at in named)
        if earlier and rng.random() < 0.15:
            node.input.append("^" + rng.choice(earlier).name)
        return name

    floats.append(add("Const", [], dtype=1))
    for _ in range(rng.randrange(5, 60)):
        op = rng.choice(("Const", "VarHandleOp", "VariableV2", "Identity", "Identity", "Shape", "Size", "Add", "Read",
                         "AssignSub", "Assign", "Pass", "Random", "NoOp", "Fill", "Rank"))  # fmt: skip
        if op == "Const":
            floats.append(add(op, [], dtype=1))
        elif op == "VarHandleOp":
            resources.append(add(op, [], dtype=1))
        elif op == "VariableV2":
            refs.append(add(op, [], dtype=1))
        elif op == "NoOp":
            add(op, [])
        elif op == "Read" and resources:
            floats.append(add("ReadVariableOp", [rng.choice(resources)], dtype=1))
        elif op == "Pass" and resources:
            resources.append(add("Identity", [rng.choice(resources)], T=20))
        elif op == "AssignSub" and resources and floats:
            add("AssignSubVariableOp", [rng.choice(resources), rng.choice(floats)], dtype=1)
        elif op == "Assign" and refs and floats:
            refs.append(add("Assign", [rng.choice(refs), rng.choice(floats)], T=1))
        elif op in ("Shape", "Size", "Rank") and floats:
            types = {"T": 1} if op == "Rank" else {"T": 1, "out_type": 3}
            shapes.append(add(op, [rng.choice(floats + refs)], **types))
        elif op == "Identity" and (floats or refs):
            floats.append(add(op, [rng.choice(floats + refs)], T=1))
        elif op == "Add" and floats:
            floats.append(add("AddV2", [rng.choice(floats), rng.choice(floats + refs)], T=1))
        elif op in ("Random", "Fill") and shapes and floats:
            fill = op == "Fill"
            inputs = [rng.choice(shapes), *([rng.choice(floats)] if fill else [])]
            floats.append(
                add("Fill", inputs, T=1, index_type=3) if fill else add("RandomUniform", inputs, T=3, dtype=1)
            )
    return graph.SerializeToString(deterministic=True)


def test_random_graphs() -> None:
    rng = random.Random(20)
    without = 0
    for number in range(200):
        data = random_graph(rng)
        if graphdef.from_bytes(data) is None:
            continue
        without += both(data, rng.choice((CPUS, MIXED, MIXED[::-1])), allow_soft_placement=number % 4 == 0)
    assert without > 50


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_unusual_nodes(block: bytes, change: Change) -> None:
    data = with_unusual(block, change)
    if is_table(data):
        both(data, MIXED)
        both(data, CPUS, allow_soft_placement=True, rules=parse_rules(RULES["a pattern"]))


def with_unusual(data: bytes, change: Change) -> bytes:
    """A graph with one more node that is odd."""
    graph = GraphDef.FromString(data)
    for name in ("cut", "z"):
        graph.node.add(name=name, op="Identity", input=["x"]).attr["T"].type = 1  # type: ignore[assignment]
    change(graph.node[-2])
    return graph.SerializeToString(deterministic=True)


def is_table(data: bytes) -> bool:
    """Whether anything is read of some bytes, and a table."""
    try:
        graph = graphdef.from_bytes(data)
    except GraphmillError:
        return False
    return graph is not None and isinstance(graph.unmade, NodeTable)


def damaged(data: bytes, rng: random.Random) -> bytes:
    """With some bytes changed."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4))):
        changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)


def test_damaged_files(block: bytes) -> None:
    rng = random.Random(12)
    graph = GraphDef.FromString(block)
    del graph.node[150:]
    for node in graph.node:
        node.device = rng.choice(("", "/cpu:0", "/cpu:1"))
    whole = graph.SerializeToString(deterministic=True)
    for _ in range(100):
        data = damaged(whole, rng)
        if is_table(data):
            both(data, CPUS, allow_soft_placement=rng.random() < 0.5)


@pytest.mark.tensorflow
def test_tensorflow_runs_what_was_placed(block: bytes, tf: Any) -> None:
    graph = unmade(block)
    devices = [DeviceSpec.parse(each) for each in CPUS]
    place = Place(devices, details=False, rules=parse_rules('"block_0000001/*": /device:CPU:1\n'))
    placed = run_pass(place, graph, keep=False)
    assert placed.graph.unmade is not None
    assert all(placed.report["devices"].values())
    results: list[Any] = []
    for data in (block, b"".join(graphdef.to_parts(placed.graph))):
        with tf.Graph().as_default() as made:
            tf.import_graph_def(tf.compat.v1.GraphDef.FromString(data), name="")
        with tf.compat.v1.Session(graph=made, config=plain_config(tf, device_count={"CPU": 2})) as session:
            session.run("init")
            results.append(session.run("y:0", {"x:0": [[1, 2, 3, 4, 5, 6, 7, 8]]}))
    assert (results[0] == results[1]).all()


def test_what_is_placed_is_read_cut_and_made(block: bytes, tmp_path: Path) -> None:
    """The nodes of a placed table are those of its file."""
    graph = unmade(block)
    result = run_pass(Place([DeviceSpec.parse(each) for each in CPUS], details=False), graph, keep=False)
    assert result.graph.unmade is not None
    data = b"".join(graphdef.to_parts(result.graph))
    again = unmade(data)
    assert again.device_names() == result.graph.device_names()
    assert [node.device for node in again] == [node.device for node in result.graph]
    assert b"".join(graphdef.to_parts(result.graph)) == data
