"""Orders of a table's nodes in which each stands behind what it reads.

Files have nodes as programs made them, and what leads into a branch or a loop is often made after its first user.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from toolkit.formats.node_tables.columns import CONTROL, NodeColumns, ints
from toolkit.formats.node_tables.table import NodeTable
from toolkit.graph.node import MERGE_OPS, NEXT_ITERATION_OPS
from toolkit.graph.order import cycle_error

#: how far a node has been looked at: entered, and done
_ENTERED, _DONE = 1, 2


def in_order(table: NodeTable) -> NodeTable | None:
    """The table with each node behind all that it reads, but for the back edges of loops, else in the file's order;
    None where there is a cycle, or it is so already."""
    order = _order(table)
    if order is None or order == list(range(len(order))):
        return None
    places = np.array(order, np.int64)
    new = np.empty(len(table), np.int32)
    new[places] = np.arange(len(table), dtype=np.int32)
    counts = np.diff(table.begin)[places]
    begin = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts)))
    edges = np.repeat(table.begin[places] - begin[:-1], counts) + np.arange(len(table.source))
    names = [table.names[number] for number in order]
    return NodeTable(
        table.data, names, dict(zip(names, range(len(names)), strict=True)),
        table.tag[places], table.start[places], table.tail[places], table.stop[places],
        table.kinds, table.kind[places], table.devices, table.device[places],
        begin, new[table.source[edges]], table.index[edges], table.functions,
        None if table.written_device is None else table.written_device[places], table.more,
    )  # fmt: skip


def topological_order(table: NodeColumns) -> list[int]:
    """The places of all nodes in the order that `Graph.topological_order` gives them.

    Raises:
        GraphError: there is a cycle outside a loop; it is spelled out.
    """
    owners = table.owners()
    counts = ~_around(table, owners)
    source, owners = table.source[counts], owners[counts]
    pending = ints(np.bincount(owners, minlength=len(table)))
    takers = ints(owners[np.argsort(source, kind="stable")])
    begins = ints(np.concatenate((np.zeros(1, np.int64), np.cumsum(np.bincount(source, minlength=len(table))))))
    order = [number for number, count in enumerate(pending) if not count]
    append = order.append
    for number in order:  # grows while we walk it
        for taker in takers[begins[number] : begins[number + 1]]:
            left = pending[taker] = pending[taker] - 1
            if not left:
                append(taker)
    if len(order) != len(table):
        raise cycle_error(_cycle(table, counts, pending))
    return order


def _cycle(table: NodeColumns, counts: NDArray[np.bool_], pending: list[int]) -> list[str]:
    """The names of the nodes of a cycle, each before one that reads it.

    Args:
        counts: which edges do, all but the back edges of loops.
        pending: for how many of its sources each node waits in vain.
    """
    number = next(number for number, count in enumerate(pending) if count)
    trail: list[int] = []
    seen: dict[int, int] = {}
    while number not in seen:
        seen[number] = len(trail)
        trail.append(number)
        edges = range(int(table.begin[number]), int(table.begin[number + 1]))
        number = next(source for edge in edges if counts[edge] and pending[source := int(table.source[edge])])
    return [table.names[each] for each in reversed(trail[seen[number] :])]


def _around(table: NodeColumns, owners: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Which edges are the back edges of loops."""
    is_next = table.has_op(NEXT_ITERATION_OPS)
    return (table.index != CONTROL) & is_next[table.source] & table.has_op(MERGE_OPS)[owners]


def _order(table: NodeTable) -> list[int] | None:
    """The places of nodes, each behind those of its sources; None where there is a cycle outside of loops."""
    owners = table.owners()
    around = _around(table, owners)
    # who reads itself waits for nobody
    sources, begins = ints(np.where(around, owners, table.source)), ints(table.begin)
    state = bytearray(len(table))
    order: list[int] = []
    for root in range(len(table)):
        if state[root]:
            continue
        stack = [root]
        while stack:
            at = stack[-1]
            if state[at]:
                stack.pop()
                if state[at] == _ENTERED:
                    state[at] = _DONE
                    order.append(at)
                continue
            state[at] = _ENTERED
            for source in sources[begins[at] : begins[at + 1]]:
                if not state[source]:
                    stack.append(source)
                elif state[source] == _ENTERED and source != at:
                    return None
    return order
