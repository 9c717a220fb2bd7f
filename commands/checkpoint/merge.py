"""`graphmill checkpoint merge`: shares, shards and parts put together."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Annotated

import typer

from commands.checkpoint.complete import complete_prefix
from commands.checkpoint.shared import NewPrefix, plural, writing
from commands.messages import show
from commands.options import Json, command_app, print_json

app = command_app()


@app.command()
def merge(
    prefixes: Annotated[
        list[str],
        typer.Argument(metavar="PREFIX ...", help="Checkpoints, each with a share.", autocompletion=complete_prefix),
    ],
    output: NewPrefix,
    shards: Annotated[int, typer.Option("--shards", min=1, metavar="N", help="Data files to write.")] = 1,
    join: Annotated[bool, typer.Option("--join-parts", help="Make partitioned variables whole tensors.")] = False,
    json: Json = False,
) -> None:
    """Join checkpoints that hold different tensors, or write one in another number of data files.

    graphmill checkpoint merge sharded/ckpt -o single --join-parts
    """
    from toolkit.formats.bundle.locate import open_tensors
    from toolkit.formats.bundle.surgery import reshard

    with ExitStack() as stack, writing():
        sources = [stack.enter_context(open_tensors(prefix)) for prefix in prefixes]
        sizes = reshard.reshard(sources, output, shards, join)
        tensors = len({name for source in sources for name in source})
    if json:
        print_json({"prefixes": prefixes, "output": output, "tensors": tensors, "shards": sizes})
        return
    show(f"{plural(tensors, 'tensor')} in {plural(shards, 'data file')}: {output}")
