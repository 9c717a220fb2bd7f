"""Whether static shapes fit together in a graph whose nodes are a table, and what they are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from toolkit.errors import GraphmillError
from toolkit.formats.node_tables.classes import Classes, RowKey
from toolkit.formats.node_tables.columns import CONTROL, NodeColumns, chunks, ints
from toolkit.formats.node_tables.frames import kinds_of_any_loop
from toolkit.formats.node_tables.infer import TableShapes, infer_table
from toolkit.formats.node_tables.needed import Needed
from toolkit.graph.graph import Graph
from toolkit.graph.node import MERGE_OPS, NEXT_ITERATION_OPS, Node, Output
from toolkit.graph.shape import Shape
from toolkit.graph.shapes import registry
from toolkit.graph.shapes.calls import Calls

#: stands in the key of the Merges at which loops begin
_BEGINS_LOOP = -5
#: stands in the keys of what is fed
_GIVEN = -6


def shapes_fit(table: NodeColumns, graph: Graph, calls: Calls) -> bool:
    """Whether no shape function contradicts what is known of its inputs; False where that cannot be told so.

    Args:
        table: of a graph in which nothing else is wrong (`toolkit.formats.node_tables.check`).
        graph: the one that has the table.
        calls: what is known of functions.
    """
    return _inferred(table, graph, calls) is not None


def shapes_of(table: NodeColumns, graph: Graph, calls: Calls, nodes: Iterable[int]) -> list[list[Shape]] | None:
    """The shapes of the outputs of some nodes, by place; None where they contradict each other, or that cannot be told.

    Args:
        table, graph, calls: see `shapes_fit`.
    """
    found = _inferred(table, graph, calls)
    return None if found is None else [found.shapes.of(found.like(number)) for number in nodes]


def _inferred(table: NodeColumns, graph: Graph, calls: Calls) -> TableShapes | None:
    """The shapes of all nodes; None where some node has to be named."""
    owners = table.owners()
    goes_around = table.has_op(NEXT_ITERATION_OPS)[table.source] & table.has_op(MERGE_OPS)[owners]
    if ((goes_around & (table.index != CONTROL)) != (table.source >= owners)).any():
        return None  # an order in which loops are not entered first
    try:
        return infer_table(table, graph, calls, range(len(table)), _contradict)
    except (GraphmillError, _ContradictionError):
        return None


def _contradict(node: Node, error: GraphmillError) -> None:
    raise _ContradictionError


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
    classes = Classes(table, graph, calls, _contradict)
    for node, shape in arguments:
        classes.shapes.feed(Output(node, 0), shape)
    try:
        with classes.shapes.whole_graph():
            rows = [classes.add(node, (_GIVEN, place)) for place, (node, _) in enumerate(arguments)]
            given = [classes.class_of[row] for row in rows]
            _classify(table, classes, needed, given)
    except (GraphmillError, _ContradictionError):
        return False
    return not calls.is_cut


class _ContradictionError(Exception):
    """Some node has to be named."""


def _classify(table: NodeColumns, classes: Classes, needed: Needed, given: Sequence[int]) -> None:
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
    known, class_of_row = classes.known, classes.class_of
    of_sources = np.zeros(len(table) + len(given), np.int64)
    of_sources[len(table) :] = given
    is_found = _classify_sources(table, classes, kind, needed.chosen & (np.diff(begin) == 0), of_sources)
    found = ints(of_sources)
    class_of = found.__getitem__
    for chunk in chunks(len(table)):
        first, last = int(begin[chunk.start]), int(begin[chunk.stop])
        sources, indices = ints(source[first:last]), ints(index[first:last])
        places = np.flatnonzero(needed.chosen[chunk] & ~is_found[chunk]) + chunk.start
        rows = zip(
            ints(places), ints(kind[places]), ints(begin[places] - first), ints(begin[places + 1] - first),
            ints(has_others[places] | begins_loop[places]), strict=True,
        )  # fmt: skip
        for number, at, a, b, is_odd in rows:
            key: RowKey
            if not is_odd:
                key = (at, *map(class_of, sources[a:b]))
            elif begins_loop[number]:
                key = (_BEGINS_LOOP,)
            else:  # a kind has so many inputs always: this is no key of any without
                key = (at, *map(class_of, sources[a:b]), *indices[a:b])
            here = known.get(key)
            if here is None and begins_loop[number]:
                here = classes.given_up(number, key)
            elif here is None:
                inputs = [(class_of(sources[edge]), indices[edge]) for edge in range(a, b)]
                here = classes.find(number, key, inputs)
            found[number] = class_of_row[here]


def _classify_sources(
    table: NodeColumns,
    classes: Classes,
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
    of_kind = np.zeros(len(table.kinds.all), np.int64)
    for number, place in zip(ints(numbers), ints(places[firsts]), strict=True):
        of_kind[number] = classes.class_of[classes.find(place, (number,), ())]
    found[places] = of_kind[kind[places]]
    is_found = np.zeros(len(table), np.bool_)
    is_found[places] = True
    return is_found
