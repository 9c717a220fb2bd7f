"""graphmill inspect: goldens, TensorFlow's own answers, other kinds of files, bad input, speed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from commands.main import run
from schemas import event_pb2, graph_pb2
from tests import models
from toolkit.formats.records import crc

GOLDENS = Path(__file__).parent / "goldens"


def inspect(capsys: pytest.CaptureFixture[str], *args: str | Path) -> str:
    """The output of a successful inspect."""
    code = run(["inspect", *map(str, args)])
    captured = capsys.readouterr()
    assert (code, captured.err) == (0, "")
    return captured.out


def report(capsys: pytest.CaptureFixture[str], path: str | Path) -> dict[str, Any]:
    return json.loads(inspect(capsys, path, "--json"))


@pytest.mark.parametrize(("suffix", "options"), [("txt", []), ("json", ["--json"])])
def test_goldens(
    suffix: str, options: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(GOLDENS)
    out = inspect(capsys, "inspect_metagraph.pbtxt", *options)
    assert out == (GOLDENS / f"inspect_metagraph.{suffix}").read_text()


@pytest.mark.parametrize("suffix", ["pb", "json"])
def test_every_encoding_says_the_same(suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from toolkit.formats.models.model import read_model, write_model

    expected = report(capsys, GOLDENS / "inspect_metagraph.pbtxt")
    write_model(read_model(GOLDENS / "inspect_metagraph.pbtxt"), tmp_path / f"a.{suffix}")
    assert report(capsys, tmp_path / f"a.{suffix}")["graphs"] == expected["graphs"]


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", models.own())
def test_counts_are_tensorflows(tf: ModuleType, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    from tensorflow.core.protobuf import saved_model_pb2

    source = getattr(models, name)().path
    found = report(capsys, source)
    data = (source / "saved_model.pb" if source.is_dir() else source).read_bytes()
    if found["kind"] == "graphdef":
        graph_defs = [tf.compat.v1.GraphDef.FromString(data)]
    elif found["kind"] == "metagraph":
        graph_defs = [tf.compat.v1.MetaGraphDef.FromString(data).graph_def]
    else:
        graph_defs = [meta.graph_def for meta in saved_model_pb2.SavedModel.FromString(data).meta_graphs]
    assert found["bytes"] == len(data)
    assert len(found["graphs"]) == len(graph_defs)
    for graph, theirs in zip(found["graphs"], graph_defs, strict=True):
        ops = [node.op for node in theirs.node]
        assert graph["ops"] == {op: ops.count(op) for op in set(ops)}
        inner = [node.op for function in theirs.library.function for node in function.node_def]
        assert graph["function_ops"] == {op: inner.count(op) for op in set(inner)}
        assert len(graph["functions"]) == len(theirs.library.function)
        constants = [node for node in theirs.node if node.op == "Const"]
        constants += [node for f in theirs.library.function for node in f.node_def if node.op == "Const"]
        values = [tf.make_ndarray(node.attr["value"].tensor) for node in constants]
        assert graph["constants"]["nodes"] == len(values)
        assert graph["constants"]["elements"] == sum(value.size for value in values)
        numeric = sum(value.nbytes for value in values if value.dtype != object)
        text = sum(len(item) for value in values if value.dtype == object for item in value.reshape(-1))
        assert graph["constants"]["bytes"] == numeric + text


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", ["resnet50", "mobilenet_v2", "efficientnet_b0"])
def test_frozen_networks(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    source = getattr(models, name)()
    graph = report(capsys, source.path)["graphs"][0]
    shape = [None, models.SIZE, models.SIZE, 3]
    assert graph["inputs"] == [{"name": "input", "op": "Placeholder", "dtype": "float32", "shape": shape}]
    assert [entry["name"] + ":0" for entry in graph["outputs"]] == [source.output]
    published = {"resnet50": 25_636_712, "mobilenet_v2": 3_538_984, "efficientnet_b0": 5_330_571}[name]
    assert graph["parameters"]["in"] == "constants"
    # a few scalars and small constants of the arithmetic come on top of the weights
    assert published <= graph["parameters"]["total"] + 10 <= published * 1.001 + 10


@pytest.mark.tensorflow
def test_signatures_and_variables_of_a_saved_model(tf: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    source = models.saved_model_tf2().path
    found = report(capsys, source)
    graph = found["graphs"][0]
    loaded = tf.saved_model.load(str(source))
    for key, function in loaded.signatures.items():
        theirs = {name: (spec.dtype.name, spec.shape.as_list()) for name, spec in function.structured_outputs.items()}
        ours = {name: (info["dtype"], info["shape"]) for name, info in graph["signatures"][key]["outputs"].items()}
        assert ours == theirs
    assert {(v["name"], tuple(v["shape"])) for v in graph["variables"]} == {("weight", (4, 3)), ("bias", (3,))}
    assert graph["parameters"] == {"total": 15, "trainable": 15, "unused": 0, "in": "variables"}
    assert graph["assets"] == ["words.txt"]
    assert [entry["name"] for entry in graph["inputs"]] == ["power_n", "power_x", "serving_default_x"]
    assert found["files"]["assets/words.txt"] == 8
    assert graph["tags"] == ["serve"]
    assert graph["tensorflow_version"] == tf.__version__


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", ["lenet_ref", "lenet_resource"])
def test_training_graphs(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    source = getattr(models, name)()
    graph = report(capsys, source.path)["graphs"][0]
    assert [entry["name"] for entry in graph["inputs"]] == ["images", "labels"]
    assert [entry["name"] for entry in graph["outputs"]] == ["loss"]
    assert graph["targets"] == ["train", "init"]
    trainable = [v["name"] for v in graph["variables"] if v["trainable"]]
    assert len(trainable) == 8
    assert "conv1/kernel" in trainable
    assert graph["parameters"]["trainable"] == 7542
    assert graph["collections"]["variables"] == {"kind": "bytes_list", "items": 27}
    assert graph["saver"]["restore"] == "save/restore_all"
    assert "likely outputs\n  loss  float32  Mean\n" in inspect(capsys, source.path)


@pytest.mark.tensorflow
def test_several_graphs_and_frames(capsys: pytest.CaptureFixture[str]) -> None:
    text = inspect(capsys, models.saved_model_tf1().path)
    assert "graph 1 of 2, tags: serve\n" in text
    assert "graph 2 of 2, tags: serve, train\n" in text
    graph = report(capsys, models.control_flow_v1().path)["graphs"][0]
    assert set(graph["frames"]) > {"outer/while_context", "outer/while/while_context"}
    assert sum(graph["frames"].values()) == graph["ops"]["Enter"]


# -- other kinds of files --------------------------------------------------------------------------------


@pytest.mark.tensorflow
def test_checkpoints(tf: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    source = models.lenet_ref()
    prefix = source.folder / source.info["prefix"]
    found = report(capsys, prefix)
    assert found["kind"] == "checkpoint"
    expected = dict(tf.train.list_variables(str(prefix)))
    assert {tensor["name"]: tensor["shape"] for tensor in found["tensors"]} == expected
    assert found["bytes"] == sum(p.stat().st_size for p in source.folder.glob("model.ckpt-1.[di]*"))
    assert "27 tensors" in inspect(capsys, f"{prefix}.index")
    assert "latest: model.ckpt-1" in inspect(capsys, source.folder)


@pytest.mark.tensorflow
def test_event_files(tf: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    writer = tf.summary.create_file_writer(str(tmp_path))
    with writer.as_default():
        for step in (3, 5, 8):
            tf.summary.write("loss", 0.5, step=step)
        tf.summary.write("accuracy", 0.5, step=9)
    writer.close()
    (path,) = tmp_path.iterdir()
    found = report(capsys, path)
    assert (found["kind"], found["version"]) == ("events", "brain.Event:2")
    assert found["events"] == {"file_version": 1, "summary": 4}
    assert found["steps"] == [3, 9]
    assert found["tags"]["loss"] == {"values": 3, "first_step": 3, "last_step": 8}
    text = inspect(capsys, path)
    assert "loss      3 values  steps 3 to 8" in text
    path.write_bytes(path.read_bytes()[:-3])
    assert run(["inspect", str(path)]) == 2
    assert "truncated" in capsys.readouterr().err


@pytest.mark.tensorflow
def test_tfrecord_files(tf: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "data"
    with tf.io.TFRecordWriter(str(path)) as writer:
        for size in (5, 0, 700):
            writer.write(b"x" * size)
    found = report(capsys, path)
    assert (found["kind"], found["records"]) == ("tfrecord", 3)
    assert found["record_bytes"] == {"total": 705, "smallest": 0, "largest": 700}
    assert "3 records\nrecord bytes: 0 to 700, 705 in all\n" in inspect(capsys, path)


def test_events_that_are_no_events(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def record(data: bytes) -> bytes:
        length = len(data).to_bytes(8, "little")
        return length + crc.masked(length).to_bytes(4, "little") + data + crc.masked(data).to_bytes(4, "little")

    first = event_pb2.Event(file_version="brain.Event:2").SerializeToString()
    (tmp_path / "a").write_bytes(record(first) + record(b"\xff\xff"))
    assert run(["inspect", str(tmp_path / "a")]) == 2
    assert "record 1 is not an event" in capsys.readouterr().err


def test_partition_folders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number, op in enumerate(("_Send", "_Recv")):
        graph = graph_pb2.GraphDef()
        graph.node.add(name="a", op="NoOp", device=f"/job:w/task:{number}")
        graph.node.add(name="b", op=op, device=f"/job:w/task:{number}")
        (tmp_path / f"part-{number}.pb").write_bytes(graph.SerializeToString())
    rows = "".join(f"- {{name: /job:w/task:{n}, file: part-{n}.pb}}\n" for n in range(2))
    (tmp_path / "partitions.yaml").write_text(
        f"version: 1\nkind: graphdef\nby: task\npartitions:\n{rows}signatures: {{serve: {{}}}}\n"
    )
    (tmp_path / "meta.pb").write_bytes(b"\x0a\x00")
    found = report(capsys, tmp_path)
    assert [(p["name"], p["nodes"], p["sends"], p["receives"]) for p in found["partitions"]] == [
        ("/job:w/task:0", 2, 1, 0),
        ("/job:w/task:1", 2, 0, 1),
    ]
    assert (found["by"], found["signatures"]) == ("task", ["serve"])
    assert "2 partitions" in inspect(capsys, tmp_path)
    for text in ("- a", "partitions: [{name: 1}]", "partitions: [", "3"):
        (tmp_path / "partitions.yaml").write_text(text)
        assert run(["inspect", str(tmp_path)]) == 2
        err = capsys.readouterr().err
        assert "partitions.yaml: not " in err or "partitions.yaml:1: not " in err


# -- broken and hostile graphs ---------------------------------------------------------------------------


def test_a_broken_graph_is_described_all_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph = graph_pb2.GraphDef()
    graph.node.add(name="x", op="Placeholder")
    graph.node.add(name="x", op="NoSuchOp", input=["nowhere:7", "^gone"])
    constant = graph.node.add(name="c", op="Const")
    constant.attr["value"].tensor.dtype = 77  # type: ignore[assignment]
    graph.node.add(name="n", op="Const")
    variable = graph.node.add(name="v", op="VariableV2")
    variable.attr["dtype"].s = b"what"
    (tmp_path / "a.pb").write_bytes(graph.SerializeToString())
    found = report(capsys, tmp_path / "a.pb")["graphs"][0]
    assert found["nodes"] == 5
    assert found["ops"]["NoSuchOp"] == 1
    inspect(capsys, tmp_path / "a.pb")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"\x80\x04]\x94.", "a Python pickle"),
        (b"<html></html>", "an HTML or XML page"),
        (None, "there is no such file"),
    ],
)
def test_bad_input(content: bytes | None, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "model.pb"
    if content is not None:
        path.write_bytes(content)
    for options in ([], ["--json"]):
        assert run(["inspect", str(path), *options]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.startswith(f"graphmill: error: {path}: ")
        assert message in captured.err
        assert captured.err.count("\n") == 1


# -- as a program ----------------------------------------------------------------------------------------


def graphmill(*args: str, data: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "commands.main", *args]
    return subprocess.run(command, input=data, capture_output=True, check=False)


def test_a_pipe() -> None:
    data = (GOLDENS / "inspect_metagraph.pbtxt").read_bytes()
    result = graphmill("inspect", "-", data=data)
    assert result.stderr == b""
    assert result.stdout.startswith(b"standard input: MetaGraphDef, text, ")


def test_no_numpy_is_imported() -> None:
    script = (
        "import sys\nfrom commands.main import run\n"
        f"assert run(['inspect', {str(GOLDENS / 'inspect_metagraph.pbtxt')!r}]) == 0\n"
        "bad = {'numpy', 'rich', 'grpc', 'yaml', 'graphviz'} & set(sys.modules)\n"
        "assert not bad, bad\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)


def test_a_hundred_thousand_nodes(tmp_path: Path) -> None:
    graph = graph_pb2.GraphDef()
    for number in range(100_000):
        node = graph.node.add(name=f"scope_{number % 100}/node_{number}", op="AddV2", device="/job:w/task:0")
        if number:
            node.input.append(f"scope_{(number - 1) % 100}/node_{number - 1}")
            node.input.append(f"scope_{number // 2 % 100}/node_{number // 2}")
        node.attr["T"].type = 1  # type: ignore[assignment]
    (tmp_path / "big.pb").write_bytes(graph.SerializeToString())
    command = (sys.executable, "-m", "commands.main", "inspect", "--json", str(tmp_path / "big.pb"))
    done = subprocess.run(command, check=True, capture_output=True)
    assert json.loads(done.stdout)["graphs"][0]["nodes"] == 100_000
