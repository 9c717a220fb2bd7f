"""`graphmill checkpoint slice`: parts of tensors."""

from __future__ import annotations

from typing import Annotated

import typer

from commands.checkpoint.complete import complete_tensor
from commands.checkpoint.shared import NewPrefix, Prefix, plural, writing
from commands.messages import show
from commands.options import Json, command_app, print_json

app = command_app()


@app.command("slice")
def slice_(
    prefix: Prefix,
    output: NewPrefix,
    parts: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME=SLICE ...", help="E.g. embedding=0,1000:-", autocompletion=complete_tensor),
    ] = None,
    cut: Annotated[
        str | None,
        typer.Option(
            "--partition",
            metavar="NAME",
            help="Cut this tensor into --parts, as a partitioned variable.",
            autocompletion=complete_tensor,
        ),
    ] = None,
    count: Annotated[int, typer.Option("--parts", min=1, help="With --partition: how many.")] = 2,
    axis: Annotated[int, typer.Option("--axis", min=0, help="With --partition: along which axis.")] = 0,
    json: Json = False,
) -> None:
    """Write parts of tensors under their names, or cut a tensor into a partitioned variable.

    SLICE has "start,length" or "-" (all) for each dimension, joined by ":".

    graphmill checkpoint slice ckpt-7 embedding=0,1000:- -o top

    graphmill checkpoint slice ckpt-7 --partition embedding --parts 4 -o cut
    """
    from toolkit.errors import UsageError, about_option
    from toolkit.formats.bundle.locate import open_tensors
    from toolkit.formats.bundle.surgery import reshard

    if bool(parts) == bool(cut):
        raise UsageError("give NAME=SLICE, or --partition NAME")
    wanted: list[tuple[str, str]] = []
    for text in parts or []:
        name, sign, part = text.rpartition("=")
        if not sign or not name:
            raise UsageError(f"'{text}' is no part: expected NAME=SLICE, e.g. 'embedding=0,1000:-'")
        wanted.append((name, part))
    with open_tensors(prefix) as reader, writing():
        if cut:
            with about_option("--partition"):
                reader.entry(cut)
            reshard.partition(reader, output, cut, count, axis)
        else:
            reshard.take_slices(reader, output, wanted)
    if json:
        print_json({"prefix": prefix, "output": output, "slices": dict(wanted), "partitioned": cut})
        return
    show(f"'{cut}' cut into {plural(count, 'part')}: {output}" if cut else f"{plural(len(wanted), 'slice')}: {output}")
