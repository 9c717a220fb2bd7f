"""graphmill edit: change a model.

`--report FILE.json` writes one object:

    edits     [{edit: kind, at: where it stands in the list, or the option, did: what it did}]
    notes     what was dropped because what it named is gone, as sentences
    remaining what was wrong with the graph before, and is still

Exit codes: 0 done, 2 bad input or usage: nothing was written.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from commands import messages
from commands.edit_options import EDITS, EditCommand, telling_all_mistakes
from commands.options import Allow, As, In, Out, Report, Tags, command_app

if TYPE_CHECKING:
    from toolkit.formats.models.model import Model
    from toolkit.passes.edit.table import Step

app = command_app()


@app.command(cls=EditCommand)
def edit(
    context: typer.Context,
    source: In = "-",
    edits: Annotated[
        str | None, typer.Option(metavar="FILE.yaml", help="A list of edits, made after those of the options.")
    ] = None,
    tags: Tags = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print how the model would change; write nothing.")
    ] = False,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of lists of edits, and end.")] = False,
    kinds: Annotated[bool, typer.Option("--kinds", help="Print all kinds of edits, and end.")] = False,
    report: Report = None,
    out: Out = "-",
    as_kind: As = None,
    allow: Allow = None,
) -> None:
    """Change a model: rename, rewire, insert, remove, merge; signatures, collections, functions, devices, shapes.

    Nothing is written unless every edit could be made and the graph is sound. What names a node that is renamed or
    removed follows. graphmill help edits describes the list that --edits takes.

    graphmill edit model.pb --rename 'tower/*=model/*' --clear-devices -o renamed.pb

    graphmill edit model.pb --batch-size 8 --remove '*/Dropout' --dry-run

    graphmill edit encoder.pb --merge decoder.pb=decoder --connect code=decoder/input -o both.pb
    """
    if schema:
        from toolkit.passes.edit.table import schema as make_schema

        print(json.dumps(make_schema(), indent=2))
        return
    if kinds:
        from toolkit.passes.edit.table import describe

        messages.show(*describe().splitlines())
        return
    from commands import models
    from toolkit.passes.edit.apply import apply_edits

    with telling_all_mistakes():
        steps = _steps(context.meta[EDITS], edits)
        model = models.read("edit", source, tags)
        with models.about(source):
            result = apply_edits(model.meta, steps)
    for done in result.done:
        messages.say("edit", done["did"])
    for note in result.notes:
        messages.say("edit", note)
    for problem in result.remaining:
        messages.say("edit", f"warning: as before, {problem}")
    if report:
        from toolkit.formats.io import write_output

        facts = {"edits": result.done, "notes": result.notes, "remaining": result.remaining}
        write_output(report, json.dumps(facts, indent=2).encode() + b"\n")
    edited = model.with_meta(result.meta)
    if dry_run:
        _show_difference(model, edited, source)
        return
    lost = _lost(model, edited, out, as_kind)
    models.write("edit", edited, out, as_kind, allow)
    for line in lost:
        messages.say("edit", f"warning: {line}")


def _steps(given: list[tuple[str, str]], edits: str | None) -> list[Step]:
    from toolkit.errors import UsageError
    from toolkit.passes.edit.options import read_options
    from toolkit.passes.edit.table import EditsError, read_edits

    steps: list[Step] = []
    errors: list[Any] = []
    for read in (lambda: read_options(given), lambda: read_edits(edits) if edits is not None else []):
        try:
            steps += read()
        except EditsError as error:
            errors += error.errors
    if errors:
        raise EditsError(errors)
    if not steps:
        raise UsageError("there is nothing to do: give --edits FILE.yaml, or options such as --rename OLD=NEW")
    return steps


def _lost(before: Model, after: Model, out: str, as_kind: str | None) -> list[str]:
    """What the file cannot hold of the model.

    Raises:
        UsageError: the edits made it.
    """
    from toolkit.errors import UsageError
    from toolkit.formats.models.losses import losses
    from toolkit.formats.models.model import target_kind

    kind, encoding = target_kind(after, out, as_kind)
    lost = losses(after, kind, encoding)
    if lost and not losses(before, kind, encoding):
        raise UsageError(f"{lost[0]}; write what the edits made with --as metagraph or --as savedmodel")
    return lost


def _show_difference(before: Model, after: Model, source: str) -> None:
    from toolkit.passes.differences.attributes import DiffOptions
    from toolkit.passes.differences.diff import diff_models
    from toolkit.passes.differences.text import render

    found = diff_models(before, after, DiffOptions.make(0.0, 0.0, ["weights"]))
    sys.stdout.write(render(found, source, "edited") or "no difference\n")
