"""graphmill prune."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from commands.main import run
from tests import models
from toolkit.formats.models.model import ModelKind, from_graph, read_model, write_model
from toolkit.graph import dtypes
from toolkit.graph.graph import Graph
from toolkit.graph.shape import Shape

F = dtypes.float32


@pytest.fixture
def model(tmp_path: Path) -> str:
    graph = Graph()
    x = graph.add("Placeholder", "x", attrs={"dtype": F, "shape": Shape([2])})
    h = graph.add("Tanh", "h", [x], attrs={"T": F})
    graph.add("Neg", "y", [h], attrs={"T": F})
    graph.add("Abs", "z", [h], attrs={"T": F})
    write_model(from_graph(graph), tmp_path / "m.pb")
    return str(tmp_path / "m.pb")


def test_lists_and_repeats(model: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "o.pbtxt")
    assert run(["prune", model, "--fetch", "y,z", "--fetch", "h:0", "--feed", "h", "-o", out]) == 0
    graph = read_model(out).graph
    assert {n.name: n.op for n in graph} == {"h": "Placeholder", "y": "Neg", "z": "Abs"}
    captured = capfd.readouterr()
    assert captured.out == "" and "kept 3 of 4 nodes" in captured.err


def test_report_and_why(model: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    report = tmp_path / "r.json"
    assert (
        run(["prune", model, "--target", "y", "--feed", "x", "--report", str(report), "-o", str(tmp_path / "o")]) == 0
    )
    facts = json.loads(report.read_text())
    assert (facts["nodes_before"], facts["nodes_after"], facts["feeds"]) == (4, 3, {"x": "x:0"})
    capfd.readouterr()
    assert run(["prune", model, "--fetch", "y", "--why", "x", "--why", "z"]) == 0
    assert capfd.readouterr().out == "y <- h <- x\nz is not needed\n"


@pytest.mark.tensorflow
def test_training_graph_keeps_its_lifecycle(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    built = models.lenet_ref()
    source, out = str(built.path), str(tmp_path / "o.meta")
    before = read_model(source)
    fetch = built.output
    assert run(["prune", source, "--fetch", fetch, "-o", out]) == 0
    alone = read_model(out)
    assert alone.kind is ModelKind.META_GRAPH and alone.meta.saver is None
    assert "dropped the saver" in capfd.readouterr().err
    assert alone.meta.signatures["pruned"].outputs[fetch.removesuffix(":0")].name == fetch
    assert run(["prune", source, "--fetch", fetch, "--keep-lifecycle", "-o", out]) == 0
    kept = read_model(out)
    assert kept.meta.saver == before.meta.saver
    assert kept.meta.collections["variables"] == before.meta.collections["variables"]
    assert len(alone.graph) < len(kept.graph) <= len(before.graph)


@pytest.mark.tensorflow
def test_only_signature_of_a_saved_model(tmp_path: Path) -> None:
    import tensorflow as tf

    built = models.saved_model_tf1()
    out = tmp_path / "o"
    assert run(["prune", str(built.path), "--signature", "serving_default", "-o", str(out)]) == 0
    model = read_model(str(out))
    before = read_model(str(built.path))
    assert model.kind is ModelKind.SAVED_MODEL and len(model.graph) <= len(before.graph)
    assert set(model.meta.signatures) >= {"serving_default"}
    with tf.Graph().as_default():
        tf.import_graph_def(tf.compat.v1.GraphDef.FromString(model.graph.to_proto().SerializeToString()))


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", ["saved_model_tf2", "saved_model_keras"])
def test_pruned_saved_model_serves_in_tensorflow(name: str, tmp_path: Path) -> None:
    """Variables, assets and the signature are all there; nothing else is."""
    import tensorflow as tf

    source, out = getattr(models, name)().path, tmp_path / "o"
    assert run(["prune", str(source), "--signature", "serving_default", "-o", str(out)]) == 0
    theirs = tf.saved_model.load(str(source)).signatures["serving_default"]
    ours = tf.saved_model.load(str(out)).signatures["serving_default"]
    args = {
        key: tf.reshape(tf.linspace(-1.0, 1.0, 2 * spec.shape[1:].num_elements()), [2, *spec.shape[1:]])
        for key, spec in theirs.structured_input_signature[1].items()
    }
    for key, value in theirs(**args).items():
        tf.debugging.assert_equal(ours(**args)[key], value)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], "likely outputs: y:0, z:0"),
        (["--fetch", "yy"], "there is no node 'yy'"),
        (["--fetch", "y", "--feed", "x", "--feed", "x:0"], "fed twice"),
        (["--signature", "s"], "there is no signature 's'"),
        (["--target", "q"], "there is no node 'q'"),
        (["--fetch", "y", "--why", "q"], "there is no node 'q'"),
        (["--fetsh", "y"], "No such option"),
    ],
)
def test_refused(model: str, tmp_path: Path, args: list[str], message: str, capfd: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "never.pb"
    assert run(["prune", model, *args, "-o", str(out)]) == 2
    captured = capfd.readouterr()
    assert message in captured.err and captured.err.count("\n") == 1 and not out.exists()


def test_malformed_graph(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m.pbtxt").write_text('node { name: "x" op: "Placeholdr" }\n')
    assert run(["prune", str(tmp_path / "m.pbtxt"), "--fetch", "x"]) == 2
    assert "node 'x': unknown op 'Placeholdr'; did you mean 'Placeholder'" in capfd.readouterr().err


@pytest.mark.tensorflow
def test_an_asset_that_is_missing_is_told(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(models.saved_model_tables("objects").path, broken)
    (broken / "assets" / "words.txt").unlink()
    for line in (["prune", str(broken)], ["convert", str(broken)]):
        assert run([*line, "-o", str(tmp_path / line[0])]) == 0
        assert "warning: the model has no such asset, which it needs: words.txt" in capfd.readouterr().err
    assert run(["convert", str(broken), "--as", "graphdef", "-o", str(tmp_path / "g.pb")]) == 0
    assert "no such asset" not in capfd.readouterr().err


def test_a_layer_of_a_spec_is_known_by_its_name(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    spec = tmp_path / "s.yaml"
    spec.write_text(
        "inputs: {x: {dtype: float32, shape: [null, 4]}}\n"
        "nodes:\n- {layer: dense, name: fc, units: 3, activation: relu}\n- {layer: dense, name: out, units: 2}\n"
    )
    built, out = str(tmp_path / "s.meta"), str(tmp_path / "o.pb")
    assert run(["build", str(spec), "-o", built]) == 0
    assert run(["prune", built, "--fetch", "fc", "--as", "graphdef", "-o", out]) == 0
    names = [node.name for node in read_model(out).graph]
    assert "fc/Relu" in names and not any(name.startswith("out/") for name in names)
    capfd.readouterr()
    assert run(["prune", built, "--fetch", "fd", "-o", out]) == 2
    assert "--fetch: there is no node 'fd'" in capfd.readouterr().err
