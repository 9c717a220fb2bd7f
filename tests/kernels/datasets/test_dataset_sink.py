"""Tables and record files filled from datasets, against TensorFlow on the same graph."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.runtime.oracle import Both
from toolkit.errors import InvalidArgumentError
from toolkit.runtime.session import Session

pytestmark = pytest.mark.tensorflow


def test_a_table_from_a_dataset(tf: ModuleType) -> None:
    def build(v1: Any) -> None:
        keys = tf.data.Dataset.from_tensor_slices([b"a", b"b", b"c"])
        pairs = tf.data.Dataset.zip((keys, keys.enumerate().map(lambda i, _: i * 10)))
        table = tf.raw_ops.HashTableV2(key_dtype=tf.string, value_dtype=tf.int64)
        made = tf.raw_ops.InitializeTableFromDataset(table_handle=table, dataset=pairs._variant_tensor)
        v1.group(made, name="init")
        found = tf.raw_ops.LookupTableFindV2(
            table_handle=table, keys=[b"c", b"x", b"a"], default_value=tf.int64.as_numpy_dtype(-1)
        )
        v1.identity(found, name="found")

    both = Both(tf, build)
    with Session(both.graph) as ours, both.v1.Session(graph=both.tf_graph) as theirs:
        for session in (ours, theirs):
            session.run("init")
            assert session.run("found:0").tolist() == [20, -1, 0]


@pytest.mark.parametrize("compression", ["", "GZIP", "ZLIB"])
def test_records_from_a_dataset(tf: ModuleType, tmp_path: Path, compression: str) -> None:
    path = tmp_path / "out.tfrecord"

    def build(v1: Any) -> None:
        rows = tf.data.Dataset.from_tensor_slices([b"first", b"", b"third"])
        made = tf.raw_ops.DatasetToTFRecord(
            input_dataset=rows._variant_tensor, filename=str(path), compression_type=compression
        )
        v1.group(made, name="write")

    both = Both(tf, build)
    with Session(both.graph) as ours:
        ours.run("write")
    found = [r.numpy() for r in tf.data.TFRecordDataset(str(path), compression_type=compression)]
    assert found == [b"first", b"", b"third"]


def test_records_of_numbers_are_refused(tf: ModuleType, tmp_path: Path) -> None:
    def build(v1: Any) -> None:
        made = tf.raw_ops.DatasetToTFRecord(
            input_dataset=tf.data.Dataset.range(3)._variant_tensor, filename=str(tmp_path / "o"), compression_type=""
        )
        v1.group(made, name="write")

    both = Both(tf, build)
    with Session(both.graph) as ours, pytest.raises(InvalidArgumentError, match="scalar strings"):
        ours.run("write")
