"""Coordinator: threads that stop together, and tell the one who joins them why.

coordinator = Coordinator()
threads = start_queue_runners(session, coordinator=coordinator)
try:
    while not coordinator.should_stop():
        session.run(train)
except Exception as error:
    coordinator.request_stop(error)
finally:
    coordinator.join(threads)        # raises what a thread reported
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any

from toolkit.errors import OutOfRangeError

GRACE_SECONDS = 120.0
#: of them, after which who waits says for what
_SILENT_SECONDS = 5.0

_LOG = logging.getLogger("graphmill")


class Coordinator:
    """Shared by threads that work together; any of them may ask all to stop.

    Args:
        clean_stop_exceptions: reported errors of these types stop the threads, but are not raised by `join`; the
            end of the input is one by default.
    """

    def __init__(self, clean_stop_exceptions: Sequence[type[BaseException]] = (OutOfRangeError,)):
        self._clean = tuple(clean_stop_exceptions)
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._error: BaseException | None = None
        self._registered: set[threading.Thread] = set()
        self._joined = False

    def request_stop(self, error: BaseException | None = None) -> None:
        """Ask all threads to stop.

        Args:
            error: why; the first one is what `join` raises, unless it is a clean stop. An error that comes after
                everything was joined is raised here, since nobody else would see it.
        """
        with self._lock:
            if error is not None and isinstance(error, self._clean):
                error = None
            if self._joined:
                if error is not None:
                    raise error
                return
            if not self._stop.is_set():
                self._error = self._error or error
                self._stop.set()

    def clear_stop(self) -> None:
        """Start anew: `should_stop` is false again and what was reported is forgotten."""
        with self._lock:
            self._joined = False
            self._error = None
            self._stop.clear()

    def should_stop(self) -> bool:
        return self._stop.is_set()

    def wait_for_stop(self, timeout: float | None = None) -> bool:
        """Wait until a stop is requested, at most `timeout` seconds; returns whether it is."""
        return self._stop.wait(timeout)

    @contextlib.contextmanager
    def stop_on_exception(self) -> Generator[None, None, None]:
        """Around the work of a thread: an exception inside asks all to stop and goes no further."""
        try:
            yield
        except BaseException as error:
            self.request_stop(error)

    def register_thread(self, thread: threading.Thread) -> None:
        """Have `join` wait for this thread, too."""
        with self._lock:
            self._registered.add(thread)

    @property
    def joined(self) -> bool:
        return self._joined

    def join(
        self,
        threads: Iterable[threading.Thread] = (),
        grace_seconds: float = GRACE_SECONDS,
        ignore_live_threads: bool = False,
    ) -> None:
        """Wait for the threads to end.

        They have any time until somebody requests a stop, and then `grace_seconds`.

        Args:
            threads: in addition to the registered ones.
            ignore_live_threads: say nothing of threads that are still running after that.

        Raises:
            BaseException: what was reported first.
            RuntimeError: threads are still running at the end of the grace period.
        """
        with self._lock:
            waiting = self._registered.union(threads)
        while any(thread.is_alive() for thread in waiting) and not self._stop.wait(0.01):
            pass
        told = time.monotonic()
        _join(waiting, told + min(grace_seconds, _SILENT_SECONDS))
        names = sorted(thread.name for thread in waiting if thread.is_alive())
        if names and grace_seconds > _SILENT_SECONDS:
            _LOG.warning(
                "stopping: %d of the threads do not end yet (%s); they are waited for, %g seconds at most "
                "(stop_grace_period_secs)", len(names), ", ".join(names[:3]), grace_seconds,
            )  # fmt: skip
            _join(waiting, told + grace_seconds)
        with self._lock:
            self._joined = True
            # What is told to stop and ends well within the grace period was still a clean stop.
            self._stop.set()
            alive = [thread.name for thread in waiting if thread.is_alive()]
            error, self._registered = self._error, set()
        if error is not None:
            raise error
        if alive and not ignore_live_threads:
            raise RuntimeError(f"Coordinator stopped with threads still running: {' '.join(alive)}")

    def raise_requested_exception(self) -> None:
        """Raise what was reported, if anything was."""
        with self._lock:
            if self._error is not None:
                raise self._error


def _join(threads: Iterable[threading.Thread], deadline: float) -> None:
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))


class LooperThread(threading.Thread):
    """Calls a function over and over until its coordinator stops.

    Args:
        interval: seconds from the start of one call to the start of the next; None: without pause.
        target: what to call; a subclass may override `run_loop` instead.
    """

    def __init__(
        self,
        coordinator: Coordinator,
        interval: float | None,
        target: Callable[..., Any] | None = None,
        args: Sequence[Any] = (),
    ):
        super().__init__(daemon=True)
        self._coordinator = coordinator
        self._interval = interval
        self._call = target
        self._arguments = args
        coordinator.register_thread(self)

    @classmethod
    def loop(
        cls, coordinator: Coordinator, interval: float | None, target: Callable[..., Any], args: Sequence[Any] = ()
    ) -> LooperThread:
        """Make a thread and start it."""
        thread = cls(coordinator, interval, target, args)
        thread.start()
        return thread

    def run(self) -> None:
        with self._coordinator.stop_on_exception():
            self.start_loop()
            following = time.monotonic()
            if self._interval is None:
                while not self._coordinator.should_stop():
                    self.run_loop()
            else:
                while not self._coordinator.wait_for_stop(max(0.0, following - time.monotonic())):
                    following += self._interval
                    self.run_loop()
            self.stop_loop()

    def start_loop(self) -> None:
        """Called once before the first call."""

    def stop_loop(self) -> None:
        """Called once after the last call, unless that failed."""

    def run_loop(self) -> None:
        if self._call is not None:
            self._call(*self._arguments)
