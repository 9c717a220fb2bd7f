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
from toolkit.formats import large_constants, protoscan
from toolkit.graph import opdefs
from toolkit.graph.graph import Graph
from toolkit.graph.kinds import NodeKind
from toolkit.graph.node import Node, Output, node_of_kind
from toolkit.graph.tensorref import parse_input

#: bytes of attributes up to which nodes are asked whether another has the same
_SHARED = 256
#: the tags of NodeDef's fields, and of GraphDef's nodes
_NODE, _NAME, _OP, _INPUT, _DEVICE = 0x0A, 0x0A, 0x12, 0x1A, 0x22
_ATTR_NUMBER = 5
#: bytes that are looked at in one piece, so that it stays in the processor's cache; of them at least so many are there
#: where a node begins: its tag and its length
_PIECE, _HEAD = 1 << 16, 16
#: an attribute, how the one called `_class` begins behind its length, a text of a list, and how it begins
_ATTR, _CLASS, _TEXTS, _COLOCATION = 0x2A, b"\n\x06_class\x12", 0x12, b"loc:@"


class _IrregularError(Exception):
    """The bytes are not as serializers write them, or the graph is malformed."""


def read_nodes(data: bytes | mmap.mmap) -> Graph | None:
    """The graph of a serialized GraphDef; None where a parser has to look at it, which knows what is wrong.

    Large constants stay in `data`. A memory map has to be nobody else's: their contents are moved in it.
    """
    graph = Graph()
    reader = _Reader(graph, data)
    try:
        rest = GraphDef.FromString(reader.read())
        if rest.node:
            return None
    except (_IrregularError, DecodeError, UnicodeDecodeError, IndexError, protoscan.WireError):
        return None
    reader.settle(rest)
    if isinstance(data, mmap.mmap):
        large_constants.align(reader.large, data)
    graph.take_over(reader.nodes, reader.by_name(), rest)
    return graph


def class_parts(tail: bytes, known: set[bytes]) -> tuple[bytes, tuple[str, ...], bytes] | None:
    """Where attributes have `_class`, what stands before it, the nodes that it names, and what stands behind it.

    None where there is none, or where it is not a list of names written in few bytes: variables bring thousands of
    nodes that differ in nothing but such a list.

    Args:
        known: bytes that are attributes, as far as they have been met before such a list; more are added.
    """
    start = at = tail.find(_CLASS) - 2
    if start < 0:
        return None
    before = tail[:start]
    if before not in known:
        at = 0
        while at < start:  # the bytes may be within another attribute
            if tail[at] != _ATTR or tail[at + 1] > 127:
                return None
            at += 2 + tail[at + 1]
        if at == start:
            known.add(before)
    if at != start or tail[at] != _ATTR or tail[at + 1] > 127:
        return None
    stop = at + 2 + tail[at + 1]
    at += 2 + len(_CLASS)
    # the length of the value, its list and the length of that
    if stop > len(tail) or stop - at < 3 or tail[at] != stop - at - 1 or tail[at + 1] != 0x0A:
        return None
    if tail[at + 2] != stop - at - 3:
        return None
    at += 3
    names: list[str] = []
    while at < stop:
        if tail[at] != _TEXTS or at + 2 > stop or tail[at + 1] > 127:
            return None
        end = at + 2 + tail[at + 1]
        if end > stop:
            return None
        if tail.startswith(_COLOCATION, at + 2, end):
            names.append(tail[at + 2 + len(_COLOCATION) : end].decode(errors="replace"))
        at = end
    return before, tuple(names), tail[stop:]


