"""The nodes of a large graph as columns of numbers: what each is, where it stands in its file, and what it reads."""

from __future__ import annotations

import mmap
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolkit.errors import GraphmillError
from toolkit.graph.graph import Graph
from toolkit.graph.kinds import NodeKind
from toolkit.graph.node import Node, lone_node, node_of_kind

#: the index of an edge that carries no tensor
CONTROL = -1
#: nodes that are gone through together
_CHUNK = 1 << 16


@dataclass(eq=False)
class Kinds:
    """The kinds of a file's nodes.

    Attributes:
        all: by number.
        first: for each kind the number of the one that it is like but for the names in `_class`: often its own.
        are_written: whether attributes stand in the file as they are written.
    """

    all: list[NodeKind]
    first: NDArray[np.int32]
    are_written: NDArray[np.bool_]


@dataclass(eq=False)
class NodeColumns:
    """What nodes are, by their place.

    Attributes:
        data: the bytes of the file.
        more: bytes of nodes that came since; they count from one behind the end of `data`.
        names: in order.
        numbers: the place of each by its name.
        tag, start, tail, stop: int64, where in `data` the node's field begins, its message, its attributes, and where
            it ends.
        kinds: what nodes have in common, for the whole file.
        kind: int32, by number in `kinds`.
        devices: what devices there are, for the whole file.
        device: int32, by number in `devices`.
        written_device: int32, the same as the bytes have it: nodes may have been placed since.
        glanced: the nodes that somebody has looked at, by place.
        begin: int64, one more than there are nodes: where the edges into each begin.
        source: int32, the node that each edge comes from, data edges first.
        index: int32, which of its outputs; `CONTROL`.
        functions: the names of the graph's functions: nodes that call one by its name have no types of their own.
    """

    data: bytes | mmap.mmap
    names: list[str]
    numbers: dict[str, int]
    tag: NDArray[np.int64]
    start: NDArray[np.int64]
    tail: NDArray[np.int64]
    stop: NDArray[np.int64]
    kinds: Kinds
    kind: NDArray[np.int32]
    devices: list[str]
    device: NDArray[np.int32]
    begin: NDArray[np.int64]
    source: NDArray[np.int32]
    index: NDArray[np.int32]
    functions: frozenset[str] = frozenset()
    written_device: NDArray[np.int32] | None = None
    more: bytes = b""
    glanced: dict[int, Node] = field(default_factory=dict[int, Node])

    def __len__(self) -> int:
        return len(self.names)

    def owners(self) -> NDArray[np.int32]:
        """The node that each edge leads into."""
        return np.repeat(np.arange(len(self), dtype=np.int32), np.diff(self.begin))

    def data_counts(self) -> NDArray[np.int64]:
        """How many data edges lead into each node."""
        before = np.concatenate((np.zeros(1, np.int64), np.cumsum(self.index != CONTROL)))
        return before[self.begin[1:]] - before[self.begin[:-1]]

    def bytes_at(self, begin: int, end: int) -> bytes:
        """The bytes from a place to another, both within what was read or both within what came since."""
        size = len(self.data)
        return self.data[begin:end] if begin <= size else self.more[begin - size - 1 : end - size - 1]

    def companions(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Pairs of nodes: one whose `_class` names another, and that one, both by place.

        All must be there (`has_companions`)."""
        used = self.used_kinds()
        named = {number: kind.companions for number in used if (kind := self.kinds.all[number]).companions}
        counts = np.zeros(len(self.kinds.all), np.int64)
        for number, names in named.items():
            counts[number] = len(names)
        places = np.array([self.numbers[name] for names in named.values() for name in names], np.int64)
        first = np.cumsum(counts) - counts  # where the places of each kind begin: `named` is in their order
        nodes = np.flatnonzero(counts[self.kind])
        kinds = self.kind[nodes]
        owners = np.repeat(nodes, counts[kinds])
        offsets = np.arange(len(owners), dtype=np.int64) - np.repeat(
            np.cumsum(counts[kinds]) - counts[kinds], counts[kinds]
        )
        return owners, places[np.repeat(first[kinds], counts[kinds]) + offsets]

    def nodes_of(self, graph: Graph, ops: Collection[str]) -> Sequence[Node]:
        """See `UnmadeNodes.nodes_of`."""
        return [self.example(graph, number) for number in ints(np.flatnonzero(self.has_op(ops)))]

    def nodes_on(self, graph: Graph, devices: Collection[str]) -> Sequence[Node]:
        """See `UnmadeNodes.nodes_on`."""
        is_there = np.array([name in devices for name in self.devices], np.bool_)[self.device]
        return [self.example(graph, number) for number in ints(np.flatnonzero(is_there))]

    def device_names(self) -> set[str]:
        """See `UnmadeNodes.device_names`."""
        return {self.devices[number] for number in self.used_devices()}

    def used_kinds(self) -> list[int]:
        """The numbers of the kinds that nodes have."""
        return ints(np.flatnonzero(np.bincount(self.kind, minlength=len(self.kinds.all))))

    def first_counts(self) -> list[int]:
        """How many nodes there are of each kind with those that are like it (`Kinds.first`), by number."""
        return ints(np.bincount(self.kinds.first[self.kind], minlength=len(self.kinds.all)))

    def used_devices(self) -> list[int]:
        """The numbers of the devices that nodes ask for."""
        return ints(np.flatnonzero(np.bincount(self.device, minlength=len(self.devices))))

    def has_op(self, ops: Collection[str]) -> NDArray[np.bool_]:
        """Which nodes are of some ops."""
        return np.array([kind.op in ops for kind in self.kinds.all], np.bool_)[self.kind]

    def example(self, graph: Graph, number: int) -> Node:
        """A node like one of these, in no graph's list, and without inputs."""
        kind = self.kinds.all[int(self.kind[number])]
        node = node_of_kind(
            graph, number, self.names[number], kind.op, self.devices[int(self.device[number])], [], kind
        )
        if kind.op in self.functions:
            node.invalidate_types()
        return node

    def glance(self, graph: Graph, name: str) -> Node | None:
        """See `UnmadeNodes.glance`."""
        number = self.numbers.get(name)
        if number is None:
            return None
        node = self.glanced.get(number)
        if node is None:
            kind = self.kinds.all[int(self.kind[number])]
            node = lone_node(graph, number, name, self.devices[int(self.device[number])], kind)
            if kind.op in self.functions:
                node.invalidate_types()
            self.glanced[number] = node
        return node

    def are_unchanged(self) -> bool:
        """Whether nobody has changed the nodes that were looked at."""
        return all(
            node.changed_attrs is None
            and node.source is (kind := self.kinds.all[int(self.kind[number])])
            and node.op == kind.op
            and node.name == self.names[number]
            and node.device == self.devices[int(self.device[number])]
            for number, node in self.glanced.items()
        )

    def examples(self, graph: Graph) -> Sequence[Node]:
        """See `UnmadeNodes.examples`."""
        _, places = np.unique(self.kinds.first[self.kind], return_index=True)
        return [self.example(graph, number) for number in sorted(ints(places))]

    def upstream(
        self, roots: Iterable[int], source: NDArray[np.int32] | None = None, outside: int = 0
    ) -> NDArray[np.bool_]:
        """Which nodes these need, themselves among them.

        Args:
            source: by edge, in the place of the table's own.
            outside: how many numbers behind those of the nodes stand in `source` for what comes from elsewhere.
        """
        begins, sources = ints(self.begin), ints(self.source if source is None else source)
        needed = bytearray(len(self)) + b"\1" * outside
        stack = list(dict.fromkeys(roots))
        for root in stack:
            needed[root] = 1
        while stack:
            at = stack.pop()
            for each in sources[begins[at] : begins[at + 1]]:
                if not needed[each]:
                    needed[each] = 1
                    stack.append(each)
        return np.frombuffer(needed, np.bool_)[: len(self)]

    def has_output(self, graph: Graph, name: str, index: int) -> bool:
        """See `UnmadeNodes.has_output`."""
        number = self.numbers.get(name)
        try:
            return number is not None and 0 <= index < self.example(graph, number).num_outputs
        except GraphmillError:
            return False

    def has_companions(self) -> bool:
        """Whether all nodes are there that `_class` names; False where nobody has looked which they are."""
        numbers = self.numbers
        for kind in map(self.kinds.all.__getitem__, self.used_kinds()):
            if kind.companions is None or (kind.companions and not all(name in numbers for name in kind.companions)):
                return False
        return True


def ints(column: NDArray[Any]) -> list[int]:
    """The numbers of a column."""
    return column.tolist()


def chunks(count: int) -> Iterator[slice]:
    """The places of all nodes, some at a time, so that little is there beside them."""
    for begin in range(0, count, _CHUNK):
        yield slice(begin, min(begin + _CHUNK, count))
