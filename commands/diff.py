"""graphmill diff: how two models differ.

`--json` prints one object:

    old, new     the files
    equal        whether there is no difference
    graphs       one object for each MetaGraphDef:
      tags       of the graph, where a SavedModel has several
      side       both, or old or new for a graph that only one model has
      nodes      {same: count, added, removed: [{name, op}], renamed: [{name, new_name, op}],
                  changed: [{name, new_name, op, changes: [{what, old, new}]}], versions: [change],
                  functions: {added, removed: [name], renamed: [{name, new_name}], changed: {name: nodes}}}
      signatures {added, removed: [key], changed: {key: [change]}, breaking: [sentence]}
      surroundings  [change] of collections and saver
    weights      [{what: tensor, old, new}] of the checkpoints that belong to the models, or null

`what` of a node's change is op, device, "input N", "control inputs" or "attr.NAME".

Exit codes: 0 equal, 1 different, 2 bad input or usage.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from commands import messages
from commands.options import Json, command_app, print_json

if TYPE_CHECKING:
    from toolkit.errors import FormatError

app = command_app()
DIFFERENT_EXIT = 1

_HELP = "A GraphDef, MetaGraphDef or SavedModel; '-' is standard input."


@app.command()
def diff(
    old: Annotated[str, typer.Argument(metavar="OLD", help=_HELP)],
    new: Annotated[str, typer.Argument(metavar="NEW", help=_HELP)],
    rtol: Annotated[float, typer.Option(help="Relative tolerance for constants and weights.")] = 0.0,
    atol: Annotated[float, typer.Option(help="Absolute tolerance for constants and weights.")] = 0.0,
    ignore: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WHAT",
            help="Leave out names, devices, control, versions, shapes (noted ones), functions or weights. Repeatable.",
        ),
    ] = None,
    out: Annotated[
        str,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Draw the new graph with what changed: .svg, .png, .pdf, .dot, .html or .txt.",
        ),
    ] = "",
    as_json: Json = False,
) -> None:
    """Compare two models: nodes by name and structure, signatures, weights.

    graphmill diff before.pb after.pb

    graphmill diff before.pb after.pb -o changes.html

    graphmill diff model_v1/ model_v2/ --atol 1e-6 --json | jq .graphs[0].signatures.breaking
    """
    from commands import models
    from toolkit.errors import FormatError, UsageError, about_option
    from toolkit.formats import io
    from toolkit.passes.differences.attributes import DiffOptions
    from toolkit.passes.differences.diff import diff_models

    options = DiffOptions.make(rtol, atol, ignore or [])
    if old == new == "-":
        raise UsageError("standard input holds one model; give a file for the other")
    if out:
        from toolkit.render.files import picture_format

        with about_option("--output"):
            picture_format(out)
    old_data, new_data = io.read_piped(old), io.read_piped(new)  # drawing them needs them again
    try:
        before, after = models.read("diff", old, None, old_data), models.read("diff", new, None, new_data)
    except FormatError as error:
        raise _about_checkpoints(error, old, new) from None
    with messages.step("diff", "compared"):
        found = diff_models(before, after, options)
    if out:
        from toolkit.render.files import Request, render_picture
        from toolkit.render.picture import PictureOptions

        picture = PictureOptions(color="diff")
        render_picture(Request(new, out, picture, against=old, compare=options, data=new_data, against_data=old_data))
    if as_json:
        print_json({"old": old, "new": new, **found.as_json()})
    elif not out:
        from toolkit.passes.differences.text import render

        sys.stdout.write(render(found, old, new))
    if not found.is_equal:
        raise typer.Exit(DIFFERENT_EXIT)


def _about_checkpoints(error: FormatError, old: str, new: str) -> FormatError:
    """The same error, or what compares two checkpoints where that is what they are."""
    from toolkit.errors import FormatError, GraphmillError
    from toolkit.formats.bundle.locate import open_tensors

    try:
        for source in (old, new):
            with open_tensors(source):
                pass
    except (GraphmillError, OSError):
        return error
    return FormatError(f"these are checkpoints, not models; try: graphmill checkpoint diff {old} {new}")
