"""Tables are put in an order in which nodes stand behind what they read, and nothing else changes."""

from __future__ import annotations

import random

import pytest

from schemas.graph_pb2 import GraphDef
from tests.tables import block_bytes, read_all_as_tables, unmade
from toolkit.formats.node_tables.order import in_order
from toolkit.formats.node_tables.table import NodeTable


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables are read of graphs of any size."""
    read_all_as_tables(monkeypatch)


def _table(message: GraphDef) -> NodeTable:
    table = unmade(message.SerializeToString(deterministic=True)).unmade
    assert isinstance(table, NodeTable)
    return table


def _shuffled(seed: int) -> GraphDef:
    message = GraphDef.FromString(block_bytes())
    nodes = list(message.node)
    random.Random(seed).shuffle(nodes)
    copies = [type(node).FromString(node.SerializeToString()) for node in nodes]
    del message.node[:]
    message.node.extend(copies)
    return message


def test_what_is_in_order_stays() -> None:
    assert in_order(_table(GraphDef.FromString(block_bytes()))) is None


@pytest.mark.parametrize("seed", range(3))
def test_nodes_come_behind_what_they_read(seed: int) -> None:
    message = _shuffled(seed)
    graph = unmade(message.SerializeToString(deterministic=True))
    table = graph.unmade
    assert isinstance(table, NodeTable)
    assert not table.is_sound(graph)
    ordered = in_order(table)
    assert ordered is not None
    assert ordered.is_sound(graph)
    assert sorted(ordered.names) == sorted(table.names)
    written = GraphDef.FromString(b"".join(ordered.parts()))
    assert {node.name: node for node in written.node} == {node.name: node for node in message.node}


def test_cycles_have_no_order() -> None:
    message = GraphDef.FromString(block_bytes())
    first = next(node for node in message.node if node.op == "MatMul")
    first.input[0] = "y"
    assert in_order(_table(message)) is None
