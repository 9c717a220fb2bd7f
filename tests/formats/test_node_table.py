"""Graphs whose nodes are a table: what is read, found and written of all together is what is of each node by itself."""

from __future__ import annotations

import mmap
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from schemas.graph_pb2 import GraphDef
from tests import tables
from tests.formats.test_node_bytes import by_message, facts, require_same
from tests.tables import block_bytes, read_all_as_tables
from toolkit.formats.inspection.summary import inspect
from toolkit.formats.models import graphdef, node_bytes
from toolkit.formats.node_tables import summary as table_summary
from toolkit.formats.node_tables.table import NodeTable
from toolkit.graph import releases
from toolkit.graph.check import check, check_nodes
from toolkit.graph.graph import Graph
from toolkit.graph.summary import summarize
from toolkit.passes.base import run_pass
from toolkit.passes.measuring.explore import add_costs
from toolkit.passes.pruning.prune import Prune


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables are read of graphs of any size."""
    read_all_as_tables(monkeypatch)


@pytest.fixture
def block() -> bytes:
    return block_bytes()


def unmade(data: bytes) -> tuple[Graph, NodeTable]:
    graph = tables.unmade(data)
    assert isinstance(graph.unmade, NodeTable)
    return graph, graph.unmade


def test_nodes_are_made_when_they_are_asked_for(block: bytes) -> None:
    graph, table = unmade(block)
    assert len(graph) == len(table) == len(GraphDef.FromString(block).node)
    assert "block_0000001/dense_3/MatMul" in graph
    assert "block_0000001/dense_3" not in graph
    assert graph.unmade is table
    assert graph.node("y").inputs[0].node.name == "block_0000002/y"
    assert graph.unmade is None
    assert require_same(block)


def test_edges_and_kinds_are_those_of_nodes(block: bytes) -> None:
    _, table = unmade(block)
    other = by_message(block)
    assert other is not None
    for number, node in enumerate(other):
        edges = range(table.begin[number], table.begin[number + 1])
        assert [(table.source[edge], table.index[edge]) for edge in edges] == [
            *((src.id, index) for src, index in node.inputs), *((src.id, -1) for src in node.control_inputs),
        ]  # fmt: skip
        assert table.kinds.all[int(table.kind[number])].op == node.op


def test_what_is_sound_is_found_so_without_a_node(block: bytes) -> None:
    graph, table = unmade(block)
    assert not list(check_nodes(graph))
    assert not list(check(graph, shapes=False))
    assert graph.unmade is table


def test_bytes_are_written_as_messages_are(block: bytes) -> None:
    graph, table = unmade(block)
    whole = GraphDef.FromString(block).SerializeToString(deterministic=True)
    assert b"".join(graphdef.to_parts(graph)) == whole
    assert graph.unmade is table


Change = Callable[[Any], object]


def into(*texts: str) -> Change:
    def change(node: Any) -> None:
        del node.input[:]
        node.input.extend(texts)

    return change


def but(**fields: str) -> Change:
    """With other fields."""

    def change(node: Any) -> None:
        for key, value in fields.items():
            setattr(node, key, value)

    return change


def attr(key: str, change: Change) -> Change:
    return lambda node: change(node.attr[key])


#: ways to spoil a node or to make it unusual
CHANGES: dict[str, Change] = {
    "not ascii": but(name="nüß"), "a colon": but(name="a:1"), "no name": but(name=""), "a bad name": but(name="a b"),
    "a long name": but(name="n" * 300), "a name twice": but(name="x"), "an op": but(op="Nope"), "no op": but(op=""),
    "an input that is not there": into("nowhere"), "itself": into("cut"), "output 0 spelled out": into("x:0"),
    "a zero too many": into("x:00"), "output 10": into("x:10"), "many inputs": into(*["x"] * 40), "no input": into(),
    "a later node": into("z"), "an output that is not there": into("x:1"), "a control": into("x", "^block_feeding/y"),
    "a control first": into("^block_feeding/y", "x"), "an empty input": into(""), "an odd control": into("^x:1"),
    "another type": into("block_0000000/dense_0/Shape"), "controls": into("x", *["^block_feeding/y"] * 3),
    "a short device": but(device="/cpu:0"), "a device": but(device="/job:a/replica:0/task:0/device:CPU:0"),
    "a bad device": but(device="/nothing"), "a node's device": but(device="@x"),
    "a long device": but(device="/job:" + "b" * 200),
    "debug information": lambda node: node.experimental_debug_info.original_node_names.append("x"),
    "no type": attr("T", lambda value: value.Clear()), "another kind": attr("T", lambda value: setattr(value, "i", 3)),
    "a class": attr("_class", lambda value: value.list.s.append(b"loc:@x")),
    "a class that is not there": attr("_class", lambda value: value.list.s.append(b"loc:@nowhere")),
    "large attributes": attr("_large", lambda value: setattr(value, "s", b"s" * 300)),
    "a function": attr("_f", lambda value: setattr(value.func, "name", "squared")),
    "a call": but(op="squared"),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_unusual_nodes(change: Change, block: bytes) -> None:
    """Either the table says the same as the nodes, or it leaves it to them."""
    graph = GraphDef.FromString(block)
    cut = graph.node.add(name="cut", op="Identity", input=["x"])
    cut.attr["T"].type = 1  # type: ignore[assignment]
    graph.node.add(name="z", op="Identity", input=["x"]).attr["T"].type = 1  # type: ignore[assignment]
    change(cut)
    data = graph.SerializeToString(deterministic=True)
    other = by_message(data)
    found = graphdef.from_bytes(data)
    if other is None:
        assert found is None
        return
    if found is not None:
        if isinstance(found.unmade, NodeTable):
            summary, message = table_summary.summarize(found, found.unmade), GraphDef.FromString(data)
            assert summary == summarize(message)
            assert releases.needs(table_summary.sample(found, found.unmade)) == releases.needs(message)
        assert [str(each) for each in check(found)] == [str(each) for each in check(other)]
        assert require_same(data)


def test_an_op_that_looks_like_another_with_attributes(block: bytes) -> None:
    """The second byte of its length is the length of the other's name."""
    graph = GraphDef.FromString(block)
    node = graph.node.add(name="a", op="NoOp")
    for number in range(8):
        node.attr[f"_{number}"].s = b"p" * 62
    attributes = node.SerializeToString(deterministic=True)[len(b"\x0a\x01a\x12\x04NoOp") :]
    graph.node.add(name="b", op="NoOp" + attributes.decode())
    assert len(graph.node[-1].op) >> 7 == len("NoOp")
    data = graph.SerializeToString(deterministic=True)
    found, _ = unmade(data)
    assert found.node("b").op == graph.node[-1].op
    assert require_same(data)


