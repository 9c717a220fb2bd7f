"""Pinned host memory through which copies go."""

from __future__ import annotations

import threading

from toolkit.kernels.cuda.driver.base import Context, Event, Stream
from toolkit.kernels.types import Array

SECTION = 4 << 20  # bytes: the copy of one takes 0.2 ms, in which the host fills the next
_SECTIONS = 4
_LEAST = 4 << 10  # bytes of a buffer; a page
_MOST_KEPT = 256 << 20  # bytes of buffers that nobody uses: pinned memory is taken from the whole machine


class Ring:
    """Sections of pinned memory for copies to the device, each used again when its copies are done.

    Args:
        stream: into which the copies are put.

    Attributes:
        lock: held from `take` until the copy is in the stream.
    """

    def __init__(self, context: Context, stream: Stream):
        self._context = context
        self._stream = stream
        self._sections: list[Array] = []
        self._events: list[Event] = []
        self._next = 0
        self.lock = threading.Lock()

    def take(self, nbytes: int) -> Array:
        """A section that no copy uses, as so many bytes; `put` says that its copy is in the stream."""
        if not self._sections:
            self._sections = [self._context.pinned(SECTION) for _ in range(_SECTIONS)]
            self._events = [self._context.event() for _ in range(_SECTIONS)]
        self._context.synchronize(self._events[self._next])
        return self._sections[self._next][:nbytes]

    def put(self) -> None:
        """The copy of what was taken last is in the stream."""
        self._context.record(self._events[self._next], self._stream)
        self._next = (self._next + 1) % _SECTIONS


class Buffers:
    """Pinned buffers for copies to the host, each somebody's until it is given back."""

    def __init__(self, context: Context):
        self._context = context
        self._free: dict[int, list[Array]] = {}
        self._kept = 0

    def take(self, nbytes: int) -> Array:
        """A buffer of at least so many bytes."""
        size = max(_LEAST, 1 << (nbytes - 1).bit_length())
        try:
            found = self._free[size].pop()
        except (KeyError, IndexError):
            return self._context.pinned(size)
        self._kept -= size
        return found

    def give(self, buffer: Array) -> None:
        """Nobody uses a buffer any more."""
        size = int(buffer.size)
        if self._kept + size <= _MOST_KEPT:
            self._kept += size
            self._free.setdefault(size, []).append(buffer)
