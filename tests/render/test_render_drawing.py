"""Pictures as files: DOT text, the geometry of SVG, PNG, PDF."""

from __future__ import annotations

import re
import zlib
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.render.graphs import add, large, perceptron, stack
from toolkit.errors import GraphmillError
from toolkit.graph import dtypes
from toolkit.graph.graph import Graph
from toolkit.render import graphviz_tool
from toolkit.render.colors import MODES, ColorInput
from toolkit.render.difference import Differences
from toolkit.render.dot import ellipsize, quote, to_dot
from toolkit.render.pdf import svg_to_pdf, text_width
from toolkit.render.picture import PictureOptions, draw, make_picture
from toolkit.render.scene import Scene
from toolkit.render.themes import THEMES, find_theme

GOLDEN = Path(__file__).parent / "golden"
SVG = "{http://www.w3.org/2000/svg}"
Area = tuple[float, float, float, float]


def odd_names() -> Graph:
    graph = Graph()
    x = add(graph, "Placeholder", 'a<b>&"c"\\n', dtype=dtypes.float32)
    y = add(graph, "Relu", "ünïcödé/{rec|ord}", x, T=dtypes.float32)
    add(graph, "Relu", "x" * 200, y, T=dtypes.float32)
    add(graph, "MadeUpOp", "node", y)
    return graph


GRAPHS = {"perceptron": perceptron, "stack": lambda: stack(12), "odd": odd_names, "large": lambda: large(3000, 200)}


@pytest.mark.parametrize("name", ["perceptron", "stack", "odd"])
def test_dot_text_is_as_it_was(name: str) -> None:
    """Goldens: look at the picture before accepting a new one (write it with `draw(scene, "dot", options)`)."""
    options = PictureOptions()
    text = draw(make_picture(GRAPHS[name](), name, options), "dot", options).decode()
    assert text == (GOLDEN / f"{name}.dot").read_text()
    assert text == draw(make_picture(GRAPHS[name](), name, options), "dot", options).decode()


def svg_of(scene: Scene, options: PictureOptions) -> ElementTree.Element:
    return ElementTree.fromstring(draw(scene, "svg", options))


def shape_area(group: ElementTree.Element) -> Area:
    xs: list[float] = []
    ys: list[float] = []
    for shape in group.iter():
        tag = shape.tag.removeprefix(SVG)
        if tag == "ellipse":
            cx, cy, rx, ry = (float(shape.attrib[k]) for k in ("cx", "cy", "rx", "ry"))
            xs += [cx - rx, cx + rx]
            ys += [cy - ry, cy + ry]
        elif tag in ("polygon", "path", "polyline"):
            numbers = [float(n) for n in re.findall(r"-?[\d.]+", shape.attrib.get("points") or shape.attrib["d"])]
            xs += numbers[::2]
            ys += numbers[1::2]
    return min(xs), min(ys), max(xs), max(ys)


def text_area(text: ElementTree.Element) -> Area:
    size = float(text.attrib["font-size"])
    width = text_width("".join(text.itertext()), size)
    x, y = float(text.attrib["x"]), float(text.attrib["y"])
    if text.attrib["text-anchor"] == "middle":
        x -= width / 2
    return x, y - 0.75 * size, x + width, y + 0.2 * size


def overlap(a: Area, b: Area, slack: float = 0.5) -> bool:
    return min(a[2], b[2]) - max(a[0], b[0]) > slack and min(a[3], b[3]) - max(a[1], b[1]) > slack


def groups(svg: ElementTree.Element, kind: str) -> list[ElementTree.Element]:
    return [g for g in svg.iter(f"{SVG}g") if g.get("class") == kind]


@pytest.mark.graphviz
@pytest.mark.parametrize("direction", ["TB", "LR"])
@pytest.mark.parametrize("name", GRAPHS)
def test_everything_visible_is_drawn_and_nothing_overlaps(name: str, direction: str) -> None:
    options = PictureOptions(direction=direction)
    scene = make_picture(GRAPHS[name](), name, options)
    svg = svg_of(scene, options)
    nodes = {g.get("id"): g for g in groups(svg, "node")}
    for box in [*scene.boxes, *scene.asides]:
        assert f"node:{box.id}" in nodes
    assert len(groups(svg, "edge")) == len(scene.arcs)
    assert len(groups(svg, "cluster")) == len(list(scene.root.walk())) - 1 + bool(scene.asides)
    areas = {name: shape_area(g) for name, g in nodes.items() if name != "legend"}
    for (a, first), (b, second) in combinations(areas.items(), 2):
        assert not overlap(first, second), f"{a} and {b} overlap"
    labels = [text_area(t) for g in groups(svg, "edge") for t in g.iter(f"{SVG}text")]
    for first, second in combinations(labels, 2):
        assert not overlap(first, second)
    for name_, group in nodes.items():
        if name_ != "legend":
            x0, y0, x1, y1 = shape_area(group)
            for text in group.iter(f"{SVG}text"):
                left, top, right, bottom = text_area(text)
                # Bold text is a little wider than the plain widths say.
                assert left >= x0 - 3 and right <= x1 + 3 and top >= y0 - 1 and bottom <= y1 + 1


@pytest.mark.graphviz
def test_full_names_are_in_tooltips() -> None:
    options = PictureOptions()
    data = draw(make_picture(odd_names(), "odd", options), "svg", options).decode()
    assert "x" * 200 in data
    assert not re.search(r"<text[^>]*>x{40,}<", data)


