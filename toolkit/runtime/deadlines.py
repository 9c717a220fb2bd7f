"""Deadlines of steps: one thread waits for all of them.

A thread for each step that has one takes longer than a small step itself. Most deadlines are never reached: one that
was called off stays in the heap until its time comes or most of the heap is such.
"""

from __future__ import annotations

import heapq
import threading
import time
from collections.abc import Callable

from toolkit.forks import renew_in_children

#: seconds without a deadline after which the thread ends; the next deadline starts another
IDLE = 10.0
#: deadlines below which those that were called off are not worth sorting out
_FEW = 64


class Deadline:
    """What happens at some time unless it is called off."""

    __slots__ = ("_late", "_order", "_when")

    def __init__(self, when: float, order: int, late: Callable[[], None]):
        self._when, self._order = when, order
        self._late: Callable[[], None] | None = late

    def __lt__(self, other: Deadline) -> bool:
        return (self._when, self._order) < (other._when, other._order)

    def left(self) -> float:
        """Seconds until then."""
        return self._when - time.monotonic()

    @property
    def is_off(self) -> bool:
        """Whether it was called off, or has come."""
        return self._late is None

    def call_off(self) -> None:
        """Nothing happens any more, unless it has begun to."""
        self._late = None

    def come(self) -> None:
        """Begin what is to happen, in a thread of its own: it may take long, and other deadlines are not to wait."""
        late, self._late = self._late, None
        if late is not None:
            threading.Thread(target=late, name="graphmill late", daemon=True).start()


class Deadlines:
    """The deadlines of a process, and the thread that waits for the next."""

    def __init__(self) -> None:
        self.renew()
        renew_in_children(self)

    def renew(self) -> None:
        """See `Renewed.renew`: steps of the parent are none of the child's."""
        self._heap: list[Deadline] = []
        self._many = _FEW  # entries at which those that were called off go
        self._made = 0
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def after(self, seconds: float, late: Callable[[], None]) -> Deadline:
        """Have `late` called when so many seconds have passed."""
        with self._changed:
            self._made += 1
            made = Deadline(time.monotonic() + seconds, self._made, late)
            if len(self._heap) >= self._many:
                self._heap = [each for each in self._heap if not each.is_off]
                heapq.heapify(self._heap)
                self._many = max(_FEW, 2 * len(self._heap))
            heapq.heappush(self._heap, made)
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, name="graphmill deadlines", daemon=True)
                self._thread.start()
            elif self._heap[0] is made:
                self._changed.notify()
        return made

    def _watch(self) -> None:
        with self._changed:
            while True:
                while self._heap and self._heap[0].is_off:
                    heapq.heappop(self._heap)
                if not self._heap:
                    if not (self._changed.wait(IDLE) or self._heap):
                        self._thread = None
                        return
                    continue
                left = self._heap[0].left()
                if left > 0:
                    self._changed.wait(min(left, threading.TIMEOUT_MAX))
                else:
                    heapq.heappop(self._heap).come()


DEADLINES = Deadlines()
