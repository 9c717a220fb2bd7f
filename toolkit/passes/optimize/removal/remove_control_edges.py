"""Drop control edges that say nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from toolkit.graph.graph import Graph
from toolkit.graph.node import CONTROL_FLOW_OPS, MERGE_OPS, NEXT_ITERATION_OPS, Node
from toolkit.passes.base import PassResult
from toolkit.passes.optimize.flow.iterations import Iterations
from toolkit.passes.optimize.rewriting import Optimization, Rewriting

#: nodes looked at for one node whose control edges may be implied, and for all of them per edge of the graph
_MOST_STEPS, _STEPS_PER_EDGE = 2000, 20


@dataclass(frozen=True)
class RemoveControlEdges(Optimization):
    """Remove control edges that another path implies (a transitive reduction), and those from nodes that nobody would
    miss: without effects, outside of loops and branches, or in a loop and only saying that its iteration runs, where
    nothing behind them may write.

    A path through a Merge implies nothing, for it runs when one of its inputs has, and neither does one through what is
    fed. The search is bounded; what it does not reach stays.

    Attributes:
        keep_order: keep edges from nodes without effects; they delay what waits for them, which may save memory.
    """

    name: ClassVar[str] = "remove_control_edges"

    keep_order: bool = False

    def apply(self, graph: Graph) -> PassResult:
        """The report has `implied` and `pointless`, how many edges of either kind went."""
        work = Rewriting(graph, self.kept)
        order = graph.topological_order()
        place = {node: index for index, node in enumerate(order)}
        left = _STEPS_PER_EDGE * (len(graph) + sum(len(node.inputs) + len(node.control_inputs) for node in graph))
        implied = pointless = 0
        iterations = Iterations(graph, self.kept.fed)
        for node in order:
            if not node.control_inputs:
                continue
            gone: set[Node] = set()
            if iterations.any and not self.keep_order and work.leads_to_no_write(node):
                gone = _of_iterations(iterations, node)
            if node.op in CONTROL_FLOW_OPS:
                gone = gone if node.op in NEXT_ITERATION_OPS else set()
                gone |= {source for source in node.control_inputs if _is_empty(source)}
                pointless += len(gone)
                if gone:
                    _drop(work, node, gone)
                continue
            if not self.keep_order and not any(key.startswith("_recompute") for key in node.attrs):
                idle = (source for source in node.control_inputs if work.is_idle_wait(source, node))
                gone.update(idle)
            gone.update(source for source in node.control_inputs if _is_empty(source))
            pointless += len(gone)
            candidates = [source for source in node.control_inputs if source not in gone]
            if candidates and left > 0:
                found, steps = _implied(node, candidates, gone, place, self.kept.fed)
                left -= steps
                gone |= found
                implied += len(found)
            if gone:
                _drop(work, node, gone)
        return work.result({"implied": implied, "pointless": pointless})


def _drop(work: Rewriting, node: Node, gone: set[Node]) -> None:
    kept = [work.graph.node(source.name) for source in node.control_inputs if source not in gone]
    work.set_controls(work.graph.node(node.name), kept)


def _is_empty(node: Node) -> bool:
    """Whether a node does nothing and waits for nothing, so that it has run before anything else."""
    return node.op == "NoOp" and not node.control_inputs


def _of_iterations(iterations: Iterations, node: Node) -> set[Node]:
    """Control inputs that only say that an iteration runs in which the node runs anyway."""
    left = list(node.control_inputs)
    for source in node.control_inputs:
        others = [other for other in left if other is not source]
        if iterations.says_nothing(source, node, others):
            left = others
    return set(node.control_inputs).difference(left)


def _implied(
    node: Node, candidates: list[Node], gone: set[Node], place: dict[Node, int], fed: frozenset[str]
) -> tuple[set[Node], int]:
    """Those of a node's control inputs that have run, and were not dead, where its other inputs are there."""
    wanted = set(candidates)
    first = min(place[source] for source in candidates)
    found = {source for source, _ in node.inputs if source in wanted and source.name not in fed}
    seen: set[Node] = set()
    stack = [source for source in dict.fromkeys([src for src, _ in node.inputs] + candidates) if source not in gone]
    steps = 0
    while stack and steps < _MOST_STEPS:
        at = stack.pop()
        if at in seen:
            continue
        seen.add(at)
        steps += 1
        if at.op in MERGE_OPS or at.op in NEXT_ITERATION_OPS or at.name in fed:
            continue  # what is fed does not run, and neither does what it is made of
        for source in [src for src, _ in at.inputs] + at.control_inputs:
            if source in wanted:
                found.add(source)
            if place[source] > first and source not in seen:
                stack.append(source)
    return found, steps
