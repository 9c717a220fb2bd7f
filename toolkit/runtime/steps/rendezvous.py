"""Where sends and receives of one step meet."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from toolkit.errors import AbortedError, OpError
from toolkit.kernels.resources.variables import RefVariable, read

Receiver = Callable[[Any, bool, BaseException | None], None]


def make_key(src_device: str, incarnation: int, dst_device: str, name: str, frame_iter: tuple[int, int]) -> str:
    """The key both sides compute: source;incarnation (16 hex digits);destination;name;frame:iteration."""
    return f"{src_device};{incarnation & (2**64 - 1):016x};{dst_device};{name};{frame_iter[0]}:{frame_iter[1]}"


class LocalRendezvous:
    """Tensors between the devices of one task in one step.

    A sent value waits for its receiver or the other way round; each pairs once, in order per key. Of a reference
    variable the receiver gets what it holds when both are there, as where TensorFlow's devices share its memory: who
    reads it over there asks when everything else that it waits for has happened.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: dict[str, deque[tuple[Any, bool]]] = {}
        self._waiting: dict[str, deque[Receiver]] = {}
        self._error: BaseException | None = None

    @property
    def error(self) -> BaseException | None:
        """Why the step was aborted; None while it was not."""
        return self._error

    def send(self, key: str, value: Any, is_dead: bool = False) -> None:
        """Hand over a value.

        Raises:
            OpError: the step was aborted.
        """
        with self._lock:
            if self._error is not None:
                raise self._error
            waiting = self._waiting.get(key)
            if not waiting:
                self._values.setdefault(key, deque()).append((value, is_dead))
                return
            receiver = waiting.popleft()
            if not waiting:
                del self._waiting[key]
        receiver(present(value), is_dead, None)

    def recv_async(self, key: str, done: Receiver) -> None:
        """Call `done(value, is_dead, error)` as soon as the value is there or the step is aborted."""
        with self._lock:
            error = self._error
            values = self._values.get(key) if error is None else None
            if error is None and not values:
                self._waiting.setdefault(key, deque()).append(done)
                return
            value, is_dead = None, False
            if values:
                value, is_dead = values.popleft()
                if not values:
                    del self._values[key]
        done(present(value), is_dead, error)

    def withdraw(self, key: str, done: Receiver) -> None:
        """Forget who waits for a value, if it still does: what comes is another's then."""
        with self._lock:
            waiting = self._waiting.get(key)
            if waiting is not None and done in waiting:
                waiting.remove(done)
                if not waiting:
                    del self._waiting[key]

    @property
    def is_empty(self) -> bool:
        """Whether nobody waits and nothing was sent that is not fetched yet."""
        return not self._waiting and not self._values

    def abort(self, error: OpError | None = None) -> None:
        """Fail everyone who waits now or comes later; the first error stays."""
        with self._lock:
            if self._error is not None:
                return
            self._error = error or AbortedError("the step was aborted")
            waiting = [receiver for queue in self._waiting.values() for receiver in queue]
            self._waiting.clear()
            self._values.clear()
            final = self._error
        for receiver in waiting:
            receiver(None, False, final)


def present(value: Any) -> Any:
    """What is received where this was sent: of a reference variable what it holds now.

    Raises:
        FailedPreconditionError: the variable is not initialised.
    """
    return read(value) if isinstance(value, RefVariable) else value
