"""From files to files: what `graphmill visualize` does."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.errors import UsageError, did_you_mean, source_name
from toolkit.formats.folders.partitions import read_partitions
from toolkit.formats.inspection.detect import PARTITIONS_FILE
from toolkit.formats.io import STDIO, read_piped, write_output
from toolkit.formats.models.model import read_model
from toolkit.formats.records.traces import is_trace
from toolkit.graph.graph import Graph
from toolkit.render.colors import ColorInput
from toolkit.render.overlays import read_costs
from toolkit.render.picture import FORMATS, PictureOptions, draw, make_page, make_picture
from toolkit.render.text import to_text

if TYPE_CHECKING:
    from toolkit.passes.differences.attributes import DiffOptions
    from toolkit.render.tensors import Weights

#: what a trace can be drawn as
TIMELINE_FORMATS = ("svg", "pdf", "html", "txt")
#: first bytes that are enough to tell a trace
_HEAD = 4096


def picture_format(out: str) -> str:
    """The format that a file's suffix names. A terminal gets the text view; a pipe SVG, or DOT text for "-".

    Raises:
        UsageError: its suffix is no format.
    """
    if not out:
        return "txt" if sys.stdout.isatty() else "svg"
    if out == "-":
        return "txt" if sys.stdout.isatty() else "dot"
    suffix = Path(out).suffix.lower().removeprefix(".")
    suffix = {"gv": "dot"}.get(suffix, suffix)
    if suffix not in FORMATS:
        hint = did_you_mean(suffix, FORMATS)
        what = f"no picture format has the suffix '.{suffix}'" if suffix else "its name has no suffix to tell a format"
        raise UsageError(f"'{out}': {what}; expected .{', .'.join(FORMATS)}{hint}")
    return suffix


def read_graphs(
    source: str, tags: Sequence[str] | None = None, data: bytes | None = None
) -> tuple[str, Graph | Mapping[str, Graph]]:
    """A title and the graph of a model file, or the graphs of a partition folder by name.

    Args:
        data: the content of `source`, where it has been read already.

    Raises:
        GraphmillError: the file cannot be read, or it holds no graph.
    """
    title = "graph" if data is not None else Path(os.path.realpath(source)).name
    if Path(source, PARTITIONS_FILE).is_file():
        return title, read_partitions(source).graphs
    return title, read_model(source, tags=tags, data=data).graph


@dataclass(frozen=True, slots=True)
class Request:
    """What `graphmill visualize` was asked for.

    Attributes:
        source, out: files, "-" for the standard streams.
        against: another graph to compare with.
        costs: a file of measured costs.
        tensorboard: write an event file into the folder `out`.
        checkpoint: prefix of the values of variables, for the HTML page.
        compare: what counts as a difference to `against`.
        data, against_data: the content of `source` and `against`, where it has been read already: a pipe can be
            read only once.
    """

    source: str
    out: str
    options: PictureOptions
    tags: Sequence[str] | None = None
    against: str | None = None
    costs: str | None = None
    tensorboard: bool = False
    compare: DiffOptions | None = None
    checkpoint: str | None = None
    data: bytes | None = None
    against_data: bytes | None = None


def render(request: Request) -> None:
    """Read a graph, draw it and write the file.

    Raises:
        GraphmillError: a file cannot be read or written, an option does not fit, or Graphviz is missing.
    """
    others = (request.against, request.costs)
    if others.count(STDIO) + (request.source == STDIO) > 1:
        raise UsageError("standard input holds one of what IN, --against and --costs name; give files for the others")
    if request.data is None:
        request = replace(request, data=read_piped(request.source))
    if request.tensorboard:
        _render_tensorboard(request)
    elif _is_trace(request):
        _render_timeline(request)
    else:
        render_picture(request)


def render_picture(request: Request) -> None:
    """Draw a graph, or the differences between two.

    Raises:
        GraphmillError: see `render`.
    """
    out, options = request.out or "-", request.options
    format = picture_format(request.out)
    title, graphs = read_graphs(request.source, request.tags, request.data)
    given = ColorInput()
    if request.costs is not None:
        costs = read_costs(request.costs)
        given = ColorInput(costs=costs.values, cost_unit=costs.unit, memory=costs.memory)
    if request.against is not None:
        before, old = read_graphs(request.against, request.tags, request.against_data)
        if not isinstance(graphs, Graph) or not isinstance(old, Graph):
            raise UsageError("--against compares two graphs; a partition folder is several")
        from toolkit.render.difference import merge

        graphs, changes = merge(old, graphs, request.compare)
        given = replace(given, changes=changes)
        title = f"{before} → {title}" if before != title else f"{request.against} → {request.source}"
    if format == "html":
        write_output(out, make_page(graphs, title, options, given, _weights(request)), binary=False)
        return
    if request.checkpoint is not None:
        raise UsageError("--checkpoint is for the details of the .html page")
    scene = make_picture(graphs, title, options, given)
    if format == "txt" and out == "-":
        _show(to_text(scene, color="NO_COLOR" not in os.environ))
        return
    write_output(out, draw(scene, format, options), binary=format in ("png", "pdf"))


def _weights(request: Request) -> Weights | None:
    """The values of the graph's variables, where they are known."""
    from toolkit.formats.models.model import variables_prefix
    from toolkit.render.tensors import weights_of

    if Path(request.source, PARTITIONS_FILE).is_file():
        if request.checkpoint is not None:
            raise UsageError("--checkpoint goes with one model file, not with a partition folder")
        return None
    model = read_model(request.source, tags=request.tags, data=request.data)
    if request.checkpoint is None and variables_prefix(model) is None:
        return None
    return weights_of(model, request.checkpoint)


def _is_trace(request: Request) -> bool:
    """Whether a file is the trace of a run, by its content."""
    if request.data is not None:
        return is_trace(request.data[:_HEAD])
    path = Path(request.source)
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            return is_trace(file.read(_HEAD))
    except OSError:
        return False  # reading it as a graph says what is wrong


def _render_timeline(request: Request) -> None:
    from toolkit.formats.records.timeline import read_trace
    from toolkit.render.themes import find_theme

    out, format = request.out or "-", picture_format("" if request.out == "-" else request.out)
    theme = find_theme(request.options.theme)
    what = source_name(request.source)
    if request.against is not None or request.costs is not None:
        raise UsageError(f"{what} is the trace of a run, not a graph; --against and --costs need a graph")
    if format not in TIMELINE_FORMATS:
        raise UsageError(f"a timeline is drawn as .{', .'.join(TIMELINE_FORMATS)}, not as .{format}")
    title = "trace" if request.data is not None else Path(request.source).name
    trace = read_trace(request.source, title, request.data)
    if format == "html":
        from toolkit.render.timeline.html import to_html

        write_output(out, to_html(trace, request.options.theme), binary=False)
    elif format == "txt":
        from toolkit.render.timeline import text

        write_output(out, text.to_text(trace).encode(), binary=False)
    else:
        from toolkit.render.pdf import svg_to_pdf
        from toolkit.render.timeline.svg import to_svg

        drawing = to_svg(trace, theme)
        write_output(out, svg_to_pdf(drawing) if format == "pdf" else drawing.encode(), binary=format == "pdf")


def _render_tensorboard(request: Request) -> None:
    if not request.out or request.out == "-":
        raise UsageError("--tensorboard writes into a folder; say which one with -o LOGDIR")
    from toolkit.render.tensorboard import write_tensorboard

    _, graphs = read_graphs(request.source, request.tags, request.data)
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
