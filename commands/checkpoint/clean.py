"""`graphmill checkpoint clean`: delete old checkpoints of a folder."""

from __future__ import annotations

from typing import Annotated

import typer

from commands.checkpoint.shared import plural, size
from commands.messages import show, show_path
from commands.options import Json, command_app, print_json

app = command_app()


@app.command()
def clean(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="Folder with checkpoints.")],
    keep: Annotated[int, typer.Option("--max-to-keep", min=1, metavar="N", help="How many of the newest stay.")] = 5,
    hours: Annotated[
        float | None,
        typer.Option("--keep-every-n-hours", metavar="H", help="Of the older ones, one for every H hours stays."),
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="Only checkpoints called NAME or NAME-number.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Delete. Without it, only say what would be deleted.")] = False,
    json: Json = False,
) -> None:
    """Apply a Saver's policy to a folder: say what it would delete, and with --yes delete it.

    The checkpoint that the state file names as latest always stays. Temporary files of writers that were killed go
    too, an hour after the last write.

    graphmill checkpoint clean model/ --max-to-keep 3 --yes
    """
    from toolkit.formats.bundle import folder as folders

    plan = folders.plan_cleanup(folder, keep, hours, name)
    if yes:
        folders.clean(folder, plan)
    if json:
        print_json(
            {
                "folder": folder, "kept": plan.kept, "removed": plan.removed, "leftovers": plan.leftovers,
                "bytes": plan.freed, "done": yes,
            }
        )  # fmt: skip
        return
    for path in (*plan.removed, *plan.leftovers):
        show_path(path)
    verb = "deleted" if yes else "would delete"
    hint = "" if yes or not (plan.removed or plan.leftovers) else " (--yes does it)"
    left = f" and {plural(len(plan.leftovers), 'temporary file')}" if plan.leftovers else ""
    show(f"{verb} {plural(len(plan.removed), 'checkpoint')}{left}, {size(plan.freed)}; {len(plan.kept)} stay{hint}")
