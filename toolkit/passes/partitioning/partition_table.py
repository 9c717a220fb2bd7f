"""Partition over the table of a graph's nodes: only those are made that edges from elsewhere lead into, that are sent,
or that name a node of another partition in `_class`.

The parts are tables again. Loops that are spread over several partitions are left to `passes.partitioning.partition`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from toolkit.errors import UsageError
from toolkit.formats.node_tables.columns import CONTROL, ints
from toolkit.formats.node_tables.frames import gives_in_loop
from toolkit.formats.node_tables.parts import AddedRow, TableExtension
from toolkit.formats.node_tables.table import NodeTable
from toolkit.graph.device import DeviceSpec
from toolkit.graph.dtypes import DType
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node, Output
from toolkit.passes.partitioning.transfers import Incarnation, Partitioned, Partitioner, PlacedLoops, drop_colocations
from toolkit.passes.pruning.prune import prune_library

#: the share of nodes above which all are made: where a tenth of 40,000 nodes received something, so that about a
#: quarter was made, both ways took as long
MOST_MADE = 0.25


def partition_table(
    graph: Graph, by: str, incarnation: Incarnation, *, share_controls: bool = False, compress: DType | None = None
) -> Partitioned | None:
    """Split a graph, which stays as it is; None where nodes have to be made for it.

    Args:
        by: "task" or "device".
        incarnation, share_controls, compress: see `toolkit.passes.partitioning.partition.partition`.

    Raises:
        GraphError: an op needs a reference to a variable in another partition.
    """
    table = graph.unmade
    if not isinstance(table, NodeTable) or not table.is_sound(graph):
        return None
    found = _places(table, by)
    in_loop = None if found is None else gives_in_loop(table)
    if found is None or in_loop is None:
        return None
    names, place = found
    owners = table.owners()
    crossing = np.flatnonzero(place[table.source] != place[owners])
    if in_loop[table.source[crossing]].any():
        return None
    receivers = np.unique(owners[crossing])
    named_by, named = table.companions()
    parted = np.unique(named_by[place[named_by] != place[named]])
    wired = np.union1d(receivers, parted)
    nodes = _make(graph, table, owners, wired)
    if nodes is None:
        return None
    mini = graph.subgraph(())
    for node in nodes.values():
        mini.adopt(node)
    mini.settle()
    splitter = Partitioner(
        mini, [names[at] for at in ints(place[list(nodes)])], incarnation, PlacedLoops([None] * len(nodes), {}),
        share_controls=share_controls, compress=compress, taken=table.numbers,
    )  # fmt: skip
    splitter.divide(names)
    before = {name: len(part) for name, part in splitter.parts.items()}
    for number in ints(receivers):
        splitter.connect(nodes[number], int(table.begin[number]))
    splitter.connect_waiting()
    numbers = table.numbers
    drop_colocations(
        (nodes[number] for number in ints(parted)),
        lambda node, name: bool(place[numbers[name]] == place[numbers[node.name]]),
    )
    extension = TableExtension(table)
    changed: dict[str, dict[int, AddedRow]] = {name: {} for name in names}
    for number in ints(wired):
        changed[names[place[number]]][number] = extension.add(nodes[number], number)
    added = {
        name: [extension.add(node) for node in part.nodes[before[name] :]] for name, part in splitter.parts.items()
    }
    whole = extension.finished()
    for at, (name, part) in enumerate(splitter.parts.items()):
        part.leave_unmade(whole.part(place == at, changed[name], added[name]))
        prune_library(part)
    return splitter.result


def _places(table: NodeTable, by: str) -> tuple[list[str], NDArray[np.int64]] | None:
    """The names of partitions, in the order of their first nodes, and by node the number of its own; None where one
    is not placed."""
    used, firsts = np.unique(table.device, return_index=True)
    names: dict[str, int] = {}
    of_device = np.zeros(len(table.devices), np.int64)
    for number in ints(used[np.argsort(firsts)]):
        try:
            spec = DeviceSpec.parse(table.devices[number])
        except UsageError:
            return None
        if not spec.is_full:
            return None
        of_device[number] = names.setdefault(spec.task_name if by == "task" else str(spec), len(names))
    return list(names), of_device[table.device]


def _make(
    graph: Graph, table: NodeTable, owners: NDArray[np.int32], wired: NDArray[np.int64]
) -> dict[int, Node] | None:
    """Some nodes with their inputs, and these without, by place, in order; None where they are too many."""
    is_wired = np.zeros(len(table), np.bool_)
    is_wired[wired] = True
    edges = np.flatnonzero(is_wired[owners])
    made = np.union1d(wired, table.source[edges])
    if len(made) > MOST_MADE * len(table):
        return None
    nodes = {number: table.example(graph, number) for number in ints(made)}
    rows = zip(ints(owners[edges]), ints(table.source[edges]), ints(table.index[edges]), strict=True)
    for owner, source, index in rows:
        if index == CONTROL:
            nodes[owner].control_inputs.append(nodes[source])
        else:
            nodes[owner].inputs.append(Output(nodes[source], index))
    return nodes
