"""graphmill visualize."""

from __future__ import annotations

from pathlib import Path

import pytest

from commands.main import run
from tests.render.graphs import perceptron
from toolkit.formats.model import from_graph, write_model


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "p.pb"
    write_model(from_graph(perceptron()), path)
    return path


@pytest.mark.graphviz
@pytest.mark.parametrize(
    ("suffix", "magic"), [("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF"), ("dot", b"digraph")]
)
def test_formats(model: Path, suffix: str, magic: bytes) -> None:
    out = model.with_suffix("." + suffix)
    assert run(["visualize", str(model), "-o", str(out)]) == 0
    assert out.read_bytes().startswith(magic)


def test_dot_on_standard_output(model: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["visualize", str(model), "-o", "-", "--depth", "1", "--no-legend"]) == 0
    text = capfd.readouterr().out
    assert '"layer1/"' in text and "~legend" not in text


def test_partition_folder(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for name in ("a", "b"):
        write_model(from_graph(perceptron()), tmp_path / f"{name}.pb")
    (tmp_path / "partitions.yaml").write_text(
        "partitions:\n- {file: a.pb, device: /job:ps/task:0}\n- {file: b.pb, device: /job:worker/task:0}\n"
    )
    assert run(["visualize", str(tmp_path), "-o", "-", "--color", "partition"]) == 0
    text = capfd.readouterr().out
    assert 'label="/job:ps/task:0"' in text and 'label="/job:worker/task:0"' in text


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["-o", "x.jpg"], "no picture format has the suffix '.jpg'; expected .svg, .png"),
        ([], "say where to draw: -o FILE"),
        (["-o", "x.svg", "--color", "colour"], "no colouring 'colour'"),
        (["-o", "x.svg", "--theme", "lihgt"], "did you mean 'light'"),
        (
            ["-o", "x.svg", "--focus", "layer1/MatMull"],
            "no node or scope 'layer1/MatMull'; did you mean 'layer1/MatMul'",
        ),
        (["-o", "x.svg", "--highlight", "y", "x"], "no path from 'y' to 'x'; there is one from 'x' to 'y'"),
        (["-o", "x.svg", "--direction", "down"], "'down' is no direction; expected TB, LR or auto"),
    ],
)
def test_usage_errors(model: Path, args: list[str], message: str, capfd: pytest.CaptureFixture[str]) -> None:
    full = [str(model.parent / a) if a.startswith("x.") else a for a in args]
    assert run(["visualize", str(model), *full]) == 2
    error = capfd.readouterr().err
    assert message in error and error.count("\n") == 1
    assert list(model.parent.iterdir()) == [model]


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "the file is empty"), (b"not a graph at all", "not a GraphDef"), (None, "no such file")],
)
def test_bad_files(tmp_path: Path, content: bytes | None, message: str, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bad.pb"
    if content is not None:
        path.write_bytes(content)
    assert run(["visualize", str(path), "-o", str(tmp_path / "x.svg")]) == 2
    error = capfd.readouterr().err
    assert message in error and "bad.pb" in error and error.count("\n") == 1
    assert not (tmp_path / "x.svg").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [("partitions: 3\n", "has no list 'partitions'"), ("partitions: [{}]\n", "has no 'file'"), ("a: [", "is not YAML")],
)
def test_bad_partition_folder(tmp_path: Path, text: str, message: str, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "partitions.yaml").write_text(text)
    assert run(["visualize", str(tmp_path), "-o", "-"]) == 2
    assert message in capfd.readouterr().err
