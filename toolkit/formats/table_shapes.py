"""Whether static shapes fit together in a graph whose nodes are a table.

What is known of a node's outputs follows, for nearly all ops, from its kind and from what is known of its inputs. So
nodes are put into classes of which the same is known: shapes, values and what handles hold. One node is made for each
kind with inputs of the same classes, and its shape function is asked once for all of them (`toolkit.graph.infer`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from toolkit.errors import GraphmillError
from toolkit.formats.node_columns import CONTROL, NodeColumns, chunks, ints
from toolkit.formats.table_frames import kinds_of_any_loop
from toolkit.formats.table_needed import Needed
from toolkit.graph.graph import Graph
from toolkit.graph.infer import ShapeMap
from toolkit.graph.node import MERGE_OPS, NEXT_ITERATION_OPS, Node, Output
from toolkit.graph.shape import SCALAR, UNKNOWN, Shape
from toolkit.graph.shapes import registry
from toolkit.graph.shapes.calls import Calls

#: stands in the key of a Merge of which only those inputs are meant that do not come around a loop
_ENTERED = -1


def shapes_fit(table: NodeColumns, graph: Graph, calls: Calls) -> bool:
    """Whether no shape function contradicts what is known of its inputs; False where that cannot be told so.

    Args:
        table: of a graph in which nothing else is wrong (`toolkit.formats.table_check`).
        graph: the one that has the table.
        calls: what is known of functions.
    """
    return _classified(table, graph, calls) is not None


def shapes_of(table: NodeColumns, graph: Graph, calls: Calls, nodes: Iterable[int]) -> list[list[Shape]] | None:
    """The shapes of the outputs of some nodes, by place; None where they contradict each other, or that cannot be told.

    Args:
        table, graph, calls: see `shapes_fit`.
    """
    found = _classified(table, graph, calls)
    return None if found is None else [found[0].shapes_of(found[1][number]) for number in nodes]


def _classified(table: NodeColumns, graph: Graph, calls: Calls) -> tuple[_Classes, list[int]] | None:
    """The classes, and which is each node's; None where some node has to be named."""
    if any(registry.looks_at_nodes(table.kinds.all[number].op) for number in table.used_kinds()):
        return None
    classes = _Classes(table, graph, calls)
    try:
        with classes.shapes.whole_graph():
            found = _fit(table, classes)
    except (GraphmillError, _ContradictionError):
        return None
    return None if found is None or calls.is_cut else (classes, found)


def needed_shapes_fit(
    table: NodeColumns, graph: Graph, calls: Calls, needed: Needed, arguments: Sequence[tuple[Node, Shape]]
) -> bool:
    """Whether no shape function contradicts what is known of its inputs before a step runs; False where that cannot be
    told so. What goes around in a loop has no shape here (`toolkit.graph.consistency`).

    Args:
        table, graph, calls: see `shapes_fit`.
        needed: what the step needs.
        arguments: nodes that stand for what is fed, and the shapes that are.
    """
    chosen = np.flatnonzero(needed.chosen)
    kinds = ints(np.unique(table.kind[chosen]))
    if any(registry.looks_at_nodes(table.kinds.all[number].op) for number in kinds):
        return False
    classes = _Classes(table, graph, calls)
    for node, shape in arguments:
        classes.shapes.feed(Output(node, 0), shape)
    try:
        with classes.shapes.whole_graph():
            given = [classes.add(node) for node, _ in arguments]
            _classify(table, classes, needed, given)
    except (GraphmillError, _ContradictionError):
        return False
    return not calls.is_cut


class _ContradictionError(Exception):
    """Some node has to be named."""


