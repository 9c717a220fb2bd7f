"""Input pipelines give the elements, and fail with the errors, that they do in TensorFlow."""

from __future__ import annotations

import gzip
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from schemas import example_pb2
from tests.tf1 import node_oracle
from tests.tf1.calls import separated
from toolkit import tensorflow as ours
from toolkit.formats.records.tfrecord import write_records

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
---
d = tf.data.experimental.CsvDataset('table.csv', [tf.int32, tf.float32, ['none']], header=True)
---
d = tf.data.experimental.CsvDataset(['table.csv'], [[7], tf.string], header=True, select_cols=[0, 2], na_value='b')
---
d = tf.data.experimental.CsvDataset('table.csv', [tf.int32, tf.int32, tf.string], header=True)
---
d = tf.data.experimental.make_csv_dataset('table.csv', 2, num_epochs=1, shuffle=False, label_name='n')
---
d = tf.data.experimental.make_csv_dataset(['table.csv'], 2, shuffle=False, select_columns=['t', 'n'], num_epochs=1)
---
d = tf.data.experimental.make_csv_dataset(
    'table.csv', 3, ['a', 'b', 'c'], [tf.int64, tf.float64, tf.string], shuffle_seed=3, num_epochs=2)
---
d = tf.data.experimental.SqlDataset('sqlite', 'rows.sqlite', 'SELECT n, t FROM rows ORDER BY n', (tf.int32, tf.string))
---
shown = {'n': tf.FixedLenFeature([2], tf.int64), 't': tf.VarLenFeature(tf.string)}
d = tf.data.TFRecordDataset('examples.tfrecord').batch(2).apply(tf.data.experimental.parse_example_dataset(shown))
---
shown = {'n': tf.FixedLenFeature([2], tf.int64), 'x': tf.FixedLenFeature([], tf.float32, 0.5)}
d = tf.data.experimental.make_batched_features_dataset(
    'examples.tfrecord', 2, shown, tf.data.TFRecordDataset, label_key='n', num_epochs=1, shuffle=False)
---
shown = {'n': tf.FixedLenFeature([2], tf.int64)}
d = tf.data.experimental.make_batched_features_dataset(
    'examples.tfrecord', 2, shown, tf.data.TFRecordDataset, num_epochs=3, shuffle_seed=4)
---
reducer = tf.data.experimental.Reducer(lambda k: (k, np.int64(0)), lambda s, x: (s[0], s[1] + x), lambda k, n: [k, n])
d = tf.data.Dataset.range(10).apply(tf.data.experimental.group_by_reducer(lambda x: x % 3, reducer))
---
d = tf.data.Dataset.range(40).map(lambda x: tf.cast(x % 2, tf.int32))
d = d.apply(tf.data.experimental.rejection_resample(lambda x: x, [0.5, 0.5], [0.5, 0.5], seed=1))
---
d = tf.data.Dataset.range(40).map(lambda x: tf.cast(x % 4 > 0, tf.int32))
d = d.apply(tf.data.experimental.rejection_resample(lambda x: x, [1.0, 0.0], [0.25, 0.75], seed=1))
---
d = tf.data.Dataset.range(3).apply(tf.data.experimental.copy_to_device('/cpu:0'))
---
d = tf.data.Dataset.range(2)
d = tf.data.experimental.from_variant(tf.data.experimental.to_variant(d), tf.data.experimental.get_structure(d))
""")


def _example(n: int) -> example_pb2.Example:
    """An example with n texts."""
    made = example_pb2.Example()
    made.features.feature["n"].int64_list.value.extend([n, n * n])
    made.features.feature["t"].bytes_list.value.extend([b"t"] * n)
    return made


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small files in the current folder."""
    (tmp_path / "lines.txt").write_text("one\ntwo\nthree\n")
    (tmp_path / "more.txt").write_text("four\nfive")
    with gzip.open(tmp_path / "lines.txt.gz", "wb") as out:
        out.write(b"one\r\ntwo\n")
    (tmp_path / "table.csv").write_text("n,x,t\n1,2.5,a\n2,3,b\n-3,,c\n")
    with sqlite3.connect(tmp_path / "rows.sqlite") as table:
        table.execute("CREATE TABLE rows (n INTEGER, t TEXT)")
        table.executemany("INSERT INTO rows VALUES (?, ?)", [(2, "b"), (1, "a")])
    table.close()
    write_records(tmp_path / "a.tfrecord", [b"first", b"", b"third"])
    write_records(tmp_path / "examples.tfrecord", [_example(n).SerializeToString() for n in range(3)])
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
    from toolkit.client.structures import nest

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
---
tf.data.experimental.CsvDataset('x', [tf.complex64])
---
tf.data.experimental.make_csv_dataset('nowhere*.csv', 2)
---
tf.data.experimental.TFRecordWriter('x').write(tf.data.Dataset.range(3))
---
tf.data.Dataset.range(3).apply(tf.data.experimental.parse_example_dataset({'a': tf.VarLenFeature(tf.int64)}))
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


