"""Threads that run independent kernels of a step at the same time (TensorFlow's inter-op pool).

NumPy lets go of the interpreter lock inside large operations, so two of them do run at once on two cores. Each
device has a queue of its own and the threads serve the queues in turn: a device with much to do does not keep
another one waiting.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from toolkit.compiler.settings import MAX_THREADS
from toolkit.errors import UsageError
from toolkit.forks import renew_in_children

#: a kernel that takes less is run where it is: handing it over and back costs some 30 microseconds
HEAVY_NS = 100_000

Work = Callable[[], None]


class InterOpPool:
    """A number of threads, shared by all steps of a session.

    Work must not wait for other work: only kernels that compute are handed over. The threads start with the first
    piece of work and end with the pool. A forked child starts threads of its own.

    Raises:
        UsageError: less than one thread, or more than there can be.
    """

    def __init__(self, threads: int):
        if threads < 1:
            raise UsageError(f"a session needs at least one inter-op thread, not {threads}")
        if threads > MAX_THREADS:
            raise UsageError(f"there cannot be {threads} inter-op threads; expected at most {MAX_THREADS}")
        self.threads = threads
        self._queues = _Queues()
        self._running: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._end = weakref.finalize(self, self._queues.close)
        renew_in_children(self)

    def renew(self) -> None:
        """See `Renewed.renew`."""
        if self._end.detach() is None:
            return  # it is closed
        self._queues, self._running, self._lock = _Queues(), [], threading.Lock()
        self._end = weakref.finalize(self, self._queues.close)

    def submit(self, device: str, work: Work) -> None:
        """Have a thread call `work`, which must not raise, after everything that the device was given before."""
        if len(self._running) < self.threads:
            self._start()
        self._queues.put(device, work)

    def _start(self) -> None:
        with self._lock:
            while len(self._running) < self.threads:
                number = len(self._running)
                thread = threading.Thread(
                    target=_serve, args=(self._queues,), name=f"graphmill inter-op {number}", daemon=True
                )
                self._running.append(thread)
                thread.start()

    def close(self) -> None:
        """Let the threads end when the queues are empty."""
        self._end()


class _Queues:
    """One first-in-first-out queue per device, emptied in turns."""

    def __init__(self) -> None:
        self._by_device: dict[str, deque[Work]] = {}
        self._turns: deque[str] = deque()  # the devices that have work
        self._ready = threading.Condition()
        self._closed = False

    def put(self, device: str, work: Work) -> None:
        with self._ready:
            queue = self._by_device.setdefault(device, deque())
            if not queue:
                self._turns.append(device)
            queue.append(work)
            self._ready.notify()

    def take(self) -> Work | None:
        """The next piece of work; waits for one. None after `close`."""
        with self._ready:
            while not self._turns:
                if self._closed:
                    return None
                self._ready.wait()
            device = self._turns.popleft()
            queue = self._by_device[device]
            work = queue.popleft()
            if queue:
                self._turns.append(device)
            return work

    def close(self) -> None:
        with self._ready:
            self._closed = True
            self._ready.notify_all()


def _serve(queues: _Queues) -> None:
    while True:
        work = queues.take()
        if work is None:
            return
        work()
        del work  # what it holds must not live until the next one comes


def timed(compute: Callable[..., Any], inputs: Sequence[Any], before_ns: int) -> tuple[Any, int]:
    """Call a kernel; returns its result and its cost: the mean of this time and what was known before."""
    start = time.perf_counter_ns()
    result = compute(*inputs)
    took = time.perf_counter_ns() - start
    return result, (before_ns + took) // 2 if before_ns else took
