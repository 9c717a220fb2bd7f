"""Operations, parameters and bytes of a graph by op and by scope, and the memory it needs at its peak.

Calls are followed: a function counts once for every call, with the shapes of that call's arguments; the body of a
loop counts once, of a branch the costlier side. Everything is an estimate from static shapes; unknown first sizes
count as the batch. Each function is measured once for the same arguments, after those it calls, however deep calls
nest. What cannot be known (recursion, functions that cannot be built, shapes without a rank) is listed, and the
numbers are then "at least". A graph whose nodes are a table is measured over its columns (`measure_table`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from toolkit.errors import GraphmillError
from toolkit.graph.graph import Graph
from toolkit.graph.infer import ShapeMap
from toolkit.graph.node import Node
from toolkit.graph.shapes.calls import Calls
from toolkit.graph.shapes.nested import infer_nested
from toolkit.passes.measuring.body_costs import BodyCosts, Cost, Measuring, Task

if TYPE_CHECKING:
    from toolkit.passes.measuring.measure_table import TableSurvey


@dataclass(eq=False)
class Measured:
    """A graph's costs.

    Attributes:
        total: of one run of all measured nodes.
        peak_bytes: the most bytes of results alive at once when nodes run one after the other in topological order;
            constants and variables come on top.
        weight_bytes: bytes of constants and variables.
        unknown: what is not in the numbers, a sentence each; when there is any, they are "at least".
        bodies: what was measured, and how often it runs.
    """

    total: Cost = field(default_factory=Cost)
    peak_bytes: int = 0
    weight_bytes: int = 0
    unknown: list[str] = field(default_factory=list[str])
    bodies: list[tuple[BodyCosts, int]] = field(default_factory=list[tuple[BodyCosts, int]])

    @cached_property
    def by_op(self) -> dict[str, Cost]:
        """Op to cost, calls resolved into the ops of the functions."""
        found: dict[str, Cost] = {}
        for body, times in self.bodies:
            for op, cost in body.by_op():
                found.setdefault(op, Cost()).add(cost.times(times))
        return found

    @cached_property
    def by_scope(self) -> dict[str, Cost]:
        """Every name scope to the cost of what is below it; "" is the total. Nodes of functions are in the scopes of
        their own names."""
        found: dict[str, Cost] = {}
        for body, times in self.bodies:
            for scope, cost in body.by_scope():
                found.setdefault(scope, Cost()).add(cost.times(times))
        return found


class Survey:
    """The order and the static shapes of a graph's nodes, found once for all that is measured of it.

    Raises:
        GraphError: the graph has a cycle outside a loop.
    """

    def __init__(self, graph: Graph):
        self.graph = graph
        self._columns: TableSurvey | None = None
        self._order: list[Node] | None = None
        self._shapes: ShapeMap | None = None
        self._is_cut = False
        if graph.unmade is None:
            self._order = graph.topological_order()
        else:
            from toolkit.passes.measuring.measure_table import survey_table

            self._columns = survey_table(graph)

    @property
    def is_inferred(self) -> bool:
        """Whether the shapes have been found."""
        return self._shapes is not None or (self._columns is not None and self._columns.is_inferred)

    def infer_columns(self, calls: Calls) -> bool:
        """Find the shapes without making a node; False where nodes have to be made for that, or there are some.

        Args:
            calls: what is known of functions.

        Raises:
            GraphmillError: an op is unknown; which one is told is not certain.
        """
        if self._columns is not None and not self._columns.infer(calls):
            self._columns = None
        return self._columns is not None

    def infer(self, calls: Calls) -> None:
        """Find the shapes, if that has not been done; again where calls were not followed to their end before.

        Args:
            calls: see `infer_columns`.

        Raises:
            GraphmillError: an op is unknown.
        """
        if self._shapes is None or self._is_cut:
            try:
                if self.infer_columns(calls):
                    return
            except GraphmillError:  # the node that is named is found node by node
                self._columns = None
            if self._order is None:
                self._order = self.graph.topological_order()
            self._shapes = infer_nested(self.graph, calls, order=self._order)
            self._is_cut = calls.is_cut

    def body(self, run: Measuring, within: Iterable[Node] | None, roots: Iterable[str] | None) -> Task:
        """What measures the graph, of which shapes have been found, or a part of it; see `measure`."""
        if self._columns is not None:
            assert within is None  # there are no nodes that anybody could have
            return self._columns.body(run, roots)
        assert self._order is not None
        assert self._shapes is not None
        order = self._order
        if roots is not None:
            within = [*(within or ()), *_needed(self.graph, roots)]
        if within is not None:
            wanted = {node.id for node in within}
            order = [node for node in order if node.id in wanted]
        return run.body(self.graph, self._shapes, order)


def measure(
    graph: Graph,
    *,
    batch: int = 1,
    within: Iterable[Node] | None = None,
    roots: Iterable[str] | None = None,
    survey: Survey | None = None,
    calls: Calls | None = None,
) -> Measured:
    """Measure a graph.

    Args:
        batch: what an unknown first size counts as.
        within: only these nodes; default all.
        roots: only nodes of these names and what they need (a signature's outputs); default all.
        survey: of the graph, where order and shapes have been found already.
        calls: what is known of functions, where that is shared.

    Raises:
        GraphError: the graph has a cycle outside a loop or an unknown op.
    """
    run = Measuring(graph, batch, calls or Calls())
    survey = survey or Survey(graph)
    if not survey.is_inferred:
        survey.infer(run.calls)
        run.is_cut |= run.calls.is_cut
    main = _run(survey.body(run, within, roots))
    assert main is not None
    bodies = list(run.executions(main))
    out = Measured(peak_bytes=main.peak, weight_bytes=run.weight_bytes, unknown=run.unknown(), bodies=bodies)
    for body, times in bodies:
        out.total.add(body.own.times(times))
    return out


def call_costs(graph: Graph, shapes: ShapeMap, *, batch: int = 1, calls: Calls | None = None) -> dict[Node, Cost]:
    """What the functions cost that each node of a graph calls, for one run of the node; nodes that call none are out.

    Args:
        shapes, batch, calls: as for `measure`.
    """
    if not len(graph.library):
        return {}
    run = Measuring(graph, batch, calls or Calls())
    _run(run.body(graph, shapes, graph.topological_order()))
    return {node: cost for node, cost in run.by_call.items() if node.graph is graph}


def _needed(graph: Graph, roots: Iterable[str]) -> list[Node]:
    """Nodes of some names, as far as there are any, and all that they need."""
    queue = [node for name in dict.fromkeys(roots) if (node := graph.get(name)) is not None]
    seen = {node.id for node in queue}
    for node in queue:  # grows while we walk it
        for source in (*(src for src, _ in node.inputs), *node.control_inputs):
            if source.id not in seen:
                seen.add(source.id)
                queue.append(source)
    return queue


def _run(first: Task) -> BodyCosts | None:
    """The result of a task. Tasks give out those whose results they need, so nesting takes no stack of Python's."""
    tasks = [first]
    result: BodyCosts | None = None
    error: GraphmillError | None = None
    while tasks:
        try:
            if error is not None:
                raised, error = error, None
                needed = tasks[-1].throw(raised)
            else:
                needed = tasks[-1].send(result)
            tasks.append(needed)
            result = None
        except StopIteration as end:
            tasks.pop()
            result = end.value
        except GraphmillError as raised:
            tasks.pop()
            if not tasks:
                raise
            error = raised
    return result
