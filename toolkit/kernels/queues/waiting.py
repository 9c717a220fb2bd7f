"""Operations that wait for a condition, without a thread each."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from toolkit.errors import CancelledError
from toolkit.kernels.context import Cancellation, Done


class NotYet:
    """What a trial returns when it must wait."""


NOT_YET = NotYet()
Trial = Callable[[], Any]


class _Waiter:
    __slots__ = ("cancellation", "done", "over", "token", "trial")

    def __init__(self, trial: Trial, done: Done, cancellation: Cancellation):
        self.trial = trial
        self.done = done
        self.cancellation = cancellation
        self.token = -1
        self.over = False


class Waiting:
    """A lock and those who wait for something to change under it.

    Args:
        in_order: only the one who waits longest is tried; otherwise everyone.
    """

    def __init__(self, *, in_order: bool = False):
        self.lock = threading.Lock()
        self._in_order = in_order
        self._waiters: list[_Waiter] = []

    def attempt(self, trial: Trial, cancellation: Cancellation, done: Done, what: str) -> None:
        """Try until it works; then call `done` with the result, or with the error that the trial raised.

        Args:
            trial: called with the lock held, as often as things change; returns NOT_YET to wait on.
            what: for the message when the step is cancelled.
        """
        waiter = _Waiter(trial, done, cancellation)
        with self.lock:
            waiter.token = cancellation.register(lambda: self._cancel(waiter, what))
            if waiter.token >= 0:
                self._waiters.append(waiter)
        if waiter.token < 0:
            done(CancelledError(f"{what} operation was cancelled"))
            return
        self.changed()

    def changed(self) -> None:
        """Let those who wait try again; called without the lock."""
        finished: list[tuple[_Waiter, Any]] = []
        with self.lock:
            progress = True
            while progress:
                progress = False
                for waiter in list(self._waiters):
                    try:
                        result = waiter.trial()
                    except Exception as error:
                        result = error
                    if not isinstance(result, NotYet):
                        waiter.over = progress = True
                        self._waiters.remove(waiter)
                        finished.append((waiter, result))
                    elif self._in_order:
                        break
        for waiter, result in finished:
            waiter.cancellation.deregister(waiter.token)
            waiter.done(result)

    def waiting(self) -> list[Any]:
        """Those who wait now, for tests."""
        with self.lock:
            return list(self._waiters)

    def _cancel(self, waiter: _Waiter, what: str) -> None:
        with self.lock:
            if waiter.over:
                return
            waiter.over = True
            self._waiters.remove(waiter)
        waiter.done(CancelledError(f"{what} operation was cancelled"))
        self.changed()