@pytest.mark.graphviz
@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("color", MODES)
def test_every_theme_and_colouring_draws(theme: str, color: str) -> None:
    options = PictureOptions(theme=theme, color=color)
    changes = Differences({"y": "added", "x": "removed", "layer1/Relu": "renamed", "layer2/Relu": "changed"})
    given = ColorInput({"y": 3.0}, "µs", {"y": 1e6}, changes)
    svg = svg_of(make_picture(perceptron(), "p", options, given), options)
    assert groups(svg, "node")


@pytest.mark.graphviz
def test_png() -> None:
    options = PictureOptions()
    assert draw(make_picture(perceptron(), "p", options), "png", options).startswith(b"\x89PNG\r\n\x1a\n")


@pytest.mark.graphviz
def test_pdf_holds_the_labels() -> None:
    options = PictureOptions()
    scene = make_picture(perceptron(), "p", options)
    pdf = svg_to_pdf(draw(scene, "svg", options).decode())
    assert pdf.startswith(b"%PDF-1.4") and pdf.rstrip().endswith(b"%%EOF")
    stream = re.search(rb"/FlateDecode >>\nstream\n(.*?)\nendstream", pdf, re.DOTALL)
    assert stream is not None
    content = zlib.decompress(stream[1]).decode("latin-1")
    assert content.count("q\n") == content.count("Q\n") + content.endswith("Q") * 1
    for text in ("(MatMul)", "(kernel)", "(variable float32 8×4)"):
        assert text in content
    start = int(re.search(rb"startxref\n(\d+)", pdf)[1])  # type: ignore[index]
    assert pdf[start : start + 4] == b"xref"
    for number, line in enumerate(pdf[start:].split(b"\n")[3:7], 1):
        assert pdf[int(line[:10]) :].startswith(b"%d 0 obj" % number)


def test_pdf_of_something_else() -> None:
    with pytest.raises(GraphmillError, match="no SVG with a viewBox"):
        svg_to_pdf("<svg/>")


def test_no_graphviz_gives_one_clear_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(graphviz_tool.sysconfig, "get_path", lambda name: str(tmp_path))
    with pytest.raises(GraphmillError, match="there is no 'dot' on the PATH and no 'graphviz-pure'; install one"):
        graphviz_tool.run_dot("digraph {}", "svg")


def test_installed_dot_is_preferred(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script = tmp_path / "dot"
    script.write_text("#!/bin/sh\ncat > /dev/null\necho '<svg from=\"the system\"/>'\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    assert graphviz_tool.find_dot() == script
    assert b"the system" in graphviz_tool.run_dot("digraph {}", "svg")
    script.write_text("#!/bin/sh\necho 'Error: out of memory' >&2\nexit 1\n")
    with pytest.raises(GraphmillError, match="dot failed: Error: out of memory"):
        graphviz_tool.run_dot("digraph {}", "svg")


def test_ellipsis_keeps_both_ends() -> None:
    assert ellipsize("short", 10) == "short"
    assert ellipsize("abcdefghijklmnopqrstuvwxyz", 10) == "abc…uvwxyz"
    assert len(ellipsize("x" * 99, 30)) == 30


def test_quoting() -> None:
    assert quote('a"b\\c\nd\0') == '"a\\"b\\\\c\\nd\\\\x00"'


def test_direction_follows_the_shape() -> None:
    def rankdir(graph: Graph) -> str:
        scene = make_picture(graph, "d", PictureOptions(fold=False, legend=False, depth=1))
        found = re.search(r'rankdir="(\w+)"', to_dot(scene, find_theme("light")))
        assert found is not None
        return found[1]

    wide = Graph()
    x = add(wide, "Placeholder", "x", dtype=dtypes.float32)
    add(
        wide,
        "AddN",
        "sum",
        *(add(wide, "Relu", f"r{i}", x, T=dtypes.float32) for i in range(20)),
        T=dtypes.float32,
        N=20,
    )
    assert rankdir(wide) == "LR"
    assert rankdir(stack(20)) == "TB"


@pytest.mark.graphviz
def test_titles_are_drawn_over_edges_and_lines_anchored_at_the_middle_of_their_box() -> None:
    options = PictureOptions()
    svg = svg_of(make_picture(perceptron(), "p", options), options)
    titles = [g for g in svg.iter(f"{SVG}g") if g.get("class") == "titles"]
    order = [g.get("class") for g in svg.iter(f"{SVG}g") if g.get("class")]
    assert order[-1] == "titles" and {"".join(t.itertext()) for t in titles[0]} >= {"layer1", "layer2"}
    assert not [t for g in groups(svg, "cluster") for t in g.iter(f"{SVG}text")]
    rims = {t.attrib["stroke"] for t in titles[0]}
    assert rims <= {*find_theme("light").clusters, find_theme("light").background}
    for group in groups(svg, "node"):
        left, _, right, _ = shape_area(group)
        for text in group.iter(f"{SVG}text"):
            assert text.attrib["text-anchor"] == "middle"
            assert float(text.attrib["x"]) == pytest.approx((left + right) / 2, abs=0.1)  # one decimal is written


@pytest.mark.graphviz
def test_what_one_box_uses_stands_beside_it() -> None:
    """Variables are on the rank of their only user, so that what flows goes straight down."""
    options = PictureOptions(direction="TB")
    svg = svg_of(make_picture(perceptron(), "p", options), options)
    areas = {g.get("id"): shape_area(g) for g in groups(svg, "node")}
    for layer in ("layer1", "layer2"):
        kernel, product = areas[f"node:{layer}/kernel/"], areas[f"node:{layer}/MatMul"]
        assert (kernel[1] + kernel[3]) / 2 == pytest.approx((product[1] + product[3]) / 2, abs=1)  # a point
