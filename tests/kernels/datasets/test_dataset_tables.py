"""Datasets of tables, databases and examples, and rebatched ones, against TensorFlow's on the same files."""

from __future__ import annotations

import gzip
import sqlite3
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.kernels.datasets.test_dataset_ops import check, raw, rng
from tests.kernels.op_suite import Case, run_ours
from tests.kernels.step import FakeStep
from toolkit.errors import InvalidArgumentError
from toolkit.kernels.cpu.datasets import table as dataset_table
from toolkit.kernels.datasets.base import Run, a_dataset

pytestmark = pytest.mark.tensorflow

CSV = {
    "plain": "1,2.5,a\n3,-4e3,b\n",
    "no newline at the end": "1,2.5,a\n3,4,b",
    "carriage returns": "1,2.5,a\r\n3,4,b\r\n",
    "quotes": '1,2,"a ""b"", c"\n3,4,"two\nlines"\n',
    "missing": ",,\n5,,x\n",
    "too few": "1,2.5\n3,4,b\n",
    "too many": "1,2.5,a,4\n3,4,b\n",
    "no number": "one,2,a\n3,4,b\n",
    "no integer": "1.5,2,a\n3,4,b\n",
    "large": "99999999999,2,a\n3,4,b\n",
    "empty file": "",
    "spaces": " 1 , 2 , a \n",
    "na": "NA,2,NA\n3,NA,b\n",
}


@pytest.mark.parametrize("name", CSV)
@pytest.mark.parametrize("defaults", [True, False])
def test_csv(tf: ModuleType, tmp_path: Path, name: str, defaults: bool) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(CSV[name].encode())
    columns = (
        [np.int32([7]), np.float32([0.5]), np.array([b"none"], object)] if defaults else ["int32", "float32", "string"]
    )
    check(
        tf,
        lambda tf: tf.data.experimental.CsvDataset(
            str(path), [c if defaults else tf.as_dtype(c) for c in columns], na_value="NA"
        ),
    )


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("a,b,c\n1,2,3\n4,5,6\n", {"header": True, "select_cols": [0, 2]}),
        ("1;2;3\n4;5;6\n", {"field_delim": ";", "exclude_cols": [1]}),
        ('1,"2,5"\n', {"use_quote_delim": False}),
        ("1,2\n", {"select_cols": [0, 5]}),
        ("", {"header": True}),
    ],
)
def test_csv_options(tf: ModuleType, tmp_path: Path, text: str, options: dict[str, Any]) -> None:
    paths = [tmp_path / "a.csv", tmp_path / "b.csv"]
    for path in paths:
        path.write_text(text)
    check(tf, lambda tf: tf.data.experimental.CsvDataset([*map(str, paths)], [tf.string, tf.string], **options))


def test_csv_compressed(tf: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"1,2\n3,4\n"))
    check(tf, lambda tf: tf.data.experimental.CsvDataset(str(path), [tf.int64, tf.float64], compression_type="GZIP"))


def test_csv_missing_file(tf: ModuleType, tmp_path: Path) -> None:
    check(tf, lambda tf: tf.data.experimental.CsvDataset(str(tmp_path / "no.csv"), [tf.int64]))


# -- databases --------------------------------------------------------------------------------------------


@pytest.fixture
def database(tmp_path: Path) -> str:
    path = tmp_path / "t.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("create table t (name text, age integer, score real, alive integer)")
        rows = [("Ann", 31, 1.5, 1), ("Bob", -7, -2.25, 0), (None, None, None, None), ("12x", 2**40, 1e300, 5)]
        connection.executemany("insert into t values (?, ?, ?, ?)", rows)
    connection.close()
    return str(path)


@pytest.mark.parametrize(
    ("query", "types"),
    [
        ("select name, age, score, alive from t order by score", "string int64 float64 bool"),
        ("select age from t order by age", "int32"),
        ("select age, age, age, age, age from t where age < 100", "int8 int16 uint8 uint16 string"),
        ("select name from t", "int64"),
        ("select score from t", "int32"),
        ("select age from t where age < 100", "float64"),
        ("select name, age from t", "string"),
        ("select nothing from t", "string"),
        ("select name from t where age > 1000000000000000", "string"),
        ("select cast(x'ff41' as text)", "string"),
        ("select x'ff41', '1e3', 9e999, '1e999'", "int32 int64 int64 int32"),
        ("select '1e3', 0.5, x'312e35'", "float64 bool float64"),
    ],
)
def test_sql(tf: ModuleType, database: str, query: str, types: str) -> None:
    check(
        tf,
        lambda tf: tf.data.experimental.SqlDataset(
            "sqlite", database, query, tuple(tf.as_dtype(t) for t in types.split())
        ),
    )


def test_a_query_that_is_no_text(database: str) -> None:
    texts = [np.array(text, object) for text in (b"sqlite", database.encode(), b"select '\xff'")]
    case = Case("SqlDataset", [*texts], {"output_types": ["string"], "output_shapes": [()]})
    (dataset,) = run_ours(case, step=FakeStep())
    with pytest.raises(InvalidArgumentError, match="UTF-8"):
        a_dataset(dataset).start(Run(FakeStep()))()


def test_sql_of_another_database(tf: ModuleType, database: str) -> None:
    check(tf, lambda tf: tf.data.experimental.SqlDataset("mysql", database, "select 1", (tf.int64,)))


# -- examples ---------------------------------------------------------------------------------------------


def serialized(tf: ModuleType) -> list[bytes]:
    rows: list[bytes] = []
    for i in range(5):
        example = tf.train.Example()
        feature = example.features.feature
        feature["z"].float_list.value.extend([i, i + 0.5])
        feature["words"].bytes_list.value.extend([b"w"] * i)
        feature["a"].int64_list.value.append(10 * i)
        feature["rows"].int64_list.value.extend(range(i))
        rows.append(example.SerializeToString())
    return rows


