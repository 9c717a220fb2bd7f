"""If, Case and While as Switch, Merge and loops of frames, before a graph is run on a device with a memory of its own.

As functions, branches and conditions are programs of their own, between which the host goes back and forth. In place,
the compiler sees all of it, and what tensors decide can become conditional nodes of a CUDA graph. TensorFlow's runtime
lowers them as well.
"""

from __future__ import annotations

from collections.abc import Callable

from toolkit.errors import GraphmillError
from toolkit.graph import dtypes
from toolkit.graph.attrs import FuncRef
from toolkit.graph.bodies import called, functions_of, instantiate
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node, Output
from toolkit.passes.optimize.flow.inline_functions import InlineFunctions
from toolkit.passes.optimize.flow.lower_control_flow import LowerControlFlow

_LOWERED = frozenset({"If", "StatelessIf", "Case", "StatelessCase", "While", "StatelessWhile"})
#: what may wait in the place of what hands it a truth value
_ORDERED = frozenset({"LoopCond", "Identity"})
#: of control flow within control flow; deeper ones stay functions
_DEPTH = 8


def lower_flow(graph: Graph, is_runnable: Callable[[Node], bool]) -> Graph:
    """The graph with control flow in place of If, Case and While; itself where there is none, or not all can be so.

    Args:
        graph: all of it is on one device.
        is_runnable: whether a node of a function can stand in the graph: the device has a kernel for it.
    """
    if not any(node.op in _LOWERED for node in graph):
        return graph
    seen: set[str] = set()
    if not all(_is_movable(graph, ref, is_runnable, seen) for node in graph for ref in functions_of(node)):
        return graph
    work = graph
    had = frozenset(node.name for node in graph.nodes)
    for _ in range(_DEPTH):  # what is inlined may have some, too
        work = InlineFunctions().apply(LowerControlFlow().apply(work).graph).graph
        if not any(node.op in _LOWERED or called(node) is not None for node in work):
            if not all(is_runnable(node) for node in work if node.op == "ToBool" and node.name not in had):
                return graph  # a number or a text decides
            _part(work)
            _shorten(work, had)
            for node in work.nodes:
                node.device = graph.nodes[0].device  # a function runs where it is called, whatever its nodes ask for
            return work
    return graph


def _part(graph: Graph) -> None:
    """Have tensors that are handed on together go each by itself: small integers then stay in host memory."""
    parts: dict[Node, list[Node]] = {}
    for node in [each for each in graph.nodes if each.op == "IdentityN"]:
        parts[node] = [
            graph.add(
                "Identity", graph.unique_name(f"{node.name}/{index}"), [source], control_inputs=node.control_inputs,
                attrs={"T": source.node.output_types[source.index].base}, device=node.device,
            )
            for index, source in enumerate(node.inputs)
        ]  # fmt: skip
    for node in graph.nodes:
        if any(source in parts for source, _ in node.inputs):
            node.inputs = [
                Output(parts[source][index], 0) if source in parts else Output(source, index)
                for source, index in node.inputs
            ]
        if any(source in parts for source in node.control_inputs):
            node.control_inputs = [each for source in node.control_inputs for each in parts.get(source, [source])]
    graph.remove(list(parts))


def _shorten(graph: Graph, known: frozenset[str]) -> None:
    """Have truth values come from where they are computed: handed on, they would be in the device's memory.

    Args:
        known: the names of nodes that were there before functions were put in place.
    """
    found = {
        node: node.inputs[0]
        for node in graph.nodes
        if node.op == "Identity" and node.name not in known
        and node.output_types[0] is dtypes.bool_ and not node.inputs[0].node.is_control_flow
    }  # fmt: skip
    for node in graph.nodes:
        waits = dict.fromkeys(node.control_inputs)
        inputs: list[Output] = []
        for given in node.inputs:
            while given.node in found and (node.op in _ORDERED or not given.node.control_inputs):
                waits.update(dict.fromkeys(given.node.control_inputs))  # what it waited for is waited for here
                given = found[given.node]
            inputs.append(given)
        if inputs != node.inputs:
            node.inputs, node.control_inputs = inputs, list(waits)
    taken = {source for node in graph.nodes for source in (*(each for each, _ in node.inputs), *node.control_inputs)}
    graph.remove([node for node in found if node not in taken])


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
        (node.op in _LOWERED or called(node) is not None or is_runnable(node))
        and all(_is_movable(graph, each, is_runnable, seen) for each in functions_of(node))
        for node in body
    )
