"""The kernels of a graph whose nodes are a table: those of kinds, and those of nodes that are each one of a kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from toolkit.compiler.program import ProgramKernels, Step
from toolkit.formats.node_table import NodeTable
from toolkit.graph.graph import Graph
from toolkit.kernels import variables
from toolkit.kernels.registry import Kind, NamedCompute

Compute = Callable[..., Any]


class TableKernels:
    """The kernels of a graph: those of kinds, and those that were built for single nodes.

    Attributes:
        of_kinds: where they come from.
    """

    def __init__(self, of_kinds: ProgramKernels):
        self.of_kinds = of_kinds
        self._of_nodes: dict[int, tuple[Compute, bool]] = {}
        self._named: dict[int, tuple[NamedCompute, bool]] = {}  # by kind

    def add(self, kind: int, step: Step) -> None:
        """Hear of a node of a kind whose kernel is its own."""
        named = self.of_kinds.by_names(step.node)
        if named is not None:
            self._named[kind] = named, step.kind is Kind.STATEFUL

    def of_node(self, graph: Graph, table: NodeTable, number: int) -> tuple[Compute, bool]:
        """The kernel of a node, and whether it wants the step."""
        found = self._of_nodes.get(number)
        if found is None:
            named = self._named.get(int(table.kinds.first[table.kind[number]]))
            if named is not None:
                found = self._of_nodes[number] = named[0](table.names[number]), named[1]
            else:
                compute, kind = self.of_kinds.own(table.example(graph, number))
                found = self._of_nodes[number] = compute, kind is Kind.STATEFUL
        return found


class NoValueError(Exception):
    """A variable that is read has no value."""


def reading(compute: Compute, positions: Sequence[int], count: int) -> Compute:
    """A kernel that is given variables at some positions and takes their values."""
    if count == 1:

        def read_one(cell: Any) -> Any:
            value = cell.value
            if value is None:
                raise NoValueError
            return compute(variables.on_host(value))

        return read_one

    def read(*args: Any) -> Any:
        given = list(args)
        for position in positions:
            value = given[position].value
            if value is None:
                raise NoValueError
            given[position] = variables.on_host(value)
        return compute(*given)

    return read
