"""What steps over one table of nodes share: its order, the kernels of kinds, and those that were built for one node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from toolkit.compiler.program_kernels import ProgramKernels
from toolkit.compiler.steps import Step
from toolkit.formats.node_tables.frames import TableFrames, find_frames
from toolkit.formats.node_tables.order import in_order
from toolkit.formats.node_tables.table import NodeTable
from toolkit.graph.graph import Graph
from toolkit.kernels.registry import Kind, NamedCompute
from toolkit.kernels.resources import variables

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
        self._ordered: tuple[NodeTable, NodeTable | None] | None = None
        self._frames: tuple[NodeTable, TableFrames | None] | None = None

    def sound_table(self, graph: Graph, table: NodeTable) -> NodeTable | None:
        """The table of a graph, or the same in another order, in which each node stands behind what it reads; None
        where anything is wrong with the graph."""
        if table.is_sound(graph):
            return table
        if self._ordered is None or self._ordered[0] is not table:
            self._ordered = table, in_order(table)
        ordered = self._ordered[1]
        return ordered if ordered is not None and ordered.is_sound(graph) else None

    def frames_of(self, table: NodeTable) -> TableFrames | None:
        """The loop frames of a sound table; None where they do not fit together."""
        if self._frames is None or self._frames[0] is not table:
            self._frames = table, find_frames(table)
        return self._frames[1]

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
