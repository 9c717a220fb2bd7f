"""Names and edges. Duplicate names, dangling inputs and their order are found while the graph is built."""

from __future__ import annotations

from collections.abc import Iterator

from toolkit.errors import Hints
from toolkit.passes.validate.finding import Severity
from toolkit.passes.validate.registry import Problem, Rule, family
from toolkit.passes.validate.subject import Subject

_SHOWN = 5


@family(
    "structure",
    Rule("duplicate-name", Severity.ERROR, "two nodes have one name", "rename one of them and its consumers' inputs"),
    Rule("dangling-input", Severity.ERROR, "a data input does not exist", "connect it, or prune the node away"),
    Rule("dangling-control", Severity.ERROR, "a control input does not exist", "remove the control input"),
    Rule("input-order", Severity.ERROR, "a data input after a control input", "list data inputs first"),
    Rule("output-index", Severity.ERROR, "an input names an output that its source does not have", "correct the index"),
    Rule("bad-name", Severity.ERROR, "a node's name breaks the rules for names", "rename it"),
    Rule("cycle", Severity.ERROR, "a cycle outside a loop", "break it; loops go through NextIteration"),
    Rule("self-control", Severity.ERROR, "a node waits for itself", "remove the control input"),
    Rule("collection", Severity.ERROR, "a collection names a node that does not exist", "remove the entry"),
)
def structure(subject: Subject) -> Iterator[Problem]:
    for body in subject.bodies:
        for finding in body.conformance:
            if finding.code == "name" and not body.function:  # names in function bodies are free
                yield Problem("structure/bad-name", finding.message, finding.node)
            elif finding.code == "output-index":
                yield Problem("structure/output-index", finding.message, finding.node, body.function)
        for cycle in body.cycles:
            if len(cycle) == 1 and cycle[0] in cycle[0].control_inputs:
                yield Problem("structure/self-control", "it waits for itself", cycle[0].name, body.function)
                continue
            shown = ", ".join(node.name for node in cycle[:_SHOWN])
            more = f" and {len(cycle) - _SHOWN} more" if len(cycle) > _SHOWN else ""
            message = f"{len(cycle)} node(s) form a cycle outside a loop: {shown}{more}"
            yield Problem("structure/cycle", message, cycle[0].name, body.function)
    graph, hints = subject.graph, Hints()
    for key, values in subject.meta.collections.items():
        for value in values:
            name = value.partition(":")[0] if isinstance(value, str) else ""
            if name and name not in graph:
                hint = hints(name, (node.name for node in graph.nodes))
                yield Problem("structure/collection", f"collection '{key}' lists '{value}', which does not exist{hint}")
