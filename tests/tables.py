"""Graphs whose nodes are a table, for tests: a graph of blocks, and graphs of any size read so."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path

import pytest

from tests.bench.large_graphs import write_graph
from toolkit.formats.models import graphdef, node_bytes
from toolkit.formats.node_tables.table import NodeTable
from toolkit.graph.graph import Graph


def read_all_as_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have tables be read of graphs of any size."""
    monkeypatch.setattr(node_bytes, "_MANY", 1)


@functools.cache
def block_bytes() -> bytes:
    """A GraphDef of 700 nodes, as `tests.bench` writes larger ones."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "block.pb"
        write_graph(path, 700)
        return path.read_bytes()


def unmade(data: bytes) -> Graph:
    """A graph that has a table: none of its nodes has been asked for."""
    graph = graphdef.from_bytes(data)
    assert graph is not None
    assert isinstance(graph.unmade, NodeTable)
    return graph
