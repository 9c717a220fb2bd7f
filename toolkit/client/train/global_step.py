"""The variable that counts training steps."""

from __future__ import annotations

from typing import Any

from toolkit.client.construction.context import get_default_graph
from toolkit.client.construction.graph import Graph
from toolkit.client.construction.tensor import Tensor
from toolkit.client.flow import control_flow
from toolkit.client.variables import initializers
from toolkit.client.variables.base import BaseVariable
from toolkit.client.variables.store import get_variable
from toolkit.errors import GraphError
from toolkit.graph import dtypes
from toolkit.graph.metagraph import GraphKeys

#: the collection that holds the tensor of `global_step_read`
READ = "global_step_read_op_cache"


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


def global_step_read(graph: Graph | None = None) -> Tensor | None:
    """A copy of the global step as it is before a step, made once for a graph; None where there is no global step.

    Before the global step is initialized it is its initial value.
    """
    graph = graph or get_default_graph()
    made = graph.get_collection(READ)
    if made:
        return made[0]
    step = get_global_step(graph)
    if step is None:
        return None
    listed = bool(graph.get_collection(GraphKeys.GLOBAL_STEP))
    with graph.as_default(), graph.name_scope(None), graph.name_scope(step.op.name + "/"):
        value = step
        if isinstance(step, BaseVariable) and not (listed or step.is_resource):
            value = step.handle  # found by its name, it is a tensor like any other
        elif isinstance(step, BaseVariable):
            value = control_flow.cond(step.is_initialized(), step.read_value, lambda: step.initial_value)
        graph.add_to_collection(READ, value + 0)
    return graph.get_collection(READ)[0]


def increment_global_step(increment: Any, graph: Graph | None = None) -> Any:
    """The operation that adds to the global step, after whoever asked for its value before the step has it.

    Raises:
        GraphError: the graph has no global step.
    """
    graph = graph or get_default_graph()
    step = get_global_step(graph)
    if step is None:
        raise GraphError("the graph has no global step to count; make one with get_or_create_global_step")
    before = global_step_read(graph)
    scope = graph.name_scope(step.op.name + "/")
    with graph.as_default(), graph.name_scope(None), scope, graph.control_dependencies([before]):
        return step.assign_add(increment)
