"""The master of a task: its sessions, over the tasks of the cluster."""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from schemas import config_pb2, device_attributes_pb2, graph_pb2, tensorflow_server_pb2, worker_pb2
from toolkit.cluster.limits import ServerLimits
from toolkit.cluster.master.discovery import discover, matching
from toolkit.cluster.master.found import FoundTask
from toolkit.cluster.master.health import Heartbeats
from toolkit.cluster.master.remote_worker import RemoteWorker
from toolkit.cluster.master.session import ClusterSession
from toolkit.cluster.master.task import FAREWELL_SECONDS, RemoteTask
from toolkit.cluster.rpc.channels import Channels
from toolkit.cluster.rpc.lines import Lines
from toolkit.errors import AbortedError, CancelledError, OpError, ResourceExhaustedError
from toolkit.graph.device import DeviceSpec
from toolkit.runtime.devices import Device
from toolkit.runtime.workers.base import Environment, Worker

_LOG = logging.getLogger("graphmill")
#: seconds after which a session that nobody has used is closed: its client is gone, or has forgotten it
IDLE_SECONDS = 86_400.0
_LOOK_SECONDS = 60.0
#: seconds that the other tasks have to hear of the end
_CLOSE_SECONDS = 2.0


class OwnTask(Protocol):
    """The master's own task, which it does not call over the wire.

    Attributes:
        name: /job:worker/replica:0/task:0.
        attributes: of its devices.
    """

    name: str
    attributes: Sequence[device_attributes_pb2.DeviceAttributes]

    def open_session(self, handle: str, isolate: bool) -> None:
        """A master begins a session; one that isolates has variables and queues of its own."""
        ...

    def worker(self, handle: str, devices: Sequence[Device], environment: Environment) -> Worker:
        """The session's worker here."""
        ...

    def close_session(self, handle: str) -> None:
        """The session is over."""
        ...

    def reset(self, containers: Sequence[str]) -> None:
        """Empty containers; the default one where none is named."""
        ...