@pytest.mark.parametrize("is_same", [True, False])
def test_a_function_twice(is_same: bool, block: bytes) -> None:
    """A summary is that of the file, which has both: its bytes are left as they are."""
    graph = GraphDef.FromString(block)
    for number in range(3):
        value = graph.node.add(name="n" * (number + 1), op="Const").attr["value"].tensor
        value.dtype = 1  # type: ignore[assignment]
        value.tensor_shape.dim.add().size = 1 << 14
        value.tensor_content = bytes(1 << 16)
    graph.library.function.add().CopyFrom(graph.library.function[0])
    if not is_same:
        graph.library.function[-1].signature.description = "another"
    data = graph.SerializeToString(deterministic=True)
    memory = mmap.mmap(-1, len(data))
    memory[:] = data
    assert graphdef.unmade_from_bytes(memory) is None
    assert memory[:] == data


def test_bytes_that_are_damaged(block: bytes) -> None:
    rng = random.Random(11)
    graph = GraphDef.FromString(block)
    del graph.node[120:]
    whole = graph.SerializeToString(deterministic=True)
    for _ in range(400):
        data = bytearray(whole)
        for _ in range(rng.choice((1, 1, 2, 4))):
            data[rng.randrange(len(data))] = rng.randrange(256)
        data = bytes(data[: rng.choice((len(data), rng.randrange(1, len(data))))])
        found, other = graphdef.from_bytes(data), by_message(data)
        if found is not None and other is not None:
            assert [facts(node) for node in found] == [facts(node) for node in other]
        else:
            assert found is None


