"""The default-graph stack of each thread: what `Graph.as_default` puts graphs on."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from toolkit.errors import GraphError

if TYPE_CHECKING:
    from toolkit.client.construction.graph import Graph


class _Stack(threading.local):
    def __init__(self) -> None:
        self.graphs: list[Graph] = []


_stack = _Stack()


def innermost() -> Graph | None:
    """The graph of the innermost `with graph.as_default()` of this thread."""
    return _stack.graphs[-1] if _stack.graphs else None


class default_graph:  # noqa: N801 (a context manager; a class, as every op constructor enters one)
    """Make a graph the default of this thread inside the block."""

    __slots__ = ("_graph",)

    def __init__(self, graph: Graph):
        self._graph = graph

    def __enter__(self) -> Graph:
        _stack.graphs.append(self._graph)
        return self._graph

    def __exit__(self, *_: object) -> None:
        if _stack.graphs.pop() is not self._graph:
            raise GraphError("default graphs were left in another order than they were entered")
