"""Input pipelines give the elements, and fail with the errors, that they do in TensorFlow."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.tf1 import node_oracle
from tests.tf1.calls import separated
from toolkit import tensorflow as ours
from toolkit.formats.tfrecord import write_records

pytestmark = pytest.mark.tensorflow

PIPELINES = separated("""
d = tf.data.Dataset.range(7).map(lambda x: x * x).filter(lambda x: x % 2 == 0)
---
d = tf.data.Dataset.from_tensor_slices({'a': np.arange(6.0), 'b': np.arange(12).reshape(6, 2)}).batch(4)
---
d = tf.data.Dataset.range(20).shuffle(5, seed=3).repeat(2)
---
tf.set_random_seed(7)
d = tf.data.Dataset.range(10).shuffle(10).map(lambda x: (x, tf.random_uniform([2], seed=4)))
---
d = tf.data.Dataset.range(1, 5).flat_map(lambda x: tf.data.Dataset.range(x).map(lambda y: x * 10 + y))
---
d = tf.data.Dataset.range(1, 6).interleave(lambda x: tf.data.Dataset.from_tensors(x).repeat(x), 2, 2)
---
d = tf.data.Dataset.range(1, 6).interleave(lambda x: tf.data.Dataset.range(x), 3, num_parallel_calls=2)
---
d = tf.data.Dataset.range(1, 6).map(lambda x: tf.fill([x], x)).padded_batch(2, [None])
---
d = tf.data.Dataset.range(1, 6).map(lambda x: (tf.fill([x], x), x))
d = d.padded_batch(2, ([6], []), (np.int64(-1), np.int64(0)))
---
d = tf.data.Dataset.range(10).window(3, shift=2).flat_map(lambda w: w.batch(3))
---
d = tf.data.Dataset.zip((tf.data.Dataset.range(3), tf.data.Dataset.from_tensors('x').repeat())).enumerate(5)
---
d = tf.data.Dataset.range(10).shard(3, 1).concatenate(tf.data.Dataset.range(2)).cache().repeat(2).skip(1).take(6)
---
d = tf.data.Dataset.from_tensor_slices(np.arange(12).reshape(2, 3, 2)).unbatch().apply(tf.data.experimental.unique())
---
d = tf.data.Dataset.range(10).group_by_window(lambda x: x % 3, lambda k, w: w.batch(4).map(lambda b: (k, b)), 4)
---
d = tf.data.Dataset.range(9).map(lambda x: tf.fill([x], x))
d = d.bucket_by_sequence_length(lambda x: tf.size(x), [3, 6], [2, 2, 2])
---
d = tf.data.Dataset.range(8).scan(np.int64(1), lambda s, x: (s + x, s * 2)).take_while(lambda x: x < 30)
---
d = tf.data.Dataset.range(10).apply(tf.data.experimental.map_and_batch(lambda x: {'k': x + 1}, 4, drop_remainder=True))
---
d = tf.data.Dataset.choose_from_datasets(
    [tf.data.Dataset.from_tensors('a').repeat(), tf.data.Dataset.from_tensors('b').repeat()],
    tf.data.Dataset.from_tensor_slices(np.array([0, 1, 1, 0])))
