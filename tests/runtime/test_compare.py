"""Comparing two models, and finding where they part."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from commands.main import run as graphmill
from toolkit.formats.arrays.tensor import from_array
from toolkit.formats.models.model import from_graph, write_model
from toolkit.graph import dtypes
from toolkit.graph.graph import Graph
from toolkit.graph.shape import Shape
from toolkit.runtime.analysis.compare import compare_arrays

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


def with_variable(folder: Path) -> str:
    """x times a variable, which has an initial value."""
    graph = Graph()
    three = graph.add("Const", "three", attrs={"dtype": F, "value": from_array(np.float32(3.0))})
    handle = graph.add("VarHandleOp", "v", attrs={"dtype": F, "shape": Shape([]), "shared_name": b"v"})
    graph.add("AssignVariableOp", "init", [handle, three], attrs={"dtype": F})
    read = graph.add("ReadVariableOp", "read", [handle], attrs={"dtype": F})
    x = graph.add("Placeholder", "x", attrs={"dtype": F, "shape": Shape([3])})
    graph.add("Mul", "y", [x, read], attrs={"T": F})
    path = str(folder / "variable.pb")
    write_model(from_graph(graph), path)
    return path


@pytest.mark.parametrize("state", ["checkpoint", "init"])
def test_a_frozen_model_beside_its_variables(tmp_path: Path, state: str, capsys: pytest.CaptureFixture[str]) -> None:
    """--checkpoint and --init are for the one of two models that has variables; where neither has, they are refused."""
    graph = Graph()
    x = graph.add("Placeholder", "x", attrs={"dtype": F, "shape": Shape([3])})
    three = graph.add("Const", "three", attrs={"dtype": F, "value": from_array(np.float32(3.0))})
    graph.add("Mul", "y", [x, three], attrs={"T": F})
    frozen = str(tmp_path / "frozen.pb")
    write_model(from_graph(graph), frozen)
    trained, saved = with_variable(tmp_path), str(tmp_path / "saved")
    feeds = ["--feed", "x=[1,2,3]", "--fetch", "y"]
    assert graphmill(["run", trained, "--init", *feeds, "--save", saved]) == 0
    given = ["--init"] if state == "init" else ["--checkpoint", saved]
    for pair in ([trained, "--compare", frozen], [frozen, "--compare", trained]):
        assert graphmill(["run", *pair, *given, *feeds]) == 0
    assert graphmill(["run", frozen, "--compare", frozen, *given, *feeds]) == 2
    assert "frozen.pb: " in capsys.readouterr().err.splitlines()[-1]
