"""Threads that devices run their part of a step in, kept from step to step.

What a library keeps for a thread (oneDNN its stream and scratch memory, OpenMP its team) would else be made anew in
every step. A part waits for others, so each needs a thread of its own at once: there are as many as ever were wanted at
the same time.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from queue import SimpleQueue

Work = Callable[[], None]


class _Worker:
    """A thread that does one piece of work after another, and is idle in between."""

    def __init__(self) -> None:
        self.work: SimpleQueue[tuple[str, Work, threading.Lock]] = SimpleQueue()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            name, work, done = self.work.get()
            threading.current_thread().name = f"graphmill {name}"
            try:
                work()
                del work  # what it holds must not live until the next one comes
                threading.current_thread().name = "graphmill idle"
                _idle.append(self)  # not where something was raised in this thread from outside, which ends it
            finally:
                done.release()


#: those that have nothing to do; the last one comes first, for its memory is in the caches
_idle: list[_Worker] = []


def start(name: str, work: Work) -> Callable[[], object]:
    """Have a thread of its own call `work`, which must not raise; returns what waits for its end.

    Args:
        name: of the thread meanwhile.
    """
    try:
        worker = _idle.pop()
    except IndexError:
        worker = _Worker()
    done = threading.Lock()
    done.acquire()
    worker.work.put((name, work, done))
    return done.acquire


os.register_at_fork(after_in_child=_idle.clear)  # a child has none of its parent's threads
