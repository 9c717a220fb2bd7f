"""TFRecord and event files: both sides read the other's; damage is detected."""

from __future__ import annotations

import threading
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas import event_pb2, graph_pb2, summary_pb2
from toolkit.errors import DataLossError, GraphmillError, InvalidArgumentError, NotFoundError
from toolkit.formats.records import crc
from toolkit.formats.records.events import VERSION, EventWriter, event_files, read_events
from toolkit.formats.records.tfrecord import GZIP, NONE, ZLIB, TFRecordWriter, read_records, write_records

RECORDS = [b"", b"one", b"x" * 100_000, bytes(range(256)) * 5]
COMPRESSIONS = (NONE, ZLIB, GZIP)


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_round_trip(tmp_path: Path, compression: str) -> None:
    assert write_records(tmp_path / "r", RECORDS, compression) == 4
    assert list(read_records(tmp_path / "r", compression)) == RECORDS


@settings(max_examples=30, deadline=None)
@given(st.lists(st.binary(max_size=2000), max_size=20), st.sampled_from(COMPRESSIONS))
def test_any_records(tmp_path_factory: pytest.TempPathFactory, records: list[bytes], compression: str) -> None:
    path = tmp_path_factory.mktemp("records") / "r"
    write_records(path, records, compression)
    assert list(read_records(path, compression)) == records


@pytest.mark.tensorflow
@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_tensorflow_reads_ours_and_we_its(tf: ModuleType, tmp_path: Path, compression: str) -> None:
    write_records(tmp_path / "us", RECORDS, compression)
    dataset = tf.data.TFRecordDataset(str(tmp_path / "us"), compression_type=compression)
    assert list(dataset.as_numpy_iterator()) == RECORDS
    with tf.io.TFRecordWriter(str(tmp_path / "tf"), compression) as writer:
        for record in RECORDS:
            writer.write(record)
    assert list(read_records(tmp_path / "tf", compression)) == RECORDS
    if compression == NONE:
        assert (tmp_path / "us").read_bytes() == (tmp_path / "tf").read_bytes()


def test_every_bit_and_truncation(tmp_path: Path) -> None:
    path = tmp_path / "r"
    records = [b"first", b"", b"third record"]
    write_records(path, records)
    whole = path.read_bytes()
    for bit in range(8 * len(whole)):
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        with pytest.raises(DataLossError, match=r"r: record \d at offset \d+ "):
            list(read_records(path))
    ends = {0}
    for record in records:
        ends.add(max(ends) + len(record) + 16)
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        if length in ends:
            assert list(read_records(path)) == records[: sorted(ends).index(length)]
            continue
        with pytest.raises(DataLossError, match="truncated"):
            list(read_records(path))
        complete = sum(end <= length for end in ends) - 1
        assert list(read_records(path, tolerate_tail=True)) == records[:complete]


@pytest.mark.parametrize("compression", [ZLIB, GZIP])
def test_damaged_compression(tmp_path: Path, compression: str) -> None:
    path = tmp_path / "r"
    write_records(path, [b"some record" * 20], compression)
    whole = path.read_bytes()
    for length in range(1, len(whole), 3):
        path.write_bytes(whole[:length])
        with pytest.raises(DataLossError):
            list(read_records(path, compression))
    path.write_bytes(b"\0" * 50)
    with pytest.raises(DataLossError, match="compressed data is damaged"):
        list(read_records(path, compression))


def test_other_mistakes(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="there is no such file"):
        list(read_records(tmp_path / "none"))
    with pytest.raises(InvalidArgumentError, match="'LZ4' is not a compression of records"):
        TFRecordWriter(tmp_path / "r", "LZ4")
    with pytest.raises(GraphmillError, match="cannot be written"):
        TFRecordWriter(tmp_path / "none" / "r")
    with pytest.raises(GraphmillError, match="cannot be read"):
        list(read_records(tmp_path))
    (tmp_path / "text").write_text("this is no TFRecord file")
    with pytest.raises(DataLossError, match="record 0 at offset 0 has a damaged length"):
        list(read_records(tmp_path / "text"))
    # A length whose CRC is right, of more than the file has: no memory is asked for.
    length = (1 << 60).to_bytes(8, "little")
    (tmp_path / "huge").write_bytes(length + crc.masked(length).to_bytes(4, "little") + b"data")
    with pytest.raises(DataLossError, match="truncated"):
        list(read_records(tmp_path / "huge"))


