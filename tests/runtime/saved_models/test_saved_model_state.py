"""State of SavedModels: variables, lookup tables, assets, and what initialises them."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from commands.main import run
from tests.runtime.saved_models.saved_model_case import (
    answer_of_command,
    answer_of_session,
    answer_of_v2,
    check_saved_model,
)
from toolkit.formats.models.model import read_model
from toolkit.runtime.saving.saved_model import load_saved_model
from toolkit.runtime.session import Session

pytestmark = pytest.mark.tensorflow
WORDS = np.array(["cat", "mill", "nothing", "", "graph"], object)


def _save(tf: ModuleType, folder: Path, function: Any, *specs: Any, **attributes: Any) -> Path:
    module = tf.Module()
    for name, value in attributes.items():
        setattr(module, name, value)
    module.serve = tf.function(function, input_signature=list(specs))
    tf.saved_model.save(module, str(folder / "model"), signatures=module.serve)
    return folder / "model"


def test_variables_of_every_kind(tf: ModuleType, tmp_path: Path) -> None:
    """In lists, dicts and modules of modules; sharing a name; of many types; not trainable; a scalar; an empty one."""
    module = tf.Module()
    module.list = [tf.Variable([1.0, 2.0], name="v"), tf.Variable([3.0, 4.0], name="v")]
    module.table = {"a/b": tf.Variable(5, name="v"), "c": (tf.Variable(True),)}
    module.inner = tf.Module()
    module.inner.half = tf.Variable(tf.cast([1.5, 2.5], tf.bfloat16), trainable=False)
    module.inner.wide = tf.Variable(np.arange(6, dtype=np.int64).reshape(1, 2, 3))
    module.text = tf.Variable(["a", "bc"])
    module.empty = tf.Variable(np.zeros((0, 3), np.float32))
    module.complex = tf.Variable(1 + 2j)

    def serve(x: Any) -> dict[str, Any]:
        inner = module.inner
        return {
            "sum": x * module.list[0] + module.list[1], "count": module.table["a/b"] + 1, "flag": module.table["c"][0],
            "half": tf.cast(inner.half, tf.float32), "wide": inner.wide * 2, "text": module.text + "!",
            "empty": tf.shape(module.empty), "complex": module.complex * 2.0,
        }  # fmt: skip

    module.serve = tf.function(serve, input_signature=[tf.TensorSpec([2], tf.float32, name="x")])
    tf.saved_model.save(module, str(tmp_path / "model"), signatures=module.serve)
    check_saved_model(tf, tmp_path / "model", {"x": np.float32([1, -1])})


def test_state_lasts_for_a_session(tf: ModuleType, tmp_path: Path) -> None:
    total = tf.Variable(10.0)
    folder = _save(tf, tmp_path, lambda x: {"t": total.assign_add(x)}, tf.TensorSpec([], tf.float32, "x"), total=total)
    model = read_model(folder)
    signature = model.meta.signatures["serving_default"]
    with Session(model) as session:
        load_saved_model(session, model)
        theirs = tf.saved_model.load(str(folder)).signatures["serving_default"]
        for x in (1.0, 2.5):
            got = session.run(signature.output_tensors(), {signature.inputs["x"].name: x})
            assert got["t"] == theirs(x=tf.constant(x))["t"].numpy()


@pytest.mark.parametrize("types", [("string", "int64"), ("int64", "string"), ("int64", "float32"), ("string", "bool")])
def test_static_table_of_constants(tf: ModuleType, tmp_path: Path, types: tuple[str, str]) -> None:
    samples = {
        "string": np.array(["cat", "mill", "graph"], object), "int64": np.array([3, 7, -2]),
        "float32": np.float32([0.5, 1.5, 2.5]), "bool": np.array([True, False, True]),
    }  # fmt: skip
    absent = {"string": "?", "int64": -1, "float32": -0.5, "bool": False}
    key, value = types
    initializer = tf.lookup.KeyValueTensorInitializer(
        tf.constant(samples[key], key), tf.constant(samples[value], value)
    )
    table = tf.lookup.StaticHashTable(initializer, absent[value])
    spec = tf.TensorSpec([None], key, name="key")
    folder = _save(tf, tmp_path, lambda key: {"value": table.lookup(key), "size": table.size()}, spec, table=table)
    asked = WORDS if key == "string" else np.array([7, 0, -2])
    check_saved_model(tf, folder, {"key": asked})


def test_tables_from_asset_files(tf: ModuleType, tmp_path: Path) -> None:
    """A vocabulary with buckets for the unknown, and a file of columns; found where the model is moved to."""
    (tmp_path / "vocabulary.txt").write_text("cat\nmill\ngraph\n")
    (tmp_path / "columns.tsv").write_text("cat\t1.5\t10\nmill\t2.5\t20\n")
    lookup = tf.lookup
    words = lookup.StaticVocabularyTable(
        lookup.TextFileInitializer(
            str(tmp_path / "vocabulary.txt"), tf.string, lookup.TextFileIndex.WHOLE_LINE,
            tf.int64, lookup.TextFileIndex.LINE_NUMBER,
        ),
        num_oov_buckets=5,
    )  # fmt: skip
    prices = lookup.StaticHashTable(
        lookup.TextFileInitializer(str(tmp_path / "columns.tsv"), tf.string, 0, tf.float32, 1, delimiter="\t"), -1.0
    )
    names = lookup.StaticHashTable(
        lookup.TextFileInitializer(
            str(tmp_path / "vocabulary.txt"), tf.int64, lookup.TextFileIndex.LINE_NUMBER,
            tf.string, lookup.TextFileIndex.WHOLE_LINE,
        ),
        "[UNK]",
    )  # fmt: skip

    def serve(word: Any) -> dict[str, Any]:
        ids = words.lookup(word)
        return {"id": ids, "price": prices.lookup(word), "name": names.lookup(ids)}

    spec = tf.TensorSpec([None], tf.string, name="word")
    folder = _save(tf, tmp_path, serve, spec, words=words, prices=prices, names=names)
    assert sorted(path.name for path in (folder / "assets").iterdir()) == ["columns.tsv", "vocabulary.txt"]
    for path in (tmp_path / "vocabulary.txt", tmp_path / "columns.tsv"):
        path.unlink()
    moved = tmp_path / "moved" / "model"
    shutil.copytree(folder, moved)
    shutil.rmtree(folder)
    check_saved_model(tf, moved, {"word": WORDS})


def test_missing_asset_is_named(tf: ModuleType, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    words = tmp_path / "words.txt"
    words.write_text("cat\n")
    table = tf.lookup.StaticHashTable(
        tf.lookup.TextFileInitializer(str(words), tf.string, tf.lookup.TextFileIndex.WHOLE_LINE,
                                      tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER), -1,
    )  # fmt: skip
    spec = tf.TensorSpec([None], tf.string, name="word")
    folder = _save(tf, tmp_path, lambda word: {"id": table.lookup(word)}, spec, table=table)
    (folder / "assets" / "words.txt").unlink()
    assert run(["run", str(folder), "--feed", 'word=["cat"]']) == 3
    assert "assets/words.txt; No such file" in capfd.readouterr().err


def test_mutable_and_dense_tables(tf: ModuleType, tmp_path: Path) -> None:
    """Their contents are in the checkpoint."""
    mutable = tf.lookup.experimental.MutableHashTable(tf.string, tf.float32, default_value=-1.0)
    mutable.insert(["cat", "graph"], [1.0, 2.0])
    vectors = tf.lookup.experimental.MutableHashTable(tf.int64, tf.float32, default_value=[0.0, 0.0])
    vectors.insert([4, 9], [[1.0, 2.0], [3.0, 4.0]])
    dense = tf.lookup.experimental.DenseHashTable(tf.int64, tf.int64, -1, empty_key=-1, deleted_key=-2)
    dense.insert([5, 9, 4], [50, 90, 40])
    dense.erase(tf.constant([4], tf.int64))

    def serve(word: Any, number: Any) -> dict[str, Any]:
        return {
            "mutable": mutable.lookup(word), "vectors": vectors.lookup(number), "dense": dense.lookup(number),
            "size": mutable.size() + dense.size(),
        }  # fmt: skip

    specs = tf.TensorSpec([None], tf.string, name="word"), tf.TensorSpec([None], tf.int64, name="number")
    folder = _save(tf, tmp_path, serve, *specs, mutable=mutable, vectors=vectors, dense=dense)
    check_saved_model(tf, folder, {"word": WORDS, "number": np.array([9, 4, 5, 0])})


def test_table_that_a_signature_fills(tf: ModuleType, tmp_path: Path) -> None:
    seen = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, default_value=0)

    class Counter(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.seen = seen

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="word")])
        def serve(self, word: Any) -> dict[str, Any]:
            before = self.seen.lookup(word)
            self.seen.insert(word, before + 1)
            keys, values = self.seen.export()
            order = tf.argsort(keys) if keys.dtype != tf.string else tf.argsort(tf.strings.to_hash_bucket(keys, 10**6))
            return {"before": before, "keys": tf.gather(keys, order), "values": tf.gather(values, order)}

    module = Counter()
    tf.saved_model.save(module, str(tmp_path / "model"), signatures=module.serve)
    check_saved_model(tf, tmp_path / "model", {"word": WORDS})


def test_files_as_assets(tf: ModuleType, tmp_path: Path) -> None:
    """Two assets of the same name in different folders; their paths are read when the signature runs."""
    assets = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "data.txt").write_text(f"from {name}\n")
        assets.append(tf.saved_model.Asset(str(tmp_path / name / "data.txt")))

    def serve() -> dict[str, Any]:
        return {f"text_{n}": tf.io.read_file(asset.asset_path) for n, asset in enumerate(assets)}

    folder = _save(tf, tmp_path, serve, assets=assets)
    wanted = check_saved_model(tf, folder, {})
    assert {value.item() for value in wanted.values()} == {b"from one\n", b"from two\n"}


def test_capturing_constants_and_each_other(tf: ModuleType, tmp_path: Path) -> None:
    """Eager tensors that functions closed over, a variable created in the first call, another model's signature."""
    constant = tf.constant(np.arange(4, dtype=np.float32))

    class Lazy(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight: Any = None

        @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32, name="x")])
        def serve(self, x: Any) -> dict[str, Any]:
            if self.weight is None:
                self.weight = tf.Variable(tf.ones([4, 2]) * 0.5)
            return {"y": (x + constant) @ self.weight}

    first = Lazy()
    first.serve(tf.zeros([1, 4]))
    first.constant = constant
    tf.saved_model.save(first, str(tmp_path / "first"), signatures=first.serve)
    loaded = tf.saved_model.load(str(tmp_path / "first"))
    second = tf.Module()
    second.first = loaded
    second.serve = tf.function(
        lambda x: {"z": tf.reduce_sum(loaded.signatures["serving_default"](x=x)["y"], 1)},
        input_signature=[tf.TensorSpec([None, 4], tf.float32, name="x")],
    )
    tf.saved_model.save(second, str(tmp_path / "second"), signatures=second.serve)
    for name in ("first", "second"):
        check_saved_model(tf, tmp_path / name, {"x": np.ones((3, 4), np.float32)})


