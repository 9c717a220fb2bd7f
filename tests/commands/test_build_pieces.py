"""`graphmill build` from pieces: SavedModels that both of TensorFlow's loaders read, and that may be served."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from commands.main import run
from tests import models
from tests.tolerance import assert_within, gamma
from toolkit.formats.bundle.locate import open_tensors
from toolkit.formats.models.model import ModelKind, read_model

SPEC = """
inputs: {x: {shape: [null, 3]}}
nodes:
  - {layer: dense, name: fc, units: 2}
signatures:
  serving_default: {inputs: {x: x}, outputs: {y: fc}}
"""
PROGRAM = """
import numpy as np
import tensorflow as tf

tf.reset_default_graph()
x = tf.placeholder(tf.int32, [None], name="x")
w = tf.get_variable("w", initializer=np.float32([1, 2, 3]))
double = tf.get_variable("double", initializer=2 * w.initialized_value())
y = tf.add(tf.gather(w, x), tf.gather(double, x), name="y")
tf.add_to_collection("asset_filepaths", tf.constant("words.txt", name="path"))
"""


def check_served(folder: Path, key: str = "serving_default") -> None:
    """What TensorFlow Serving asks of a SavedModel."""
    from schemas.saved_model_pb2 import SavedModel

    saved = SavedModel.FromString((folder / "saved_model.pb").read_bytes())
    meta = next(each for each in saved.meta_graphs if set(each.meta_info_def.tags) == {"serve"})
    signature = meta.signature_def[key]
    assert signature.method_name == "tensorflow/serving/predict" and signature.outputs
    nodes = {node.name for node in meta.graph_def.node}
    for info in (*signature.inputs.values(), *signature.outputs.values()):
        assert info.name.partition(":")[0] in nodes and info.dtype
    if any(node.op in ("VarHandleOp", "VariableV2") for node in meta.graph_def.node):
        assert meta.saver_def.restore_op_name in nodes and (folder / "variables/variables.index").is_file()
    for asset in meta.asset_file_def:
        assert (folder / "assets" / asset.filename).is_file()
        assert asset.tensor_info.name.partition(":")[0] in nodes


def computed(tf: Any, folder: Path, feeds: Mapping[str, Any], key: str = "serving_default") -> dict[str, Any]:
    """What a signature gives, by TensorFlow 2's loader, which must agree with 1's."""
    loaded = tf.saved_model.load(str(folder))
    new = {label: value.numpy() for label, value in loaded.signatures[key](**_constants(tf, feeds)).items()}
    v1 = tf.compat.v1
    with v1.Graph().as_default(), v1.Session() as session:
        signature = v1.saved_model.load(session, ["serve"], str(folder)).signature_def[key]
        wanted = {label: info.name for label, info in signature.outputs.items()}
        old = session.run(wanted, {signature.inputs[label].name: value for label, value in feeds.items()})
    for label, value in new.items():
        np.testing.assert_array_equal(value, old[label])
    return new


def _constants(tf: Any, feeds: Mapping[str, Any]) -> dict[str, Any]:
    return {label: tf.constant(value) for label, value in feeds.items()}


def trained(tf: Any, folder: Path, size: int, *, resource: bool, parts: int = 1) -> tuple[str, str]:
    """A training MetaGraph, and the checkpoint of its variables: y = x @ w + b."""
    v1 = tf.compat.v1
    folder.mkdir()
    with v1.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, size], name="x")
        initial = np.arange(size * 2, dtype=np.float32).reshape(size, 2)
        split = v1.fixed_size_partitioner(parts) if parts > 1 else None
        start = v1.constant_initializer(initial) if parts == 1 else v1.ones_initializer()
        w = v1.get_variable("w", [size, 2], initializer=start, use_resource=resource, partitioner=split)
        b = v1.get_variable("b", initializer=np.float32([1, 2]), use_resource=resource)
        y = tf.add(x @ tf.convert_to_tensor(w), b, name="y")
        v1.train.AdamOptimizer(0.1).minimize(tf.reduce_sum(y), name="train")
        session.run(v1.global_variables_initializer())
        session.run("train", {x: np.ones([1, size])})
        prefix = v1.train.Saver().save(session, str(folder / "m"))
    return f"{prefix}.meta", prefix


@pytest.mark.tensorflow
@pytest.mark.parametrize(("resource", "parts"), [(True, 1), (False, 1), (True, 3)])
def test_a_graph_and_its_checkpoint(tf: Any, tmp_path: Path, resource: bool, parts: int) -> None:
    graph, prefix = trained(tf, tmp_path / "t", 3, resource=resource, parts=parts)
    out = tmp_path / "served"
    options = ["--add-signature", "serving_default=image:x->out:y", "-o", str(out)]
    assert run(["build", "--from-checkpoint", graph, prefix, *options]) == 0
    check_served(out)
    x = np.float32([[1, 2, 3], [-1, 0, 1]])
    with open_tensors(prefix) as source:
        w, b = source.read("w").astype(np.float64), source.read("b").astype(np.float64)
        names = sorted(source)
    # three products, two sums and the bias
    allowed = gamma(4) * (np.abs(x) @ np.abs(w) + np.abs(b))
    assert_within(computed(tf, out, {"image": x})["out"], x @ w + b, allowed)
    with open_tensors(str(out / "variables/variables")) as source:
        assert sorted(source) == names
    # through a pipe and again
    again = tmp_path / "again"
    archive = tmp_path / "served.tar"
    assert (
        run(
            [
                "build",
                "--from-savedmodel",
                str(out),
                "--rename-signature",
                "serving_default=f",
                "-o",
                str(archive),
                "--as",
                "savedmodel",
            ]
        )
        == 0
    )
    assert run(["build", "--from-savedmodel", str(archive), "--default-signature", "f", "-o", str(again)]) == 0
    check_served(again)


@pytest.mark.tensorflow
def test_a_graph_whose_variables_the_checkpoint_lacks(
    tf: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    graph, _ = trained(tf, tmp_path / "a", 3, resource=True)
    v1 = tf.compat.v1
    with v1.Graph().as_default(), v1.Session() as session:
        v1.get_variable("w", initializer=np.ones([3, 2], np.float32))
        session.run(v1.global_variables_initializer())
        other = v1.train.Saver().save(session, str(tmp_path / "other"))
    capfd.readouterr()
    command = ["build", "--from-checkpoint", graph, other, "-o", str(tmp_path / "o"), "--add-signature"]
    assert run([*command, "s=x->y"]) == 2
    told = capfd.readouterr().err
    assert "the signature 's' needs a variable that no checkpoint has a value for: b" in told.replace(
        "1 variable", "a variable"
    )
    assert not (tmp_path / "o").exists()


@pytest.mark.tensorflow
@pytest.mark.parametrize("kind", ["v1", "objects"])
def test_models_with_tables_are_merged(tf: Any, tmp_path: Path, kind: str) -> None:
    built = models.saved_model_tables(kind)
    arrays = built.arrays()
    out = tmp_path / "both"
    assert run(["build", "--merge", f"{built.path}=one", f"{built.path}=two", "-o", str(out)]) == 0
    check_served(out)
    assert sorted(path.name for path in (out / "assets").iterdir()) == ["words.txt", "words_1.txt"]
    for key in ("serving_default", "two_serving_default"):
        found = computed(tf, out, {"x": arrays["x"], "w": arrays["w"]}, key)
        np.testing.assert_array_equal(found["y"], arrays["y"])
        np.testing.assert_array_equal(found["ids"], arrays["ids"])


@pytest.mark.tensorflow
def test_resources_of_merged_models_stay_apart(tf: Any, tmp_path: Path) -> None:
    """Both have a variable of the same shared name, with other values."""
    pieces: list[str] = []
    for name, value in (("p", 2.0), ("q", 5.0)):

        class Module(tf.Module):
            def __init__(self, value: float) -> None:
                super().__init__()
                self.w = tf.Variable(value, name="w")

            @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
            def serve(self, x: Any) -> Any:
                return {"y": x * self.w}

        module = Module(value)
        tf.saved_model.save(module, str(tmp_path / name), signatures=module.serve)
        pieces.append(str(tmp_path / name))
    out = tmp_path / "both"
    assert run(["build", "--merge", *pieces, "-o", str(out)]) == 0
    x = np.float32([1, 3])
    np.testing.assert_array_equal(computed(tf, out, {"x": x})["y"], 2 * x)
    np.testing.assert_array_equal(computed(tf, out, {"x": x}, "q_serving_default")["y"], 5 * x)


@pytest.mark.tensorflow
def test_connected_models_are_one(tf: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    served: list[str] = []
    for name, size, resource in (("first", 3, True), ("second", 2, False)):
        graph, prefix = trained(tf, tmp_path / f"{name}_trained", size, resource=resource)
        served.append(str(tmp_path / name))
        options = ["--add-signature", "serving_default=x->y", "-o", served[-1]]
        assert run(["build", "--from-checkpoint", graph, prefix, *options]) == 0
    out = tmp_path / "both"
    command = ["build", "--merge", *served, "--connect", "first/y:0=second/x:0", "-o", str(out)]
    capfd.readouterr()
    assert run(command) == 0
    assert "the one before is called 'first_serving_default'" in capfd.readouterr().err
    check_served(out)
    x = np.float32([[1, 2, 3]])
    between = computed(tf, out, {"x": x}, "first_serving_default")["y"]
    alone = computed(tf, Path(served[1]), {"x": between})["y"]
    np.testing.assert_array_equal(computed(tf, out, {"x": x})["y"], alone)
    assert run([*command[:-1], str(tmp_path / "none"), "--connect", "first/z=second/y"]) == 2
    assert "graphmill: error: --connect: there is no node 'first/z'" in capfd.readouterr().err
    assert not (tmp_path / "none").exists()


@pytest.mark.tensorflow
def test_a_spec_has_its_first_values(tf: Any, tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(SPEC)
    out = tmp_path / "o"
    assert run(["build", str(tmp_path / "s.yaml"), "--as", "savedmodel", "-o", str(out)]) == 0
    check_served(out)
    x = np.float32([[1, 0, 0], [0, 1, 0], [0, 0, 1]])
    with open_tensors(str(out / "variables/variables")) as source:
        wanted = source.read("fc/kernel") + source.read("fc/bias")
    assert np.any(wanted != 0)
    np.testing.assert_array_equal(computed(tf, out, {"x": x})["y"], wanted)


@pytest.mark.tensorflow
def test_a_program_brings_values_and_assets(tf: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("words.txt").write_text("a\nb\nc\n")
    Path("p.py").write_text(PROGRAM)
    signature = ["--add-signature", "serving_default=x->y"]
    assert run(["build", "p.py", "--until", "exit", "--as", "savedmodel", *signature, "-o", "o"]) == 0
    check_served(Path("o"))
    assert (Path("o") / "assets/words.txt").read_text() == "a\nb\nc\n"
    np.testing.assert_array_equal(computed(tf, Path("o"), {"x": np.int32([2, 0])})["y"], np.float32([9, 3]))


def test_what_nothing_initialises_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.yaml").write_text("nodes: [{op: VarHandleOp, name: v, attrs: {dtype: float32, shape: [2]}}]")
    assert run(["build", "s.yaml", "--as", "savedmodel", "-o", "o"]) == 2
    assert "its variables have no values, and nothing initialises them" in capfd.readouterr().err
    assert not Path("o").exists()


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["--from-savedmodel", "m.pb"], "--from-savedmodel: 'm.pb' is a graphdef; a graph and its"),
        (["--from-savedmodel", "m.pb", "--merge", "m.pb"], "give one of --from-savedmodel, --from-checkpoint and"),
        (["--from-checkpoint", "m.pb", "none"], "--from-checkpoint: none: there is no checkpoint here"),
        (["--merge", "m.pb"], "--merge: give two models or more"),
        (["--merge", "m.pb", "m.pb"], "--merge: two models would be in the scope 'm'; name it: FILE=SCOPE"),
        (["--merge", "m.pb=a", "none.pb"], "--merge: none.pb: there is no such file"),
        (["--merge", "m.pb=a", "m.pb=b", "--set", "x=1"], "--set is for specs and programs"),
        (["--merge", "m.pb=a", "m.pb=b", "--connect", "a/y=b/z"], "--connect: there is no node 'b/z' in the graph"),
        (["--merge", "m.pb=a", "m.pb=b", "--remove-signature", "s"], "--remove-signature: there is no signature 's'"),
    ],
)  # fmt: skip
def test_mistakes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], args: list[str], told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.yaml").write_text("inputs: {x: {shape: [2]}}\nnodes: [{op: Neg, name: y, inputs: [x]}]")
    assert run(["build", "s.yaml", "--as", "graphdef", "-o", "m.pb"]) == 0
    capfd.readouterr()
    assert run(["build", *args, "-o", "o"]) == 2
    error = capfd.readouterr().err
    assert error.startswith(f"graphmill: error: {told}") and error.count("\n") == 1, error
    assert not Path("o").exists()


def test_graphs_are_merged_as_graphs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.yaml").write_text("inputs: {x: {shape: [2]}}\nnodes: [{op: Neg, name: y, inputs: [x]}]")
    for name in ("a.pb", "b.pb"):
        assert run(["build", "s.yaml", "--as", "graphdef", "-o", name]) == 0
    assert run(["build", "--merge", "a.pb", "b.pb", "--connect", "a/y:0=b/x:0", "-o", "both.pb"]) == 0
    model = read_model("both.pb")
    assert model.kind is ModelKind.GRAPH_DEF
    assert [node.name for node in model.graph] == ["a/x", "a/y", "b/y"]
    assert model.graph.node("b/y").input_refs() == ["a/y"]


def test_assets_of_a_strange_graph_are_not_copied_from_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A graph that names any file as its asset does not get it into a model that is passed on."""
    (tmp_path / "in").mkdir()
    monkeypatch.chdir(tmp_path / "in")
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    Path("p.py").write_text(
        "import tensorflow as tf\ntf.reset_default_graph()\n"
        f"tf.add_to_collection('asset_filepaths', tf.constant({str(secret)!r}, name='path'))\n"
        "tf.placeholder(tf.float32, [], name='x')\n"
    )
    assert run(["build", "p.py", "--until", "exit", "-o", "m.meta"]) == 0
    command = ["build", "--merge", "m.meta=a", "m.meta=b", "-o", "o", "--as", "savedmodel"]
    assert run(command) == 2
    assert "secret.txt" in capfd.readouterr().err and not Path("o").exists()
    assert run([*command, "--allow", f"read={secret}"]) == 0
    assert (Path("o") / "assets" / "secret.txt").is_file()
