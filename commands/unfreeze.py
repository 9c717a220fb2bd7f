"""graphmill unfreeze: constants back to variables."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

from commands import messages
from commands.options import Allow, As, In, Out, Report, Tags, command_app

app = command_app()


@app.command()
def unfreeze(
    source: In = "-",
    min_bytes: Annotated[
        int, typer.Option(metavar="N", min=0, help="Make variables of constants of floats of at least N bytes.")
    ] = 1024,
    only: Annotated[
        list[str] | None, typer.Option(metavar="PATTERN", help="Constants that become variables. Repeatable.")
    ] = None,
    keep: Annotated[
        list[str] | None, typer.Option(metavar="PATTERN", help="Constants that stay constants. Repeatable.")
    ] = None,
    ref: Annotated[
        bool, typer.Option("--ref", help="Make reference variables (VariableV2) instead of resources.")
    ] = False,
    fetch: Annotated[
        list[str] | None,
        typer.Option(metavar="T", help="Tensor that becomes an output of a signature. Repeatable, or a list."),
    ] = None,
    checkpoint: Annotated[
        str | None, typer.Option(metavar="PREFIX", help="Where the values go (default: beside -o, of its name).")
    ] = None,
    tags: Tags = None,
    report: Report = None,
    out: Out = "-",
    as_kind: As = None,
    allow: Allow = None,
) -> None:
    """Make variables of a graph's constants, with a saver and a checkpoint, so that it can be trained again.

    The result is a MetaGraph with its checkpoint beside it, or a SavedModel with --as savedmodel, which holds them
    itself, in a pipe too. Constants inside of functions stay. A pattern is a name, a glob ("dense/*") or "re:REGEX".
    """
    from commands import models
    from commands.prune import split_names
    from toolkit.errors import UsageError, about_option
    from toolkit.formats.models.model import ModelKind, takes_files, target_kind, writes_folder
    from toolkit.passes.freezing.unfreeze import Unfreeze
    from toolkit.passes.freezing.unfreeze_model import unfreeze_model

    model = models.read("unfreeze", source, tags)
    as_kind = as_kind or "metagraph"
    kind, encoding = target_kind(model, out, as_kind)
    with_values = writes_folder(kind, out) or (
        kind is ModelKind.SAVED_MODEL and takes_files(out, encoding)  # a tar archive, with the variables in it
    )
    if kind is ModelKind.GRAPH_DEF:
        with about_option("--as"):
            raise UsageError("a GraphDef has no place for a saver and its variables; give metagraph or savedmodel")
    if out == "-" and checkpoint is None and not with_values:
        with about_option("--output"):
            raise UsageError("the values need a place too; give -o FILE.meta, --as savedmodel, or --checkpoint PREFIX")
    thaw = Unfreeze(min_bytes, tuple(only or ()), tuple(keep or ()), ref)
    with tempfile.TemporaryDirectory() as scratch:
        prefix = checkpoint or (str(Path(scratch, "variables")) if with_values else _beside(out))
        with models.about(source):
            made, facts = unfreeze_model(model, thaw, prefix, split_names(fetch))
        models.write("unfreeze", made, out, as_kind, allow)
    if report:
        from toolkit.formats.io import write_output

        write_output(report, json.dumps(facts, indent=2) + "\n")
    _say(facts, None if with_values and checkpoint is None else prefix)


def _beside(out: str) -> str:
    return str(Path(out).with_suffix(""))


def _say(facts: dict[str, Any], prefix: str | None) -> None:
    from toolkit.formats.inspection.report import plural

    size = sum(facts["variables"].values())
    where = f" in the checkpoint {prefix}" if prefix else ""
    messages.say("unfreeze", f"{plural(len(facts['variables']), 'constant')} became variables, {size:,} bytes{where}")
    if facts["left"]:
        shown = ", ".join(facts["left"][:5]) + (", ..." if len(facts["left"]) > 5 else "")
        messages.say("unfreeze", f"{plural(len(facts['left']), 'constant')} inside of loops stay: {shown}")