---
d = tf.data.Dataset.sample_from_datasets([tf.data.Dataset.range(5), tf.data.Dataset.range(10, 15)], [0.5, 0.5], seed=1)
---
d = tf.data.Dataset.range(5).map(lambda x: tf.cond(x > 2, lambda: x * 2, lambda: -x))
---
d = tf.data.Dataset.range(5).map(lambda x: tf.while_loop(lambda i: i < 10, lambda i: i + x + 1, [x]))
---
v = tf.Variable(3.0)
t = tf.constant([1.0, 2.0])
d = tf.data.Dataset.range(3).map(lambda x: tf.to_float(x) * v + t)
---
t = tf.SparseTensor([[0, 1], [1, 0], [1, 1]], [1.0, 2.0, 3.0], [2, 3])
d = tf.data.Dataset.from_tensor_slices((t, [7, 8])).map(lambda s, i: (s, i + 1))
---
t = tf.SparseTensor([[0, 1], [1, 0], [1, 1]], [1.0, 2.0, 3.0], [2, 3])
d = tf.data.Dataset.from_sparse_tensor_slices(t)
---
d = tf.data.Dataset.from_tensor_slices([[1, 2], [3, 4]]).sparse_batch(2, [3])
---
d = tf.data.TextLineDataset(['lines.txt', 'lines.txt']).skip(1).map(lambda line: tf.string_join([line, '!']))
---
d = tf.data.TextLineDataset('lines.txt.gz', compression_type='GZIP')
---
d = tf.data.FixedLengthRecordDataset('lines.txt', 3, header_bytes=1, footer_bytes=1)
---
d = tf.data.TFRecordDataset(['a.tfrecord'] * 2, num_parallel_reads=2).repeat(2)
---
d = tf.data.Dataset.list_files('*.txt', shuffle=False).interleave(tf.data.TextLineDataset, cycle_length=2)
---
d = tf.data.Dataset.list_files('none*', shuffle=False)
---
d = tf.data.TextLineDataset('nowhere.txt')
---
d = tf.data.Dataset.range(3).map(lambda x: tf.check_numerics(1.0 / tf.to_float(x), 'x')).ignore_errors()
---
d = tf.data.Dataset.range(3).map(lambda x: tf.check_numerics(1.0 / tf.to_float(1 - x), 'one'))
---
d = tf.data.Dataset.range(3).batch(tf.constant(0, tf.int64))
---
d = tf.data.Dataset.counter(2, 3).take(3).map(lambda x: [x, x + 1])
""")


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small files in the current folder."""
    (tmp_path / "lines.txt").write_text("one\ntwo\nthree\n")
    (tmp_path / "more.txt").write_text("four\nfive")
    with gzip.open(tmp_path / "lines.txt.gz", "wb") as out:
        out.write(b"one\r\ntwo\n")
    write_records(tmp_path / "a.tfrecord", [b"first", b"", b"third"])
    monkeypatch.chdir(tmp_path)


def elements(tf: Any, code: str) -> tuple[list[Any], str]:
    """What a pipeline gives, flat, and how it ends: the class of the error."""
    with tf.Graph().as_default():
        scope = {"tf": tf, "np": np}
        exec(compile(code, "<pipeline>", "exec"), scope)
        iterator = tf.data.make_initializable_iterator(scope["d"])
        following = iterator.get_next()
        found: list[Any] = []
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            try:
                session.run(iterator.initializer)
                while True:
                    found.append(session.run(following))
            except tf.errors.OpError as error:
                return found, type(error).__name__


def flat(value: Any) -> list[Any]:
    from toolkit.client import nest

    return nest.flatten(value)


@pytest.mark.parametrize("code", PIPELINES)
@pytest.mark.usefixtures("files")
def test_pipelines_give_tensorflows_elements(code: str) -> None:
    with node_oracle.semantics():
        wanted, their_end = elements(node_oracle.theirs(), code)
    got, end = elements(ours, code)
    assert end == their_end
    assert len(got) == len(wanted)
    for mine, theirs in zip(got, wanted, strict=True):
        assert len(flat(mine)) == len(flat(theirs))
        for one, other in zip(flat(mine), flat(theirs), strict=True):
            assert np.asarray(one).dtype == np.asarray(other).dtype
            np.testing.assert_array_equal(one, other)


MISTAKES = separated("""
tf.data.Dataset.from_tensor_slices(([1, 2], [1, 2, 3]))
---
tf.data.Dataset.from_tensor_slices(3)
---
tf.data.Dataset.range(3).filter(lambda x: x)
---
tf.data.Dataset.range(3).flat_map(lambda x: x)
---
tf.data.Dataset.range(3).map(lambda x: None)
---
tf.data.Dataset.range(3).map(3)
---
tf.data.Dataset.range()
---
tf.data.Dataset.range(3).concatenate(tf.data.Dataset.from_tensors('a'))
---
tf.data.Dataset.zip([tf.data.Dataset.range(3), 3])
---
tf.data.Dataset.from_tensors(tf.placeholder(tf.float32, [])).make_one_shot_iterator()
---
v = tf.get_variable('v', [])
tf.data.Dataset.range(3).map(lambda x: tf.to_float(x) * v).make_one_shot_iterator()
---
tf.data.Iterator.from_structure(tf.int32, tf.TensorShape([])).make_initializer(tf.data.Dataset.range(3))
---
tf.data.Iterator.from_structure(tf.int64, tf.TensorShape([])).initializer
---
list(tf.data.Dataset.range(3))
---
tf.data.Dataset.range(3).padded_batch(2, [3])
---
tf.data.Dataset.range(3).reduce('a', lambda s, x: x)
---
tf.data.Options().no_such_setting = 3
""")


