"""A table whose nodes stand behind what they read.

Files have nodes as programs made them, and what leads into a branch or a loop is often made after its first user.
"""

from __future__ import annotations

import numpy as np

from toolkit.formats.node_columns import CONTROL, ints
from toolkit.formats.node_table import NodeTable
from toolkit.graph.node import MERGE_OPS, NEXT_ITERATION_OPS

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


def _order(table: NodeTable) -> list[int] | None:
    """The places of nodes, each behind those of its sources; None where there is a cycle outside of loops."""
    owners = table.owners()
    around = (table.index != CONTROL) & table.has_op(NEXT_ITERATION_OPS)[table.source] & table.has_op(MERGE_OPS)[owners]
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
