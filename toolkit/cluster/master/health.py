"""Heartbeats: a task that a step runs at is asked for its devices, and lost when it is silent or another one.

A process that ends is told by its connection. What this finds are hosts that are cut off or stand still, and tasks
that have started anew while a step waited for them.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Protocol

from toolkit.cluster.master.discovery import may_come
from toolkit.cluster.master.found import FoundTask
from toolkit.errors import AbortedError, OpError, UnavailableError

#: seconds between two heartbeats
INTERVAL = 5.0
#: seconds until a task must have answered: processes that compile or swap are slow, but not that slow
TIMEOUT = 30.0


class AskedTask(Protocol):
    """A task that can be asked for its devices."""

    def ask_status(self, timeout: float) -> Callable[[], FoundTask]:
        """Ask, and return what waits for the answer: it raises an OpError where none comes in time."""
        ...


class WatchedWorker(Protocol):
    """A session's worker at such a task."""

    @property
    def task(self) -> AskedTask:
        """Who is asked; its text names it."""
        ...

    @property
    def is_busy(self) -> bool:
        """Whether anything is asked of it."""
        ...

    def lose(self, error: OpError) -> None:
        """The task is gone: all that waits for it, and all that comes, ends so."""
        ...


class Heartbeats:
    """Watches the workers of all sessions of a master, in a thread of its own, from the first one on.

    Args:
        interval, timeout: seconds between questions, and until an answer has to be there.
    """

    def __init__(self, interval: float = INTERVAL, timeout: float = TIMEOUT):
        self._interval = interval
        self._timeout = timeout
        self._lock = threading.Lock()
        self._watched: list[tuple[weakref.ref[WatchedWorker], FoundTask]] = []
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def watch(self, worker: WatchedWorker, found: FoundTask) -> None:
        """Look after a worker as long as it lives.

        Args:
            found: the task as it was when the session began.
        """
        with self._lock:
            self._watched.append((weakref.ref(worker), found))
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="graphmill heartbeats", daemon=True)
                self._thread.start()

    def stop(self) -> None:
        """The end."""
        self._stopped.set()

    def _serve(self) -> None:
        while not self._stopped.wait(self._interval):
            self.beat()

    def beat(self) -> None:
        """Ask every task once where something runs, all at the same time."""
        with self._lock:
            self._watched = [each for each in self._watched if each[0]() is not None]
            watched = list(self._watched)
        busy: dict[str, list[tuple[WatchedWorker, FoundTask]]] = {}
        for reference, found in watched:
            worker = reference()
            if worker is not None and worker.is_busy:
                busy.setdefault(found.name, []).append((worker, found))
        asked = [(workers, workers[0][0].task.ask_status(self._timeout)) for workers in busy.values()]
        for workers, answer in asked:
            task = workers[0][0].task
            try:
                now = answer()
            except OpError as error:
                if may_come(error):
                    _lose(workers, UnavailableError(f"{task} is lost: it does not answer ({error.message})"))
                continue
            changed = [each for each in workers if each[1].incarnation != now.incarnation]
            _lose(changed, AbortedError(f"{task} has started anew; what the session had there is gone"))


def _lose(workers: Sequence[tuple[WatchedWorker, FoundTask]], error: OpError) -> None:
    for worker, _ in workers:
        worker.lose(error)
