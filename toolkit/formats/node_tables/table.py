"""Nodes of a large graph that nobody has made: selected, made and written from columns."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from toolkit.formats.models.protoscan import varint_bytes
from toolkit.formats.node_tables.check import is_sound
from toolkit.formats.node_tables.columns import NodeColumns, chunks, ints
from toolkit.graph import opdefs
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node, Output, node_of_kind
from toolkit.graph.nodedefs import node_to_proto

if TYPE_CHECKING:
    from toolkit.graph.shapes.calls import Calls

#: so many pieces of a file are joined, to be written at once
_JOINED = 4096
_NODE, _DEVICE = b"\x0a", b"\x22"
#: bytes among which nodes that are joined may lie to be copied together first: weights are not copied twice
_NEAR = 1 << 22


class NodeTable(NodeColumns):
    """The columns of nodes none of which has been made (`toolkit.graph.unmade`)."""

    #: whether they are sound, and in what surroundings
    _verdict: tuple[list[Any], bool] | None = None

    def is_sound(self, graph: Graph) -> bool:
        """See `UnmadeNodes.is_sound`; looked for once, as long as version and functions are the same."""
        around = [graph.versions.producer, *map(graph.library.get, graph.library)]
        if self._verdict is None or not _are_same(self._verdict[0], around):
            self._verdict = around, is_sound(self, graph)
        return self._verdict[1]

    def shapes_fit(self, graph: Graph, calls: Calls) -> bool:
        """See `UnmadeNodes.shapes_fit`."""
        from toolkit.formats.node_tables.shapes import shapes_fit  # which pruning and summaries do without

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
            None if self.written_device is None else self.written_device[places], self.more,
        )  # fmt: skip

    def with_devices(self, devices: list[str], device: NDArray[np.int32]) -> NodeTable:
        """The table with other devices.

        Args:
            devices: those that there are, and then more.
            device: int32, by number among these.
        """
        written = self.device if self.written_device is None else self.written_device
        return replace(self, devices=devices, device=device, written_device=written)

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
        for number, node in self.glanced.items():
            node.control_inputs = []
            nodes[number] = node
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
        for node in self.glanced.values():
            cast("Any", node).__class__ = Node  # it has its edges now
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
            nodes, _ = replace(self, numbers=dict(self.numbers), glanced={}).make(Graph())
            return [_field(node_to_proto(node).SerializeToString(deterministic=True)) for node in nodes]
        are_written = self.kinds.are_written[self.kind]
        if self.written_device is not None:
            is_moved = self.device != self.written_device
            if is_moved.any():
                return self._parts_moved(is_moved, are_written)
        return self._parts(slice(0, len(self)), are_written)

    def _parts(self, nodes: slice, are_written: NDArray[np.bool_]) -> list[bytes]:
        """The bytes of nodes that have the devices they were written with."""
        parts: list[bytes] = []
        small: list[bytes] = []
        tag, stop, are_written = self.tag[nodes], self.stop[nodes], are_written[nodes]
        # a slice ends where the next node does not follow, or either is not written as it stands there
        ends = np.flatnonzero((tag[1:] != stop[:-1]) | ~are_written[1:] | ~are_written[:-1])
        lasts = [*ints(ends), len(tag) - 1] if len(tag) else []
        begin = 0
        for last in lasts:
            if are_written[begin]:
                small.append(self.bytes_at(int(tag[begin]), int(stop[last])))
            else:
                at = nodes.start + begin
                head = self.bytes_at(int(self.start[at]), int(self.tail[at]))
                small.append(_field(head + self.kinds.all[int(self.kind[at])].attributes))
            if len(small) >= _JOINED:
                parts.append(b"".join(small))
                small.clear()
            begin = last + 1
        parts.append(b"".join(small))
        return parts

    def _parts_moved(self, is_moved: NDArray[np.bool_], are_written: NDArray[np.bool_]) -> list[bytes]:
        """The bytes of nodes of which some have other devices than they were written with: these take the place of
        those, and what stands before and behind is copied."""
        assert self.written_device is not None
        fields = [_DEVICE + _sized(device.encode()) if device else b"" for device in self.devices]
        sizes = np.array([len(field) for field in fields], np.int64)
        written = sizes[self.written_device]
        head_end = self.tail - written
        length = self.stop - self.start - written + sizes[self.device]
        parts: list[bytes] = []
        for begin in range(0, len(self), _JOINED):
            chunk = slice(begin, min(begin + _JOINED, len(self)))
            if not is_moved[chunk].any():
                parts += self._parts(chunk, are_written)
                continue
            base, last = int(self.tag[chunk].min()), int(self.stop[chunk].max())
            devices = [fields[number] for number in ints(self.device[chunk])]
            pieces: list[bytes] = []
            if last - base > _NEAR or last > len(self.data) or not are_written[chunk].all():
                kinds = [self.kinds.all[number] for number in ints(self.kind[chunk])]
                for a, b, device, kind in zip(
                    ints(self.start[chunk]), ints(head_end[chunk]), devices, kinds, strict=True
                ):
                    pieces.append(_field(self.bytes_at(a, b) + device + kind.attributes))
            else:
                raw = self.data[base:last]  # of bytes slices cost half of what those of a memory map do
                columns = (self.start[chunk], head_end[chunk], self.tail[chunk], self.stop[chunk])
                heads = {size: _NODE + varint_bytes(size) for size in ints(np.unique(length[chunk]))}
                rows = zip(ints(length[chunk]), *(ints(each - base) for each in columns), devices, strict=True)
                for size, a, b, c, d, device in rows:
                    pieces += (heads[size], raw[a:b], device, raw[c:d])
            parts.append(b"".join(pieces))
        return parts


def _are_same(some: list[Any], others: list[Any]) -> bool:
    return len(some) == len(others) and all(a is b or a == b for a, b in zip(some, others, strict=True))


def _sized(message: bytes) -> bytes:
    return varint_bytes(len(message)) + message


def _field(message: bytes) -> bytes:
    return _NODE + _sized(message)
