"""GraphDef messages to graphs and back."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager

from schemas.graph_pb2 import GraphDef
from toolkit.graph.graph import Graph


@contextmanager
def no_gc() -> Generator[None]:
    """Hold back the cycle collector while many small objects are made that all stay alive."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def from_proto(proto: GraphDef) -> Graph:
    """Take over a GraphDef (do not use it afterwards).

    Raises:
        GraphError: a duplicate name, an input that does not exist, a control input before a data input.
    """
    with no_gc():
        return Graph.from_proto(proto)


def to_proto(graph: Graph) -> GraphDef:
    """The GraphDef of a graph; unknown fields of what was read are kept."""
    with no_gc():
        return graph.to_proto()
