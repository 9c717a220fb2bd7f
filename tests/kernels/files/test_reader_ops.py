"""Readers fed by queues, in TensorFlow and here, on the same files."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.runtime.oracle import Both
from tests.runtime.queues.waiting import Action, Join, Run, Start, check_script
from toolkit.kernels.queues.base import QueueResource
from toolkit.runtime.session import Session

pytestmark = pytest.mark.tensorflow

READ, UP_TO = ["read:0", "read:1"], ["up_to:0", "up_to:1"]
STATS = ["records:0", "units:0", "size:0"]


def waiting(session: Session) -> list[Any]:
    queues = session.resources.all_of(QueueResource)
    return [a for q in queues for a in q._dequeues]  # pyright: ignore[reportPrivateUsage]


def reader_graph(tf: ModuleType, op: str, v2: bool, **attrs: Any) -> Both:
    """A queue of file names, a reader of this kind, and every op on it."""

    def build(v1: Any) -> None:
        suffix = "V2" if v2 else ""

        def raw(name: str) -> Any:
            return getattr(tf.raw_ops, name + suffix)

        names = v1.placeholder("string", None, name="f")
        count = v1.placeholder("int64", [], name="n")
        queue = raw("FIFOQueue")(component_types=["string"], shapes=[[]], capacity=50, name="q")
        raw("QueueEnqueueMany")(handle=queue, components=[names], name="feed")
        raw("QueueClose")(handle=queue, name="close")
        raw("QueueSize")(handle=queue, name="size")
        reader = raw(op)(name="reader", **attrs)
        v1.identity_n(list(raw("ReaderRead")(reader_handle=reader, queue_handle=queue)), name="read")
        v1.identity_n(
            list(raw("ReaderReadUpTo")(reader_handle=reader, queue_handle=queue, num_records=count)), name="up_to"
        )
        raw("ReaderNumRecordsProduced")(reader_handle=reader, name="records")
        raw("ReaderNumWorkUnitsCompleted")(reader_handle=reader, name="units")
        raw("ReaderReset")(reader_handle=reader, name="reset")
        state = v1.placeholder("string", [], name="s")
        raw("ReaderSerializeState")(reader_handle=reader, name="serialize")
        raw("ReaderRestoreState")(reader_handle=reader, state=state, name="restore")

    return Both(tf, build)


def play(both: Both, *script: Action) -> list[Any]:
    return check_script(both, script, waiting)


def feed(*paths: Path) -> Run:
    return Run("feed", {"f:0": [str(p) for p in paths]})


def n(count: int) -> dict[str, Any]:
    return {"n:0": count}


def write(folder: Path, **files: bytes) -> list[Path]:
    paths: list[Path] = []
    for name, data in files.items():
        paths.append(folder / name)
        paths[-1].write_bytes(data)
    return paths


def test_text_lines(tf: ModuleType, tmp_path: Path) -> None:
    a, empty, b, header = write(tmp_path, a=b"one\r\ntwo\n\nfour", empty=b"", b=b"x\n\n", header=b"only")
    both = reader_graph(tf, "TextLineReader", True, skip_header_lines=1)
    play(
        both,
        Start("early", READ),
        feed(a),
        Join("early"),
        feed(empty, header, b),
        *[Run(READ)] * 2,
        Run(STATS),
        Run(READ),
        Run(STATS),
        Start("late", READ),
        Run("close"),
        Join("late"),
        Run(STATS),
        Run("reset"),
        Run(STATS),
    )
    play(both, feed(a, empty, b), Run(UP_TO, n(2)), Run(UP_TO, n(5)), Run(UP_TO, n(5)), Run(STATS), Run(UP_TO, n(0)))


def test_readers_within_files_have_no_state(tf: ModuleType) -> None:
    from toolkit.errors import UnimplementedError

    both = reader_graph(tf, "TextLineReader", True)
    with Session(both.graph) as ours, both.v1.Session(graph=both.tf_graph) as theirs:
        for session, kind in ((ours, UnimplementedError), (theirs, tf.errors.UnimplementedError)):
            with pytest.raises(kind):
                session.run("serialize:0")
            with pytest.raises(kind):
                session.run("restore", {"s:0": b""})


def test_missing_files(tf: ModuleType, tmp_path: Path) -> None:
    """The one that cannot be opened is an error; the next read goes on with the next file."""
    from toolkit.errors import NotFoundError

    good = write(tmp_path, good=b"a\nb\n")[0]
    both = reader_graph(tf, "TextLineReader", True)
    with Session(both.graph) as ours, both.v1.Session(graph=both.tf_graph) as theirs:
        for session, kind in ((ours, NotFoundError), (theirs, tf.errors.NotFoundError)):
            session.run("feed", {"f:0": [str(tmp_path / "none"), str(good)]})
            with pytest.raises(kind):
                session.run(READ)
        assert list(ours.run(READ)) == list(theirs.run(READ))
        assert list(ours.run(STATS)) == list(theirs.run(STATS))


@pytest.mark.parametrize(("header", "footer", "hop"), [(0, 0, 0), (2, 3, 0), (1, 0, 2), (0, 1, 5)])
def test_fixed_lengths(tf: ModuleType, tmp_path: Path, header: int, footer: int, hop: int) -> None:
    files = write(tmp_path, a=b"0123456789abcd", b=b"xy", c=b"ABCDEFGHIJK")
    both = reader_graph(
        tf, "FixedLengthRecordReader", True, record_bytes=3, header_bytes=header, footer_bytes=footer, hop_bytes=hop
    )
    play(both, feed(*files), Run("close"), *[Run(READ)] * 3, Run(UP_TO, n(3)), *[Run(UP_TO, n(20))] * 3, Run(STATS))


@pytest.mark.parametrize("encoding", ["ZLIB", "GZIP"])
def test_compressed_fixed_lengths(tf: ModuleType, tmp_path: Path, encoding: str) -> None:
    compress = zlib.compress if encoding == "ZLIB" else gzip.compress
    files = write(tmp_path, a=compress(b"0123456789abcd"), c=compress(b"ABCDEFGHIJK"))
    both = reader_graph(tf, "FixedLengthRecordReader", True, record_bytes=3, header_bytes=1, encoding=encoding)
    play(both, feed(*files), Run("close"), *[Run(READ)] * 3, *[Run(UP_TO, n(20))] * 3, Run(STATS))


@pytest.mark.parametrize("compression", ["", "ZLIB", "GZIP"])
def test_tf_records(tf: ModuleType, tmp_path: Path, compression: str) -> None:
    paths = [tmp_path / name for name in "ab"]
    for path, records in zip(paths, ([b"first", b"", b"third" * 50], [b"last"]), strict=True):
        with tf.io.TFRecordWriter(str(path), compression or None) as writer:
            for record in records:
                writer.write(record)
    both = reader_graph(tf, "TFRecordReader", True, compression_type=compression)
    play(both, feed(*paths), Run("close"), Run(READ), *[Run(UP_TO, n(9))] * 3, Run(STATS))


def test_damaged_records(tf: ModuleType, tmp_path: Path) -> None:
    from toolkit.errors import DataLossError

    path = tmp_path / "a"
    with tf.io.TFRecordWriter(str(path)) as writer:
        writer.write(b"one")
        writer.write(b"two")
    data = bytearray(path.read_bytes())
    data[-6] ^= 1
    path.write_bytes(data)
    with Session(reader_graph(tf, "TFRecordReader", True).graph) as session:
        session.run("feed", {"f:0": [str(path)]})
        assert session.run(READ)[1] == b"one"
        for _ in range(2):
            with pytest.raises(DataLossError, match="record 1 at offset 19 has a wrong CRC"):
                session.run(READ)


@pytest.mark.parametrize(
    ("op", "v2"), [("WholeFileReader", False), ("WholeFileReader", True), ("IdentityReader", True)]
)
def test_whole_files_and_state(tf: ModuleType, tmp_path: Path, op: str, v2: bool) -> None:
    files = write(tmp_path, a=b"one\r\n", b=b"", c=b"three")
    both = reader_graph(tf, op, v2)
    state = b"\x08\x03\x10\x03\x18\x07\x22\x01x"
    play(
        both,
        feed(*files),
        Run(READ),
        Run("serialize:0"),
        Run(UP_TO, n(5)),
        Run(READ),
        Run(STATS),
        Run("serialize:0"),
        Run("restore", {"s:0": state}),
        Run(STATS),
        Run("serialize:0"),
        Run("reset"),
        Run("serialize:0"),
        Run("close"),
        Run(READ),
    )


def test_many_empty_files(tf: ModuleType, tmp_path: Path) -> None:
    """Files without records are passed over without nesting calls."""
    empty, full = write(tmp_path, empty=b"", full=b"line\n")
    both = reader_graph(tf, "TextLineReader", True)
    with Session(both.graph) as session:
        for _ in range(40):
            session.run("feed", {"f:0": [str(empty)] * 40})
            session.run("feed", {"f:0": [str(full)]})
            assert session.run(READ)[1] == b"line"
