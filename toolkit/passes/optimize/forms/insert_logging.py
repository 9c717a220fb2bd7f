"""Print what nodes give while a graph runs, as the Graph Transform Tool's insert_logging did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from toolkit.graph.graph import Graph
from toolkit.graph.node import Output
from toolkit.passes.base import PassResult
from toolkit.passes.optimize.rewriting import Optimization
from toolkit.passes.optimize.subgraph import Subgraphs

#: ops whose first output cannot be handed on by another node
_LEFT = frozenset({"Print", "Enter", "Exit", "NextIteration", "Switch", "Merge", "LoopCond", "_Arg", "_Retval"})


@dataclass(frozen=True)
class InsertLogging(Optimization):
    """Put a Print behind nodes that are read: whoever read their first output reads it through that.

    The report has `logged`: how many.

    Attributes:
        op: of these ops; of all where none is given.
        prefix: whose names begin so; any where none is given.
        show_op, show_name: begin each line with the op, or with the name of the Print.
        message: text before the values.
        first_n: how often each prints; -1 is always.
        summarize: how many numbers of each tensor are shown.
    """

    name: ClassVar[str] = "insert_logging"
    once: ClassVar[bool] = True

    op: tuple[str, ...] = ()
    prefix: tuple[str, ...] = ()
    show_op: bool = False
    show_name: bool = False
    message: str = ""
    first_n: int = -1
    summarize: int = 1024

    def apply(self, graph: Graph) -> PassResult:
        found = Subgraphs(graph, self.kept)
        logged = 0
        for node in list(found.graph):
            if node.op in _LEFT or (self.op and node.op not in self.op):
                continue
            if self.prefix and not node.name.startswith(self.prefix):
                continue
            indices = sorted({i for user in found.users(node) for source, i in user.inputs if source is node})
            types = node.output_types
            if not indices or any(types[i].is_ref or types[i].name in ("resource", "variant") for i in indices):
                continue
            name = f"{node.name}__print__"
            message = f";{node.op};" if self.show_op else ""
            message += f";{name};" if self.show_name else ""
            shown = [Output(node, index) for index in indices]
            attrs = {
                "T": types[0].base,
                "U": [types[index].base for index in indices],
                "message": message + self.message,
                "first_n": self.first_n,
                "summarize": self.summarize,
            }
            through = found.add("Print", name, [node.output(), *shown], attrs=attrs, device=node.device)
            for user in found.takers(node.output()):
                if user is not through:
                    inputs = [through.output() if source == node.output() else source for source in user.inputs]
                    found.set_inputs(user, inputs)
            logged += 1
        return found.result({"logged": logged})
