"""`graphmill checkpoint latest`: the prefix of a folder's latest checkpoint."""

from __future__ import annotations

from typing import Annotated

import typer

from commands.messages import show_path
from commands.options import Json, command_app, print_json

app = command_app()


@app.command()
def latest(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="Folder with checkpoints.")] = ".",
    json: Json = False,
) -> None:
    """Print the prefix of a folder's latest checkpoint, as its state file says; for use in scripts.

    graphmill checkpoint verify "$(graphmill checkpoint latest model/)"
    """
    from toolkit.formats.bundle.locate import find_prefix, require_folder

    require_folder(folder)
    prefix = find_prefix(folder)
    if json:
        print_json({"folder": folder, "latest": prefix})
    else:
        show_path(prefix)
