"""Attributes that a file leaves out, written with the defaults of their ops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from toolkit.graph import opdefs
from toolkit.graph.graph import Graph
from toolkit.passes.base import PassResult
from toolkit.passes.optimize.rewriting import Optimization
from toolkit.passes.optimize.subgraph import Subgraphs


@dataclass(frozen=True)
class AddDefaultAttributes(Optimization):
    """Write the attributes that have defaults and are missing; for readers that do not know the defaults.

    The report has `added`: how many.
    """

    name: ClassVar[str] = "add_default_attributes"
    undoes: ClassVar[tuple[str, ...]] = ("strip_defaults",)

    def apply(self, graph: Graph) -> PassResult:
        found = Subgraphs(graph, self.kept)
        added = 0
        for node in found.graph:
            definition = None if node.op in graph.library else opdefs.find(node.op)
            for key, attr in definition.attrs.items() if definition is not None else ():
                if attr.has_default and node.attr_proto(key) is None:
                    node.attrs[key] = attr.default
                    added += 1
        found.changes += added
        return found.result({"added": added})
