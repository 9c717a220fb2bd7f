"""Sessions whose steps the actors of an engine run; their master is in this process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from schemas import config_pb2, device_attributes_pb2
from toolkit.cluster.master.found import FoundTask
from toolkit.cluster.master.session import RandomStepIds, client_node
from toolkit.cluster.ray.engine import RayEngine
from toolkit.cluster.ray.worker import RayWorker
from toolkit.errors import CancelledError, OpError
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node, Output
from toolkit.policy.rules import Policy
from toolkit.runtime.devices import Device
from toolkit.runtime.probes.base import Probe
from toolkit.runtime.session import Session
from toolkit.runtime.sessions.targets import StepOptions
from toolkit.runtime.steps.compiled import CompiledStep
from toolkit.runtime.workers.base import Environment, Worker

#: feeds, fetches and targets of a step
_Step = tuple[list[Output], list[Output], list[Node]]


class ActorSession(Session):
    """A master's session over actors.

    Args:
        graph: the client's; it may grow.
        found: the tasks, that of nodes without a device first.
        make: makes the worker of a task.
    """

    def __init__(
        self, graph: Graph, found: Sequence[FoundTask], make: Callable[[str], RayWorker], config: config_pb2.ConfigProto
    ):
        def worker(task: str, devices: Sequence[Device], environment: Environment) -> Worker:
            made = make(task)
            environment.cancellation.register(lambda: made.lose(CancelledError("the session was closed")))
            return made

        super().__init__(
            graph,
            devices=[device for each in found for device in each.devices],
            allow_soft_placement=config.allow_soft_placement,
            policy=Policy.everything(),  # every actor has its own, and judges what it is given
            workers=worker,
        )
        self._step_ids = RandomStepIds()

    def _execute(
        self, compiled: CompiledStep, arguments: list[Any], timeout_ms: int | None, probe: Probe | None = None
    ) -> list[Any]:
        try:
            return super()._execute(compiled, arguments, timeout_ms, probe)
        except OpError as error:
            if error.node is not None and error.node not in self._core:
                error.node = client_node(error.node)
            raise


class RaySession:
    """What `toolkit.runtime.sessions.targets.Remote` asks for, over an engine's actors.

    Args:
        engine: has the actors; it outlives the session, and so do variables.
        graph: may grow.
        config: `operation_timeout_in_ms` holds for all steps that have no timeout; `device_filters` and
            `isolate_session_state` are heeded.
    """

    def __init__(self, engine: RayEngine, graph: Graph, config: config_pb2.ConfigProto):
        self._engine = engine
        self._graph = graph
        self._config = config
        self._lock = threading.Lock()
        self._session: ActorSession | None = None
        self._handle = ""
        self._found: list[FoundTask] = []
        self._closed = False

    def _open(self) -> ActorSession:
        """The session, once all of its tasks are there."""
        if self._session is None:
            with self._lock:
                if self._closed:
                    raise CancelledError("the session was closed")
                if self._session is None:
                    handle, self._found = self._engine.open_session(self._config)
                    self._handle = handle

                    by_name = {each.name: each for each in self._found}

                    def make(task: str) -> RayWorker:
                        return self._engine.worker(by_name[task], handle)

                    try:
                        self._session = ActorSession(self._graph, self._found, make, self._config)
                    except BaseException:
                        self._engine.close_session(handle)
                        raise
        return self._session

    # -- the methods of `Remote` -------------------------------------------------------------------------

    def prepare(self, feeds: Sequence[Output], fetches: Sequence[Output], targets: Sequence[Node]) -> _Step:
        return list(feeds), list(fetches), list(targets)

    def run(self, step: _Step, arguments: Sequence[Any], told: StepOptions) -> list[Any]:
        feeds, fetches, targets = step
        timeout_ms = told.timeout_ms
        if timeout_ms is None and (told.options is None or not told.options.timeout_in_ms):
            timeout_ms = self._config.operation_timeout_in_ms or None
        given = dict(zip(feeds, arguments, strict=True))
        session = self._open()
        return session.run([fetches, targets], given, told.options, told.metadata, timeout_ms=timeout_ms)[0]

    def make_callable(
        self, step: _Step, options: config_pb2.RunOptions | None = None
    ) -> Callable[[Sequence[Any]], list[Any]]:
        feeds, fetches, targets = step
        call = self._open().make_callable([fetches, targets], feeds)
        return lambda arguments: call(*arguments)[0]

    def partial_run_setup(self, step: _Step) -> str:
        feeds, fetches, targets = step
        return self._open().partial_run_setup([fetches, targets], feeds)

    def partial_run(self, handle: str, step: _Step, arguments: Sequence[Any]) -> list[Any]:
        feeds, fetches, targets = step
        given = dict(zip(feeds, arguments, strict=True))
        return self._open().partial_run(handle, [fetches, targets], given)[0]

    def list_devices(self) -> list[device_attributes_pb2.DeviceAttributes]:
        self._open()
        return [attributes for each in self._found for attributes in each.attributes]

    def close(self) -> None:
        with self._lock:
            self._closed = True
            session, self._session = self._session, None
        if session is not None:
            session.close()
            self._engine.close_session(self._handle)
