"""Prune over the table of a graph's nodes, none of which is made for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from toolkit.formats.node_tables.table import NodeTable
from toolkit.graph.graph import Graph
from toolkit.graph.tensorref import TensorRef


def cut_table(graph: Graph, fetches: Mapping[str, TensorRef], targets: Iterable[str]) -> bool:
    """Take out of a graph what these tensors and operations do not need.

    False, with nothing done, where nodes have to be made: a name or an output does not exist, which is told by whoever
    looks for it, or what would go is what others are placed with.
    """
    table = graph.unmade
    if not isinstance(table, NodeTable):
        return False
    roots = [*(ref.node for ref in fetches.values()), *targets]
    if not roots or not all(name in table.numbers for name in roots):
        return False
    if not all(table.has_output(graph, ref.node, ref.index) for ref in fetches.values()):
        return False
    kept = table.upstream(table.numbers[name] for name in roots)
    if kept.all():
        return table.has_companions()
    smaller = table.select(kept)
    if not smaller.has_companions():
        return False
    graph.leave_unmade(smaller)
    return True