class _Reader:
    """Makes the nodes of one graph.

    Texts are taken out of the file as Latin-1, in which each byte is a character: what is ASCII, as nearly all names
    are, is then as it should be, and nothing is decoded name by name.

    Attributes:
        first: output 0 of each node by its name.
        others: other outputs that were asked for, by what they are called in inputs, "name:1".
        odd: names that are not ASCII.
        late: nodes with inputs that come after them, with where their inputs begin and end.
        large: the kinds of large constants, with where their contents begin.
    """

    def __init__(self, graph: Graph, data: bytes | mmap.mmap):
        self.graph = graph
        self.data = cast("bytes", data)  # a memory map is indexed and sliced as bytes are
        self.large: list[tuple[NodeKind, int]] = []
        self.nodes: list[Node] = []
        self.first: dict[str, Output] = {}
        self.others: dict[str, Output] = {}
        self.odd: dict[str, str] = {}
        self.late: list[tuple[Node, int, int]] = []
        self.ops: dict[bytes, tuple[str, dict[bytes, NodeKind]]] = {}
        # kinds by op and what stands before and behind `_class`
        self.classes: dict[tuple[str, bytes, bytes], NodeKind] = {}
        self.before: set[bytes] = set()  # what stands before `_class` anywhere
        self.has_plugins = False

    def read(self) -> bytes:
        """Make all nodes; returns the bytes of what else there is."""
        # one loop with everything in local names: this is done a million times
        whole, nodes, first, ops = self.data, self.nodes, self.first, self.ops
        graph, new = self.graph, cast("Any", tuple).__new__  # what an Output's own does in the end
        devices, shared, append = {b"": ""}, _SHARED, nodes.append
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
                    raise _IrregularError
                # of a large node, what stands before its attributes
                data = whole[base : base + (_PIECE if size < _PIECE else self._head(base, base + size) + _HEAD)]
                text, end, at, stop = data.decode("latin-1"), len(data), 0, size
            if data[at] != _NAME:
                raise _IrregularError
            length = data[at + 1]
            at += 2
            if length > 127:
                length, at = protoscan.varint(data, at - 1, end, end)
            key = text[at : at + length]
            at += length
            if data[at] != _OP or ":" in key or key[0] == "^":  # such names are not told from inputs
                raise _IrregularError
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
                raise _IrregularError
            if stop - at <= shared:
                tail = data[at:stop] if stop <= end else whole[base + at : base + stop]
                kind = kinds.get(tail)
                if kind is None:
                    kind = kinds[tail] = self._kind(op, tail)
            else:
                kind = self._own_kind(op, base + at, base + stop)
            node = node_of_kind(graph, number, key if key.isascii() else self._decoded(key), op, device, inputs, kind)
            number += 1
            output = new(Output, (node, 0))
            if first.setdefault(key, output) is not output:
                raise _IrregularError  # a name is used twice
            append(node)
            if not is_plain:
                self._link(node, base + begin, base + behind)
            at = stop
        for node, begin, behind in self.late:
            if not self._link_all(node, begin, behind):
                raise _IrregularError  # an input that does not exist
        return b"".join(rest)

    def _head(self, start: int, stop: int) -> int:
        """How many bytes of a node are its name, op, inputs and device."""
        for field in protoscan.fields(self.data, start, stop):
            if field.number >= _ATTR_NUMBER:
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
            raise _IrregularError
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

    def _kind(self, op: str, tail: bytes) -> NodeKind:
        parted = class_parts(tail, self.before) if len(tail) <= _SHARED else None
        if parted is not None:
            before, companions, after = parted
            like = self.classes.get((op, before, after))
            if like is not None:
                return like.with_companions(tail, companions)
        kind = self._new_kind(op, tail)
        if parted is not None and kind.attributes == tail:  # in the order in which they are written
            before, kind.companions, after = parted
            self.classes[op, before, after] = kind
        return kind

    def _own_kind(self, op: str, at: int, stop: int) -> NodeKind:
        """The kind of a node whose attributes are many bytes, so that nobody looks for others like it."""
        large = large_constants.constant_kind(op, self.data, at, stop)
        if large is None:
            return self._kind(op, self.data[at:stop])
        self.large.append(large)
        self.has_plugins = self.has_plugins or large[0].names_plugin
        return large[0]

    def _new_kind(self, op: str, tail: bytes) -> NodeKind:
        try:
            kind = NodeKind(op, tail, is_shared=len(tail) <= _SHARED)
        except ValueError:
            raise _IrregularError from None
        # other bytes: written in another order, or with fields of a node among its attributes that are empty
        is_the_same = kind.is_shared and kind.attributes == tail
        if not is_the_same and any(field.number < _ATTR_NUMBER for field in protoscan.fields(tail, 0, len(tail))):
            raise _IrregularError
        self.has_plugins = self.has_plugins or kind.names_plugin
        return kind

    def settle(self, rest: GraphDef) -> None:
        """Have nodes that call functions work their types out each for itself, and hear of plugins."""
        functions = {function.signature.name for function in rest.library.function}
        if functions and not functions.isdisjoint(op for op, _ in self.ops.values()):
            for node in self.nodes:
                if node.op in functions:
                    node.invalidate_types()
        if self.has_plugins:
            opdefs.hear({node.op: node.base for node in self.nodes})
