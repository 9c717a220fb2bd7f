"""Which graph is being built: the default-graph stack of each thread."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from toolkit.errors import GraphError

if TYPE_CHECKING:
    from toolkit.client.graph import Graph


class _Stack(threading.local):
    def __init__(self) -> None:
        self.graphs: list[Graph] = []


_stack = _Stack()
_global: list[Graph] = []  # the graph of last resort, shared by all threads; made on first use


def get_default_graph() -> Graph:
    """The innermost `Graph.as_default()` of this thread, else the process-wide default graph."""
    if _stack.graphs:
        return _stack.graphs[-1]
    if not _global:
        from toolkit.client.graph import Graph

        _global.append(Graph())
    return _global[0]


def reset_default_graph() -> None:
    """Forget the process-wide default graph; the next op starts a new one.

    Raises:
        GraphError: called inside `Graph.as_default()`.
    """
    if _stack.graphs:
        raise GraphError("reset_default_graph cannot be used inside 'with graph.as_default()'")
    _global.clear()


@contextmanager
def default_graph(graph: Graph) -> Generator[Graph]:
    """Make `graph` the default of this thread inside the block."""
    _stack.graphs.append(graph)
    try:
        yield graph
    finally:
        top = _stack.graphs.pop()
        if top is not graph:
            raise GraphError("default graphs were left in another order than they were entered")
