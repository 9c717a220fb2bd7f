"""Pipes, sockets and devices where a model looks for a file: nobody waits for what may never come."""

from __future__ import annotations

import errno
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pytest

from commands.main import run as cli
from tests import patience
from tests.policy.reaching import constant
from toolkit.errors import FailedPreconditionError, GraphmillError, InvalidArgumentError, OpError
from toolkit.formats import bundle
from toolkit.formats.folders.partitions import read_partitions
from toolkit.formats.inspection.summary import inspect
from toolkit.formats.models.model import from_graph, write_model
from toolkit.formats.records.events import EventWriter, read_events
from toolkit.graph import dtypes
from toolkit.graph.graph import Graph
from toolkit.graph.shape import Shape
from toolkit.policy import linkless
from toolkit.policy.access import Access, Files
from toolkit.policy.rules import Policy
from toolkit.runtime.session import Session

KINDS: dict[str, Any] = {"output_types": [dtypes.string], "output_shapes": [Shape([])]}


def text(graph: Graph, name: str, value: Any) -> Any:
    return constant(graph, name, value, dtypes.string)


def number(graph: Graph, name: str, value: int) -> Any:
    return constant(graph, name, value, dtypes.int64)


def _read_file(graph: Graph, path: bytes) -> str:
    graph.add("ReadFile", "out", [text(graph, "path", path)])
    return "out:0"


def _dataset(op: str, inputs: Callable[[Graph, Any], list[Any]], **attrs: Any) -> Callable[[Graph, bytes], str]:
    def build(graph: Graph, path: bytes) -> str:
        source = graph.add(op, "source", inputs(graph, text(graph, "path", path)), attrs=attrs)
        graph.add("DatasetToSingleElement", "out", [source], attrs=KINDS)
        return "out:0"

    return build


def _reader(op: str) -> Callable[[Graph, bytes], str]:
    def build(graph: Graph, path: bytes) -> str:
        queue = graph.add("FIFOQueueV2", "queue", attrs={"component_types": [dtypes.string]})
        graph.add("QueueEnqueueV2", "put", [queue, text(graph, "path", path)], attrs={"Tcomponents": [dtypes.string]})
        graph.add("ReaderReadV2", "out", [graph.add(op, "reader"), queue])
        return "out:1"

    return build


def _table(graph: Graph, path: bytes) -> str:
    kinds = {"key_dtype": dtypes.string, "value_dtype": dtypes.int64}
    table = graph.add("HashTableV2", "table", attrs=kinds)
    graph.add(
        "InitializeTableFromTextFileV2", "out", [table, text(graph, "path", path)],
        attrs={"key_index": -2, "value_index": -1},
    )  # fmt: skip
    return "out"


def _restore(graph: Graph, path: bytes) -> str:
    prefix = text(graph, "path", path.removesuffix(b".index"))
    names = [text(graph, name, value) for name, value in (("names", [b"v"]), ("slices", [b""]))]
    graph.add("RestoreV2", "out", [prefix, *names], attrs={"dtypes": [dtypes.float32]})
    return "out:0"


READING: dict[str, Callable[[Graph, bytes], str]] = {
    "ReadFile": _read_file,
    "TextLineDataset": _dataset(
        "TextLineDataset", lambda g, path: [path, text(g, "none", b""), number(g, "buffer", 0)]
    ),
    "TFRecordDataset": _dataset(
        "TFRecordDataset", lambda g, path: [path, text(g, "none", b""), number(g, "buffer", 0)]
    ),
    "FixedLengthRecordDataset": _dataset(
        "FixedLengthRecordDataset",
        lambda g, path: [path, *(number(g, f"n{i}", value) for i, value in enumerate((0, 4, 0, 0)))],
    ),
    "SqlDataset": _dataset(
        "SqlDataset",
        lambda g, path: [text(g, "driver", b"sqlite"), path, text(g, "query", b"SELECT a FROM t")],
        **KINDS,
    ),
    "WholeFileReaderV2": _reader("WholeFileReaderV2"),
    "TextLineReaderV2": _reader("TextLineReaderV2"),
    "TFRecordReaderV2": _reader("TFRecordReaderV2"),
    "InitializeTableFromTextFileV2": _table,
    "RestoreV2": _restore,
}  # fmt: skip


def run(op: str, path: str) -> Any:
    """What an op says of a path; a list of the error, where it raises one."""
    graph = Graph()
    fetch = READING[op](graph, path.encode())
    with Session(graph, policy=Policy.everything()) as session:
        if "put" in graph:
            session.run("put")
        return session.run(fetch)


