"""Who runs networks without what makes them fast is told so once, with the command that brings it."""

from __future__ import annotations

from pathlib import Path

import pytest

from commands.main import run
from toolkit.formats.models.model import from_graph, write_model
from toolkit.graph import dtypes
from toolkit.graph.graph import Graph
from toolkit.graph.shape import Shape
from toolkit.kernels.cpu.extras import missing_for_speed
from toolkit.kernels.cpu.onednn import library


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process whose environment says nothing, with neither oneDNN nor LLVM."""
    monkeypatch.delenv("GRAPHMILL_ONEDNN", raising=False)
    monkeypatch.delenv("GRAPHMILL_NATIVE", raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.setattr("toolkit.kernels.cpu.extras.is_present", lambda: False)
    monkeypatch.setattr("toolkit.kernels.cpu.extras.find_spec", lambda name: None)


def test_what_is_missing_is_named_with_what_brings_it(without: None, monkeypatch: pytest.MonkeyPatch) -> None:
    assert missing_for_speed() == (
        "networks run many times slower without oneDNN and LLVM: pip install 'graphmill[fast]'"
    )
    monkeypatch.setattr("platform.machine", lambda: "aarch64")  # for which there is no such package
    told = missing_for_speed()
    assert told is not None and "without LLVM:" in told
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.setenv("GRAPHMILL_ONEDNN", "off")
    told = missing_for_speed()
    assert told is not None and "without LLVM:" in told
    monkeypatch.setenv("GRAPHMILL_NATIVE", "off")
    assert missing_for_speed() is None


def test_nothing_is_said_where_all_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "_is_present", lambda _: True)
    monkeypatch.setattr("toolkit.kernels.cpu.extras.find_spec", lambda name: name)
    assert missing_for_speed() is None


def test_run_says_it_once(without: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph = Graph()
    graph.add("Placeholder", "x", attrs={"dtype": dtypes.float32, "shape": Shape([2])})
    graph.add("Neg", "y", [graph.node("x").output()], attrs={"T": dtypes.float32})
    path = str(tmp_path / "g.pb")
    write_model(from_graph(graph), path)
    given = ["run", path, "--feed", "x=[1, 2]", "--fetch", "y"]
    assert run([*given, "--repeat", "3"]) == 0
    assert capsys.readouterr().err.count("pip install 'graphmill[fast]'") == 1
    assert run([*given, "-q"]) == 0
    assert "pip install" not in capsys.readouterr().err