@pytest.mark.parametrize("fetch", ["y", "block_0000001/y:0", "block_0000000/while/Exit", "block_0000002/cond/Switch:1"])
def test_pruning_makes_no_node(fetch: str, block: bytes) -> None:
    graph, table = unmade(block)
    other = by_message(block)
    assert other is not None
    mine = run_pass(Prune(fetches=(fetch,)), graph, keep=False)
    theirs = run_pass(Prune(fetches=(fetch,)), other)
    assert mine.report == theirs.report
    assert mine.modified is theirs.modified
    assert mine.graph.unmade is not None
    assert mine.graph.unmade is not table
    assert b"".join(graphdef.to_parts(mine.graph)) == b"".join(graphdef.to_parts(theirs.graph))
    assert mine.graph.unmade is not None
    assert [facts(node) for node in mine.graph] == [facts(node) for node in theirs.graph]
    assert not list(check(mine.graph))


def test_pruning_away_what_others_are_placed_with(block: bytes) -> None:
    graph = GraphDef.FromString(block)
    for number in range(3):
        node = graph.node.add(name=f"with_{number}", op="Identity", input=["x"])
        node.attr["T"].type = 1  # type: ignore[assignment]
        node.attr["_class"].list.s.append(b"loc:@block_0000000/y")
    data = graph.SerializeToString(deterministic=True)
    mine, _ = unmade(data)
    other = by_message(data)
    assert other is not None
    options = Prune(targets=("with_1", "with_2"))
    found, wanted = run_pass(options, mine, keep=False), run_pass(options, other)
    assert found.report == wanted.report
    assert found.report["colocations_changed"] == 2
    assert b"".join(graphdef.to_parts(found.graph)) == b"".join(graphdef.to_parts(wanted.graph))


def test_a_summary_is_that_of_the_message(block: bytes) -> None:
    """With gradients, summaries, reads of variables, targets, and results that carry an input and that do not."""
    graph = GraphDef.FromString(block)
    made: list[tuple[str, str, list[str]]] = [
        ("Identity", "out", ["x"]), ("Shape", "size", ["x"]), ("Identity", "sized", ["size"]),
        ("Identity", "gradients/y_grad", ["y"]), ("Identity", "a/gradients_1/b", ["out"]), ("Merge", "m", ["x", "y"]),
        ("Identity", "while/left", ["block_0000000/dense_0/moments/axes"]), ("NoOp", "train", ["^out"]),
        ("NoOp", "nothing", []), ("ReadVariableOp", "read", ["x"]), ("Identity", "value", ["read"]),
        ("Identity", "of_second", ["read:1"]), ("ApplyAdam", "adam", ["x"]), ("ScalarSummary", "told", ["x", "y"]),
        ("Identity", "a/switch_t", ["x"]), ("Switch", "gate", ["sized", "x"]), ("Identity", "gated", ["gate:1"]),
        ("Placeholder", "second", []), ("AssignAdd", "step", ["x", "y"]), ("Mystery", "unknown", ["second"]),
    ]  # fmt: skip
    for op, name, inputs in made:
        graph.node.add(name=name, op=op, input=inputs, device="/cpu:0" if op == "Identity" else "")
    node = graph.library.function[0].node_def.add(name="inner", op="Const", device="/gpu:1")
    node.attr["value"].tensor.dtype = 1  # type: ignore[assignment]
    for nodes in (len(graph.node), len(graph.node) - 3, len(graph.node) - 9, 60):
        del graph.node[nodes:]
        found, table = unmade(graph.SerializeToString(deterministic=True))
        assert table_summary.summarize(found, table) == summarize(graph)
        assert releases.needs(table_summary.sample(found, table)) == releases.needs(graph)
        assert found.unmade is table


def test_inspect_says_the_same(block: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "graph.pb"
    path.write_bytes(block)
    mine = inspect(path, add_costs)
    monkeypatch.setattr(node_bytes, "_MANY", 1 << 40)
    assert mine == inspect(path, add_costs)
