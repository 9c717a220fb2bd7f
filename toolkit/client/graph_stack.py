"""The default-graph stack of each thread: what `Graph.as_default` puts graphs on."""

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


def innermost() -> Graph | None:
    """The graph of the innermost `with graph.as_default()` of this thread."""
    return _stack.graphs[-1] if _stack.graphs else None


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
