"""`graphmill checkpoint list`: the checkpoints of a folder."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from commands.checkpoint.shared import plural, size, table
from commands.messages import show
from commands.options import Json, command_app, print_json

app = command_app()


@app.command("list")
def list_(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="Folder with checkpoints.")] = ".",
    json: Json = False,
) -> None:
    """List a folder's checkpoints: when they were written, their size, which is the latest.

    graphmill checkpoint list model/ --json | jq '.checkpoints[].prefix'
    """
    import datetime
    from dataclasses import asdict

    from toolkit.formats.bundle.folder import listing

    found = listing(folder)
    if json:
        print_json({"folder": folder, "checkpoints": [_as_json(asdict(item)) for item in found]})
        return
    rows = [
        [
            item.prefix,
            item.format,
            datetime.datetime.fromtimestamp(item.time).isoformat(" ", "seconds") if item.time else "",
            size(item.bytes),
            str(item.files),
            "latest" if item.is_latest else "" if item.is_tracked else "not in the state file",
        ]
        for item in found
    ]
    if rows:
        show(*table(rows, ["prefix", "format", "written", "size", "files", ""], [3, 4]))
    show(f"{plural(len(rows), 'checkpoint')}, {size(sum(item.bytes for item in found))}")


def _as_json(item: dict[str, Any]) -> dict[str, Any]:
    return {key.removeprefix("is_"): value for key, value in item.items()}
