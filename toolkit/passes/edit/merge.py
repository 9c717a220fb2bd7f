"""The edit that puts another graph beside this one and joins the two."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from toolkit.errors import GraphError
from toolkit.formats.inspection.report import plural
from toolkit.graph.graph import Graph
from toolkit.graph.metagraph import GraphKeys, MetaGraph
from toolkit.graph.node import Node, Output
from toolkit.graph.summary import VARIABLES
from toolkit.passes.edit.base import TABLE, TEXT, argument
from toolkit.passes.edit.draft import Draft
from toolkit.passes.edit.functions import rename_functions
from toolkit.passes.edit.names import RenameScope

_PLACEHOLDERS = ("Placeholder", "PlaceholderV2", "PlaceholderWithDefault")


@dataclass(frozen=True)
class Merge:
    """Add the nodes, functions, signatures and collections of another file, and join tensors of the two."""

    name: ClassVar[str] = "merge"

    file: str = argument(TEXT, "a GraphDef, MetaGraphDef or SavedModel")
    prefix: str = argument(TEXT, "a scope into which its nodes go", "")
    connect: dict[str, str] = argument(
        TABLE, "input to the tensor that it is from now on, with the prefix; the placeholder goes", {}
    )
    tags: str = argument(TEXT, "which graph of a SavedModel: A,B", "")

    def apply(self, draft: Draft) -> str:
        from toolkit.formats.models.model import read_model

        meta = read_model(self.file, tags=self.tags.split(",") if self.tags else None).meta
        notes = add_model(draft, meta, self.prefix)
        if any(node.op in VARIABLES for node in meta.graph):
            notes.append("its variables have their values in its own checkpoint (graphmill build --merge joins both)")
        if meta.shell.asset_file_def:
            assets = plural(len(meta.shell.asset_file_def), "asset file")
            notes.append(f"its {assets} must be copied into the folder by hand (graphmill build --merge does so)")
        draft.notes += [f"{self.file}: {note}" for note in notes]
        said = f"added {plural(len(meta.graph), 'node')} of {self.file}"
        if not self.connect:
            return said
        connect(draft, self.connect)
        return f"{said} and connected {plural(len(self.connect), 'input')}"


@dataclass(frozen=True)
class Connect:
    """Let an input be a tensor from now on, as of graphs that were merged; its placeholder goes."""

    name: ClassVar[str] = "connect"

    input: str = argument(TEXT, "the input, a placeholder or any tensor")
    tensor: str = argument(TEXT, "the tensor that it is from now on")

    def apply(self, draft: Draft) -> str:
        connect(draft, {self.input: self.tensor})
        return f"connected '{self.tensor}' to '{self.input}'"


def add_model(draft: Draft, meta: MetaGraph, prefix: str) -> list[str]:
    """Put another model beside the one of a draft; returns what could not be had twice, as sentences.

    Args:
        prefix: a scope into which its nodes go; "" for none.

    Raises:
        GraphError: both have nodes of the same name.
    """
    other = Draft(meta)
    if prefix:
        RenameScope("", prefix).apply(other)
    mine = draft.meta  # texts are up to date before nodes of the same names come
    _require_names(draft, other, prefix)
    _take_functions(draft, other)
    theirs = other.meta  # likewise, and colocations with them
    _keep_apart(draft.graph, other.graph, prefix)
    _add_nodes(draft, other.graph)
    notes: list[str] = []
    draft.meta = _joined(mine, theirs, draft, prefix, notes)
    return notes


def connect(draft: Draft, pairs: Mapping[str, str]) -> None:
    """Let inputs be other tensors, and take their placeholders away.

    Args:
        pairs: input to the tensor that it is from now on.

    Raises:
        GraphError: there is no such tensor; types that differ.
    """
    graph = draft.graph
    found = {key: (draft.tensor(key), draft.tensor(source)) for key, source in pairs.items()}
    for target, source in found.values():
        if target.dtype.base is not source.dtype.base:
            raise GraphError(
                f"'{target.name}' is {target.dtype.base}, and '{source.name}' is {source.dtype.base}: "
                "they cannot be connected"
            )
    for target, source in found.values():
        draft.redirect({(target.node.id, target.index): source}, but=[source.node])
        for node in graph.nodes:
            if target.node in node.control_inputs and target.node.op in _PLACEHOLDERS:
                node.control_inputs = list(
                    dict.fromkeys(source.node if src is target.node else src for src in node.control_inputs)
                )
    going = {target.node for target, _ in found.values() if target.node.op in _PLACEHOLDERS}
    if going:
        draft.remove(going, {})


def _require_names(draft: Draft, other: Draft, prefix: str) -> None:
    both = [node.name for node in other.graph.nodes if node.name in draft.graph]
    if both:
        more = f" and {plural(len(both) - 1, 'other node')}" if len(both) > 1 else ""
        are = "are" if more else "is"
        raise GraphError(f"'{both[0]}'{more} {are} in both graphs; give {'another' if prefix else 'a'} prefix")


def _take_functions(draft: Draft, other: Draft) -> None:
    mine, theirs = draft.graph.library, other.graph.library
    table: dict[str, str] = {}
    for name in theirs:
        if name in mine and mine.function(name) != theirs.function(name):
            count = 1
            while f"{name}_{count}" in mine or f"{name}_{count}" in theirs:
                count += 1
            table[name] = f"{name}_{count}"
    if table:
        rename_functions(other, table)
    for name in theirs:
        if name not in mine:
            mine.add(theirs.function(name))
    mine.gradients = {**theirs.gradients, **mine.gradients}


def _keep_apart(mine: Graph, theirs: Graph, prefix: str) -> None:
    """Resources of two models that have one shared name would be one resource."""
    taken = {_shared(node) for node in mine.nodes} - {None}
    for node in theirs.nodes:
        shared = _shared(node)
        if shared is not None and shared in taken:
            node.attrs["shared_name"] = f"{prefix or 'merged'}/{shared[1]}"


def _shared(node: Node) -> tuple[str, str] | None:
    """The container and name under which others find a node's resource."""
    name = node.text("shared_name", b"") if node.attr_proto("shared_name") is not None else ""
    return (node.text("container", b""), name) if name else None


