"""A session's worker at an actor: what `toolkit.runtime.workers.base.Worker` asks, as calls of its methods."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

from schemas import step_stats_pb2
from toolkit.cluster.ray.answers import settle
from toolkit.cluster.ray.task import ActorTask
from toolkit.errors import CancelledError, GraphmillError, InternalError, OpError
from toolkit.graph.graph import Graph
from toolkit.kernels.context import DEAD
from toolkit.kernels.device_memory import MemoryStatistics
from toolkit.passes.pruning.client_graph import CLIENT
from toolkit.runtime.probes.base import Probe, hearer
from toolkit.runtime.steps.rendezvous import Receiver
from toolkit.runtime.workers.base import Registered

_CLIENT_KEY = f"{CLIENT};"


class _Step:
    """Attributes:
    answers: under way, given up with it.
    """

    def __init__(self) -> None:
        self.answers: set[Future[Any]] = set()
        self.cancelled = False


class RayWorker:
    """A session's worker at an actor. See `Worker`; errors are those of the actor's answers.

    Args:
        task: who is asked.
        session: the handle of its session there.
    """

    def __init__(self, task: ActorTask, session: str):
        self.task = task
        self._session = session
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._steps: dict[int, _Step] = {}
        self._others = _Step()  # calls of no step
        self._lost: OpError | None = None

    # -- calls -------------------------------------------------------------------------------------------

    def _begin(self, step: _Step, method: str, *arguments: Any) -> Future[Any]:
        with self._lock:
            if self._lost is not None:
                raise self._lost
            if step.cancelled:
                raise CancelledError("the step was cancelled")
        answer = self.task.begin(method, *arguments)
        with self._lock:
            step.answers.add(answer)
            given_up = self._lost or (CancelledError("the step was cancelled") if step.cancelled else None)
        if given_up is not None:
            settle(answer, error=given_up)
        answer.add_done_callback(lambda done: self._over(step, done))
        return answer

    def _over(self, step: _Step, answer: Future[Any]) -> None:
        with self._lock:
            step.answers.discard(answer)

    def _ask(self, step: _Step, method: str, *arguments: Any) -> Any:
        return self.task.result(self._begin(step, method, *arguments))

    def _step(self, step_id: int) -> _Step:
        with self._lock:
            return self._steps.setdefault(step_id, _Step())

    @property
    def is_busy(self) -> bool:
        """Whether something is asked of the actor."""
        return bool(self._steps or self._others.answers)

    def lose(self, error: OpError) -> None:
        """The task is gone, or is another one than it was: all that waits for it, and all that comes, ends so."""
        with self._lock:
            if self._lost is not None:
                return
            self._lost = error
            answers = [answer for step in (*self._steps.values(), self._others) for answer in step.answers]
        for answer in answers:
            settle(answer, error=error)

    # -- graphs ------------------------------------------------------------------------------------------

    def register(self, graph: Graph) -> Registered:
        """See `Worker.register`."""
        definition = graph.to_proto().SerializeToString()
        handle, inputs, outputs = self._ask(self._others, "register", self._session, definition)
        return Registered(handle, tuple(inputs), tuple(outputs), {self.task.name: graph})

    def deregister(self, handle: int) -> None:
        """See `Worker.deregister`."""
        if self._lost is None:
            self.task.tell("call", self._session, "deregister", handle)

    def explain(self, handle: int, step_id: int, inputs: Sequence[Any]) -> list[str]:
        """See `Worker.explain`."""
        return self._ask(self._step(step_id), "call", self._session, "explain", handle, step_id, list(inputs))

    def notes(self) -> list[str]:
        """See `Worker.notes`; none of a task that is lost."""
        try:
            return self._ask(self._others, "call", self._session, "notes")
        except GraphmillError:
            return []

    def statistics(self) -> dict[str, MemoryStatistics]:
        """See `Worker.statistics`."""
        return dict(self._ask(self._others, "call", self._session, "statistics"))

    # -- steps -------------------------------------------------------------------------------------------

    def run(self, handle: int, step_id: int, inputs: Sequence[Any], probe: Probe | None = None) -> list[Any]:
        """See `Worker.run`."""
        return self.begin(handle, step_id, inputs, probe, lambda: None)()

    def begin(
        self, handle: int, step_id: int, inputs: Sequence[Any], probe: Probe | None, failed: Callable[[], None]
    ) -> Callable[[], list[Any]]:
        """Have a graph run, and return what waits for its results; see `Worker`."""
        listener = hearer(probe)
        arguments = (self._session, handle, step_id, list(inputs), listener is not None)
        answer = self._begin(self._step(step_id), "run", *arguments)

        def ended(done: Future[Any]) -> None:
            try:
                self.task.result(done)
            except BaseException:
                failed()

        answer.add_done_callback(ended)

        def finish() -> list[Any]:
            values, dead, stats = self.task.result(answer)
            if listener is not None:
                listener.told(step_stats_pb2.StepStats.FromString(stats))
            for index in dead:
                values[index] = DEAD
            return values

        return finish

    def send(self, step_id: int, key: str, value: Any) -> None:
        """See `Worker.send`."""
        self._ask(self._step(step_id), "send", self._session, step_id, key, value)

    def receive(self, step_id: int, key: str, done: Receiver) -> Callable[[], object] | None:
        """See `Worker.receive`."""
        asked = ("fetch", self._session) if key.startswith(_CLIENT_KEY) else ("receive",)

        def arrived(answer: Future[Any]) -> None:
            try:
                value, is_dead = self.task.result(answer)
            except GraphmillError as error:
                done(None, False, error)
            except BaseException as error:
                done(None, False, InternalError(f"{self.task.name}: {error}"))
            else:
                done(value, is_dead, None)

        try:
            answer = self._begin(self._step(step_id), *asked, step_id, key)
        except OpError as error:
            done(None, False, error)
            return None
        answer.add_done_callback(arrived)
        return lambda: settle(answer, error=CancelledError("the step was cancelled"))

    def cancel(self, step_id: int) -> None:
        """See `Worker.cancel`."""
        step = self._step(step_id)
        with self._lock:
            if step.cancelled:
                return
            step.cancelled = True
            answers = list(step.answers)
            is_lost = self._lost is not None
        if not is_lost:
            self.task.tell("call", self._session, "cancel", step_id)
        for answer in answers:
            settle(answer, error=CancelledError("the step was cancelled"))

    def cleanup(self, step_id: int) -> None:
        """See `Worker.cleanup`."""
        with self._lock:
            known = self._steps.pop(step_id, None)
            is_lost = self._lost is not None
        if known is not None and not is_lost:
            self.task.tell("call", self._session, "cleanup", step_id)
