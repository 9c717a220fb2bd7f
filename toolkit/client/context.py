"""Which graph is being built: the default one of a thread, else that of the process."""

from __future__ import annotations

from toolkit.client.graph import Graph
from toolkit.client.graph_stack import innermost
from toolkit.errors import GraphError

_global: list[Graph] = []  # the graph of last resort, shared by all threads; made on first use


def get_default_graph() -> Graph:
    """The innermost `Graph.as_default()` of this thread, else the process-wide default graph."""
    found = innermost()
    if found is not None:
        return found
    if not _global:
        _global.append(Graph())
    return _global[0]


def reset_default_graph() -> None:
    """Forget the process-wide default graph; the next op starts a new one.

    Raises:
        GraphError: called inside `Graph.as_default()`.
    """
    if innermost() is not None:
        raise GraphError("reset_default_graph cannot be used inside 'with graph.as_default()'")
    _global.clear()
