"""A session at a master: made with the first step, extended as the graph grows (TensorFlow's GrpcSession)."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from schemas import config_pb2, device_attributes_pb2, graph_pb2, master_pb2
from toolkit.cluster.client.calls import MasterCalls
from toolkit.cluster.client.own_master import OwnMaster
from toolkit.cluster.client.step_messages import RemoteStep, StepAnswer, read_answer
from toolkit.cluster.rpc.statuses import to_error
from toolkit.errors import AbortedError, CancelledError, GraphError, OpError
from toolkit.graph.graph import Graph
from toolkit.graph.node import Node, Output
from toolkit.graph.nodedefs import node_to_proto
from toolkit.runtime.sessions.targets import StepOptions


class MasterSession:
    """What `toolkit.runtime.sessions.targets.Remote` asks for, over the MasterService.

    Args:
        calls: to the master; closed with the session.
        graph: may grow; nodes that the master knows must stay as they are.
        config: sent when the session is made; `operation_timeout_in_ms` holds for all steps that have no timeout.
    """

    def __init__(self, calls: MasterCalls | OwnMaster, graph: Graph, config: config_pb2.ConfigProto):
        self._calls = calls
        self._own = calls if isinstance(calls, OwnMaster) else None
        self._graph = graph
        self._config = config
        self._timeout_ms: int | None = config.operation_timeout_in_ms or None
        self._lock = threading.Lock()
        self._handle = ""
        self._version = 0  # of the master's graph
        self._known: list[Node] = []
        self._functions: set[str] = set()
        self._seen = (-1, -1)  # of our graph, when the master last had all of it
        self._left: list[int] = []  # callables that nobody has any more
        self._closed = False

    # -- the graph at the master ---------------------------------------------------------------------------

    def _ready(self) -> str:
        """The handle of the session, whose master has all of the graph."""
        if self._left:
            self._release()
        graph = self._graph
        if self._seen == (graph.version, len(graph.library)):
            return self._handle
        with self._lock:
            seen = (graph.version, len(graph.library))
            if not self._handle:
                self._create()
            elif self._seen != seen:
                self._extend()
            self._seen = seen
        return self._handle

    def _create(self) -> None:
        nodes = list(self._graph.nodes)
        request = master_pb2.CreateSessionRequest(
            graph_def=self._graph.to_proto(), config=self._config, target=self._calls.target
        )
        del request.graph_def.node[len(nodes) :]
        functions = {function.signature.name for function in request.graph_def.library.function}
        response = self._calls.create(request, self._timeout_ms)
        self._handle, self._version = response.session_handle, response.graph_version
        self._known, self._functions = nodes, functions

    def _extend(self) -> None:
        """Send what the master does not have.

        Raises:
            GraphError: nodes that it has were taken out.
            AbortedError: somebody else has extended its graph.
        """
        nodes = list(self._graph.nodes)
        known = len(self._known)
        if len(nodes) < known or (known and nodes[known - 1] is not self._known[-1]):
            raise GraphError("nodes were taken out of the graph that a master has; make a new session for what is left")
        library = self._graph.to_proto().library if len(self._graph.library) > len(self._functions) else None
        more = [each for each in library.function if each.signature.name not in self._functions] if library else []
        if len(nodes) == known and not more:
            return
        message = graph_pb2.GraphDef(node=map(node_to_proto, nodes[known:]), versions=self._graph.versions)
        if library is not None and more:
            message.library.function.extend(more)
            message.library.gradient.extend(library.gradient)
        request = master_pb2.ExtendSessionRequest(
            session_handle=self._handle, graph_def=message, current_graph_version=self._version
        )
        self._version = self._calls.call("ExtendSession", request, self._timeout_ms).new_graph_version
        self._known = nodes
        self._functions.update(each.signature.name for each in more)

    # -- steps ---------------------------------------------------------------------------------------------

    def prepare(self, feeds: Sequence[Output], fetches: Sequence[Output], targets: Sequence[Node]) -> RemoteStep:
        return RemoteStep(feeds, fetches, targets)

    def run(self, step: RemoteStep, arguments: Sequence[Any], told: StepOptions) -> list[Any]:
        handle = self._ready()
        if not step.fetch_names and not step.target_names:  # a master wants something to do
            return step.results(StepAnswer(), arguments)
        options, timeout_ms = told.options, told.timeout_ms
        timeout_ms = timeout_ms or (options.timeout_in_ms if options is not None else 0) or self._timeout_ms
        if timeout_ms is not None and (options is None or options.timeout_in_ms != timeout_ms):
            own = config_pb2.RunOptions()
            own.MergeFrom(options or own)
            own.timeout_in_ms = timeout_ms
            options = own
        if self._own is not None:
            return self._step_here(self._own, handle, step, arguments, options, told.metadata)
        answer = read_answer(self._step("RunStep", step.request(handle, arguments, options), timeout_ms), named=True)
        if told.metadata is not None and answer.metadata is not None:
            told.metadata.CopyFrom(answer.metadata)
        self._check(answer)
        return step.results(answer, arguments)

    def _step_here(
        self, own: OwnMaster, handle: str, step: RemoteStep, arguments: Sequence[Any],
        options: config_pb2.RunOptions | None, metadata: config_pb2.RunMetadata | None, partial_run: str = "",
    ) -> list[Any]:  # fmt: skip
        feeds = dict(zip(step.feed_names, arguments, strict=True))
        try:
            values = own.step(handle, step.wanted, feeds, options, metadata, partial_run)
        except (CancelledError, AbortedError) as error:
            if self._closed:
                raise CancelledError("the session was closed") from error
            raise
        return step.results(StepAnswer(dict(zip(step.fetch_names, values, strict=False))), arguments)

    def _step(self, method: str, request: bytes, timeout_ms: int | None) -> bytes:
        try:
            return self._calls.call(method, request, timeout_ms)
        except OpError:
            if self._closed:
                raise CancelledError("the session was closed") from None
            raise

    def _check(self, answer: StepAnswer) -> None:
        if not answer.code:
            return
        error = to_error(answer.code, answer.message)
        if self._closed and isinstance(error, CancelledError | AbortedError):
            raise CancelledError("the session was closed") from error
        raise error

    def make_callable(
        self, step: RemoteStep, options: config_pb2.RunOptions | None = None
    ) -> Callable[[Sequence[Any]], list[Any]]:
        handle = self._ready()
        wanted = config_pb2.CallableOptions(
            feed=step.feed_names, fetch=step.fetch_names, target=step.target_names,
            run_options=options or config_pb2.RunOptions(timeout_in_ms=self._timeout_ms or 0),
        )  # fmt: skip
        request = master_pb2.MakeCallableRequest(session_handle=handle, options=wanted)
        number: int = self._calls.call("MakeCallable", request, self._timeout_ms).handle

        def run(arguments: Sequence[Any]) -> list[Any]:
            if self._own is not None:
                values = self._own.step_of_callable(self._handle, number, arguments)
                return step.results(StepAnswer(dict(enumerate(values))), arguments)
            request = step.callable_request(self._handle, number, arguments)
            answer = read_answer(self._step("RunCallable", request, self._timeout_ms), named=False)
            return step.results(answer, arguments)

        weakref.finalize(run, self._left.append, number).atexit = False
        return run

    def _release(self) -> None:
        while self._left:
            request = master_pb2.ReleaseCallableRequest(session_handle=self._handle, handle=self._left.pop())
            self._calls.call("ReleaseCallable", request, self._timeout_ms)

    def partial_run_setup(self, step: RemoteStep) -> str:
        request = master_pb2.PartialRunSetupRequest(
            session_handle=self._ready(), feed=step.feed_names, fetch=step.fetch_names, target=step.target_names
        )
        return self._calls.call("PartialRunSetup", request, self._timeout_ms).partial_run_handle

    def partial_run(self, handle: str, step: RemoteStep, arguments: Sequence[Any]) -> list[Any]:
        if self._own is not None:
            return self._step_here(self._own, self._ready(), step, arguments, None, None, handle)
        request = step.request(self._ready(), arguments, None, handle)
        answer = read_answer(self._step("RunStep", request, self._timeout_ms), named=True)
        self._check(answer)
        return step.results(answer, arguments)

    # -- life ----------------------------------------------------------------------------------------------

    def list_devices(self) -> list[device_attributes_pb2.DeviceAttributes]:
        request = master_pb2.ListDevicesRequest(session_handle=self._ready())
        response = self._calls.call("ListDevices", request, self._timeout_ms)
        return [*response.local_device, *response.remote_device]

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._handle:
            self._calls.close_session(self._handle)
        self._calls.close()
