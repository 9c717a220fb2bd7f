"""The graph of what a session is given, and what that graph may touch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolkit.errors import ArgumentTypeError
from toolkit.formats.models.model import Model
from toolkit.graph.graph import Graph
from toolkit.graph.metagraph import MetaGraph
from toolkit.policy.rules import Policy

if TYPE_CHECKING:
    pass


def default_policy(graph: Any) -> Policy:
    """What a session without a policy allows: everything, but to models that came out of a file."""
    if isinstance(graph, Model) and graph.source:
        return Policy.of_model(graph.folder or graph.source)
    return Policy.everything()


def core_graph(thing: Any) -> Graph:
    """The core graph of a graph, client graph, MetaGraph or Model.

    Raises:
        UsageError: it is none of these.
    """
    if isinstance(thing, Graph):
        return thing
    if isinstance(thing, MetaGraph):
        return thing.graph
    for inner in (getattr(thing, "core", None), getattr(thing, "graph", None)):
        if isinstance(inner, Graph):  # an empty one is false, and a graph all the same
            return inner
    raise ArgumentTypeError(f"a session needs a graph, not {type(thing).__name__}")


def default_graph() -> Any:
    from toolkit.client.construction.context import get_default_graph

    return get_default_graph()
