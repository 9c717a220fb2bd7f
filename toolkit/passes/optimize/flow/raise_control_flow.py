"""Switch, Merge, Enter, Exit and NextIteration made functional again: If and While."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from toolkit.graph.graph import Graph
from toolkit.graph.node import CONTROL_FLOW_OPS
from toolkit.passes.base import PassResult
from toolkit.passes.optimize.flow.raise_branches import raise_branches
from toolkit.passes.optimize.flow.raise_loops import raise_loops
from toolkit.passes.optimize.rewriting import Optimization, Rewriting


@dataclass(frozen=True)
class RaiseControlFlow(Optimization):
    """Make If and While of the control flow of TensorFlow 1, the innermost first: the reverse of `lower_control_flow`.

    What a Switch or Enter hands in becomes an argument of functions, a Merge or Exit hands on a result under its name.
    Stays what has no functional form: loops whose gradients' stacks are filled in them, branches with a gradient of
    what is inside, references to variables, and what is asked for by name. With effects it is If and While, without
    them StatelessIf and StatelessWhile.

    The report has `loops` and `branches`, how many were raised, and `stayed`, frames and Merges with the reason.

    Attributes:
        loops, branches: which of them are raised.
    """

    name: ClassVar[str] = "raise_control_flow"

    loops: bool = True
    branches: bool = True

    def apply(self, graph: Graph) -> PassResult:
        if not any(node.op in CONTROL_FLOW_OPS for node in graph):
            return PassResult(graph, False, {"loops": 0, "branches": 0, "stayed": {}})
        stayed: dict[str, str] = {}
        loops = branches = 0
        modified = True
        made = graph
        while modified:  # once for each level of nesting
            work = Rewriting(made, self.kept)
            before = loops + branches
            if self.loops:
                loops += raise_loops(work, stayed)
            if self.branches:
                branches += raise_branches(work, stayed)
            modified = loops + branches > before
            made = work.result().graph
        return PassResult(made, made is not graph, {"loops": loops, "branches": branches, "stayed": stayed})
