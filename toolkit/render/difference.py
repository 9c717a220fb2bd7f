"""Two graphs as one: the new one with what the old one had beside it, and what happened to each node.

Nodes are matched by `passes.differences.match`, so a renamed node is one box. Bodies of functions are merged likewise,
because the network of a SavedModel is in them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from schemas import function_pb2
from toolkit.errors import GraphmillError
from toolkit.graph.attrs import FuncRef
from toolkit.graph.bodies import instantiate
from toolkit.graph.functions import FunctionLibrary
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node, Output

if TYPE_CHECKING:
    from toolkit.passes.differences.attributes import DiffOptions
    from toolkit.passes.differences.diff import GraphDiff

ADDED, REMOVED, RENAMED, CHANGED, SAME = "added", "removed", "renamed", "changed", "same"
KINDS = (ADDED, REMOVED, RENAMED, CHANGED, SAME)


@dataclass(slots=True)
class Differences:
    """What happened to the nodes of a merged graph; what is missing is the same.

    A node in the body of a function has the key `FUNCTION NAME\\0NODE NAME`, see `key`.

    Attributes:
        kinds: one of KINDS by node.
        notes: what exactly, as lines, e.g. "was net/conv" and "attr.padding SAME, was VALID".
    """

    kinds: dict[str, str] = field(default_factory=dict[str, str])
    notes: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])

    def kind(self, function: str, name: str) -> str:
        return self.kinds.get(key(function, name), SAME)


def key(function: str, name: str) -> str:
    """What `Differences` calls a node; the function is "" for nodes of the graph itself."""
    return f"{function}\0{name}" if function else name


def merge(old: Graph, new: Graph, options: DiffOptions | None = None) -> tuple[Graph, Differences]:
    """The new graph with the removed nodes of the old one in it, and what happened to each node."""
    from toolkit.passes.differences.diff import diff_graphs
    from toolkit.passes.differences.match import match_nodes

    diff = diff_graphs(old, new, options)
    found = Differences()
    merged = new.copy()
    matched = match_nodes(old, new)
    removed: dict[Node, Node] = {}
    for node in old.nodes:
        if node not in matched:
            copy = merged.add(node.op, merged.unique_name(node.name), device=node.device)
            copy.source = node.source
            removed[node] = copy
            found.kinds[copy.name] = REMOVED

    def place(node: Node) -> Node:
        return removed[node] if node in removed else merged.node(matched[node].name)

    for node, copy in removed.items():
        copy.inputs = [Output(place(src), index) for src, index in node.inputs]
        copy.control_inputs = [place(src) for src in node.control_inputs]
    _note(diff, "", found)
    merged.library = _merge_functions(old, new, diff, found)
    return merged, found


def _note(diff: GraphDiff, function: str, found: Differences) -> None:
    for name, _ in diff.added:
        found.kinds[key(function, name)] = ADDED
    for old, new, _ in diff.renamed:
        found.kinds[key(function, new)] = RENAMED
        found.notes[key(function, new)] = (f"was {old}",)
    for node in diff.changed:
        here = key(function, node.new_name)
        found.kinds[here] = CHANGED
        lines = [f"{c.what.removeprefix('attr.')} {c.new}, was {c.old}" for c in node.changes]
        found.notes[here] = (*found.notes.get(here, ()), *lines)


def _merge_functions(old: Graph, new: Graph, diff: GraphDiff, found: Differences) -> FunctionLibrary:
    from toolkit.passes.differences.match import match_functions

    library = FunctionLibrary()
    library.gradients = dict(new.library.gradients)
    twins = match_functions(old.library, new.library)
    bodies: dict[str, function_pb2.FunctionDef] = {}
    for name, inner in diff.functions.items():
        twin = twins[name]
        _note(inner, twin, found)
        if inner.removed:
            body, names = _merge_body(old.library.function(name), new.library.function(twin), inner)
            if _can_be_drawn(new.library, body):
                bodies[twin] = body
                found.kinds.update({key(twin, removed): REMOVED for removed in names})
    for name in new.library:
        library.add(bodies.get(name) or new.library.function(name))
    taken = set(new.library)
    for name in diff.functions_removed:
        if name not in taken:
            library.add(old.library.function(name))
    return library


def _merge_body(
    old: function_pb2.FunctionDef, new: function_pb2.FunctionDef, diff: GraphDiff
) -> tuple[function_pb2.FunctionDef, list[str]]:
    """The new body with the removed nodes of the old one, and what those are called in it."""
    body = function_pb2.FunctionDef()
    body.CopyFrom(new)
    taken = {node.name for node in new.node_def} | {arg.name for arg in new.signature.input_arg}
    names: dict[str, str] = {before: after for before, after, _ in diff.renamed}
    gone = {name for name, _ in diff.removed}
    for node in old.node_def:
        if node.name in gone:
            free = node.name
            while free in taken:
                free += "_removed"
            taken.add(free)
            names[node.name] = free
    added: list[str] = []
    for node in old.node_def:
        if node.name not in gone:
            continue
        copy = body.node_def.add()
        copy.CopyFrom(node)
        copy.name = names[node.name]
        copy.input[:] = [_renamed(text, names) for text in node.input]
        added.append(copy.name)
    return body, added


def _renamed(reference: str, names: Mapping[str, str]) -> str:
    """An input of a node in a function (`^NODE`, `ARGUMENT` or `NODE:OUTPUT:INDEX`) with its node renamed."""
    caret = "^" if reference.startswith("^") else ""
    head, colon, rest = reference.removeprefix("^").partition(":")
    return f"{caret}{names.get(head, head)}{colon}{rest}"


def _can_be_drawn(library: FunctionLibrary, body: function_pb2.FunctionDef) -> bool:
    """Whether a merged body still is a function; what removed nodes used may be gone or have other outputs."""
    trial = FunctionLibrary()
    for name in library:
        trial.add(body if name == body.signature.name else library.function(name))
    try:
        instantiate(trial, FuncRef(body.signature.name))
    except GraphmillError:
        return False
    return True
