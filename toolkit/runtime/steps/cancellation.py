"""Cancellation of a step, or of everything in a session."""

from __future__ import annotations

import threading
from collections.abc import Callable


class CancellationManager:
    """Runs the registered callbacks, once each, when `cancel` is called.

    A child is cancelled with its parent, not the other way round.
    """

    def __init__(self, parent: CancellationManager | None = None) -> None:
        self._lock = threading.Lock()
        self._callbacks: dict[int, Callable[[], None]] = {}
        self._next = 0
        self._cancelled = False
        self._parent = parent
        self._parent_token = -1
        if parent is not None:
            self._parent_token = parent.register(self.cancel)
            if self._parent_token < 0:
                self._cancelled = True

    @property
    def is_cancelled(self) -> bool:
        return self._cancelled

    def register(self, callback: Callable[[], None]) -> int:
        """Keep a callback for cancellation; returns its token, or -1 when already cancelled (not kept)."""
        with self._lock:
            if self._cancelled:
                return -1
            self._next += 1
            self._callbacks[self._next] = callback
            return self._next

    def deregister(self, token: int) -> None:
        """Forget a callback; returns only when it is certain not to be running unless it was called."""
        with self._lock:
            self._callbacks.pop(token, None)

    def cancel(self) -> None:
        with self._lock:
            if self._cancelled:
                return
            self._cancelled = True
            callbacks = list(self._callbacks.values())
            self._callbacks.clear()
        for callback in callbacks:
            callback()

    def detach(self) -> None:
        """Leave the parent; the end of a step."""
        if self._parent is not None and self._parent_token >= 0:
            self._parent.deregister(self._parent_token)
