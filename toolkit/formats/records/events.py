"""Event files, which TensorBoard shows: Event messages in a TFRecord file (schemas/event.proto)."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Self

from google.protobuf.message import DecodeError, Message

from schemas import event_pb2, summary_pb2
from toolkit.errors import DataLossError, GraphmillError, NotFoundError
from toolkit.formats.records.tfrecord import TFRecordWriter, read_records

#: what the first event of every file says
VERSION = "brain.Event:2"
_WRITER = "graphmill"
_PREFIX = "events.out.tfevents."


def _create(path: str) -> BinaryIO:
    folder = Path(path).parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise GraphmillError(f"the log folder cannot be created: {error.strerror}", file=str(folder)) from None
    return Path(path).open("xb")


class EventWriter:
    """Writes an event file into a log folder, as tf.compat.v1.summary.FileWriter does. Safe to use from threads.

    Args:
        logdir: the folder; it is created.
        suffix: of the file's name.
        flush_secs: events become visible to readers after at most so many seconds, when more are added.
        create: makes a new file and its folders; it raises FileExistsError where there is something of that name.

    Attributes:
        path: the file.

    Raises:
        GraphmillError: the file cannot be created.
    """

    def __init__(
        self,
        logdir: str | Path,
        suffix: str = "",
        flush_secs: float = 120.0,
        create: Callable[[str], BinaryIO] | None = None,
    ):
        self._lock = threading.Lock()
        self._flush_secs = flush_secs
        now = time.time()
        # Two writers in one second get two files; a link that somebody put there is no file of ours.
        name = f"{_PREFIX}{int(now):010d}.{socket.gethostname()}"
        number = 0
        while True:
            self.path = str(Path(logdir, f"{name}{f'.{number}' if number else ''}{suffix}"))
            try:
                self._records = TFRecordWriter((create or _create)(self.path))
                break
            except FileExistsError:
                number += 1
            except OSError as error:
                raise GraphmillError(f"cannot be written: {error.strerror}", file=self.path) from None
        self._flushed = time.monotonic()
        first = event_pb2.Event(wall_time=now, file_version=VERSION)
        first.source_metadata.writer = _WRITER
        self._records.write(first.SerializeToString())
        self._records.flush()

    def add_event(self, event: event_pb2.Event) -> None:
        """Write an event as it is; its time is filled in where it has none."""
        if not event.wall_time:
            event.wall_time = time.time()
        self.add_serialized(event.SerializeToString())

    def add_serialized(self, event: bytes) -> None:
        """Write a serialized Event."""
        with self._lock:
            self._records.write(event)
            if time.monotonic() - self._flushed >= self._flush_secs:
                self._flush()

    def add_summary(self, summary: summary_pb2.Summary | bytes, step: int | None = None) -> None:
        """Write a Summary, or the bytes of one as summary ops produce them.

        Raises:
            DataLossError: the bytes are no Summary.
        """
        event = event_pb2.Event()
        try:
            if isinstance(summary, bytes):
                event.summary.MergeFromString(summary)
            else:
                event.summary.CopyFrom(summary)
        except DecodeError:
            raise DataLossError("the bytes are no serialized Summary", file=self.path) from None
        event.summary.SetInParent()
        self._add(event, step)

    def add_scalar(self, tag: str, value: float, step: int | None = None) -> None:
        """Write a single number."""
        self.add_summary(summary_pb2.Summary(value=[summary_pb2.Summary.Value(tag=tag, simple_value=value)]), step)

    def add_graph(self, graph_def: bytes | Message, step: int | None = None) -> None:
        """Write a GraphDef (or the bytes of one)."""
        event = event_pb2.Event()
        event.graph_def = graph_def if isinstance(graph_def, bytes) else graph_def.SerializeToString(deterministic=True)
        self._add(event, step)

    def add_meta_graph(self, meta_graph: bytes | Message, step: int | None = None) -> None:
        """Write a MetaGraphDef (or the bytes of one)."""
        event = event_pb2.Event()
        event.meta_graph_def = (
            meta_graph if isinstance(meta_graph, bytes) else meta_graph.SerializeToString(deterministic=True)
        )
        self._add(event, step)

    def add_run_metadata(self, run_metadata: bytes | Message, tag: str, step: int | None = None) -> None:
        """Write a step's RunMetadata (or the bytes of one) under a tag, such as "step 100"."""
        event = event_pb2.Event()
        event.tagged_run_metadata.tag = tag
        event.tagged_run_metadata.run_metadata = (
            run_metadata if isinstance(run_metadata, bytes) else run_metadata.SerializeToString(deterministic=True)
        )
        self._add(event, step)

    def add_session_log(
        self, status: int, step: int | None = None, checkpoint_path: str = "", message: str = ""
    ) -> None:
        """Write that a session started, stopped or saved a checkpoint.

        Args:
            status: SessionLog.START (1), STOP (2) or CHECKPOINT (3).
        """
        event = event_pb2.Event()
        log: Any = event.session_log
        log.status = status
        log.checkpoint_path = checkpoint_path
        log.msg = message
        self._add(event, step)

    def _add(self, event: event_pb2.Event, step: int | None) -> None:
        if step is not None:
            event.step = int(step)
        self.add_event(event)

    def flush(self) -> None:
        """Make everything visible to readers."""
        with self._lock:
            self._flush()

    def _flush(self) -> None:
        self._records.flush()
        self._flushed = time.monotonic()

    def close(self) -> None:
        with self._lock:
            self._records.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def read_events(path: str | Path, tolerate_tail: bool = True) -> Iterator[event_pb2.Event]:
    """The events of a file, in order.

    Args:
        tolerate_tail: stop without an error where the file ends within an event: somebody is writing it.

    Raises:
        NotFoundError: there is no such file.
        DataLossError: an event is damaged.
    """
    for number, record in enumerate(read_records(path, tolerate_tail=tolerate_tail)):
        try:
            yield event_pb2.Event.FromString(record)
        except DecodeError:
            raise DataLossError(f"record {number} is no Event: not an event file", file=str(path)) from None


def event_files(logdir: str | Path) -> list[str]:
    """The event files of a log folder, oldest first.

    Raises:
        NotFoundError: there is no such folder.
    """
    if not Path(logdir).is_dir():
        raise NotFoundError("there is no such folder", file=str(logdir))
    return sorted(str(path) for path in Path(logdir).iterdir() if "tfevents" in path.name)
