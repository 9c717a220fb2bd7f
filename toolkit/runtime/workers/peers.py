"""A step's rendezvous at a worker that has others beside it: what another task sends is asked for there."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Protocol

from toolkit.errors import OpError
from toolkit.runtime.steps.rendezvous import LocalRendezvous, Receiver


class Sender(Protocol):
    """What is asked for tensors; a `Worker` is one."""

    def receive(self, step_id: int, key: str, done: Receiver) -> Callable[[], object] | None:
        """Ask for a tensor.

        Returns:
            what ends the asking, where that can be ended: `done` need not be called then.
        """
        ...


class PeerRendezvous(LocalRendezvous):
    """What is sent stays here until it is asked for; what another task sends is asked for at its worker.

    Args:
        task: whose rendezvous it is, as in the devices' names.
        peers: who sends what comes from a task, by its name.
    """

    def __init__(self, step_id: int, task: str, peers: Callable[[str], Sender]):
        super().__init__()
        self._step_id = step_id
        self.connect(task, peers)
        self._pending: set[_Pending] = set()
        self._pending_lock = threading.Lock()

    def connect(self, task: str, peers: Callable[[str], Sender]) -> None:
        """Say whose rendezvous it is, where that was not known when it was made; before anything is received."""
        self._task = task
        self._peers = peers

    def recv_local(self, key: str, done: Receiver) -> None:
        """As `recv_async`, for a tensor that is sent here, whatever its key says."""
        super().recv_async(key, done)

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
        try:
            pending.end = self._peers(task).receive(self._step_id, key, pending)
        except OpError as failed:
            pending(None, False, failed)
        if self.error is not None:  # it was aborted meanwhile, when `end` was not known yet
            pending.stop(self.error)

    def abort(self, error: OpError | None = None) -> None:
        """Fail everyone who waits now or comes later, for another worker's tensors too; the first error stays."""
        super().abort(error)
        with self._pending_lock:
            waiting = list(self._pending)
        for pending in waiting:
            pending.stop(self.error)


class _Pending:
    """A tensor that was asked for: it arrives, or the step is aborted, and the receiver hears of the first of these.

    Attributes:
        end: what ends the asking; None where it cannot be ended, or is over.
    """

    def __init__(self, done: Receiver, among: set[_Pending], lock: threading.Lock):
        self.end: Callable[[], object] | None = None
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

    def stop(self, error: BaseException | None) -> None:
        """The step is aborted."""
        end, self.end = self.end, None
        if end is not None:
            end()
        self(None, False, error)
