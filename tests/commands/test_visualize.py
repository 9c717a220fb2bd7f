"""graphmill visualize."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import pytest

from commands.main import run
from schemas import config_pb2
from tests.render.graphs import perceptron
from toolkit.formats.folders.partitions import write_partitions
from toolkit.formats.models.model import from_graph, write_model
from toolkit.render.themes import find_theme


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
    assert '"layer1/"' in text and "Legend" not in text and "matrix product" not in text


@pytest.mark.graphviz
def test_a_pipe_gets_svg(model: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["visualize", str(model)]) == 0
    assert capfd.readouterr().out.startswith("<?xml")


def test_a_terminal_gets_text(model: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("PAGER", "cat")
    assert run(["visualize", str(model)]) == 0
    assert "p.pb" in capfd.readouterr().out


def test_partition_folder(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    parts = {"/job:ps/task:0": perceptron(), "/job:worker/task:0": perceptron()}
    write_partitions(str(tmp_path / "parts"), parts, from_graph(perceptron()), "task")
    assert run(["visualize", str(tmp_path / "parts"), "-o", "-", "--color", "partition"]) == 0
    text = capfd.readouterr().out
    assert 'label="/job:ps/task:0"' in text and 'label="/job:worker/task:0"' in text
    common = ["visualize", str(tmp_path / "parts"), "-o", "-", "--focus"]
    for name in ("/job:ps/task:0/layer1/Relu", "layer1/Relu", "layer1"):
        assert run([*common, name, "--hops", "0"]) == 0
        text = capfd.readouterr().out
        assert "layer1/Relu" in text and "layer2" not in text
        assert ("/job:worker" in text) == (not name.startswith("/job:ps"))
    assert run([*common, "layer1/Rellu"]) == 2
    assert "there is no node or scope 'layer1/Rellu'; did you mean 'layer1/Relu'" in capfd.readouterr().err
    assert run(["visualize", str(tmp_path / "parts"), "-o", str(tmp_path / "logs"), "--tensorboard"]) == 2
    assert "takes one graph" in capfd.readouterr().err


def test_text_view(model: Path, capfd: pytest.CaptureFixture[str]) -> None:
    out = model.with_suffix(".txt")
    assert run(["visualize", str(model), "-o", str(out)]) == 0
    assert out.read_text().startswith("p.pb: 15 nodes, ")
    assert "\x1b" not in out.read_text()


def test_against_marks_what_changed(model: Path, capfd: pytest.CaptureFixture[str]) -> None:
    changed = perceptron()
    changed.node("layer2/Relu").op = "Tanh"
    changed.remove([changed.node("y")])
    other = model.with_name("new.pb")
    write_model(from_graph(changed), other)
    assert run(["visualize", str(other), "--against", str(model), "-o", "-", "--no-fold"]) == 0
    text = capfd.readouterr().out
    theme = find_theme("light")
    assert re.search(rf'"layer2/Relu" .*fillcolor="{theme.changed}"', text)
    assert re.search(rf'"y" .*fillcolor="{theme.removed}"', text)


def test_costs_from_json(model: Path, capfd: pytest.CaptureFixture[str]) -> None:
    costs = model.with_name("costs.json")
    costs.write_text('{"unit": "ms", "layer1/MatMul": 8, "layer2/MatMul": 2.5}')
    assert run(["visualize", str(model), "--costs", str(costs), "-o", "-"]) == 0
    text = capfd.readouterr().out
    assert "8 ms" in text and "2.5 ms" in text


@pytest.mark.tensorflow
def test_tensorboard_reads_the_event_file(model: Path, tf: ModuleType, capfd: pytest.CaptureFixture[str]) -> None:
    logs = model.parent / "logs"
    metadata = config_pb2.RunMetadata()
    metadata.step_stats.dev_stats.add(device="/cpu:0").node_stats.add(node_name="y", op_end_rel_micros=5)
    stats = model.with_name("step.pb")
    stats.write_bytes(metadata.SerializeToString())
    assert run(["visualize", str(model), "-o", str(logs), "--tensorboard", "--costs", str(stats)]) == 0
    (file,) = logs.iterdir()
    events = list(tf.compat.v1.train.summary_iterator(str(file)))
    assert [e.WhichOneof("what") for e in events] == ["file_version", "graph_def", "tagged_run_metadata"]
    graph = tf.compat.v1.GraphDef.FromString(events[1].graph_def)
    assert graph == tf.compat.v1.GraphDef.FromString(model.read_bytes())
    assert tf.compat.v1.RunMetadata.FromString(events[2].tagged_run_metadata.run_metadata).step_stats.dev_stats


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["-o", "x.jpg"], "no picture format has the suffix '.jpg'; expected .svg, .png"),
        (["-o", "x.svg", "--color", "memory"], "colouring by memory needs a trace"),
        (["-o", "x.svg", "--color", "colour"], "no colouring 'colour'"),
        (["-o", "x.svg", "--theme", "lihgt"], "did you mean 'light'"),
        (
            ["-o", "x.svg", "--focus", "layer1/MatMull"],
            "no node or scope 'layer1/MatMull'; did you mean 'layer1/MatMul'",
        ),
        (["-o", "x.svg", "--highlight", "y", "x"], "no path from 'y' to 'x'; there is one from 'x' to 'y'"),
        (["-o", "x.svg", "--direction", "down"], "'down' is no direction; expected TB, LR, auto"),
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


def test_bad_partition_folder(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "partitions.yaml").write_text("a: [")
    assert run(["visualize", str(tmp_path), "-o", "-"]) == 2
    error = capfd.readouterr().err
    assert "partitions.yaml:" in error and "not valid YAML" in error and error.count("\n") == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"{1: 2}", "not JSON"), (b'{"a": "b"}', 'expected {"NODE": number'), (b"\xff\xff", "holds no measured nodes")],
)
def test_bad_costs(model: Path, content: bytes, message: str, capfd: pytest.CaptureFixture[str]) -> None:
    costs = model.with_name("costs")
    costs.write_bytes(content)
    assert run(["visualize", str(model), "--costs", str(costs), "-o", str(model.with_name("x.svg"))]) == 2
    error = capfd.readouterr().err
    assert message in error and str(costs) in error and error.count("\n") == 1
    assert not model.with_name("x.svg").exists()


def test_tensorboard_needs_a_folder(model: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["visualize", str(model), "--tensorboard"]) == 2
    assert "say which one with -o LOGDIR" in capfd.readouterr().err
    assert run(["visualize", str(model), "--tensorboard", "-o", str(model)]) == 2
    assert "is a file; --tensorboard writes into a folder" in capfd.readouterr().err
