"""A task of another process as a `Worker`: the client's side of TensorFlow's WorkerService."""

from __future__ import annotations

import functools
import itertools
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from schemas import config_pb2, worker_pb2
from toolkit.cluster.master.run_answers import read_answer
from toolkit.cluster.master.task import RemoteTask
from toolkit.cluster.master.transfers import WorkerGraph, worker_graph
from toolkit.cluster.rpc import statuses, tensors, wire
from toolkit.errors import AbortedError, CancelledError, InternalError, OpError
from toolkit.formats.arrays.tensor import from_array, to_array
from toolkit.graph.graph import Graph
from toolkit.graph.node import ENTER_OPS
from toolkit.kernels.device_memory import MemoryStatistics
from toolkit.passes.pruning.client_graph import CLIENT
from toolkit.runtime.device_threads import start
from toolkit.runtime.devices import Device
from toolkit.runtime.probes.base import Probe, hearer
from toolkit.runtime.steps.rendezvous import Receiver
from toolkit.runtime.workers.base import Registered

_CLIENT_KEY = f"{CLIENT};"
# numbers of fields of RunGraphRequest
_STEP_ID, _SEND, _REQUEST_ID = 2, 3, 11
_TIMELINE = worker_pb2.RunGraphRequest(exec_opts={"record_timeline": True}).SerializeToString()


class _Step:
    """A step at this task.

    Attributes:
        calls: under way, to be cancelled with it.
        keys: of its graph: what the client sends and receives, by name.
        started: the graph runs, or will not.
        error: why a partial run has failed.
    """

    def __init__(self) -> None:
        self.calls: set[Any] = set()
        self.cancelled = False
        self.handle = ""
        self.keys: dict[str, str] = {}
        self.started = threading.Event()
        self.error: BaseException | None = None


@dataclass(frozen=True, slots=True)
class _Graph:
    """A graph that is registered at the task.

    Attributes:
        handle: the task's name of it.
        inputs, outputs: the rendezvous keys of its arguments and results, in order.
        request: what all requests to run it have in common.
    """

    handle: str
    worker_graph: WorkerGraph
    inputs: list[str]
    outputs: list[str]
    request: bytes


