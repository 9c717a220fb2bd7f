"""SIGINT and SIGTERM while a program runs: finish the step, save, end.

before the first step     nothing is lost: end at once                      exit 130 / 0
while a step runs         it is finished, then the loop ends and saves      exit 130 / 0
a step waits for input    its queues are closed: that is the end of input   exit 130 / 0
a second signal           ends the program where it is; files are whole     exit 130 / killed
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Asked:
    """Which signal asked for the end, if any."""

    def __init__(self) -> None:
        self.number: int | None = None
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

    def forget(self) -> None:
        """End the threads of `watch`."""
        for watcher in self._watchers:
            watcher.put(False)


@contextmanager
def stop_on_signal(log: Callable[[str], None] = lambda line: None) -> Generator[Asked]:
    """SIGINT and SIGTERM are noted; a second one does what it would without this.

    Only the main thread may handle signals: in others nothing is ever noted.

    Args:
        log: takes one line when a signal comes.
    """
    asked = Asked()
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
        lambda: log(f"{signal.Signals(asked.number or 0).name}: stopping after this step; again to stop at once")
    )
    try:
        yield asked
    finally:
        asked.forget()
        give_back()


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
