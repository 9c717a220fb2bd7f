"""What is known of nodes around the back edges of loops, until it changes no more.

The same nodes are visited again in the same order as in `toolkit.graph.infer`, so that the same comes of them.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolkit.formats.node_tables.classes import Classes
from toolkit.formats.node_tables.columns import CONTROL, NodeColumns, ints
from toolkit.graph.infer import MAX_MERGE_UPDATES
from toolkit.graph.node import MERGE_OPS, NEXT_ITERATION_OPS

#: stands in the key of Merges whose shape is given up
_GIVEN_UP = -4


class Settling:
    """Visits nodes again.

    Args:
        order: of all nodes.
        rows, found: row and class by node; they become those that remain.
        row_of: finds the row of a node by the classes of its inputs.
    """

    def __init__(
        self,
        table: NodeColumns,
        classes: Classes,
        order: Sequence[int],
        rows: list[int],
        found: list[int],
        row_of: Callable[[int], int],
    ):
        self._table, self._classes, self._order = table, classes, order
        self._rows, self._found, self._row_of = rows, found, row_of
        self._values: dict[int, list[Any] | None] = {}  # by row
        self._readers: _Readers | None = None  # of all nodes, once something has changed
        self._updates: dict[int, int] = {}
        self._pending: list[int] = []
        self._queued: set[int] = set()

    def settle(self) -> bool:
        """Visit what reads from around a loop, and what reads that if it has changed; False where nodes have to be
        looked at one by one."""
        table = self._table
        is_around = table.has_op(NEXT_ITERATION_OPS)
        if not is_around.any():
            return True
        self._position = np.empty(len(table), np.int64)
        self._position[np.array(self._order, np.int64)] = np.arange(len(table))
        is_first = (table.index != CONTROL) & is_around[table.source]
        self._push(table.owners()[is_first])
        self._is_merge = table.has_op(MERGE_OPS)
        while self._pending:
            place = heapq.heappop(self._pending)
            self._queued.discard(place)
            if not self._visit(self._order[place]):
                return False
        return True

    def _push(self, nodes: NDArray[Any]) -> None:
        for place in ints(self._position[nodes]):
            if place not in self._queued:
                self._queued.add(place)
                heapq.heappush(self._pending, place)

    def _visit(self, number: int) -> bool:
        before, after = self._rows[number], self._row_of(number)
        is_merge = bool(self._is_merge[number])
        has_changed = self._differ(before, after)
        if has_changed and is_merge:
            self._updates[number] = self._updates.get(number, 0) + 1
            if self._updates[number] > MAX_MERGE_UPDATES:
                key = (int(self._table.kinds.first[self._table.kind[number]]), _GIVEN_UP)
                known = self._classes.known.get(key)
                after = self._classes.given_up(number, key) if known is None else known
                has_changed = self._differ(before, after)
        if before == after:
            return True
        if not self._can_tell(before, after):
            return False
        self._rows[number], self._found[number] = after, self._classes.class_of[after]
        if has_changed:
            if self._readers is None:
                self._readers = _Readers(self._table)
            self._push(self._readers.of(number))
        return True

    def _differ(self, before: int, after: int) -> bool:
        """Whether shapes or values of two rows of a node are others."""
        values, others = self._compared(before), self._compared(after)  # raise before anything is compared
        nodes, shapes = self._classes.nodes, self._classes.shapes
        return before != after and (shapes.of(nodes[before]) != shapes.of(nodes[after]) or values != others)

    def _compared(self, row: int) -> list[Any] | None:
        if row not in self._values:
            self._values[row] = self._classes.shapes.compared(self._classes.nodes[row])
        return self._values[row]

    def _can_tell(self, before: int, after: int) -> bool:
        """Whether it is certain what would be found node by node: there a handle is not forgotten, and values that
        nobody asked for may have been found after they had changed."""
        classes = self._classes
        first, second = classes.nodes[before], classes.nodes[after]
        held, holds = classes.handles(first), classes.handles(second)
        if any(one is not None and other is None for one, other in zip(held, holds, strict=True)):
            return False
        is_asked = classes.shapes.is_recalled(first) and classes.shapes.is_recalled(second)
        have_others = classes.shapes.of(first) != classes.shapes.of(second)
        return is_asked or have_others or self._compared(before) == self._compared(after)


class _Readers:
    """Who reads a node."""

    def __init__(self, table: NodeColumns):
        is_data = table.index != CONTROL
        source = table.source[is_data]
        self._owners = table.owners()[is_data][np.argsort(source, kind="stable")]
        self._begin = np.concatenate((np.zeros(1, np.int64), np.cumsum(np.bincount(source, minlength=len(table)))))

    def of(self, number: int) -> NDArray[np.int32]:
        return self._owners[int(self._begin[number]) : int(self._begin[number + 1])]
