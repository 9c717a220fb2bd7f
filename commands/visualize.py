"""graphmill visualize: draw a graph."""

from __future__ import annotations

from typing import Annotated

import typer

from commands import models
from commands.options import In, Tags, command_app

app = command_app()


@app.command()
def visualize(
    source: In = "-",
    out: Annotated[
        str,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Picture to write: .svg, .png, .pdf, .dot, .html or .txt; '-' gives DOT to a pipe. "
            "Without it a terminal gets text, a pipe SVG.",
        ),
    ] = "",
    depth: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Levels of scopes to open (default: what stays readable).")
    ] = None,
    color: Annotated[
        str | None,
        typer.Option(
            metavar="MODE",
            help="What colours mean: op (default), device, partition, dtype, cost, memory, structure or diff.",
        ),
    ] = None,
    theme: Annotated[str, typer.Option(metavar="NAME", help="light, dark, print or colorblind.")] = "light",
    auxiliary: Annotated[
        str,
        typer.Option(metavar="HOW", help="Constants, savers, gradients and the like: aside, inline or hide."),
    ] = "aside",
    direction: Annotated[str, typer.Option(metavar="DIR", help="Where edges lead: TB (down), LR (right).")] = "auto",
    focus: Annotated[
        str | None, typer.Option(metavar="NODE", help="Draw only the surroundings of this node or scope.")
    ] = None,
    hops: Annotated[int, typer.Option(min=0, metavar="K", help="With --focus: at most K edges away.")] = 2,
    highlight: Annotated[
        tuple[str, str] | None, typer.Option(metavar="FROM TO", help="Make the paths between two nodes stand out.")
    ] = None,
    against: Annotated[
        str | None, typer.Option(metavar="FILE", help="Show what changed since this graph; implies --color diff.")
    ] = None,
    costs: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Measured costs: RunMetadata, what `run --trace` writes, or JSON by node name; implies --color cost.",
        ),
    ] = None,
    checkpoint: Annotated[
        str | None,
        typer.Option(metavar="PREFIX", help="Values of the variables, for the details of the .html page."),
    ] = None,
    fold: Annotated[bool, typer.Option(help="Fold series of like nodes and divide long levels.")] = True,
    legend: Annotated[bool, typer.Option(help="Explain colours, boxes and edges.")] = True,
    tensorboard: Annotated[
        bool, typer.Option("--tensorboard", help="Write an event file for TensorBoard into the folder -o.")
    ] = False,
    tags: Tags = None,
) -> None:
    """Draw a graph, or the timeline of a run.

    IN is a model of any kind, a partition folder, or a trace (RunMetadata, trace-event JSON), which becomes a timeline
    by device and thread: .svg, .pdf, .html or .txt.

    Scopes are frames, data edges solid, control edges dashed. A large graph opens collapsed; --depth opens more, and
    the .html page opens scopes on demand. Layout is by Graphviz: 'dot' when it is installed, else the graphviz-pure
    program from PyPI; .dot, .html and .txt need neither.
    """
    from toolkit.errors import about_option
    from toolkit.render.files import Request, picture_format, render
    from toolkit.render.picture import PictureOptions, check_options

    if color is None:
        color = "diff" if against is not None else "cost" if costs is not None else "op"
    options = PictureOptions(
        depth, auxiliary, fold, color, theme, direction, legend, focus=focus, hops=hops, highlight=highlight
    )
    check_options(options)
    if out and not tensorboard:
        with about_option("--output"):
            picture_format(out)
    chosen = models.tag_set(tags)
    render(Request(source, out, options, chosen, against, costs, tensorboard, checkpoint=checkpoint))
