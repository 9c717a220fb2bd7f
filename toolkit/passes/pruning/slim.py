"""A pruned SavedModel without the variables, tables and assets that nothing needs any more, checkpoint included.

A SavedModel gets its variables back through its saver, so whoever keeps the saver keeps every variable. Here the saver
is kept only where it saves what is needed and nothing else; otherwise the model gets a new one for the variables that
stay, and a checkpoint of their values. Of its objects those stay that are still whole, and the checkpoint says which
value is whose, so that TensorFlow 2 loads them as before.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from toolkit.errors import GraphmillError
from toolkit.formats.models.model import Model, variables_prefix
from toolkit.graph.graph import Graph
from toolkit.graph.metagraph import GraphKeys, MetaGraph
from toolkit.graph.node import Node
from toolkit.graph.query import reachable
from toolkit.graph.summary import VARIABLES
from toolkit.passes.base import PassResult, run_pass
from toolkit.passes.models.objects import keep_functions
from toolkit.passes.models.surroundings import lifecycle_operations, shrink, table_initialisers
from toolkit.passes.pruning.prune import Prune, need

_INIT_KEYS = (GraphKeys.SAVED_MODEL_INIT_OP, GraphKeys.LEGACY_INIT_OP)


@dataclass(slots=True)
class Slimmed:
    """What became of a SavedModel.

    Attributes:
        model: with the pruned graph and its surroundings.
        result: of the pruning.
        dropped: the report of `shrink`.
        variables: names of those that went ("removed") and that stayed ("kept"), where some went.
    """

    model: Model
    result: PassResult
    dropped: dict[str, Any]
    variables: dict[str, list[str]] = field(default_factory=dict[str, list[str]])


def prune_saved_model(model: Model, options: Prune, scratch: Path) -> Slimmed:
    """Prune a SavedModel with what brings it to life.

    Args:
        scratch: a folder for its checkpoint, which is to be there until the model is written.

    Raises:
        GraphmillError: as `Prune.apply`; the checkpoint cannot be read.
    """
    plan = _plan(model, options)
    if plan.prefix is None:
        return _finished(model, plan.result)
    return _with_new_saver(model, plan.result, plan.prefix, scratch, plan.gone)


def needed_in_saved_model(model: Model, options: Prune) -> tuple[Graph, Prune]:
    """The graph and the pass that say what stays of a SavedModel: with what fills its tables, and with its own saver
    where that stays.

    Raises:
        GraphmillError: as `Prune.apply`.
    """
    plan = _plan(model, options)
    return plan.graph, plan.options


@dataclass(frozen=True, slots=True)
class _Plan:
    """How a SavedModel is pruned: what is pruned, with what, to what; with a new saver where variables are gone from
    the checkpoint at `prefix`."""

    graph: Graph
    options: Prune
    result: PassResult
    gone: list[str] = field(default_factory=list[str])
    prefix: str | None = None


def _plan(model: Model, options: Prune) -> _Plan:
    meta = model.meta
    graph, inits = _without_unneeded_tables(meta, options)
    alone = replace(options, targets=(*options.targets, *inits))
    whole = replace(options, targets=(*options.targets, *inits, *_saver_operations(meta)))
    large = _run(whole, meta, graph)
    prefix = variables_prefix(model)
    if prefix is None or len(model.meta_graphs) > 1 or meta.saver is None:
        return _Plan(graph, whole, large)
    small = _run(alone, meta, graph)
    gone = sorted(set(_variables(large.graph)) - set(_variables(small.graph)))
    return _Plan(graph, alone, small, gone, prefix) if gone else _Plan(graph, whole, large)


def _run(options: Prune, meta: MetaGraph, graph: Graph) -> PassResult:
    """Prune; functions of objects that stay are kept with these."""
    if options.keep_functions or not meta.shell.HasField("object_graph_def"):
        return run_pass(options, graph)
    result = run_pass(replace(options, keep_functions=True), graph)
    removed = keep_functions(meta, result.graph, keep_objects=False)
    return replace(
        result, modified=result.modified or removed > 0, report=result.report | {"functions_removed": removed}
    )


def _saver_operations(meta: MetaGraph) -> list[str]:
    without = lifecycle_operations(replace(meta, saver=None))
    return [name for name in lifecycle_operations(meta) if name not in without] + [
        name for name in without if name not in table_initialisers(meta)
    ]


def _variables(graph: Graph) -> list[str]:
    return [node.name for node in graph.nodes if node.op in VARIABLES]


def _finished(model: Model, result: PassResult) -> Slimmed:
    smaller, dropped = shrink(model.meta, result.graph)
    return Slimmed(_without_assets(model, smaller), result, dropped)


def _with_new_saver(model: Model, small: PassResult, prefix: str, scratch: Path, gone: list[str]) -> Slimmed:
    from toolkit.formats.bundle.locate import open_tensors
    from toolkit.formats.bundle.object_graph import KEY, find_object_graph
    from toolkit.formats.bundle.surgery.prune import select
    from toolkit.formats.bundle.transfer import write_items
    from toolkit.formats.models.object_variables import object_keys
    from toolkit.formats.models.variable_values import VariableValues
    from toolkit.passes.freezing.saver_nodes import Saved, add_saver

    graph = small.graph
    meta = replace(model.meta, saver=None)
    stays: list[str] = []
    with open_tensors(prefix) as source:
        values = VariableValues(model, source)
        entries: list[Saved] = []
        for node in graph.nodes:
            found = values.key(node) if node.op in VARIABLES else None
            if found is not None:
                entries.append(Saved(node, found[0], source.entry(found[0]).dims, found[1]))
                stays.append(node.name)
        checkpoint = ""
        keys = {entry.key for entry in entries}
        values_of = object_keys(meta, source)
        objects = meta.shell.object_graph_def.nodes
        empty = {at for at, key in values_of.items() if key not in keys and objects[at].HasField("variable")}
        smaller, dropped = shrink(meta, graph, empty)
        if dropped["object_graph"] == "reduced":  # what tables and the like have saved stays with them
            keys |= {name for name in source if name != KEY} - {values_of[at] for at in empty}
        lost = [name for name in source if name not in keys and name != KEY]
        has_objects = dropped["object_graph"] != "dropped" and find_object_graph(source) is not None
        if keys or has_objects:  # objects are not loaded without a checkpoint
            checkpoint = str(scratch / "variables")
            kept = [name for name in source if name in keys or (has_objects and name == KEY)]
            write_items(checkpoint, select(source, kept, lost if has_objects else []))
    if entries:
        smaller = replace(smaller, saver=add_saver(smaller.graph, entries))
    made = replace(_without_assets(model, smaller), checkpoint=checkpoint)
    return Slimmed(made, small, dropped, {"removed": gone, "kept": stays})


def _without_assets(model: Model, smaller: MetaGraph) -> Model:
    """The model with the smaller graph, and without the files of assets that no graph of it lists any more."""
    made = model.with_meta(smaller)
    try:
        before = {asset.filename for meta in model.meta_graphs for asset in meta.assets}
        after = {asset.filename for meta in made.meta_graphs for asset in meta.assets}
    except GraphmillError:
        return made
    return replace(made, without_assets=frozenset(before - after))


# -- tables ----------------------------------------------------------------------------------------------


def _without_unneeded_tables(meta: MetaGraph, options: Prune) -> tuple[Graph, list[str]]:
    """The graph whose initialiser fills only what is needed, and the operations that bring it to life."""
    inits = [name for name in table_initialisers(meta) if name in meta.graph]
    graph = meta.graph
    needed = need(graph, options.feeds, options.fetches, options.targets).ids
    groups = [graph.node(name) for name in inits if _is_group(graph.node(name))]
    members = [graph.node(name) for name in inits if not _is_group(graph.node(name))]
    kept = {node.name for node in [*members, *(src for group in groups for src in group.control_inputs)]}
    for name in list(kept):
        node = graph.node(name)
        filled = [each for each in _resources(graph, node) if each.id not in needed]
        if filled and len(filled) == len(_resources(graph, node)):
            kept.discard(name)
    if all(src.name in kept for group in groups for src in group.control_inputs):
        return graph, [node.name for node in [*groups, *members] if node in groups or node.name in kept]
    made = graph.copy()
    for group in groups:
        copy = made.node(group.name)
        copy.control_inputs = [src for src in copy.control_inputs if src.name in kept]
    return made, [node.name for node in [*groups, *members] if node in groups or node.name in kept]


def _is_group(node: Node) -> bool:
    return node.op == "NoOp"


def _resources(graph: Graph, node: Node) -> list[Node]:
    """The tables and variables below a node; one whose resource is made inside of a function has none to be seen."""
    return [graph.nodes[at] for at in reachable(node, None) if _makes_resource(graph.nodes[at])]


def _makes_resource(node: Node) -> bool:
    return node.op in VARIABLES or "HashTable" in node.op
