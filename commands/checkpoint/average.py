"""`graphmill checkpoint average`: one model out of several checkpoints."""

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
def average(
    prefixes: Annotated[
        list[str],
        typer.Argument(metavar="P1 P2 ...", help="Checkpoints, oldest first.", autocompletion=complete_prefix),
    ],
    output: NewPrefix,
    weights: Annotated[
        str | None, typer.Option("--weights", metavar="W1,W2,...", help="A weight for each; scaled to sum to 1.")
    ] = None,
    ema: Annotated[
        float | None,
        typer.Option("--ema", metavar="DECAY", help="Exponential moving average: avg = DECAY*avg + (1-DECAY)*next."),
    ] = None,
    last: Annotated[
        int | None, typer.Option("--last", min=1, metavar="K", help="A single folder: its K newest checkpoints.")
    ] = None,
    json: Json = False,
) -> None:
    """Average the floating-point tensors of checkpoints of one model.

    Counters and strings come from the last one.

    graphmill checkpoint average ckpt-8 ckpt-9 ckpt-10 -o averaged

    graphmill checkpoint average model/ --last 5 -o averaged --ema 0.9
    """
    from toolkit.errors import UsageError
    from toolkit.formats.bundle import paths
    from toolkit.formats.bundle.locate import in_folder, open_tensors
    from toolkit.formats.bundle.surgery import arithmetic

    if last is not None:
        if len(prefixes) != 1 or not paths.is_folder(prefixes[0]):
            raise UsageError("--last goes with a single folder")
        names = in_folder(prefixes[0])
        if len(names) < last:
            raise UsageError(f"--last: '{prefixes[0]}' has {plural(len(names), 'checkpoint')}, not {last}")
        prefixes = [paths.join(prefixes[0], name) for name in names[-last:]]
    try:
        shares = [float(text) for text in weights.split(",")] if weights else None
    except ValueError:
        raise UsageError(f"--weights: expected numbers joined by commas, found '{weights}'") from None
    if shares is not None and len(shares) != len(prefixes):
        raise UsageError(f"--weights: {plural(len(shares), 'weight')} for {plural(len(prefixes), 'checkpoint')}")
    if ema is not None and not 0 <= ema <= 1:
        raise UsageError(f"--ema: the decay must be between 0 and 1; it is {ema:g}")
    with ExitStack() as stack, writing():
        sources = [stack.enter_context(open_tensors(prefix)) for prefix in prefixes]
        averaged = arithmetic.average(sources, output, shares, ema)
    if json:
        print_json({"prefixes": prefixes, "output": output, "averaged": averaged})
        return
    show(f"{plural(len(averaged), 'tensor')} averaged over {plural(len(prefixes), 'checkpoint')}: {output}")
