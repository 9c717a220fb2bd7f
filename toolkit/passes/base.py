"""What a pass is: a frozen dataclass whose fields are its options, with `apply(graph) -> PassResult`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, runtime_checkable

from toolkit.errors import GraphError, GraphmillError
from toolkit.graph.check import require_valid, require_valid_changes
from toolkit.graph.garbage import no_collection
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node


@dataclass(slots=True)
class PassResult:
    """What a pass made.

    Attributes:
        graph: the result; the graph that came in is not changed.
        modified: whether the result differs.
        report: what happened, as plain values that can be written as JSON.
        changed: the nodes of the result that are new, or differ from what came in by more than their device, or read
            such a node: nothing else has to be looked at again. No edge leads into what stood before it, so there is no
            new cycle. None: perhaps all of them.
    """

    graph: Graph
    modified: bool
    report: dict[str, Any] = field(default_factory=dict[str, Any])
    changed: Collection[Node] | None = None


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


@runtime_checkable
class InPlacePass(GraphPass, Protocol):
    """A pass that can also change the graph that comes in, instead of making another."""

    def change(self, graph: Graph) -> PassResult:
        """As `apply`, but the graph of the result is the one that came in; do not use it any more after an error.

        Raises:
            GraphmillError: the graph and the options do not fit.
        """
        ...


def run_pass(pass_: GraphPass, graph: Graph, *, verify: bool = True, keep: bool = True) -> PassResult:
    """Apply one pass and check what comes out.

    Args:
        keep: see `run_passes`.

    Raises:
        GraphmillError: the pass refuses the graph.
        GraphError: the graph was malformed before, or the pass broke it; the message says which.
    """
    return run_passes([pass_], graph, verify=verify, keep=keep)


def run_passes(
    passes: Sequence[GraphPass],
    graph: Graph,
    *,
    verify: bool = True,
    after: Sequence[str] | None = None,
    keep: bool = True,
) -> PassResult:
    """Apply passes one after the other; the report holds theirs by name.

    Args:
        after: the passes that made the graph, which has been looked at then; None: none did.
        keep: whether the graph that came in is needed as it was. A command that has read a million nodes to make one
            graph of them needs no second million.

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
                result = pass_.change(graph) if not keep and isinstance(pass_, InPlacePass) else pass_.apply(graph)
        except GraphmillError as error:
            if done:
                error.message += f" (in the pass '{pass_.name}', after {', '.join(done)})"
            raise
        if verify and result.modified:
            try:
                with no_collection():
                    if result.changed is None:
                        require_valid(result.graph)
                    else:
                        require_valid_changes(result.graph, result.changed)
            except GraphError as error:
                after = f", after {', '.join(done)}" if done else ""
                error.message = f"the pass '{pass_.name}'{after} broke the graph; this is a bug: {error.message}"
                raise
        graph, modified = result.graph, modified or result.modified
        reports[pass_.name] = result.report
        done.append(pass_.name)
    return PassResult(graph, modified, reports if len(passes) != 1 else reports[passes[0].name])
