"""Conformance with the ops' signatures: what TensorFlow's importer accepts or refuses (`toolkit.graph.check`)."""

from __future__ import annotations

from collections.abc import Iterator

from toolkit.errors import did_you_mean
from toolkit.graph import check, opdefs
from toolkit.graph.graph import Graph
from toolkit.graph.kinds import NodeKind
from toolkit.graph.node import Node
from toolkit.passes.validate.finding import Severity
from toolkit.passes.validate.registry import Problem, Rule, family
from toolkit.passes.validate.subject import Body, Subject

#: codes of `toolkit.graph.check` to rules of this family; the other codes belong to other families
_CODES = {
    "unknown-op": "unknown-op", "deprecated": "deprecated", "missing-attr": "missing-attr", "attr": "attr",
    "arity": "arity", "dtype": "dtype", "const-dtype": "const-value", "const-shape": "const-value",
    "const-content": "const-value",
}  # fmt: skip


@family(
    "opdef",
    Rule("unknown-op", Severity.ERROR, "an op that TensorFlow does not have", "register it, or correct its name"),
    Rule("deprecated", Severity.ERROR, "an op that graphs of this version must not use", "use its successor"),
    Rule("deprecated-soon", Severity.NOTE, "an op that newer graphs must not use", "use its successor"),
    Rule("missing-attr", Severity.ERROR, "a required attribute is missing", "set the attribute"),
    Rule("attr", Severity.ERROR, "an attribute of a wrong type or value", "set it to what the op allows"),
    Rule(
        "unknown-attr", Severity.WARNING, "an attribute the op does not have", "remove it; readers ignore or refuse it"
    ),
    Rule("arity", Severity.ERROR, "too many or too few inputs", "give the op the inputs it takes"),
    Rule("dtype", Severity.ERROR, "a tensor of a wrong type at an input", "put a Cast between, or change the type"),
    Rule(
        "const-value", Severity.ERROR, "a constant whose value does not fit its type or shape", "write its value again"
    ),
    Rule(
        "versions", Severity.ERROR, "versions that no reader of today takes", "write the graph with an older producer"
    ),
)
def opdef(subject: Subject) -> Iterator[Problem]:
    yield from _versions(subject.graph)
    for body in subject.bodies:
        for finding in body.conformance:
            code = _CODES.get(finding.code)
            if code is None:
                continue
            node = body.graph.get(finding.node or "")
            if code == "arity" and node is not None and node.id in body.broken:
                continue  # the dangling input is the finding
            yield Problem(f"opdef/{code}", finding.message, finding.node, body.function)
        yield from _attrs(body)


def _versions(graph: Graph) -> Iterator[Problem]:
    versions = graph.versions
    if versions.min_consumer > check.CONSUMER:
        yield Problem(
            "opdef/versions",
            f"the graph needs a reader of GraphDef version {versions.min_consumer}; TensorFlow 2.21 reads "
            f"{check.CONSUMER}",
        )
    if check.CONSUMER in versions.bad_consumers:
        yield Problem("opdef/versions", f"the graph says that readers of version {check.CONSUMER} misread it")
    if versions.producer < 0:
        yield Problem("opdef/versions", f"the producer version is {versions.producer}; it must not be negative")


def _attrs(body: Body) -> Iterator[Problem]:
    graph = body.graph
    producer = graph.versions.producer
    clean: set[NodeKind] = set()  # kinds of which there is nothing to say
    for node in body.candidates(lambda node: _attrs_of(body, node, producer)):
        kind = node.kind
        if kind is not None:
            kind = kind.like or kind  # which have lists in `_class`, all of them or none
            if kind in clean:
                continue
        problems = list(_attrs_of(body, node, producer))
        if kind is not None and not problems:
            clean.add(kind)
        yield from problems


def _attrs_of(body: Body, node: Node, producer: int) -> Iterator[Problem]:
    """What is wrong with the attributes of one node; where it is nothing, it is nothing for all of its kind."""
    graph = body.graph
    op_def = graph.find_op_def(node.op)
    if op_def is not None and node.base is not None:
        known = op_def.attrs
        if "_class" in node.base.attr and not node.base.attr["_class"].HasField("list"):
            message = "attribute '_class' must be a list of strings, the nodes to be placed with"
            yield Problem("opdef/attr", message, node.name, body.function)
        for key in sorted(node.base.attr):  # a map's own order is another in each process
            if key not in known and not key.startswith("_") and node.op not in graph.library:
                message = f"{node.op} has no attribute '{key}'{did_you_mean(key, known)}"
                yield Problem("opdef/unknown-attr", message, node.name, body.function)
        if op_def.deprecated_at and producer < op_def.deprecated_at and opdefs.find(node.op) is not None:
            message = f"{node.op} is gone from graphs of version {op_def.deprecated_at} on: {op_def.deprecation}"
            yield Problem("opdef/deprecated-soon", message, node.name, body.function)