def test_random_state(tf: ModuleType, tmp_path: Path) -> None:
    """A generator is a variable of the model: the numbers are TensorFlow's from the first on."""
    generator = tf.random.Generator.from_seed(7, alg="philox")

    def serve(n: Any) -> dict[str, Any]:
        return {"normal": generator.normal([n, 2]), "stateless": tf.random.stateless_uniform([n], [1, 2])}

    folder = _save(tf, tmp_path, serve, tf.TensorSpec([], tf.int32, name="n"), generator=generator)
    check_saved_model(tf, folder, {"n": np.int32(5)})


def test_large_folder_of_shards(tf: ModuleType, tmp_path: Path) -> None:
    """Variables in several data files, as distributed training leaves them."""
    variables = [tf.Variable(np.full((50,), n, np.float32)) for n in range(6)]
    options = tf.saved_model.SaveOptions(experimental_sharding_callback=_shards(tf))
    module = tf.Module()
    module.variables_ = variables
    module.serve = tf.function(lambda: {"sum": tf.add_n(variables)}, input_signature=[])
    tf.saved_model.save(module, str(tmp_path / "model"), signatures=module.serve, options=options)
    assert len(list((tmp_path / "model" / "variables").glob("*.data-*"))) > 1
    check_saved_model(tf, tmp_path / "model", {})


