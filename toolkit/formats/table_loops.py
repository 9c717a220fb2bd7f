"""Which loop frames the nodes of a table belong to: `toolkit.graph.frames`, for the nodes within loops alone."""

from __future__ import annotations

import heapq

import numpy as np
from numpy.typing import NDArray

from toolkit.errors import GraphmillError
from toolkit.formats.node_columns import NodeColumns, ints
from toolkit.graph.graph import Graph
from toolkit.graph.node import ENTER_OPS, EXIT_OPS, MERGE_OPS, NEXT_ITERATION_OPS


def is_in_loop(table: NodeColumns, graph: Graph) -> NDArray[np.bool_] | None:
    """Of which nodes the outputs are within a loop; None where frames do not fit together, or that cannot be told.

    Args:
        table: with all nodes behind what they read, but for the back edges of loops.
        graph: the one that has the table.
    """
    enters = np.flatnonzero(table.has_op(ENTER_OPS))
    if not len(enters):
        return np.zeros(len(table), np.bool_)
    frames = _Frames(table, graph)
    if not frames.follow(ints(enters)):
        return None
    inside, outputs = np.array(frames.inside, np.int32), np.array(frames.outputs, np.int32)
    if (outputs[table.source] != inside[table.owners()]).any():
        return None
    if (inside[table.has_op(EXIT_OPS)] == 0).any():
        return None
    return outputs != 0


class _Frames:
    """Frames by number; 0 is the graph itself.

    Attributes:
        inside: by node, the frame that it is in.
        outputs: by node, the frame that its outputs are in.
    """

    def __init__(self, table: NodeColumns, graph: Graph):
        self._table, self._graph = table, graph
        self.inside = [0] * len(table)
        self.outputs = [0] * len(table)
        self._parents = [-1]
        self._by_name: dict[str, int] = {}

    def follow(self, enters: list[int]) -> bool:
        """Go from these nodes, in order, to all that are within their loops; False where frames cannot be."""
        table = self._table
        begins, edges = table.readers()
        takers = table.owners()[edges]
        is_enter, is_exit = table.has_op(ENTER_OPS), table.has_op(EXIT_OPS)
        is_merge, is_next = table.has_op(MERGE_OPS), table.has_op(NEXT_ITERATION_OPS)
        heap, seen = enters, set(enters)
        while heap:  # in the order of the file, in which what a node reads comes first
            node = heapq.heappop(heap)
            sources = ints(table.source[table.begin[node] : table.begin[node + 1]])
            mine = next((self.outputs[each] for each in sources if not (is_merge[node] and is_next[each])), 0)
            out = mine
            if is_enter[node]:
                out = self._child(node, mine)
            elif is_exit[node]:
                out = self._parents[mine]
            if out < 0:
                return False
            self.inside[node], self.outputs[node] = mine, out
            for taker in ints(takers[begins[node] : begins[node + 1]]) if out else ():
                if taker not in seen:
                    seen.add(taker)
                    heapq.heappush(heap, taker)
        return True

    def _child(self, enter: int, outside: int) -> int:
        """The frame that an Enter leads into; -1 where there is another of that name, or none can be told."""
        try:
            name = self._table.example(self._graph, enter).text("frame_name")
        except GraphmillError:
            return -1
        child = self._by_name.setdefault(name, len(self._parents))
        if child == len(self._parents):
            self._parents.append(outside)
        return child if name and self._parents[child] == outside else -1
