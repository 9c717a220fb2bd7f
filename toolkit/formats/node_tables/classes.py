"""What static shape inference knows of the nodes of a table, each thing once.

What is known of a node's outputs follows from its kind and from what is known of its inputs. So nodes are put into
classes of which the same is known: shapes, values and what handles hold. Nodes of one kind whose inputs are of the same
classes are one row. A node is made for each row, and its shape function is asked once for all of them
(`toolkit.graph.infer`).
"""

from __future__ import annotations

import marshal
from collections.abc import Callable, Sequence

from toolkit.errors import GraphmillError
from toolkit.formats.node_tables.columns import NodeColumns
from toolkit.graph.dtypes import resource, variant
from toolkit.graph.graph import Graph
from toolkit.graph.infer import ShapeMap
from toolkit.graph.node import Node, Output
from toolkit.graph.shape import SCALAR, UNKNOWN
from toolkit.graph.shapes.calls import Calls, HandleData
from toolkit.graph.values.value import Value

#: a row by what its nodes have in common: their kind, the classes of their inputs, and whatever else tells them apart
RowKey = tuple[int, ...]
#: how values are written to be compared: without references, so that what is the same has the same bytes
_MARSHAL = 2


class Classes:
    """Rows and classes, by number in the order in which they are met.

    Args:
        on_contradiction: see `ShapeMap`.

    Attributes:
        shapes: what is known of the nodes that are made.
        known: rows by key.
        nodes: by row, the one that was made for it; its inputs are nodes made for other rows.
        class_of: by row.
    """

    def __init__(
        self,
        table: NodeColumns,
        graph: Graph,
        calls: Calls,
        on_contradiction: Callable[[Node, GraphmillError], None] | None = None,
    ):
        self._table, self._graph = table, graph
        self.shapes = ShapeMap(calls)
        self.shapes.on_contradiction = on_contradiction
        self.known: dict[RowKey, int] = {}
        self.nodes: list[Node] = []
        self.class_of: list[int] = []
        self._examples: list[Node] = []  # by class
        self._numbers: dict[tuple[object, ...], int] = {}
        self._are_handles: dict[int, tuple[bool, ...] | None] = {}  # by kind

    def find(self, number: int, key: RowKey, inputs: Sequence[tuple[int, int]], *, is_looked_at: bool = False) -> int:
        """The row of a node of whose key nobody has heard yet.

        Args:
            inputs: their classes, and which outputs of them.
            is_looked_at: shape functions look at the node itself, so that only nodes of its kind are of its class.

        Raises:
            GraphmillError: its op is unknown.
        """
        node = self._table.example(self._graph, number)
        node.inputs = [Output(self._examples[at], index) for at, index in inputs]
        self.shapes.visit(node, strict=False)
        kind = int(self._table.kinds.first[self._table.kind[number]])
        if kind not in self._are_handles:
            self._are_handles[kind] = _are_handles(node)
        told = (
            tuple(self.shapes.of(node)), _written(self.shapes.values_of(node)), self.shapes.is_recalled(node),
            *self._held(node), self._are_handles[kind], kind if is_looked_at else None,
        )  # fmt: skip
        found = self._numbers.setdefault(told, len(self._examples))
        return self._append(key, node, found)

    def given_up(self, number: int, key: RowKey) -> int:
        """The row of Merges of which nothing is known but that there are two outputs."""
        node = self._table.example(self._graph, number)
        self.shapes.store(node, [UNKNOWN, SCALAR], {})
        return self._append(key, node, len(self._examples))

    def add(self, node: Node, key: RowKey) -> int:
        """The row of a node that has no other like it."""
        self.shapes.visit(node, strict=False)
        return self._append(key, node, len(self._examples))

    def _append(self, key: RowKey, node: Node, found: int) -> int:
        """A row more, of a class that there is, or of one more."""
        if found == len(self._examples):
            self._examples.append(node)
        row = self.known[key] = len(self.nodes)
        self.nodes.append(node)
        self.class_of.append(found)
        return row

    def _held(self, node: Node) -> list[tuple[object, ...] | None]:
        # each list of what a handle holds is told by its contents
        return [None if held is None else tuple(held) for held in self.handles(node)]

    def handles(self, node: Node) -> list[HandleData | None]:
        """What the handles that a node gives hold, by output."""
        shapes = self.shapes
        return [shapes.handle(Output(node, index)) for index in range(len(shapes.of(node)))]


def _are_handles(node: Node) -> tuple[bool, ...] | None:
    """Which outputs of a node are handles; None where its attributes do not say so."""
    try:
        return tuple(dtype in (resource, variant) for dtype in node.output_types)
    except GraphmillError:
        return None


def _written(values: list[Value | None]) -> bytes:
    """Values as bytes that tell 1 from 1.0 and True, and zeros of either sign."""
    if not any(value is not None for value in values):
        return b""
    return marshal.dumps([None if value is None else tuple(value) for value in values], _MARSHAL)