def _shards(tf: ModuleType) -> Any:
    return tf.train.experimental.MaxShardSizePolicy(max_shard_size=500)


def test_saved_without_a_saver(tf: ModuleType, tmp_path: Path) -> None:
    """The graph restores nothing: each variable is found in the checkpoint by its object's path."""
    module = tf.Module()
    module.twins = [tf.Variable([1.0, 2.0], name="v"), tf.Variable([3.0, 4.0], name="v")]
    module.inner = tf.Module()
    module.inner.unused = tf.Variable([7.0], name="v")
    module.inner.count = tf.Variable(5, name="count")

    def serve(x: Any) -> dict[str, Any]:
        return {"y": module.twins[0] * x - module.twins[1], "next": module.inner.count.assign_add(1)}

    module.serve = tf.function(serve, input_signature=[tf.TensorSpec([], tf.float32, name="x")])
    options = tf.saved_model.SaveOptions(experimental_skip_saver=True)
    tf.saved_model.save(module, str(tmp_path / "model"), signatures=module.serve, options=options)
    assert read_model(tmp_path / "model").meta.saver is None
    check_saved_model(tf, tmp_path / "model", {"x": np.float32(10)})


def test_partitions_of_both_loaders(tf: ModuleType, tmp_path: Path) -> None:
    """The same answers from both executors and from the folder's file given alone."""
    weight = tf.Variable(np.eye(3, dtype=np.float32))
    folder = _save(tf, tmp_path, lambda x: {"y": x @ weight}, tf.TensorSpec([None, 3], tf.float32, "x"), weight=weight)
    inputs = {"x": np.float32([[1, 2, 3]])}
    wanted = answer_of_v2(tf, folder, inputs)["y"]
    for got in (
        answer_of_session(folder, inputs, force_tokens=True),
        answer_of_command(folder / "saved_model.pb", inputs),
    ):
        np.testing.assert_array_equal(got["y"], wanted)
