"""Training, data and summaries of tf.contrib.slim: what mistakes say, and what goes on where it stopped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from toolkit import tensorflow as tf

slim = tf.contrib.slim


def training_operation() -> Any:
    x = tf.constant(np.ones([4, 3], "f"))
    loss = tf.reduce_mean(tf.square(slim.fully_connected(x, 2, None)))
    return slim.learning.create_train_op(loss, tf.train.GradientDescentOptimizer(0.01))


def test_training_goes_on_from_a_folder(tmp_path: Path) -> None:
    seen: list[int] = []

    def step(session: Any, train_op: Any, global_step: Any, arguments: Any) -> Any:
        found = slim.learning.train_step(session, train_op, global_step, arguments)
        seen.append(int(session.run(global_step)))
        return found

    for last in (2, 5):
        with tf.Graph().as_default():
            op = training_operation()
            tf.summary.scalar("one", tf.constant(1.0))
            slim.learning.train(op, str(tmp_path), step, number_of_steps=last, log_every_n_steps=0)
    assert seen == [1, 2, 3, 4, 5]
    assert tf.train.latest_checkpoint(str(tmp_path)) == str(tmp_path / "model.ckpt-5")
    assert list(tmp_path.glob("events.*"))


def test_training_ends_with_its_input(tmp_path: Path) -> None:
    with tf.Graph().as_default():
        numbers = tf.train.range_input_producer(3, num_epochs=1, shuffle=False).dequeue()
        loss = tf.square(slim.fully_connected(tf.reshape(tf.to_float(numbers), [1, 1]), 1, None))[0, 0]
        op = slim.learning.create_train_op(loss, tf.train.GradientDescentOptimizer(0.01))
        slim.learning.train(op, str(tmp_path), number_of_steps=100)
    assert tf.train.latest_checkpoint(str(tmp_path)) == str(tmp_path / "model.ckpt-3")


MISTAKES = [
    ("slim.learning.train(None, None)", ValueError, "train_op: expected an operation"),
    ("slim.learning.train(op(), None, number_of_steps=0)", ValueError, "expected a number above 0 or None, got 0"),
    ("slim.learning.train(op(), None, saver=1)", ValueError, "saver: what it writes goes to logdir, which is None"),
    ("slim.learning.multiply_gradients((), {})", ValueError, "grads_and_vars: expected a list, got tuple"),
    ("slim.learning.multiply_gradients([], {})", ValueError, "gradient_multipliers: expected a dictionary"),
    ("slim.parallel_reader.get_data_files('nowhere/*.records')", ValueError, r"nowhere/\*.records matches no file"),
    ("slim.tfexample_decoder.BoundingBox(['a'])", ValueError, "keys: expected those of 4 sides, got 1"),
    ("slim.tfexample_decoder.Tensor('a', ['b'], [1])", ValueError, "give shape_keys or shape, not both"),
    ("slim.tfexample_decoder.BackupHandler(1, 2)", ValueError, "handler: expected an ItemHandler, got int"),
    ("slim.parallel_reader.ParallelReader(tf.TFRecordReader, tf.FIFOQueue(1, [tf.int32]))", TypeError, "common_queue"),
    ("tf.contrib.training.create_train_op(tf.constant(1.0), None)", ValueError, "there are no variables to train"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "says"), MISTAKES, ids=[call for call, _, _ in MISTAKES])
def test_mistakes(call: str, kind: type[Exception], says: str) -> None:
    with tf.Graph().as_default(), pytest.raises(kind, match=says):
        eval(call, {"slim": slim, "tf": tf, "op": training_operation})


def test_items_of_records(tmp_path: Path) -> None:
    path = str(tmp_path / "examples")
    with tf.python_io.TFRecordWriter(path) as writer:
        for n in range(3):
            feature = tf.train.Feature(int64_list=tf.train.Int64List(value=[n]))
            writer.write(tf.train.Example(features=tf.train.Features(feature={"n": feature})).SerializeToString())
    with tf.Graph().as_default(), tf.Session() as session:
        decoder = slim.tfexample_decoder.TFExampleDecoder(
            {"n": tf.FixedLenFeature([], tf.int64)}, {"number": slim.tfexample_decoder.Tensor("n")}
        )
        dataset = slim.dataset.Dataset(path, tf.TFRecordReader, decoder, 3, {"number": "a number"}, classes=2)
        provider = slim.dataset_data_provider.DatasetDataProvider(dataset, shuffle=False, num_epochs=1)
        assert (provider.num_samples(), sorted(provider.list_items())) == (3, ["number", "record_key"])
        with pytest.raises(ValueError, match="there is no 'image'; there are number, record_key"):
            provider.get(["image"])
        (number,) = provider.get(["number"])
        session.run(tf.local_variables_initializer())
        with slim.queues.QueueRunners(session):
            assert [int(session.run(number)) for _ in range(3)] == [0, 1, 2]
            with pytest.raises(slim.queues.NestedQueueRunnerError), slim.queues.QueueRunners(session):
                pass


def test_what_a_model_consists_of(capsys: pytest.CaptureFixture[str]) -> None:
    with tf.Graph().as_default() as graph:
        slim.fully_connected(tf.placeholder(tf.float32, [None, 3], name="x"), 2, scope="fc")
        assert slim.model_analyzer.analyze_vars(slim.get_model_variables(), True) == (8, 32)
        slim.model_analyzer.analyze_ops(graph, True)
    printed = capsys.readouterr().out
    assert "fc/weights:0 (float32_ref 3x2) [6, bytes: 24]" in printed
    assert "x \t-> (float32 ?x3) [0]" in printed
