"""The elements of graphs whose nodes are a table: each is made when somebody asks for it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import TYPE_CHECKING, SupportsIndex

from toolkit.graph.graph import Graph
from toolkit.render.elements import Element, Model

if TYPE_CHECKING:
    from toolkit.formats.node_tables.table import NodeTable


class UnmadeElements:
    """The elements of a model of which most belong to tables.

    Those that are asked for by their ids are kept, so that what is noted at them stays; those that are gone through
    are not.
    """

    def __init__(self, model: Model):
        self._names, self._homes = model.names, model.homes
        self._made: dict[int, Element] = {element.id: element for element in model.elements}
        self._count = len(model.elements)
        self._begins: list[int] = []
        self._graphs: list[tuple[Graph, NodeTable]] = []

    def extend(self, graph: Graph, table: NodeTable) -> None:
        """Have elements for all nodes of a graph, whose names and homes the model has."""
        self._begins.append(self._count)
        self._graphs.append((graph, table))
        self._count += len(table)

    def append(self, element: Element) -> None:
        self._made[self._count] = element
        self._count += 1

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Element]:
        for number in range(self._count):
            made = self._made.get(number)
            yield self._make(number) if made is None else made

    def __getitem__(self, number: SupportsIndex) -> Element:
        place = number.__index__()
        found = self._made.get(place)
        if found is None:
            found = self._made[place] = self._make(place)
        return found

    def _make(self, number: int) -> Element:
        if not 0 <= number < self._count:
            raise IndexError(number)
        at = bisect_right(self._begins, number) - 1
        graph, table = self._graphs[at]
        return Element(number, self._names[number], table.example(graph, number - self._begins[at]), self._homes)
