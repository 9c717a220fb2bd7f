"""Nodes of a large graph that nobody has made: selected, made and written from columns."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from toolkit.formats.node_columns import NodeColumns, chunks, ints
from toolkit.formats.protoscan import varint_bytes
from toolkit.formats.table_check import is_sound
from toolkit.graph import opdefs
from toolkit.graph.graph import Graph, node_to_proto
from toolkit.graph.node import Node, Output, node_of_kind

if TYPE_CHECKING:
    from toolkit.graph.shapes.calls import Calls

#: so many pieces of a file are joined, to be written at once
_JOINED = 4096
_NODE = b"\x0a"


class NodeTable(NodeColumns):
    """The columns of nodes none of which has been made (`toolkit.graph.unmade`)."""

    def is_sound(self, graph: Graph) -> bool:
        """See `UnmadeNodes.is_sound`."""
        return is_sound(self, graph)

    def shapes_fit(self, graph: Graph, calls: Calls) -> bool:
        """See `UnmadeNodes.shapes_fit`."""
        from toolkit.formats.table_shapes import shapes_fit  # which pruning and summaries do without

        return shapes_fit(self, graph, calls)

    def select(self, chosen: NDArray[np.bool_]) -> NodeTable:
        """The table of some of the nodes, of which none reads one that is not chosen; an edge from one is left out."""
        places = np.flatnonzero(chosen)
        new = np.full(len(self), -1, np.int32)
        new[places] = np.arange(len(places), dtype=np.int32)
        edges = np.repeat(chosen, np.diff(self.begin)) & chosen[self.source]
        counts = np.concatenate((np.zeros(1, np.int64), np.cumsum(edges)))
        ends = counts[self.begin[1:]] - counts[self.begin[:-1]]
        names = [self.names[number] for number in ints(places)]
        return NodeTable(
            self.data, names, dict(zip(names, range(len(names)), strict=True)),
            self.tag[places], self.start[places], self.tail[places], self.stop[places],
            self.kinds, self.kind[places], self.devices, self.device[places],
            np.concatenate((np.zeros(1, np.int64), np.cumsum(ends[places]))),
            new[self.source[edges]], self.index[edges], self.functions,
        )  # fmt: skip

    def make(self, graph: Graph) -> tuple[list[Node], dict[str, Node]]:
        """See `UnmadeNodes.make`; takes `numbers` over, so the table is not good for anything afterwards."""
        kinds, devices = self.kinds.all, self.devices
        none = cast("list[Output]", ())
        nodes: list[Node] = []
        for chunk in chunks(len(self)):
            rows = zip(self.names[chunk], ints(self.kind[chunk]), ints(self.device[chunk]), strict=True)
            nodes += [
                node_of_kind(graph, number, name, kinds[at].op, devices[where], none, kinds[at])
                for number, (name, at, where) in enumerate(rows, chunk.start)
            ]
        new = cast("Any", tuple).__new__
        first: list[Output] = [new(Output, (node, 0)) for node in nodes]
        others: dict[tuple[int, int], Output] = {}
        middle = self.begin[:-1] + self.data_counts()
        for chunk in chunks(len(self)):
            begin, end = int(self.begin[chunk.start]), int(self.begin[chunk.stop])
            edges = [first[source] for source in ints(self.source[begin:end])]
            for at in ints(np.flatnonzero(self.index[begin:end] > 0)):
                key = (edges[at][0].id, int(self.index[begin + at]))
                known = others.get(key)
                if known is None:
                    known = others[key] = Output(nodes[key[0]], key[1])
                edges[at] = known
            begins, middles = ints(self.begin[chunk] - begin), ints(middle[chunk] - begin)
            for node, a, b in zip(nodes[chunk], begins, middles, strict=True):
                node.inputs = edges[a:b]
            ends = self.begin[chunk.start + 1 : chunk.stop + 1]
            for at in ints(np.flatnonzero(ends > middle[chunk])):
                nodes[chunk.start + at].control_inputs = [output[0] for output in edges[middles[at] : ends[at] - begin]]
        if self.functions:
            for node in nodes:
                if node.op in self.functions:
                    node.invalidate_types()
        by_name = cast("dict[str, Any]", self.numbers)
        by_name.update(zip(self.names, nodes, strict=True))
        return nodes, by_name

    def parts(self) -> list[bytes]:
        """See `UnmadeNodes.parts`: mostly slices of the file."""
        if opdefs.OF_PLUGINS:  # whose nodes say where their op comes from
            nodes, _ = replace(self, numbers=dict(self.numbers)).make(Graph())
            return [_field(node_to_proto(node).SerializeToString(deterministic=True)) for node in nodes]
        parts: list[bytes] = []
        small: list[bytes] = []
        are_written = self.kinds.are_written[self.kind]
        # a slice ends where the next node does not follow, or either is not written as it stands there
        ends = np.flatnonzero((self.tag[1:] != self.stop[:-1]) | ~are_written[1:] | ~are_written[:-1])
        lasts = [*ints(ends), len(self) - 1] if len(self) else []
        begin = 0
        for last in lasts:
            if are_written[begin]:
                small.append(self.data[self.tag[begin] : self.stop[last]])
            else:
                head = self.data[self.start[begin] : self.tail[begin]]
                small.append(_field(head + self.kinds.all[int(self.kind[begin])].attributes))
            if len(small) >= _JOINED:
                parts.append(b"".join(small))
                small.clear()
            begin = last + 1
        parts.append(b"".join(small))
        return parts


def _field(message: bytes) -> bytes:
    return _NODE + varint_bytes(len(message)) + message