def test_the_end_is_an_optional_without_a_value() -> None:
    tf = ours
    with tf.Graph().as_default(), tf.Session() as session:
        iterator = tf.data.Dataset.range(2).map(lambda x: (x, x * 2)).make_one_shot_iterator()
        following = tf.data.experimental.get_next_as_optional(iterator)
        there = following.has_value()
        assert [session.run((there, following.get_value())) for _ in range(2)] == [(True, (0, 0)), (True, (1, 2))]
        assert not session.run(there)
        given = tf.data.experimental.Optional.from_value({"a": tf.constant(3)})
        none = tf.data.experimental.Optional.none_from_structure(given.value_structure)
        assert session.run([given.get_value(), given.has_value(), none.has_value()]) == [{"a": 3}, True, False]
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(none.get_value())


@pytest.mark.usefixtures("files")
def test_texts_are_written_to_records_and_read_as_batches() -> None:
    tf = ours
    with tf.Graph().as_default(), tf.Session() as session:
        texts = tf.data.TextLineDataset("lines.txt")
        session.run(tf.data.experimental.TFRecordWriter("out.tfrecord", "GZIP").write(texts))
        following = tf.data.TFRecordDataset("out.tfrecord", "GZIP").make_one_shot_iterator().get_next()
        assert [session.run(following) for _ in range(3)] == [b"one", b"two", b"three"]
        shown = {"n": tf.FixedLenFeature([2], tf.int64)}
        batch = tf.contrib.data.read_batch_features("examples.tfrecord", 3, shown, randomize_input=False)
        assert session.run(batch)["n"].tolist() == [[0, 0], [1, 1], [2, 4]]


def test_measures_leave_elements_as_they_are() -> None:
    for name in ("latency_stats", "bytes_produced_stats"):
        found, end = elements(ours, f"d = tf.data.Dataset.range(2).apply(tf.data.experimental.{name}('tag'))")
        assert (found, end) == ([0, 1], "OutOfRangeError")


def test_what_only_contrib_had() -> None:
    tf = ours
    contrib = tf.contrib.data
    slid, _ = elements(tf, "d = tf.data.Dataset.range(6).apply(tf.contrib.data.sliding_window_batch(3, stride=2))")
    assert [each.tolist() for each in slid] == [[0, 1, 2], [2, 3, 4]]
    turns, _ = elements(
        tf, "d = tf.data.Dataset.range(1, 4).apply(tf.contrib.data.sloppy_interleave(tf.data.Dataset.range, 2))"
    )
    assert sorted(int(each) for each in turns) == [0, 0, 0, 1, 1, 2]
    with tf.Graph().as_default(), tf.Session() as session:
        total = contrib.Reducer(lambda key: key, lambda state, x: state + x, lambda state: state)
        assert session.run(contrib.reduce_dataset(tf.data.Dataset.range(5), total)) == 10
        lines = tf.data.Dataset.range(3).map(lambda x: tf.fill([x], x))
        checked = lines.apply(contrib.assert_element_shape(tf.TensorShape([0])))
        assert checked.output_shapes.as_list() == [0]
        following = checked.make_one_shot_iterator().get_next()
        assert session.run(following).tolist() == []
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(following)
