"""A table of nodes from the bytes of a GraphDef of very many nodes.

What `formats.models.node_bytes` takes apart node by node is taken apart here for thousands of nodes at once: where
fields begin and end is found with arrays, names and kinds by one look into a dictionary each. Whatever is not usual,
such as names that are not ASCII, is left to the other readers, which know what is wrong.
"""

from __future__ import annotations

import mmap
from typing import cast

import numpy as np
from numpy.typing import NDArray

from schemas.graph_pb2 import GraphDef
from toolkit.formats.models import protoscan
from toolkit.formats.models.kind_bytes import SHARED, IrregularError, KindReader
from toolkit.formats.node_tables.columns import CONTROL, Kinds, ints
from toolkit.formats.node_tables.table import NodeTable
from toolkit.graph.kinds import NodeKind
from toolkit.graph.tensorref import parse_input

#: bytes that are looked at together, so that what is found of them stays in the processor's cache
_PIECE = 1 << 20
#: nodes that are gone on with one by one, where only so few have one more input: arrays cost more then
_FEW = 16
_NODE, _NAME, _OP, _INPUT, _DEVICE = 0x0A, 0x0A, 0x12, 0x1A, 0x22
_CARET, _COLON, _ZERO, _NINE = ord("^"), ord(":"), ord("0"), ord("9")

Places = NDArray[np.int64]


def read_table(data: bytes | mmap.mmap, at_least: int) -> tuple[NodeTable, GraphDef, KindReader] | None:
    """The nodes of a serialized GraphDef, what else there is, and what read their attributes; None where there are
    fewer nodes.

    Raises:
        IrregularError, WireError, IndexError, UnicodeDecodeError, DecodeError: another reader has to look at it.
    """
    whole = cast("bytes", data)  # a memory map is indexed and sliced as bytes are
    tags, starts, stops, rest = _boundaries(whole)
    if len(starts) < at_least:
        return None
    others = GraphDef.FromString(rest)
    functions = [each.signature.name for each in others.library.function]
    if others.node or len(set(functions)) != len(functions):
        raise IrregularError
    places = [np.array(each, np.int64) for each in (tags, starts, stops)]
    del tags, starts, stops
    reader = _TableReader(whole, *places)
    table = reader.read(frozenset(functions))
    return table, others, reader.kinds


def _boundaries(data: bytes) -> tuple[list[int], list[int], list[int], bytes]:
    """Where the field and the message of each node begin, and where they end; and what is between them."""
    tags: list[int] = []
    starts: list[int] = []
    stops: list[int] = []
    rest: list[bytes] = []
    at, total = 0, len(data)
    while at < total:
        if data[at] != _NODE:
            field = next(protoscan.fields(data, at, total))
            rest.append(data[field.start : field.end])
            at = field.end
            continue
        tags.append(at)
        size = data[at + 1]
        at += 2
        if size > 127:
            second = data[at]
            if 0 < second < 128:
                size = size & 127 | second << 7
                at += 1
            else:
                before = at - 1
                size, at = protoscan.varint(data, before, total, total)
                if at - before != len(protoscan.varint_bytes(size)):
                    raise IrregularError
        starts.append(at)
        at += size
        stops.append(at)
    if at != total:
        raise IrregularError
    return tags, starts, stops, b"".join(rest)


