"""Costs of a graph whose nodes are a table, none of which is made for it (`toolkit.passes.measuring.measure`).

Nodes of one row (`formats.node_tables.classes`) cost the same, so the tables of operations are asked once for each.
What depends on the order of nodes is numbers that are summed up along it. Only variables, of which some stand for the
same, and nodes that call functions are gone through one by one.
"""

from __future__ import annotations

import heapq
from collections.abc import Generator, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolkit.formats.node_tables.columns import CONTROL, NodeColumns, ints
from toolkit.formats.node_tables.infer import TableShapes, infer_table
from toolkit.formats.node_tables.order import topological_order
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node
from toolkit.graph.shapes.calls import Calls
from toolkit.passes.measuring.body_costs import (
    VARIABLES,
    BodyCosts,
    Cost,
    Measuring,
    Task,
    Variable,
    called_by,
    constant_bytes,
    constant_weights,
    counted_of,
    scopes_of,
)
from toolkit.passes.measuring.operations import VIEWS, is_countable, operations

#: sums of columns beyond this are made of Python's numbers: shapes in a file may say anything
_LARGEST = 1 << 62


def survey_table(graph: Graph) -> TableSurvey | None:
    """The order of a graph's nodes; None where they are no table.

    Raises:
        GraphError: there is a cycle outside a loop.
    """
    table = graph.unmade
    return TableSurvey(graph, table) if isinstance(table, NodeColumns) else None


def largest_constants(graph: Graph, count: int) -> list[Node] | None:
    """The constants of a graph with the most bytes, at most so many; None where the nodes are no table.

    They are in no graph's list, and without inputs.
    """
    table = graph.unmade
    if not isinstance(table, NodeColumns):
        return None
    is_constant = table.has_op(("Const",))
    sizes = np.full(len(table.kinds.all), -1, np.int64)  # by kind
    kinds, firsts = np.unique(table.kind[is_constant], return_index=True)
    for number, place in zip(ints(kinds), ints(np.flatnonzero(is_constant)[firsts]), strict=True):
        size = constant_bytes(table.example(graph, place))
        sizes[number] = -1 if size is None else size
    held = sizes[table.kind]
    least = max(0, int(np.partition(held, -count)[-count])) if len(held) > count else 0
    largest = heapq.nsmallest(
        count, ints(np.flatnonzero(held >= least)), key=lambda place: (-int(held[place]), table.names[place])
    )
    return [table.example(graph, place) for place in largest]


class TableSurvey:
    """The order of the nodes of a table, and their static shapes.

    Raises:
        GraphError: there is a cycle outside a loop.
    """

    def __init__(self, graph: Graph, table: NodeColumns):
        self._graph, self._table = graph, table
        self._order = topological_order(table)
        self._shapes: TableShapes | None = None

    @property
    def is_inferred(self) -> bool:
        """Whether the shapes have been found."""
        return self._shapes is not None

    def infer(self, calls: Calls) -> bool:
        """Find the shapes; False where that has to be done node by node.

        Args:
            calls: what is known of functions; as before where the result is False.

        Raises:
            GraphmillError: an op is unknown.
        """
        if self._shapes is None:
            trial = calls.copy()
            self._shapes = infer_table(self._table, self._graph, trial, self._order)
            if self._shapes is not None:
                calls.take(trial)
        return self._shapes is not None

    def body(self, run: Measuring, roots: Iterable[str] | None) -> Task:
        """See `Survey.body`."""
        assert self._shapes is not None
        order = np.array(self._order, np.int64)
        if roots is not None:
            numbers = self._table.numbers
            order = order[self._table.upstream(numbers[name] for name in roots if name in numbers)[order]]
        return _BodyOfTable(self._graph, self._table, self._shapes, order).measured(run)


