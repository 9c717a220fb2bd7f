"""The limits of a run while it runs: what has been used of them, and who ends what goes beyond."""

# ctypes' functions have no types
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import ctypes
import threading
import time
import weakref
from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext
from typing import Any, Protocol

from toolkit.errors import CancelledError, DeadlineExceededError
from toolkit.forks import free_in_children
from toolkit.limits.account import Account
from toolkit.limits.exhaustion import exhaustion
from toolkit.limits.limits import Limits, time_text

_POLITE = 0.5  # seconds in which a step that was cancelled may end by itself
_FIRM = 2.0  # seconds in which Python code that was interrupted may end


class Expired(BaseException):
    """Raised within whatever Python code runs when its time is over; like KeyboardInterrupt no error to be handled."""


class _Cancels(Protocol):
    def cancel(self) -> None: ...


class Allowance:
    """What sessions may still use together, from the moment on that this is made.

    When the time is over, the sessions' steps are cancelled, which loops, executors and whatever waits look out for.
    Threads that are still in a step after that are interrupted where they run Python code. A kernel that is one long
    call into a library cannot be ended: `force`, if there is one, is called then, to end the process.

    Args:
        force: called with the message when nothing else has helped.
    """

    def __init__(self, limits: Limits, force: Callable[[str], None] | None = None):
        self.limits = limits
        self.account = Account(limits) if limits.memory is not None or limits.tensor is not None else None
        self.is_over = False
        self._force = force
        self._sessions: weakref.WeakSet[Any] = weakref.WeakSet()
        self._inside: dict[int, bool] = {}  # threads in a step, and whether they were interrupted
        self._lock = threading.Lock()
        free_in_children(self, "_lock")
        self._done = threading.Event()
        if limits.time is not None:
            deadline = time.monotonic() + limits.time
            threading.Thread(target=self._watch, args=(deadline,), name="graphmill limits", daemon=True).start()

    def watch(self, cancellation: _Cancels) -> None:
        """Cancel this, too, when the time is over."""
        self._sessions.add(cancellation)
        if self.is_over:
            cancellation.cancel()

    @property
    def is_inside(self) -> bool:
        """Whether this thread is within `running`, in a step."""
        return threading.get_ident() in self._inside and (self.account is None or self.account.is_charging)

    @contextmanager
    def running(self, *, tensors: bool = True) -> Generator[None]:
        """Around what this thread does for the run; it may be within another one.

        Args:
            tensors: it is a step, whose arrays are tensors; else only their sum has a limit.

        Raises:
            DeadlineExceededError: the time was over, or ended meanwhile.
            ResourceExhaustedError: there was no memory, for something that is not in a step.
        """
        thread = threading.get_ident()
        if self.is_over:
            raise self._over()
        with self._lock:
            outermost = thread not in self._inside
            if outermost:
                self._inside[thread] = False
        try:
            with nullcontext() if self.account is None else self.account.charging(tensors=tensors):
                try:
                    yield
                except MemoryError as error:
                    raise exhaustion(error, "the run") or error from None
        except (CancelledError, Expired):
            if self.is_over:
                raise self._over() from None
            raise
        finally:
            if outermost:
                with self._lock:
                    if self._inside.pop(thread):
                        interrupt(thread, None)  # it may be on its way still

    def close(self) -> None:
        """The run is over: nobody is ended any more."""
        self._done.set()

    def _over(self) -> DeadlineExceededError:
        return DeadlineExceededError(self._message())

    def _message(self) -> str:
        return f"the run took longer than the limit of time, {time_text(self.limits.time or 0)}"

    def _watch(self, deadline: float) -> None:
        if self._done.wait(max(0.0, deadline - time.monotonic())):
            return
        self.is_over = True
        for cancellation in list(self._sessions):
            cancellation.cancel()
        if self._done.wait(_POLITE):
            return
        with self._lock:
            for thread in self._inside:
                self._inside[thread] = True
                interrupt(thread, Expired)
        if not self._done.wait(_FIRM) and self._force is not None:
            self._force(self._message())


def interrupt(thread: int, error: type[BaseException] | None) -> None:
    """Raise an exception in another thread at its next line of Python; None takes back what has not been raised yet."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread), None if error is None else ctypes.py_object(error)
    )
