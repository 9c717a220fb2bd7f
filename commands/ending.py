"""SIGTERM and SIGHUP end a command as Ctrl-C does: what it has half written or unpacked is removed first."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager

#: added to a signal's number, as shells do
EXIT_BASE = 128
#: SIGINT is Python's own
_SIGNALS = ("SIGTERM", "SIGHUP")


class Ended(BaseException):
    """A signal has asked for the end.

    Attributes:
        exit_code: 128 and the signal's number.
    """

    def __init__(self, number: int):
        super().__init__(f"ended by {signal.Signals(number).name}")
        self.exit_code = EXIT_BASE + number


@contextmanager
def end_on_signal() -> Generator[None]:
    """Within this, signals that would end the process at once raise `Ended` in the main thread.

    A second one ends it at once. Signals that whoever started the process has it ignore (nohup) stay ignored.
    """
    taken: list[int] = []

    def end(number: int, frame: object) -> None:
        for each in taken:
            signal.signal(each, signal.SIG_DFL)
        raise Ended(number)

    if threading.current_thread() is threading.main_thread():
        numbers = [getattr(signal, name) for name in _SIGNALS if hasattr(signal, name)]
        taken += [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]
    for number in taken:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)


def leave(code: int) -> None:
    """End the process; after a signal without waiting for threads that a program has left running."""
    others = [thread for thread in threading.enumerate() if thread is not threading.main_thread()]
    if code > EXIT_BASE + signal.SIGINT and not all(thread.daemon for thread in others):
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)
