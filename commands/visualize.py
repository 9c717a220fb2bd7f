"""graphmill visualize: draw a graph."""

from __future__ import annotations

from typing import Annotated

import typer

from commands.options import In, command_app

app = command_app()


@app.command()
def visualize(
    source: In = "-",
    out: Annotated[
        str,
        typer.Option("-o", "--output", metavar="FILE", help="Picture to write: .svg, .png, .pdf, .dot or .html."),
    ] = "",
    depth: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Levels of scopes to open (default: what stays readable).")
    ] = None,
    color: Annotated[
        str, typer.Option(metavar="MODE", help="What colours mean: op, device, partition, dtype, cost or structure.")
    ] = "op",
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
    fold: Annotated[bool, typer.Option(help="Fold series of like nodes and divide long levels.")] = True,
    legend: Annotated[bool, typer.Option(help="Explain colours, boxes and edges.")] = True,
    tags: Annotated[str | None, typer.Option(metavar="A,B", help="Tag set that picks a SavedModel's graph.")] = None,
) -> None:
    """Draw a graph.

    Scopes are frames, data edges solid, control edges dashed. A large graph opens collapsed; --depth opens more.
    Layout is by Graphviz: 'dot' when it is installed, else the graphviz-pure program from PyPI.
    """
    from toolkit.formats.io import write_output
    from toolkit.render.files import picture_format, read_graphs
    from toolkit.render.picture import PictureOptions, draw, make_page, make_picture

    format = picture_format(out)
    options = PictureOptions(
        depth, auxiliary, fold, color, theme, direction, legend, focus=focus, hops=hops, highlight=highlight
    )
    title, graphs = read_graphs(source, tags.split(",") if tags else None)
    if format == "html":
        write_output(out, make_page(graphs, title, options), binary=False)
        return
    data = draw(make_picture(graphs, title, options), format, options)
    write_output(out, data, binary=format in ("png", "pdf"))
