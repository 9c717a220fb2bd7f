"""If, Case and While as Switch, Merge and loops of frames, before a graph is run on a device with a memory of its own.

As functions, branches and conditions are programs of their own, between which the host goes back and forth. In place,
the compiler sees all of it, and what tensors decide can become conditional nodes of a CUDA graph. TensorFlow's runtime
lowers them as well.
"""

from __future__ import annotations

from collections.abc import Callable

from toolkit.errors import GraphmillError
from toolkit.graph.attrs import FuncRef
from toolkit.graph.bodies import called, functions_of, instantiate
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node
from toolkit.passes.optimize.inline_functions import InlineFunctions
from toolkit.passes.optimize.lower_control_flow import LowerControlFlow

_LOWERED = frozenset({"If", "StatelessIf", "Case", "StatelessCase", "While", "StatelessWhile"})


def lower_flow(graph: Graph, is_runnable: Callable[[Node], bool]) -> Graph:
    """The graph with control flow in place of If, Case and While; itself where there is none, or not all can be so.

    Args:
        is_runnable: whether a node of a function can stand in the graph: the device has a kernel for it.
    """
    if not any(node.op in _LOWERED for node in graph):
        return graph
    seen: set[str] = set()
    if any(len(node.attr_or("branches", ())) > _BRANCHES for node in graph):
        return graph
    if not all(_is_movable(graph, ref, is_runnable, seen) for node in graph for ref in functions_of(node)):
        return graph
    work = graph
    for _ in range(_DEPTH):  # what is inlined may have some, too
        work = InlineFunctions().apply(LowerControlFlow().apply(work).graph).graph
        if not any(node.op in _LOWERED or called(node) is not None for node in work):
            return work
    return graph


#: of a Case: the compiler knows what comes out of two branches
_BRANCHES = 2
#: of control flow within control flow; deeper ones stay functions
_DEPTH = 8


def _is_movable(graph: Graph, ref: FuncRef, is_runnable: Callable[[Node], bool], seen: set[str]) -> bool:
    """Whether all nodes of a function, and of those that it names, can stand in the graph."""
    if ref.name in seen:
        return True
    seen.add(ref.name)
    try:
        body = instantiate(graph.library, ref).graph
    except GraphmillError:
        return False  # whoever calls it says so
    return all(
        len(node.attr_or("branches", ())) <= _BRANCHES
        and (node.op in _LOWERED or called(node) is not None or is_runnable(node))
        and all(_is_movable(graph, each, is_runnable, seen) for each in functions_of(node))
        for node in body
    )