class RemoteWorker:
    """A session's worker at another task. See `Worker`; errors are those of the task's answers.

    Args:
        task: who is asked.
        devices: of the task.
        session: the handle of its worker session there.
        config: of the session.
    """

    def __init__(self, task: RemoteTask, devices: Sequence[Device], session: str, config: config_pb2.ConfigProto):
        self.task = task
        self._device = devices[0]
        self._session = session
        self._config = config
        self._lock = threading.Lock()
        self._graphs: dict[int, _Graph] = {}
        self._handles = itertools.count(1)
        self._steps: dict[int, _Step] = {}
        self._registering: set[Any] = set()
        self._lost: OpError | None = None

    # -- calls -------------------------------------------------------------------------------------------

    def _call(self, method: str, request: Any, calls: set[Any], step: _Step | None = None) -> Any:
        return self._finished(method, self._started(method, request, calls, step), calls)

    def _started(self, method: str, request: Any, calls: set[Any], step: _Step | None = None) -> Any:
        with self._lock:
            self._check(step)
            call = self.task.start(method, request)
            calls.add(call)
            return call

    def _finished(self, method: str, call: Any, calls: set[Any]) -> Any:
        try:
            return self.task.result(call, method)
        except CancelledError:
            raise self._lost or CancelledError("the step was cancelled") from None
        finally:
            with self._lock:
                calls.discard(call)

    def _check(self, step: _Step | None) -> None:
        """Raises what no call can succeed for."""
        if self._lost is not None:
            raise self._lost
        if step is not None and step.cancelled:
            raise CancelledError("the step was cancelled")

    def _step(self, step_id: int) -> _Step:
        with self._lock:
            return self._steps.setdefault(step_id, _Step())

    @property
    def is_busy(self) -> bool:
        """Whether a step runs there."""
        return bool(self._steps or self._registering)

    def lose(self, error: OpError) -> None:
        """The task is gone, or is another one than it was: all that waits for it, and all that comes, ends so."""
        with self._lock:
            if self._lost is not None:
                return
            self._lost = error
            calls = [call for step in self._steps.values() for call in step.calls] + list(self._registering)
        for call in calls:
            call.cancel()
        if not isinstance(error, CancelledError):  # it was not the session that ended
            self.task.lose()

    # -- graphs ------------------------------------------------------------------------------------------

    def register(self, graph: Graph) -> Registered:
        """See `Worker.register`."""
        made = worker_graph(graph, self._device.name, self._device.incarnation)
        request = worker_pb2.RegisterGraphRequest(
            session_handle=self._session,
            create_worker_session_called=True,
            graph_def=made.graph.to_proto(),
            has_control_flow=any(node.op in ENTER_OPS for node in graph),
            graph_options=self._config.graph_options,
            config_proto=self._config,
        )
        answer = self._call("RegisterGraph", request, self._registering)
        handle = next(self._handles)
        self._graphs[handle] = self._described(answer.graph_handle, made)
        return Registered(handle, made.inputs, made.outputs, {self.task.name: graph})

    def deregister(self, handle: int) -> None:
        """See `Worker.deregister`."""
        found = self._graphs.pop(handle, None)
        if found is not None and self._lost is None:
            request = worker_pb2.DeregisterGraphRequest(
                graph_handle=found.handle, session_handle=self._session, create_worker_session_called=True
            )
            self.task.tell("DeregisterGraph", request)

    def explain(self, handle: int, step_id: int, inputs: Sequence[Any]) -> list[str]:
        """See `Worker.explain`."""
        return [f"{len(self._graphs[handle].worker_graph.graph)} nodes, which {self.task} prepares by itself"]

    def notes(self) -> list[str]:
        """See `Worker.notes`: the other process keeps its own."""
        return []

    def statistics(self) -> dict[str, MemoryStatistics]:
        """See `Worker.statistics`."""
        return {}

    # -- steps -------------------------------------------------------------------------------------------

    def run(self, handle: int, step_id: int, inputs: Sequence[Any], probe: Probe | None = None) -> list[Any]:
        """See `Worker.run`."""
        return self.begin(handle, step_id, inputs, probe, lambda: None)()

    def begin(
        self, handle: int, step_id: int, inputs: Sequence[Any], probe: Probe | None, failed: Callable[[], None]
    ) -> Callable[[], list[Any]]:
        """Have a graph run, and return what waits for its results; see `Worker`."""
        graph = self._graphs.get(handle)
        if graph is None:
            raise self._lost or AbortedError(f"{self.task} has no graph with the handle {handle}; it was dropped")
        step = self._step(step_id)
        listener = hearer(probe)
        if graph.worker_graph.is_partial:
            waited = start(self.task.name, functools.partial(self._run_partial, graph, step, step_id, listener, failed))
            return lambda: _outcome(waited, step)
        pieces = [graph.request + wire.number(_STEP_ID, step_id) + wire.number(_REQUEST_ID, request_id())]
        if listener is not None:
            pieces.append(_TIMELINE)
        for key, value in zip(graph.inputs, inputs, strict=True):
            pieces += tensors.named_tensor(_SEND, key, value)

        def ended(response: bytes, error: OpError | None) -> None:
            with self._lock:
                step.calls.discard(call)
            if error is not None or (response and read_answer(response).code):
                failed()

        with self._lock:
            self._check(step)
            call = self.task.begin("RunGraph", pieces)
            step.calls.add(call)
        call.react(ended)

        def finish() -> list[Any]:
            try:
                response = call.result()
            except CancelledError:
                raise self._lost or CancelledError("the step was cancelled") from None
            if not response and not graph.outputs:
                return []
            answer = read_answer(response)
            if answer.code:
                raise statuses.to_error(answer.code, answer.message)
            if listener is not None:
                listener.told(answer.rest.step_stats)
            return [self._found(answer.values, key) for key in graph.outputs]

        return finish

    def _described(self, handle: str, made: WorkerGraph) -> _Graph:
        outputs = [made.keys[name] for name in made.outputs]
        request = worker_pb2.RunGraphRequest(
            session_handle=self._session, create_worker_session_called=True, graph_handle=handle,
            store_errors_in_response_body=True, recv_key=outputs,
        )  # fmt: skip
        inputs = [made.keys[name] for name in made.inputs]
        return _Graph(handle, made, inputs, outputs, request.SerializeToString())

    def _run_partial(self, graph: _Graph, step: _Step, step_id: int, listener: Any, failed: Callable[[], None]) -> None:
        request = self._request(graph.handle, step_id)
        request.exec_opts.record_timeline = listener is not None
        try:
            self._run_bit_by_bit(graph.worker_graph, step, request)
        except BaseException as error:
            step.error = error
            failed()

    def _request(self, handle: str, step_id: int) -> worker_pb2.RunGraphRequest:
        return worker_pb2.RunGraphRequest(
            session_handle=self._session,
            create_worker_session_called=True,
            graph_handle=handle,
            step_id=step_id,
            store_errors_in_response_body=True,
            request_id=request_id(),
        )

    def _run_graph(self, request: worker_pb2.RunGraphRequest, step: _Step) -> worker_pb2.RunGraphResponse:
        return _checked(self._call("RunGraph", request, step.calls, step))

    def _found(self, found: Mapping[str, Any], key: str) -> Any:
        if key not in found:
            raise InternalError(f"{self.task} did not answer with the result {key.split(';')[3]}")
        return found[key]

    def _run_bit_by_bit(self, graph: WorkerGraph, step: _Step, request: worker_pb2.RunGraphRequest) -> None:
        """A partial run: the first call starts the graph, the last one, which sends nothing more, waits for its end."""
        request.is_partial = True
        step.handle, step.keys = request.graph_handle, dict(graph.keys)
        try:
            self._run_graph(request, step)
        finally:
            step.started.set()
        request.is_last_partial_run = True
        request.request_id = request_id()
        self._run_graph(request, step)

    def _part_of(self, step_id: int, key: str) -> tuple[_Step, worker_pb2.RunGraphRequest, str]:
        """A step that has been started, a request for more of it, and the client's key as the task knows it."""
        step = self._step(step_id)
        step.started.wait()
        request = self._request(step.handle, step_id)
        request.is_partial = True
        return step, request, step.keys[key.split(";")[3]]

    def send(self, step_id: int, key: str, value: Any) -> None:
        """See `Worker.send`."""
        step, request, key = self._part_of(step_id, key)
        request.send.add(name=key, tensor=from_array(value))
        self._run_graph(request, step)

    def receive(self, step_id: int, key: str, done: Receiver) -> Callable[[], object] | None:
        """See `Worker.receive`."""
        if key.startswith(_CLIENT_KEY):
            step, request, key = self._part_of(step_id, key)
            request.recv_key.append(key)
            return self._receive_by("RunGraph", request, step, done, functools.partial(_fetched, key))
        wanted = worker_pb2.RecvTensorRequest(step_id=step_id, rendezvous_key=key, request_id=request_id())
        return self._receive_by("RecvTensor", wanted, self._step(step_id), done, _received)

    def _receive_by(
        self, method: str, request: Any, step: _Step, done: Receiver, read: Callable[[Any], tuple[Any, bool]]
    ) -> Callable[[], object] | None:
        def arrived(call: Any) -> None:
            with self._lock:
                step.calls.discard(call)
            try:
                value, is_dead = read(self.task.result(call, method))
            except CancelledError as error:
                done(None, False, self._lost or error)
            except BaseException as error:
                done(None, False, error)
            else:
                done(value, is_dead, None)

        try:
            with self._lock:
                self._check(step)
                call = self.task.start(method, request)
                step.calls.add(call)
        except OpError as error:
            done(None, False, error)
            return None
        call.add_done_callback(arrived)
        return call.cancel

    def cancel(self, step_id: int) -> None:
        """See `Worker.cancel`: the task ends a step whose call is cancelled."""
        step = self._step(step_id)
        with self._lock:
            step.cancelled = True
            calls = list(step.calls)
        step.started.set()
        for call in calls:
            call.cancel()

    def cleanup(self, step_id: int) -> None:
        """See `Worker.cleanup`."""
        with self._lock:
            known = self._steps.pop(step_id, None)
        if known is not None:
            self.task.clean_up(step_id)


def _checked(answer: worker_pb2.RunGraphResponse) -> worker_pb2.RunGraphResponse:
    """The answer.

    Raises:
        OpError: the step failed.
    """
    if answer.status_code:
        raise statuses.to_error(answer.status_code, answer.status_error_message)
    return answer


def _outcome(waited: Callable[[], object], step: _Step) -> list[Any]:
    waited()
    if step.error is not None:
        raise step.error
    return []


def request_id() -> int:
    """A number that no other request has: what arrives twice is answered once."""
    return secrets.randbits(62) + 1


def _fetched(key: str, answer: worker_pb2.RunGraphResponse) -> tuple[Any, bool]:
    if answer.status_code:
        raise statuses.to_error(answer.status_code, answer.status_error_message)
    for each in answer.recv:
        if each.name == key:
            return to_array(each.tensor), False
    raise InternalError(f"the answer lacks what was asked for: {key}")


def _received(answer: worker_pb2.RecvTensorResponse) -> tuple[Any, bool]:
    if answer.is_dead:
        return np.zeros(0, np.float32), True
    return to_array(answer.tensor), False
