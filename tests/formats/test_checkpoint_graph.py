"""What graphs expect of checkpoints: TF1 graphs with savers, SavedModels, bare graphs."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from toolkit.errors import NotFoundError
from toolkit.formats.bundle import BundleReader, save
from toolkit.formats.models import model as models
from toolkit.formats.models.checkpoint_graph import compare_with_graph, expected_tensors, resolve, signature_variables
from toolkit.graph import dtypes
from toolkit.passes.validate.engine import validate_files

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def trained(tf: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A TF1 model with Adam, a partitioned variable and a saver: the checkpoint's prefix, with its .meta."""
    v1 = tf.compat.v1
    folder = tmp_path_factory.mktemp("tf1")
    with tf.Graph().as_default(), v1.Session() as session:
        w = v1.get_variable("w", [3, 2], use_resource=False)
        b = v1.get_variable("b", [2], use_resource=True)
        p = v1.get_variable("p", [4, 2], partitioner=v1.fixed_size_partitioner(2), use_resource=False)
        loss = tf.reduce_sum(w) + tf.reduce_sum(b * b) + tf.reduce_sum(tf.convert_to_tensor(p))
        v1.train.AdamOptimizer().minimize(loss)
        session.run(v1.global_variables_initializer())
        return str(v1.train.Saver().save(session, str(folder / "model")))


def test_a_saver_names_tensors_types_and_shapes(trained: str) -> None:
    model = models.read_model(f"{trained}.meta")
    found = {(item.name, str(item.part) if item.part else ""): item for item in expected_tensors(model)}
    with BundleReader(trained) as reader:
        assert {name for name, _ in found} == set(reader)
        assert found["w", ""].shape.as_list() == [3, 2] and str(found["w", ""].dtype) == "float32"
        assert found["b", ""].shape.as_list() == [2]
        assert found["p", "0,2:0,2"].shape.as_list() == [4, 2]
        assert compare_with_graph(reader, model) == []


def test_findings(trained: str, tmp_path: Path) -> None:
    model = models.read_model(f"{trained}.meta")
    with BundleReader(trained) as reader:
        tensors = {name: np.array(reader.read(name)) for name in reader}
    del tensors["b"]
    tensors["w"] = tensors["w"].T.copy()
    tensors["p"] = tensors["p"].astype("f8")
    tensors["bb"] = np.zeros(1)
    save(tmp_path / "c", tensors)
    with BundleReader(tmp_path / "c") as reader:
        found = {(f.kind, f.tensor): f.message for f in compare_with_graph(reader, model)}
        assert set(found) == {("missing", "b"), ("shape", "w"), ("dtype", "p"), ("extra", "bb")}
        assert "did you mean 'bb'" in found["missing", "b"]
        assert found["shape", "w"] == "the checkpoint has [2,3], the graph [3,2]"
        assert {f.kind for f in compare_with_graph(reader, model, extra=False)} == {"missing", "shape", "dtype"}


def test_a_graph_without_a_saver(tf: ModuleType, tmp_path: Path) -> None:
    v1 = tf.compat.v1
    with tf.Graph().as_default() as graph:
        v1.get_variable("a", [3], use_resource=False)
        v1.get_variable("b", [2, 2], dtype=tf.float64, use_resource=True)
    (tmp_path / "g.pb").write_bytes(graph.as_graph_def().SerializeToString())
    found = {
        item.name: (str(item.dtype), item.shape.as_list())
        for item in expected_tensors(models.read_model(tmp_path / "g.pb"))
    }
    assert found == {"a": ("float32", [3]), "b": ("float64", [2, 2])}


def test_a_graph_without_variables(tf: ModuleType, tmp_path: Path) -> None:
    with tf.Graph().as_default() as graph:
        tf.constant(1.0)
    (tmp_path / "g.pb").write_bytes(graph.as_graph_def().SerializeToString())
    with pytest.raises(NotFoundError, match=r"g\.pb: the graph has no variables and restores nothing"):
        expected_tensors(models.read_model(tmp_path / "g.pb"))


