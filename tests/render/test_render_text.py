"""The terminal view."""

from __future__ import annotations

import re

from tests.render.graphs import add, large, perceptron
from toolkit.graph import dtypes
from toolkit.graph.graph import Graph
from toolkit.render.picture import PictureOptions, make_picture
from toolkit.render.text import MOST_RAILS, to_text


def diamond() -> Graph:
    graph = Graph()
    x = add(graph, "Placeholder", "x", dtype=dtypes.float32)
    left = add(graph, "Relu", "left", x, T=dtypes.float32)
    right = add(graph, "Tanh", "right", x, T=dtypes.float32)
    add(graph, "AddV2", "sum", left, right, control=[x], T=dtypes.float32)
    return graph


def test_rails_split_and_join() -> None:
    text = to_text(make_picture(diamond(), "d", PictureOptions()))
    rows = [line.rstrip() for line in text.splitlines()[2:]]
    columns = [re.match(r"[○●│├┤┬┴┼─╮╯┊ ]*", row)[0].rstrip() for row in rows]  # type: ignore[index]
    names = [re.sub(r"^[○●│├┤┬┴┼─╮╯┊ ]*", "", row).split(" ")[0] for row in rows]
    assert [n for n in names if n] == ["x", "left", "right", "sum"]
    assert columns == ["○", "├─┬─╮", "● │ ┊", "│ ● ┊", "├─┴─╯", "●"]


def test_every_box_has_a_line_and_scopes_are_a_tree() -> None:
    scene = make_picture(perceptron(), "p", PictureOptions())
    text = to_text(scene)
    assert "├─ layer1/" in text and "└─ layer2/" in text
    assert "layer1/MatMul" in text and "layer2/kernel" in text
    assert "◆ layer1/kernel" in text
    assert text.index("moved aside") < text.index("initialization")
    body = text[text.index("○ x") : text.index("moved aside")].splitlines()
    assert sum(any(ch in line[:40] for ch in "○●◆▣▤") for line in body) == len(scene.boxes)


def test_colours_only_when_wanted() -> None:
    scene = make_picture(perceptron(), "p", PictureOptions())
    plain, coloured = to_text(scene), to_text(scene, color=True)
    assert "\x1b" not in plain
    assert re.sub("\x1b\\[[0-9;]*m", "", coloured).split() == plain.split()


def test_crowded_graphs_name_edges_instead_of_drawing_them() -> None:
    text = to_text(make_picture(large(3000, 200), "l", PictureOptions()))
    assert "→" in text
    assert max(len(re.match(r"[^\w]*", line)[0]) for line in text.splitlines()) <= 2 * MOST_RAILS + 12  # type: ignore[index]


def test_loops_are_marked() -> None:
    graph = Graph()
    x = add(graph, "Placeholder", "x", dtype=dtypes.float32)
    merge = add(graph, "Merge", "merge", x, x, T=dtypes.float32, N=2)
    back = add(graph, "NextIteration", "next", merge, T=dtypes.float32)
    merge.inputs[1] = back.output()
    text = to_text(make_picture(graph, "l", PictureOptions(auxiliary="inline")))
    assert "↺" in text
