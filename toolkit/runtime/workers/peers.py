"""A step's rendezvous at a worker that has others beside it: what another task sends is asked for there."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Protocol

from toolkit.errors import OpError
from toolkit.runtime.rendezvous import LocalRendezvous, Receiver


class Sender(Protocol):
    """What is asked for tensors; a `Worker` is one."""

    def receive(self, step_id: int, key: str, done: Receiver) -> None: ...


class PeerRendezvous(LocalRendezvous):
    """What is sent stays here until it is asked for; what another task sends is asked for at its worker.

    Args:
        task: whose rendezvous it is, as in the devices' names.
        peers: the worker of a task, by name.
    """

    def __init__(self, step_id: int, task: str, peers: Callable[[str], Sender]):
        super().__init__()
        self._step_id = step_id
        self._task = task
        self._peers = peers
        self._pending: set[_Pending] = set()
        self._pending_lock = threading.Lock()

    def recv_async(self, key: str, done: Receiver) -> None:
        """Call `done(value, is_dead, error)` as soon as the value is there or the step is aborted."""
        task, is_device, _ = key.partition("/device:")
        if not is_device or task == self._task:  # from the client, or from a device of this task
            super().recv_async(key, done)
            return
        pending = _Pending(done, self._pending, self._pending_lock)
        error = self.error
        if error is not None:
            pending(None, False, error)
            return
        self._peers(task).receive(self._step_id, key, pending)

    def abort(self, error: OpError | None = None) -> None:
        """Fail everyone who waits now or comes later, for another worker's tensors too; the first error stays."""
        super().abort(error)
        with self._pending_lock:
            waiting = list(self._pending)
        for pending in waiting:
            pending(None, False, self.error)


class _Pending:
    """A tensor that was asked for: it arrives, or the step is aborted, and the receiver hears of the first of these."""

    def __init__(self, done: Receiver, among: set[_Pending], lock: threading.Lock):
        self._done = done
        self._among = among
        self._lock = lock
        with lock:
            among.add(self)

    def __call__(self, value: Any, is_dead: bool, error: BaseException | None) -> None:
        with self._lock:
            if self not in self._among:
                return
            self._among.remove(self)
        self._done(value, is_dead, error)
