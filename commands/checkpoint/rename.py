"""`graphmill checkpoint rename`: other names for the same tensors."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Annotated

import typer

from commands.checkpoint.complete import complete_prefix, complete_tensor
from commands.checkpoint.shared import PlannedPrefix, Prefix, planned, plural, writing
from commands.messages import show
from commands.options import Json, command_app, print_json

app = command_app()


@app.command()
def rename(
    prefix: Prefix,
    output: PlannedPrefix = None,
    rules: Annotated[
        list[str] | None, typer.Argument(metavar="OLD=NEW ...", help="Rules.", autocompletion=complete_tensor)
    ] = None,
    table: Annotated[
        str | None, typer.Option("--table", metavar="FILE", help="More rules: a JSON object, or lines of OLD=NEW.")
    ] = None,
    to_names: Annotated[
        bool, typer.Option("--to-names", help="Make an object-based checkpoint name-based: variables' full names.")
    ] = False,
    to_objects: Annotated[
        bool, typer.Option("--to-objects", help="Make a name-based checkpoint object-based: slashes become objects.")
    ] = False,
    like: Annotated[
        str | None,
        typer.Option(
            "--like",
            metavar="PREFIX",
            help="With --to-objects: take keys and objects from this checkpoint of the same model.",
            autocompletion=complete_prefix,
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be renamed.")] = False,
    json: Json = False,
) -> None:
    """Copy a checkpoint with other names; the first rule that matches a name counts.

    OLD is a name, a glob whose stars NEW repeats ('dense/*=model/dense/*'), or 're:EXPRESSION', whose groups NEW may
    use (\\1). The object graph of an object-based checkpoint follows.

    graphmill checkpoint rename ckpt-7 'dense/*=net/dense/*' -o renamed
    """
    from toolkit.errors import UsageError
    from toolkit.formats.bundle.locate import open_tensors
    from toolkit.formats.bundle.surgery import rename as renaming

    if to_names + to_objects + bool(rules or table) != 1:
        raise UsageError("give rules (OLD=NEW, --table), --to-names or --to-objects")
    if like and not to_objects:
        raise UsageError("--like needs --to-objects")
    target = planned(output, dry_run)
    with open_tensors(prefix) as reader, writing():
        if to_names:
            names = renaming.names_of(reader) if dry_run else renaming.to_names(reader, target)
        elif to_objects:
            with open_tensors(like) if like else nullcontext() as template:
                if dry_run:
                    names = renaming.keys_for(reader, template)[0]
                else:
                    names = renaming.to_objects(reader, target, template)
        else:
            given = renaming.parse_rules(rules or []) + (renaming.read_rules(table) if table else [])
            names = renaming.apply_rules(list(reader), given, reader.prefix)
            if not dry_run:
                renaming.rename(reader, target, names)
    if json:
        print_json({"prefix": prefix, "output": None if dry_run else output, "renamed": names})
        return
    for old, new in names.items():
        show(f"{old} -> {new}")
    show(f"{plural(len(names), 'tensor')} {'would be ' if dry_run else ''}renamed")
