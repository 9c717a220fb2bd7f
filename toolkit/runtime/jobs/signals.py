"""SIGINT and SIGTERM while a program runs: finish the step, save, end.

before the first step     nothing is lost: end at once                      exit 130 / 0
while a step runs         it is finished, then the loop ends and saves      exit 130 / 0
a step waits for input    its queues are closed: that is the end of input   exit 130 / 0
a second signal           ends the program where it is; files are whole     exit 130 / killed
a step does not end       it is cancelled, then interrupted, then the       exit 130
                          process ends: within seconds, or, where there is
                          something to save, when it had half a minute
"""

from __future__ import annotations

import os
import select
import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any

from toolkit.limits.allowance import interrupt
from toolkit.limits.process import end_process

SIGNALS = (signal.SIGINT, signal.SIGTERM)
_INTERRUPTED_EXIT = 130
GRACE_SECS = 2.0  # for a step to end by itself
SAVING_GRACE_SECS = 30.0  # the same where what it has done is saved afterwards
_POLITE_SECS = 0.5  # for a step that was cancelled
_FIRM_SECS = 3.0  # for the program, when it was interrupted


class Asked:
    """Which signal asked for the end, if any.

    Attributes:
        is_forced: the step did not end by itself; nothing of it is to be kept.
    """

    def __init__(self, grace: float = GRACE_SECS) -> None:
        self.number: int | None = None
        self.is_forced = False
        self._grace = grace
        self._cancel: Callable[[], None] = lambda: None
        # SimpleQueue is the one thing that a handler may touch whatever it has interrupted.
        self._watchers: list[SimpleQueue[bool]] = []

    def note(self, number: int) -> None:
        """A signal has come; called in its handler."""
        self.number = number
        for watcher in self._watchers:
            watcher.put(True)

    def watch(self, react: Callable[[], None]) -> None:
        """Have a thread call `react` when a signal comes: a handler must not wait for locks, which it may hold."""
        heard: SimpleQueue[bool] = SimpleQueue()
        self._watchers.append(heard)

        def wait() -> None:
            if heard.get():
                react()

        threading.Thread(target=wait, name="graphmill signals", daemon=True).start()

    def force_by(self, cancel: Callable[[], None]) -> None:
        """How a step is cancelled that does not end by itself; called in a thread of its own."""
        self._cancel = cancel

    def heeded(self) -> None:
        """The step is over: what remains may take its time."""
        _active.discard(self)

    def force(self, wait: Callable[[float], bool]) -> None:
        """Cancel the step unless it ends in time; `wait(seconds)` says whether everything is over, or hurries."""
        if wait(self._grace) or self not in _active:
            return
        self.is_forced = True
        self._cancel()
        wait(_POLITE_SECS)

    def forget(self) -> None:
        """End the threads of `watch`."""
        for watcher in self._watchers:
            watcher.put(False)


@contextmanager
def stop_on_signal(log: Callable[[str], None] = lambda line: None, grace: float = GRACE_SECS) -> Generator[Asked]:
    """SIGINT and SIGTERM are noted; a second one does what it would without this.

    Only the main thread may handle signals: in others nothing is ever noted.

    Args:
        log: takes one line when a signal comes.
        grace: seconds that a step has to end by itself (see `end_by_force`).
    """
    asked = Asked(grace)
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    before: dict[int, Any] = {}

    def give_back() -> None:
        for number, handler in before.items():
            # what comes after a step is not to be cut short as if nothing had happened yet
            signal.signal(number, signal.SIG_DFL if handler is _terminate else handler)

    def note(number: int, frame: object) -> None:
        give_back()  # first: who hears of this signal may send the second at once
        asked.note(number)

    for number in SIGNALS:
        before[number] = signal.signal(number, note)
    asked.watch(
        lambda: log(
            f"{signal.Signals(asked.number or 0).name}: stopping after this step, which has {grace:g} s to end; "
            "again to stop at once"
        )
    )
    _active.add(asked)
    try:
        yield asked
    finally:
        _active.discard(asked)
        asked.forget()
        give_back()


_active: set[Asked] = set()  # whose step has not ended


@contextmanager
def end_by_force() -> Generator[None]:
    """Within this a signal ends the program, whatever it is at: Python's handlers wait while a kernel runs.

    The system's handler writes to a pipe at once, which a thread reads. It lets what handles the signal have its
    time, cancels the step, interrupts the main thread, and ends the process at last.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    thread = threading.Thread(target=_enforce, args=(reading,), name="graphmill end", daemon=True)
    thread.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        os.close(writing)  # wakes the thread, which closes the other end


def _enforce(reading: int) -> None:
    """Wait for a signal, then for the program to end."""
    over = False

    def wait(seconds: float | None) -> bool:
        """Whether all is over; ends early when another signal comes."""
        nonlocal over
        ready = select.select([reading], [], [], seconds)[0]
        over = over or (bool(ready) and not os.read(reading, 1))
        return over

    try:
        while not wait(None):
            stopping = list(_active)
            for asked in stopping:
                asked.force(wait)
            if stopping and not any(asked.is_forced for asked in stopping):
                continue  # the step has ended; what comes after may take its time
            if not over and stopping:
                interrupt(threading.main_thread().ident or 0, KeyboardInterrupt)
            if not over and not wait(_FIRM_SECS):
                end_process("interrupted in the middle of a kernel or a call that does not end", _INTERRUPTED_EXIT)
    finally:
        os.close(reading)


class Terminated(BaseException):
    """SIGTERM before there was anything to finish."""


@contextmanager
def end_on_term() -> Generator[None]:
    """Until a `stop_on_signal` inside takes over, SIGTERM raises `Terminated`, as SIGINT raises KeyboardInterrupt."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    before = signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _terminate(number: int, frame: object) -> None:
    raise Terminated
