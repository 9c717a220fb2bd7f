"""`graphmill checkpoint relocate`: a state file that was copied from elsewhere."""

from __future__ import annotations

from typing import Annotated

import typer

from commands.messages import show
from commands.options import Json, command_app, print_json

app = command_app()


@app.command()
def relocate(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="Folder with the state file.")],
    absolute: Annotated[
        bool, typer.Option("--absolute", help="Write absolute paths instead of relative ones.")
    ] = False,
    json: Json = False,
) -> None:
    """Make the paths in a folder's state file name the checkpoints beside it.

    State files with absolute paths stop working when the folder moves to another place or machine.
    """
    from toolkit.formats.bundle.folder import relocate as rewrite

    moved = rewrite(folder, not absolute)
    if json:
        print_json({"folder": folder, "paths": dict(moved)})
        return
    for old, new in moved:
        if old != new:
            show(f"{old} -> {new}")
    if all(old == new for old, new in moved):
        show("the paths name the checkpoints beside the file already")
