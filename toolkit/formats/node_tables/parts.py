"""Some of the nodes of a table, with nodes that were made or changed, as a table of their own.

Nodes that stayed as they are keep their bytes where they are; the others bring theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from schemas.node_def_pb2 import NodeDef
from toolkit.formats.models.kind_bytes import KindReader
from toolkit.formats.models.protoscan import varint_bytes
from toolkit.formats.node_tables.columns import CONTROL, Kinds, ints
from toolkit.formats.node_tables.table import NodeTable
from toolkit.graph.kinds import NodeKind
from toolkit.graph.node import Node
from toolkit.graph.nodedefs import node_to_proto

_Number = TypeVar("_Number", np.int32, np.int64)
_NODE, _NAME, _OP, _INPUT, _DEVICE = b"\x0a", b"\x0a", b"\x12", b"\x1a", b"\x22"


@dataclass(frozen=True, slots=True)
class AddedRow:
    """A node that brings its own bytes.

    Attributes:
        node: whose inputs are nodes of its table by their names.
        kind, device: by number.
        tag, start, tail, stop: as in `NodeColumns`.
    """

    node: Node
    kind: int
    device: int
    tag: int
    start: int
    tail: int
    stop: int


class TableExtension:
    """What nodes that were made or changed add to the kinds, the devices and the bytes of a table."""

    def __init__(self, table: NodeTable):
        self._table = table
        self._reader = KindReader(b"")
        self._kinds: list[NodeKind] = list(table.kinds.all)
        self._first: list[int] = []
        self._new: dict[tuple[str, bytes], int] = {}
        self._by_id: dict[int, int] = {}  # numbers of kinds that others are like
        self._devices = {name: number for number, name in enumerate(table.devices)}
        self._pieces: list[bytes] = [table.more]
        self._end = len(table.data) + 1 + len(table.more)

    def add(self, node: Node, like: int | None = None) -> AddedRow:
        """The row of a node.

        Args:
            like: the node of the table that it was made of; its attributes are the same unless they were changed.
        """
        if like is not None and not node.changed_attrs:
            number = int(self._table.kind[like])
            attributes = self._kinds[number].attributes
        else:
            attributes = _attributes(node)
            number = self._new_kind(node.op, attributes)
        inputs = (part for text in node.input_refs() for part in (_INPUT, _sized(text.encode())))
        head = [_NAME, _sized(node.name.encode()), _OP, _sized(node.op.encode()), *inputs]
        if node.device:
            head += (_DEVICE, _sized(node.device.encode()))
        before = b"".join(head)
        prefix = _NODE + varint_bytes(len(before) + len(attributes))
        tag = self._end
        start = tag + len(prefix)
        tail = start + len(before)
        self._pieces += (prefix, before, attributes)
        self._end = tail + len(attributes)
        device = self._devices.setdefault(node.device, len(self._devices))
        return AddedRow(node, number, device, tag, start, tail, self._end)

    def _new_kind(self, op: str, attributes: bytes) -> int:
        number = len(self._kinds)
        known = self._new.setdefault((op, attributes), number)
        if known != number:
            return known
        kind = self._reader.kind(op, attributes)
        self._kinds.append(kind)
        if kind.like is None:
            self._by_id[id(kind)] = number
            self._first.append(number)
        else:
            self._first.append(self._by_id[id(kind.like)])
        return number

    def finished(self) -> ExtendedTable:
        """What tables are made of, once all rows are there."""
        old = self._table.kinds
        new = self._kinds[len(old.all) :]
        kinds = Kinds(
            self._kinds,
            np.concatenate((old.first, np.array(self._first, np.int32))),
            np.concatenate((old.are_written, np.ones(len(new), np.bool_))),
        )
        return ExtendedTable(self._table, kinds, list(self._devices), b"".join(self._pieces), self._table.owners())


@dataclass(eq=False)
class ExtendedTable:
    """A table with more kinds, devices and bytes than its nodes have.

    Attributes:
        owners: the node that each edge of the table leads into.
    """

    table: NodeTable
    kinds: Kinds
    devices: list[str]
    more: bytes
    owners: NDArray[np.int32]

    def part(self, chosen: NDArray[np.bool_], changed: Mapping[int, AddedRow], added: Sequence[AddedRow]) -> NodeTable:
        """The table of some nodes.

        Args:
            chosen: which; those that are not changed read no others.
            changed: the rows of some of them, by place in the table.
            added: rows that come behind all.
        """
        table = self.table
        places = np.flatnonzero(chosen)
        new = np.full(len(table), -1, np.int32)
        new[places] = np.arange(len(places), dtype=np.int32)
        names = [table.names[number] for number in ints(places)] + [row.node.name for row in added]
        numbers = dict(zip(names, range(len(names)), strict=True))
        rows = [*((int(new[number]), row) for number, row in changed.items()), *enumerate(added, len(places))]
        is_kept = chosen.copy()
        is_kept[list(changed)] = False
        edges = np.flatnonzero(is_kept[self.owners] & chosen[table.source])
        owner, source, index = new[self.owners[edges]], new[table.source[edges]], table.index[edges]
        if rows:
            more = np.array([edge for at, row in rows for edge in _edges(at, row.node, numbers)], np.int32)
            more = more.reshape(-1, 3).T
            owner, source, index = (np.concatenate(pair) for pair in zip((owner, source, index), more, strict=True))
            order = np.argsort(owner, kind="stable")
            owner, source, index = owner[order], source[order], index[order]
        begin = np.zeros(len(names) + 1, np.int64)
        np.cumsum(np.bincount(owner, minlength=len(names)), out=begin[1:])
        at = [number for number, _ in rows]

        def column(old: NDArray[_Number], values: Iterable[int]) -> NDArray[_Number]:
            out = np.concatenate((old[places], np.zeros(len(added), old.dtype)))
            out[at] = list(values)
            return out

        of_rows = [row for _, row in rows]
        device = column(table.device, (row.device for row in of_rows))
        written = table.written_device
        return NodeTable(
            table.data, names, numbers,
            column(table.tag, (row.tag for row in of_rows)),
            column(table.start, (row.start for row in of_rows)),
            column(table.tail, (row.tail for row in of_rows)),
            column(table.stop, (row.stop for row in of_rows)),
            self.kinds, column(table.kind, (row.kind for row in of_rows)), self.devices, device,
            begin, source, index, table.functions,
            None if written is None else column(written, (row.device for row in of_rows)), self.more,
        )  # fmt: skip


def _edges(at: int, node: Node, numbers: Mapping[str, int]) -> list[tuple[int, int, int]]:
    """The edges into a node: it, the source, the output."""
    data = [(at, numbers[source.name], index) for source, index in node.inputs]
    return data + [(at, numbers[source.name], CONTROL) for source in node.control_inputs]


def _attributes(node: Node) -> bytes:
    """What stands behind the device of a node."""
    message = NodeDef()
    message.CopyFrom(node_to_proto(node))
    for field in ("name", "op", "input", "device"):
        message.ClearField(field)
    return message.SerializeToString(deterministic=True)


def _sized(data: bytes) -> bytes:
    return varint_bytes(len(data)) + data
