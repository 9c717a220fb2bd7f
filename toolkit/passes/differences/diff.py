"""How two models differ: nodes, functions, signatures, collections, weights.

Nodes are matched by `passes.differences.match`, so a renamed node is a renaming, not a removal and an addition. What
follows from a renaming (inputs, colocation, a function's new number) is no further difference.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from toolkit.errors import GraphmillError
from toolkit.formats.models.metagraph import tensor_info_proto
from toolkit.formats.models.model import Model, variables_prefix
from toolkit.graph.attrs import FuncRef
from toolkit.graph.bodies import instantiate
from toolkit.graph.graph import Graph
from toolkit.graph.metagraph import MetaGraph, Signature
from toolkit.graph.node import Node
from toolkit.passes.differences.attributes import Change, DiffOptions, attr_changes
from toolkit.passes.differences.match import match_functions, match_nodes


@dataclass(frozen=True, slots=True)
class NodeChange:
    """A node that is in both graphs, with what changed; `new_name` is its name in the new one."""

    name: str
    new_name: str
    op: str
    changes: tuple[Change, ...]


@dataclass(slots=True)
class GraphDiff:
    """How two graphs differ.

    Attributes:
        added, removed: (name, op).
        renamed: (old name, new name, op).
        changed: nodes with other properties; a renamed one may be here too.
        versions: of the GraphDef.
        functions: bodies that differ, by the old name.
        functions_added, functions_removed: names.
        functions_renamed: (old name, new name).
        same: how many nodes are the same, name included.
    """

    added: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    removed: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    renamed: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])
    changed: list[NodeChange] = field(default_factory=list[NodeChange])
    versions: list[Change] = field(default_factory=list[Change])
    functions: dict[str, GraphDiff] = field(default_factory=dict[str, "GraphDiff"])
    functions_added: list[str] = field(default_factory=list[str])
    functions_removed: list[str] = field(default_factory=list[str])
    functions_renamed: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    same: int = 0

    @property
    def is_equal(self) -> bool:
        return not any((
            self.added, self.removed, self.renamed, self.changed, self.versions, self.functions,
            self.functions_added, self.functions_removed, self.functions_renamed,
        ))  # fmt: skip

    def as_json(self) -> dict[str, Any]:
        return {
            "same": self.same,
            "added": [{"name": name, "op": op} for name, op in self.added],
            "removed": [{"name": name, "op": op} for name, op in self.removed],
            "renamed": [{"name": old, "new_name": new, "op": op} for old, new, op in self.renamed],
            "changed": [
                {"name": c.name, "new_name": c.new_name, "op": c.op, "changes": [x.as_json() for x in c.changes]}
                for c in self.changed
            ],
            "versions": [change.as_json() for change in self.versions],
            "functions": {
                "added": self.functions_added,
                "removed": self.functions_removed,
                "renamed": [{"name": old, "new_name": new} for old, new in self.functions_renamed],
                "changed": {name: diff.as_json() for name, diff in self.functions.items()},
            },
        }


@dataclass(slots=True)
class MetaDiff:
    """How two MetaGraphs differ.

    Attributes:
        tags: of both, where a SavedModel has several graphs; else "".
        side: "both", or "old" or "new" for a graph that only one model has.
        signatures: changes by signature, "inputs.x", "outputs.y", "method".
        signatures_added, signatures_removed: keys.
        breaking: what breaks for callers of the old signatures, as sentences.
        surroundings: collections and saver.
    """

    tags: str = ""
    side: str = "both"
    graph: GraphDiff = field(default_factory=GraphDiff)
    signatures: dict[str, list[Change]] = field(default_factory=dict[str, list[Change]])
    signatures_added: list[str] = field(default_factory=list[str])
    signatures_removed: list[str] = field(default_factory=list[str])
    breaking: list[str] = field(default_factory=list[str])
    surroundings: list[Change] = field(default_factory=list[Change])

    @property
    def is_equal(self) -> bool:
        return self.side == "both" and self.graph.is_equal and not any((
            self.signatures, self.signatures_added, self.signatures_removed, self.breaking, self.surroundings,
        ))  # fmt: skip

    def as_json(self) -> dict[str, Any]:
        return {
            "tags": self.tags,
            "side": self.side,
            "nodes": self.graph.as_json(),
            "signatures": {
                "added": self.signatures_added,
                "removed": self.signatures_removed,
                "changed": {key: [c.as_json() for c in changes] for key, changes in self.signatures.items()},
                "breaking": self.breaking,
            },
            "surroundings": [change.as_json() for change in self.surroundings],
        }


@dataclass(slots=True)
class ModelDiff:
    """How two models differ; `weights` are of the checkpoints that belong to them, None where one has none."""

    graphs: list[MetaDiff] = field(default_factory=list[MetaDiff])
    weights: list[Change] | None = None

    @property
    def is_equal(self) -> bool:
        return not self.weights and all(graph.is_equal for graph in self.graphs)

    def as_json(self) -> dict[str, Any]:
        return {
            "equal": self.is_equal,
            "graphs": [graph.as_json() for graph in self.graphs],
            "weights": None if self.weights is None else [change.as_json() for change in self.weights],
        }


# -- models ----------------------------------------------------------------------------------------------


def diff_models(old: Model, new: Model, options: DiffOptions | None = None) -> ModelDiff:
    """Compare two models of any kind; what only one kind has (signatures, collections) counts where both could.

    Raises:
        DataLossError: a checkpoint is damaged.
    """
    options = options or DiffOptions()
    out = ModelDiff()
    if len(old.meta_graphs) == len(new.meta_graphs) == 1:
        out.graphs.append(diff_meta_graphs(old.meta_graphs[0], new.meta_graphs[0], options))
    else:
        theirs = {_tags(meta): meta for meta in new.meta_graphs}
        for meta in old.meta_graphs:
            other = theirs.pop(_tags(meta), None)
            if other is None:
                out.graphs.append(MetaDiff(_tags(meta), "old"))
            else:
                diff = diff_meta_graphs(meta, other, options)
                diff.tags = _tags(meta)
                out.graphs.append(diff)
        out.graphs += [MetaDiff(tags, "new") for tags in theirs]
    if "weights" not in options.ignore:
        out.weights = _weights(variables_prefix(old), variables_prefix(new), options)
    return out


def _tags(meta: MetaGraph) -> str:
    return ",".join(sorted(meta.tags)) or "(no tags)"


def _weights(old: str | None, new: str | None, options: DiffOptions) -> list[Change] | None:
    if old is None or new is None:
        return None
    from toolkit.formats.bundle import compare, open_checkpoint

    changes: list[Change] = []
    for item in compare.compare(open_checkpoint(old), open_checkpoint(new), options.rtol, options.atol):
        if item.status == compare.EQUAL:
            continue
        before = f"{item.old.dtype} {item.old.shape}" if item.old else "absent"
        after = f"{item.new.dtype} {item.new.shape}" if item.new else "absent"
        if item.count:
            largest = "" if item.max_abs is None else f", by at most {item.max_abs:.3g}"
            after = f"{item.count:,} elements differ{largest}"
        changes.append(Change(item.name, before, after))
    return changes


def diff_meta_graphs(old: MetaGraph, new: MetaGraph, options: DiffOptions) -> MetaDiff:
    """Compare two MetaGraphs."""
    from toolkit.passes.validate.rules.signatures import incompatibilities

    out = MetaDiff(graph=diff_graphs(old.graph, new.graph, options))
    out.signatures_added = sorted(new.signatures.keys() - old.signatures.keys())
    out.signatures_removed = sorted(old.signatures.keys() - new.signatures.keys())
    names = {a: b for a, b, _ in out.graph.renamed}
    for key in sorted(old.signatures.keys() & new.signatures.keys()):
        changes = list(_signature(old.signatures[key], new.signatures[key], names))
        if changes:
            out.signatures[key] = changes
    before, after = ({k: s.proto for k, s in m.signatures.items() if s.proto is not None} for m in (old, new))
    out.breaking = [problem.message for problem in incompatibilities(before, after)]
    out.surroundings = list(_surroundings(old, new))
    return out


def _signature(old: Signature, new: Signature, names: Mapping[str, str]) -> Iterator[Change]:
    if old.method_name != new.method_name:
        yield Change("method", old.method_name, new.method_name)
    for side in ("inputs", "outputs"):
        before, after = getattr(old, side), getattr(new, side)
        for key in sorted({*before, *after}):
            a, b = before.get(key), after.get(key)
            texts = [("absent" if info is None else _info(info)) for info in (a, b)]
            if a is not None and b is not None:
                node, colon, index = a.name.partition(":")
                if names.get(node, node) + colon + index == b.name and _kind(a) == _kind(b):
                    continue  # it follows the renamed node
            if texts[0] != texts[1] or (
                a is not None and b is not None and tensor_info_proto(a) != tensor_info_proto(b)
            ):
                yield Change(f"{side}.{key}", *texts)


def _kind(info: Any) -> str:
    return f"{info.dtype} {info.shape}"


def _info(info: Any) -> str:
    return f"{info.name or 'a composite'} {_kind(info)}"


def _surroundings(old: MetaGraph, new: MetaGraph) -> Iterator[Change]:
    for key in sorted({*old.collections, *new.collections}):
        a, b = old.collections.get(key), new.collections.get(key)
        if a is None or b is None or list(a) != list(b):
            texts = ["absent" if v is None else f"{len(v):,} entries" for v in (a, b)]
            if texts[0] == texts[1]:
                texts[1] += ", others"
            yield Change(f"collection {key}", *texts)
    if (old.saver or None) != (new.saver or None):
        yield Change("saver", *("absent" if s is None else " ".join(str(s).split()) for s in (old.saver, new.saver)))


# -- graphs ----------------------------------------------------------------------------------------------


def diff_graphs(old: Graph, new: Graph, options: DiffOptions | None = None) -> GraphDiff:
    """Compare two graphs and their function libraries."""
    options = options or DiffOptions()
    functions = match_functions(old.library, new.library)
    out = _diff_nodes(old, new, options, functions)
    if "versions" not in options.ignore:
        out.versions = list(_versions(old, new))
    if "functions" in options.ignore:
        return out
    out.functions_added = [name for name in new.library if name not in set(functions.values())]
    out.functions_removed = [name for name in old.library if name not in functions]
    if "names" not in options.ignore:
        out.functions_renamed = [(a, b) for a, b in functions.items() if a != b]
    for a, b in functions.items():
        if old.library.function(a).SerializeToString(deterministic=True) == new.library.function(b).SerializeToString(
            deterministic=True
        ):
            continue
        diff = _diff_functions(old, new, a, b, options, functions)
        if not diff.is_equal:
            out.functions[a] = diff
    return out


def _diff_functions(
    old: Graph, new: Graph, a: str, b: str, options: DiffOptions, functions: dict[str, str]
) -> GraphDiff:
    try:
        before = instantiate(old.library, FuncRef(a)).graph
        after = instantiate(new.library, FuncRef(b)).graph
    except GraphmillError:
        # generic over a type, or broken: its text is all there is to compare
        texts = [str(lib.function(name).node_def) for lib, name in ((old.library, a), (new.library, b))]
        change = Change("body", f"{len(texts[0]):,} characters", f"{len(texts[1]):,} characters, others")
        return GraphDiff(changed=[NodeChange(a, b, "function", (change,))] if texts[0] != texts[1] else [])
    return _diff_nodes(before, after, options, functions)


def _diff_nodes(old: Graph, new: Graph, options: DiffOptions, functions: Mapping[str, str]) -> GraphDiff:
    matched = match_nodes(old, new)
    reached = set(matched.values())
    out = GraphDiff()
    out.added = [(node.name, node.op) for node in new.nodes if node not in reached]
    out.removed = [(node.name, node.op) for node in old.nodes if node not in matched]
    for node in old.nodes:
        other = matched.get(node)
        if other is None:
            continue
        changes = tuple(_changes(node, other, matched, options, functions))
        is_renamed = node.name != other.name and "names" not in options.ignore
        if is_renamed:
            out.renamed.append((node.name, other.name, other.op))
        if changes:
            out.changed.append(NodeChange(node.name, other.name, other.op, changes))
        if not changes and not is_renamed:
            out.same += 1
    return out


def _versions(old: Graph, new: Graph) -> Iterator[Change]:
    for name in ("producer", "min_consumer"):
        a, b = getattr(old.versions, name), getattr(new.versions, name)
        if a != b:
            yield Change(name, str(a), str(b))
    if list(old.versions.bad_consumers) != list(new.versions.bad_consumers):
        yield Change("bad_consumers", str(list(old.versions.bad_consumers)), str(list(new.versions.bad_consumers)))


def _changes(
    old: Node, new: Node, matched: Mapping[Node, Node], options: DiffOptions, functions: Mapping[str, str]
) -> Iterator[Change]:
    if functions.get(old.op, old.op) != new.op:
        yield Change("op", old.op, new.op)
    if old.device != new.device and "devices" not in options.ignore:
        yield Change("device", old.device or "none", new.device or "none")
    for position in range(max(len(old.inputs), len(new.inputs))):
        a = old.inputs[position] if position < len(old.inputs) else None
        b = new.inputs[position] if position < len(new.inputs) else None
        if a is None or b is None or matched.get(a.node) is not b.node or a.index != b.index:
            yield Change(f"input {position}", "none" if a is None else a.name, "none" if b is None else b.name)
    if "control" not in options.ignore:
        before = {matched.get(src) for src in old.control_inputs}
        if before != set(new.control_inputs):
            texts = [", ".join(sorted(src.name for src in n.control_inputs)) or "none" for n in (old, new)]
            yield Change("control inputs", *texts)
    yield from attr_changes(old, new, matched, options, functions)
