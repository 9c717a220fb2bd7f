"""The bytes of what crosses between the parts of a graph whose nodes are a table (`costs.CrossingBytes`)."""

from __future__ import annotations

from toolkit.formats.node_table import NodeTable
from toolkit.graph.graph import Graph
from toolkit.graph.shapes.calls import Calls
from toolkit.graph.shapes.nested import infer_nested
from toolkit.passes.costs import bytes_sent
from toolkit.passes.transfers import Partitioned


def crossing_bytes(graph: Graph, parts: Partitioned) -> list[int]:
    """The bytes of each transfer with a batch of 1; none of a control edge.

    Nodes are made of those alone that lead to what is sent: shapes follow from nothing else.

    Args:
        graph: the one that was split, none of whose nodes has been made.
    """
    table = graph.unmade
    assert isinstance(table, NodeTable)
    sent = {t.tensor: t.tensor.rpartition(":")[0] for t in parts.transfers if not t.tensor.startswith("^")}
    if not sent:
        return [0] * len(parts.transfers)
    before = graph.subgraph(())
    before.leave_unmade(table.select(table.upstream(table.numbers[name] for name in sent.values())))
    shapes = infer_nested(before, Calls())
    return [
        bytes_sent(transfer, shapes[before.output(transfer.tensor)]) if transfer.tensor in sent else 0
        for transfer in parts.transfers
    ]
