"""graphmill build, as it is called from a shell."""

from __future__ import annotations

from pathlib import Path

import pytest

from commands.main import run
from tests import tolerance
from toolkit.formats.models.model import read_model

SAMPLES = Path(__file__).parents[2] / "samples"


def test_build_writes_a_meta_graph(tmp_path: Path) -> None:
    out = tmp_path / "digits.meta"
    assert run(["build", str(SAMPLES / "digits_cnn.yaml"), "-o", str(out)]) == 0
    model = read_model(out)
    assert model.kind.name == "META_GRAPH" and set(model.meta.signatures) == {"serving_default", "train", "eval"}
    assert "_output_shapes" not in model.graph.node("probabilities").attrs


def test_build_with_shapes_as_text_graphdef(tmp_path: Path) -> None:
    out = tmp_path / "digits.pbtxt"
    spec = str(SAMPLES / "digits_cnn.yaml")
    assert run(["build", spec, "-o", str(out), "--as", "graphdef.text", "--shapes"]) == 0
    model = read_model(out)
    assert model.kind.name == "GRAPH_DEF"
    assert [str(s) for s in model.graph.node("probabilities").attr("_output_shapes")] == ["[?,10]"]


def test_python_spec_and_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = tmp_path / "model.py"
    spec.write_text("from toolkit import client as gm\ngm.constant(1.0, name='one')\n")
    out = tmp_path / "one.pb"
    assert run(["build", str(spec), "-o", str(out)]) == 0
    assert [node.name for node in read_model(out).graph] == ["one"]


def test_mistakes_are_one_line_and_leave_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = tmp_path / "bad.yaml"
    spec.write_text("inputs:\n  x: {shape: [null, 3]}\nnodes:\n  - {layer: dens, units: 3}\n")
    out = tmp_path / "bad.meta"
    assert run(["build", str(spec), "-o", str(out)]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.count("\n") == 1
    assert captured.err.startswith(
        f"graphmill: error: {spec}:4:6: nodes[0].layer: 'dens' is unknown; did you mean 'dense'"
    )
    assert not out.exists()
    assert run(["build", str(tmp_path / "none.yaml"), "-o", str(out)]) == 2
    assert "none.yaml" in capsys.readouterr().err and not out.exists()


def test_the_python_sample_runs(tmp_path: Path) -> None:
    import numpy as np

    out = tmp_path / "newton.meta"
    assert run(["build", str(SAMPLES / "newton.py"), "-o", str(out)]) == 0
    found = tmp_path / "found.npz"
    assert run(["run", str(out), "--feed", "x=[2.0,9.0]", "--out", str(found)]) == 0
    values = np.load(found)
    # it ends where the squares are off by a millionth, which is the rounding of three operations more or less
    of_root = (1e-6 + tolerance.gamma(3)) / 2
    np.testing.assert_allclose(values["root"], [2**0.5, 3.0], rtol=of_root)
    # a step's error is half the square of that before it, which is what it leaves of the slope's error, at most all
    of_slope = (2 * of_root) ** 0.5 + tolerance.gamma(8)
    np.testing.assert_allclose(values["slope"], [0.5 / 2**0.5, 1 / 6], rtol=of_slope)
    assert values["steps"] < 50