class _Classes:
    """What is known of nodes, each once.

    Attributes:
        shapes: what is known of the nodes that are made.
    """

    def __init__(self, table: NodeColumns, graph: Graph, calls: Calls):
        self._table, self._graph = table, graph
        self.shapes = ShapeMap(calls)
        self.shapes.on_contradiction = self._contradict
        self._nodes: list[Node] = []  # one of each class
        self._numbers: dict[tuple[object, ...], int] = {}
        self._known: dict[tuple[int, ...], int] = {}

    def find(self, number: int, key: tuple[int, ...], inputs: Sequence[tuple[int, int]]) -> int:
        """The class of a node of which nobody has heard yet.

        Args:
            key: what tells it from others: its kind and its inputs.
            inputs: their classes, and which outputs of them.
        """
        node = self._made(number, inputs)
        known = self.shapes.visit(node, strict=False)
        held = [self.shapes.handle(Output(node, index)) for index in range(len(known))]
        # of equal lists of shapes with other values there are several; each is hashed as the one object that it is
        told = (known, *(None if handle is None else tuple(handle) for handle in held))
        found = self._numbers.setdefault(told, len(self._nodes))
        if found == len(self._nodes):
            self._nodes.append(node)
        kind = self._table.kinds.all[int(self._table.kind[number])]
        if node.kind is not None and kind.is_shared and (registry.is_local(node.op) or node.op in MERGE_OPS):
            self._known[key] = found
        return found

    def add(self, node: Node) -> int:
        """The class of a node that has no other like it."""
        self.shapes.visit(node, strict=False)
        self._nodes.append(node)
        return len(self._nodes) - 1

    def begin_loop(self, number: int) -> int:
        """The class of all Merges at which loops begin: nothing is known of what goes around."""
        node = self._made(number, ())
        self.shapes.store(node, [UNKNOWN, SCALAR], {})
        self._nodes.append(node)
        return len(self._nodes) - 1

    @property
    def known(self) -> dict[tuple[int, ...], int]:
        """Classes by the keys of nodes that are alike."""
        return self._known

    def shapes_of(self, found: int) -> list[Shape]:
        """The shapes that nodes of a class give."""
        return self.shapes.of(self._nodes[found])

    def is_settled(self, number: int, found: int, inputs: Sequence[tuple[int, int]]) -> bool:
        """Whether a loop's Merge is still of its class once all of its inputs are known."""
        if any(self.shapes.handle(Output(self._nodes[at], index)) is not None for at, index in inputs):
            return False
        after: list[Shape] = self.shapes.visit(self._made(number, inputs), strict=False)
        return after == self.shapes.of(self._nodes[found])

    def _made(self, number: int, inputs: Sequence[tuple[int, int]]) -> Node:
        node = self._table.example(self._graph, number)
        node.inputs = [Output(self._nodes[at], index) for at, index in inputs]
        return node

    def _contradict(self, node: Node, error: GraphmillError) -> None:
        raise _ContradictionError


def _fit(table: NodeColumns, classes: _Classes) -> list[int] | None:
    """The class of each node; None where loops are not as usual."""
    is_data = table.index != CONTROL
    source, index, owner = table.source[is_data], table.index[is_data], table.owners()[is_data]
    is_back = source >= owner
    goes_around = table.has_op(NEXT_ITERATION_OPS)[source] & table.has_op(MERGE_OPS)[owner]
    if (goes_around != is_back).any():
        return None  # an order in which loops are not entered first
    begin = np.concatenate((np.zeros(1, np.int64), np.cumsum(table.data_counts())))
    kind = table.kinds.first[table.kind]
    around = set(ints(owner[is_back]))
    has_others = np.zeros(len(table), np.bool_)  # inputs that are not the first output of a node
    has_others[owner[index > 0]] = True
    found: list[int] = []
    class_of, known = found.__getitem__, classes.known
    for chunk in chunks(len(table)):
        first, last = int(begin[chunk.start]), int(begin[chunk.stop])
        sources, indices = ints(source[first:last]), ints(index[first:last])
        begins, ends = ints(begin[chunk] - first), ints(begin[chunk.start + 1 : chunk.stop + 1] - first)
        rows = zip(ints(kind[chunk]), begins, ends, ints(has_others[chunk]), strict=True)
        for number, (at, a, b, has_more) in enumerate(rows, chunk.start):
            edges: Sequence[int] = range(a, b)
            if number in around:
                edges = [edge for edge in edges if sources[edge] < number]
                key = (at, _ENTERED, *(class_of(sources[edge]) for edge in edges), *(indices[edge] for edge in edges))
            elif has_more:  # a kind has so many inputs always: this is no key of any without
                key = (at, *map(class_of, sources[a:b]), *indices[a:b])
            else:
                key = (at, *map(class_of, sources[a:b]))
            here = known.get(key)
            if here is None:
                here = classes.find(number, key, [(class_of(sources[edge]), indices[edge]) for edge in edges])
            found.append(here)
    settled: set[tuple[int, ...]] = set()
    for number in around:
        edges = range(int(begin[number]), int(begin[number + 1]))
        inputs = [(found[int(source[edge])], int(index[edge])) for edge in edges]
        key = (int(kind[number]), found[number], *(part for pair in inputs for part in pair))
        if key not in settled:
            if not classes.is_settled(number, found[number], inputs):
                return None
            settled.add(key)
    return found


