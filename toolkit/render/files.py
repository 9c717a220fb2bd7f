"""From files to files: what `graphmill visualize` does."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from toolkit.errors import UsageError, did_you_mean
from toolkit.formats.detect import PARTITIONS_FILE
from toolkit.formats.io import write_output
from toolkit.formats.model import read_model
from toolkit.formats.partitions import read_partitions
from toolkit.graph.graph import Graph
from toolkit.render.colors import ColorInput
from toolkit.render.overlays import merge_for_diff, read_costs
from toolkit.render.picture import FORMATS, PictureOptions, draw, make_page, make_picture
from toolkit.render.text import to_text


def picture_format(out: str) -> str:
    """The format that a file's suffix names. A terminal gets the text view, a pipe DOT text.

    Raises:
        UsageError: there is no output, or its suffix is no format.
    """
    if not out:
        raise UsageError(f"say where to draw: -o FILE, with one of the suffixes .{', .'.join(FORMATS)}")
    if out == "-":
        return "txt" if sys.stdout.isatty() else "dot"
    suffix = Path(out).suffix.lower().removeprefix(".")
    suffix = {"gv": "dot"}.get(suffix, suffix)
    if suffix not in FORMATS:
        hint = did_you_mean(suffix, FORMATS)
        raise UsageError(
            f"'{out}': no picture format has the suffix '.{suffix}'; expected .{', .'.join(FORMATS)}{hint}"
        )
    return suffix


def read_graphs(source: str, tags: Sequence[str] | None = None) -> tuple[str, Graph | Mapping[str, Graph]]:
    """A title and the graph of a model file, or the graphs of a partition folder by name.

    Raises:
        GraphmillError: the file cannot be read, or it holds no graph.
    """
    title = "graph" if source == "-" else Path(source).resolve().name
    if Path(source, PARTITIONS_FILE).is_file():
        return title, read_partitions(source).graphs
    return title, read_model(source, tags=tags).graph


@dataclass(frozen=True, slots=True)
class Request:
    """What `graphmill visualize` was asked for.

    Attributes:
        source, out: files, "-" for the standard streams.
        against: another graph to compare with.
        costs: a file of measured costs.
        tensorboard: write an event file into the folder `out`.
    """

    source: str
    out: str
    options: PictureOptions
    tags: Sequence[str] | None = None
    against: str | None = None
    costs: str | None = None
    tensorboard: bool = False


def render(request: Request) -> None:
    """Read a graph, draw it and write the file.

    Raises:
        GraphmillError: a file cannot be read or written, an option does not fit, or Graphviz is missing.
    """
    out, options = request.out, request.options
    if request.tensorboard:
        _render_tensorboard(request)
        return
    format = picture_format(out)
    title, graphs = read_graphs(request.source, request.tags)
    given = ColorInput()
    if request.costs is not None:
        values, unit = read_costs(request.costs)
        given = ColorInput(costs=values, cost_unit=unit)
    if request.against is not None:
        _, old = read_graphs(request.against, request.tags)
        if not isinstance(graphs, Graph) or not isinstance(old, Graph):
            raise UsageError("--against compares two graphs; a partition folder is several")
        graphs, changes = merge_for_diff(old, graphs)
        given = replace(given, changes=changes)
    if format == "html":
        write_output(out, make_page(graphs, title, options, given), binary=False)
        return
    scene = make_picture(graphs, title, options, given)
    if format == "txt" and out == "-":
        _show(to_text(scene, color="NO_COLOR" not in os.environ))
        return
    write_output(out, draw(scene, format, options), binary=format in ("png", "pdf"))


def _render_tensorboard(request: Request) -> None:
    if not request.out or request.out == "-":
        raise UsageError("--tensorboard writes into a folder; say which one with -o LOGDIR")
    from toolkit.render.tensorboard import write_tensorboard

    _, graphs = read_graphs(request.source, request.tags)
    if not isinstance(graphs, Graph):
        raise UsageError("--tensorboard takes one graph; give a file of the partition folder")
    write_tensorboard(request.out, graphs, request.costs)


def _show(text: str) -> None:
    """Print to the terminal, through the reader's pager when it does not fit on the screen."""
    import pydoc
    import shutil

    if text.count("\n") < shutil.get_terminal_size().lines:
        sys.stdout.write(text)
        return
    # less shows colours only when told to; what the user has set for it stays.
    os.environ.setdefault("LESS", "-RFX")
    pydoc.pager(text)
