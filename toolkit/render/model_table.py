"""The elements, links and loops of a graph whose nodes are a table: none of them is made."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from toolkit.formats.node_tables.check import are_in_order
from toolkit.formats.node_tables.columns import CONTROL, ints
from toolkit.formats.node_tables.frames import find_frames
from toolkit.formats.node_tables.table import NodeTable
from toolkit.graph.check import is_sound_here
from toolkit.graph.graph import Graph
from toolkit.graph.node import ENTER_OPS, MERGE_OPS, NEXT_ITERATION_OPS, Node
from toolkit.render.elements import LinkKind, Model, Scope
from toolkit.render.link_table import LinkTable
from toolkit.render.unmade import UnmadeElements


class Call(Protocol):
    """A node whose functions were put in place: where its inputs and outputs lead."""

    def targets(self, position: int) -> list[tuple[int, int]]: ...

    def sources(self, index: int) -> list[tuple[int, int]]: ...


def place(model: Model, graph: Graph, prefix: str, scope_at: Callable[[str], Scope]) -> None:
    """Add the nodes of a graph to their scopes.

    Args:
        prefix: what the names of elements begin with.
        scope_at: the scope of a path that names begin with.
    """
    table = _table(graph)
    if isinstance(model.elements, list):
        model.elements = UnmadeElements(model)
    assert isinstance(model.elements, UnmadeElements)
    model.elements.extend(graph, table)
    model.names += [prefix + name for name in table.names] if prefix else table.names
    ops = [kind.op for kind in table.kinds.all]
    model.ops += map(ops.__getitem__, ints(table.kind))
    scopes: dict[str, Scope] = {}
    homes = model.homes
    for number, name in enumerate(table.names, len(homes)):
        path = name[: name.rfind("/") + 1]
        scope = scopes.get(path)
        if scope is None:
            scope = scopes[path] = scope_at(path)
        scope.elements.append(number)
        homes.append(scope)


def _table(graph: Graph) -> NodeTable:
    assert isinstance(graph.unmade, NodeTable)
    return graph.unmade


def nodes_of(graph: Graph, ops: Collection[str]) -> list[int]:
    """The nodes of some ops, by their ids, in order."""
    return ints(np.flatnonzero(_table(graph).has_op(ops)))


def links_of(
    graph: Graph, begin: int, opened: Mapping[int, Call], references: Callable[[Node], bool | frozenset[int]]
) -> LinkTable:
    """The links of one graph.

    Args:
        begin: the element of the first node.
        opened: calls whose functions were put in place, by element.
        references: which outputs of a node are references or handles; all, none or these.
    """
    table = _table(graph)
    owners, is_control = table.owners(), table.index == CONTROL
    position = (np.arange(len(owners)) - table.begin[owners]).astype(np.int32)
    position[is_control] = CONTROL
    kind = np.full(len(owners), LinkKind.DATA, np.int8)
    kind[_carry_references(graph, table, references)] = LinkKind.REFERENCE
    kind[is_control] = LinkKind.CONTROL
    first = np.int32(begin)
    links = LinkTable(table.source + first, owners + first, kind, table.index, position)
    return _through_calls(links, opened, begin + len(table)) if opened else links


def _carry_references(
    graph: Graph, table: NodeTable, references: Callable[[Node], bool | frozenset[int]]
) -> NDArray[np.bool_]:
    """Which edges carry what `links_of` calls references; of those without a tensor nothing is said."""
    all_of = np.zeros(len(table.kinds.all), np.bool_)
    some: list[tuple[int, frozenset[int]]] = []
    for node in table.examples(graph):  # kinds that are alike but for `_class` are so for this
        number = int(table.kinds.first[table.kind[node.id]])
        found = references(node)
        if isinstance(found, frozenset):
            some.append((number, found))
        else:
            all_of[number] = found
    source_kind = table.kinds.first[table.kind][table.source]
    carries = all_of[source_kind]
    for number, outputs in some:
        edges = np.flatnonzero(source_kind == number)
        carries[edges] = np.isin(table.index[edges], list(outputs))
    return carries


def _through_calls(links: LinkTable, opened: Mapping[int, Call], count: int) -> LinkTable:
    """Links into and out of calls lead into and out of the bodies of functions."""
    is_opened = np.zeros(count, np.bool_)
    is_opened[list(opened)] = True
    is_led = (is_opened[links.src] | is_opened[links.dst]) & ~links.is_control()
    times = np.ones(len(links), np.int64)
    rows: list[tuple[int, int, int, int]] = []
    for number in ints(np.flatnonzero(is_led)):
        src, dst, _, output, position = links[number]
        into, out_of = opened.get(dst), opened.get(src)
        targets = [(dst, position)] if into is None else into.targets(position)
        sources = [(src, output)] if out_of is None else out_of.sources(output)
        rows += [(*source, *target) for source in sources for target in targets]
        times[number] = len(sources) * len(targets)
    at = np.repeat(np.arange(len(links)), times)
    led = np.flatnonzero(is_led[at])
    columns = [each[at] for each in (links.src, links.src_output, links.dst, links.dst_input)]
    for column, new in zip(columns, np.array(rows, np.int32).reshape(-1, 4).T, strict=True):
        column[led] = new
    src, output, dst, position = columns
    return LinkTable(src, dst, links.kind[at], output, position)


def loops(graph: Graph) -> list[tuple[str, list[int]]] | None:
    """The names of all loop frames and the nodes in each; None where nodes have to be looked at one by one."""
    table = _table(graph)
    enters = [node for node in table.examples(graph) if node.op in ENTER_OPS]
    if not are_in_order(table) or not all(map(is_sound_here, enters)):
        return None
    comes_in = ~table.has_op(NEXT_ITERATION_OPS)[table.source]
    has_others = np.bincount(table.owners()[comes_in], minlength=len(table)) > 0
    frames = find_frames(table)
    if frames is None or (table.has_op(MERGE_OPS) & ~has_others).any():
        return None  # a Merge that nothing but a loop leads into is in no frame yet when that loop is looked for
    inside = np.flatnonzero(frames.of)
    inside = inside[np.argsort(frames.of[inside], kind="stable")]
    ends = np.cumsum(np.bincount(frames.of[inside], minlength=len(frames.names)))
    nodes = np.split(inside, ends[:-1])
    return [(name, ints(each)) for name, each in zip(frames.names, nodes, strict=True) if len(each) and name]
