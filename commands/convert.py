"""graphmill convert: the same model in another format."""

from __future__ import annotations

from typing import Annotated

import typer

from commands import messages
from commands.options import Allow, As, In, Out, Tags, command_app

app = command_app()


@app.command()
def convert(
    source: In = "-",
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse to leave anything out that the result cannot hold.")
    ] = False,
    tags: Tags = None,
    out: Out = "-",
    as_kind: As = None,
    allow: Allow = None,
) -> None:
    """Write a model in another format: binary, text, JSON or split; GraphDef, MetaGraphDef or SavedModel.

    The suffix of -o says which encoding, --as which kind. Nothing else changes: fields and values that are not known
    stay where the format can hold them, and what it cannot hold is said in a line (see: graphmill help formats).
    """
    from commands import models
    from toolkit.errors import UsageError, source_name
    from toolkit.formats.models.losses import losses
    from toolkit.formats.models.model import target_kind

    model = models.read("convert", source, tags)
    kind, encoding = target_kind(model, out, as_kind)
    lost = losses(model, kind, encoding)
    left = models.left_behind(model, out, as_kind)
    if strict and (lost or left):
        what = lost[0] if lost else f"{' and '.join(left)} stay behind, for a file holds the graph alone"
        raise UsageError(f"{what}; without --strict it is written all the same", file=source_name(source))
    models.write("convert", model, out, as_kind, allow)
    for line in lost:
        messages.say("convert", f"warning: {line}")
