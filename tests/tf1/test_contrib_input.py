"""tf.contrib.training's queues and strategies, tf.contrib.predictor."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from toolkit import tensorflow as tf
from toolkit.errors import GraphError

training: Any = tf.contrib.training
te: Any = tf.estimator


@pytest.fixture(autouse=True)
def graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def _all(fetches: Any) -> list[Any]:
    """What comes until the input ends."""
    found: list[Any] = []
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coordinator)
        with pytest.raises(tf.errors.OutOfRangeError):
            while True:
                found.append(session.run(fetches))
        coordinator.request_stop()
        coordinator.join(threads)
    return found


@pytest.mark.parametrize("form", ["list", "dict", "tensor"])
def test_sequences_of_about_one_length_come_together(form: str) -> None:
    length = tf.train.range_input_producer(9, num_epochs=1, shuffle=False).dequeue() + 1
    sequence = tf.fill([length], length)
    given: Any = {"list": [sequence, length], "dict": {"s": sequence, "l": length}, "tensor": sequence}[form]
    lengths, taken = training.bucket_by_sequence_length(
        length, given, 2, [4, 7], dynamic_pad=True, allow_smaller_final_batch=True
    )
    sequences = taken["s"] if form == "dict" else taken[0] if form == "list" else taken
    batches = _all([lengths, sequences])
    assert sorted(number for found, _ in batches for number in found) == list(range(1, 10))
    for found, rows in batches:
        assert rows.shape == (len(found), max(found))
        assert len({int(np.digitize(each, [4, 7])) for each in found}) == 1, "of one bucket"
        for each, row in zip(found, rows, strict=True):
            assert list(row) == [each] * each + [0] * (max(found) - each)


def test_elements_of_a_bucket_and_those_left_out() -> None:
    number = tf.train.range_input_producer(12, num_epochs=1, shuffle=False).dequeue()
    which, taken = training.bucket(number, number % 2, [2, 3], 2, keep_input=number < 10)
    batches = _all([which, taken])
    assert sorted(each for _, found in batches for each in found) == list(range(7)), "the rest fills no batch"
    for bucket, found in batches:
        assert len(found) == [2, 3][bucket] and {int(each) % 2 for each in found} == {bucket}


def test_elements_are_kept_by_chance() -> None:
    number = tf.train.range_input_producer(20, num_epochs=1, shuffle=False).dequeue()
    (kept,) = training.rejection_sample([number], lambda t: tf.cast(t[0] % 2, tf.float32), 5, runtime_checks=True)
    assert kept.shape.as_list() == [5]
    assert [list(each) for each in _all(kept)] == [[1, 3, 5, 7, 9], [11, 13, 15, 17, 19]]


def test_elements_of_many_are_kept_by_chance() -> None:
    numbers = tf.train.range_input_producer(8, num_epochs=1, shuffle=False).dequeue_many(4)
    kept = training.rejection_sample([numbers], lambda t: tf.constant(1.0), 4, enqueue_many=True)
    assert [list(each) for each in _all(kept[0])] == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_classes_that_are_not_wanted_are_left_out() -> None:
    number = tf.train.range_input_producer(12, num_epochs=1, shuffle=False).dequeue()
    (values,), labels = training.stratified_sample([number], number % 3, [0.0, 1.0, 0.0], 2, [0.25, 0.5, 0.25])
    found = _all([values, labels])
    # every accepted class has probability 1 here, so nothing is left to chance
    assert [list(each) for each, _ in found] == [[1, 4], [7, 10]]
    assert all(set(each) == {1} for _, each in found)


def test_how_frequent_classes_are_is_counted() -> None:
    numbers = tf.train.range_input_producer(12, shuffle=False).dequeue_many(3)
    (values,), labels = training.stratified_sample([numbers], numbers % 3, [0.0, 1.0, 0.0], 2, enqueue_many=True)
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coordinator)
        found, classes = session.run([values, labels])
        (counted,) = (v for v in tf.global_variables() if v.op.name.endswith("class_count"))
        seen = session.run(counted)
        coordinator.request_stop()
        coordinator.join(threads)
    assert set(classes) == {1} and set(found % 3) == {1}
    assert len(set(seen)) == 1 and seen[0] > 10, "as often as the other classes"


_BAD = {
    "t.bucket_by_sequence_length(3, x, 2, 4)": (TypeError, "a list"),
    "t.bucket_by_sequence_length(3, x, 2, [])": (ValueError, "there is none"),
    "t.bucket_by_sequence_length(3, x, 2, [4, 4])": (ValueError, "rise"),
    "t.bucket_by_sequence_length(3, x, 2, [4.5])": (TypeError, "integers"),
    "t.bucket(x, 0, [2], 2)": (ValueError, "batch_size: expected one for each of 2"),
    "t.bucket(x, 0, 2, 2, bucket_capacities=[3])": (ValueError, "bucket_capacities"),
    "t.bucket([], 0, 2, 2)": (ValueError, "at least one"),
    "t.bucket(tf.placeholder(tf.float32), 0, 2, 2)": (GraphError, "dynamic_pad"),
    "t.stratified_sample([x], 0, tf.placeholder(tf.float32), 2)": (ValueError, "known length"),
    "t.stratified_sample([x], 0, [0.5, 0.5], 2, [1.0])": (ValueError, "expected 2"),
    "t.byte_size_load_fn(tf.no_op())": (ValueError, "one output"),
    "t.byte_size_load_fn(tf.placeholder(tf.float32, [None]).op)": (ValueError, "not known"),
}


@pytest.mark.parametrize("code", _BAD)
def test_what_cannot_be_is_told(code: str) -> None:
    kind, said = _BAD[code]
    with pytest.raises(kind, match=said):
        eval(code, {"t": training, "tf": tf, "x": tf.constant(1.0)})


def test_variables_are_shared_among_servers() -> None:
    strategy = training.GreedyLoadBalancingStrategy(2, training.byte_size_load_fn)
    with tf.device(tf.train.replica_device_setter(2, ps_strategy=strategy)):
        made = [tf.get_variable(f"v{i}", [size]) for i, size in enumerate((8, 2, 3, 2, 1))]
    assert [each.device[-1] for each in made] == ["0", "1", "1", "1", "1"]
    chosen = [training.RandomStrategy(5, 1)(tf.no_op(name=f"n{i}")) for i in range(4)]
    # MD5 of "n0_1" and so on, as TensorFlow 1.15 takes it
    assert chosen == [int.from_bytes(hashlib.md5(f"n{i}_1".encode()).digest(), "big") % 5 for i in range(4)]


def _exported(folder: Path) -> Any:
    def model(features: Any, labels: Any, mode: Any) -> Any:
        out = tf.layers.dense(features["x"], 1, kernel_initializer=tf.ones_initializer())
        double, single = te.export.PredictOutput({"y": out * 2}), te.export.PredictOutput({"y": out})
        outputs = {"double": double, "serving_default": single}
        if mode == te.ModeKeys.PREDICT:
            return te.EstimatorSpec(mode, {"y": out}, export_outputs=outputs)
        loss = tf.reduce_mean(out) * 0.0
        return te.EstimatorSpec(mode, {"y": out}, loss, tf.train.get_global_step().assign_add(1))

    estimator = te.Estimator(model, str(folder))
    estimator.train(lambda: ({"x": tf.ones([1, 2])}, None), steps=1)
    return estimator


def test_a_model_is_a_function_of_arrays(tmp_path: Path) -> None:
    estimator = _exported(tmp_path / "model")
    receiver = te.export.build_raw_serving_input_receiver_fn({"x": tf.placeholder(tf.float32, [None, 2])})
    path = estimator.export_saved_model(str(tmp_path / "export"), receiver)
    given = {"x": [[1.0, 2.0]]}
    saved = tf.contrib.predictor.from_saved_model(path)
    assert saved(given)["y"] == 3.0 and list(saved.feed_tensors) == ["x"] and "feed tensors" in repr(saved)
    assert tf.contrib.predictor.from_saved_model(path, "double")(given)["y"] == 6.0
    names = [{key: tensor.name for key, tensor in each.items()} for each in (saved.feed_tensors, saved.fetch_tensors)]
    by_name = tf.contrib.predictor.from_saved_model(path, input_names=names[0], output_names=names[1], tags="serve")
    assert by_name(given)["y"] == 3.0
    live = tf.contrib.predictor.from_estimator(estimator, receiver)
    assert live(given)["y"] == 3.0
    assert tf.contrib.predictor.from_estimator(estimator, receiver, "double")(given)["y"] == 6.0
    with pytest.raises(ValueError, match="no input z"):
        saved({"z": 1})
    with pytest.raises(ValueError, match="no 'none'; signatures are double, serving_default"):
        tf.contrib.predictor.from_saved_model(path, "none")
    with pytest.raises(ValueError, match="neither"):
        tf.contrib.predictor.from_saved_model(path, input_names={})
    with pytest.raises(ValueError, match="one of"):
        tf.contrib.predictor.from_saved_model(path, "a", input_names={}, output_names={})
    with pytest.raises(KeyError, match="no 'none'"):
        tf.contrib.predictor.from_estimator(estimator, receiver, "none")
    with pytest.raises(TypeError, match="estimator"):
        tf.contrib.predictor.from_estimator(3, receiver)


def test_map_takes_threads_and_a_buffer_as_before_release_1_4() -> None:
    with tf.Graph().as_default() as graph, tf.Session() as session:
        made = tf.data.Dataset.range(5).map(lambda x: x * x, num_threads=2, output_buffer_size=3)
        element = made.make_one_shot_iterator().get_next()
        assert [session.run(element) for _ in range(5)] == [0, 1, 4, 9, 16]
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(element)
        ops = {node.op for function in graph.as_graph_def().library.function for node in function.node_def}
    assert {"ParallelMapDatasetV2", "PrefetchDataset"} <= ops