@pytest.fixture(scope="module")
def saved_model(tf: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> str:
    class Net(tf.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            self.used = tf.Variable(tf.ones((2, 3)), name="used")
            self.other = tf.Variable([1.0, 2.0], name="other")

        @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32)])  # type: ignore[misc]
        def first(self, x: Any) -> Any:
            return {"y": x @ self.used}

        @tf.function(input_signature=[tf.TensorSpec([2], tf.float32)])  # type: ignore[misc]
        def second(self, x: Any) -> Any:
            return {"y": x * self.other}

    net = Net()
    folder = str(tmp_path_factory.mktemp("saved") / "model")
    tf.saved_model.save(net, folder, signatures={"first": net.first, "second": net.second})
    return folder


def test_a_saved_model_reads_its_own_variables(saved_model: str) -> None:
    model = models.read_model(saved_model)
    prefix = models.variables_prefix(model)
    assert prefix is not None
    with BundleReader(prefix) as reader:
        names = {item.name for item in expected_tensors(model)}
        assert "used/.ATTRIBUTES/VARIABLE_VALUE" in names
        assert compare_with_graph(reader, model) == []


@pytest.mark.tensorflow
def test_what_a_signature_of_keras_needs(tf: ModuleType, tmp_path: Path) -> None:
    """Keras 3 calls the variables of what it exports "bias_1" in the graph and nothing in the checkpoint."""
    layers = tf.keras.layers
    model = tf.keras.Sequential([layers.Input((4,)), layers.Dense(3), layers.BatchNormalization(), layers.Dense(3)])
    for at, variable in enumerate(model.variables):
        variable.assign(np.full(variable.shape, at + 1.0))
    model.export(str(tmp_path / "model"), verbose=False)
    exported = models.read_model(str(tmp_path / "model"))
    with BundleReader(str(models.variables_prefix(exported))) as reader:
        needed = resolve(reader, signature_variables(exported, "serving_default"), exported)
        assert None not in needed.values()
        values = sorted(float(reader.read(str(key)).flat[0]) for key in needed.values())
    assert values == [float(at + 1) for at in range(len(model.variables))]


def test_what_a_signature_needs(saved_model: str) -> None:
    model = models.read_model(saved_model)
    with BundleReader(str(models.variables_prefix(model))) as reader:
        for key, variable in (("first", "used"), ("second", "other")):
            needed = resolve(reader, signature_variables(model, key))
            assert set(needed.values()) == {f"{variable}/.ATTRIBUTES/VARIABLE_VALUE"}
    with pytest.raises(NotFoundError, match="no signature 'frst'; did you mean 'first'"):
        signature_variables(model, "frst")


@pytest.mark.parametrize("with_variable", [False, True])
def test_an_asset_is_no_variable_of_the_checkpoint(tf: ModuleType, tmp_path: Path, with_variable: bool) -> None:
    """TensorFlow keeps the path of an asset in a variable that loading assigns; no checkpoint has it."""
    (tmp_path / "words.txt").write_text("a\n")

    module: Any = tf.Module()
    module.words = tf.saved_model.Asset(str(tmp_path / "words.txt"))
    module.scale = tf.Variable(2.0) if with_variable else None

    def serve() -> dict[str, Any]:
        out = {"text": tf.io.read_file(module.words.asset_path)}
        return {**out, "scale": module.scale * 2.0} if with_variable else out

    module.serve = tf.function(serve, input_signature=[])
    folder = tmp_path / "saved"
    tf.saved_model.save(module, str(folder), signatures=module.serve)
    model = models.read_model(str(folder))
    assert not [finding for finding in validate_files([str(folder)]).findings if finding.rule.startswith("checkpoint/")]
    if with_variable:
        assert [item.name for item in expected_tensors(model)] == ["scale/.ATTRIBUTES/VARIABLE_VALUE"]
        # what a checkpoint really lacks is still found
        save(str(folder / "variables" / "variables"), [("other", np.ones(1, np.float32))], [dtypes.float32])
        found = [finding.rule for finding in validate_files([str(folder)]).findings]
        assert "checkpoint/missing" in found
    else:
        with pytest.raises(NotFoundError, match="restores nothing"):
            expected_tensors(model)
