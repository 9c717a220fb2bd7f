"""SavedModels of TensorFlow 1: builders, estimators, init ops of every age, several graphs by their tags."""

from __future__ import annotations

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
from toolkit.formats.models.model import read_model

pytestmark = pytest.mark.tensorflow
X = np.random.default_rng(41).standard_normal((3, 4)).astype(np.float32)
WORDS = np.array(["cat", "zebra", "mill"], object)


def _vocabulary(folder: Path) -> str:
    path = folder / "vocabulary.txt"
    path.write_text("cat\nmill\n")
    return str(path)


def _linear(v1: Any, resource: bool, scale: float = 1.0) -> tuple[Any, Any]:
    x = v1.placeholder("float32", [None, 4], name="x")
    weight = v1.get_variable(
        "dense/weight", initializer=scale * np.arange(8, dtype=np.float32).reshape(4, 2), use_resource=resource
    )
    return x, v1.matmul(x, weight, name="y")


@pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])
@pytest.mark.parametrize("way", ["main_op", "legacy_init_op"])
def test_init_ops_with_assets(tf: ModuleType, tmp_path: Path, resource: bool, way: str) -> None:
    """A table from an asset, initialised by the main op or, as older exports do, by the legacy one."""
    v1 = tf.compat.v1
    folder = tmp_path / "model"
    with tf.Graph().as_default(), v1.Session() as session:
        x, y = _linear(v1, resource)
        word = v1.placeholder(tf.string, [None], name="word")
        table = v1.lookup.StaticVocabularyTable(
            v1.lookup.TextFileInitializer(
                v1.constant(_vocabulary(tmp_path)), tf.string, v1.lookup.TextFileIndex.WHOLE_LINE,
                tf.int64, v1.lookup.TextFileIndex.LINE_NUMBER,
            ),
            3,
        )  # fmt: skip
        ids = table.lookup(word)
        session.run([v1.global_variables_initializer(), v1.tables_initializer()])
        signature = v1.saved_model.predict_signature_def({"x": x, "word": word}, {"y": y, "id": ids})
        builder = v1.saved_model.Builder(str(folder))
        init = v1.group(v1.tables_initializer(), name="start")
        builder.add_meta_graph_and_variables(
            session, ["serve"], signature_def_map={"serving_default": signature},
            assets_collection=v1.get_collection(v1.GraphKeys.ASSET_FILEPATHS), strip_default_attrs=True,
            **({"main_op": init} if way == "main_op" else {}),
        )  # fmt: skip
        if way == "legacy_init_op":
            _move_to_legacy(builder, init)
        builder.save()
    (tmp_path / "vocabulary.txt").unlink()
    assert way in str(read_model(folder).meta.collections.keys()) or way == "main_op"
    for by_v1 in (False, True):
        check_saved_model(tf, folder, {"x": X, "word": WORDS}, by_v1=by_v1)


def _move_to_legacy(builder: Any, init: Any) -> None:
    """What `legacy_init_op=` wrote, which TensorFlow 2 reads but no longer writes."""
    meta = builder._saved_model.meta_graphs[0]
    meta.collection_def["legacy_init_op"].node_list.value.append(init.name)
    meta.signature_def.pop("__saved_model_init_op", None)
    meta.collection_def.pop("saved_model_main_op", None)


@pytest.mark.parametrize("tags", [("serve",), ("serve", "gpu"), ("train", "serve")])
def test_graphs_by_tags(
    tf: ModuleType, tmp_path: Path, tags: tuple[str, ...], capfd: pytest.CaptureFixture[str]
) -> None:
    """One set of variables, several graphs: each with a signature of its own."""
    v1 = tf.compat.v1
    folder = tmp_path / "model"
    builder = v1.saved_model.Builder(str(folder))
    for number, each in enumerate((["serve"], ["serve", "gpu"], ["train", "serve"])):
        with tf.Graph().as_default(), v1.Session() as session:
            x, y = _linear(v1, resource=bool(number % 2))
            y = y * float(number + 1)
            signature = v1.saved_model.predict_signature_def({"x": x}, {"y": y})
            session.run(v1.global_variables_initializer())
            if number == 0:
                builder.add_meta_graph_and_variables(session, each, signature_def_map={"serving_default": signature})
            else:
                builder.add_meta_graph(each, signature_def_map={"serving_default": signature})
    builder.save()
    check_saved_model(tf, folder, {"x": X}, tags=tags, by_v1=True)
    assert run(["run", str(folder), "--tags", "serve,tpu", "--feed", "x=[[1,2,3,4]]"]) == 2
    error = capfd.readouterr().err
    assert "no graph has the tags serve,tpu" in error and "serve; gpu,serve; serve,train" in error


