"""The summary of a graph whose nodes are a table: what `toolkit.graph.summary` finds node by node, column by column."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection

import numpy as np
from numpy.typing import NDArray

from schemas.graph_pb2 import GraphDef
from schemas.node_def_pb2 import NodeDef
from toolkit.formats.node_tables.columns import CONTROL, NodeColumns, ints
from toolkit.graph import summary
from toolkit.graph.graph import Graph
from toolkit.graph.kinds import NodeKind
from toolkit.graph.summary import GraphSummary, VariableSummary


def sample(graph: Graph, table: NodeColumns) -> GraphDef:
    """The GraphDef of a graph with one node of each kind, in the order in which they come, without inputs."""
    message = graph.subgraph(()).to_proto()
    for node in table.examples(graph):
        message.node.add().CopyFrom(_named(node.name, table.kinds.all[int(table.kind[node.id])]))
    return message


def summarize(graph: Graph, table: NodeColumns) -> GraphSummary:
    """What `toolkit.graph.summary.summarize` says of the graph's message."""
    return _Columns(table).result(graph)


def _named(name: str, kind: NodeKind) -> NodeDef:
    """A NodeDef with name, op and attributes."""
    node = NodeDef()
    node.CopyFrom(kind.head)
    node.name, node.op = name, kind.op
    return node


class _Columns:
    """Masks over the nodes of a table."""

    def __init__(self, table: NodeColumns):
        self.table = table
        self.kinds = table.kinds.all
        self.used = table.used_kinds()
        self.is_side = self._where(lambda op: summary.is_on_the_side("", op))
        # few names have what is looked for in them at all
        named = [number for number, name in enumerate(table.names) if summary.GRADIENTS in name]
        self.is_side[[number for number in named if summary.is_on_the_side(table.names[number], "")]] = True
        self.is_variable = self._where(summary.VARIABLES.__contains__)

    def result(self, graph: Graph) -> GraphSummary:
        """The summary."""
        table = self.table
        out = summary.summarize(graph.subgraph(()).to_proto())  # versions and functions
        ops: Counter[str] = Counter()
        frames: Counter[str] = Counter(out.frames)
        counts = ints(np.bincount(table.kind, minlength=len(self.kinds)))
        for number in self.used:
            kind, count = self.kinds[number], counts[number]
            ops[kind.op] += count
            if kind.op == "Const":
                out.count_constants(kind.head, count)
            elif kind.op in summary.ENTER:
                frames[summary.text_of(kind.head, "frame_name")] += count
        devices: Counter[str] = Counter(out.devices)
        for device, count in zip(table.devices, ints(np.bincount(table.device, minlength=len(table.devices)))):  # noqa: B905
            if device and count:
                devices[device] += count
        out.nodes = len(table)
        out.ops, out.devices = summary.by_count(ops), summary.by_count(devices)
        out.frames = dict(sorted(frames.items()))
        out.inputs = [summary.placeholder(self._node(number)) for number in self._places(summary.PLACEHOLDERS)]
        out.variables = self._variables()
        self._ends(out)
        return out

    def _where(self, test: Callable[[str], bool]) -> NDArray[np.bool_]:
        """Of which nodes the op passes a test."""
        passes = {op: test(op) for op in {self.kinds[number].op for number in self.used}}
        column = np.zeros(len(self.kinds), np.bool_)
        column[self.used] = [passes[self.kinds[number].op] for number in self.used]
        return column[self.table.kind]

    def _places(self, ops: Collection[str]) -> list[int]:
        """The nodes of some ops."""
        return ints(np.flatnonzero(self._where(ops.__contains__)))

    def _node(self, number: int) -> NodeDef:
        """A node with its attributes and, as text, its first input."""
        table = self.table
        node = _named(table.names[number], self.kinds[int(table.kind[number])])
        if table.begin[number] < table.begin[number + 1]:
            node.input.append(table.names[int(table.source[table.begin[number]])])
        return node

    def _variables(self) -> list[VariableSummary]:
        found: dict[tuple[str, str], VariableSummary] = {}
        alike: dict[int, tuple[str, str, VariableSummary]] = {}  # by kind
        for number in ints(np.flatnonzero(self.is_variable)):
            kind, name = int(self.table.kind[number]), self.table.names[number]
            known = alike.get(kind)
            if known is None:
                head = self.kinds[kind].head
                texts = summary.text_of(head, "container"), summary.text_of(head, "shared_name")
                known = alike[kind] = *texts, summary.variable(head)
            container, shared, like = known
            key = (container, shared or name)
            if key not in found:
                found[key] = VariableSummary(name, like.dtype, like.shape)
        return list(found.values())

    def _ends(self, out: GraphSummary) -> None:
        table = self.table
        count, owners = len(table), table.owners()
        is_data = table.index != CONTROL
        is_taken, is_touched = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
        is_taken[table.source[is_data & ~self.is_side[owners]]] = True
        is_touched[table.source] = True
        # whose first input is a variable or its value
        reads = self.is_variable | self._where("ReadVariableOp".__eq__)
        reads_variable = np.zeros(count, np.bool_)
        first = table.begin[:-1][table.begin[:-1] < table.begin[1:]]
        reads_variable[owners[first]] = reads[table.source[first]] & (table.index[first] == 0)
        ends = summary.Ends()
        is_effect = self._where(summary.EFFECTS.__contains__)
        is_end = ~(self.is_side | is_taken | self._where(summary.AUXILIARY.__contains__))
        for number in ints(np.flatnonzero(is_effect | is_end)):
            if is_effect[number]:
                ends.add_effect(self._node(number), is_touched=bool(is_touched[number]))
            else:
                ends.add(self._node(number), reads_variable=bool(reads_variable[number]))
        ends.settle(out, lambda: self._carrying(out))

    def _carrying(self, out: GraphSummary) -> set[str]:
        """The nodes that carry values of an input."""
        table = self.table
        owners, numbers = table.owners(), np.arange(len(table.source), dtype=np.int64)
        passes = (table.index != CONTROL) & ~self._where(summary.SHAPES.__contains__)[owners]
        passes &= ~self._where(summary.SWITCHES.__contains__)[owners] | (numbers == table.begin[owners])
        edges = np.flatnonzero(passes)
        edges = edges[np.argsort(table.source[edges], kind="stable")]
        begins = ints(np.searchsorted(table.source[edges], np.arange(len(table) + 1)))
        takers = ints(owners[edges])
        found = bytearray(len(table))
        waiting = [table.numbers[tensor.name] for tensor in out.inputs]
        for number in waiting:
            found[number] = 1
        for number in waiting:  # grows while we walk it
            for taker in takers[begins[number] : begins[number + 1]]:
                if not found[taker]:
                    found[taker] = 1
                    waiting.append(taker)
        return {table.names[number] for number in waiting}
