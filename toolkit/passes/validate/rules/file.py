"""Whether a file can be read at all. The engine reports what it cannot read; here is what it could."""

from __future__ import annotations

from collections.abc import Iterator

from toolkit.passes.validate.finding import Severity
from toolkit.passes.validate.registry import Problem, Rule, family
from toolkit.passes.validate.subject import Subject


@family(
    "file",
    Rule("unreadable", Severity.ERROR, "the file is damaged or of another kind", "write or download it again"),
    Rule("no-graph", Severity.ERROR, "a SavedModel without any graph", "export the model again"),
    Rule("same-tags", Severity.ERROR, "two graphs of a SavedModel have the same tags", "give each graph its own tags"),
    Rule("empty", Severity.WARNING, "a graph without nodes", "check what wrote it"),
)
def file(subject: Subject) -> Iterator[Problem]:
    if not subject.graph.nodes and not len(subject.graph.library):
        yield Problem("file/empty", "the graph has no nodes and no functions")