def test_graphs_of_a_hub_module(tf: ModuleType, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """One without tags, for serving, and one for training."""
    v1 = tf.compat.v1
    folder = tmp_path / "model"
    builder = v1.saved_model.Builder(str(folder))
    for tags in ([], ["train"]):
        with tf.Graph().as_default(), v1.Session() as session:
            x, y = _linear(v1, resource=False)
            signature = v1.saved_model.predict_signature_def({"x": x}, {"y": y * 2.0 if tags else y})
            session.run(v1.global_variables_initializer())
            add = builder.add_meta_graph if tags else builder.add_meta_graph_and_variables
            add(*([] if tags else [session]), tags, signature_def_map={"default": signature})
    builder.save()
    feed = ["--feed", f"x={X.tolist()}"]
    assert run(["run", str(folder), *feed]) == 2
    assert "choose one by its tags: (no tags); train (--tags '' for the one without)" in capfd.readouterr().err
    for tags in ("", "train"):
        out = tmp_path / "y.npy"
        assert run(["run", str(folder), "--tags", tags, *feed, "--out", str(out)]) == 0
        weight = np.arange(8).reshape(4, 2) * (2 if tags else 1)
        tolerance.assert_within(np.load(out), X.astype(np.float64) @ weight, tolerance.of_product(X, weight))


def test_simple_save_and_training_graph(tf: ModuleType, tmp_path: Path) -> None:
    """A whole training graph with optimizer slots, exported by simple_save."""
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        v1.set_random_seed(4)
        x, y = _linear(v1, resource=True)
        step = v1.train.get_or_create_global_step()
        train = v1.train.AdamOptimizer(0.1).minimize(v1.reduce_mean(y**2), global_step=step)
        session.run(v1.global_variables_initializer())
        session.run(train, {x: X})
        v1.saved_model.simple_save(session, str(tmp_path / "model"), {"x": x}, {"y": y, "step": step.read_value()})
    wanted = check_saved_model(tf, tmp_path / "model", {"x": X}, by_v1=True)
    assert wanted["step"] == 1


def test_like_an_estimators_export(tf: ModuleType, tmp_path: Path) -> None:
    """A serving input of serialized Examples, feature columns, three signatures and an exported vocabulary.

    tf.estimator itself left TensorFlow in 2.16; this is the graph its export_saved_model wrote.
    """
    v1 = tf.compat.v1
    folder = tmp_path / "model"
    with tf.Graph().as_default(), v1.Session() as session:
        serialized = v1.placeholder(tf.string, [None], name="input_example_tensor")
        spec = {
            "age": v1.FixedLenFeature([1], tf.float32), "word": v1.VarLenFeature(tf.string),
            "marks": v1.VarLenFeature(tf.float32), "kind": v1.FixedLenFeature([], tf.string, default_value="none"),
        }  # fmt: skip
        features = v1.parse_example(serialized, spec)
        words_file = v1.constant(_vocabulary(tmp_path))
        v1.add_to_collection(v1.GraphKeys.ASSET_FILEPATHS, words_file)
        table = v1.lookup.StaticVocabularyTable(
            v1.lookup.TextFileInitializer(
                words_file, tf.string, v1.lookup.TextFileIndex.WHOLE_LINE,
                tf.int64, v1.lookup.TextFileIndex.LINE_NUMBER,
            ),
            2,
        )  # fmt: skip
        words = v1.SparseTensor(
            features["word"].indices, table.lookup(features["word"].values), features["word"].dense_shape
        )
        embedding = v1.get_variable("embedding", [4, 3], initializer=v1.random_normal_initializer(seed=1))
        embedded = v1.nn.safe_embedding_lookup_sparse(embedding, words, combiner="mean")
        hashed = v1.one_hot(v1.strings.to_hash_bucket_fast(features["kind"], 5), 5)
        buckets = v1.raw_ops.Bucketize(input=features["age"], boundaries=[10.0, 20.0, 40.0])
        marks = v1.sparse_reduce_sum(features["marks"], 1, keepdims=True)
        marks.set_shape([None, 1])
        joined = v1.concat([embedded, hashed, v1.one_hot(buckets[:, 0], 4), marks], 1)
        kernel = v1.get_variable("kernel", [13, 3], initializer=v1.random_normal_initializer(seed=2))
        logits = v1.matmul(joined, kernel)
        probabilities = v1.nn.softmax(logits, name="probabilities")
        names = v1.constant(["low", "middle", "high"])
        classes = v1.tile(names[None], [v1.shape(logits)[0], 1])
        best = v1.gather(names, v1.argmax(logits, -1))
        session.run([v1.global_variables_initializer(), v1.tables_initializer()])
        saved = v1.saved_model
        info = saved.build_tensor_info
        signatures = {
            "serving_default": saved.classification_signature_def(serialized, classes, probabilities),
            "regression": saved.regression_signature_def(serialized, probabilities[:, 0]),
            "predict": saved.build_signature_def(
                {"examples": info(serialized)}, {"class": info(best), "logits": info(logits)},
                "tensorflow/serving/predict",
            ),
        }  # fmt: skip
        builder = saved.Builder(str(folder))
        builder.add_meta_graph_and_variables(
            session, ["serve"], signatures, assets_collection=v1.get_collection(v1.GraphKeys.ASSET_FILEPATHS),
            main_op=v1.tables_initializer(),
        )  # fmt: skip
        builder.save()
    examples = np.array([_example(tf, 12.5, ["cat", "zebra"], [1.0, 2.0], "a"), _example(tf, 70.0, [], [], "")], object)
    for key, name in (("serving_default", "inputs"), ("regression", "inputs"), ("predict", "examples")):
        check_saved_model(tf, folder, {name: examples}, key, by_v1=True)


def _example(tf: ModuleType, age: float, words: list[str], marks: list[float], kind: str) -> bytes:
    train = tf.train
    features = {
        "age": train.Feature(float_list=train.FloatList(value=[age])),
        "word": train.Feature(bytes_list=train.BytesList(value=[word.encode() for word in words])),
        "marks": train.Feature(float_list=train.FloatList(value=marks)),
    }
    if kind:
        features["kind"] = train.Feature(bytes_list=train.BytesList(value=[kind.encode()]))
    return train.Example(features=train.Features(feature=features)).SerializeToString()


def test_variables_under_other_names(tf: ModuleType, tmp_path: Path) -> None:
    """A saver that maps variables to other keys, and a partitioned variable."""
    v1 = tf.compat.v1
    folder = tmp_path / "model"
    with tf.Graph().as_default(), v1.Session() as session:
        x, y = _linear(v1, resource=False)
        with v1.variable_scope("parts", partitioner=v1.fixed_size_partitioner(3)):
            table = v1.get_variable("table", [7, 2], initializer=v1.random_normal_initializer(seed=3))
        looked = v1.nn.embedding_lookup(table, v1.cast(v1.abs(x[:, 0]) * 3, tf.int32), partition_strategy="div")
        session.run(v1.global_variables_initializer())
        weight = next(v for v in v1.global_variables() if "weight" in v.name)
        saver = v1.train.Saver({"renamed/w": weight, "parts/table": table}, sharded=True)
        signature = v1.saved_model.predict_signature_def({"x": x}, {"y": y, "looked": looked})
        builder = v1.saved_model.Builder(str(folder))
        builder.add_meta_graph_and_variables(
            session, ["serve"], signature_def_map={"serving_default": signature}, saver=saver
        )
        builder.save()
    check_saved_model(tf, folder, {"x": X}, by_v1=True)


def test_no_variables_at_all(tf: ModuleType, tmp_path: Path) -> None:
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, 4], name="x")
        default = v1.placeholder_with_default(np.float32(2), [], name="scale")
        v1.saved_model.simple_save(session, str(tmp_path / "model"), {"x": x, "scale": default}, {"y": x * default})
    for inputs in ({"x": X}, {"x": X, "scale": np.float32(5)}):
        wanted = answer_of_v1(tf, tmp_path / "model", inputs)["y"]
        for answer in (answer_of_command, answer_of_session):
            np.testing.assert_array_equal(answer(tmp_path / "model", inputs)["y"], wanted)


