"""Comparing two models, and finding where they part."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from commands.main import run as graphmill
from toolkit.formats.model import from_graph, write_model
from toolkit.formats.tensor import from_array
from toolkit.graph import dtypes
from toolkit.graph.graph import Graph
from toolkit.graph.shape import Shape
from toolkit.runtime.compare import compare_arrays

F = dtypes.float32


def chain(folder: Path, name: str, changed: int | None = None, length: int = 40) -> str:
    """x -> x * c0 -> x * c1 ...; the constant number `changed` is another."""
    graph = Graph()
    last = graph.add("Placeholder", "x", attrs={"dtype": F, "shape": Shape([3])})
    for i in range(length):
        value = from_array(np.float32(1.5 if i == changed else 1.0))
        constant = graph.add("Const", f"c{i}", attrs={"dtype": F, "value": value})
        last = graph.add("Mul", f"m{i}", [last, constant], attrs={"T": F})
    path = str(folder / name)
    write_model(from_graph(graph), path)
    return path


@pytest.mark.parametrize("changed", [0, 1, 17, 39])
def test_the_first_difference_is_found(tmp_path: Path, changed: int, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = chain(tmp_path, "a.pb"), chain(tmp_path, "b.pb", changed)
    line = ["run", a, "--compare", b, "--feed", "x=[1,2,3]", "--fetch", "m39"]
    assert graphmill([*line, "--bisect"]) == 1
    text = capsys.readouterr().out
    assert "m39: 3 of 3 elements differ (max abs 1.5, max rel 0.333)" in text
    assert f"the first tensor that differs: c{changed}:0" in text or f"differs: m{changed}:0" in text
    assert graphmill([*line, "--rtol", "0.4"]) == 0
    assert "equal within the tolerance" in capsys.readouterr().out


def test_equal_models_are_equal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = chain(tmp_path, "a.pb"), chain(tmp_path, "b.pb")
    assert graphmill(["run", a, "--compare", b, "--feed", "x=[1,2,3]", "--fetch", "m39", "--bisect"]) == 0
    assert capsys.readouterr().out.strip() == (
        "equal within the tolerance: |a - b| <= 1e-08 + 1e-05 |b|, NaN = NaN, both computed as f32"
    )


@pytest.mark.parametrize(
    ("mine", "other", "reason"),
    [
        ([1.0, np.nan], [1.0, np.nan], None),
        ([1.0, np.inf], [1.0, np.inf], None),
        ([1.0, np.nan], [1.0, 2.0], "1 of 2 elements differ"),
        ([1.0], [1.0, 2.0], "shape [1] against [2]"),
        ([b"a", b"b"], [b"a", b"c"], "1 of 2 strings differ"),
        ([1, 2], [1, 3], "1 of 2 elements differ (max abs 1, max rel 0.333)"),
    ],
)
def test_arrays(mine: list[object], other: list[object], reason: str | None) -> None:
    kind = object if isinstance(mine[0], bytes) else None
    found = compare_arrays("t", np.array(mine, kind), np.array(other, kind), rtol=0, atol=0)
    assert (found is None) == (reason is None)
    if found is not None and reason is not None:
        assert found.reason.startswith(reason)
