"""graphmill prune: keep only what the fetches and targets need."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from commands import messages
from commands.options import Allow, As, In, Out, command_app

if TYPE_CHECKING:
    from toolkit.graph.metagraph import MetaGraph
    from toolkit.passes.prune import Prune

app = command_app()


@app.command()
def prune(
    source: In = "-",
    fetch: Annotated[
        list[str] | None,
        typer.Option(metavar="T", help="Tensor to keep: NODE or NODE:INDEX. Repeatable, or a comma-separated list."),
    ] = None,
    feed: Annotated[
        list[str] | None,
        typer.Option(metavar="T", help="Tensor that becomes an input. Repeatable, or a comma-separated list."),
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(metavar="OP", help="Operation to keep. Repeatable, or a comma-separated list."),
    ] = None,
    signature: Annotated[str | None, typer.Option(metavar="KEY", help="Keep what this signature needs.")] = None,
    tags: Annotated[str | None, typer.Option(metavar="A,B", help="Tag set that picks a SavedModel's graph.")] = None,
    keep_lifecycle: Annotated[
        bool, typer.Option("--keep-lifecycle", help="Also keep initialisers, saver and queue runners for training.")
    ] = False,
    keep_functions: Annotated[
        bool, typer.Option("--keep-functions", help="Keep functions that nothing calls any more.")
    ] = False,
    why: Annotated[
        list[str] | None, typer.Option(metavar="NODE", help="Say why NODE is kept, and write nothing. Repeatable.")
    ] = None,
    report: Annotated[str | None, typer.Option(metavar="FILE.json", help="Write what was done as JSON.")] = None,
    out: Out = "-",
    as_kind: As = None,
    allow: Allow = None,
) -> None:
    """Keep only what the fetches and targets need; fed tensors become placeholders.

    Without --fetch and --target the file's only signature is kept. Feeds and fetches of a MetaGraph or SavedModel
    are noted as a signature, so that later stages know them.
    """
    from commands import models
    from toolkit.formats.model import ModelKind
    from toolkit.passes.base import run_pass
    from toolkit.passes.surroundings import lifecycle_operations, record_signature, shrink

    model = models.read("prune", source, tags)
    with models.about(source):
        meta = model.meta
        options, labels = prune_options(
            meta, split_names(feed), split_names(fetch), split_names(target), signature, keep_functions
        )
        if keep_lifecycle or model.kind is ModelKind.SAVED_MODEL:  # its variables come back through its saver
            from dataclasses import replace

            options = replace(options, targets=(*options.targets, *lifecycle_operations(meta)))
        if why:
            _explain(meta, options, why)
            return
        result = run_pass(options, model.graph)
    smaller, surroundings = shrink(meta, result.graph)
    facts = {**result.report, **surroundings}
    if model.kind is not ModelKind.GRAPH_DEF and options.fetches:
        feeds: dict[str, str] = {labels.get(str(k)) or str(k): v for k, v in facts["feeds"].items()}
        fetches: dict[str, str] = {labels.get(str(k)) or str(k): v for k, v in facts["fetches"].items()}
        facts["signature"] = record_signature(smaller, feeds, fetches)
    if report:
        from toolkit.formats.io import write_output

        write_output(report, json.dumps(facts, indent=2).encode() + b"\n")
    models.write("prune", model.with_meta(smaller), out, as_kind, allow)
    _say(facts)


def split_names(values: list[str] | None) -> list[str]:
    """The names of an option that is repeatable and takes lists."""
    return [part for value in values or [] for part in value.split(",") if part]


def prune_options(
    meta: MetaGraph, feeds: list[str], fetches: list[str], targets: list[str], key: str | None, keep_functions: bool
) -> tuple[Prune, dict[str, str]]:
    """The pass that keeps what was asked for, and the signature's labels by tensor name.

    Raises:
        UsageError, GraphError: something is not there; nothing was asked for and there is no only signature.
    """
    from toolkit.errors import about_option
    from toolkit.graph.tensorref import parse_tensor
    from toolkit.passes.prune import Prune
    from toolkit.runtime.request import get_signature, only_signature

    for option, names in (("--feed", feeds), ("--fetch", fetches)):
        with about_option(option):
            for name in names:
                meta.graph.output(parse_tensor(name))
    with about_option("--target"):
        for name in targets:
            meta.graph.node(name.removeprefix("^"))
    labels: dict[str, str] = {}
    if key is not None or not (fetches or targets):
        with about_option("--signature"):
            chosen = get_signature(meta, key) if key is not None else only_signature(meta)
        takes, gives = chosen.input_tensors(), chosen.output_tensors()
        labels = {tensor: label for group in (gives, takes) for label, tensor in group.items()}
        fetches = [*fetches, *gives.values()]
        known = set(feeds)
        feeds = [*feeds, *(tensor for tensor in takes.values() if tensor not in known)]
    return Prune(tuple(feeds), tuple(dict.fromkeys(fetches)), tuple(targets), keep_functions), labels


def _explain(meta: MetaGraph, options: Prune, names: list[str]) -> None:
    from toolkit.errors import about_option
    from toolkit.passes.prune import need

    needed = need(meta.graph, options.feeds, options.fetches, options.targets)
    for name in names:
        with about_option("--why"):
            chain = needed.why_kept(meta.graph.node(name))
        messages.show(" <- ".join(reversed(chain)) if chain else f"{name} is not needed")


def _say(facts: dict[str, Any]) -> None:
    from toolkit.formats.report import plural

    lines = [f"kept {facts['nodes_after']:,} of {facts['nodes_before']:,} nodes"]
    if facts["functions_removed"]:
        lines.append(f"removed {plural(facts['functions_removed'], 'function')} that nothing calls")
    for text, name in facts["feeds"].items():
        if name not in (text, f"{text}:0"):
            lines.append(f"'{text}' is fed through the new placeholder '{name}'")
    for text in facts["unused_feeds"]:
        lines.append(f"the feed '{text}' is not needed and was left out")
    for name, count in facts["collections"].items():
        lines.append(f"dropped {plural(count, 'entry', 'entries')} of the collection '{name}'")
    for name, what in facts["signatures"].items():
        lines.append(f"signature '{name}': {what}")
    if facts["saver"] == "dropped":
        lines.append("dropped the saver: its operations are not needed (--keep-lifecycle keeps it)")
    if facts["object_graph"] == "dropped":
        lines.append("dropped the object graph: it speaks of functions that are gone")
    for line in lines:
        messages.say("prune", line)
