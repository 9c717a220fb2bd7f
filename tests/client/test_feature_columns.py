"""Feature columns: what cannot be is told in one line; what they compute; parse specs; warm starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from toolkit import tensorflow as tf

fc: Any = tf.feature_column

_BAD: dict[str, tuple[type[Exception], str]] = {
    "fc.numeric_column(3)": (ValueError, "key must be a text"),
    "fc.numeric_column('x', 0)": (ValueError, "at least 1"),
    "fc.numeric_column('x', (2.5,))": (TypeError, "must be integers"),
    "fc.numeric_column('x', dtype=tf.string)": (ValueError, "integers or floats"),
    "fc.numeric_column('x', 2, [1.0])": (ValueError, r"shape \(2,\)"),
    "fc.numeric_column('x', default_value='a')": (TypeError, "default_value of 'x'"),
    "fc.numeric_column('x', normalizer_fn=3)": (TypeError, "must be a function"),
    "fc.bucketized_column(identity('i', 3), [1.0])": (ValueError, "numeric_column"),
    "fc.bucketized_column(fc.numeric_column('x', (2, 2)), [1.0])": (ValueError, "buckets are of vectors"),
    "fc.bucketized_column(fc.numeric_column('x'), [2.0, 1.0])": (ValueError, "that rise"),
    "fc.bucketized_column(fc.numeric_column('x'), [])": (ValueError, "that rise"),
    "hashed('w', 0)": (ValueError, "at least 1"),
    "hashed('w', 5, tf.float32)": (ValueError, "strings or integers"),
    "identity('i', 0)": (ValueError, "at least 1"),
    "identity('i', 3, 3)": (ValueError, "below 3"),
    "listed('w', [])": (ValueError, "empty"),
    "listed('w', ['a', 'a'])": (ValueError, "twice"),
    "listed('w', ['a'], default_value=0, num_oov_buckets=1)": (ValueError, "both"),
    "listed('w', ['a'], tf.int64)": (ValueError, "is of int64"),
    "listed('w', [1.5])": (ValueError, "strings or integers"),
    "filed('w', '')": (ValueError, "missing"),
    "filed('w', '/none/such')": (ValueError, "does not exist"),
    "filed('w', 'x', 0)": (ValueError, "at least 1"),
    "fc.crossed_column(['a'], 5)": (ValueError, "at least two keys"),
    "fc.crossed_column(['a', 'b'], 0)": (ValueError, "at least 1"),
    "fc.crossed_column(['a', 3], 5)": (ValueError, "categorical columns; got 3"),
    "fc.crossed_column(['a', hashed('b', 3)], 5)": (ValueError, "hashed already"),
    "fc.embedding_column(identity('i', 3), 0)": (ValueError, "at least 1"),
    "fc.embedding_column(identity('i', 3), 2, initializer=3)": (ValueError, "function"),
    "fc.embedding_column(identity('i', 3), 2, ckpt_to_load_from='x')": (ValueError, "both"),
    "fc.shared_embedding_columns([identity('i', 3), identity('j', 4)], 2)": (ValueError, "'i' has 3, 'j' 4"),
    "fc.shared_embedding_columns([identity('i', 3), hashed('j', 3)], 2)": (ValueError, "one kind"),
    "fc.indicator_column(fc.numeric_column('x'))": (ValueError, "categorical column"),
    "fc.weighted_categorical_column(identity('i', 3), 'w', tf.string)": (ValueError, "weights 'w'"),
    "fc.input_layer({'x': x}, [])": (ValueError, "at least one column"),
    "fc.input_layer({'x': x}, [3])": (ValueError, "expected feature columns"),
    "fc.input_layer({'x': x}, {'a': 3})": (ValueError, "is a dict"),
    "fc.input_layer({'x': x}, [fc.numeric_column('x'), fc.numeric_column('x')])": (
        ValueError, "two columns are called 'x'"),
    "fc.input_layer({'x': x}, [identity('i', 3)])": (ValueError, "embedding_column"),
    "fc.input_layer({'x': x}, [fc.numeric_column('y')])": (ValueError, "no feature 'y'; there are: x"),
    "fc.input_layer({'x': 1.0}, [fc.numeric_column('x')])": (ValueError, "is a scalar"),
    "fc.input_layer({'x': x, 'y': [1.0, 2.0]}, [fc.numeric_column('x'), fc.numeric_column('y')])": (
        ValueError, "'x' has 3 examples, 'y' 2"),
    "fc.input_layer({'i': x}, [fc.indicator_column(identity('i', 3))])": (ValueError, "integers"),
    "fc.input_layer({'w': x}, [fc.indicator_column(hashed('w', 3))])": (ValueError, "strings or integers"),
    "fc.input_layer({'i': [1]}, [fc.indicator_column(fc.sequence_categorical_column_with_identity('i', 3))])": (
        ValueError, "input_layer takes no sequence"),
    "fc.linear_model({'x': x}, [fc.sequence_numeric_column('x')])": (ValueError, "dense and categorical"),
    "fc.make_parse_example_spec([3])": (ValueError, "expected feature columns"),
    "fc.make_parse_example_spec([fc.numeric_column('x'), identity('x', 3)])": (ValueError, "different ways"),
    "tf.train.init_from_checkpoint('/none/such', {})": (Exception, "such"),
}  # fmt: skip


@pytest.mark.parametrize("code", _BAD)
def test_what_cannot_be_is_told(code: str) -> None:
    kind, said = _BAD[code]
    with tf.Graph().as_default(), pytest.raises(kind, match=said):
        short = {
            "identity": fc.categorical_column_with_identity, "hashed": fc.categorical_column_with_hash_bucket,
            "listed": fc.categorical_column_with_vocabulary_list, "filed": fc.categorical_column_with_vocabulary_file,
        }  # fmt: skip
        eval(code, {**short, "tf": tf, "fc": fc, "x": tf.constant([1.0, 2.0, 3.0])})


def test_parse_specs_join() -> None:
    columns = [
        fc.numeric_column("x", 2, default_value=1.0),
        fc.weighted_categorical_column(fc.categorical_column_with_hash_bucket("w", 5), "weight"),
        fc.crossed_column(["a", fc.bucketized_column(fc.numeric_column("x", 2, 1.0), [0.0])], 5),
        fc.embedding_column(fc.categorical_column_with_identity("i", 3), 2),
    ]
    spec = fc.make_parse_example_spec(columns)
    words = dict.fromkeys("wa", tf.VarLenFeature(tf.string))
    weight = tf.VarLenFeature(tf.float32)
    wanted = {"x": tf.FixedLenFeature((2,), tf.float32, (1.0, 1.0)), "weight": weight, "i": tf.VarLenFeature(tf.int64)}
    assert spec == {**words, **wanted}


def _run(tensors: Any) -> Any:
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.tables_initializer()])
        return session.run(tensors)


def test_sequences_have_their_lengths() -> None:
    from toolkit.client.feature_columns.layers import sequence_input_layer

    with tf.Graph().as_default():
        words = tf.SparseTensor([[0, 0], [0, 1], [2, 0]], ["a", "b", "z"], [3, 2])
        numbers = tf.SparseTensor([[0, 0], [0, 1], [2, 0]], [1.0, 2.0, 3.0], [3, 2])
        columns = [
            fc.sequence_numeric_column("n"),
            fc.indicator_column(fc.sequence_categorical_column_with_vocabulary_list("w", ["a", "b"])),
        ]
        found, lengths = _run(sequence_input_layer({"w": words, "n": numbers}, columns))
    np.testing.assert_array_equal(lengths, [2, 0, 1])
    wanted = [[[1, 1, 0], [2, 0, 1]], [[0, 0, 0], [0, 0, 0]], [[3, 0, 0], [0, 0, 0]]]
    np.testing.assert_array_equal(found, wanted)


def _checkpoint(folder: Path) -> str:
    with tf.Graph().as_default(), tf.Session() as session:
        tf.get_variable("table", initializer=np.arange(6, dtype=np.float32).reshape(3, 2))
        session.run(tf.global_variables_initializer())
        return tf.train.Saver().save(session, str(folder / "model"))


def test_variables_start_from_checkpoints(tmp_path: Path) -> None:
    prefix = _checkpoint(tmp_path)
    with tf.Graph().as_default():
        column = fc.embedding_column(
            fc.categorical_column_with_identity("i", 3), 2, ckpt_to_load_from=prefix, tensor_name_in_ckpt="table"
        )
        np.testing.assert_array_equal(_run(fc.input_layer({"i": [2, 0]}, [column])), [[4, 5], [0, 1]])
    for code, said in {
        "tf.train.init_from_checkpoint(prefix, {'other': v})": "no tensor 'other' for the variable 'v'",
        "tf.train.init_from_checkpoint(prefix, {'table': v})": "shape .3, 2., the variable 'v' .2.",
        "tf.train.init_from_checkpoint(prefix, {'table': 'w'})": "no variable 'w'",
        "tf.train.warm_start(prefix, 'none')": "no variable's name matches none",
        "tf.train.warm_start(prefix, [v], var_name_to_prev_var_name={'v': 'table', 'w': 'table'})": "shape",
    }.items():
        with tf.Graph().as_default(), pytest.raises(ValueError, match=said):
            eval(code, {"tf": tf, "prefix": prefix, "v": tf.get_variable("v", [2])})


def test_rows_follow_words(tmp_path: Path) -> None:
    prefix = _checkpoint(tmp_path)
    (tmp_path / "old").write_text("a\nb\nc\n")
    (tmp_path / "new").write_text("c\nnew\na\n")
    vocabulary = tf.train.VocabInfo(
        str(tmp_path / "new"), 3, 0, str(tmp_path / "old"), backup_initializer=tf.constant_initializer(-1.0)
    )
    with tf.Graph().as_default():
        table = tf.get_variable("mine", [3, 2], partitioner=tf.fixed_size_partitioner(2))
        tf.train.warm_start(prefix, "mine", {"mine": vocabulary}, {"mine": "table"})
        np.testing.assert_array_equal(_run(tf.convert_to_tensor(table)), [[4, 5], [-1, -1], [0, 1]])
