"""`graphmill checkpoint list`: the checkpoints of a folder."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from commands.checkpoint.shared import plural, size, table
from commands.options import Json, command_app, print_json

app = command_app()


@app.command("list")
def list_(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="Folder with checkpoints.")] = ".",
    json: Json = False,
) -> None:
    """List a folder's checkpoints: when they were written, their size, which is the latest."""
    import datetime
    from pathlib import Path

    from toolkit.errors import NotFoundError
    from toolkit.formats.bundle.locate import in_folder
    from toolkit.formats.bundle.saver_policy import files_of
    from toolkit.formats.bundle.state import read_state

    if not Path(folder).is_dir():
        raise NotFoundError("there is no such folder", file=folder)
    state = read_state(folder)
    latest = Path(state.latest).resolve() if state else None
    tracked = {Path(path).resolve() for path in state.all_paths} if state else set[Path]()
    found: list[dict[str, Any]] = []
    for name in in_folder(folder):
        prefix = Path(folder, name)
        files = files_of(str(prefix))
        found.append(
            {
                "prefix": str(prefix),
                "bytes": sum(file.stat().st_size for file in files),
                "files": len(files),
                "time": Path(f"{prefix}.index").stat().st_mtime,
                "latest": prefix.resolve() == latest,
                "tracked": prefix.resolve() in tracked,
            }
        )
    if json:
        print_json({"folder": folder, "checkpoints": found})
        return
    rows = [
        [
            item["prefix"],
            datetime.datetime.fromtimestamp(item["time"]).isoformat(" ", "seconds"),
            size(item["bytes"]),
            str(item["files"]), "latest" if item["latest"] else "" if item["tracked"] else "not in the state file",
        ]
        for item in found
    ]  # fmt: skip
    if rows:
        print(table(rows, ["prefix", "written", "size", "files", ""], [2, 3]))
    print(f"{plural(len(rows), 'checkpoint')}, {size(sum(item['bytes'] for item in found))}")
