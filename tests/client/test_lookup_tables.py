"""What users get wrong about tables is one clear line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from toolkit import tensorflow as tf
from toolkit.errors import UsageError

lookup: Any = tf.contrib.lookup

MISTAKES: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: lookup.index_table_from_file(""), UsageError, "expected the name of a file"),
    (lambda: lookup.index_table_from_file("x", -1), UsageError, "num_oov_buckets -1: expected 0 or more"),
    (lambda: lookup.index_table_from_file("x", vocab_size=0), UsageError, "vocab_size 0: expected at least 1"),
    (lambda: lookup.index_table_from_file("x", key_dtype=tf.float32), TypeError, "expected integers or strings"),
    (lambda: lookup.index_table_from_tensor(None), UsageError, "expected a list of words"),
    (lambda: lookup.index_table_from_tensor([1, 2]), UsageError, "the words are of int32, expected string"),
    (lambda: lookup.TextFileInitializer("x", tf.string, -1, tf.int64, 0), TypeError, "numbers of lines are int64"),
    (lambda: lookup.TextFileInitializer("x", tf.string, -3, tf.int64, 0), UsageError, "key_index -3: expected a col"),
    (lambda: lookup.TextFileInitializer("x", tf.float32, -2, tf.int64, 0), TypeError, "whole lines are strings or"),
    (lambda: lookup.IdTableWithHashBuckets(None, 0), UsageError, "needs num_oov_buckets of at least 1"),
    (lambda: lookup.StrongHashSpec([1]), UsageError, "two whole numbers"),
    (lambda: tf.lookup.StaticVocabularyTable(None, 0), UsageError, "num_oov_buckets 0: expected at least 1"),
    (
        lambda: lookup.index_table_from_tensor(["a"]).lookup(tf.constant([1])),
        TypeError,
        "the keys of 'hash_table' are of string, got int32; cast them",
    ),
]


@pytest.mark.parametrize(("make", "kind", "message"), MISTAKES)
def test_mistakes_are_one_line(make: Callable[[], Any], kind: type[Exception], message: str) -> None:
    with tf.Graph().as_default(), pytest.raises(kind, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)
