"""Graphs straight from the bytes of a GraphDef, without a message for each node.

A node in a file is a name, an op, inputs, a device and attributes, in this order, and its attributes are mostly those
of thousands of others (`toolkit.graph.kinds`). So the fields are taken off the wire here, names of inputs are looked up
as bytes, and what is behind the device is decoded once for each kind. Whatever is not written as serializers write it,
or is wrong, is left to the parser of messages.
"""

from __future__ import annotations

import mmap
from typing import Any, cast

from google.protobuf.message import DecodeError

from schemas.graph_pb2 import GraphDef
from toolkit.formats.models import large_constants, protoscan
from toolkit.formats.models.kind_bytes import ATTR_NUMBER, SHARED, IrregularError, KindReader
from toolkit.graph import opdefs
from toolkit.graph.graph import Graph
from toolkit.graph.kinds import NodeKind
from toolkit.graph.node import Node, Output, node_of_kind
from toolkit.graph.tensorref import parse_input

#: the tags of NodeDef's fields, and of GraphDef's nodes
_NODE, _NAME, _OP, _INPUT, _DEVICE = 0x0A, 0x0A, 0x12, 0x1A, 0x22
#: nodes from which on a table is read: what is saved of each, some 3 us, is more then than it takes to import NumPy
_MANY = 30_000
#: bytes that nodes have at least, with a name and an op of one letter; nodes by which their mean size is estimated
_LEAST, _LOOKED_AT = 8, 64
#: bytes that are looked at in one piece, so that it stays in the processor's cache; of them at least so many are there
#: where a node begins: its tag and its length
_PIECE, _HEAD = 1 << 16, 16


def read_nodes(data: bytes | mmap.mmap) -> Graph | None:
    """The graph of a serialized GraphDef; None where a parser has to look at it, which knows what is wrong.

    Large constants stay in `data`. A memory map has to be nobody else's: their contents are moved in it. Nodes of a
    graph of very many are made when they are asked for.
    """
    many = read_many(data)
    if many is not None:
        return many
    graph = Graph()
    reader = _Reader(graph, data)
    try:
        rest = GraphDef.FromString(reader.read())
        if rest.node:
            return None
    except (IrregularError, DecodeError, UnicodeDecodeError, IndexError, protoscan.WireError):
        return None
    reader.settle(rest)
    if isinstance(data, mmap.mmap):
        large_constants.align(reader.kinds.large, data)
    graph.take_over(reader.nodes, reader.by_name(), rest)
    return graph


def _may_be_many(data: bytes | mmap.mmap) -> bool:
    """Whether the beginning of a file looks as if there were very many nodes."""
    if len(data) < _MANY * _LEAST:
        return False
    count = at = 0
    try:
        for field in protoscan.fields(cast("bytes", data), 0, len(data)):
            count, at = count + 1, field.end
            if count == _LOOKED_AT:
                break
    except protoscan.WireError:
        return False
    return count * len(data) >= _MANY * at


def read_many(data: bytes | mmap.mmap) -> Graph | None:
    """The graph of a serialized GraphDef of very many nodes, with a table in their place; None where they are few, or
    not all as usual."""
    if not _may_be_many(data):
        return None
    from toolkit.formats.node_tables.reading import read_table

    try:
        found = read_table(data, _MANY)
    except (IrregularError, DecodeError, UnicodeDecodeError, IndexError, protoscan.WireError):
        return None
    if found is None:
        return None
    table, rest, kinds = found
    if kinds.has_plugins:
        opdefs.hear({kind.op: kind.message for kind in table.kinds.all})
    graph = Graph()
    graph.take_table(table, rest)
    if isinstance(data, mmap.mmap):  # and nobody will look at the bytes as those of the file any more
        large_constants.align(kinds.large, data)
    return graph


