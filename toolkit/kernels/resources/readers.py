"""Readers: records of the files whose names come from a queue.

A reader has one file under way. When it is used up the next name is taken from the queue, which may mean waiting;
meanwhile the reads that come later wait their turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from toolkit.errors import InvalidArgumentError, UnimplementedError
from toolkit.graph import dtypes
from toolkit.kernels.context import Cancellation, Done
from toolkit.kernels.queues.base import QueueResource
from toolkit.kernels.queues.waiting import NOT_YET, Waiting
from toolkit.kernels.resources.records import Record

Opener = Callable[[str], Iterator[Record]]


class Reader:
    """Reads records one after the other.

    Args:
        name: for messages.
        open_work: the records of one unit of work (a file name).
        whole: a unit of work is one record, and its name the key.
    """

    def __init__(self, name: str, open_work: Opener, whole: bool = False):
        self.name = name
        self.num_records = 0
        self.work_started = 0
        self.work_finished = 0
        self._open = open_work
        self._whole = whole
        self._work = b""
        self._records: Iterator[Record] = iter(())
        self._error: Exception | None = None  # a file that failed fails again until the reader is reset
        self._turns = Waiting(in_order=True)
        self._busy = False

    # -- reading -------------------------------------------------------------------------------------------

    def read(self, queue: QueueResource, limit: int | None, cancellation: Cancellation, done: Done) -> None:
        """Read one record (`limit` None) or up to `limit`; `done` gets (keys, values) or an error.

        Several records are all of one file, or fill the limit: the end of a file ends them.
        """
        if queue.types != [dtypes.string]:
            raise InvalidArgumentError(
                f"Reader '{self.name}' needs a queue of one string component, not {[str(t) for t in queue.types]}"
            )

        def acquire() -> Any:
            if self._busy:
                return NOT_YET
            self._busy = True
            return None

        def start(result: Any) -> None:
            if isinstance(result, Exception):
                done(result)
            else:
                _Read(self, queue, limit, cancellation, done).go_on()

        self._turns.attempt(acquire, cancellation, start, "Read")

    def release(self) -> None:
        """Let the next one read."""
        with self._turns.lock:
            self._busy = False
        self._turns.changed()

    @property
    def in_progress(self) -> bool:
        return self.work_finished < self.work_started

    def start_work(self, work: bytes) -> None:
        """Open the next unit of work."""
        self._work = work
        self._error = None
        self._records = iter([(0, work)]) if self._whole else self._open(work.decode(errors="surrogateescape"))
        if not self._whole:  # what cannot be opened is not started
            first = next(self._records, None)
            self._records = _chain(first, self._records)
        self.work_started += 1

    def next_record(self) -> tuple[bytes, bytes] | None:
        """The next record of the work under way, or None at its end."""
        if self._error is not None:
            raise self._error
        try:
            number, data = next(self._records)
        except StopIteration:
            return None
        except Exception as error:
            self._error = error
            raise
        self.num_records += 1
        if not self._whole:
            return self._work + b":%d" % number, data
        value = next(self._open(self._work.decode(errors="surrogateescape")))[1]
        return self._work, value

    @property
    def is_whole(self) -> bool:
        return self._whole

    # -- state ---------------------------------------------------------------------------------------------

    def reset(self) -> None:
        self.num_records = self.work_started = self.work_finished = 0
        self._records = iter(())
        self._error = None
        self._work = b""

    def serialize(self) -> bytes:
        """The state as a ReaderBaseState message.

        Raises:
            UnimplementedError: a reader that stops within files; TensorFlow has no format for these either.
        """
        self._check_state("SerializeState")
        numbers = (self.work_started, self.work_finished, self.num_records)
        fields = [bytes([tag << 3]) + _varint(value) for tag, value in enumerate(numbers, 1) if value]
        if self._work:
            fields.append(b"\x22" + _varint(len(self._work)) + self._work)
        return b"".join(fields)

    def restore(self, state: bytes) -> None:
        """Take over a state from `serialize`.

        Raises:
            UnimplementedError: as `serialize`.
            InvalidArgumentError: it is no such state.
        """
        self._check_state("RestoreState")
        values: dict[int, Any] = {1: 0, 2: 0, 3: 0, 4: b""}
        at = 0
        try:
            while at < len(state):
                tag, at = _read_varint(state, at)
                number, at = _read_varint(state, at)
                if tag >> 3 == 4:
                    number, at = state[at : at + number], at + number
                if tag not in (8, 16, 24, 34) or at > len(state):
                    raise IndexError
                values[tag >> 3] = number
        except IndexError:
            raise InvalidArgumentError(f"Could not parse state for {self.name}: {state!r}") from None
        started, finished, produced = values[1], values[2], values[3]
        if not 0 <= finished <= started or produced < 0:
            raise InvalidArgumentError(
                f"Unexpected state for {self.name}: work started {started}, finished {finished}, records {produced}"
            )
        self.work_started, self.work_finished, self.num_records = started, finished, produced
        self._work = values[4]
        self._records = iter([(0, self._work)]) if started > finished else iter(())

    def _check_state(self, what: str) -> None:
        if not self._whole:
            raise UnimplementedError(f"Reader {what} is not implemented for '{self.name}'")


def _chain(first: Record | None, rest: Iterator[Record]) -> Iterator[Record]:
    if first is not None:
        yield first
        yield from rest


class _Read:
    """One read under way; goes on where it stopped when the queue brings a name."""

    def __init__(self, reader: Reader, queue: QueueResource, limit: int | None, cancellation: Cancellation, done: Done):
        self._reader = reader
        self._queue = queue
        self._limit = limit
        self._cancellation = cancellation
        self._done = done
        self._keys: list[bytes] = []
        self._values: list[bytes] = []

    def go_on(self) -> None:
        """Read until it is enough, or until the queue has to be waited for."""
        try:
            while self._step():
                pass
        except Exception as error:
            self._finish(error)

    def _step(self) -> bool:
        """One record, or the next file; false when the rest happens elsewhere."""
        reader = self._reader
        if not reader.in_progress:
            return self._next_work()
        record = reader.next_record()
        if record is not None:
            self._keys.append(record[0])
            self._values.append(record[1])
        if record is None or reader.is_whole:
            reader.work_finished = reader.work_started
        if self._keys and (record is None or reader.is_whole or len(self._keys) == (self._limit or 1)):
            self._finish((self._keys, self._values))
            return False
        return True

    def _next_work(self) -> bool:
        """Ask the queue for a name. True when it came at once: calling back from here would nest without end."""
        came: list[Any] = []
        is_nested = True

        def arrived(result: Any) -> None:
            if is_nested:
                came.append(result)
                return
            try:
                self._begin(result)
            except Exception as error:
                self._finish(error)
            else:
                self.go_on()

        self._queue.dequeue(self._cancellation, arrived)
        is_nested = False
        if not came:
            return False
        self._begin(came[0])
        return True

    def _begin(self, result: Any) -> None:
        if isinstance(result, Exception):
            raise result
        self._reader.start_work(result[0].item())

    def _finish(self, result: Any) -> None:
        self._reader.release()
        self._done(result)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
