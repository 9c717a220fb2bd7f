"""Specs whose examples come from datasets and queues, beside TensorFlow."""

# ruff: noqa: E501  (the tables read better with one case in a line)

from __future__ import annotations

import gzip
import textwrap
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from toolkit.client.spec import build_text
from toolkit.errors import GraphmillError, MultipleMistakesError, OutOfRangeError
from toolkit.formats.models.metagraph import to_proto
from toolkit.graph.metagraph import MetaGraph
from toolkit.runtime.session import Session
from toolkit.runtime.training.coordinator import Coordinator
from toolkit.runtime.training.queue_runner import start_queue_runners


def build(text: str) -> MetaGraph:
    return build_text(textwrap.dedent(text), "s.yaml")


def elements(meta: MetaGraph, fetches: list[str], make: str) -> list[list[Any]]:
    """Everything that a dataset gives."""
    found: list[list[Any]] = []
    with Session(meta) as session:
        session.run(make)
        while True:
            try:
                found.append([np.asarray(value).tolist() for value in session.run(fetches)])
            except OutOfRangeError:
                return found


def tensorflow_elements(tf: ModuleType, meta: MetaGraph, fetches: list[str], make: str) -> list[list[Any]]:
    v1 = tf.compat.v1
    graph = tf.Graph()
    with graph.as_default():
        v1.train.import_meta_graph(v1.MetaGraphDef.FromString(to_proto(meta).SerializeToString()))
    found: list[list[Any]] = []
    with v1.Session(graph=graph) as session:
        session.run(make)
        while True:
            try:
                found.append([np.asarray(value).tolist() for value in session.run(fetches)])
            except tf.errors.OutOfRangeError:
                return found


def write_records(tf: ModuleType, path: Path, count: int) -> None:
    with tf.io.TFRecordWriter(str(path)) as writer:
        for i in range(count):
            features = {
                "image": tf.train.Feature(float_list=tf.train.FloatList(value=[i, i + 0.5, -i])),
                "name": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"n%d" % i])),
            }
            if i % 2:
                features["label"] = tf.train.Feature(int64_list=tf.train.Int64List(value=[i]))
            writer.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())


FEATURES = "features: {image: {shape: [3]}, label: {dtype: int64, default: -1}, name: {dtype: string}}"


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    ("options", "count"),
    [
        ("batch: 4", 3), ("batch: 4, drop_remainder: true", 2), ("", 10), ("batch: 3, repeat: 2, prefetch: 2", 7),
        ("skip: 2, take: 5, batch: 2, cache: true", 3), ("batch: 4, shuffle: {buffer: 3, seed: 5}, repeat: 2", 5),
        ("batch: 5, shuffle: {buffer: 100, seed: 1, reshuffle: false}, repeat: 3", 6),
    ],
)  # fmt: skip
def test_records(tf: ModuleType, tmp_path: Path, options: str, count: int) -> None:
    for number in range(2):
        write_records(tf, tmp_path / f"part-{number}.tfrecord", 5)
    keys = ", ".join(
        filter(None, (f'dataset: {{records: "{tmp_path}/part-*.tfrecord"}}, name: data', FEATURES, options))
    )
    meta = build(f"seed: 3\nnodes: [{{{keys}}}]")
    fetches = ["data/image:0", "data/label:0", "data/name:0"]
    found = elements(meta, fetches, "data/make")
    assert len(found) == count
    assert found == tensorflow_elements(tf, meta, fetches, "data/make")
    assert {-1, 1, 3} == set(
        np.ravel(np.concatenate([np.ravel(labels) for _, labels, _ in found])).tolist()
    ) or "take" in options


