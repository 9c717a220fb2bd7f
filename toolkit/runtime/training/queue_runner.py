"""Queue runners: threads that run enqueue operations as long as there is input."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from google.protobuf.message import DecodeError

from schemas import queue_runner_pb2
from toolkit.errors import BY_CODE, CancelledError, GraphError, OpError, OutOfRangeError, ResourceExhaustedError
from toolkit.graph.metagraph import GraphKeys, MetaGraph
from toolkit.runtime.session import Session
from toolkit.runtime.training.coordinator import Coordinator

#: of all runners of a graph: input pipelines have some dozens, and each takes megabytes for its stack
MOST_THREADS = 1024


class QueueRunner:
    """Keeps one queue filled.

    Args:
        queue_name: for messages and thread names.
        enqueue_ops: one thread each.
        close_op: run when the last thread ends: the queue gets no more.
        cancel_op: run when the coordinator stops: enqueues that wait are cancelled.
        closed_exceptions: what an enqueue raises when the queue was closed, which ends its thread quietly.
    """

    def __init__(
        self,
        queue_name: str,
        enqueue_ops: Sequence[str],
        close_op: str,
        cancel_op: str,
        closed_exceptions: Sequence[type[OpError]] = (OutOfRangeError,),
    ):
        if not enqueue_ops:
            raise GraphError(f"the queue runner of '{queue_name}' has no enqueue operations")
        self.queue_name = queue_name
        self.enqueue_ops = list(enqueue_ops)
        self.close_op = close_op
        self.cancel_op = cancel_op
        self.closed_exceptions = tuple(closed_exceptions)
        self._lock = threading.Lock()
        self._runs: dict[int, int] = {}  # by session: threads that have not ended
        self._errors: list[BaseException] = []

    @classmethod
    def from_proto(cls, proto: queue_runner_pb2.QueueRunnerDef) -> QueueRunner:
        """A runner as a collection lists it."""
        kinds = [BY_CODE[code] for code in proto.queue_closed_exception_types if code in BY_CODE]
        return cls(
            proto.queue_name,
            list(proto.enqueue_op_name),
            proto.close_op_name,
            proto.cancel_op_name,
            kinds or (OutOfRangeError,),
        )

    @property
    def exceptions_raised(self) -> list[BaseException]:
        """What ended threads that had no coordinator to report to."""
        return list(self._errors)

    def create_threads(
        self, session: Session, coordinator: Coordinator | None = None, daemon: bool = False, start: bool = False
    ) -> list[threading.Thread]:
        """The threads for a session; none when they run already.

        Args:
            coordinator: told of errors; when it stops, the pending enqueues are cancelled by one thread more.
            start: start them, too.

        Raises:
            ResourceExhaustedError: the system does not start that many.
        """
        with self._lock:
            if self._runs.get(id(session), 0) > 0:
                return []
            self._runs[id(session)] = len(self.enqueue_ops)
            self._errors = []
        threads = [
            threading.Thread(
                target=self._run, args=(session, op, coordinator), name=f"QueueRunnerThread-{self.queue_name}-{op}"
            )
            for op in self.enqueue_ops
        ]
        if coordinator is not None:
            threads.append(
                threading.Thread(
                    target=self._close_on_stop,
                    args=(session, coordinator),
                    name=f"QueueRunnerThread-{self.queue_name}-close_on_stop",
                )
            )
        for thread in threads:
            if coordinator is not None:
                coordinator.register_thread(thread)
            thread.daemon = daemon
            if start:
                try:
                    thread.start()
                except RuntimeError as error:
                    raise ResourceExhaustedError(
                        f"the queue runner of '{self.queue_name}' wants {len(threads)} threads: {error}"
                    ) from None
        return threads

    def _run(self, session: Session, enqueue_op: str, coordinator: Coordinator | None) -> None:
        counted = True  # this thread is among those that run
        try:
            enqueue = self.enqueuing(session, enqueue_op)
            while coordinator is None or not coordinator.should_stop():
                try:
                    enqueue()
                except self.closed_exceptions:
                    with self._lock:
                        self._runs[id(session)] -= 1
                        counted = False
                        is_last = self._runs[id(session)] == 0
                    if is_last:
                        try:
                            session.run(_operation(self.close_op))
                        except OpError:
                            return  # closed already, by the graph or by somebody else
                    return
        except BaseException as error:
            if coordinator is not None:
                if coordinator.should_stop() and isinstance(error, CancelledError):
                    return  # the session is closed, and nobody waits for this thread any more
                coordinator.request_stop(error)
            else:
                with self._lock:
                    self._errors.append(error)
        finally:
            if counted:
                with self._lock:
                    self._runs[id(session)] -= 1

    def enqueuing(self, session: Session, enqueue_op: str) -> Callable[[], Any]:
        """What a thread does again and again."""
        return session.make_callable([_operation(enqueue_op)])

    def _close_on_stop(self, session: Session, coordinator: Coordinator) -> None:
        coordinator.wait_for_stop()
        try:
            session.run(_operation(self.cancel_op))
        except Exception:
            return  # the session or the queue is closed: then nothing waits any more


def _operation(name: str) -> str:
    """An operation's name, which may be written "^name" or "name:0"."""
    return name.removeprefix("^").partition(":")[0]


def queue_runners(meta: MetaGraph, collection: str = GraphKeys.QUEUE_RUNNERS) -> list[QueueRunner]:
    """The runners that a meta graph lists.

    Raises:
        GraphError: an entry is not a QueueRunnerDef, or together they want more threads than a graph may have.
    """
    runners: list[QueueRunner] = []
    for value in meta.collections.get(collection, ()):
        try:
            proto = queue_runner_pb2.QueueRunnerDef.FromString(value)
        except (TypeError, DecodeError):
            raise GraphError(f"the collection '{collection}' holds {value!r:.60}, not a QueueRunnerDef") from None
        runners.append(QueueRunner.from_proto(proto))
    wanted = sum(len(runner.enqueue_ops) + 1 for runner in runners)
    if wanted > MOST_THREADS:
        raise GraphError(
            f"the collection '{collection}' wants {wanted:,} threads; at most {MOST_THREADS:,} are started"
        )
    return runners


def start_queue_runners(
    session: Session,
    runners: MetaGraph | Iterable[QueueRunner],
    coordinator: Coordinator | None = None,
    daemon: bool = True,
    start: bool = True,
) -> list[threading.Thread]:
    """The threads of all runners of a meta graph, or of those given."""
    found = queue_runners(runners) if isinstance(runners, MetaGraph) else list(runners)
    return [t for runner in found for t in runner.create_threads(session, coordinator, daemon=daemon, start=start)]
