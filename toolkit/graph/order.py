"""Nodes in an order in which each comes after its inputs; back edges of loops do not count."""

from __future__ import annotations

from collections.abc import Sequence

from toolkit.errors import GraphError
from toolkit.graph.node import MERGE_OPS, NEXT_ITERATION_OPS, Node


def topological_order(nodes: Sequence[Node]) -> list[Node]:
    """All nodes, each after its inputs; ties in file order. Back edges of loops, from NextIteration to Merge, do
    not count.

    Args:
        nodes: of a graph, each at the position that is its id.

    Raises:
        GraphError: there is a cycle outside a loop; it is spelled out.
    """
    pending = [0] * len(nodes)
    targets: list[list[Node] | None] = [None] * len(nodes)
    for number, node in enumerate(nodes):
        count = 0
        is_merge = node.op in MERGE_OPS
        for src, _ in node.inputs:
            if is_merge and src.op in NEXT_ITERATION_OPS:
                continue
            count += 1
            into = targets[src.id]
            if into is None:
                targets[src.id] = [node]
            else:
                into.append(node)
        for src in node.control_inputs:
            count += 1
            into = targets[src.id]
            if into is None:
                targets[src.id] = [node]
            else:
                into.append(node)
        pending[number] = count
    order = [node for node, count in zip(nodes, pending, strict=True) if not count]
    for node in order:  # grows while we walk it
        for target in targets[node.id] or ():
            number = target.id
            count = pending[number] = pending[number] - 1
            if not count:
                order.append(target)
    if len(order) != len(nodes):
        raise _cycle(nodes, pending)
    return order


def is_in_order(nodes: Sequence[Node]) -> bool:
    """Whether all nodes stand after their inputs, but for the back edges of loops: then there is no cycle."""
    for position, node in enumerate(nodes):
        for src, _ in node.inputs:
            if src.id >= position and not (node.op in MERGE_OPS and src.op in NEXT_ITERATION_OPS):
                return False
        for src in node.control_inputs:
            if src.id >= position:
                return False
    return True


def _cycle(nodes: Sequence[Node], pending: list[int]) -> GraphError:
    """The error of a graph with a cycle, which is spelled out."""
    node = next(n for n in nodes if pending[n.id])
    trail: list[Node] = []
    seen: dict[int, int] = {}
    while node.id not in seen:
        seen[node.id] = len(trail)
        trail.append(node)
        back = NEXT_ITERATION_OPS if node.op in MERGE_OPS else ()
        sources = [src for src, _ in node.inputs if src.op not in back] + node.control_inputs
        node = next(s for s in sources if pending[s.id])
    return cycle_error([n.name for n in reversed(trail[seen[node.id] :])])


def cycle_error(names: list[str]) -> GraphError:
    """What is said of a cycle outside a loop.

    Args:
        names: of its nodes, each before one that reads it.
    """
    shown = names if len(names) <= 6 else [*names[:5], f"... ({len(names) - 5} more)"]
    return GraphError("the graph has a cycle outside a loop: " + " -> ".join([*shown, names[0]]), node=names[0])
