"""graphmill inspect: what it says of a model's origin, needs and costs; leftovers of first-time users."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from commands.main import run
from schemas import graph_pb2, saved_model_pb2
from tests import models
from tests.passes import validate_graphs as graphs
from toolkit.graph import dtypes
from toolkit.graph.shape import Shape

F = dtypes.float32


def report(capsys: pytest.CaptureFixture[str], path: str | Path) -> dict[str, Any]:
    code = run(["inspect", str(path), "--json"])
    captured = capsys.readouterr()
    assert (code, captured.err) == (0, "")
    return json.loads(captured.out)


def text(capsys: pytest.CaptureFixture[str], path: str | Path) -> str:
    assert run(["inspect", str(path)]) == 0
    return capsys.readouterr().out


def write(graph: Any, path: Path) -> Path:
    path.write_bytes(graph.SerializeToString())
    return path


# -- which TensorFlow ------------------------------------------------------------------------------------


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", models.own())
def test_what_this_tensorflow_wrote(tf: ModuleType, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    release = ".".join(tf.version.VERSION.split(".")[:2])
    for graph in report(capsys, getattr(models, name)().path)["graphs"]:
        assert graph["written_by"] == release
        assert graph["needs"]["custom_ops"] == []
        assert tuple(map(int, graph["needs"]["tensorflow"].split("."))) <= tuple(map(int, release.split(".")))


def test_what_a_graph_needs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    g = graphs.net()
    assert report(capsys, write(g, tmp_path / "a.pb"))["graphs"][0]["needs"] == {
        "tensorflow": "1.4", "reasons": [], "custom_ops": [],
    }  # fmt: skip
    graphs.add(g, "MyOp", "mine", ["prob"])
    graphs.node(g, "conv/out").attr["dilations"].list.i.extend([1, 1, 1, 1])
    g.versions.producer = 26
    found = report(capsys, write(g, tmp_path / "a.pb"))["graphs"][0]
    assert found["written_by"] == "1.6 to 1.10"
    assert found["needs"] == {
        "tensorflow": "1.5", "reasons": ["attribute dilations of Conv2D"], "custom_ops": ["MyOp"],
    }  # fmt: skip
    shown = text(capsys, tmp_path / "a.pb")
    assert "version of TensorFlow 1.6 to 1.10, producer 26" in shown
    assert "loads in TensorFlow 1.5 and newer (attribute dilations of Conv2D)" in shown
    assert "needs custom ops: MyOp" in shown


# -- costs and parameters --------------------------------------------------------------------------------


@pytest.mark.tensorflow
def test_costs_are_in_the_report(capsys: pytest.CaptureFixture[str]) -> None:
    found = report(capsys, models.saved_model_keras().path)["graphs"][0]
    assert found["costs"]["flops"] == found["costs"]["signatures"]["serve"]["flops"] > 0
    assert found["costs"]["signatures"]["serve"]["parameters"] == found["parameters"]["total"]
    shown = text(capsys, models.saved_model_keras().path)
    assert f"operations   {found['costs']['flops']:,} FLOPs for a batch of 1" in shown
    assert "peak memory" in shown
    assert "power" in text(capsys, models.saved_model_tf2().path).partition("contents")[2].partition("ops")[0]


@pytest.mark.tensorflow
def test_the_copies_that_keras_stores_are_no_parameters(tf: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    path = models.saved_model_keras().path
    found = report(capsys, path)["graphs"][0]
    loaded = tf.saved_model.load(str(path))
    serving = loaded.signatures["serving_default"]
    assert found["parameters"]["total"] == sum(int(tf.size(v)) for v in serving.variables)
    assert found["parameters"]["trainable"] == sum(int(tf.size(v)) for v in serving.trainable_variables)
    unused = [v for v in found["variables"] if v["used"] is False]
    assert found["parameters"]["unused"] == sum(size(v["shape"]) for v in unused)
    assert "more that no function reads" in text(capsys, path)


def size(shape: list[int]) -> int:
    size = 1
    for dim in shape:
        size *= dim
    return size


def test_a_broken_graph_has_no_costs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    g = graphs.net()
    graphs.node(g, "prob").input[0] = "nowhere"
    assert report(capsys, write(g, tmp_path / "a.pb"))["graphs"][0]["costs"] is None
    assert "FLOPs" not in text(capsys, tmp_path / "a.pb")


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (["x", "nowhere:1"], "node 'y': its input 'nowhere:1' does not exist in the graph"),
        (["x", "y"], "node 'y': the graph has a cycle outside a loop: y -> y"),
        (["x", "x"], None),
    ],
)
def test_a_broken_graph_is_called_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], tf: ModuleType, inputs: list[str], message: str | None
) -> None:
    """What it is said to be, TensorFlow refuses, and nothing else."""
    g = graph_pb2.GraphDef()
    for name, op, sources in (("x", "Placeholder", []), ("y", "AddV2", inputs)):
        node = g.node.add(name=name, op=op, input=sources)
        node.attr["dtype" if op == "Placeholder" else "T"].type = 1  # pyright: ignore[reportAttributeAccessIssue]
    path = write(g, tmp_path / "a.pb")
    assert report(capsys, path)["graphs"][0]["broken"] == message
    theirs = tf.compat.v1.GraphDef.FromString(g.SerializeToString())
    said = text(capsys, path)
    if message is None:
        assert "broken:" not in said and "loads in TensorFlow" in said
        with tf.Graph().as_default():
            tf.import_graph_def(theirs)
        return
    assert f"broken: {message} (see: graphmill validate)" in said and "loads in TensorFlow" not in said
    with tf.Graph().as_default(), pytest.raises(ValueError, match="nowhere" if "nowhere" in message else "cycle"):
        tf.import_graph_def(theirs)


# -- likely outputs --------------------------------------------------------------------------------------


def test_reads_of_variables_bury_no_outputs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    g = graphs.net()
    for number in range(30):
        graphs.add(g, "VarHandleOp", f"v{number}", dtype=F, shape=Shape([2]), container=b"", shared_name=b"")
        graphs.add(g, "ReadVariableOp", f"v{number}/Read", [f"v{number}"], dtype=F)
        graphs.add(g, "Identity", f"v{number}/Read/Identity", [f"v{number}/Read"], T=F)
        graphs.add(g, "Identity", f"v{number}/Identity", [f"v{number}/Read:0"], T=F)
    path = write(g, tmp_path / "a.pb")
    assert [output["name"] for output in report(capsys, path)["graphs"][0]["outputs"]] == ["prob"]
    # what `run` offers is the same list
    assert run(["run", str(path)]) == 2
    assert "likely outputs: prob:0" in capsys.readouterr().err


# -- files of a SavedModel -------------------------------------------------------------------------------


@pytest.mark.tensorflow
def test_missing_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy = tmp_path / "model"
    shutil.copytree(models.saved_model_tf2().path, copy)
    assert report(capsys, copy)["missing"] == []
    shutil.rmtree(copy / "variables")
    (copy / "assets" / "words.txt").unlink()
    assert report(capsys, copy)["missing"] == ["variables/variables.index", "assets/words.txt"]
    assert "missing: the model cannot be loaded without\n  variables/variables.index" in text(capsys, copy)


def test_an_asset_with_a_name_that_no_file_can_have(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = saved_model_pb2.SavedModel(saved_model_schema_version=1)
    model.meta_graphs.add().asset_file_def.add(filename="a" * 5000)
    (tmp_path / "saved_model.pb").write_bytes(model.SerializeToString())
    assert report(capsys, tmp_path)["missing"] == ["assets/" + "a" * 5000]


@pytest.mark.tensorflow
def test_a_fingerprint_is_called_so(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("saved_model_keras", "saved_model_tf2"):
        path = getattr(models, name)().path / "fingerprint.pb"
        assert run(["inspect", str(path)]) == 2
        assert "the fingerprint of a SavedModel" in capsys.readouterr().err


# -- records and events ----------------------------------------------------------------------------------


@pytest.mark.tensorflow
@pytest.mark.parametrize("compression", ["", "GZIP", "ZLIB"])
def test_features_of_examples(
    tf: ModuleType, compression: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def feature(**kinds: Any) -> Any:
        return tf.train.Feature(**kinds)

    path = tmp_path / "a.tfrecord"
    with tf.io.TFRecordWriter(str(path), tf.io.TFRecordOptions(compression_type=compression)) as writer:
        for number in range(3):
            features = {
                "id": feature(int64_list=tf.train.Int64List(value=[number])),
                "x": feature(float_list=tf.train.FloatList(value=[0.5] * (number + 1))),
            }
            if number:
                features["label"] = feature(bytes_list=tf.train.BytesList(value=[b"cat"]))
            writer.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())
    found = report(capsys, path)
    assert (found["kind"], found["records"], found["compression"]) == ("tfrecord", 3, compression or None)
    assert found["features"] == {
        "id": {"type": "int64", "records": 3, "least": 1, "most": 1},
        "x": {"type": "float", "records": 3, "least": 1, "most": 3},
        "label": {"type": "bytes", "records": 2, "least": 1, "most": 1},
    }
    assert "  label  bytes       1  in 2 records\n" in text(capsys, path)


@pytest.mark.tensorflow
def test_a_folder_of_event_files(tf: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for run_number in range(2):
        with tf.summary.create_file_writer(str(tmp_path), filename_suffix=f".{run_number}").as_default():
            tf.summary.scalar("loss", 1.0, step=run_number)
    found = report(capsys, tmp_path)
    assert (found["kind"], found["steps"], found["tags"]["loss"]["values"]) == ("events", [0, 1], 2)


# -- views of a SavedModel -------------------------------------------------------------------------------


def view(capsys: pytest.CaptureFixture[str], path: Path, *args: str) -> Any:
    assert run(["inspect", str(path), *args, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.tensorflow
def test_trees_and_costs_are_of_one_signature(capsys: pytest.CaptureFixture[str]) -> None:
    path = models.saved_model_keras().path
    whole = report(capsys, path)["graphs"][0]
    found = view(capsys, path, "--costs")
    assert found["signature"] == "serving_default"
    assert found["total"]["flops"] == whole["costs"]["flops"]
    assert found["total"]["parameters"] == whole["parameters"]["total"]
    assert view(capsys, path, "--tree")["parameters"] == whole["parameters"]["total"]
    other = models.saved_model_tf2().path
    assert view(capsys, other, "--costs", "--signature", "power")["signature"] == "power"
    assert view(capsys, other, "--tree", "--signature", "vocabulary")["flops"] == 0
    assert run(["inspect", str(other), "--tree", "--signature", "pwer"]) == 2
    assert "there is no signature 'pwer'; did you mean 'power'" in capsys.readouterr().err


@pytest.mark.tensorflow
def test_a_path_within_a_function(capsys: pytest.CaptureFixture[str]) -> None:
    path = models.saved_model_tf2().path
    found = view(capsys, path, "--path", "x", "Softmax")
    assert [found[0]["name"], found[-1]["op"]] == ["x", "Softmax"]
