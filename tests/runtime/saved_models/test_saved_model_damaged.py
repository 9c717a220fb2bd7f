"""SavedModels that TensorFlow's loaders refuse for reasons that are not in the graph, and those that are damaged."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from commands.main import run
from tests import tolerance
from tests.runtime.saved_models.saved_model_case import (
    answer_of_command,
    answer_of_session,
    answer_of_v1,
    check_saved_model,
)
from toolkit.formats import bundle
from toolkit.formats.bundle.writer import BundleWriter

pytestmark = pytest.mark.tensorflow
X = np.arange(8, dtype=np.float32).reshape(2, 4)


# -- refused ---------------------------------------------------------------------------------------------


def test_model_with_an_optimizer_object(tf: ModuleType, tmp_path: Path) -> None:
    """Its slots are variables of a Python class that the loader of TensorFlow 2 does not have."""

    class Trainer(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = tf.Variable(np.ones((4, 2), np.float32))
            self.optimizer = tf.compat.v1.train.AdamOptimizer(0.1)

        @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32, name="x")])
        def serve(self, x: Any) -> dict[str, Any]:
            return {"y": x @ self.weight}

        @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32, name="x")])
        def train(self, x: Any) -> dict[str, Any]:
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((x @ self.weight) ** 2)
            self.optimizer.apply_gradients([(tape.gradient(loss, self.weight), self.weight)])
            return {"loss": loss, "after": tf.reduce_mean((x @ self.weight) ** 2)}

    module = Trainer()
    module.train(tf.constant(X))
    folder = tmp_path / "model"
    tf.saved_model.save(module, str(folder), signatures={"serving_default": module.serve, "train": module.train})
    with pytest.raises(AttributeError, match="add_slot"):
        tf.saved_model.load(str(folder))
    for key in ("serving_default", "train"):
        wanted = check_saved_model(tf, folder, {"x": X}, key, by_v1=True)
    assert wanted["after"] < wanted["loss"]


def test_model_of_a_custom_class(tf: ModuleType, tmp_path: Path) -> None:
    """Objects that were saved and restored by code of their own, which is not there any more."""
    from tensorflow.python.saved_model import registration

    class Parts(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.value = tf.Variable([1.0, 2.0, 3.0])

    def save(trackables: dict[str, Any], file_prefix: Any) -> Any:
        for name, part in trackables.items():
            tf.raw_ops.SaveV2(
                prefix=file_prefix, tensor_names=[f"{name}/own"], shape_and_slices=[""], tensors=[part.value * 2.0]
            )
        return file_prefix

    def restore(trackables: dict[str, Any], merged_prefix: Any) -> None:
        for name, part in trackables.items():
            (doubled,) = tf.raw_ops.RestoreV2(
                prefix=merged_prefix, tensor_names=[f"{name}/own"], shape_and_slices=[""], dtypes=[tf.float32]
            )
            part.value.assign(doubled / 2.0)

    registration.register_checkpoint_saver(
        name=f"Own{tmp_path.name}", package="graphmill", predicate=lambda part: isinstance(part, Parts),
        save_fn=save, restore_fn=restore,
    )  # fmt: skip
    module = tf.Module()
    module.parts = Parts()
    module.parts.value.assign([4.0, 5.0, 6.0])
    spec = tf.TensorSpec([], tf.float32, name="x")
    module.serve = tf.function(lambda x: {"y": x * module.parts.value}, input_signature=[spec])
    folder = tmp_path / "model"
    tf.saved_model.save(module, str(folder), signatures=module.serve)
    for answer in (answer_of_session, answer_of_command):
        assert answer(folder, {"x": np.float32(2)})["y"].tolist() == [8.0, 10.0, 12.0]


def test_object_graph_that_makes_no_sense(tf: ModuleType, tmp_path: Path) -> None:
    """TensorFlow 2 builds Python objects out of it; running a signature takes none of them."""
    from tensorflow.core.protobuf import saved_model_pb2

    folder = _plain_model(tf, tmp_path)
    path = folder / "saved_model.pb"
    message = saved_model_pb2.SavedModel.FromString(path.read_bytes())
    nodes = message.meta_graphs[0].object_graph_def.nodes
    nodes[0].children.add(node_id=len(nodes) + 7, local_name="nobody")
    path.write_bytes(message.SerializeToString())
    with pytest.raises((IndexError, KeyError, ValueError)):
        tf.saved_model.load(str(folder))
    check_saved_model(tf, folder, {"x": X}, by_v1=True)


def test_folder_that_keras_does_not_open(tf: ModuleType, tmp_path: Path) -> None:
    import keras

    class Scale(keras.layers.Layer):
        def build(self, input_shape: Any) -> None:
            self.scale = self.add_weight(shape=(4,), initializer="random_normal")

        def call(self, x: Any) -> Any:
            return x * self.scale

    network = keras.Sequential([keras.layers.Input((4,), name="x"), Scale(), keras.layers.Dense(2)])
    network.compile("adam", "mse")
    network.fit(X, np.ones((2, 2)), verbose=0)
    folder = tmp_path / "model"
    tf.saved_model.save(network, str(folder))
    with pytest.raises(ValueError, match="File format not supported"):
        keras.models.load_model(str(folder))
    (name,) = tf.saved_model.load(str(folder)).signatures["serving_default"].structured_input_signature[1]
    check_saved_model(tf, folder, {name: X})


def test_python_functions_are_not_in_the_file(
    tf: ModuleType, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    def serve(x: Any) -> dict[str, Any]:
        return {"y": tf.py_function(lambda value: value * 2, [x], tf.float32), "z": x * 2}

    module = tf.Module()
    module.serve = tf.function(serve, input_signature=[tf.TensorSpec([2], tf.float32, name="x")])
    folder = tmp_path / "model"
    tf.saved_model.save(module, str(folder), signatures=module.serve)
    reason = "there is no CPU kernel for EagerPyFunc: it calls a Python function of the program"
    assert run(["run", str(folder), "--feed", "x=[1,2]"]) == 2
    told = capfd.readouterr().err
    assert "node 'EagerPyFunc' of function" in told and "not allowed; no option would make it run" in told
    assert reason in told and "--allow" not in told
    assert run(["run", str(folder), "--feed", "x=[1,2]", "--trust"]) == 3
    assert f"node 'EagerPyFunc': {reason}" in capfd.readouterr().err


# -- damaged ---------------------------------------------------------------------------------------------


def _plain_model(tf: ModuleType, folder: Path) -> Path:
    module = tf.Module()
    module.weight = tf.Variable(np.arange(12, dtype=np.float32).reshape(4, 3), name="weight")
    module.bias = tf.Variable(np.ones(3, np.float32), name="bias")
    spec = tf.TensorSpec([None, 4], tf.float32, name="x")
    module.serve = tf.function(lambda x: {"y": x @ module.weight + module.bias}, input_signature=[spec])
    tf.saved_model.save(module, str(folder / "model"), signatures=module.serve)
    return folder / "model"


def _old_model(tf: ModuleType, folder: Path) -> Path:
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, 4], name="x")
        weight = v1.get_variable("weight", [4, 3], use_resource=False)
        bias = v1.get_variable("bias", [3], use_resource=True)
        session.run(v1.global_variables_initializer())
        v1.saved_model.simple_save(session, str(folder / "model"), {"x": x}, {"y": tf.matmul(x, weight) + bias})
    return folder / "model"


def _data(folder: Path) -> Path:
    (path,) = folder.glob("variables/*.data-*")
    return path


def _cut(path: Path, size: int) -> None:
    path.write_bytes(path.read_bytes()[:size])


def _flip(path: Path, position: int) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)


def _rewrite(folder: Path, change: Callable[[str, Any], Any]) -> None:
    """Write the checkpoint again with other values; None leaves a tensor out."""
    prefix = folder / "variables" / "variables"
    with bundle.open_checkpoint(prefix) as reader:
        values = {name: reader.read(name) for name in reader.entries}
    with BundleWriter(prefix) as writer:
        for name, value in sorted(values.items()):
            changed = change(name, value)
            if changed is not None:
                writer.add(name, changed)


DAMAGES: dict[str, tuple[Callable[[Path], object], int, str]] = {
    "no-variables": (lambda f: shutil.rmtree(f / "variables"), 2, "variables.index: is missing, and the graph "),
    "no-index": (lambda f: (f / "variables" / "variables.index").unlink(), 2, "variables.index: is missing"),
    "no-data": (lambda f: _data(f).unlink(), 3, "the data file with tensor"),
    "cut-data": (lambda f: _cut(_data(f), 20), 3, "weight{}' is at offset"),
    "flipped-data": (lambda f: _flip(_data(f), 20), 3, "weight{}' at offset"),
    "flipped-index": (lambda f: _flip(f / "variables" / "variables.index", 25), 3, "the block at offset 0 has CRC"),
    "cut-index": (lambda f: _cut(f / "variables" / "variables.index", 90), 3, "variables.index: node"),
    "no-weight": (lambda f: _rewrite(f, lambda n, v: None if "weight" in n else v), 3, "no tensor 'weight{}' in"),
    "other-shape": (lambda f: _rewrite(f, lambda n, v: v.T.copy() if "weight" in n else v), 3, "variable 'weight'"),
    "cut-model": (lambda f: _cut(f / "saved_model.pb", 900), 2, "the SavedModel is truncated or damaged"),
    "no-model": (lambda f: (f / "saved_model.pb").unlink(), 2, "saved_model.pb"),
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("make", [_plain_model, _old_model], ids=["v2", "v1"])
def test_damage_is_named(
    tf: ModuleType, tmp_path: Path, make: Any, damage: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """One line with the tensor or file at fault, and nothing printed as a result."""
    folder = make(tf, tmp_path)
    spoil, code, message = DAMAGES[damage]
    spoil(folder)
    capfd.readouterr()
    assert run(["run", str(folder), "--feed", "x=[[1,2,3,4]]"]) == code
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith("graphmill: error: ") and err.count("\n") == 1
    assert message.format("/.ATTRIBUTES/VARIABLE_VALUE" if make is _plain_model else "") in err
    with pytest.raises(Exception):  # noqa: B017 - TensorFlow's is of every kind; what counts is that it refuses too
        answer_of_v1(tf, folder, {"x": X})


def test_other_ways_to_variables(tf: ModuleType, tmp_path: Path) -> None:
    """Without its own, a model takes a checkpoint from elsewhere or its initialisers."""
    folder = _old_model(tf, tmp_path)
    wanted = answer_of_v1(tf, folder, {"x": X})["y"]
    with bundle.open_checkpoint(folder / "variables" / "variables") as reader:
        # the bias is a weight of ones; twice, for TensorFlow's roundings and ours
        factors = np.c_[X, np.ones(len(X))], np.r_[reader.read("weight"), reader.read("bias")[None]]
    allowed = 2 * tolerance.of_product(*factors)
    shutil.move(folder / "variables", tmp_path / "kept")
    feed, out = f"x={X.tolist()}", tmp_path / "y.npy"
    assert (
        run(["run", str(folder), "--checkpoint", str(tmp_path / "kept/variables"), "--feed", feed, "--out", str(out)])
        == 0
    )
    tolerance.assert_within(np.load(out), wanted, allowed)
    assert run(["run", str(folder), "--init", "--feed", feed, "--out", str(out)]) == 0
    assert np.isfinite(np.load(out)).all()
