"""The bytes of what crosses between the parts of a graph whose nodes are a table (`costs.CrossingBytes`)."""

from __future__ import annotations

from toolkit.formats.node_tables.shapes import shapes_of
from toolkit.formats.node_tables.table import NodeTable
from toolkit.graph.graph import Graph
from toolkit.graph.shapes.calls import Calls
from toolkit.graph.shapes.nested import infer_nested
from toolkit.graph.tensorref import parse_tensor
from toolkit.passes.partitioning.transfers import Partitioned
from toolkit.passes.placement.costs import bytes_sent


def crossing_bytes(graph: Graph, parts: Partitioned) -> list[int]:
    """The bytes of each transfer with a batch of 1; none of a control edge.

    Where shapes are not found of kinds of nodes (`formats.node_tables.shapes`), those nodes are made that lead to
    what is sent: shapes follow from nothing else.

    Args:
        graph: the one that was split, none of whose nodes has been made.
    """
    table = graph.unmade
    assert isinstance(table, NodeTable)
    tensors = dict.fromkeys(each.tensor for each in parts.transfers if not each.tensor.startswith("^"))
    if not tensors:
        return [0] * len(parts.transfers)
    refs = {tensor: parse_tensor(tensor) for tensor in tensors}
    numbers = {ref.node: table.numbers[ref.node] for ref in refs.values()}
    found = shapes_of(table, graph, Calls(), numbers.values())
    if found is not None:
        of_node = dict(zip(numbers, found, strict=True))
        shapes = {tensor: of_node[ref.node][ref.index] for tensor, ref in refs.items()}
    else:
        before = graph.subgraph(())
        before.leave_unmade(table.select(table.upstream(numbers.values())))
        inferred = infer_nested(before, Calls())
        shapes = {tensor: inferred[before.output(tensor)] for tensor in tensors}
    return [bytes_sent(each, shapes[each.tensor]) if each.tensor in tensors else 0 for each in parts.transfers]
