"""What a step over a table of nodes does, in columns: for the only step of a large graph, of which no node is made.

A graph of very many nodes is the same few again and again. So whether they may be run, and by which kernels, is found
for kinds, not for nodes, and what remains of a node is a row: a kernel, where its inputs come from, and when they are
needed no more. Rows stand in the file's order, in which everything comes behind what it reads; a loop is one row
(`toolkit.runtime.table_steps.loops`).

What is unusual in any way has no such plan: then nodes are made, and looked at one by one, by those who can say what is
wrong with them. No error comes from here.
"""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolkit.formats.node_tables.columns import ints
from toolkit.formats.node_tables.table import NodeTable
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node
from toolkit.runtime.table_steps.kernels import TableKernels
from toolkit.runtime.table_steps.loops import Loop

Compute = Callable[..., Any]


class RowAction(enum.IntEnum):
    """How a row is run; all but the first take a longer way."""

    PLAIN = 0  # a kernel of its kind, from tensors to a tensor
    SHARED = 1  # a kernel of its kind
    OWN = 2  # a kernel that is built for the node
    CONSTANT = 3  # one that waits for something, and is not there where that is on a branch that was not taken
    SWITCH = 4
    MERGE = 5
    LOOP = 6
    HANDLE = 7  # as OWN: a variable, or what names one


@dataclass(eq=False)
class TablePlan:
    """A step.

    Attributes:
        graph, table: what it is about; no node of the table has been changed.
        source: int32, by edge (`Needed`).
        is_needed: which nodes run.
        rows: int32, the nodes with a row of their own, in order.
        actions: int8, by row.
        computes: by number, what runs a row.
        compute: int32, by row.
        counts: int32, how many data inputs a row takes.
        is_single: by node, whether it has one output.
        num_outputs: by kind, how many outputs its nodes have.
        drops: int32, nodes whose values are needed no more, in order.
        dropped: int64, by row, how many of these that are when it has run.
        last: int32, by node, the last that reads something of it, or waits for it.
        constants: by number of a kind; None of those that are none.
        loops: by the node where they run.
        results: where each result comes from, as node and output; an argument's node is behind all nodes.
        num_arguments: how many tensors are fed.
        size: how many nodes the step has, with arguments and results.
        known_bytes: of all constants.
        calls: nodes that call functions, one of each kind.
        kernels: where kernels come from.
    """

    graph: Graph
    table: NodeTable
    source: NDArray[np.int32]
    is_needed: NDArray[np.bool_]
    rows: NDArray[np.int32]
    actions: NDArray[np.int8]
    computes: list[Compute]
    compute: NDArray[np.int32]
    counts: NDArray[np.int32]
    is_single: NDArray[np.bool_]
    num_outputs: list[int]
    drops: NDArray[np.int32]
    dropped: NDArray[np.int64]
    last: NDArray[np.int32]
    constants: list[Any]
    loops: dict[int, Loop]
    results: list[tuple[int, int]]
    num_arguments: int
    size: int
    known_bytes: int
    calls: list[Node]
    kernels: TableKernels

    def outputs(self, number: int) -> int:
        """How many outputs a node has."""
        return self.num_outputs[int(self.table.kinds.first[self.table.kind[number]])]

    def node_names(self) -> set[str]:
        """The names of the nodes that run."""
        names = self.table.names
        return {names[number] for number in ints(np.flatnonzero(self.is_needed))}