def raised(job: Callable[[], Any]) -> Exception:
    """The error of a job that has to end."""
    found: list[Exception] = []

    def do() -> None:
        try:
            job()
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=do, daemon=True)
    thread.start()
    assert patience.ends(thread, idle_s=5.0), "it waits"
    assert found, "it raised nothing"
    return found[0]


@pytest.fixture
def pipe(tmp_path: Path) -> str:
    path = str(tmp_path / "model.index")
    os.mkfifo(path)
    return path


@pytest.mark.parametrize("op", READING)
def test_what_reads_files_does_not_wait_for_a_pipe(op: str, pipe: str) -> None:
    error = raised(lambda: run(op, pipe))
    assert isinstance(error, OpError) and "it is a pipe, not a regular file" in str(error) and "\n" not in str(error)
    assert error.exit_code == 3


@pytest.mark.parametrize("op", [op for op in READING if op not in ("RestoreV2", "SqlDataset")])
def test_what_reads_files_reads_regular_ones(op: str, tmp_path: Path) -> None:
    from toolkit.formats.records.tfrecord import encode

    path = tmp_path / "a"
    path.write_bytes(encode(b"text") if op.startswith("TFRecord") else b"text")
    if (found := run(op, str(path))) is not None:
        assert found == path.read_bytes() if op != "TFRecordDataset" and op != "TFRecordReaderV2" else found == b"text"


def test_the_database_beside_a_pipe(tmp_path: Path) -> None:
    """SQLite also opens files that are called as the database is."""
    import sqlite3

    path = tmp_path / "a.db"
    with sqlite3.connect(path) as made:
        made.execute("CREATE TABLE t (a)")
        made.execute("INSERT INTO t VALUES ('x')")
    made.close()
    assert run("SqlDataset", str(path)) == b"x"
    os.mkfifo(f"{path}-wal")
    assert "it is a pipe" in str(raised(lambda: run("SqlDataset", str(path))))