class _TableReader:
    """Reads the nodes of one graph, piece by piece.

    Attributes:
        kinds: what reads attributes.
    """

    def __init__(self, data: bytes, tag: Places, start: Places, stop: Places):
        self._data = data
        self._tag, self._start, self._stop = tag, start, stop
        self._tail = np.empty_like(start)
        self.kinds = KindReader(data)
        self._names: list[str] = []
        self._numbers: dict[str, int] = {}
        self._known: dict[bytes, int] = {}  # kinds by op, with its length, and attributes
        self._all: list[NodeKind] = []
        self._by_id: dict[int, int] = {}  # the numbers of those that others are like
        self._first: list[int] = []
        self._are_written: list[bool] = []
        self._kind: list[NDArray[np.int32]] = []
        self._devices: dict[bytes, int] = {b"": 0}
        self._device: list[NDArray[np.int32]] = []
        # of edges: how many each node has, where they come from and which outputs they are
        self._counts: list[Places] = []
        self._source: list[NDArray[np.int32]] = []
        self._index: list[NDArray[np.int32]] = []
        self._edges = 0
        #: edges from nodes that come later, or written in a rare way, with what they are called
        self._late: list[tuple[int, str]] = []

    def read(self, functions: frozenset[str]) -> NodeTable:
        """Read all nodes.

        Args:
            functions: the names of the graph's.
        """
        total = len(self._start)
        begin = 0
        while begin < total:
            end = int(np.searchsorted(self._stop, int(self._start[begin]) + _PIECE, side="right"))
            end = max(begin + 1, min(end, total))
            self._piece(begin, end)
            begin = end
        if len(self._numbers) != total:
            raise IrregularError  # a name is used twice
        source, index = np.concatenate(self._source), np.concatenate(self._index)
        counts = np.concatenate(self._counts)
        offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts)))
        self._link_late(source, index)
        controls = np.flatnonzero(index[:-1] == CONTROL)
        # a data edge behind one that carries nothing, where both lead into one node
        followed = controls[index[controls + 1] != CONTROL] + 1
        if len(followed) and not np.isin(followed, offsets).all():
            raise IrregularError
        kinds = Kinds(self._all, np.array(self._first, np.int32), np.array(self._are_written, np.bool_))
        return NodeTable(
            self._data, self._names, self._numbers, self._tag, self._start, self._tail, self._stop,
            kinds, np.concatenate(self._kind), [device.decode() for device in self._devices],
            np.concatenate(self._device), offsets, source, index, functions,
        )  # fmt: skip

    def _piece(self, begin: int, end: int) -> None:
        """Read the nodes from `begin` to `end`."""
        base = int(self._start[begin])
        head = int(self._stop[end - 1]) - base
        if head > _PIECE:  # one large node
            head = _head(self._data, base, int(self._stop[begin]))
        raw = self._data[base : base + head] + bytes(16)  # so that what is behind the end may be looked at
        array = np.frombuffer(raw, np.uint8)
        at, stop = self._start[begin:end] - base, self._stop[begin:end] - base
        name, name_end = _text(array, at, _NAME)
        op, op_end = _text(array, name_end, _OP)
        if (name == name_end).any() or (op == op_end).any() or (op_end > stop).any():
            raise IrregularError
        at = op_end.copy()
        counts = np.zeros(end - begin, np.int64)
        edges = _inputs(array, at, stop, counts)
        has_device = np.flatnonzero((at < stop) & (array[np.minimum(at, head)] == _DEVICE))
        device, device_end = _text(array, at[has_device], _DEVICE)
        at[has_device] = device_end
        if (device == device_end).any() or (at > stop).any():
            raise IrregularError
        self._tail[begin:end] = at + base
        text = raw.decode("latin-1")
        names = [text[a:b] for a, b in zip(name.tolist(), name_end.tolist(), strict=True)]
        joined = "".join(names)
        if not joined.isascii() or ":" in joined or (array[name] == _CARET).any():
            raise IrregularError  # ":" and "^" are not told from inputs
        self._names += names
        self._numbers.update(zip(names, range(begin, end), strict=True))
        self._add_devices(raw, has_device, device, device_end, end - begin)
        self._add_kinds(raw, base, name_end + 1, op, op_end, at, stop)
        self._add_edges(text, array, *edges)
        self._counts.append(counts)

    def _add_devices(self, raw: bytes, nodes: Places, begin: Places, end: Places, count: int) -> None:
        column = np.zeros(count, np.int32)
        known = self._devices
        column[nodes] = [
            known.setdefault(raw[a:b], len(known)) for a, b in zip(begin.tolist(), end.tolist(), strict=True)
        ]
        self._device.append(column)

    def _add_kinds(
        self, raw: bytes, base: int, length: Places, op: Places, op_end: Places, tail: Places, stop: Places
    ) -> None:
        get = self._known.get
        # the whole length before an op keeps it apart from attributes
        spans = list(zip(length.tolist(), op_end.tolist(), tail.tolist(), stop.tolist(), strict=True))
        if int((stop - tail).max()) <= SHARED:
            found = [get(raw[a:b] + raw[c:d], -1) for a, b, c, d in spans]
        else:
            found = [get(raw[a:b] + raw[c:d], -1) if d - c <= SHARED else -1 for a, b, c, d in spans]
        column = np.array(found, np.int32)
        for place in ints(np.flatnonzero(column < 0)):
            column[place] = self._new_kind(raw, base, int(op[place]), *spans[place])
        self._kind.append(column)

    def _new_kind(self, raw: bytes, base: int, op: int, length: int, op_end: int, tail: int, stop: int) -> int:
        """The number of a kind that has not been met before this piece.

        Args:
            length: where the length of the op stands.
        """
        name, number = raw[op:op_end].decode(), len(self._all)
        if stop - tail > SHARED:
            kind, is_written = self.kinds.own_kind(name, base + tail, base + stop), False
        else:
            attributes = raw[tail:stop]
            key = raw[length:op_end] + attributes
            if self._known.setdefault(key, number) != number:
                return self._known[key]
            kind = self.kinds.kind(name, attributes)
            is_written = kind.attributes == attributes
        self._all.append(kind)
        self._are_written.append(is_written)
        if kind.like is None:
            self._by_id[id(kind)] = number
            self._first.append(number)
        else:
            self._first.append(self._by_id[id(kind.like)])
        return number

    def _add_edges(self, text: str, array: NDArray[np.uint8], begin: Places, end: Places) -> None:
        index = np.zeros(len(begin), np.int32)
        is_control = array[begin] == _CARET
        index[is_control] = CONTROL
        begin = begin + is_control
        digit = array[end - 1]
        # ":1" to ":9"; all else behind a colon is looked at by itself
        is_other = (array[end - 2] == _COLON) & (digit > _ZERO) & (digit <= _NINE) & (end - begin > 2) & ~is_control
        index[is_other] = digit[is_other] - _ZERO
        stop = end - 2 * is_other
        get = self._numbers.get
        found = [get(text[a:b], -1) for a, b in zip(begin.tolist(), stop.tolist(), strict=True)]
        source = np.array(found, np.int32)
        for place in ints(np.flatnonzero(source < 0)):
            a, b = int(begin[place]) - int(is_control[place]), int(end[place])
            self._late.append((self._edges + place, text[a:b]))
        self._source.append(source)
        self._index.append(index)
        self._edges += len(found)

    def _link_late(self, source: NDArray[np.int32], index: NDArray[np.int32]) -> None:
        """Find the nodes that stood behind those that read them."""
        for edge, called in self._late:
            name, number = parse_input(called)
            found = self._numbers.get(name)
            # an output as it is not written: "x:0", "x:01"
            if found is None or (":" in called and called != f"{name}:{number or ''}"):
                raise IrregularError
            source[edge], index[edge] = found, number


