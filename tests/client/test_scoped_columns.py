"""Columns of tf.contrib.layers: what they refuse, and what layers of tf.feature_column make of them.

Their nodes and values are those of TensorFlow 1.15: tests/tf1/dropped/contrib_columns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from toolkit import tensorflow as tf

cl = tf.contrib.layers
WORDS = cl.sparse_column_with_hash_bucket("w", 5)
NUMBER = cl.real_valued_column("a")

REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "no_integer": (lambda: cl.real_valued_column("a", 1.5), TypeError, "dimension of 'a' must be an integer; got 1.5"),
    "nothing": (lambda: cl.real_valued_column("a", 0), ValueError, "dimension of 'a' must be at least 1; got 0"),
    "texts": (lambda: cl.real_valued_column("a", dtype=tf.string), ValueError, "dtype of 'a' must be one of numbers"),
    "length": (
        lambda: cl.real_valued_column("a", 2, [1.0]), ValueError, "default_value of 'a' must have 2 numbers; got 1"
    ),
    "default": (
        lambda: cl.real_valued_column("a", 1, 1.5, tf.int64), TypeError, "must be of int64; got 1.5"
    ),
    "falling": (lambda: cl.bucketized_column(NUMBER, [2.0, 1.0]), ValueError, "boundaries of 'a' must be a list"),
    "of_words": (lambda: cl.bucketized_column(WORDS, [1.0]), TypeError, "source_column must be a real_valued_column"),
    "no_bucket": (
        lambda: cl.sparse_column_with_hash_bucket("w", 0), ValueError, "'w' needs a bucket size of at least 1; got 0"
    ),
    "float_words": (
        lambda: cl.sparse_column_with_hash_bucket("w", 5, dtype=tf.float32), ValueError, "dtype of 'w' must be string"
    ),
    "hash_keys": (
        lambda: cl.sparse_column_with_hash_bucket("w", 5, hash_keys=[3]), ValueError, "must be a list of pairs"
    ),
    "text_ids": (
        lambda: cl.sparse_column_with_integerized_feature("n", 5, dtype=tf.string), ValueError, "an integer type"
    ),
    "no_size": (
        lambda: cl.sparse_column_with_vocabulary_file("w", "words.txt"), ValueError, "vocab_size of 'w' is missing"
    ),
    "text_weights": (
        lambda: cl.weighted_sparse_column(WORDS, "x", tf.string), ValueError, "the weights 'x' must be numbers"
    ),
    "initializer": (
        lambda: cl.embedding_column(WORDS, 2, initializer=1.0), ValueError, "initializer of the embedding of 'w'"
    ),
    "half_a_checkpoint": (
        lambda: cl.embedding_column(WORDS, 2, ckpt_to_load_from="model"), ValueError, "give ckpt_to_load_from and"
    ),
    "one_to_cross": (lambda: cl.crossed_column([WORDS], 5), ValueError, "at least two columns; got 1"),
    "numbers_to_cross": (lambda: cl.crossed_column([WORDS, NUMBER], 5), TypeError, "takes sparse, bucketized and"),
    "one_bucket": (lambda: cl.crossed_column([WORDS, WORDS], 1), ValueError, "must be at least 2; got 1"),
    "no_list": (lambda: cl.shared_embedding_columns("w", 2), TypeError, "must be a list of columns; got 'w'"),
    "nothing_shared": (lambda: cl.shared_embedding_columns([], 2), ValueError, "sparse_id_columns is empty"),
    "other_words": (
        lambda: cl.shared_embedding_columns([WORDS, cl.sparse_column_with_hash_bucket("v", 6)], 2),
        ValueError,
        "'w' and 'v' have other categories",
    ),
    "twice": (lambda: cl.check_feature_columns([NUMBER, NUMBER]), ValueError, "'a'"),
    "a_dict": (lambda: cl.check_feature_columns({"a": NUMBER}), ValueError, "feature_columns is a dict"),
    "no_column": (lambda: cl.create_feature_spec_for_parsing(["a"]), TypeError, "feature_columns holds 'a'"),
    "no_feature": (
        lambda: cl.input_from_feature_columns({"b": [[1.0]]}, [NUMBER]),
        ValueError,
        "there is no feature 'a'; there are: b",
    ),
    "categories_in_deep": (
        lambda: cl.input_from_feature_columns({"w": tf.constant([["u"]])}, [WORDS]), ValueError, "embedding_column"
    ),
    "embedding_in_wide": (
        lambda: cl.weighted_sum_from_feature_columns({"w": tf.constant([["u"]])}, [cl.embedding_column(WORDS, 2)], 1),
        ValueError,
        "is none of linear models; give 'w'",
    ),
    "numbers_in_joint": (
        lambda: cl.joint_weighted_sum_from_feature_columns({"a": tf.constant([[1.0]])}, [NUMBER], 1),
        NotImplementedError,
        "make a bucketized_column of it",
    ),
    "buckets_in_sequence": (
        lambda: cl.sequence_input_from_feature_columns({}, [cl.bucketized_column(NUMBER, [1.0])]),
        ValueError,
        "none of sequences",
    ),
    "inferred_texts": (
        lambda: cl.infer_real_valued_columns({"w": tf.constant(["u"])}), ValueError, "write its column yourself"
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_mistakes_are_told(case: str) -> None:
    make, kind, told = REFUSED[case]
    with tf.Graph().as_default(), pytest.raises(kind) as error:
        make()
    assert told in str(error.value)
    assert "\n" not in str(error.value)


def test_layers_of_feature_column_take_them() -> None:
    features = {"a": [[0.2], [0.7]], "w": [["u"], ["v"]]}
    bucket = cl.bucketized_column(NUMBER, [0.5])
    with tf.Graph().as_default(), tf.Session() as session:
        given = {key: tf.constant(value) for key, value in features.items()}
        deep = tf.feature_column.input_layer(given, [NUMBER, bucket, cl.one_hot_column(WORDS)])
        wide = tf.feature_column.linear_model(given, [NUMBER, bucket, WORDS])
        session.run(tf.global_variables_initializer())
        found = session.run(deep)
        np.testing.assert_array_equal(found[:, :3], np.array([[0.2, 1, 0], [0.7, 0, 1]], "f"))
        np.testing.assert_array_equal(found[:, 3:].sum(axis=1), [1, 1])
        np.testing.assert_array_equal(session.run(wide), [[0], [0]])


def test_tables_start_from_a_checkpoint(tmp_path: Any) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        kept = tf.get_variable("table", initializer=np.arange(10, dtype="f").reshape(5, 2))
        session.run(kept.initializer)
        path = tf.train.Saver().save(session, str(tmp_path / "model"))
    with tf.Graph().as_default(), tf.Session() as session:
        column = cl.embedding_column(WORDS, 2, ckpt_to_load_from=path, tensor_name_in_ckpt="table")
        cl.input_from_feature_columns({"w": tf.constant([["u"]])}, [column])
        session.run(tf.global_variables_initializer())
        np.testing.assert_array_equal(session.run(tf.global_variables()[0]), np.arange(10).reshape(5, 2))


def test_features_may_be_of_unknown_batches() -> None:
    with tf.Graph().as_default():
        given = {"a": tf.placeholder(tf.float64, [None, 3, 2])}
        (column,) = cl.infer_real_valued_columns(given)
        assert column.dimension == 6
        assert cl.input_from_feature_columns(given, [column]).get_shape().as_list() == [None, 6]
