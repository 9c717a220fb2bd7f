"""The actors of a cluster: started where Ray has room for them, found again after a restart, ended."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Mapping, Sequence

from schemas import config_pb2
from toolkit.cluster.master.discovery import matching
from toolkit.cluster.master.found import FoundTask
from toolkit.cluster.master.health import Heartbeats
from toolkit.cluster.ray import placing
from toolkit.cluster.ray.actor import MOST_CALLS, ActorSettings, TaskActor
from toolkit.cluster.ray.connection import Connection
from toolkit.cluster.ray.library import ray
from toolkit.cluster.ray.task import ActorTask
from toolkit.cluster.ray.worker import RayWorker
from toolkit.errors import InvalidArgumentError, UnavailableError, UsageError
from toolkit.formats.settings.cluster import Cluster, Task

#: seconds that actors have to be there: for a restart, or until others leave them room
START_SECONDS = 60.0
SILENCE_SECONDS = 20.0
_ASK_SECONDS = 5.0
_PAUSE_SECONDS = 0.05
#: seconds that actors have to hear of the end of sessions
_CLOSE_SECONDS = 2.0


class RayEngine:
    """The tasks of a cluster as actors. Sessions share them, and what their variables hold.

    Args:
        address: of the Ray cluster's head; "" for one of this process's own.
        cluster: the tasks.
        settings: of all actors.
        patience: seconds that actors have to be there.
        silence: seconds after which an actor that was there and does not answer is started anew.
        heartbeats: watches the actors of sessions.

    Raises:
        UsageError: Ray is not installed, or has no room for a task, ever.
        UnavailableError: Ray cannot be reached, or does not start.
    """

    def __init__(
        self,
        address: str,
        cluster: Cluster,
        settings: ActorSettings,
        patience: float = START_SECONDS,
        silence: float = SILENCE_SECONDS,
        heartbeats: Heartbeats | None = None,
    ):
        self.cluster = cluster
        self._patience = patience
        self._lock = threading.Lock()
        self._sessions: dict[str, list[str]] = {}
        self.tasks: dict[str, ActorTask] = {}
        self._silence = silence
        self._seen: set[str] = set()
        self._heartbeats = heartbeats or Heartbeats()
        self._connection = Connection(address, len(cluster.tasks))
        try:
            self._start(settings)
        except BaseException:
            self.close()
            raise

    def _start(self, settings: ActorSettings) -> None:
        self._requests = {task.spec.task_name: placing.request_of(task) for task in self.cluster.tasks}
        missing = placing.lacking(self._requests, placing.nodes())
        if missing:
            raise UsageError(missing, file=self.cluster.source or None)
        made = ray().remote(TaskActor)
        names = list(self._requests)
        for task in _default_first(self.cluster):
            name = task.spec.task_name
            # Ray starts the process anew when it ends; what was asked of the old one is not asked again, for a
            # step may have changed variables: its session is lost, and the master's client makes another
            actor = made.options(
                **placing.options_of(self._requests[name]), max_restarts=-1, max_task_retries=0,
                max_concurrency=MOST_CALLS,
            ).remote(task.job, task.index, dict(task.devices), names, settings)  # fmt: skip
            self.tasks[name] = ActorTask(name, actor)

    # -- sessions ----------------------------------------------------------------------------------------

    def found(self, names: Sequence[str] | None = None) -> dict[str, tuple[int, FoundTask]]:
        """The processes of tasks and their devices, once all of them are there.

        Raises:
            UnavailableError: one is not there after a while; the message says what Ray lacks.
        """
        until = time.monotonic() + self._patience
        missing = dict.fromkeys(self.tasks if names is None else names, time.monotonic())
        found: dict[str, tuple[int, FoundTask]] = {}
        while missing:
            why = ""
            for name in list(missing):
                try:
                    found[name] = self.tasks[name].found(
                        min(_ASK_SECONDS, self._silence, max(0.01, until - time.monotonic()))
                    )
                except TimeoutError:
                    why = f"{name} does not answer"
                    if name in self._seen and time.monotonic() - missing[name] > self._silence:
                        self._seen.discard(name)  # its next process has all the time that a start takes
                        ray().kill(self.tasks[name].actor, no_restart=False)  # it stands still, and Ray does not mind
                except UnavailableError as error:
                    why = error.message
                else:
                    del missing[name]
            if missing and time.monotonic() > until:
                raise UnavailableError(self._why(list(missing), why))
            if missing:
                time.sleep(_PAUSE_SECONDS)
        self._seen.update(found)
        return found

    def _why(self, missing: Sequence[str], why: str) -> str:
        free: Mapping[str, float] = ray().available_resources()
        wanted = {name: self._requests[name] for name in missing}
        lacking = placing.lacking(wanted, [free])
        beside = f"of what is free, {lacking}" if lacking else why
        return f"after {self._patience:g} seconds Ray has not started {', '.join(missing)}: {beside}"

    def open_session(self, config: config_pb2.ConfigProto) -> tuple[str, list[FoundTask]]:
        """Begin a session at all tasks that its device filters leave.

        Returns:
            its handle, and the tasks.

        Raises:
            UnavailableError: a task is not there.
            OpError: a task refuses.
        """
        names = matching(list(self.tasks), config.device_filters)
        if not names:
            raise InvalidArgumentError("the session's device filters leave no task of the cluster")
        handle = secrets.token_hex(8)
        found = self.found(names)
        actors = {name: self.tasks[name].actor for name in names}
        begun = {
            name: self.tasks[name].begin("open_session", handle, actors, config.isolate_session_state) for name in names
        }
        with self._lock:
            self._sessions[handle] = names
        try:
            for name, answer in begun.items():
                self.tasks[name].result(answer, self._patience)
        except BaseException as error:
            self.close_session(handle)
            if isinstance(error, TimeoutError):
                raise UnavailableError(f"a task does not answer when a session begins: {error}") from None
            raise
        return handle, [found[name][1] for name in names]

    def worker(self, found: FoundTask, handle: str) -> RayWorker:
        """A session's worker at a task, as it was found when the session began."""
        worker = RayWorker(self.tasks[found.name], handle)
        self._heartbeats.watch(worker, found)
        return worker

    def close_session(self, handle: str) -> None:
        """The session is over; nobody waits for the actors to hear of it."""
        with self._lock:
            names = self._sessions.pop(handle, [])
        for name in names:
            self.tasks[name].tell("close_session", handle)

    def reset(self, containers: Sequence[str], filters: Sequence[str]) -> None:
        """Empty containers at tasks; the default one where none is named.

        Raises:
            OpError: a task does not answer.
        """
        for handle in list(self._sessions):
            self.close_session(handle)
        names = matching(list(self.tasks), filters)
        self.found(names)
        for name in names:
            self.tasks[name].ask("reset", list(containers), timeout=self._patience)

    # -- life --------------------------------------------------------------------------------------------

    def close(self) -> None:
        """End the actors, and Ray where it was started here. Again is fine."""
        self._heartbeats.stop()
        for handle in list(self._sessions):
            self.close_session(handle)
        for task in self.tasks.values():
            task.finish(_CLOSE_SECONDS)
        for task in self.tasks.values():
            try:
                ray().kill(task.actor)
            except Exception:  # Ray is gone, and the actor with it
                break
        self.tasks.clear()
        self._connection.close()


def _default_first(cluster: Cluster) -> list[Task]:
    """The tasks, that of nodes without a device first."""
    return sorted(cluster.tasks, key=lambda task: task.spec != cluster.default)
