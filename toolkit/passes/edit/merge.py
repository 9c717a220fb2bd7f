"""The edit that puts another graph beside this one and joins the two."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from toolkit.errors import GraphError
from toolkit.formats.report import plural
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
        from toolkit.formats.model import read_model

        model = read_model(self.file, tags=self.tags.split(",") if self.tags else None)
        other = Draft(model.meta)
        if self.prefix:
            RenameScope("", self.prefix).apply(other)
        meta = draft.meta  # texts are up to date before nodes of the same names come
        self._require_names(draft, other)
        self._take_functions(draft, other)
        _add_nodes(draft, other.graph)
        notes: list[str] = []
        draft.meta = _joined(meta, other.meta, draft, self.prefix, notes)
        if any(node.op in VARIABLES for node in other.graph):
            notes.append("its variables have their values in its own checkpoint (graphmill checkpoint merge joins two)")
        draft.notes += [f"{self.file}: {note}" for note in notes]
        self._connect(draft)
        said = f"added {plural(len(other.graph), 'node')} of {self.file}"
        return f"{said} and connected {plural(len(self.connect), 'input')}" if self.connect else said

    def _require_names(self, draft: Draft, other: Draft) -> None:
        both = [node.name for node in other.graph.nodes if node.name in draft.graph]
        if both:
            more = f" and {plural(len(both) - 1, 'other node')}" if len(both) > 1 else ""
            are = "are" if more else "is"
            raise GraphError(f"'{both[0]}'{more} {are} in both graphs; give {'another' if self.prefix else 'a'} prefix")

    def _take_functions(self, draft: Draft, other: Draft) -> None:
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

    def _connect(self, draft: Draft) -> None:
        graph = draft.graph
        pairs = {key: (draft.tensor(key), draft.tensor(source)) for key, source in self.connect.items()}
        for target, source in pairs.values():
            if target.dtype.base is not source.dtype.base:
                raise GraphError(
                    f"'{target.name}' is {target.dtype.base}, and '{source.name}' is {source.dtype.base}: "
                    "they cannot be connected"
                )
        for target, source in pairs.values():
            draft.redirect({(target.node.id, target.index): source}, but=[source.node])
            for node in graph.nodes:
                if target.node in node.control_inputs and target.node.op in _PLACEHOLDERS:
                    node.control_inputs = list(
                        dict.fromkeys(source.node if src is target.node else src for src in node.control_inputs)
                    )
        going = {target.node for target, _ in pairs.values() if target.node.op in _PLACEHOLDERS}
        if going:
            draft.remove(going, {})


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
            name = _unused(f"{prefix.replace('/', '_')}_{key}" if prefix else f"{key}_1", signatures)
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
        notes.append(f"its {plural(len(assets), 'asset file')} must be copied into the folder by hand")
    return replace(mine, signatures=signatures, collections=collections, saver=saver, shell=shell)


def _both(draft: Draft, names: list[Any]) -> str:
    """One operation that waits for several."""
    nodes = [draft.graph.node(str(name).removesuffix(":0")) for name in names]
    return draft.graph.add("NoOp", draft.graph.unique_name("init_all"), control_inputs=nodes).name


def _unused(key: str, taken: Mapping[str, Any]) -> str:
    name, count = key, 1
    while name in taken:
        count += 1
        name = f"{key}_{count}"
    return name
