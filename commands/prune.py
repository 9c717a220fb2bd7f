"""graphmill prune: keep only what the fetches and targets need."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from commands import messages
from commands.options import Allow, As, Feeds, Fetches, In, Out, Report, Tags, Targets, command_app

if TYPE_CHECKING:
    from toolkit.formats.models.model import Model
    from toolkit.graph.metagraph import MetaGraph
    from toolkit.passes.pruning.prune import Prune

app = command_app()


@app.command()
def prune(
    source: In = "-",
    fetch: Fetches = None,
    feed: Feeds = None,
    target: Targets = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(metavar="NODES", help="Nodes to keep, with what they need: a name, a glob, re:EXPRESSION."),
    ] = None,
    drop: Annotated[
        list[str] | None,
        typer.Option(metavar="NODES", help="First cut these away; what others read of them becomes inputs. As --keep."),
    ] = None,
    signature: Annotated[
        list[str] | None, typer.Option(metavar="KEY", help="Keep what this signature needs. Repeatable.")
    ] = None,
    tags: Tags = None,
    keep_lifecycle: Annotated[
        bool, typer.Option("--keep-lifecycle", help="Also keep initialisers, saver and queue runners for training.")
    ] = False,
    keep_functions: Annotated[
        bool, typer.Option("--keep-functions", help="Keep functions that nothing calls any more.")
    ] = False,
    clear_devices: Annotated[bool, typer.Option("--clear-devices", help="Let no node ask for a device.")] = False,
    why: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NODE",
            help="Say why NODE, FUNCTION or FUNCTION/NODE is kept, and write nothing. Repeatable.",
        ),
    ] = None,
    report: Report = None,
    out: Out = "-",
    as_kind: As = None,
    allow: Allow = None,
) -> None:
    """Keep only what the fetches and targets need; fed tensors become placeholders.

    Without --fetch, --target and --keep the file's only signature is kept, or all that --drop leaves. Feeds and fetches
    of a MetaGraph or SavedModel are noted as a signature, so that later stages know them. A SavedModel is written
    without the variables, tables and assets that nothing needs any more.
    """
    from tempfile import TemporaryDirectory

    from commands import models
    from toolkit.formats.models.model import ModelKind, target_kind
    from toolkit.graph.metagraph import DEFAULT_KEY
    from toolkit.passes.edit.properties import clear_all_devices
    from toolkit.passes.models.surroundings import record_signature

    model = models.read("prune", source, tags)
    with models.about(source), TemporaryDirectory(prefix="graphmill-prune-") as scratch:
        model, dropped = _dropped(model, drop or [])
        meta = model.meta
        targets = split_names(target)
        if drop and not (fetch or targets or keep or signature):
            targets = [node.name for node in meta.graph]
        options, labels = prune_options(
            meta, split_names(feed), split_names(fetch), targets, signature, keep_functions, keep
        )
        options = _fed(options, meta, dropped)
        for asked, found in zip(split_names(fetch), options.fetches, strict=False):
            if found.startswith(f"{asked}/"):
                messages.say("prune", f"'{asked}' is '{found}', the one result of that scope")
        if why:
            _explain(model, options, why, keep_lifecycle)
            return
        pruned, facts = _prune(model, options, keep_lifecycle, Path(scratch))
        facts |= {key: dropped[key] for key in ("dropped", "inputs") if key in dropped}
        facts["signatures"] = {**dropped.get("signatures", {}), **facts["signatures"]}
        smaller = pruned.meta
        target_is, _ = target_kind(model, out, as_kind)
        if (
            target_is is not ModelKind.GRAPH_DEF
            and options.fetches
            and not (fetch is None and len(signature or []) > 1)
        ):
            feeds: dict[str, str] = {labels.get(str(k)) or str(k): v for k, v in facts["feeds"].items()}
            fetches: dict[str, str] = {labels.get(str(k)) or str(k): v for k, v in facts["fetches"].items()}
            key = DEFAULT_KEY if model.kind is ModelKind.GRAPH_DEF else None
            facts["signature"] = record_signature(smaller, feeds, fetches, wanted=key)
        if clear_devices:
            facts["devices_cleared"] = clear_all_devices(smaller.graph)
        if report:
            from toolkit.formats.io import write_output

            write_output(report, json.dumps(facts, indent=2).encode() + b"\n")
        models.write("prune", pruned, out, as_kind, allow)
    _say(facts)


def _dropped(model: Model, patterns: list[str]) -> tuple[Model, dict[str, Any]]:
    """The model without nodes that are not wanted, and what was done."""
    if not patterns:
        return model, {}
    from toolkit.errors import about_option
    from toolkit.passes.edit.draft import choose_nodes
    from toolkit.passes.pruning.drop import drop_nodes

    with about_option("--drop"):
        nodes = choose_nodes(model.graph, patterns)
        meta, report = drop_nodes(model.meta, tuple(node.name for node in nodes))
    return model.with_meta(meta), report


def _fed(options: Prune, meta: MetaGraph, dropped: dict[str, Any]) -> Prune:
    """The pass with the tensors that took the place of dropped ones as feeds, as far as something needs them."""
    inputs = [name for name in dropped.get("inputs", {}).values() if name not in options.feeds]
    if not inputs:
        return options
    from dataclasses import replace

    from toolkit.passes.pruning.prune import need

    feeds = (*options.feeds, *inputs)
    used = need(meta.graph, feeds, options.fetches, options.targets).used
    needed = [name for name in inputs if (meta.graph.node(name.removesuffix(":0")).id, 0) in used]
    return replace(options, feeds=(*options.feeds, *needed))


def _prune(model: Model, options: Prune, keep_lifecycle: bool, scratch: Path) -> tuple[Model, dict[str, Any]]:
    """The pruned model, and what was done."""
    from dataclasses import replace

    from toolkit.formats.models.model import ModelKind
    from toolkit.passes.base import run_pass
    from toolkit.passes.models.surroundings import lifecycle_operations, shrink, variables_without_initialiser
    from toolkit.passes.pruning.slim import prune_saved_model

    if model.kind is ModelKind.SAVED_MODEL and not keep_lifecycle:
        slim = prune_saved_model(model, options, scratch)
        return slim.model, {**slim.result.report, **slim.dropped, "variables": slim.variables}
    lifecycle = lifecycle_operations(model.meta)
    if keep_lifecycle or model.kind is ModelKind.SAVED_MODEL:
        options = replace(options, targets=(*options.targets, *lifecycle))
    # what lies around a graph is compared with what it was; a bare one is not looked at again
    result = run_pass(options, model.graph, keep=model.kind is not ModelKind.GRAPH_DEF)
    smaller, surroundings = shrink(model.meta, result.graph)
    facts: dict[str, Any] = {**result.report, **surroundings, "variables": {}}
    facts["uninitialised"] = variables_without_initialiser(model.meta, smaller)
    return model.with_meta(smaller), facts


def _names(facts: dict[str, Any]) -> set[str]:
    """The tensors that are fed."""
    return {name for name in facts["feeds"].values() if name}


def split_names(values: list[str] | None) -> list[str]:
    """The names of an option that is repeatable and takes lists."""
    return [part for value in values or [] for part in value.split(",") if part]


def prune_options(
    meta: MetaGraph,
    feeds: list[str],
    fetches: list[str],
    targets: list[str],
    key: str | list[str] | None,
    keep_functions: bool,
    keep: list[str] | None = None,
) -> tuple[Prune, dict[str, str]]:
    """The pass that keeps what was asked for, and the signature's labels by tensor name.

    Args:
        key: of a signature, or of several.
        keep: patterns of nodes.

    Raises:
        UsageError, GraphError: something is not there; nothing was asked for and there is no only signature.
    """
    from toolkit.errors import about_option
    from toolkit.graph.tensorref import parse_tensor
    from toolkit.passes.pruning.prune import Prune
    from toolkit.runtime.jobs.request import get_signature, only_signature
    from toolkit.runtime.jobs.suggest import result_of_scope

    fetches = [result_of_scope(meta.graph, name) or name for name in fetches]
    for option, names in (("--feed", feeds), ("--fetch", fetches)):
        with about_option(option):
            for name in names:
                meta.graph.require_output(parse_tensor(name))
    with about_option("--target"):
        for name in targets:
            if (wanted := name.removeprefix("^")) not in meta.graph:
                meta.graph.node(wanted)  # which says what is close to it
    if keep:
        from toolkit.passes.edit.draft import choose_nodes

        with about_option("--keep"):
            targets = [*targets, *(node.name for node in choose_nodes(meta.graph, keep))]
    labels: dict[str, str] = {}
    keys = [key] if isinstance(key, str) else key or []
    if keys or not (fetches or targets):
        with about_option("--signature"):
            chosen = [get_signature(meta, each) for each in keys] or [only_signature(meta)]
        for each in chosen:
            takes, gives = each.input_tensors(), each.output_tensors()
            labels |= {tensor: label for group in (gives, takes) for label, tensor in group.items()}
            fetches = [*fetches, *gives.values()]
            known = set(feeds)
            feeds = [*feeds, *dict.fromkeys(tensor for tensor in takes.values() if tensor not in known)]
    return Prune(tuple(feeds), tuple(dict.fromkeys(fetches)), tuple(targets), keep_functions), labels


def _explain(model: Model, options: Prune, names: list[str], keep_lifecycle: bool) -> None:
    from dataclasses import replace

    from toolkit.errors import about_option
    from toolkit.formats.models.model import ModelKind
    from toolkit.passes.models.surroundings import lifecycle_operations
    from toolkit.passes.pruning.reasons import why_kept
    from toolkit.passes.pruning.slim import needed_in_saved_model

    graph, all_ = model.graph, options
    if keep_lifecycle:
        all_ = replace(options, targets=(*options.targets, *lifecycle_operations(model.meta)))
    elif model.kind is ModelKind.SAVED_MODEL:
        graph, all_ = needed_in_saved_model(model, options)
    for name in names:
        with about_option("--why"):  # what was asked for is a better reason than what brings it to life
            chain = why_kept(model.graph, options, name) or why_kept(graph, all_, name)
        messages.show(" <- ".join(reversed(chain)) if chain else f"{name} is not needed")


def _say(facts: dict[str, Any]) -> None:
    from toolkit.formats.inspection.report import plural

    lines = [f"kept {facts['nodes_after']:,} of {facts['nodes_before']:,} nodes"]
    if facts["functions_removed"]:
        lines.append(f"removed {plural(facts['functions_removed'], 'function')} that nothing calls")
    for text, name in facts["feeds"].items():
        if name not in (text, f"{text}:0"):
            lines.append(f"'{text}' is fed through the new placeholder '{name}'")
    if facts.get("dropped"):
        lines.append(f"cut away {plural(facts['dropped'], 'node')}")
    lines += [f"'{old}' is an input now: {new}" for old, new in facts.get("inputs", {}).items() if new in _names(facts)]
    for text in facts["unused_feeds"]:
        lines.append(f"the feed '{text}' is not needed and was left out")
    for name, count in facts["collections"].items():
        lines.append(f"dropped {plural(count, 'entry', 'entries')} of the collection '{name}'")
    for name, what in facts["signatures"].items():
        lines.append(f"signature '{name}': {what}")
    if facts["saver"] == "dropped":
        lines.append("dropped the saver: its operations are not needed (--keep-lifecycle keeps it)")
    gone = facts["variables"].get("removed", [])
    if gone:
        lines.append(f"removed {plural(len(gone), 'variable')} that nothing needs, with the values in the checkpoint")
    if facts.get("uninitialised"):
        lines.append(
            f"{plural(facts['uninitialised'], 'variable')} without what gives them values: "
            "--keep-lifecycle keeps initialisers and saver"
        )
    if facts.get("devices_cleared"):
        lines.append(f"cleared the device of {plural(facts['devices_cleared'], 'node')}")
    if facts["object_graph"] == "dropped":
        lines.append("dropped the object graph: the signatures are not as it has them")
    for line in lines:
        messages.say("prune", line)
