"""Pruned SavedModels: variables, tables and assets that nothing needs go, and TensorFlow loads the rest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from commands.main import run
from tests import models
from toolkit.formats.bundle.locate import open_tensors
from toolkit.formats.models.model import ModelKind, from_graph, read_model, write_model
from toolkit.graph import dtypes
from toolkit.graph.graph import Graph
from toolkit.graph.shape import Shape

F = dtypes.float32


@pytest.fixture(scope="module")
def two_heads(tf: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SavedModel of 1.x: two signatures with a variable each, one with a table of an asset."""
    folder = tmp_path_factory.mktemp("heads")
    (folder / "words.txt").write_text("one\ntwo\n")
    v1 = tf.compat.v1
    with v1.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, 2], name="x")
        shared = v1.get_variable("shared", initializer=np.float32([[1, 2], [3, 4]]), use_resource=True)
        a = v1.get_variable("a", initializer=np.float32([1, 2]), use_resource=True)
        b = v1.get_variable("b", initializer=np.float32([3, 4]), use_resource=False)
        v1.get_variable("unused", initializer=np.float32([5]), use_resource=True)
        hidden = x @ shared
        table = tf.lookup.StaticVocabularyTable(
            tf.lookup.TextFileInitializer(
                str(folder / "words.txt"), tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64,
                tf.lookup.TextFileIndex.LINE_NUMBER,
            ), 1,
        )  # fmt: skip
        word = v1.placeholder(tf.string, [None], name="word")
        ids = tf.identity(table.lookup(word), name="ids")
        outputs = {"head_a": tf.add(hidden, a, name="out_a"), "head_b": tf.add(hidden, b, name="out_b")}
        predict = v1.saved_model.predict_signature_def
        signatures = {key: predict({"x": x}, {"y": value}) for key, value in outputs.items()}
        signatures["words"] = predict({"word": word}, {"ids": ids})
        session.run([v1.global_variables_initializer(), v1.tables_initializer()])
        builder = v1.saved_model.Builder(str(folder / "model"))
        init = v1.tables_initializer()
        assets = v1.get_collection(v1.GraphKeys.ASSET_FILEPATHS)
        builder.add_meta_graph_and_variables(
            session, ["serve"], signature_def_map=signatures, assets_collection=assets, main_op=init
        )
        builder.save()
    return folder / "model"


def names(folder: Path) -> list[str]:
    with open_tensors(str(folder / "variables/variables")) as source:
        return sorted(source)