def test_flushed_records_are_visible(tmp_path: Path) -> None:
    for compression in COMPRESSIONS:
        with TFRecordWriter(tmp_path / "r", compression) as writer:
            writer.write(b"one")
            writer.flush()
            assert list(read_records(tmp_path / "r", compression, tolerate_tail=True)) == [b"one"]


@pytest.mark.tensorflow
def test_events_that_tensorflow_reads(tf: ModuleType, tmp_path: Path) -> None:
    graph = graph_pb2.GraphDef()
    graph.node.add(name="x", op="Placeholder")
    with EventWriter(tmp_path / "logs" / "train", suffix=".v2") as writer:
        writer.add_graph(graph)
        writer.add_scalar("loss", 0.5, 7)
        summary = summary_pb2.Summary(value=[summary_pb2.Summary.Value(tag="a", simple_value=1)])
        writer.add_summary(summary.SerializeToString(), 8)
        writer.add_run_metadata(b"\x0a\x00", "step 8", 8)
        writer.add_session_log(3, 9, "model-9")
        writer.add_meta_graph(b"\x12\x00")
    assert writer.path.endswith(".v2") and event_files(tmp_path / "logs" / "train") == [writer.path]
    events = list(tf.compat.v1.train.summary_iterator(writer.path))
    assert [event.WhichOneof("what") for event in events] == [
        "file_version", "graph_def", "summary", "summary", "tagged_run_metadata", "session_log", "meta_graph_def",
    ]  # fmt: skip
    assert events[0].file_version == VERSION and events[0].wall_time > 1e9
    assert events[1].graph_def == graph.SerializeToString()
    assert (events[2].step, events[2].summary.value[0].tag, events[2].summary.value[0].simple_value) == (7, "loss", 0.5)
    assert events[4].tagged_run_metadata.tag == "step 8" and events[5].session_log.checkpoint_path == "model-9"


@pytest.mark.tensorflow
def test_events_that_tensorflow_writes(tf: ModuleType, tmp_path: Path) -> None:
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        scalar = tf.compat.v1.summary.scalar("acc", tf.constant(0.25))
        histogram = tf.compat.v1.summary.histogram("h", tf.constant(np.arange(5.0)))
        writer = tf.compat.v1.summary.FileWriter(str(tmp_path), session.graph)
        writer.add_summary(session.run(tf.compat.v1.summary.merge([scalar, histogram])), 3)
        writer.close()
    (path,) = event_files(tmp_path)
    events = list(read_events(path))
    assert events[0].file_version == VERSION
    assert {"graph_def", "meta_graph_def", "summary"} <= {event.WhichOneof("what") for event in events}
    summary = next(event for event in events if event.WhichOneof("what") == "summary")
    assert summary.step == 3 and [value.tag for value in summary.summary.value] == ["acc", "h"]


def test_writers_of_one_second_and_threads(tmp_path: Path) -> None:
    writers = [EventWriter(tmp_path) for _ in range(3)]
    assert len(event_files(tmp_path)) == 3

    def write(number: int) -> None:
        for step in range(200):
            writers[0].add_scalar(f"t{number}", step, step)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    writers[0].flush()
    assert sum(1 for _ in read_events(writers[0].path)) == 801
    for writer in writers:
        writer.close()


def test_event_files_that_are_none(tmp_path: Path) -> None:
    write_records(tmp_path / "r", [b"\xff\xff"])
    with pytest.raises(DataLossError, match="record 0 is no Event"):
        list(read_events(tmp_path / "r"))
    with pytest.raises(NotFoundError):
        event_files(tmp_path / "none")
    with EventWriter(tmp_path / "logs") as writer, pytest.raises(DataLossError, match="no serialized Summary"):
        writer.add_summary(b"\xff\xff")
    (tmp_path / "file").touch()
    with pytest.raises(GraphmillError, match="log folder cannot be created"):
        EventWriter(tmp_path / "file" / "logs")
    event = event_pb2.Event(step=3)
    with EventWriter(tmp_path / "logs") as writer:
        writer.add_event(event)
    assert event.wall_time > 0