@pytest.mark.tensorflow
def test_lines_ranges_arrays_and_tensors(tf: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"one\ntwo\nthree\n"))
    meta = build(f"""
        nodes:
          - {{dataset: {{lines: ["{tmp_path}/a.gz"], compression: GZIP}}, name: lines, batch: 2}}
          - {{dataset: {{range: 5}}, name: counted, batch: 3}}
          - {{dataset: {{arrays: {{a: [[1, 2], [3, 4]], b: [x, y]}}}}, name: written}}
          - {{op: Const, name: rows, attrs: {{dtype: float32, value: [[1.5], [2.5], [3.5]]}}}}
          - {{dataset: {{tensors: {{r: rows}}}}, name: sliced, repeat: 2, batch: 4}}
          - {{layer: scale, factor: 2.0, name: twice}}
    """)
    for name, fetches, wanted in (
        ("lines", ["lines/line:0"], [[[b"one", b"two"]], [[b"three"]]]),
        ("counted", ["counted/number:0"], [[[0, 1, 2]], [[3, 4]]]),
        ("written", ["written/a:0", "written/b:0"], [[[1, 2], b"x"], [[3, 4], b"y"]]),
        ("sliced", ["twice:0"], [[[[3.0], [5.0], [7.0], [3.0]]], [[[5.0], [7.0]]]]),
    ):
        assert elements(meta, fetches, f"{name}/make") == wanted
        assert tensorflow_elements(tf, meta, fetches, f"{name}/make") == wanted
    assert set(meta.collections["table_initializer"]) == {
        f"{n}/make" for n in ("lines", "counted", "written", "sliced")
    }


def test_queues_make_batches() -> None:
    meta = build("""
        seed: 1
        nodes:
          - {dataset: {arrays: {x: [1.0, 2.0, 3.0, 4.0, 5.0], y: [1, 2, 3, 4, 5]}}, name: data}
          - {queue: [data/x, data/y], name: batches, size: 2, allow_smaller_final_batch: true}
          - {queue: data/x, name: drawn, size: 2, capacity: 40, shuffle: {min_after_dequeue: 2, seed: 3}}
    """)
    assert len(meta.collections["queue_runners"]) == 2
    with Session(meta) as session:
        session.run("data/make")
        coordinator = Coordinator()
        threads = start_queue_runners(session, meta, coordinator)
        got = session.run(["batches/x:0", "batches/y:0"])
        np.testing.assert_array_equal(got[0], got[1])
        coordinator.request_stop()
        coordinator.join(threads)


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("{dataset: {}}", "each entry has exactly one of the keys records, lines, arrays, tensors and range"),
        ("{dataset: {range: 5, lines: x}}", "each entry has exactly one of the keys"),
        ("{dataset: {range: -5}}", "nodes[0].dataset.range: expected at least 0, found -5"),
        ("{dataset: {arrays: {}}}", "give at least one component"),
        ("{dataset: {arrays: {a: 3}}}", "'a' is one number; expected an array"),
        ("{dataset: {arrays: {a: [1], b: [1, 2]}}}", "different numbers of examples: a has 1, b has 2"),
        ("{dataset: {arrays: {a: [[1], [1, 2]]}}}", "not a tensor"),
        ("{dataset: {tensors: {a: nothing}}}", "nodes[0].dataset.tensors.a: nothing is named 'nothing'"),
        ("{dataset: {range: 5}, features: {a: {}}}", "nodes[0].features: only records have features"),
        ("{dataset: {records: x}, features: {a: {dtype: int32}}}", "Examples have no int32; expected float32, int64 or string"),
        ("{dataset: {records: x}, features: {a: {default: [1.0]}}}", "features.a.default: expected a value of shape [], found one of [1]"),
        ("{dataset: {records: x, compression: LZ4}}", "'LZ4' is unknown"),
        ("{dataset: {range: 5}, shuffle: {seed: 1}}", "nodes[0].shuffle: the key 'buffer' is missing"),
        ("{queue: x, size: 2}", "all shapes must be fully known to be batched"),
        ("{queue: x}", "nodes[0]: the key 'size' is missing"),
    ],
)  # fmt: skip
def test_mistakes(entry: str, expected: str) -> None:
    with pytest.raises(GraphmillError) as caught:
        build(f"inputs: {{x: {{shape: [null]}}}}\nnodes:\n  - {entry}")
    error = caught.value
    found = [str(each) for each in error.errors] if isinstance(error, MultipleMistakesError) else [str(error)]
    assert any(expected in each for each in found), found