def features(tf: ModuleType) -> dict[str, Any]:
    return {
        "z": tf.io.FixedLenFeature([2], tf.float32),
        "words": tf.io.VarLenFeature(tf.string),
        "a": tf.io.FixedLenFeature([], tf.int64, default_value=3),
        "rows": tf.io.RaggedFeature(tf.int64, row_splits_dtype=tf.int64),
        "more": tf.io.FixedLenFeature([1], tf.string, default_value=[b"d"]),
    }


def test_examples(tf: ModuleType) -> None:
    rows = serialized(tf)
    check(
        tf,
        lambda tf: (
            tf.data.Dataset.from_tensor_slices(rows)
            .batch(2)
            .apply(tf.data.experimental.parse_example_dataset(features(tf)))
        ),
    )


def test_examples_that_are_none(tf: ModuleType) -> None:
    rows = [*serialized(tf)[:2], b"\x01 no example", serialized(tf)[2]]
    check(
        tf,
        lambda tf: (
            tf.data.Dataset.from_tensor_slices(rows)
            .batch(1)
            .apply(tf.data.experimental.parse_example_dataset({"z": tf.io.FixedLenFeature([2], tf.float32)}))
        ),
    )


def test_an_example_without_what_is_needed(tf: ModuleType) -> None:
    rows = serialized(tf)
    check(
        tf,
        lambda tf: (
            tf.data.Dataset.from_tensor_slices(rows)
            .batch(2)
            .apply(tf.data.experimental.parse_example_dataset({"none": tf.io.FixedLenFeature([2], tf.float32)}))
        ),
    )


# -- batches cut anew -------------------------------------------------------------------------------------

REBATCHED: dict[str, Callable[[Any], Any]] = {
    "rebatch": lambda tf: raw(tf, rng(tf, 11).batch(4), "RebatchDataset", num_replicas=2),
    "rebatch many": lambda tf: raw(tf, rng(tf, 11).batch(4), "RebatchDataset", num_replicas=3),
    "rebatch scalars": lambda tf: raw(tf, rng(tf, 3), "RebatchDataset", num_replicas=2),
    "v2": lambda tf: rng(tf, 11).batch(4).rebatch(3),
    "v2 sizes": lambda tf: rng(tf, 11).batch(4).rebatch([1, 0, 3]),
    "v2 dropped": lambda tf: rng(tf, 11).batch(4).rebatch([5, 2], drop_remainder=True),
    "v2 larger": lambda tf: rng(tf, 5).batch(2).rebatch(9),
    "dense to sparse": lambda tf: rng(tf, 5).map(lambda x: tf.fill([x], x)).apply(
        tf.data.experimental.dense_to_sparse_batch(2, [6])),
    "dense to sparse open": lambda tf: rng(tf, 5).map(lambda x: tf.fill([x, 2], x)).apply(
        tf.data.experimental.dense_to_sparse_batch(3, [None, 2])),
    "dense to sparse too large": lambda tf: rng(tf, 5).map(lambda x: tf.fill([x], x)).apply(
        tf.data.experimental.dense_to_sparse_batch(2, [2])),
}  # fmt: skip


@pytest.mark.parametrize("name", REBATCHED)
def test_rebatched(tf: ModuleType, name: str) -> None:
    check(tf, REBATCHED[name])


@pytest.mark.parametrize(
    ("size", "shift", "stride"), [(2, 1, 1), (3, 2, 2), (2, 5, 1), (4, 1, 1), (2, 2, 3), (20, 1, 1)]
)
def test_sliding_windows(tf: ModuleType, size: int, shift: int, stride: int) -> None:
    def pipeline(tf: Any) -> Any:
        from tensorflow.python.data.ops import dataset_ops

        source = rng(tf, 10)
        made = tf.raw_ops.ExperimentalSlidingWindowDataset(
            input_dataset=source._variant_tensor, window_size=size, window_shift=shift, window_stride=stride,
            output_types=[tf.int64], output_shapes=[[None]],
        )  # fmt: skip
        return dataset_ops._VariantDataset(made, tf.TensorSpec([None], tf.int64))

    check(tf, pipeline)


@settings(max_examples=15, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    count=st.integers(0, 12),
    batch=st.integers(1, 5),
    sizes=st.lists(st.integers(1, 5), min_size=1, max_size=3),
    drop=st.booleans(),
)
def test_rebatching_by_chance(tf: ModuleType, count: int, batch: int, sizes: list[int], drop: bool) -> None:
    check(tf, lambda tf: rng(tf, count).batch(batch).rebatch(sizes, drop_remainder=drop), epochs=1)


def test_a_query_without_end_is_interrupted(tmp_path: Path) -> None:
    database = tmp_path / "a.db"
    sqlite3.connect(database).close()
    query = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n{}) SELECT count(*) FROM n"
    asked: list[bool] = []

    def is_cancelled() -> bool:
        asked.append(len(asked) >= 3)
        return asked[-1]

    with pytest.raises(sqlite3.OperationalError, match="interrupted"):
        dataset_table._query(  # pyright: ignore[reportPrivateUsage] -- no step is to be cancelled at the right time
            str(database), query.format("").encode(), 1, is_cancelled
        ).fetchone()
    assert asked == [False, False, False, True]
    found = dataset_table._query(  # pyright: ignore[reportPrivateUsage]
        str(database), query.format(" WHERE i < 9").encode(), 1, lambda: False
    )
    assert found.fetchone() == (9,)