class _BodyOfTable(BodyCosts):
    """Nodes of a table.

    Args:
        order: the places of those that are measured, in topological order.
    """

    def __init__(self, graph: Graph, table: NodeColumns, found: TableShapes, order: NDArray[np.int64]):
        super().__init__()
        self._graph, self._table, self._found, self._order = graph, table, found, order
        self._row = found.row[order]
        self._count = ints(np.bincount(self._row, minlength=len(found.nodes)))
        self._flops = [0] * len(found.nodes)  # by row
        self._bytes = [0] * len(found.nodes)
        self._parameters = [0] * len(table.kinds.all)  # of constants, by kind
        self._variables: dict[int, int] = {}  # parameters of variables, by place

    def measured(self, run: Measuring) -> Task:
        """Measure the nodes."""
        nodes, shapes = self._found.nodes, self._found.shapes
        for row, count in enumerate(self._count):
            if count:
                node = nodes[row]
                self._flops[row] = flops = operations(node, shapes, run.batch)
                self._bytes[row] = run.bytes_of(node, shapes)
                run.shapeless += count * (not flops and not is_countable(node, shapes))
                self.own.add(Cost(count, count * flops, 0, count * self._bytes[row]))
        self._count_constants(run)
        inside = yield from self._one_by_one(run)
        self.peak = self._highest(inside)
        self.total.add(self.own)
        run.finished.append(self)
        return self

    def _count_constants(self, run: Measuring) -> None:
        table, kinds = self._table, self._table.kind[self._order]
        counts = ints(np.bincount(kinds, minlength=len(table.kinds.all)))
        numbers, firsts = np.unique(kinds, return_index=True)
        for number, place in zip(ints(numbers), ints(self._order[firsts]), strict=True):
            if table.kinds.all[number].op == "Const":
                weights = constant_weights(table.example(self._graph, place))
                self._parameters[number] = run.hold(weights, counts[number])
                self.own.parameters += self._parameters[number] * counts[number]

    def _one_by_one(self, run: Measuring) -> Generator[Task, BodyCosts | None, dict[int, int]]:
        """Count variables and what is called; gives what calls take at their peak, by their positions in the order."""
        table, inside = self._table, dict[int, int]()
        library = table.functions if len(self._graph.library) else ()
        is_variable, calls = np.zeros((2, len(table.kinds.all)), np.bool_)
        for number in table.used_kinds():
            kind = table.kinds.all[number]
            is_variable[number] = kind.op in VARIABLES
            calls[number] = bool(library) and (kind.op in library or kind.names_functions)
        kinds = table.kind[self._order]
        variables: dict[int, Variable] = {}  # by kind
        called: dict[tuple[int, int], list[BodyCosts]] = {}  # by row and kind
        positions = np.flatnonzero(is_variable[kinds] | calls[kinds])
        places, rows = self._order[positions], self._row[positions]
        columns = (ints(positions), ints(places), ints(rows), ints(kinds[positions]))
        for position, place, row, kind in zip(*columns, strict=True):
            if is_variable[kind]:
                variable = variables.get(kind)
                if variable is None:
                    variable = variables[kind] = Variable.of(table.example(self._graph, place))
                self._variables[place] = count = run.first_use(variable, table.names[place])
                self.own.parameters += count
            if calls[kind]:
                found = called.get((row, kind))
                if found is None:
                    found, is_whole = yield from self._called(run, place)
                    if is_whole:  # else it is asked for again, as often as there are such calls
                        called[row, kind] = found
                for inner in found:
                    self.take_call(inner)
                    inside[position] = max(inside.get(position, 0), inner.peak)
        return inside

    def _called(self, run: Measuring, place: int) -> Generator[Task, BodyCosts | None, tuple[list[BodyCosts], bool]]:
        """Those that count of the bodies that a node calls, and whether all of these could be built."""
        node = self._table.example(self._graph, place)
        node.inputs = self._found.like(place).inputs
        found = list[BodyCosts]()
        is_whole = True
        for ref in called_by(node):
            inner = yield run.function(node, ref, self._found.shapes)
            if inner is None:
                is_whole = False
            else:
                found.append(inner)
        return counted_of(node.op, found), is_whole

    def _highest(self, inside: dict[int, int]) -> int:
        """The most bytes of results alive at once: each from its node to the last one that reads it."""
        table, order = self._table, self._order
        held_by_row = [
            0 if node.op in VIEWS else held for node, held in zip(self._found.nodes, self._bytes, strict=True)
        ]
        is_usual = sum(count * held for count, held in zip(self._count, held_by_row, strict=True)) < _LARGEST
        kind: Any = np.int64 if is_usual else np.object_
        held: NDArray[Any] = np.array(held_by_row, kind)[self._row]
        position = np.full(len(table), -1, np.int64)
        position[order] = np.arange(len(order))
        is_data = table.index != CONTROL
        made, read = position[table.source[is_data]], position[table.owners()[is_data]]
        is_inside = (made >= 0) & (read >= 0)
        last = np.arange(len(order))
        np.maximum.at(last, made[is_inside], read[is_inside])
        freed: NDArray[Any] = np.zeros(len(order), kind)
        np.add.at(freed, last, held)
        alive: NDArray[Any] = np.cumsum(held) - np.cumsum(freed) + freed
        return max([int(alive.max(initial=0)), *(int(alive[at]) + more for at, more in inside.items())])

    def by_op(self) -> Iterator[tuple[str, Cost]]:
        for node, count, flops, held in zip(self._found.nodes, self._count, self._flops, self._bytes, strict=True):
            if count:
                yield node.op, Cost(count, count * flops, 0, count * held)
        kinds = self._table.kinds.all
        for number, count in enumerate(ints(np.bincount(self._table.kind[self._order], minlength=len(kinds)))):
            if self._parameters[number]:
                yield kinds[number].op, Cost(parameters=count * self._parameters[number])
        for place, parameters in self._variables.items():
            yield kinds[int(self._table.kind[place])].op, Cost(parameters=parameters)

    def by_scope(self) -> Iterator[tuple[str, Cost]]:
        table = self._table
        scopes: dict[str, int] = {}  # the innermost of each node, with the slash behind it
        names = map(table.names.__getitem__, ints(self._order))
        column = np.array([scopes.setdefault(name[: name.rfind("/") + 1], len(scopes)) for name in names], np.int64)
        costs = [Cost() for _ in scopes]
        for scope, row, count in _pairs(column, self._row):
            costs[scope].add(Cost(count, count * self._flops[row], 0, count * self._bytes[row]))
        kinds = table.kind[self._order]
        has_parameters = np.array([bool(each) for each in self._parameters], np.bool_)[kinds]
        for scope, kind, count in _pairs(column[has_parameters], kinds[has_parameters]):
            costs[scope].parameters += count * self._parameters[kind]
        for place, parameters in self._variables.items():
            name = table.names[place]
            costs[scopes[name[: name.rfind("/") + 1]]].parameters += parameters
        for inner, cost in zip(scopes, costs, strict=True):
            for scope in scopes_of(f"{inner}x"):  # of any name in it
                yield scope, cost


def _pairs(first: NDArray[np.int64], second: NDArray[np.int32]) -> Iterator[tuple[int, int, int]]:
    """The pairs of numbers that stand at the same places, and how often each does."""
    times = int(second.max(initial=0)) + 1
    both, counts = np.unique(first * times + second, return_counts=True)
    yield from zip(ints(both // times), ints(both % times), ints(counts), strict=True)
