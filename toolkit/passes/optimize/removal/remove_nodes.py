"""Nodes of some ops removed, as the Graph Transform Tool's remove_nodes did."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from toolkit.errors import UsageError, did_you_mean
from toolkit.graph import opdefs
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node
from toolkit.passes.base import PassResult
from toolkit.passes.optimize.rewriting import Optimization
from toolkit.passes.optimize.subgraph import Subgraphs


@dataclass(frozen=True)
class RemoveOps(Optimization):
    """Take out nodes of some ops; whoever takes their output takes their first input.

    Results change where the ops do something. Nodes whose input and output have other types stay, and those that are
    asked for become an Identity. The report has `removed`, how many by op.

    Attributes:
        op: the ops.
        max_inputs: how many inputs a node may have; the others are no longer computed.
    """

    name: ClassVar[str] = "remove_nodes"

    op: tuple[str, ...] = field()
    max_inputs: int = 1

    def __post_init__(self) -> None:
        for each in self.op:
            if opdefs.find(each) is None:
                raise UsageError(f"there is no op '{each}'{did_you_mean(each, opdefs.names())}")

    def apply(self, graph: Graph) -> PassResult:
        found = Subgraphs(graph, self.kept)
        removed: dict[str, int] = {}
        for node in found.each(*self.op):
            if self._is_removable(found, node):
                removed[node.op] = removed.get(node.op, 0) + 1
                _take_out(found, node)
        return found.result({"removed": dict(sorted(removed.items()))})

    def _is_removable(self, found: Subgraphs, node: Node) -> bool:
        if node.is_control_flow or found.is_fed(node) or node.num_outputs != 1:
            return False
        if not 1 <= len(node.inputs) <= max(1, self.max_inputs):
            return False
        if found.is_kept(node) and node.op == "Identity":
            return False
        return node.inputs[0].dtype == node.output_types[0]


def _take_out(found: Subgraphs, node: Node) -> None:
    source: Any = node.inputs[0]
    waits = list(node.control_inputs)
    found.turn_identity(node, source, waits)
    if not found.is_kept(node):
        found.bypass(node, source)
