"""A call of a step that is under way, over gRPC or over a line: its response is waited for, or told."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from toolkit.errors import OpError

#: told a response, or why there is none
Told = Callable[[bytes, OpError | None], None]


class Pending:
    """A call. What it came to is told once.

    Args:
        give_up: ends it, and has it finish with CancelledError.
        where: who is asked what, for messages.

    Attributes:
        key: by which who carries it knows it.
    """

    __slots__ = ("_error", "_give_up", "_is_done", "_lock", "_response", "_told", "_waiter", "key", "where")

    def __init__(self, give_up: Callable[[Pending], object], where: str, key: Any = None):
        self.where = where
        self.key = key
        self._give_up = give_up
        self._told: Told | None = None
        self._lock = threading.Lock()
        self._waiter: Any = None
        self._is_done = False
        self._response = b""
        self._error: OpError | None = None

    def finish(self, response: bytes, error: OpError | None = None) -> None:
        """It has ended; whoever comes second changes nothing."""
        with self._lock:
            if self._is_done:
                return
            self._is_done = True
            self._response, self._error = response, error
            waiter, told = self._waiter, self._told
        if waiter is not None:
            waiter.release()
        if told is not None:
            told(response, error)

    def react(self, told: Told) -> None:
        """Have this called once with the response or the error: from any thread, or now."""
        with self._lock:
            if not self._is_done:
                self._told = told
                return
        told(self._response, self._error)

    @property
    def is_done(self) -> bool:
        """Whether it has ended."""
        return self._is_done

    def cancel(self) -> None:
        """Give it up. Again, or afterwards, is fine."""
        if not self._is_done:
            self._give_up(self)

    def result(self) -> bytes:
        """Wait for the response.

        Raises:
            OpError: it failed.
        """
        with self._lock:
            if not self._is_done and self._waiter is None:
                self._waiter = threading.Lock()
                self._waiter.acquire()
            waiter = None if self._is_done else self._waiter
        if waiter is not None:
            with waiter:  # who waits beside us is next
                pass
        if self._error is not None:
            raise self._error
        return self._response
