"""As much of a master as tests of workers need: a graph split over tasks, registered and run, request by request."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any

import grpc

from schemas import worker_pb2
from tests import patience
from tests.cluster.tensorflow_servers import free_ports
from toolkit.cluster.rpc import services, tensors
from toolkit.cluster.rpc.channels import channel
from toolkit.cluster.rpc.server import Listening, Server
from toolkit.cluster.worker.service import WorkerService
from toolkit.cluster.worker.task import WorkerTask
from toolkit.errors import OpError
from toolkit.formats.arrays.tensor import from_array
from toolkit.graph.device import DeviceSpec
from toolkit.graph.graph import Graph
from toolkit.passes.partitioning.partition import by_task, split
from toolkit.passes.pruning.client_graph import CLIENT, feed_key, fetch_key, rewrite_for_partial_run
from toolkit.policy.rules import Policy
from toolkit.runtime.steps.rendezvous import make_key

PS, WORKER = "/job:ps/replica:0/task:0", "/job:worker/replica:0/task:0"


def client_key(name: str) -> str:
    """The key under which a client's tensor crosses."""
    return make_key(CLIENT, 0, CLIENT, name, (0, 0))


class Served:
    """A task of ours in this process, behind its server."""

    def __init__(self, name: str, addresses: Mapping[str, str], policy: Policy | None = None, **more: Any):
        self.task = WorkerTask(DeviceSpec.parse(name), addresses, policy=policy, **more)
        self.service = WorkerService(self.task)
        self.server = Server(Listening(port=int(addresses[name].rpartition(":")[2])), [self.service.handler()])
        self.server.start()
        self.channel = channel(addresses[name])
        self.stub = services.Stub(self.channel, services.WORKER)

    def call(self, method: str, request: Any) -> Any:
        """A method, with a deadline that only ends what hangs."""
        return self.stub[method](request, timeout=patience.HUNG)

    def stop(self) -> None:
        """End it and what it does."""
        self.channel.close()
        self.task.close()
        self.server.stop()
        self.service.close()


class Pair:
    """A parameter server and a worker.

    Attributes:
        sent: requests, by method, as they went out.
    """

    def __init__(self, policy: Policy | None = None, **more: Any):
        ports = free_ports(2)
        self.addresses = {name: f"127.0.0.1:{port}" for name, port in zip((PS, WORKER), ports, strict=True)}
        self.tasks = {name: Served(name, self.addresses, policy, **more) for name in self.addresses}
        self.sent: list[tuple[str, str, Any]] = []

    def call(self, task: str, method: str, request: Any) -> Any:
        """Ask a task."""
        self.sent.append((task, method, request))
        return self.tasks[task].call(method, request)

    def incarnation(self, device: str) -> int:
        """Of a device, as its task tells it."""
        task = device.partition("/device:")[0]
        status = self.tasks[task].call("GetStatus", worker_pb2.GetStatusRequest())
        return next(each.incarnation for each in status.device_attributes if each.name == device)

    def create(self, handle: str, **more: Any) -> None:
        """A session at both."""
        for task in self.tasks:
            self.call(task, "CreateWorkerSession", worker_pb2.CreateWorkerSessionRequest(session_handle=handle, **more))

    def register(self, handle: str, graph: Graph, feeds: list[str], fetches: list[str]) -> dict[str, str]:
        """Split a graph and register its parts; handles by task."""

        def output(name: str) -> Any:
            return graph.node(name).output()

        client = rewrite_for_partial_run(graph, [*map(output, feeds)], [*map(output, fetches)], [])
        parts = split(client, by_task, incarnation=self.incarnation)
        return {
            task: self.call(
                task, "RegisterGraph",
                worker_pb2.RegisterGraphRequest(
                    session_handle=handle, create_worker_session_called=True, graph_def=part.to_proto()
                ),
            ).graph_handle
            for task, part in parts.items()
        }  # fmt: skip

    def run(
        self, handle: str, graphs: Mapping[str, str], step_id: int,
        feeds: Mapping[str, Mapping[int, Any]], fetches: Mapping[str, list[int]], **more: Any,
    ) -> dict[int, Any]:  # fmt: skip
        """Run a step at both and clean up; values by the fetch's number.

        Args:
            feeds, fetches: by task.

        Raises:
            OpError: the first that a body told.
        """
        values: dict[int, Any] = {}
        failures: list[OpError] = []

        def at(task: str) -> None:
            request = worker_pb2.RunGraphRequest(
                session_handle=handle, create_worker_session_called=True, graph_handle=graphs[task], step_id=step_id,
                recv_key=[client_key(fetch_key(index)) for index in fetches.get(task, [])],
                store_errors_in_response_body=True, **more,
            )  # fmt: skip
            for index, value in feeds.get(task, {}).items():
                sent = request.send.add(name=client_key(feed_key(index)))
                sent.tensor.CopyFrom(from_array(value))
            response = self.call(task, "RunGraph", request)
            if response.status_code:
                from toolkit.cluster.rpc.statuses import to_error

                failures.append(to_error(response.status_code, response.status_error_message))
            for index, named in zip(fetches.get(task, []), response.recv, strict=False):
                values[index] = tensors.read_message(named.tensor)

        threads = [threading.Thread(target=at, args=(task,), daemon=True) for task in graphs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(patience.HUNG)
        for task in graphs:
            self.call(task, "CleanupGraph", worker_pb2.CleanupGraphRequest(step_id=step_id))
        if failures:
            raise failures[0]
        return values

    def stop(self) -> None:
        """End both."""
        for each in self.tasks.values():
            each.stop()


@contextmanager
def pair(policy: Policy | None = None, **more: Any) -> Generator[Pair]:
    """Both tasks, ended after the block."""
    made = Pair(policy, **more)
    try:
        yield made
    finally:
        made.stop()


def status_of(work: Callable[[], Any]) -> tuple[int, str]:
    """The code and the text of the status that a call ends with."""
    try:
        work()
    except grpc.RpcError as error:
        return error.code().value[0], error.details()  # type: ignore[attr-defined]
    return 0, ""
