"""tf.saved_model: TensorFlow loads what is written, its messages are TensorFlow's, mistakes are told."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.tf1 import node_oracle
from toolkit import tensorflow as ours
from toolkit.errors import GraphmillError

pytestmark = pytest.mark.tensorflow


def _write(tf: Any, folder: Path, vocabulary: Path, as_text: bool = False) -> float:
    """A model with a partitioned and a plain variable, one from an asset; two graphs. Returns what it computes."""
    tf.reset_default_graph()
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.string, [None], name="x")
        asset = tf.constant(str(vocabulary), name="path")
        tf.add_to_collection(tf.GraphKeys.ASSET_FILEPATHS, asset)
        words = tf.get_variable("words", initializer="", collections=[tf.GraphKeys.LOCAL_VARIABLES], trainable=False)
        read = tf.assign(words, tf.read_file(asset))
        numbers = tf.cast(tf.strings.length(words) + tf.strings.length(x), tf.int32) % 4
        weights = tf.get_variable("w", [4, 3], partitioner=tf.fixed_size_partitioner(2))
        shift = tf.get_variable("b", [3], use_resource=True)
        y = tf.add(tf.gather(tf.convert_to_tensor(weights), numbers), shift, name="y")
        session.run([tf.global_variables_initializer(), read])
        builder = tf.saved_model.Builder(str(folder))
        info = tf.saved_model.build_tensor_info
        signature = tf.saved_model.build_signature_def({"x": info(x)}, {"y": info(y)}, "tensorflow/serving/predict")
        builder.add_meta_graph_and_variables(
            session, ["serve"], {"serving_default": signature}, tf.get_collection(tf.GraphKeys.ASSET_FILEPATHS),
            main_op=tf.group(read), strip_default_attrs=True, clear_devices=True,
        )  # fmt: skip
        builder.add_meta_graph(["train", "other"])
        assert builder.save(as_text).decode().endswith("pbtxt" if as_text else "pb")
        return float(session.run(y, {x: ["two", "three"]})[0, 1])


def _load(tf: Any, folder: Path, **options: Any) -> float:
    tf.reset_default_graph()
    with tf.Graph().as_default(), tf.Session() as session:
        signature = tf.saved_model.loader.load(session, ["serve"], str(folder), **options).signature_def
        scope = options["import_scope"] + "/" if options else ""
        names = signature["serving_default"]
        y = session.run(scope + names.outputs["y"].name, {scope + names.inputs["x"].name: ["two", "three"]})
        return float(y[0, 1])


@pytest.fixture
def vocabulary(tmp_path: Path) -> Path:
    path = tmp_path / "words.txt"
    path.write_text("zero\none\ntwo\n")
    return path


@pytest.mark.parametrize("as_text", [False, True])
def test_what_is_written_is_loaded(tmp_path: Path, vocabulary: Path, as_text: bool) -> None:
    value = _write(ours, tmp_path / "here", vocabulary, as_text)
    vocabulary.rename(tmp_path / "elsewhere.txt")  # the model has its own copy
    assert _load(ours, tmp_path / "here") == value
    assert _load(ours, tmp_path / "here", import_scope="scope") == value
    with node_oracle.semantics():
        assert _load(node_oracle.theirs(), tmp_path / "here") == pytest.approx(value, rel=0, abs=0)
    listed = subprocess.run(
        [sys.executable, "-m", "commands.main", "run", str(tmp_path / "here"), "--signature", "serving_default",
         "--feed", 'x=["two", "three"]'], capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert listed.returncode == 0, listed.stderr


def test_what_tensorflow_writes_is_loaded(tmp_path: Path, vocabulary: Path) -> None:
    with node_oracle.semantics():
        value = _write(node_oracle.theirs(), tmp_path / "theirs", vocabulary)
    assert _load(ours, tmp_path / "theirs") == value


def test_assets_of_one_name_are_kept_apart(tmp_path: Path) -> None:
    for folder, text in (("a", "one"), ("b", "two"), ("c", "two")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "words.txt").write_text(text)
    with ours.Graph().as_default(), ours.Session() as session:
        assets = [ours.constant(str(tmp_path / folder / "words.txt")) for folder in ("a", "b", "c")]
        builder = ours.saved_model.Builder(str(tmp_path / "model"))
        builder.add_meta_graph_and_variables(session, ["serve"], assets_collection=assets)
        builder.save()
    files = sorted(path.name for path in (tmp_path / "model" / "assets").iterdir())
    assert files == ["words.txt", "words.txt_1", "words.txt_2"]


_SIGNATURES = [
    "sm.predict_signature_def({'a': x, 'b': s}, {'c': y})",
    "sm.classification_signature_def(s, s, x)",
    "sm.classification_signature_def(s, None, x)",
    "sm.regression_signature_def(s, y)",
    "sm.build_signature_def(None, {'v': sm.build_tensor_info(v)})",
    "sm.build_signature_def({'x': sm.build_tensor_info(x)}, None, 'm', {'x': tf.constant([2.0])})",
    "sm.build_signature_def({'s': sm.build_tensor_info(tf.SparseTensor([[0, 1]], [1.0], [2, 3]))}, None, 'm')",
]
_BAD = {
    "sm.predict_signature_def({}, {'a': x})": "there are none",
    "sm.predict_signature_def({'a': x}, None)": "there are none",
    "sm.classification_signature_def(s, None, None)": "both are None",
    "sm.classification_signature_def(x, s, None)": "examples",
    "sm.classification_signature_def(s, x, None)": "classes",
    "sm.classification_signature_def(s, None, s)": "scores",
    "sm.regression_signature_def(s, s)": "predictions",
    "sm.regression_signature_def(None, y)": "examples",
    "sm.build_signature_def(None, None, 'm', {'x': y})": "must be a constant",
}  # fmt: skip


def _evaluated(tf: Any, code: str) -> Any:
    with tf.Graph().as_default():
        names = {
            "tf": tf, "sm": tf.saved_model, "x": tf.placeholder(tf.float32, [None, 2], name="x"),
            "s": tf.placeholder(tf.string, [None], name="s"), "v": tf.get_variable("v", [3]),
            "y": tf.placeholder(tf.float32, name="y"),
        }  # fmt: skip
        found = eval(code, names)
        return found, tf.saved_model.is_valid_signature(found)


@pytest.mark.parametrize("code", _SIGNATURES)
def test_signatures_are_tensorflows(code: str) -> None:
    with node_oracle.semantics():
        wanted, valid = _evaluated(node_oracle.theirs(), code)
    got, here = _evaluated(ours, code)
    assert str(got) == str(wanted)
    assert here == valid


@pytest.mark.parametrize("code", _BAD)
def test_signatures_that_cannot_be_are_refused(code: str) -> None:
    with pytest.raises(ValueError, match=_BAD[code]):
        _evaluated(ours, code)


def test_tensors_are_found_by_their_messages() -> None:
    with ours.Graph().as_default():
        sparse = ours.sparse_placeholder(ours.float32)
        info = ours.saved_model.build_tensor_info
        assert ours.saved_model.get_tensor_from_tensor_info(info(sparse)).indices is sparse.indices
        x = ours.placeholder(ours.float32, name="x")
        assert ours.saved_model.get_tensor_from_tensor_info(info(x)) is x
        with pytest.raises(ValueError, match="encoding"):
            ours.saved_model.get_tensor_from_tensor_info(ours.saved_model.build_signature_def().inputs["none"])


def test_methods_are_replaced(tmp_path: Path, vocabulary: Path) -> None:
    folder = tmp_path / "model"
    _write(ours, folder, vocabulary)
    assert ours.saved_model.contains_saved_model(str(folder))
    updater = ours.saved_model.signature_def_utils.MethodNameUpdater(str(folder))
    updater.replace_method_name("serving_default", "tensorflow/serving/regress", tags="serve")
    updater.save()
    loader: Any = importlib.import_module("tensorflow.python.saved_model.loader_impl")
    model = loader.parse_saved_model(str(folder))
    assert model.meta_graphs[0].signature_def["serving_default"].method_name == "tensorflow/serving/regress"
    with pytest.raises(ValueError, match="no signature 'absent'; there are: serving_default"):
        updater.replace_method_name("absent", "m", tags=["serve"])
    with pytest.raises(ValueError, match="no graph has the tags gpu"):
        updater.replace_method_name("serving_default", "m", tags=["gpu"])
    with pytest.raises(ValueError, match="needed"):
        updater.replace_method_name("", "m")


def test_mistakes_of_builders_and_loaders_are_told(tmp_path: Path, vocabulary: Path) -> None:
    tf = ours
    folder = tmp_path / "model"
    _write(tf, folder, vocabulary)
    with pytest.raises(AssertionError, match="is not empty"):
        tf.saved_model.Builder(str(folder))
    with tf.Graph().as_default(), tf.Session() as session:
        with pytest.raises(RuntimeError, match=r"no graph has the tags gpu; there are: serve; other,train"):
            tf.saved_model.load(session, ["gpu"], str(folder))
        with pytest.raises(OSError, match="there is no SavedModel in the folder"):
            tf.saved_model.load(session, ["serve"], str(tmp_path / "absent"))
        builder = tf.saved_model.Builder(str(tmp_path / "new"))
        with pytest.raises(AssertionError, match="not saved yet"):
            builder.add_meta_graph(["serve"])
        with pytest.raises(KeyError, match="reserved"):
            key = "__saved_model_init_op"
            builder.add_meta_graph_and_variables(session, ["t"], {key: tf.saved_model.build_signature_def()})
        nameless = tf.saved_model.build_signature_def({"x": tf.saved_model.build_tensor_info(tf.constant(1))})
        nameless.inputs["x"].ClearField("name")
        with pytest.raises(AssertionError, match="names no tensor for 'x'"):
            builder.add_meta_graph_and_variables(session, ["t"], {"k": nameless})
        with pytest.raises(TypeError, match="must be an Operation"):
            builder.add_meta_graph_and_variables(session, ["t"], main_op=tf.constant(1))
        with pytest.raises(TypeError, match="constant of strings"):
            builder.add_meta_graph_and_variables(session, ["t"], assets_collection=[tf.constant(1)])
        builder.add_meta_graph_and_variables(session, ["t"])
        with pytest.raises(AssertionError, match="saved already"):
            builder.add_meta_graph_and_variables(session, ["t"])
    (folder / "saved_model.pb").write_bytes(b"\xff\xff\xff")
    with tf.Graph().as_default(), tf.Session() as session, pytest.raises((OSError, GraphmillError)):
        tf.saved_model.load(session, ["serve"], str(folder))