def _add_nodes(draft: Draft, other: Graph) -> None:
    graph = draft.graph
    copies: list[Node] = [graph.add_copy(node) for node in other.nodes]
    for node, copy in zip(other.nodes, copies, strict=True):
        copy.inputs = [Output(copies[src.id], index) for src, index in node.inputs]
        copy.control_inputs = [copies[src.id] for src in node.control_inputs]
    versions = graph.versions
    versions.producer = min(versions.producer, other.versions.producer)
    versions.min_consumer = max(versions.min_consumer, other.versions.min_consumer)
    versions.bad_consumers.extend(set(other.versions.bad_consumers) - set(versions.bad_consumers))


def _joined(mine: MetaGraph, theirs: MetaGraph, draft: Draft, prefix: str, notes: list[str]) -> MetaGraph:
    """The surroundings of both graphs; what cannot be had twice is told."""
    signatures = dict(mine.signatures)
    for key, signature in theirs.signatures.items():
        name = key
        if key in signatures:
            name = unused_key(f"{prefix.replace('/', '_')}_{key}" if prefix else f"{key}_1", signatures)
            notes.append(f"its signature '{key}' is called '{name}'")
        signatures[name] = signature
    collections = dict(mine.collections)
    for key, items in theirs.collections.items():
        before = collections.get(key, [])
        if before and items and type(before[0]) is not type(items[0]):
            notes.append(f"its collection '{key}' holds other things and is left out")
        elif before and key in (GraphKeys.SAVED_MODEL_INIT_OP, GraphKeys.LEGACY_INIT_OP):
            collections[key] = [_both(draft, [*before, *items])]
        elif items:
            collections[key] = [*before, *(item for item in items if item not in before)]
    saver = mine.saver or theirs.saver
    if mine.saver is not None and theirs.saver is not None:
        notes.append("its saver is left out: a model has one")
    if theirs.shell.HasField("object_graph_def"):
        notes.append("its object graph is left out: TensorFlow loads its signatures by the rules of 1.x")
    assets = list(theirs.shell.asset_file_def)
    shell = mine.shell
    if assets:
        shell = type(shell)()
        shell.CopyFrom(mine.shell)
        shell.asset_file_def.extend(assets)
    return replace(mine, signatures=signatures, collections=collections, saver=saver, shell=shell)


def _both(draft: Draft, names: list[Any]) -> str:
    """One operation that waits for several."""
    nodes = [draft.graph.node(str(name).removesuffix(":0")) for name in names]
    return draft.graph.add("NoOp", draft.graph.unique_name("init_all"), control_inputs=nodes).name


def unused_key(key: str, taken: Mapping[str, Any]) -> str:
    """A key that is not taken: this one, or one with a number."""
    name, count = key, 1
    while name in taken:
        count += 1
        name = f"{key}_{count}"
    return name