class _Reader:
    """Makes the nodes of one graph.

    Texts are taken out of the file as Latin-1, in which each byte is a character: what is ASCII, as nearly all names
    are, is then as it should be, and nothing is decoded name by name.

    Attributes:
        first: output 0 of each node by its name.
        others: other outputs that were asked for, by what they are called in inputs, "name:1".
        odd: names that are not ASCII.
        late: nodes with inputs that come after them, with where their inputs begin and end.
        kinds: what reads attributes.
    """

    def __init__(self, graph: Graph, data: bytes | mmap.mmap):
        self.graph = graph
        self.data = cast("bytes", data)  # a memory map is indexed and sliced as bytes are
        self.kinds = KindReader(data)
        self.nodes: list[Node] = []
        self.first: dict[str, Output] = {}
        self.others: dict[str, Output] = {}
        self.odd: dict[str, str] = {}
        self.late: list[tuple[Node, int, int]] = []
        self.ops: dict[bytes, tuple[str, dict[bytes, NodeKind]]] = {}

    def read(self) -> bytes:
        """Make all nodes; returns the bytes of what else there is."""
        # one loop with everything in local names: this is done a million times
        whole, nodes, first, ops = self.data, self.nodes, self.first, self.ops
        graph, new = self.graph, cast("Any", tuple).__new__  # what an Output's own does in the end
        devices, shared, append = {b"": ""}, SHARED, nodes.append
        rest: list[bytes] = []
        number = base = at = 0
        total = len(whole)
        data, text, end = b"", "", 0  # the piece that is looked at, which begins at `base`
        while base + at < total:
            if at + _HEAD > end and base + end < total:
                base += at
                at = 0
                data = whole[base : base + _PIECE]
                text, end = data.decode("latin-1"), len(data)
            if data[at] != _NODE:
                field = next(protoscan.fields(whole, base + at, total))
                rest.append(whole[field.start : field.end])
                base, at, end = field.end, 0, 0
                continue
            size = data[at + 1]
            at += 2
            if size > 127:
                if data[at] < 128:  # as nearly always
                    size = size & 127 | data[at] << 7
                    at += 1
                else:
                    size, at = protoscan.varint(data, at - 1, end, end)
            stop = at + size
            if stop > end:
                base += at
                if base + size > total:
                    raise IrregularError
                # of a large node, what stands before its attributes
                data = whole[base : base + (_PIECE if size < _PIECE else self._head(base, base + size) + _HEAD)]
                text, end, at, stop = data.decode("latin-1"), len(data), 0, size
            if data[at] != _NAME:
                raise IrregularError
            length = data[at + 1]
            at += 2
            if length > 127:
                length, at = protoscan.varint(data, at - 1, end, end)
            key = text[at : at + length]
            at += length
            if data[at] != _OP or ":" in key or key[0] == "^":  # such names are not told from inputs
                raise IrregularError
            length = data[at + 1]
            at += 2
            if length > 127:
                length, at = protoscan.varint(data, at - 1, end, end)
            known = ops.get(data[at : at + length])
            if known is None:
                op_text = data[at : at + length]
                known = ops[op_text] = (op_text.decode(), {})
            op, kinds = known
            at += length
            inputs: list[Output] = []
            begin = at
            is_plain = True
            while at < stop and data[at] == _INPUT:
                length = data[at + 1]
                at += 2
                if length > 127:
                    length, at = protoscan.varint(data, at - 1, end, end)
                if is_plain:
                    source = first.get(text[at : at + length])
                    if source is not None:
                        inputs.append(source)
                    else:
                        is_plain = False
                at += length
            behind = at
            device = ""
            if at < stop and data[at] == _DEVICE:
                length, at = protoscan.varint(data, at + 1, end, end)
                device_text = data[at : at + length]
                known_device = devices.get(device_text)
                if known_device is None:
                    known_device = devices[device_text] = device_text.decode()
                device = known_device
                at += length
            if at > stop:
                raise IrregularError
            if stop - at <= shared:
                tail = data[at:stop] if stop <= end else whole[base + at : base + stop]
                kind = kinds.get(tail)
                if kind is None:
                    kind = kinds[tail] = self.kinds.kind(op, tail)
            else:
                kind = self.kinds.own_kind(op, base + at, base + stop)
            node = node_of_kind(graph, number, key if key.isascii() else self._decoded(key), op, device, inputs, kind)
            number += 1
            output = new(Output, (node, 0))
            if first.setdefault(key, output) is not output:
                raise IrregularError  # a name is used twice
            append(node)
            if not is_plain:
                self._link(node, base + begin, base + behind)
            at = stop
        for node, begin, behind in self.late:
            if not self._link_all(node, begin, behind):
                raise IrregularError  # an input that does not exist
        return b"".join(rest)

    def _head(self, start: int, stop: int) -> int:
        """How many bytes of a node are its name, op, inputs and device."""
        for field in protoscan.fields(self.data, start, stop):
            if field.number >= ATTR_NUMBER:
                return field.start - start
        return stop - start

    def _decoded(self, key: str) -> str:
        name = self.odd[key] = key.encode("latin-1").decode()
        return name

    def _link(self, node: Node, begin: int, behind: int) -> None:
        """Link a node some of whose inputs are not output 0 of nodes before it; those that come later when all nodes
        are there."""
        if not self._link_all(node, begin, behind):
            self.late.append((node, begin, behind))

    def _link_all(self, node: Node, at: int, behind: int) -> bool:
        """Link all inputs of a node; False where one of them is not there yet."""
        node.inputs.clear()
        node.control_inputs.clear()
        while at < behind:
            length, at = protoscan.varint(self.data, at + 1, behind, behind)
            if not self._link_one(node, self.data[at : at + length].decode("latin-1")):
                return False
            at += length
        return True

    def _link_one(self, node: Node, text: str) -> bool:
        output = self.first.get(text)
        if output is None:
            name, index = parse_input(text if text.isascii() else text.encode("latin-1").decode())
            found = self.first.get(name if name.isascii() else name.encode().decode("latin-1"))
            if found is None:
                return False
            source = found[0]
            if index < 0:
                node.control_inputs.append(source)
                return True
            # another spelling of the number, "x:01", is another text
            output = found if index == 0 else self.others.setdefault(text, Output(source, index))
        if node.control_inputs:
            raise IrregularError
        node.inputs.append(output)
        return True

    def by_name(self) -> dict[str, Node]:
        """The nodes by their names; takes `first` over, whose outputs are not asked for any more."""
        found = cast("dict[str, Any]", self.first)
        for key, output in found.items():
            found[key] = output[0]
        if self.odd:
            found = {self.odd.get(key, key): node for key, node in found.items()}
        return cast("dict[str, Node]", found)

    def settle(self, rest: GraphDef) -> None:
        """Have nodes that call functions work their types out each for itself, and hear of plugins."""
        functions = {function.signature.name for function in rest.library.function}
        if functions and not functions.isdisjoint(op for op, _ in self.ops.values()):
            for node in self.nodes:
                if node.op in functions:
                    node.invalidate_types()
        if self.kinds.has_plugins:
            opdefs.hear({node.op: node.base for node in self.nodes})
