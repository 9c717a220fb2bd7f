"""Which graph is being built: the default one of a thread, else that of the process."""

from __future__ import annotations

from toolkit.client.construction.graph import Graph
from toolkit.client.construction.graph_stack import innermost
from toolkit.errors import GraphError

_global: list[Graph] = []  # the graph of last resort, shared by all threads; made on first use
_type: list[type[Graph]] = [Graph]


def use_graph_type(kind: type[Graph]) -> type[Graph]:
    """Make process-wide default graphs of this class from now on; returns the class that they were of.

    One that exists already and has no operations gives way.
    """
    before, _type[0] = _type[0], kind
    if _global and not _global[0].core.nodes:
        _global.clear()
    return before


def get_default_graph() -> Graph:
    """The innermost `Graph.as_default()` of this thread, else the process-wide default graph."""
    found = innermost()
    if found is not None:
        return found
    if not _global:
        _global.append(_type[0]())
    return _global[0]


def replace_default_graph(graph: Graph | None) -> Graph | None:
    """Make another graph the process-wide default one, or none; returns the one that there was.

    Raises:
        GraphError: called inside `Graph.as_default()`.
    """
    if innermost() is not None:
        raise GraphError("the default graph cannot be replaced inside 'with graph.as_default()'")
    before = _global[0] if _global else None
    _global[:] = [] if graph is None else [graph]
    return before


def reset_default_graph() -> None:
    """Forget the process-wide default graph; the next op starts a new one.

    Raises:
        GraphError: called inside `Graph.as_default()`.
    """
    if innermost() is not None:
        raise GraphError("reset_default_graph cannot be used inside 'with graph.as_default()'")
    _global.clear()
