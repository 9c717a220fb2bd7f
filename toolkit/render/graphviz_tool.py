"""Running Graphviz: the `dot` of the system when there is one, else the `graphviz-pure` program from PyPI."""

from __future__ import annotations

import re
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

from toolkit.errors import GraphmillError

#: what graphviz-pure can write; PDF is made from its SVG (toolkit.render.pdf)
PURE = "graphviz-pure"
# Graphviz needs minutes for graphs that nobody could read; better to stop and say so.
TIME_LIMIT = 300


def find_dot() -> Path:
    """The program that lays graphs out.

    Raises:
        GraphmillError: there is neither `dot` nor `graphviz-pure`.
    """
    found = shutil.which("dot")
    if found is None:
        beside = Path(sysconfig.get_path("scripts")) / PURE
        found = str(beside) if beside.is_file() else shutil.which(PURE)
    if found is None:
        raise GraphmillError(
            "drawing needs Graphviz: there is no 'dot' on the PATH and no 'graphviz-pure'; "
            "install one (pip install graphviz-pure), or write a .dot, .txt or .html file, which need neither"
        )
    return Path(found)


def run_dot(source: str, format: str, *, dpi: int | None = None) -> bytes:
    """Lay out and draw DOT text.

    Args:
        format: svg, png, pdf, ... as in `dot -T`.
        dpi: resolution of raster formats.

    Raises:
        GraphmillError: no Graphviz, it failed, or it took longer than `TIME_LIMIT` seconds.
    """
    import graphviz
    from graphviz.backend import dot_command

    program = find_dot()
    # The graphviz package calls whatever this names; it has no parameter for it.
    dot_command.DOT_BINARY = program
    if format == "pdf" and not writes_pdf(program):
        from toolkit.render.pdf import svg_to_pdf

        return svg_to_pdf(run_dot(source, "svg").decode())
    if dpi is not None:
        source = source.replace("{", f"{{\n\tgraph [dpi={dpi}]", 1)
    try:
        command: list[Any] = [*dot_command.command("dot", format)]  # pyright: ignore[reportUnknownMemberType]
        done = subprocess.run(
            [*map(str, command), "-q"], input=source.encode(), capture_output=True, timeout=TIME_LIMIT, check=False
        )
    except graphviz.ExecutableNotFound as error:
        raise GraphmillError(f"cannot run {program}: {error}") from error
    except subprocess.TimeoutExpired:
        raise GraphmillError(
            f"Graphviz did not finish in {TIME_LIMIT} s; draw less of the graph with --depth or --focus"
        ) from None
    except OSError as error:
        raise GraphmillError(f"cannot run {program}: {error.strerror}") from error
    if done.returncode or not done.stdout:
        reason = done.stderr.decode(errors="replace").strip().splitlines()
        raise GraphmillError(f"{program.name} failed{': ' + reason[-1] if reason else ''}")
    return done.stdout


def writes_pdf(program: Path) -> bool:
    """Whether this Graphviz has a PDF writer (graphviz-pure and builds without cairo have none)."""
    if program.name == PURE:
        return False
    probe = subprocess.run([str(program), "-Tpdf"], input=b"graph{a}", capture_output=True, check=False)
    return probe.returncode == 0 and probe.stdout.startswith(b"%PDF")


_CLUSTER = re.compile(r'<g id="[^"]*" class="cluster">.*?</g>\n</g>|<g id="[^"]*" class="cluster">.*?</g>', re.DOTALL)
_TEXT = re.compile(r"<text [^>]*>.*?</text>\n?")
_FILL = re.compile(r'<(?:path|polygon) [^>]*?fill="([^"]+)"')


_NODE = re.compile(r'<g id="node:[^"]*" class="node">.*?</a>\n</g>\n</g>', re.DOTALL)
_SHAPE = re.compile(r"<(?:path|polygon|polyline|ellipse) [^>]*>")
_POINTS = re.compile(r' (?:d|points)="([^"]*)"')
_ELLIPSE = re.compile(r' cx="([^"]*)"')
_PAIR = re.compile(r"(-?[\d.]+),-?[\d.]+")
_START = re.compile(r'<text ([^>]*?)text-anchor="start" x="[^"]*"')  # since Graphviz 12 xml:space comes first


def center_labels(svg: str) -> str:
    """Anchor the lines in boxes at their middle.

    Graphviz places them by the widths that its font has; whoever shows the picture has another one.
    """

    def center(found: re.Match[str]) -> str:
        group = found[0]
        xs: list[float] = []
        for shape in _SHAPE.findall(group):
            if (middle := _ELLIPSE.search(shape)) is not None:
                xs.append(float(middle[1]))
            elif (points := _POINTS.search(shape)) is not None:
                xs += [float(x) for x in _PAIR.findall(points[1])]
        if not xs:
            return group
        return _START.sub(rf'<text \g<1>text-anchor="middle" x="{(min(xs) + max(xs)) / 2:.2f}"', group)

    return _NODE.sub(center, svg)


def lift_titles(svg: str) -> str:
    """Draw the titles of clusters last, on a rim of the cluster's colour: edges that lead in must not cross them out.

    Graphviz draws clusters first and routes edges over their titles.
    """
    titles: list[str] = []

    def take(found: re.Match[str]) -> str:
        group = found[0]
        fill = _FILL.search(group)
        rim = fill[1] if fill is not None and fill[1] != "none" else "transparent"
        for text in _TEXT.findall(group):
            style = f'<text stroke="{rim}" stroke-width="4" stroke-linejoin="round" paint-order="stroke" '
            titles.append(style + text.removeprefix("<text ").rstrip("\n"))
        return _TEXT.sub("", group)

    body = _CLUSTER.sub(take, svg)
    head, end, tail = body.rpartition("</g>\n</svg>")
    if not titles or not end:
        return svg
    return f'{head}<g class="titles" pointer-events="none">\n' + "\n".join(titles) + f"\n</g>\n{end}{tail}"
