"""Nodes in an order in which they can run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from toolkit.graph.graph import Graph
from toolkit.passes.base import PassResult
from toolkit.passes.optimize.rewriting import Optimization


@dataclass(frozen=True)
class SortByExecutionOrder(Optimization):
    """Write each node behind its inputs; ties stay as they are in the file."""

    name: ClassVar[str] = "sort_by_execution_order"
    in_functions: ClassVar[bool] = False

    def apply(self, graph: Graph) -> PassResult:
        """
        Raises:
            GraphError: there is a cycle outside a loop.
        """
        order = graph.topological_order()
        if order == graph.nodes:
            return PassResult(graph, False)
        out = graph.subgraph(())
        copies = {node: out.add_copy(node) for node in order}
        for node, copy in copies.items():
            copy.inputs = [copies[source].output(index) for source, index in node.inputs]
            copy.control_inputs = [copies[source] for source in node.control_inputs]
        return PassResult(out, True)
