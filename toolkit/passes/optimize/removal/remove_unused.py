"""Remove what nothing needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from toolkit.graph.graph import Graph
from toolkit.passes.base import PassResult
from toolkit.passes.optimize.rewriting import Optimization
from toolkit.passes.pruning.prune import Prune, reachable_functions


@dataclass(frozen=True)
class RemoveUnused(Optimization):
    """Remove the nodes from which no kept node can be reached, and the functions that nothing calls.

    A graph of which nothing is kept, as far as anybody says, stays as it is.
    """

    name: ClassVar[str] = "remove_unused"

    def apply(self, graph: Graph) -> PassResult:
        """The report has `nodes` and `functions`, how many went.

        Raises:
            GraphError: a kept node does not exist.
        """
        if not self.kept.names:
            return PassResult(graph, False, {"nodes": 0, "functions": 0})
        out = graph
        pruned = Prune(targets=tuple(sorted(self.kept.names)), keep_functions=True).apply(graph)
        if len(pruned.graph) < len(graph):
            out = pruned.graph
        gone: list[str] = []
        if len(out.library) and not self.kept.in_function:
            staying = reachable_functions(out, self.kept.functions)
            gone = [name for name in out.library if name not in staying]
            if gone:
                out = graph.copy() if out is graph else out
                for name in gone:
                    out.library.remove(name)
        return PassResult(out, out is not graph, {"nodes": len(graph) - len(out), "functions": len(gone)})
