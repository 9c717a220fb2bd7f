"""`graphmill checkpoint prune`: drop what is not needed."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from commands.checkpoint.complete import complete_tensor
from commands.checkpoint.shared import PlannedPrefix, Prefix, planned, plural, size, writing
from commands.messages import show
from commands.options import Json, command_app, print_json

app = command_app()


@app.command()
def prune(
    prefix: Prefix,
    output: PlannedPrefix = None,
    drop: Annotated[
        list[str] | None,
        typer.Option(
            "--drop",
            metavar="PATTERN",
            help="Drop tensors whose name matches. Repeatable.",
            autocompletion=complete_tensor,
        ),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            "--keep",
            metavar="PATTERN",
            help="Keep tensors whose name matches, whatever else drops them; alone: keep only those. Repeatable.",
            autocompletion=complete_tensor,
        ),
    ] = None,
    for_graph: Annotated[
        str | None,
        typer.Option("--for", metavar="GRAPH", help="Keep only what this graph, MetaGraph or SavedModel restores."),
    ] = None,
    signature: Annotated[
        str | None, typer.Option("--signature", metavar="KEY", help="With --for: only what this signature needs.")
    ] = None,
    slots: Annotated[
        bool, typer.Option("--slots", help="Drop the optimizers' variables (Adam's moments, ...).")
    ] = False,
    global_step: Annotated[bool, typer.Option("--global-step", help="Drop step and save counters.")] = False,
    averages: Annotated[bool, typer.Option("--moving-averages", help="Drop exponential moving averages.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be dropped.")] = False,
    json: Json = False,
) -> None:
    """Write a smaller checkpoint, and say how many bytes that saves.

    PATTERN is a glob ('*/Adam*') or 're:EXPRESSION'. In object-based checkpoints the object graph is pruned too, so
    TensorFlow restores what is left.

    graphmill checkpoint prune model/ckpt-7 -o slim --slots --global-step
    """
    from toolkit.errors import UsageError, about_option
    from toolkit.formats.bundle.locate import open_tensors
    from toolkit.formats.bundle.patterns import matcher, require_matches
    from toolkit.formats.bundle.surgery import prune as pruning

    if not (drop or keep or for_graph or slots or global_step or averages):
        raise UsageError("say what to drop: --drop, --keep, --for, --slots, --global-step or --moving-averages")
    if signature and not for_graph:
        raise UsageError("--signature needs --for GRAPH")
    target = planned(output, dry_run)
    with open_tensors(prefix) as reader, writing():
        for option, patterns in (("--drop", drop), ("--keep", keep)):
            with about_option(option):
                require_matches(patterns or [], reader, reader.prefix)
        dropped = matcher(drop or [])
        kept = matcher(keep or [])
        only_kept = bool(keep) and not (drop or for_graph or slots or global_step or averages)
        optimizer = pruning.optimizer_state(reader) if slots else set[str]()
        needed = _needed(reader, for_graph, signature) if for_graph else None

        def wanted(name: str) -> bool:
            if kept(name):
                return True
            if only_kept or dropped(name) or name in optimizer or (needed is not None and name not in needed):
                return False
            if global_step and pruning.is_global_step(name):
                return False
            return not (averages and pruning.is_moving_average(name))

        result = pruning.prune(reader, target, wanted, dry_run)
    if json:
        print_json(
            {
                "prefix": prefix, "output": None if dry_run else output, "kept": result.kept, "dropped": result.dropped,
                "bytes": result.kept_bytes, "bytes_saved": result.dropped_bytes,
            }
        )  # fmt: skip
        return
    for name in result.dropped if dry_run else []:
        show(name)
    total = result.kept_bytes + result.dropped_bytes
    share = result.dropped_bytes / total if total else 0.0
    verb = "would drop" if dry_run else "dropped"
    show(
        f"{verb} {plural(len(result.dropped), 'tensor')}, {size(result.dropped_bytes)} ({share:.0%}); "
        f"kept {plural(len(result.kept), 'tensor')}, {size(result.kept_bytes)}"
    )


def _needed(reader: Any, path: str, signature: str | None) -> set[str]:
    from toolkit.errors import NotFoundError, about_option, did_you_mean
    from toolkit.formats.models import checkpoint_graph
    from toolkit.formats.models.model import read_model

    model = read_model(path)
    if signature:
        with about_option("--signature"):
            expected = checkpoint_graph.signature_variables(model, signature)
    else:
        expected = checkpoint_graph.expected_tensors(model)
    names = checkpoint_graph.resolve(reader, expected, model)
    missing = [item.name for item, name in names.items() if name is None]
    if missing:
        raise NotFoundError(
            f"the graph needs '{missing[0]}'{f' and {len(missing) - 1} more' if len(missing) > 1 else ''}, which the "
            f"checkpoint lacks{did_you_mean(missing[0], reader)}",
            file=reader.prefix,
        )
    return {name for name in names.values() if name}
