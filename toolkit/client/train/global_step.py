"""The variable that counts training steps."""

from __future__ import annotations

from typing import Any

from toolkit.client import initializers
from toolkit.client.context import get_default_graph
from toolkit.client.graph import Graph
from toolkit.client.variable_store import get_variable
from toolkit.errors import GraphError
from toolkit.graph import dtypes
from toolkit.graph.metagraph import GraphKeys


def get_global_step(graph: Graph | None = None) -> Any:
    """The global step of the graph, or None.

    Raises:
        GraphError: the collection GLOBAL_STEP holds several.
    """
    graph = graph or get_default_graph()
    found = graph.get_collection(GraphKeys.GLOBAL_STEP)
    if len(found) > 1:
        raise GraphError(f"the collection '{GraphKeys.GLOBAL_STEP}' holds {len(found)} variables; one is expected")
    if found:
        return found[0]
    return next((v for v in graph.get_collection(GraphKeys.GLOBAL_VARIABLES) if v.op.name == "global_step"), None)


def create_global_step(graph: Graph | None = None) -> Any:
    """Add the global step: int64, not trainable, in GLOBAL_VARIABLES and GLOBAL_STEP.

    Raises:
        GraphError: there is one already.
    """
    graph = graph or get_default_graph()
    if get_global_step(graph) is not None:
        raise GraphError("the graph has a global step already")
    with graph.as_default(), graph.name_scope(None):
        return get_variable(
            "global_step", [], dtypes.int64, initializers.Zeros(), trainable=False,
            collections=[GraphKeys.GLOBAL_VARIABLES, GraphKeys.GLOBAL_STEP],
        )  # fmt: skip


def get_or_create_global_step(graph: Graph | None = None) -> Any:
    """The global step, made when there is none."""
    found = get_global_step(graph)
    return create_global_step(graph) if found is None else found
