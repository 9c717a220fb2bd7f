"""`graphmill checkpoint cast`: tensors in another type."""

from __future__ import annotations

from typing import Annotated

import typer

from commands.checkpoint.shared import NewPrefix, Only, Prefix, plural, size, writing
from commands.messages import show
from commands.options import Json, command_app, print_json

app = command_app()


@app.command()
def cast(
    prefix: Prefix,
    output: NewPrefix,
    to: Annotated[str, typer.Option("--to", metavar="DTYPE", help="float16, bfloat16, float32, ...")],
    only: Only = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Also tensors that are no floating-point numbers (counters, tables).")
    ] = False,
    json: Json = False,
) -> None:
    """Copy a checkpoint with its floating-point tensors in another type.

    graphmill checkpoint cast model/ckpt-7 -o small --to bfloat16
    """
    from toolkit.errors import UsageError, about_option
    from toolkit.formats.bundle.locate import open_tensors
    from toolkit.formats.bundle.patterns import matcher, require_matches
    from toolkit.formats.bundle.surgery import arithmetic
    from toolkit.graph import dtypes

    with about_option("--to"):
        dtype = dtypes.from_name(to)
    if not everything and not (dtype.is_floating or dtype.is_complex):
        raise UsageError(f"--to {dtype} would round the weights away; choose a floating-point type, or say --all")
    with open_tensors(prefix) as reader, writing():
        with about_option("--only"):
            require_matches(only or [], reader, reader.prefix)
        test = matcher(only or ["*"])
        entries = reader.entries
        changed = arithmetic.cast(
            reader, output, dtype, lambda name: test(name) and (everything or entries[name].dtype.is_floating)
        )
    before = sum(entry.bytes for entry in changed)
    after = sum(entry.count for entry in changed) * dtype.size
    if json:
        print_json(
            {
                "prefix": prefix,
                "output": output,
                "dtype": dtype.name,
                "cast": [entry.name for entry in changed],
                "bytes_before": before,
                "bytes_after": after,
            }
        )
        return
    show(f"{plural(len(changed), 'tensor')} cast to {dtype}: {size(before)} -> {size(after)}")