@pytest.mark.tensorflow
def test_signatures_keep_their_variables_tables_and_assets(
    tf: Any, two_heads: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert names(two_heads) == ["a", "b", "shared", "unused"]
    x = np.float32([[1, -1]])
    one, both, words = tmp_path / "one", tmp_path / "both", tmp_path / "words"
    report = tmp_path / "r.json"
    assert run(["prune", str(two_heads), "--signature", "head_a", "-o", str(one), "--report", str(report)]) == 0
    assert names(one) == ["a", "shared"] and not (one / "assets").exists()
    assert json.loads(report.read_text())["variables"] == {"removed": ["b", "unused"], "kept": ["shared", "a"]}
    assert "removed 2 variables that nothing needs, with the values in the checkpoint" in capfd.readouterr().err
    loaded = tf.saved_model.load(str(one))
    assert list(loaded.signatures) == ["head_a"]
    np.testing.assert_array_equal(loaded.signatures["head_a"](x=tf.constant(x))["y"], [[-1, 0]])
    options = ["--signature", "head_a", "--signature", "head_b"]
    assert run(["prune", str(two_heads), *options, "-o", str(both)]) == 0
    assert names(both) == ["a", "b", "shared"] and not (both / "assets").exists()
    loaded = tf.saved_model.load(str(both))
    assert sorted(loaded.signatures) == ["head_a", "head_b"]
    np.testing.assert_array_equal(loaded.signatures["head_b"](x=tf.constant(x))["y"], [[1, 2]])
    assert run(["prune", str(two_heads), "--signature", "words", "-o", str(words)]) == 0
    assert (words / "assets/words.txt").is_file() and not (words / "variables").exists()
    loaded = tf.saved_model.load(str(words))
    assert loaded.signatures["words"](word=tf.constant(["two", "one"]))["ids"].numpy().tolist() == [1, 0]
    # and we restore and save it ourselves, again and again
    again = tmp_path / "again"
    assert run(["prune", str(both), "--signature", "head_b", "-o", str(again)]) == 0
    assert names(again) == ["b", "shared"]
    out = tmp_path / "o.npz"
    assert run(["run", str(again), "--signature", "head_b", "--feed", "x=[[1,-1]]", "--out", str(out)]) == 0
    np.testing.assert_array_equal(np.load(out)["y"], [[1, 2]])


@pytest.mark.tensorflow
def test_a_model_of_objects_loses_what_is_not_served(tf: Any, tmp_path: Path) -> None:
    built = models.saved_model_tf2()
    out = tmp_path / "o"
    assert run(["prune", str(built.path), "--signature", "vocabulary", "-o", str(out)]) == 0
    assert names(out) == ["_CHECKPOINTABLE_OBJECT_GRAPH"] and (out / "assets").is_dir()
    loaded = tf.saved_model.load(str(out))
    assert loaded.signatures["vocabulary"]()["text"].numpy() == b"one\ntwo\n"
    assert run(["prune", str(built.path), "--signature", "power", "-o", str(out)]) == 0
    assert not (out / "assets").exists() and len(read_model(out).graph.library) < 6
    arrays = built.arrays()
    loaded = tf.saved_model.load(str(out))
    power = loaded.signatures["power"](n=tf.constant(5), x=tf.constant(arrays["base"]))
    np.testing.assert_array_equal(power["result"], arrays["power"])
    assert run(["prune", str(built.path), "--signature", "serving_default", "-o", str(out)]) == 0
    served = tf.saved_model.load(str(out)).signatures["serving_default"](x=tf.constant(arrays["x"]))
    np.testing.assert_array_equal(served["scores"], arrays["scores"])


@pytest.mark.tensorflow
def test_why_looks_into_functions(capfd: pytest.CaptureFixture[str]) -> None:
    source = str(models.saved_model_tf2().path)
    graph = read_model(source).graph
    function = next(name for name in graph.library if "project" in name)
    inner = graph.library.function(function).node_def[-1].name
    args = ["prune", source, "--signature", "serving_default"]
    assert run([*args, "--why", function, "--why", f"{function}/{inner}"]) == 0
    first, second = capfd.readouterr().out.splitlines()
    assert first.startswith("StatefulPartitionedCall") and first.endswith(f" <- {function}")
    assert second.endswith(f" <- {function}/{inner}") and "signature_wrapper" in second
    assert run([*args, "--why", "nowhere"]) == 2
    assert "--why: there is no node 'nowhere' in the graph or its functions" in capfd.readouterr().err
    other = next(name for name in graph.library if "power" in name)
    assert run([*args, "--why", other]) == 0
    assert capfd.readouterr().out == f"{other} is not needed\n"


@pytest.mark.tensorflow
@pytest.mark.parametrize("signature", ["serving_default", "power", "vocabulary"])
def test_why_says_what_pruning_does(signature: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source = str(models.saved_model_tf2().path)
    args, out = ["prune", source, "--signature", signature], tmp_path / "o"
    assert run([*args, "-q", "-o", str(out)]) == 0
    kept = {node.name for node in read_model(out).graph}
    asked = [node.name for node in read_model(source).graph]
    assert run([*args, *(part for name in asked for part in ("--why", name))]) == 0
    said = {line.removesuffix(" is not needed"): line for line in capfd.readouterr().out.splitlines()}
    without = {name for name in asked if said.get(name, "").endswith(" is not needed")}
    # a saver's operations that are made anew have names of their own
    assert kept & without <= {name for name in kept if name.startswith("save")}
    assert {*asked} - without - kept == set()


def test_keep_devices_and_a_signature(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    graph = Graph()
    x = graph.add("Placeholder", "x", attrs={"dtype": F, "shape": Shape([2])})
    h = graph.add("Tanh", "tower/h", [x], attrs={"T": F}, device="/device:GPU:0")
    graph.add("Neg", "y", [h], attrs={"T": F})
    graph.add("Abs", "z", [h], attrs={"T": F})
    source, out = str(tmp_path / "m.pb"), tmp_path / "o"
    write_model(from_graph(graph), source)
    assert run(["prune", source, "--keep", "tower/*", "--clear-devices", "-o", str(tmp_path / "k.pb")]) == 0
    kept = read_model(tmp_path / "k.pb").graph
    assert [(node.name, node.device) for node in kept] == [("x", ""), ("tower/h", "")]
    assert "cleared the device of 1 node" in capfd.readouterr().err
    assert run(["prune", source, "--keep", "re:^[yz]$", "-o", str(tmp_path / "k.pb")]) == 0
    assert len(read_model(tmp_path / "k.pb").graph) == 4
    assert run(["prune", source, "--fetch", "y", "--feed", "x", "--as", "savedmodel", "-o", str(out)]) == 0
    model = read_model(out)
    assert model.kind is ModelKind.SAVED_MODEL
    assert model.meta.signatures["serving_default"].output_tensors() == {"y": "y:0"}
    assert run(["run", str(out), "--feed", "x=[0,1]"]) == 0
    assert run(["prune", source, "--keep", "towr/*", "-o", str(tmp_path / "n.pb")]) == 2
    assert "--keep: no node matches 'towr/*'" in capfd.readouterr().err


@pytest.mark.tensorflow
def test_lost_initialisers_are_told(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    built = models.lenet_ref()
    out = str(tmp_path / "o.meta")
    assert run(["prune", str(built.path), "--target", built.info["train"], "-o", out]) == 0
    said = capfd.readouterr().err
    assert "variables without what gives them values: --keep-lifecycle keeps initialisers and saver" in said
    assert run(["prune", str(built.path), "--target", built.info["train"], "--keep-lifecycle", "-o", out]) == 0
    assert "without what gives" not in capfd.readouterr().err
