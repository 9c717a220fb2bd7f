"""Pinned host memory through which copies go: a ring of sections, each used again when its copies are done."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from toolkit.kernels.cuda.driver.base import Context, Event, Stream
from toolkit.kernels.types import Array

SECTION = 4 << 20  # bytes: the copy of one takes 0.2 ms, in which the host fills the next
_SECTIONS = 4


class Staging:
    """A ring of pinned memory for copies in a few streams.

    Args:
        streams: those that copies from or to it are put into.

    Attributes:
        lock: held from `take` until the copy is in its stream.
    """

    def __init__(self, context: Context, streams: Sequence[Stream]):
        self._context = context
        self._streams = streams
        self._sections: list[Array] = []
        self._events: list[list[Event]] = []
        self._current = 0
        self._used = 0
        self.lock = threading.RLock()

    def take(self, nbytes: int) -> Array:
        """Bytes that no copy uses, at most a section."""
        if not self._sections:
            self._sections = [self._context.pinned(SECTION) for _ in range(_SECTIONS)]
            self._events = [[self._context.event() for _ in self._streams] for _ in range(_SECTIONS)]
        if self._used + nbytes > SECTION:
            self._next()
        start = self._used
        self._used += (nbytes + 255) // 256 * 256
        return self._sections[self._current][start : start + nbytes]

    def _next(self) -> None:
        """Go to the next section, when its copies are done."""
        for event, stream in zip(self._events[self._current], self._streams, strict=True):
            self._context.record(event, stream)
        self._current = (self._current + 1) % len(self._sections)
        self._used = 0
        for event in self._events[self._current]:
            self._context.synchronize(event)
