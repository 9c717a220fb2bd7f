"""TFRecord files of tf.train.Examples as feeds, against tf.io.parse_example."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commands.main import run as graphmill
from schemas import example_pb2
from toolkit.errors import GraphmillError
from toolkit.formats.models.model import from_graph, write_model
from toolkit.formats.records.tfrecord import GZIP, NONE, write_records
from toolkit.graph import dtypes
from toolkit.graph.dtypes import DType
from toolkit.graph.graph import Graph
from toolkit.graph.node import Output
from toolkit.graph.shape import Shape
from toolkit.runtime.jobs.record_feeds import RecordFeed, load_record_feeds, record_feed

F, I, S = dtypes.float32, dtypes.int64, dtypes.string


def example(features: Mapping[str, Sequence[Any]]) -> bytes:
    """A serialized Example; the type of the first value decides."""
    message = example_pb2.Example()
    for name, values in features.items():
        feature = message.features.feature[name]
        kind = type(values[0]) if len(values) else None
        if kind is bytes:
            feature.bytes_list.value.extend(values)
        elif kind is float:
            feature.float_list.value.extend(values)
        elif kind is int:
            feature.int64_list.value.extend(values)
    return message.SerializeToString()


def placeholder(dtype: DType, dims: list[int | None] | None) -> Output:
    shape = Shape(dims)
    return Graph().add("Placeholder", "x", attrs={"dtype": dtype, "shape": shape}).output()


def load(file: Path, feature: str | None, dtype: DType, dims: list[int | None] | None) -> Any:
    output = placeholder(dtype, dims)
    return load_record_feeds({output: RecordFeed((str(file),), feature)})[output]


@pytest.mark.tensorflow
@pytest.mark.parametrize("compression", [NONE, GZIP])
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_arrays_are_those_that_tensorflow_parses(tf: ModuleType, compression: str, data: st.DataObject) -> None:
    import tempfile

    shape = data.draw(st.lists(st.integers(1, 3), max_size=2))
    size = int(np.prod(shape))
    kind = data.draw(st.sampled_from(["float", "int", "bytes"]))
    element: st.SearchStrategy[Any] = {
        "float": st.floats(width=32, allow_nan=False),
        "int": st.integers(-(2**63), 2**63 - 1),
        "bytes": st.binary(max_size=6),
    }[kind]
    rows = data.draw(st.lists(st.lists(element, min_size=size, max_size=size), min_size=1, max_size=5))
    dtype, theirs = {"float": (F, tf.float32), "int": (I, tf.int64), "bytes": (S, tf.string)}[kind]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "d.tfrecord")
        records = [example({"f": row, "other": [1]}) for row in rows]
        write_records(file, records, compression)
        got = load(file, "f", dtype, [None, *shape])
    wanted = tf.io.parse_example(records, {"f": tf.io.FixedLenFeature(shape, theirs)})["f"].numpy()
    assert got.dtype == dtype.numpy and got.shape == wanted.shape
    assert got.tolist() == wanted.tolist()


@pytest.mark.tensorflow
def test_files_that_tensorflow_wrote(tf: ModuleType, tmp_path: Path) -> None:
    for suffix, options in (("tfrecord", None), ("tfrecord.gz", "GZIP")):
        file = str(tmp_path / f"d.{suffix}")
        with tf.io.TFRecordWriter(file, options) as writer:
            for i in range(3):
                feature = {
                    "image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[bytes([i, i + 1, i + 2, i + 3])])),
                    "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[i])),
                }
                writer.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())
        image = load(Path(file), "image", dtypes.uint8, [None, 2, 2])  # raw bytes, as tf.io.decode_raw reads them
        np.testing.assert_array_equal(image[1], [[1, 2], [3, 4]])
        label = load(Path(file), "label", dtypes.int32, [None])
        assert label.dtype == np.int32 and label.tolist() == [0, 1, 2]


def test_types_are_those_of_the_tensor(tmp_path: Path) -> None:
    file = tmp_path / "d.tfrecord"
    write_records(file, [example({"i": [1, 2], "f": [0.5, 1.5], "b": [b"ab"], "one": [3]}) for _ in range(2)])
    assert load(file, "i", dtypes.float64, [None, 2]).dtype == np.float64
    assert load(file, "f", dtypes.bfloat16, [None, 2]).dtype == dtypes.bfloat16.numpy
    assert load(file, "b", S, [None]).tolist() == [b"ab", b"ab"]
    assert load(file, "one", I, None).shape == (2,)
    assert load(file, "i", I, None).shape == (2, 2)
    assert load(file, "i", I, [None, None]).shape == (2, 2)
    assert load(file, "i", I, [None, None, 2]).shape == (2, 1, 2)
    assert load(file, None, S, [None]).shape == (2,)


@pytest.mark.parametrize(
    ("feature", "dtype", "dims", "told"),
    [
        ("x", F, [None], "record 0: there is no feature 'x'; it holds: b, empty, f, i"),
        ("ff", F, [None], "there is no feature 'ff'; did you mean 'f'?"),
        ("f", F, [None, 3], "record 0: the feature 'f' has 2 value(s), and an example of 'x:0' is 3"),
        ("f", F, [None], "has 2 value(s), and an example of 'x:0' is one value"),
        ("f", F, [None, None, None], "the shape of an example cannot be told"),
        ("f", I, [None, 2], "holds floats, and 'x:0' is int64"),
        ("f", S, [None, 2], "holds numbers, and 'x:0' is strings"),
        ("i", dtypes.int8, [None, 2], "holds values that int8 cannot hold"),
        ("b", F, [None, 1], "holds 1 string(s) of 3 bytes, and 'x:0' is float32"),
        ("empty", F, [None], "the feature 'empty' holds no values"),
        ("i", I, [], "'x:0' is a scalar"),
        (None, F, [None], "a record is a string; choose one of its features with FILE:FEATURE"),
    ],
)
def test_what_does_not_fit(
    tmp_path: Path, feature: str | None, dtype: DType, dims: list[int | None], told: str
) -> None:
    file = tmp_path / "d.tfrecord"
    write_records(file, [example({"f": [1.0, 2.0], "i": [1, 300], "b": [b"abc"], "empty": []})])
    with pytest.raises(GraphmillError) as error:
        load(file, feature, dtype, dims)
    assert told in str(error.value)


def test_damaged_and_foreign_files(tmp_path: Path) -> None:
    file = tmp_path / "d.tfrecord"
    write_records(file, [example({"f": [1.0]}), example({"g": [1.0]})])
    with pytest.raises(GraphmillError, match=r"d\.tfrecord: record 1: there is no feature 'f'"):
        load(file, "f", F, [None])
    write_records(file, [example({"f": [1.0]}), example({"f": [1.0, 2.0]})])
    with pytest.raises(GraphmillError, match=r"has \[\] values in record 0 and \[2\] in record 1"):
        load(file, "f", F, None)
    write_records(file, [b"\xff\xff\xff"])
    with pytest.raises(GraphmillError, match=r"record 0 is no tf\.train\.Example"):
        load(file, "f", F, [None])
    write_records(file, [example({"f": [1.0]})])
    whole = file.read_bytes()
    file.write_bytes(whole[:-3])
    with pytest.raises(GraphmillError, match="record 0 at offset 0 is truncated"):
        load(file, "f", F, [None])
    file.write_bytes(whole[:20] + b"\x00" + whole[21:])
    with pytest.raises(GraphmillError, match="wrong CRC"):
        load(file, "f", F, [None])
    write_records(file, [])
    with pytest.raises(GraphmillError, match="holds no records"):
        load(file, "f", F, [None])


@pytest.mark.parametrize(
    ("text", "file", "feature"),
    [
        ("d.tfrecord:x", "d.tfrecord", "x"),
        ("d.tfrecord", "d.tfrecord", None),
        ("d.tfrecords.gz:image/encoded", "d.tfrecords.gz", "image/encoded"),
        ("a/train.tfrecord-00001-of-00002:x:y", "a/train.tfrecord-00001-of-00002", "x:y"),
    ],
)
def test_texts_that_name_records(
    text: str, file: str, feature: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(file).parent.mkdir(exist_ok=True)
    Path(file).touch()
    assert record_feed(text) == RecordFeed((file,), feature)
    assert record_feed("d.npz:x") is None and record_feed("[1]") is None
    with pytest.raises(GraphmillError, match=r"none\.tfrecord: there is no such file"):
        record_feed("none.tfrecord:x")


def test_the_command_trains_on_shards(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph = Graph()
    x = graph.add("Placeholder", "x", attrs={"dtype": F, "shape": Shape([None, 2])})
    y = graph.add("Placeholder", "y", attrs={"dtype": F, "shape": Shape([None, 1])})
    graph.add("Mul", "z", [x, y], attrs={"T": F})
    model = str(tmp_path / "m.pb")
    write_model(from_graph(graph), model)
    for shard in range(2):
        records = [example({"x": [float(shard), float(i)], "y": [2.0]}) for i in range(3)]
        write_records(tmp_path / f"train-{shard}.tfrecord", records)
    pattern = f"{tmp_path}/train-*.tfrecord"
    out = str(tmp_path / "o.npz")
    feeds = ["--feed", f"x={pattern}:x", "--feed", f"y={pattern}:y"]
    assert graphmill(["run", model, "--fetch", "z", *feeds, "--batch", "2", "--out", out]) == 0
    np.testing.assert_array_equal(np.load(out)["z"][:, 1], [0, 2, 4, 0, 2, 4])
    capsys.readouterr()
    assert graphmill(["run", model, "--fetch", "z", "--feed", f"x={pattern}:q", feeds[2], feeds[3]]) == 2
    told = capsys.readouterr().err
    assert "train-0.tfrecord: record 0: there is no feature 'q'; it holds: x, y" in told and told.count("\n") == 1
    (tmp_path / "train-1.tfrecord").write_bytes(b"no records, though long enough")
    assert graphmill(["run", model, "--fetch", "z", *feeds, "--batch", "2", "--out", out]) == 2
    told = capsys.readouterr().err
    assert told.startswith("graphmill: error: --feed: ") and "train-1.tfrecord: record 0 at offset 0 has a dam" in told
