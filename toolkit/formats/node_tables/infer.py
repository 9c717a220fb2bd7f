"""Static shapes of all nodes of a table: what `toolkit.graph.infer` finds node by node, found of rows of nodes.

In a large graph the same few nodes come again and again. A row (`node_tables.classes`) is looked up for each
node, so that little is done for most nodes but that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolkit.errors import GraphmillError
from toolkit.formats.node_tables.classes import Classes, RowKey
from toolkit.formats.node_tables.columns import CONTROL, NodeColumns, chunks, ints
from toolkit.formats.node_tables.frames import kinds_of_any_loop
from toolkit.formats.node_tables.settle import Settling
from toolkit.graph.graph import Graph
from toolkit.graph.infer import ShapeMap
from toolkit.graph.node import MERGE_OPS, NEXT_ITERATION_OPS, Node
from toolkit.graph.shapes import registry
from toolkit.graph.shapes.calls import Calls

#: stand in the keys of nodes some of whose inputs are not the first output of a node, of Merges some of whose inputs
#: have not been met, and of nodes that shape functions look at
_OTHERS, _ENTERED, _LOOKED_AT = -1, -2, -3
#: the class of a node that has not been met
_UNMET = -1


@dataclass(frozen=True, slots=True)
class TableShapes:
    """The shapes of a table's nodes.

    Attributes:
        shapes: of the nodes that were made.
        nodes: by row, the one that was made for it: of the same op and attributes, but for the names in `_class` and
            those of loops, with inputs of which the same is known. The graph does not have it.
        row: int32, by node of the table.
    """

    shapes: ShapeMap
    nodes: list[Node]
    row: NDArray[np.int32]

    def like(self, number: int) -> Node:
        """The node that was made for the row of one of the table's."""
        return self.nodes[int(self.row[number])]


def infer_table(
    table: NodeColumns,
    graph: Graph,
    calls: Calls,
    order: Sequence[int],
    on_contradiction: Callable[[Node, GraphmillError], None] | None = None,
) -> TableShapes | None:
    """What `infer_nested` finds of a graph; None where that has to be found node by node.

    That is so where calls are not followed to their end, plugins have shape functions, or what is known in a loop
    changes in a way that depends on who has asked for it.

    Args:
        graph: the one that has the table.
        calls: what is known of functions; to be thrown away where the result is None.
        order: the places of the nodes, each behind those that it reads but for the back edges of loops.
        on_contradiction: called with a node of a row where its shapes contradict each other; may raise.

    Raises:
        GraphmillError: an op is unknown.
    """
    if any(
        registry.looks_at_nodes(op) and not registry.looks_at_sources(op)
        for op in {table.kinds.all[number].op for number in table.used_kinds()}
    ):
        return None
    calls.start()
    classes = Classes(table, graph, calls, on_contradiction)
    inference = _Inference(table, classes, order)
    with classes.shapes.whole_graph():
        inference.visit_all()
        is_settled = Settling(table, classes, order, inference.rows, inference.classes, inference.row_of).settle()
    if not is_settled or calls.is_cut or calls.cuts:
        return None
    return TableShapes(classes.shapes, classes.nodes, np.array(inference.rows, np.int32))


class _Inference:
    """Finds the row and the class of each node.

    Attributes:
        rows, classes: by node.
    """

    def __init__(self, table: NodeColumns, classes: Classes, order: Sequence[int]):
        self._classes, self._order = classes, np.array(order, np.int64)
        self.rows: list[int] = [_UNMET] * len(table)
        self.classes: list[int] = [_UNMET] * len(table)
        is_data = table.index != CONTROL
        source, index, owner = table.source[is_data], table.index[is_data], table.owners()[is_data]
        self._begin = np.concatenate((np.zeros(1, np.int64), np.cumsum(table.data_counts())))
        self._source, self._index = ints(source), index
        self._kind = kinds_of_any_loop(table)[table.kind]
        looking = np.array([registry.looks_at_nodes(kind.op) for kind in table.kinds.all], np.bool_)[table.kind]
        self._is_looked_at = np.zeros(len(table), np.bool_)
        self._is_looked_at[source[looking[owner]]] = True
        self._is_merge = table.has_op(MERGE_OPS)
        # whose key says more than kind and classes
        self._is_odd = self._is_looked_at.copy()
        self._is_odd[owner[(index > 0) | (self._is_merge[owner] & table.has_op(NEXT_ITERATION_OPS)[source])]] = True

    def visit_all(self) -> None:
        """Visit the nodes in order, those without inputs first."""
        order, begin = self._order, self._begin
        is_source = (begin[1:] == begin[:-1]) & ~self._is_odd
        self._visit_sources(np.flatnonzero(is_source))
        order = order[~is_source[order]]
        rows, classes, source = self.rows, self.classes, self._source
        known, class_of, met = self._classes.known, self._classes.class_of, self.classes.__getitem__
        for chunk in chunks(len(order)):
            nodes = order[chunk]
            kinds, is_odd = self._kind[nodes], self._is_odd[nodes]
            columns = (ints(nodes), ints(kinds), ints(begin[nodes]), ints(begin[nodes + 1]), ints(is_odd))
            for number, kind, a, b, has_more in zip(*columns, strict=True):
                if has_more:
                    row = self.row_of(number)
                else:
                    key: RowKey = (kind, classes[source[a]]) if b - a == 1 else (kind, *map(met, source[a:b]))
                    found = known.get(key)
                    row = self._find(number, key, range(a, b)) if found is None else found
                rows[number] = row
                classes[number] = class_of[row]

    def row_of(self, number: int) -> int:
        """The row of a node, by what is known of its inputs now."""
        edges: Sequence[int] = range(int(self._begin[number]), int(self._begin[number + 1]))
        met = [self.classes[self._source[edge]] for edge in edges]
        index = ints(self._index[edges.start : edges.stop])
        key: RowKey = (int(self._kind[number]), *met)
        is_merge = bool(self._is_merge[number])
        if is_merge and _UNMET in met:
            edges = [edge for edge, here in zip(edges, met, strict=True) if here != _UNMET]
            inputs = [(here, at) for here, at in zip(met, index, strict=True) if here != _UNMET]
            key = (key[0], _ENTERED, *_flat(inputs))
        elif any(index):
            key = (key[0], _OTHERS, *_flat(zip(met, index, strict=True)))
        if self._is_looked_at[number]:
            key = (*key, _LOOKED_AT)
        found = self._classes.known.get(key)
        return self._find(number, key, edges) if found is None else found

    def _find(self, number: int, key: RowKey, edges: Iterable[int]) -> int:
        inputs = [(self.classes[self._source[edge]], int(self._index[edge])) for edge in edges]
        return self._classes.find(number, key, inputs, is_looked_at=bool(self._is_looked_at[number]))

    def _visit_sources(self, places: NDArray[np.int64]) -> None:
        """Visit nodes without inputs, all of a kind at once."""
        kinds = self._kind[places]
        numbers, firsts = np.unique(kinds, return_index=True)
        row = np.zeros(int(numbers[-1]) + 1 if len(numbers) else 0, np.int64)
        for kind, place in zip(ints(numbers), ints(places[firsts]), strict=True):
            row[kind] = self._classes.find(place, (kind,), ())
        class_of = self._classes.class_of
        for place, found in zip(ints(places), ints(row[kinds]), strict=True):
            self.rows[place], self.classes[place] = found, class_of[found]


def _flat(pairs: Iterable[tuple[int, int]]) -> Iterable[int]:
    return (part for pair in pairs for part in pair)
