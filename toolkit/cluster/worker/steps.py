"""The steps of a task: known from the first call that names one, whoever that is, until it is cleaned up.

Another worker may ask for a tensor before the master's RunGraph is here. A step then has a rendezvous and no session.
Step ids are random numbers of 56 bits that a master tells those who take part in the step, so to know one is to be
let in; a session cannot run in another's step.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING

from toolkit.errors import AbortedError, InternalError, OpError, UnavailableError
from toolkit.runtime.steps.rendezvous import Receiver
from toolkit.runtime.workers.peers import PeerRendezvous, Sender

if TYPE_CHECKING:
    from toolkit.cluster.worker.session import WorkerSession

#: of steps that are over: what comes for one of these is late
_REMEMBERED = 10_000


def _nobody(task: str) -> Sender:
    raise InternalError(f"a step of no session asks {task} for a tensor")


class RunningStep:
    """A step as the task knows it.

    Attributes:
        session: that runs it; None while no call has said so.
    """

    __slots__ = ("rendezvous", "session", "step_id")

    def __init__(self, step_id: int):
        self.step_id = step_id
        self.session: WorkerSession | None = None
        self.rendezvous = PeerRendezvous(step_id, "", _nobody)


class Steps:
    """The steps that are under way, by id. Safe to use from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[int, RunningStep] = {}
        self._over: OrderedDict[int, None] = OrderedDict()
        self._refuses_new = False

    def refuse_new(self) -> None:
        """From now on no session begins a step here; those that run go on."""
        self._refuses_new = True

    def __len__(self) -> int:
        return len(self._running)

    def __contains__(self, step_id: int) -> bool:
        return step_id in self._running

    def _find(self, step_id: int) -> RunningStep:
        """The step; hold the lock.

        Raises:
            AbortedError: it is over.
        """
        if step_id in self._over:
            raise AbortedError(f"step {step_id} is over at this worker")
        found = self._running.get(step_id)
        if found is None:
            found = self._running[step_id] = RunningStep(step_id)
        return found

    def join(self, step_id: int, session: WorkerSession) -> PeerRendezvous:
        """The rendezvous of a step that a session runs.

        Raises:
            AbortedError: the step is over, or another session's.
            UnavailableError: the task takes no new steps.
        """
        with self._lock:
            if self._refuses_new and (step_id not in self._running or self._running[step_id].session is None):
                raise UnavailableError(f"{session.task} is being shut down and runs no new steps")
            step = self._find(step_id)
            if step.session is None:
                step.session = session
                step.rendezvous.connect(session.task, session.sender)
            elif step.session is not session:
                raise AbortedError(f"step {step_id} is another session's")
            return step.rendezvous

    def receive(self, step_id: int, key: str, done: Receiver) -> Callable[[], None]:
        """Ask for what the step sends under a key.

        Returns:
            what ends the asking.

        Raises:
            AbortedError: the step is over.
        """
        with self._lock:
            rendezvous = self._find(step_id).rendezvous

        def withdraw() -> None:
            rendezvous.withdraw(key, done)
            with self._lock:  # who asked for a step that nobody runs leaves nothing behind
                step = self._running.get(step_id)
                if step is not None and step.session is None and step.rendezvous.is_empty:
                    del self._running[step_id]

        rendezvous.recv_local(key, done)
        return withdraw

    def session_of(self, step_id: int) -> WorkerSession | None:
        """Who runs a step; None where nobody does."""
        step = self._running.get(step_id)
        return None if step is None else step.session

    def of_session(self, session: WorkerSession) -> list[int]:
        """The steps that a session runs."""
        with self._lock:
            return [step_id for step_id, step in self._running.items() if step.session is session]

    def finish_all(self, error: OpError) -> None:
        """All steps are over, and no session begins one any more."""
        self.refuse_new()
        with self._lock:
            under_way = list(self._running)
        for step_id in under_way:
            self.finish(step_id, error)

    def finish(self, step_id: int, error: OpError | None = None) -> None:
        """The step is over: whoever waits for its tensors is told, and whoever comes later. Again is fine."""
        with self._lock:
            step = self._running.pop(step_id, None)
            self._over[step_id] = None
            while len(self._over) > _REMEMBERED:
                self._over.popitem(last=False)
        if step is not None:
            step.rendezvous.abort(error or AbortedError(f"step {step_id} is over at this worker"))
            if step.session is not None:
                step.session.forget(step_id)
