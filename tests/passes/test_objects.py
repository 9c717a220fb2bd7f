"""SavedModels of objects that lose functions, variables, tables or assets: TensorFlow 2 loads what is left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from commands.main import run
from toolkit.formats.bundle.locate import open_tensors
from toolkit.formats.models.model import read_model

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def nested(tf: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Modules in modules, lists of layers, two tables of assets, a custom gradient and several functions."""
    folder = tmp_path_factory.mktemp("nested")
    for name, words in (("a.txt", "one\ntwo\n"), ("b.txt", "red\ngreen\n")):
        (folder / name).write_text(words)

    @tf.custom_gradient
    def clipped(x: Any) -> Any:
        return tf.nn.relu(x), lambda dy: 3.0 * dy

    class Dense(tf.Module):
        def __init__(self, start: float) -> None:
            super().__init__()
            self.w = tf.Variable(np.full([2, 2], start, np.float32))
            self.b = tf.Variable(np.float32([start, -start]))

        @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32, name="x")])
        def __call__(self, x: Any) -> Any:
            return clipped(x @ self.w + self.b)

    class Words(tf.Module):
        def __init__(self, path: Path) -> None:
            super().__init__()
            line, number = tf.lookup.TextFileIndex.WHOLE_LINE, tf.lookup.TextFileIndex.LINE_NUMBER
            source = tf.lookup.TextFileInitializer(str(path), tf.string, line, tf.int64, number)
            self.table = tf.lookup.StaticHashTable(source, -1)

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="words")])
        def ids(self, words: Any) -> Any:
            return self.table.lookup(words)

    class Model(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = [Dense(1.0), Dense(2.0)]
            self.other = Dense(5.0)
            self.first, self.second = Words(folder / "a.txt"), Words(folder / "b.txt")
            self.unused = tf.Variable(7.0)

        @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32, name="x")])
        def deep(self, x: Any) -> Any:
            for layer in self.layers:
                x = layer(x)
            return {"y": x}

        @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32, name="x")])
        def flat(self, x: Any) -> Any:
            return {"y": self.other(x)}

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="words")])
        def look(self, words: Any) -> Any:
            return {"ids": self.second.ids(words)}

        @tf.function(input_signature=[tf.TensorSpec([], tf.float32, name="x")])
        def apart(self, x: Any) -> Any:
            return self.unused * x

    model = Model()
    signatures = {"deep": model.deep, "flat": model.flat, "look": model.look}
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=True)
    tf.saved_model.save(model, str(folder / "model"), signatures=signatures, options=options)
    return folder / "model"


def values(folder: Path) -> list[str]:
    with open_tensors(str(folder / "variables/variables")) as source:
        return sorted(name for name in source if not name.startswith("_"))


def functions(folder: Path) -> set[str]:
    return set(read_model(str(folder)).graph.library)


def test_a_pruned_model_keeps_the_objects_of_its_signature(tf: Any, nested: Path, tmp_path: Path) -> None:
    whole = tf.saved_model.load(str(nested))
    x = tf.constant(np.float32([[1, 2], [-3, 1]]))
    out = tmp_path / "deep"
    assert run(["prune", str(nested), "--signature", "deep", "-o", str(out)]) == 0
    loaded = tf.saved_model.load(str(out))
    assert list(loaded.signatures) == ["deep"]
    wanted = whole.signatures["deep"](x=x)["y"].numpy()
    np.testing.assert_array_equal(loaded.signatures["deep"](x=x)["y"], wanted)
    np.testing.assert_array_equal(loaded.deep(x)["y"], wanted)
    np.testing.assert_array_equal(loaded.layers[1](loaded.layers[0](x)), wanted)
    assert not hasattr(loaded, "unused") and not hasattr(loaded.other, "w") and not hasattr(loaded, "apart")
    assert len(values(out)) == 4 and not (out / "assets").exists()
    with tf.GradientTape() as tape:
        total = tf.reduce_sum(loaded.layers[0](x))
    with tf.GradientTape() as before:
        reference = tf.reduce_sum(whole.layers[0](x))
    got, expected = (
        t.gradient(y, layer.w)
        for t, y, layer in ((tape, total, loaded.layers[0]), (before, reference, whole.layers[0]))
    )
    np.testing.assert_array_equal(got, expected)
    # what is loaded may be saved again
    tf.saved_model.save(loaded, str(tmp_path / "again"))


def test_a_table_stays_whole(tf: Any, nested: Path, tmp_path: Path) -> None:
    out = tmp_path / "look"
    assert run(["prune", str(nested), "--signature", "look", "-o", str(out)]) == 0
    loaded = tf.saved_model.load(str(out))
    words = tf.constant(["green", "one"])
    assert loaded.signatures["look"](words=words)["ids"].numpy().tolist() == [1, -1]
    assert loaded.second.ids(words).numpy().tolist() == [1, -1]
    assert not hasattr(loaded.first, "ids")
    assert [path.name for path in (out / "assets").iterdir()] == ["b.txt"]


def test_optimized_models_keep_functions_of_objects_only(tf: Any, nested: Path, tmp_path: Path) -> None:
    out, fewer = tmp_path / "o", tmp_path / "fewer"
    assert run(["edit", str(nested), "--remove-signature", "deep", "-o", str(fewer)]) == 0
    assert run(["optimize", str(fewer), "--preset", "inference", "-o", str(out)]) == 0
    assert "deep" not in tf.saved_model.load(str(out)).signatures
    # the wrapper of the signature is gone, and what saves and restores, which is inlined; `deep` is a method, too
    gone = functions(nested) - functions(out)
    ending = ("__inference__traced_save", "__inference__traced_restore", "__inference_signature_wrapper_deep")
    assert len(gone) == 3 and all(name.startswith(ending) for name in gone)
    assert run(["optimize", str(nested), "--preset", "inference", "-o", str(out)]) == 0
    whole, loaded = tf.saved_model.load(str(nested)), tf.saved_model.load(str(out))
    x = tf.constant(np.float32([[1, 2], [-3, 1]]))
    for key in ("deep", "flat"):
        np.testing.assert_array_equal(loaded.signatures[key](x=x)["y"], whole.signatures[key](x=x)["y"])
    np.testing.assert_array_equal(loaded.apart(tf.constant(2.0)), 14.0)
    assert loaded.first.ids(tf.constant(["two"])).numpy().tolist() == [1]


def test_new_signatures_are_found(tf: Any, nested: Path, tmp_path: Path) -> None:
    """An object graph that does not know a signature would hide it."""
    out = tmp_path / "o"
    signatures = read_model(str(nested)).meta.signatures
    both = [signatures["deep"], signatures["flat"]]
    fetches = ",".join(each.outputs["y"].name for each in both)
    feeds = ",".join(each.inputs["x"].name for each in both)
    assert run(["prune", str(nested), "--fetch", fetches, "--feed", feeds, "-o", str(out)]) == 0
    assert sorted(tf.saved_model.load(str(out)).signatures) == ["deep", "flat", "pruned"]
