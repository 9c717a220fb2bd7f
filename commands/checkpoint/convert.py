"""`graphmill checkpoint convert`: from format to format."""

from __future__ import annotations

from typing import Annotated

import typer

from commands.checkpoint.complete import complete_prefix
from commands.checkpoint.shared import plural, size, writing
from commands.messages import show
from commands.options import Json, command_app, print_json

app = command_app()


@app.command()
def convert(
    source: Annotated[str, typer.Argument(metavar="SRC", help="What to read.", autocompletion=complete_prefix)],
    target: Annotated[str, typer.Argument(metavar="DST", help="What to write.", autocompletion=complete_prefix)],
    shards: Annotated[int, typer.Option("--shards", min=1, help="Data files of a checkpoint that is written.")] = 1,
    v1: Annotated[bool, typer.Option("--v1", help="Write a checkpoint in the old V1 format.")] = False,
    json: Json = False,
) -> None:
    """Copy all tensors to another format.

    SRC and DST are checkpoints (prefix), .npz or .safetensors files, told apart by their suffix. A V1 checkpoint
    becomes a V2 one. Everything survives the way there and back: types that the other format lacks are noted in it.

    graphmill checkpoint convert model/ckpt-7 model.safetensors
    """
    from toolkit.formats.bundle.transfer import convert as convert_file

    with writing():
        entries = convert_file(source, target, shards, v1=v1)
    nbytes = sum(entry.bytes for entry in entries)
    if json:
        print_json({"source": source, "target": target, "tensors": len(entries), "bytes": nbytes})
    else:
        show(f"{plural(len(entries), 'tensor')}, {size(nbytes)}: {target}")
