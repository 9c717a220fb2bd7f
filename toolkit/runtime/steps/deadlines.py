"""Deadlines of steps: one thread waits for all of them.

A thread for each step that has one takes longer than a small step itself. Most deadlines are never reached: one that
was called off stays in the heap until its time comes or most of the heap is such.
"""

from __future__ import annotations

import heapq
import sys
import threading
import time
from collections.abc import Callable

from toolkit.errors import ResourceExhaustedError
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
        """Begin what is to happen, in a thread of its own: it may take long, and other deadlines are not to wait.

        They wait where the system has no room for a thread more.
        """
        late, self._late = self._late, None
        if late is None:
            return
        try:
            threading.Thread(target=late, name="graphmill late", daemon=True).start()
        except (RuntimeError, MemoryError):
            _call(late)


def _call(late: Callable[[], None]) -> None:
    """Call it, and tell what it raises as a thread of its own would: others are waited for by this one."""
    try:
        late()
    except BaseException:
        threading.excepthook(threading.ExceptHookArgs((*sys.exc_info(), threading.current_thread())))


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
        """Have `late` called when so many seconds have passed.

        Raises:
            ResourceExhaustedError: the system has no room for the thread that waits; the next deadline tries again.
        """
        with self._changed:
            self._made += 1
            made = Deadline(time.monotonic() + seconds, self._made, late)
            if len(self._heap) >= self._many:
                self._heap = [each for each in self._heap if not each.is_off]
                heapq.heapify(self._heap)
                self._many = max(_FEW, 2 * len(self._heap))
            heapq.heappush(self._heap, made)
            if self._thread is None:
                self._start(made)
            elif self._heap[0] is made:
                self._changed.notify()
        return made

    def _start(self, first: Deadline) -> None:
        thread = threading.Thread(target=self._watch, name="graphmill deadlines", daemon=True)
        try:
            thread.start()
        except (RuntimeError, MemoryError) as error:
            first.call_off()
            raise ResourceExhaustedError(f"a step's deadline needs a thread, and there is none: {error}") from error
        self._thread = thread

    def _watch(self) -> None:
        while (due := self._next()) is not None:
            due.come()

    def _next(self) -> Deadline | None:
        """The next one, once its time has come; None where there have been none for a while."""
        with self._changed:
            while True:
                while self._heap and self._heap[0].is_off:
                    heapq.heappop(self._heap)
                if not self._heap:
                    if not (self._changed.wait(IDLE) or self._heap):
                        self._thread = None
                        return None
                    continue
                left = self._heap[0].left()
                if left <= 0:
                    return heapq.heappop(self._heap)
                self._changed.wait(min(left, threading.TIMEOUT_MAX))


DEADLINES = Deadlines()
