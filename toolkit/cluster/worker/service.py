"""TensorFlow's WorkerService over a task, method by method.

Collective operations have no meaning here, nor has profiling by request: RecvBuf, CompleteGroup, CompleteInstance,
GetStepSequence and Tracing say so. What a step fails of is told in the body of RunGraph's response where the master
asks for that, as TensorFlow's does.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from schemas import worker_pb2
from toolkit.cluster.rpc import lines, services, statuses, tensors
from toolkit.cluster.rpc.bulk import BulkSender
from toolkit.cluster.rpc.channels import MESSAGE_BYTES
from toolkit.cluster.rpc.line_server import LineAnswer, LineServer, parsed
from toolkit.cluster.rpc.server import LOOPBACK
from toolkit.cluster.rpc.tickets import TicketListener
from toolkit.cluster.worker.calls import AskedTensor, RecentRequests, StepEnding
from toolkit.cluster.worker.costs import cost_graph
from toolkit.cluster.worker.session import WorkerSession
from toolkit.cluster.worker.task import WorkerTask
from toolkit.errors import (
    CancelledError,
    InvalidArgumentError,
    ResourceExhaustedError,
    UnavailableError,
    UnimplementedError,
)
from toolkit.formats import bounds
from toolkit.graph.device import DeviceSpec
from toolkit.runtime.probes.trace import TraceProbe, step_stats

#: threads that send tensors which others have waited for: a slow receiver keeps one busy, never a step
_SENDERS = 16
#: calls that wait for tensors at one time, some kB each; a step of a large graph has hundreds
_WAITING = 50_000
#: the field of RunGraph's request that has tensors
_SEND = worker_pb2.RunGraphRequest.SEND_FIELD_NUMBER
_MEANINGLESS = {
    "RecvBuf": "collective operations", "CompleteGroup": "collective operations",
    "CompleteInstance": "collective operations", "GetStepSequence": "collective operations",
    "Tracing": "profiling by request; run a step with a trace level instead",
}  # fmt: skip


class WorkerService:
    """The methods of a task.

    Args:
        graph_bytes: the largest graph that is registered.
        waiting: how many calls may wait for tensors; more are refused.
        line_host: where lines of other tasks of ours may come (`rpc.lines`), and who fetches large tensors; "" for no
            lines.
        message_bytes: the largest request that comes over one.
    """

    def __init__(
        self, task: WorkerTask, *, graph_bytes: int = bounds.REPEATED, waiting: int = _WAITING, line_host: str = "",
        message_bytes: int = MESSAGE_BYTES,
    ):  # fmt: skip
        self.task = task
        self._graph_bytes = graph_bytes
        self._seen = RecentRequests()
        self._tickets = TicketListener(line_host or LOOPBACK)
        self._bulk = BulkSender(self._tickets)
        self._most_waiting = waiting
        self._waiting: set[AskedTensor] = set()
        self._senders = ThreadPoolExecutor(_SENDERS, thread_name_prefix="graphmill send")
        methods = {"RunGraph": self._run_by_line, "CleanupGraph": self._clean_by_line, "RecvTensor": self._send_by_line}
        self._lines = LineServer(methods, ("RunGraph",), self._tickets, message_bytes) if line_host else None

    def handlers(self) -> list[Any]:
        """What a `grpc.Server` is given: the service, and by what it is asked for lines."""
        return [self.handler(), *([] if self._lines is None else [lines.handler(self._lines)])]

    def handler(self) -> Any:
        """The service."""
        found: dict[str, Callable[[Any, Any], Any]] = {
            "GetStatus": self.get_status,
            "CreateWorkerSession": self.create_session,
            "DeleteWorkerSession": self.delete_session,
            "RegisterGraph": self.register_graph,
            "DeregisterGraph": self.deregister_graph,
            "RunGraph": self.run_graph,
            "CleanupGraph": self.clean_up_graph,
            "CleanupAll": self.clean_up_all,
            "MarkRecvFinished": self.mark_received,
            "Logging": self.logging,
        }
        for name, what in _MEANINGLESS.items():
            found[name] = _unimplemented(name, what)
        told = {name: _telling(method) for name, method in found.items()}
        return services.handler(
            services.WORKER, told, raw=("RecvTensor", "RunGraph"), later={"RecvTensor": self.receive_tensor},
            raw_requests=("RunGraph",),
        )  # fmt: skip

    def close(self) -> None:
        """Let go of its threads."""
        self._senders.shutdown(wait=False)
        self._tickets.close()

    # -- the task and its sessions -----------------------------------------------------------------------

    def get_status(self, request: worker_pb2.GetStatusRequest, context: Any) -> worker_pb2.GetStatusResponse:
        """Devices with their incarnations."""
        return worker_pb2.GetStatusResponse(device_attributes=self.task.device_attributes())

    def create_session(
        self, request: worker_pb2.CreateWorkerSessionRequest, context: Any
    ) -> worker_pb2.CreateWorkerSessionResponse:
        """A session, in the server's cluster or in one of its own."""
        server = request.server_def
        spec = DeviceSpec(server.job_name, server.replica, server.task_index) if server.job_name else None
        self.task.create_session(
            request.session_handle,
            server.cluster,
            spec,
            is_isolated=request.isolate_session_state,
            master=request.master_task,
            master_incarnation=request.master_incarnation,
        )
        return worker_pb2.CreateWorkerSessionResponse()

    def delete_session(
        self, request: worker_pb2.DeleteWorkerSessionRequest, context: Any
    ) -> worker_pb2.DeleteWorkerSessionResponse:
        """The end of a session."""
        if not request.session_handle:
            raise InvalidArgumentError("a session at a worker needs a handle")
        self.task.delete_session(request.session_handle)
        return worker_pb2.DeleteWorkerSessionResponse()

    def clean_up_all(self, request: worker_pb2.CleanupAllRequest, context: Any) -> worker_pb2.CleanupAllResponse:
        """Drop what is in containers."""
        self.task.clear_containers(request.container)
        return worker_pb2.CleanupAllResponse()

    def _session(self, request: Any) -> WorkerSession:
        return self.task.session(request.session_handle if request.create_worker_session_called else "")

    # -- graphs ------------------------------------------------------------------------------------------

    def register_graph(
        self, request: worker_pb2.RegisterGraphRequest, context: Any
    ) -> worker_pb2.RegisterGraphResponse:
        """Make a partition ready to run."""
        session = self._session(request)
        size = request.graph_def.ByteSize()
        if size > self._graph_bytes:
            raise InvalidArgumentError(
                f"a graph of {size:,} bytes is more than this server takes, {self._graph_bytes:,}; large constants "
                "are better fed or restored"
            )
        return worker_pb2.RegisterGraphResponse(graph_handle=session.register(request.graph_def))

    def deregister_graph(
        self, request: worker_pb2.DeregisterGraphRequest, context: Any
    ) -> worker_pb2.DeregisterGraphResponse:
        """Forget a graph."""
        self._session(request).deregister(request.graph_handle)
        return worker_pb2.DeregisterGraphResponse()

    def run_graph(self, data: bytes, context: Any) -> bytes:
        """Run a graph, or go on with a partial run."""
        request, feeds = tensors.take_named(data, worker_pb2.RunGraphRequest, _SEND)
        self._seen.check(request.request_id)
        session = self._session(request)
        response = worker_pb2.RunGraphResponse()
        ending = StepEnding(session, request.step_id)
        try:
            if not context.add_callback(ending.call_is_over):
                raise CancelledError("the call was cancelled")
            values = self._run(session, request, feeds, response)
        except Exception as error:
            if isinstance(error, CancelledError) and self.task.is_shut_down:  # a session recovers from that
                error = UnavailableError(f"{self.task.name} was shut down while it ran the step")
            if not request.store_errors_in_response_body:
                raise error
            code, message = statuses.status_of(error)
            response.status_code = code  # type: ignore[assignment]
            response.status_error_message = message
            return response.SerializeToString()
        finally:
            ending.step_is_over()
        return _with_tensors(response, request.recv_key, values)

    def _run(
        self, session: WorkerSession, request: worker_pb2.RunGraphRequest, feeds: dict[str, Any],
        response: worker_pb2.RunGraphResponse,
    ) -> list[Any]:  # fmt: skip
        options = request.exec_opts
        if options.record_timeline:
            self.task.logs.trace(request.step_id)
        # costs are wanted of nodes, one by one
        probe = TraceProbe(per_node=options.record_costs) if options.record_timeline or options.record_costs else None
        if request.is_partial:
            values = session.run_partially(
                request.graph_handle, request.step_id, feeds, request.recv_key,
                is_last=request.is_last_partial_run, probe=probe,
            )  # fmt: skip
        else:
            values = session.run(request.graph_handle, request.step_id, feeds, request.recv_key, probe)
        if options.record_partition_graphs:
            for part in session.graph(request.graph_handle).partitions.values():
                response.partition_graph.add().CopyFrom(part.to_proto())
        if probe is not None:
            spans = probe.on_device(session.devices[0].name)
            if options.record_timeline:
                response.step_stats.CopyFrom(step_stats(spans))
            if options.record_costs:
                response.cost_graph.CopyFrom(cost_graph(spans, session.graph(request.graph_handle).partitions))
        return values

    def clean_up_graph(self, request: worker_pb2.CleanupGraphRequest, context: Any) -> worker_pb2.CleanupGraphResponse:
        """The end of a step."""
        self.task.steps.finish(request.step_id)
        return worker_pb2.CleanupGraphResponse()

    # -- tensors -----------------------------------------------------------------------------------------

    def receive_tensor(self, request: worker_pb2.RecvTensorRequest, answer: services.Answer) -> None:
        """Answer with a tensor as soon as it is there; who waits for one takes no thread."""
        self._await_tensor(request, answer, AskedTensor(request, answer, self._senders, self._bulk))

    def _await_tensor(
        self, request: worker_pb2.RecvTensorRequest, answer: services.Answer | LineAnswer, asked: AskedTensor
    ) -> None:
        try:
            if len(self._waiting) >= self._most_waiting:
                raise ResourceExhaustedError(f"{self._most_waiting:,} calls wait for tensors here; no more can")
            self._waiting.add(asked)

            def over() -> None:
                self._waiting.discard(asked)

            if not answer.when_over(over):
                over()
            self._seen.check(request.request_id)
            withdraw = self.task.receive(request.step_id, request.rendezvous_key, asked.arrived)
            if not answer.when_over(withdraw):
                withdraw()
        except Exception as error:
            asked.arrived(None, False, error)
            asked.begun(is_waiting=False)
        else:
            asked.begun(is_waiting=True)

    # -- over lines --------------------------------------------------------------------------------------

    def _run_by_line(self, data: bytes, answer: LineAnswer) -> None:
        answer.give(self.run_graph(data, answer))

    def _clean_by_line(self, data: bytes, answer: LineAnswer) -> None:
        self.task.steps.finish(parsed(worker_pb2.CleanupGraphRequest, data).step_id)
        answer.give(b"")

    def _send_by_line(self, data: bytes, answer: LineAnswer) -> None:
        request = parsed(worker_pb2.RecvTensorRequest, data)
        self._await_tensor(request, answer, AskedTensor(request, answer, None, self._bulk))

    # -- the rest ----------------------------------------------------------------------------------------

    def mark_received(
        self, request: worker_pb2.MarkRecvFinishedRequest, context: Any
    ) -> worker_pb2.MarkRecvFinishedResponse:
        """Nothing is kept for who might ask again, so there is nothing to drop."""
        return worker_pb2.MarkRecvFinishedResponse()

    def logging(self, request: worker_pb2.LoggingRequest, context: Any) -> worker_pb2.LoggingResponse:
        """Switch the logs of transfers on or off, fetch and clear them."""
        logs = self.task.logs
        if request.enable_rpc_logging:
            logs.is_on = True
        if request.disable_rpc_logging or not (request.enable_rpc_logging or request.fetch_step_id):
            logs.is_on = False  # older masters switch it off by not asking for it
        response = worker_pb2.LoggingResponse(step=logs.fetch(request.fetch_step_id))
        if request.clear:
            logs.clear()
        return response


def _with_tensors(response: worker_pb2.RunGraphResponse, keys: Any, values: list[Any]) -> bytes:
    """The response's bytes, and those of the tensors as they lie in memory."""
    parts = [response.SerializeToString()]
    for key, value in zip(keys, values, strict=True):
        parts += tensors.named_tensor(worker_pb2.RunGraphResponse.RECV_FIELD_NUMBER, key, value)
    return b"".join(parts)


def _telling(method: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The method, whose errors end the call with their status."""

    def told(request: Any, context: Any) -> Any:
        try:
            return method(request, context)
        except Exception as error:
            statuses.abort(context, error)

    return told


def _unimplemented(name: str, what: str) -> Callable[[Any, Any], Any]:
    def refuse(request: Any, context: Any) -> Any:
        raise UnimplementedError(f"{name}: this worker has no {what}")

    return refuse