@pytest.mark.parametrize("v2", [False, True], ids=["switch", "functional"])
def test_control_flow_and_queues_left_in_the_graph(tf: ModuleType, tmp_path: Path, v2: bool) -> None:
    """Loops, branches, map_fn and dynamic_rnn, beside a queue that serving never touches."""
    v1 = tf.compat.v1
    (v1.enable_control_flow_v2 if v2 else v1.disable_control_flow_v2)()
    try:
        with tf.Graph().as_default(), v1.Session() as session:
            x, y = _linear(v1, resource=True)
            queue = v1.FIFOQueue(3, [tf.float32])
            v1.train.add_queue_runner(v1.train.QueueRunner(queue, [queue.enqueue(1.0)]))
            looped = v1.while_loop(lambda i, a: i < 4, lambda i, a: (i + 1, v1.tanh(a) + 0.1), [0, y])[1]
            mapped = v1.map_fn(lambda row: v1.cond(v1.reduce_sum(row) > 0, lambda: row, lambda: -row), looped)
            scanned = v1.scan(lambda a, b: 0.5 * a + b, mapped)
            session.run(v1.global_variables_initializer())
            v1.saved_model.simple_save(session, str(tmp_path / "model"), {"x": x}, {"m": mapped, "s": scanned})
    finally:
        v1.enable_control_flow_v2()
    check_saved_model(tf, tmp_path / "model", {"x": X}, by_v1=True)