def _classify(table: NodeColumns, classes: _Classes, needed: Needed, given: Sequence[int]) -> None:
    """Find the classes of what is needed.

    Args:
        given: the classes of what is fed.
    """
    is_data = table.index != CONTROL
    source, index, owner = needed.source[is_data], table.index[is_data], table.owners()[is_data]
    index = np.where(source < len(table), index, 0)
    begin = np.concatenate((np.zeros(1, np.int64), np.cumsum(table.data_counts())))
    kind = kinds_of_any_loop(table)[table.kind]
    has_others = np.zeros(len(table), np.bool_)  # inputs that are not the first output of a node
    has_others[owner[index > 0]] = True
    goes_around = np.zeros(len(table) + len(given), np.bool_)
    goes_around[: len(table)] = table.has_op(NEXT_ITERATION_OPS)
    begins_loop = np.zeros(len(table), np.bool_)
    begins_loop[owner[goes_around[source]]] = True
    known = classes.known
    of_sources = np.zeros(len(table) + len(given), np.int64)
    of_sources[len(table) :] = given
    is_found = _classify_sources(table, classes, kind, needed.chosen & (np.diff(begin) == 0), of_sources)
    found = ints(of_sources)
    class_of = found.__getitem__
    around = -1
    for chunk in chunks(len(table)):
        first, last = int(begin[chunk.start]), int(begin[chunk.stop])
        sources, indices = ints(source[first:last]), ints(index[first:last])
        places = np.flatnonzero(needed.chosen[chunk] & ~is_found[chunk]) + chunk.start
        rows = zip(
            ints(places), ints(kind[places]), ints(begin[places] - first), ints(begin[places + 1] - first),
            ints(has_others[places] | begins_loop[places]), strict=True,
        )  # fmt: skip
        for number, at, a, b, is_odd in rows:
            if not is_odd:
                key = (at, *map(class_of, sources[a:b]))
            elif begins_loop[number]:
                if around < 0:
                    around = classes.begin_loop(number)
                found[number] = around
                continue
            else:  # a kind has so many inputs always: this is no key of any without
                key = (at, *map(class_of, sources[a:b]), *indices[a:b])
            here = known.get(key)
            if here is None:
                inputs = [(class_of(sources[edge]), indices[edge]) for edge in range(a, b)]
                here = classes.find(number, key, inputs)
            found[number] = here


def _classify_sources(
    table: NodeColumns,
    classes: _Classes,
    kind: NDArray[np.int32],
    is_source: NDArray[np.bool_],
    found: NDArray[np.int64],
) -> NDArray[np.bool_]:
    """Find the classes of nodes without inputs, all of a kind at once; which have been found.

    Args:
        kind: of each node, the first that is alike.
        found: becomes the class of each.
    """
    places = np.flatnonzero(is_source)
    numbers, firsts = np.unique(kind[places], return_index=True)
    of_kind = np.full(len(table.kinds.all), -1, np.int64)
    for number, place in zip(ints(numbers), ints(places[firsts]), strict=True):
        of_kind[number] = classes.known.get((number,), -1)
        if of_kind[number] < 0:
            classes.find(place, (number,), ())
            of_kind[number] = classes.known.get((number,), -1)  # none where each is by itself
    known = of_kind[kind[places]]
    places = places[known >= 0]
    found[places] = known[known >= 0]
    is_found = np.zeros(len(table), np.bool_)
    is_found[places] = True
    return is_found
