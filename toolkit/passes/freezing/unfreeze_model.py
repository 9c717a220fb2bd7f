"""Unfreezing a whole model: variables with a saver, collections and a checkpoint, so that TensorFlow can train it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from toolkit.errors import UsageError, about_option
from toolkit.formats import bundle
from toolkit.formats.arrays import tensor
from toolkit.formats.models.checkpoint_graph import ancestors
from toolkit.formats.models.model import Model, from_meta_graph, variables_prefix
from toolkit.formats.models.variable_values import VariableValues
from toolkit.graph.metagraph import GraphKeys, MetaGraph, Signature, TensorInfo
from toolkit.graph.summary import PLACEHOLDERS, VARIABLES
from toolkit.graph.tensorref import parse_tensor
from toolkit.passes.base import run_pass
from toolkit.passes.freezing.saver_nodes import Saved, add_saver, variable_entry
from toolkit.passes.freezing.unfreeze import Unfreeze
from toolkit.passes.models.surroundings import record_signature, without_objects


def unfreeze_model(
    model: Model, thaw: Unfreeze, prefix: str | Path, fetches: Sequence[str] = ()
) -> tuple[Model, dict[str, Any]]:
    """A MetaGraph with variables in the place of constants; their values are written as a checkpoint.

    Variables that the model has already, and their values, come along.

    Args:
        prefix: of the checkpoint.
        fetches: tensors that become a signature, with the placeholders that they need.

    Raises:
        UsageError: no constant is chosen.
        GraphmillError: the checkpoint cannot be written.
    """
    meta = without_objects(model.meta)
    with about_option("--fetch"):
        for name in fetches:
            meta.graph.output(parse_tensor(name))
    result = run_pass(thaw, meta.graph)
    report = result.report
    if not thaw.made:
        raise UsageError(
            f"no constant of floats has {thaw.min_bytes:,} bytes or more; choose with --only or --min-bytes"
        )
    graph = result.graph
    reads: dict[str, str] = report["reads"]
    meta = replace(meta, graph=graph, signatures=_renamed(meta.signatures, reads))
    fetches = [reads.get(name if ":" in name else f"{name}:0", name) for name in fetches]
    if fetches:
        needed = ancestors([graph.output(parse_tensor(name)).node for name in fetches])
        inputs = {node.name: f"{node.name}:0" for node in needed if node.op in PLACEHOLDERS}
        record_signature(
            meta, dict(sorted(inputs.items())), {name: graph.output(parse_tensor(name)).name for name in fetches}
        )
    known, entries = _known(replace(model, meta_graphs=[meta], selected=0))
    with bundle.BundleWriter(str(prefix)) as writer:
        values = {thawed.variable.name: thawed for thawed in thaw.made}
        taken = sorted(known.keys() & values.keys())
        if taken:
            raise UsageError(
                f"the checkpoint of the model has a tensor '{taken[0]}' already, which a constant is named too"
            )
        for name in sorted([*known, *values]):
            if name in values:
                value = values[name].value
                writer.add(name, tensor.to_array(value), tensor.dtype_of(value))
            else:
                writer.add(name, known[name])
    saved = [Saved(thawed.variable, thawed.variable.name) for thawed in thaw.made]
    meta = replace(meta, saver=add_saver(graph, [*saved, *entries]), collections=_collections(meta, thaw))
    made = from_meta_graph(meta, model.source)
    return replace(made, checkpoint=str(prefix), folder=model.folder, shell=model.shell), report


def _known(model: Model) -> tuple[dict[str, Any], list[Saved]]:
    """The variables that a model has a checkpoint of: their values by key, and what to save of them."""
    prefix = variables_prefix(model)
    values: dict[str, Any] = {}
    entries: list[Saved] = []
    if prefix is None:
        return values, entries
    with bundle.open_checkpoint(prefix) as source:
        found = VariableValues(model, source)
        for node in model.graph:
            key = found.key(node) if node.op in VARIABLES else None
            if key is not None:
                values.setdefault(key[0], source.read(key[0]).copy())
                entries.append(Saved(node, key[0], source.entry(key[0]).dims, key[1]))
    return values, entries


def _renamed(signatures: dict[str, Signature], reads: dict[str, str]) -> dict[str, Signature]:
    """Signatures that named a constant name what is read in its place."""

    def info(item: TensorInfo) -> TensorInfo:
        return replace(item, name=reads[item.name]) if item.name in reads else item

    return {
        key: replace(
            signature,
            inputs={label: info(item) for label, item in signature.inputs.items()},
            outputs={label: info(item) for label, item in signature.outputs.items()},
        )
        for key, signature in signatures.items()
    }


def _collections(meta: MetaGraph, thaw: Unfreeze) -> dict[str, list[Any]]:
    every: list[bytes] = []
    trainable: list[bytes] = []
    for thawed in thaw.made:
        is_trainable = thawed.variable.attr("dtype").is_floating
        parts = thawed.variable, thawed.initializer, thawed.initial, thawed.read
        every.append(variable_entry(*parts, trainable=is_trainable))
        if is_trainable:
            trainable.append(every[-1])
    old = meta.collections
    return {
        **old,
        GraphKeys.GLOBAL_VARIABLES: [*old.get(GraphKeys.GLOBAL_VARIABLES, []), *every],
        GraphKeys.TRAINABLE_VARIABLES: [*old.get(GraphKeys.TRAINABLE_VARIABLES, []), *trainable],
    }