def _head(data: bytes, start: int, stop: int) -> int:
    """How many bytes of a node stand before its attributes."""
    for field in protoscan.fields(data, start, stop):
        if field.number > _DEVICE >> 3:
            return field.start - start
    return stop - start


def _text(array: NDArray[np.uint8], at: Places, tag: int) -> tuple[Places, Places]:
    """Where texts behind this tag begin and end.

    Raises:
        IrregularError: one has another tag, or a length of more than two bytes.
    """
    if (array[at] != tag).any():
        raise IrregularError
    length = array[at + 1].astype(np.int64)
    begin = at + 2
    long = np.flatnonzero(length > 127)
    if len(long):
        second = array[begin[long]].astype(np.int64)
        if (second > 127).any() or (second == 0).any():
            raise IrregularError
        length[long] = length[long] & 127 | second << 7
        begin[long] += 1
    return begin, begin + length


def _inputs(array: NDArray[np.uint8], at: Places, stop: Places, counts: Places) -> tuple[Places, Places]:
    """Where the texts of the inputs begin and end, node by node.

    Args:
        at: where the inputs of each node begin; becomes where they end.
        counts: zeros; becomes how many there are of each node.
    """
    found: list[tuple[Places, Places, Places, Places]] = []  # nodes, number of the input, begin, end
    todo = np.flatnonzero((at < stop) & (array[np.minimum(at, len(array) - 1)] == _INPUT))
    number = 0
    while len(todo) > _FEW:
        begin, end = _text(array, at[todo], _INPUT)
        found.append((todo, np.full(len(todo), number, np.int64), begin, end))
        at[todo] = end
        number += 1
        counts[todo] = number
        todo = todo[(end < stop[todo]) & (array[np.minimum(end, len(array) - 1)] == _INPUT)]
    rows: list[tuple[int, int, int, int]] = []
    for node in todo.tolist():
        here, limit, each = int(at[node]), int(stop[node]), number
        while here < limit and array[here] == _INPUT:
            length, begin_one = int(array[here + 1]), here + 2
            if length > 127:
                second = int(array[begin_one])
                if not 0 < second < 128:
                    raise IrregularError
                length, begin_one = length & 127 | second << 7, begin_one + 1
            here = begin_one + length
            rows.append((node, each, begin_one, here))
            each += 1
        at[node], counts[node] = here, each
    if rows:
        found.append(cast("tuple[Places, Places, Places, Places]", tuple(np.array(rows, np.int64).T)))
    total = int(counts.sum())
    begins, ends = np.empty(total, np.int64), np.empty(total, np.int64)
    first = np.cumsum(counts) - counts
    for nodes, each, begin, end in found:
        place = first[nodes] + each
        begins[place], ends[place] = begin, end
    if (ends > len(array) - 16).any() or (begins >= ends).any():
        raise IrregularError
    return begins, ends