@pytest.mark.parametrize("code", MISTAKES)
def test_mistakes_are_refused_where_tensorflow_refuses_them(code: str) -> None:
    for tf in (node_oracle.theirs(), ours):
        with node_oracle.semantics(), tf.Graph().as_default(), pytest.raises(Exception) as refused:
            exec(compile(code, "<mistake>", "exec"), {"tf": tf, "np": np})
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) > 20


def test_feedable_and_reinitializable_iterators() -> None:
    tf = ours
    with tf.Graph().as_default(), tf.Session() as session:
        one, two = tf.data.Dataset.range(3), tf.data.Dataset.range(10, 14)
        handle = tf.placeholder(tf.string, [])
        chosen = tf.data.Iterator.from_string_handle(handle, one.output_types, one.output_shapes)
        following = chosen.get_next()
        first = one.make_one_shot_iterator()
        second = two.make_initializable_iterator()
        names = session.run([first.string_handle(), second.string_handle()])
        session.run(second.initializer)
        assert [session.run(following, {handle: name}) for name in (*names, *names)] == [0, 10, 1, 11]
        either = tf.data.Iterator.from_structure(one.output_types, one.output_shapes)
        element = either.get_next()
        start_one, start_two = either.make_initializer(one), either.make_initializer(two)
        session.run(start_two)
        assert session.run(element) == 10
        session.run(start_one)
        assert [session.run(element) for _ in range(3)] == [0, 1, 2]
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(element)


#: functions to `apply`, and the methods that do the same
APPLIED = separated(r"""
apply(shuffle_and_repeat(5, 2, seed=3)) | shuffle(5, seed=3).repeat(2)
---
apply(map_and_batch(lambda x: x * 2, 4)) | map(lambda x: x * 2).batch(4)
---
apply(parallel_interleave(lambda x: tf.data.Dataset.range(x), 2)) | interleave(lambda x: tf.data.Dataset.range(x), 2, 1)
---
apply(group_by_window(lambda x: x % 2, lambda k, w: w.batch(3), 3)) \
    | group_by_window(lambda x: x % 2, lambda k, w: w.batch(3), 3)
---
batch(4).apply(unbatch()) | take(-1)
---
apply(enumerate_dataset(3)) | enumerate(3)
---
map(lambda x: tf.fill([2], x)).apply(dense_to_sparse_batch(3, [4])) \
    | map(lambda x: tf.fill([2], x)).sparse_batch(3, [4])
---
apply(scan(np.int64(0), lambda s, x: (s + x, s))) | scan(np.int64(0), lambda s, x: (s + x, s))
---
map(lambda x: x % 3).apply(unique()) | map(lambda x: x % 3).unique()
---
apply(ignore_errors()) | take(10)
---
apply(prefetch_to_device('/cpu:0')) | prefetch(1)
---
map(lambda x: tf.fill([x], x)).apply(bucket_by_sequence_length(lambda x: tf.size(x), [4], [2, 3])) \
    | map(lambda x: tf.fill([x], x)).bucket_by_sequence_length(lambda x: tf.size(x), [4], [2, 3])
""")


@pytest.mark.parametrize("module", ["experimental", "contrib"])
@pytest.mark.parametrize("row", APPLIED)
def test_functions_to_apply_do_what_methods_do(module: str, row: str) -> None:
    import re

    there = "tf.data.experimental" if module == "experimental" else "tf.contrib.data"
    one, other = (" ".join(side.split()).strip(" \\") for side in row.split(" | "))
    one = re.sub(r"apply\((\w+)", rf"apply({there}.\1", one)
    made, end = elements(ours, f"d = tf.data.Dataset.range(10).{one}")
    wanted, their_end = elements(ours, f"d = tf.data.Dataset.range(10).{other}")
    assert end == their_end == "OutOfRangeError"
    assert [[np.asarray(leaf).tolist() for leaf in flat(each)] for each in made] == [
        [np.asarray(leaf).tolist() for leaf in flat(each)] for each in wanted
    ]