@pytest.mark.parametrize("op", ["ReadFile", "TFRecordDataset", "TextLineDataset", "WholeFileReaderV2"])
def test_devices_and_sockets_are_refused_too(op: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as one:
        one.bind("socket")
        for path in ("/dev/zero", "socket"):
            error = raised(lambda path=path: run(op, path))
            assert isinstance(error, InvalidArgumentError) and "not a regular file" in str(error)


def test_what_is_written_does_not_wait_either(pipe: str, tmp_path: Path) -> None:
    door = Files(Access(Policy.everything()), "n", "Op")

    def append() -> None:
        door.open(pipe, "ab").close()

    for job in (append, lambda: door.open(pipe, "wb").close(), lambda: door.write(pipe, b"x")):
        assert "not a regular file" in str(raised(job))
    door.write(str(tmp_path / "new/file"), b"x")
    door.write(str(tmp_path / "new/file"), b"y")
    assert (tmp_path / "new/file").read_bytes() == b"y" and len(list((tmp_path / "new").iterdir())) == 1
    door.write("/dev/null", b"x")
    with door.open("/dev/null", "ab") as null:
        null.write(b"x")
    with pytest.raises(IsADirectoryError):
        door.write(str(tmp_path), b"x")


def test_a_folder_in_place_of_a_file_is_the_steps_mistake(tmp_path: Path) -> None:
    """TensorFlow says FAILED_PRECONDITION."""
    for op in READING:
        if op not in ("RestoreV2", "SqlDataset"):
            with pytest.raises(FailedPreconditionError) as told:
                run(op, str(tmp_path))
            assert told.value.exit_code == 3 and str(tmp_path) in str(told.value)


def test_checkpoints(tmp_path: Path) -> None:
    """The table, the data and the state file of a folder."""
    folder = tmp_path / "ckpt"
    folder.mkdir()
    prefix = str(folder / "c")
    bundle.save(prefix, [("v", np.ones(3, np.float32))], [dtypes.float32])
    data = Path(f"{prefix}.data-00000-of-00001")
    bundle.restore(prefix, ["v"], [""], [dtypes.float32])
    data.unlink()
    os.mkfifo(data)
    error = raised(lambda: bundle.restore(prefix, ["v"], [""], [dtypes.float32]))
    assert isinstance(error, GraphmillError) and "it is a pipe, not a regular file" in str(error)
    os.mkfifo(folder / "checkpoint")
    error = raised(lambda: bundle.latest_checkpoint(str(folder)))
    assert isinstance(error, GraphmillError) and "it is a pipe, not a regular file" in str(error)


@pytest.mark.parametrize("name", ["events.out.tfevents.1.host", "partitions.yaml", "saved_model.pb", "checkpoint"])
def test_folders_that_hold_a_pipe(name: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / name)
    assert isinstance(raised(lambda: inspect(str(tmp_path))), GraphmillError)


def test_validating_a_folder_that_holds_a_pipe(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph = Graph()
    text(graph, "a", b"x")
    write_model(from_graph(graph), tmp_path / "good.pb")
    for name in ("bad.pb", "other.txt"):
        os.mkfifo(tmp_path / name)
    codes: list[int] = []
    thread = threading.Thread(target=lambda: codes.append(cli(["validate", str(tmp_path)])), daemon=True)
    thread.start()
    assert patience.ends(thread, idle_s=5.0) and codes == [1]
    told = capsys.readouterr().out
    assert "bad.pb: error file/unreadable: is a pipe, a socket or a device" in told and "other.txt" not in told
    assert told.endswith("in 2 files\n")


def test_partitions(tmp_path: Path) -> None:
    graph = Graph()
    text(graph, "a", b"x").device = "/job:w/replica:0/task:0/device:CPU:0"
    write_model(from_graph(graph), tmp_path / "a.pb")
    assert cli(["partition", str(tmp_path / "a.pb"), "-o", str(tmp_path / "out"), "-q"]) == 0
    folder = tmp_path / "out"
    assert len(read_partitions(str(folder)).graphs) == 1
    for file in [path for path in folder.iterdir() if path.suffix == ".pb"]:
        kept = file.read_bytes()
        file.unlink()
        os.mkfifo(file)
        assert "is a pipe" in str(raised(lambda: read_partitions(str(folder))))
        file.unlink()
        file.write_bytes(kept)


def test_a_user_may_give_a_pipe(tmp_path: Path) -> None:
    """As a shell's `<(...)` does."""
    graph = Graph()
    text(graph, "a", b"x")
    write_model(from_graph(graph), tmp_path / "a.pb")
    path = str(tmp_path / "pipe")
    os.mkfifo(path)

    def feed() -> None:
        Path(path).write_bytes((tmp_path / "a.pb").read_bytes())

    threading.Thread(target=feed, daemon=True).start()
    assert cli(["run", path, "--fetch", "a", "-q"]) == 0


def test_an_event_file_is_always_a_new_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its name can be foreseen: a link or a pipe that somebody put there is neither followed nor waited for."""
    monkeypatch.setattr("toolkit.formats.records.events.time.time", lambda: 7.0)
    door = Files(Access(Policy.everything()), "n", "Op")

    def through_the_door(path: str) -> BinaryIO:
        return door.open(path, "xb")

    for create in (None, through_the_door):
        folder = tmp_path / f"logs {create is None}" / "below"
        with EventWriter(folder, create=create) as first:
            pass
        os.mkfifo(f"{first.path}.1")
        Path(f"{first.path}.2").symlink_to(tmp_path / "elsewhere")
        with EventWriter(folder, create=create) as second:
            second.add_scalar("a", 1.0)
        assert second.path == f"{first.path}.3" and len(list(read_events(second.path))) == 2
    assert not (tmp_path / "elsewhere").exists()


def test_links_that_are_put_there_meanwhile(tmp_path: Path) -> None:
    """Between judging and opening: nothing is written or read where they lead."""
    (tmp_path / "model").mkdir()
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "key").write_bytes(b"key")
    model, link = str(tmp_path / "model"), str(tmp_path / "model" / "link")
    Path(link).symlink_to(tmp_path / "secret")
    for job in (
        lambda: linkless.open_file(f"{link}/key", os.O_RDONLY),
        lambda: linkless.replace_file(f"{link}/key", b"x"),
        lambda: linkless.replace_file(f"{link}/new/key", b"x"),
        lambda: linkless.open_file(f"{link}/new/key", os.O_WRONLY | os.O_CREAT | os.O_EXCL, make=True),
        lambda: linkless.replace_file(link, b"x"),
    ):
        with pytest.raises(OSError) as told:
            job()
        assert told.value.errno in (errno.ENOTDIR, errno.ELOOP, errno.EISDIR)
    assert (tmp_path / "secret" / "key").read_bytes() == b"key" and len(list((tmp_path / "secret").iterdir())) == 1
    linkless.replace_file(f"{model}/new/key", b"x")
    assert Path(f"{model}/new/key").read_bytes() == b"x"