class Master:
    """Sessions and the tasks that they run on.

    Args:
        own: the task that this master belongs to.
        addresses: of all tasks of the cluster, by name; its own is not called.
        channels: to the other tasks.
        heartbeats: watches the workers of sessions.
        idle: seconds after which a session that nobody uses is closed; 0 for never.
        limits: of graphs and sessions.
    """

    def __init__(
        self, own: OwnTask, addresses: Mapping[str, str], channels: Channels, heartbeats: Heartbeats | None = None,
        idle: float = IDLE_SECONDS, limits: ServerLimits | None = None,
    ):  # fmt: skip
        self.own = own
        self._limits = limits or ServerLimits()
        self.incarnation = secrets.randbits(62)
        self._lines = Lines(channels)
        self._tasks = {
            name: RemoteTask(name, at, channels, self._lines) for name, at in addresses.items() if name != own.name
        }
        self._heartbeats = heartbeats or Heartbeats()
        self._idle = idle
        self._lock = threading.Lock()
        self._sessions: dict[str, ClusterSession] = {}
        self._attributes: dict[str, list[FoundTask]] = {}
        self._closed = threading.Event()
        self._collector: threading.Thread | None = None

    # -- sessions ----------------------------------------------------------------------------------------

    def create_session(
        self,
        definition: graph_pb2.GraphDef,
        config: config_pb2.ConfigProto,
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> ClusterSession:
        """Begin a session, once all tasks that it may use are there.

        Args:
            is_wanted: whether the client still waits.

        Raises:
            GraphError: the graph is malformed.
            AbortedError: nobody waits any more; a task is missing.
            ResourceExhaustedError: there are too many sessions.
            OpError: a worker refuses.
        """
        self._check_count()
        found = self._discover(config.device_filters, is_wanted)
        handle = secrets.token_hex(8)
        opened: list[str] = []
        try:
            self._open(handle, found, config, opened)
            by_task = {each.name: each for each in found}
            session = ClusterSession(
                handle,
                definition,
                [device for each in found for device in each.devices],
                config,
                lambda task, devices, environment: self._worker(
                    handle, by_task[task], list(devices), environment, config
                ),
                at_end=lambda: self._end(handle, opened),
                graph_bytes=self._limits.graph,
            )
        except BaseException:
            self._end(handle, opened)
            raise
        with self._lock:
            self._sessions[handle] = session
            self._attributes[handle] = found
            if self._collector is None and self._idle:
                self._collector = threading.Thread(target=self._collect, name="graphmill sessions", daemon=True)
                self._collector.start()
        return session

    def _check_count(self) -> None:
        if self._closed.is_set():
            raise AbortedError(f"{self.own.name} is being shut down and takes no new sessions")
        if len(self._sessions) >= self._limits.sessions:
            raise ResourceExhaustedError(
                f"{self.own.name} has {self._limits.sessions} sessions already; close those that are not needed"
            )

    def _discover(self, filters: Sequence[str], is_wanted: Callable[[], bool]) -> list[FoundTask]:
        """The tasks of a session, the master's own first."""
        names = matching(list(self._tasks), filters)
        found = discover({name: self._tasks[name] for name in names}, is_wanted)
        return [FoundTask(self.own.name, tuple(self.own.attributes)), *found.values()]

    def _open(self, handle: str, found: Sequence[FoundTask], config: config_pb2.ConfigProto, opened: list[str]) -> None:
        """Begin a session at all of its workers; `opened` says at the end where it has begun."""
        self.own.open_session(handle, config.isolate_session_state)
        every = [attributes for each in found for attributes in each.attributes]
        calls: dict[str, Any] = {}
        for each in found[1:]:
            spec = DeviceSpec.parse(each.name)
            server = tensorflow_server_pb2.ServerDef(protocol="grpc", job_name=spec.job, task_index=spec.task)
            server.default_session_config.CopyFrom(config)
            request = worker_pb2.CreateWorkerSessionRequest(
                session_handle=handle, server_def=server, isolate_session_state=config.isolate_session_state,
                cluster_device_attributes=every, master_task=self.own.name, master_incarnation=self.incarnation,
            )  # fmt: skip
            calls[each.name] = self._tasks[each.name].start("CreateWorkerSession", request)
            opened.append(each.name)
        for name, call in calls.items():
            self._tasks[name].result(call, "CreateWorkerSession")

    def _worker(
        self, handle: str, found: FoundTask, devices: list[Device], environment: Environment,
        config: config_pb2.ConfigProto,
    ) -> Worker:  # fmt: skip
        if found.name == self.own.name:
            return self.own.worker(handle, devices, environment)
        worker = RemoteWorker(self._tasks[found.name], devices, handle, config)
        self._heartbeats.watch(worker, found)
        environment.cancellation.register(lambda: worker.lose(CancelledError("the session was closed")))
        return worker

    def _end(self, handle: str, opened: Sequence[str]) -> None:
        with self._lock:
            self._sessions.pop(handle, None)
            self._attributes.pop(handle, None)
        for name in opened:
            self._tasks[name].tell("DeleteWorkerSession", worker_pb2.DeleteWorkerSessionRequest(session_handle=handle))
        self.own.close_session(handle)

    def session(self, handle: str) -> ClusterSession:
        """The session of that handle.

        Raises:
            AbortedError: there is none.
        """
        found = self._sessions.get(handle)
        if found is None:
            raise AbortedError(
                f"{self.own.name} has no session '{handle}': it was closed, or the server has started anew"
            )
        return found

    def sessions(self) -> list[ClusterSession]:
        """All that are open."""
        return list(self._sessions.values())

    def devices(self, handle: str = "") -> list[FoundTask]:
        """The tasks of a session with their devices, the master's own first; without a handle, of the cluster.

        Raises:
            AbortedError: there is no such session.
        """
        if not handle:
            return self._discover((), lambda: True)
        self.session(handle)
        return self._attributes[handle]

    def reset(self, containers: Sequence[str], filters: Sequence[str]) -> None:
        """Close all sessions, and empty containers at all tasks; the default one where none is named.

        Raises:
            OpError: a task does not answer.
        """
        for session in self.sessions():
            session.close()
        self.own.reset(containers)
        request = worker_pb2.CleanupAllRequest(container=containers)
        calls = {
            name: self._tasks[name].start("CleanupAll", request, timeout=FAREWELL_SECONDS)
            for name in matching(list(self._tasks), filters)
        }
        failures: list[OpError] = []
        for name, call in calls.items():
            try:
                self._tasks[name].result(call, "CleanupAll")
            except OpError as error:
                failures.append(error)
        if failures:
            raise failures[0]

    # -- life --------------------------------------------------------------------------------------------

    def _collect(self) -> None:
        while not self._closed.wait(min(_LOOK_SECONDS, self._idle)):
            self.collect(time.monotonic())

    def collect(self, now: float) -> None:
        """Close the sessions that nobody has used for too long."""
        for session in self.sessions():
            idle = now - session.last_used
            if not session.running and idle > self._idle:
                _LOG.warning("session %s is closed: nobody has used it for %.0f seconds", session.handle, idle)
                session.close()

    def refuse(self) -> None:
        """Take no new sessions from now on."""
        self._closed.set()

    @property
    def is_closing(self) -> bool:
        """Whether it takes no new sessions any more."""
        return self._closed.is_set()

    def close(self) -> None:
        """Close all sessions. Closing twice is fine."""
        self.refuse()
        self._heartbeats.stop()
        for session in self.sessions():
            session.close()
        for task in self._tasks.values():
            task.finish(_CLOSE_SECONDS)
        self._lines.close()
