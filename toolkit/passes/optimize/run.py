"""Running optimizations: pass after pass, function after function, until nothing changes any more."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, cast

from toolkit.errors import BugError, GraphmillError
from toolkit.graph.device import DeviceSpec
from toolkit.graph.graph import Graph
from toolkit.passes.base import GraphPass, PassResult, run_passes
from toolkit.passes.optimize.flow.functions import optimize_functions
from toolkit.passes.optimize.kept import Kept
from toolkit.passes.optimize.rewriting import Optimization
from toolkit.passes.placement.costs import NodeCosts

#: how often all passes run at most; hardly anything changes in a fourth round
ROUNDS = 10


@dataclass(frozen=True, slots=True)
class Size:
    """How large a graph is.

    Attributes:
        nodes: of the graph and of its functions.
        bytes: of the GraphDef.
        seconds: what a step takes, by static shapes alone; what functions do is not in it.
    """

    nodes: int
    bytes: int
    seconds: float


@dataclass(slots=True)
class Applied:
    """One pass, once.

    Attributes:
        round: from 1 on.
        modified: whether it changed anything.
        report: its own, and under "functions" those of functions.
        before, after: the graph's size; None where nobody asked.
        elapsed: seconds that the pass took.
    """

    name: str
    round: int
    modified: bool
    report: dict[str, Any]
    nodes_before: int
    nodes_after: int
    elapsed: float
    before: Size | None = None
    after: Size | None = None

    def as_json(self) -> dict[str, Any]:
        facts = asdict(self)
        return {key: value for key, value in facts.items() if value is not None} | {"elapsed": round(self.elapsed, 4)}


@dataclass(slots=True)
class Optimized:
    """What optimizing made.

    Attributes:
        graph: the result; the one that came in where nothing changed.
        passes: what ran, in order.
        settled: whether the last round changed nothing.
        contrary: pairs of passes of which one undoes the other, so that each ran once.
    """

    graph: Graph
    passes: list[Applied] = field(default_factory=list[Applied])
    settled: bool = True
    contrary: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    @property
    def restless(self) -> list[str]:
        """The passes that changed something in the last round, where that was one too few."""
        last = max((each.round for each in self.passes), default=0)
        changing = [each.name for each in self.passes if each.round == last and each.modified]
        return [] if self.settled else list(dict.fromkeys(changing))

    @property
    def modified(self) -> bool:
        return any(each.modified for each in self.passes)

    @property
    def initializers(self) -> list[str]:
        """Operations that passes have made and that have to run before the first step (`initializers` of reports)."""
        return list(dict.fromkeys(name for each in self.passes for name in each.report.get("initializers", ())))


def optimize(
    graph: Graph,
    passes: Sequence[Optimization],
    kept: Kept,
    *,
    rounds: int = ROUNDS,
    sizes: bool = False,
    heard: Callable[[Applied], None] = lambda applied: None,
) -> Optimized:
    """Run passes over a graph and its functions, again and again until a round changes nothing.

    Of two passes that undo each other both run in the first round alone: the later one has the last word.

    Args:
        kept: what has to stay.
        rounds: how many there are at most.
        sizes: also say how large the graph is before and after each pass that changes it.
        heard: called after each pass.

    Raises:
        GraphmillError: a pass refuses the graph.
        GraphError: the graph was malformed before, or a pass broke it; the message says which, and what ran before.
    """
    out = Optimized(graph, contrary=_contrary(passes))
    once = {pass_.name for pass_ in passes if pass_.once}.union(*out.contrary)
    done: list[str] | None = None
    size = size_of(graph) if sizes else None
    quiet: set[int] = set()  # passes that have nothing to do with the graph as it is
    for count in range(1, rounds + 1):
        for position, pass_ in enumerate(passes):
            if position in quiet or (pass_.name in once and count > 1):
                quiet.add(position)
                continue
            started = time.monotonic()
            nodes = count_nodes(out.graph)
            result = run_passes([cast("GraphPass", _Everywhere(pass_, kept))], out.graph, after=done)
            done = [*(done or ()), pass_.name]
            applied = Applied(
                pass_.name, count, result.modified, result.report, nodes, nodes, time.monotonic() - started
            )
            if result.modified:
                quiet.clear()
                out.graph = result.graph
                applied.nodes_after = count_nodes(out.graph)
                if sizes:
                    applied.before, size = size, size_of(out.graph)
                    applied.after = size
            else:
                quiet.add(position)
            out.passes.append(applied)
            if result.report.get("initializers"):
                kept = replace(kept, names=kept.names.union(result.report["initializers"]))
            heard(applied)
        if len(quiet) == len(passes):
            break
    out.settled = len(quiet) == len(passes)
    return out


def _contrary(passes: Sequence[Optimization]) -> list[tuple[str, str]]:
    """Pairs of passes of which the first undoes the second."""
    names = {pass_.name for pass_ in passes}
    return [(pass_.name, other) for pass_ in passes for other in pass_.undoes if other in names]


@dataclass(frozen=True)
class _Everywhere:
    """A pass, over the graph and then over its functions."""

    pass_: Optimization
    kept: Kept

    @property
    def name(self) -> str:
        return self.pass_.name

    def apply(self, graph: Graph) -> PassResult:
        try:
            return self._apply(graph)
        except GraphmillError as error:
            if not self.pass_.ignore_errors or isinstance(error, BugError):
                raise
            return PassResult(graph, False, {"error": error.message})

    def _apply(self, graph: Graph) -> PassResult:
        result = replace(self.pass_, kept=self.kept).apply(graph)
        made = result.graph
        if self.pass_.in_functions and len(made.library):
            made, reports = optimize_functions(self.pass_, made, self.kept.functions)
            if reports:
                result.report["functions"] = reports
        return PassResult(made, result.modified or made is not result.graph, result.report)


def count_nodes(graph: Graph) -> int:
    """The nodes of a graph and of its functions."""
    return len(graph) + sum(len(graph.library.function(name).node_def) for name in graph.library)


def size_of(graph: Graph) -> Size:
    """How large a graph is, by its bytes and by a guess at what a step takes."""
    seconds = sum(NodeCosts(graph).times(DeviceSpec(device_type="CPU")))
    return Size(count_nodes(graph), graph.to_proto().ByteSize(), seconds)
