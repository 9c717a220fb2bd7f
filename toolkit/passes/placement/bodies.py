"""What the bodies of functions say about where their arguments must be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from toolkit.errors import GraphmillError
from toolkit.graph import dtypes
from toolkit.graph.attrs import FuncRef
from toolkit.graph.bodies import called, instantiate
from toolkit.graph.expansion import expansion
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node
from toolkit.passes.placement.colocation import group_nodes


def used_together(graph: Graph) -> Iterator[tuple[Node, Node, str]]:
    """Pairs of nodes whose resources one node in the body of a called function takes, with the reason.

    A call itself binds nothing, neither here nor in TensorFlow's placer: its body is placed when it runs. Resources on
    two devices that one node of the body takes are refused only then.
    """
    if not len(graph.library):
        return
    yield from _Bodies(expansion(graph.library).recursive).pairs(graph)


@dataclass
class _Bodies:
    """Functions whose bodies have been looked at.

    Attributes:
        recursive: functions that call themselves.
        found: by function, the arguments that must be together: the first of a group and another one.
    """

    recursive: frozenset[str]
    found: dict[str, list[tuple[int, int]]] = field(default_factory=dict[str, list[tuple[int, int]]])

    def pairs(self, graph: Graph) -> Iterator[tuple[Node, Node, str]]:
        for node in graph.nodes:
            ref = called(node)
            if ref is None or sum(source.dtype is dtypes.resource for source in node.inputs) < 2:
                continue
            for first, other in self._arguments(graph, ref):
                if max(first, other) < len(node.inputs):
                    yield (
                        node.inputs[first].node, node.inputs[other].node,
                        f"the function of '{node.name}' uses it with '{node.inputs[first].node.name}'",
                    )  # fmt: skip

    def _arguments(self, graph: Graph, ref: FuncRef) -> list[tuple[int, int]]:
        known = self.found.get(ref.name)
        if known is None:
            known = self.found[ref.name] = self._in_body(graph, ref)
        return known

    def _in_body(self, graph: Graph, ref: FuncRef) -> list[tuple[int, int]]:
        if ref.name in self.recursive:
            return []
        try:
            body = instantiate(graph.library, ref)
            groups = group_nodes(body.graph, soft=True, also=self.pairs(body.graph))
        except GraphmillError:  # whoever runs the function says so
            return []
        first: dict[int, int] = {}
        made: list[tuple[int, int]] = []
        for index, argument in enumerate(body.args):
            if argument.output_types[0] is dtypes.resource:
                leader = first.setdefault(id(groups[argument.id]), index)
                if leader != index:
                    made.append((leader, index))
        return made
