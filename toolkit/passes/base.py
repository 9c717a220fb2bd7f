"""What a pass is: a frozen dataclass whose fields are its options, with `apply(graph) -> PassResult`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, runtime_checkable

from toolkit.errors import GraphError, GraphmillError
from toolkit.graph.check import require_valid
from toolkit.graph.garbage import no_collection
from toolkit.graph.graph import Graph


@dataclass(slots=True)
class PassResult:
    """What a pass made.

    Attributes:
        graph: the result; the graph that came in is not changed.
        modified: whether the result differs.
        report: what happened, as plain values that can be written as JSON.
    """

    graph: Graph
    modified: bool
    report: dict[str, Any] = field(default_factory=dict[str, Any])


@runtime_checkable
class GraphPass(Protocol):
    """A pass over a graph."""

    name: ClassVar[str]

    def apply(self, graph: Graph) -> PassResult:
        """Make the new graph.

        Raises:
            GraphmillError: the graph and the options do not fit.
        """
        ...


def run_pass(pass_: GraphPass, graph: Graph, *, verify: bool = True) -> PassResult:
    """Apply one pass and check what comes out.

    Raises:
        GraphmillError: the pass refuses the graph.
        GraphError: the graph was malformed before, or the pass broke it; the message says which.
    """
    return run_passes([pass_], graph, verify=verify)


def run_passes(
    passes: Sequence[GraphPass], graph: Graph, *, verify: bool = True, after: Sequence[str] | None = None
) -> PassResult:
    """Apply passes one after the other; the report holds theirs by name.

    Args:
        after: the passes that made the graph, which has been looked at then; None: none did.

    Raises:
        GraphmillError: as `run_pass`; the passes that ran before are named.
    """
    if verify and after is None:
        with no_collection():
            require_valid(graph)
    done: list[str] = list(after or ())
    reports: dict[str, Any] = {}
    modified = False
    for pass_ in passes:
        try:
            with no_collection():  # nearly all that is made lives on
                result = pass_.apply(graph)
        except GraphmillError as error:
            if done:
                error.message += f" (in the pass '{pass_.name}', after {', '.join(done)})"
            raise
        if verify and result.modified:
            try:
                with no_collection():
                    require_valid(result.graph)
            except GraphError as error:
                after = f", after {', '.join(done)}" if done else ""
                error.message = f"the pass '{pass_.name}'{after} broke the graph; this is a bug: {error.message}"
                raise
        graph, modified = result.graph, modified or result.modified
        reports[pass_.name] = result.report
        done.append(pass_.name)
    return PassResult(graph, modified, reports if len(passes) != 1 else reports[passes[0].name])
