"""Our servers, two tasks in this process, asked by MasterService's stub."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

grpc = pytest.importorskip("grpc")

from schemas import cluster_pb2, device_attributes_pb2, master_pb2, worker_pb2  # noqa: E402  after the skip
from tests import patience  # noqa: E402
from tests.cluster.tensorflow_servers import free_ports  # noqa: E402
from toolkit import tensorflow as tf  # noqa: E402
from toolkit.cluster.master.discovery import matching  # noqa: E402
from toolkit.cluster.master.found import FoundTask, signed  # noqa: E402
from toolkit.cluster.master.health import Heartbeats  # noqa: E402
from toolkit.cluster.master.remote_worker import RemoteWorker  # noqa: E402
from toolkit.cluster.master.session import client_node  # noqa: E402
from toolkit.cluster.master.task import RemoteTask  # noqa: E402
from toolkit.cluster.rpc import services, statuses  # noqa: E402
from toolkit.cluster.rpc.channels import OPEN, Channels, channel  # noqa: E402
from toolkit.cluster.rpc.server import Listening, Server  # noqa: E402
from toolkit.cluster.server import ClusterServer, Keys, ask_status, server_def  # noqa: E402
from toolkit.errors import AbortedError, InvalidArgumentError, OpError, UnavailableError, UsageError  # noqa: E402
from toolkit.formats.arrays.tensor import from_array, to_array  # noqa: E402
from toolkit.policy.rules import Policy  # noqa: E402

v1: Any = tf.compat.v1
PS, WORKER = "/job:ps/replica:0/task:0", "/job:worker/replica:0/task:0"


class _Client:
    """A session at a master."""

    def __init__(self, server: ClusterServer, graph: Any):
        self.channel = channel(server.target.removeprefix("grpc://"))
        self.stub = services.Stub(self.channel, services.MASTER)
        request = master_pb2.CreateSessionRequest()
        request.graph_def.ParseFromString(graph.as_graph_def().SerializeToString())
        self.handle = self.ask("CreateSession", request).session_handle

    def ask(self, method: str, request: Any) -> Any:
        try:
            return self.stub[method](request, timeout=patience.HUNG)
        except grpc.RpcError as error:
            raise statuses.from_call(error, method) from None

    def request(self, fetches: list[str], targets: list[str], feeds: dict[str, Any]) -> Any:
        request = master_pb2.RunStepRequest(session_handle=self.handle, fetch=fetches, target=targets)
        for name, value in feeds.items():
            request.feed.add(name=name, tensor=from_array(value))
        return request

    def run(self, *fetches: str, targets: tuple[str, ...] = (), **feeds: Any) -> list[Any]:
        named = {f"{name}:0": value for name, value in feeds.items()}
        answer = self.ask("RunStep", self.request(list(fetches), list(targets), named))
        return [to_array(each.tensor) for each in answer.tensor]


def _graph() -> Any:
    with v1.Graph().as_default() as graph:
        with v1.device("/job:ps/task:0"):
            w = v1.get_variable("w", [2], initializer=v1.zeros_initializer(), use_resource=False)
            v1.assign_add(w, [1.0, 2.0], name="add")
            queue = v1.FIFOQueue(4, v1.float32, shapes=[[]], name="queue")
            v1.identity(queue.dequeue(), name="taken")
            queue.enqueue(1.0, name="put")
            v1.write_file(v1.placeholder(v1.string, [], "far_path"), "x", name="write_far")
        with v1.device("/job:worker/task:0"):
            x = v1.placeholder(v1.float32, [2], "x")
            v1.multiply(w, x, name="y")
            v1.write_file(v1.placeholder(v1.string, [], "own_path"), "x", name="write_own")
        v1.global_variables_initializer()
    return graph


@pytest.fixture
def servers() -> Iterator[dict[str, ClusterServer]]:
    """A parameter server and a worker that may touch nothing."""
    ports = free_ports(2)
    cluster = cluster_pb2.ClusterDef()
    for job, port in zip(("ps", "worker"), ports, strict=True):
        cluster.job.add(name=job).tasks[0] = f"localhost:{port}"
    made = {job: ClusterServer(server_def(cluster, job, 0), policy=Policy(), keys=Keys()) for job in ("ps", "worker")}
    for each in made.values():
        each.start()
    yield made
    for each in made.values():
        each.stop()


def test_a_step_over_two_tasks(servers: dict[str, ClusterServer]) -> None:
    client = _Client(servers["worker"], _graph())
    client.run(targets=("init",))
    client.run("add:0")
    assert client.run("y:0", x=np.array([3, 4], np.float32))[0].tolist() == [3, 8]
    client.run(targets=("put",))
    assert client.run("taken:0")[0] == 1
    status = servers["worker"].status()
    assert [each["steps"] for each in status["sessions"]] == [5] and status["steps_running"] == 0
    assert client.handle not in str(status)  # who knows it can run steps in its session
    client.ask("CloseSession", master_pb2.CloseSessionRequest(session_handle=client.handle))
    patience.until(lambda: servers["ps"].status()["worker_sessions"] == 0, "the worker's session")
    with pytest.raises(AbortedError, match="has no session"):
        client.run("add:0")


def test_another_version_of_the_graph_is_refused(servers: dict[str, ClusterServer]) -> None:
    client = _Client(servers["worker"], v1.Graph())
    request = master_pb2.ExtendSessionRequest(session_handle=client.handle)
    request.graph_def.ParseFromString(_graph().as_graph_def().SerializeToString())
    sent = request.SerializeToString()
    assert client.ask("ExtendSession", request).new_graph_version == 1
    with pytest.raises(AbortedError, match="has version 1, and the client's is 0"):
        client.ask("ExtendSession", request)
    again = master_pb2.ExtendSessionRequest.FromString(sent)
    again.current_graph_version = 1
    with pytest.raises(InvalidArgumentError, match="used by two nodes"):
        client.ask("ExtendSession", again)
    client.run(targets=("init",))  # nothing of it was added


@pytest.mark.parametrize(
    ("fetches", "feeds", "match"),
    [
        (["none:0"], {}, "none"),
        (["y:7"], {}, "y"),
        (["y:0"], {"x": np.array([1, 2, 3], np.float32)}, "shape"),
        (["y:0"], {}, "x"),
    ],
)
def test_mistakes_of_clients(servers: dict[str, ClusterServer], fetches: Any, feeds: Any, match: str) -> None:
    client = _Client(servers["worker"], _graph())
    client.run(targets=("init",))
    with pytest.raises(InvalidArgumentError, match=match):
        client.run(*fetches, **feeds)
    assert client.run("y:0", x=np.array([3, 4], np.float32))[0].tolist() == [0, 0]


@pytest.mark.parametrize("where", ["own", "far"])
def test_a_server_allows_nothing_that_it_was_not_told_to(
    servers: dict[str, ClusterServer], where: str, tmp_path: Path
) -> None:
    client = _Client(servers["worker"], _graph())
    path = np.array(str(tmp_path / "made").encode(), object)
    with pytest.raises(OpError, match="--allow") as refused:
        client.run(targets=(f"write_{where}",), **{f"{where}_path": path})
    assert refused.value.node == f"write_{where}" and not list(tmp_path.iterdir())


def _waiting(client: _Client, servers: dict[str, ClusterServer]) -> Any:
    call = client.stub["RunStep"].future(client.request(["taken:0"], [], {}))
    patience.until(lambda: servers["ps"].status()["steps_running"] > 0, "a step that waits")
    return call


def test_draining_lets_steps_end_and_takes_no_new_ones(servers: dict[str, ClusterServer]) -> None:
    client = _Client(servers["worker"], _graph())
    call = _waiting(client, servers)
    other = _Client(servers["ps"], _graph())
    drained: list[bool] = []
    thread = threading.Thread(target=lambda: drained.append(servers["worker"].drain(patience.HUNG)))
    thread.start()

    def refused() -> bool:
        try:
            client.run("add:0")
        except UnavailableError as error:
            return "shut down" in error.message
        except OpError:
            return False
        return False

    patience.until(refused, "that it takes no new steps")
    assert not call.done()
    other.run(targets=("put",))
    assert to_array(call.result(patience.HUNG).tensor[0].tensor) == 1
    thread.join(patience.HUNG)
    assert drained == [True]


@pytest.mark.parametrize("ended", ["worker", "ps"])
def test_what_does_not_end_is_cancelled_as_what_a_session_recovers_from(
    servers: dict[str, ClusterServer], ended: str
) -> None:
    call = _waiting(_Client(servers["worker"], _graph()), servers)
    assert not servers[ended].drain(0.1)
    error = call.exception(patience.HUNG)
    assert error.code().name == "UNAVAILABLE"
    assert f"/job:{ended}/replica:0/task:0" in error.details()  # was shut down, or its connection has ended
    patience.until(lambda: servers["ps"].status()["steps_running"] == 0, "the end of the step at the other task")


def test_a_client_that_goes_leaves_nothing_behind(servers: dict[str, ClusterServer]) -> None:
    client = _Client(servers["worker"], _graph())
    _waiting(client, servers)
    client.channel.close()
    patience.until(lambda: servers["ps"].status()["steps_running"] == 0, "the end of its step")
    master = servers["worker"].master
    patience.until(lambda: not master.sessions()[0].running, "the end of its call")
    master.collect(time.monotonic() + 1e6)
    assert not master.sessions()
    patience.until(lambda: servers["ps"].status()["worker_sessions"] == 0, "the end of its session")


def test_a_task_that_ends_is_named(servers: dict[str, ClusterServer]) -> None:
    client = _Client(servers["worker"], _graph())
    call = _waiting(client, servers)
    servers["ps"].stop()
    error = statuses.from_call(call.exception(patience.HUNG), "RunStep")
    assert isinstance(error, UnavailableError | AbortedError) or error.code == 1
    with pytest.raises(UnavailableError, match=r"/job:ps/replica:0/task:0 \(localhost:\d+\) cannot be reached"):
        client.run("add:0")


class _Silent:
    """A worker that answers what it is told to, and is silent else."""

    def __init__(self) -> None:
        self.end = threading.Event()
        self.attributes: list[Any] | None = None

    def get_status(self, request: Any, context: Any) -> Any:
        if self.attributes is None:
            self.end.wait()
        return worker_pb2.GetStatusResponse(device_attributes=self.attributes)

    def run_graph(self, request: Any, context: Any) -> Any:
        context.add_callback(self.end.set)
        self.end.wait()
        return worker_pb2.RunGraphResponse()


@pytest.mark.parametrize("has_started_anew", [False, True])
def test_heartbeats_lose_who_is_silent_or_has_started_anew(has_started_anew: bool) -> None:
    silent = _Silent()
    found = {"GetStatus": silent.get_status, "RunGraph": silent.run_graph}
    found["RegisterGraph"] = lambda request, context: worker_pb2.RegisterGraphResponse(graph_handle="g")
    server = Server(Listening(), [services.handler(services.WORKER, found)])
    server.start()
    channels = Channels(OPEN)
    was = device_attributes_pb2.DeviceAttributes(name=f"{PS}/device:CPU:0", device_type="CPU", incarnation=1)
    if has_started_anew:
        silent.attributes = [device_attributes_pb2.DeviceAttributes(name=was.name, device_type="CPU", incarnation=2)]
    seen = FoundTask(PS, (was,))
    worker = RemoteWorker(RemoteTask(PS, server.address, channels), seen.devices, "s", v1.ConfigProto())
    heartbeats = Heartbeats(interval=patience.HUNG, timeout=0.2)
    heartbeats.watch(worker, seen)
    graph = v1.Graph()
    with graph.as_default():
        v1.no_op(name="n")
    registered = worker.register(graph.core)
    failures: list[BaseException] = []

    def run() -> None:
        try:
            worker.run(registered.handle, 1, [])
        except OpError as error:
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    patience.until(lambda: worker.is_busy, "the step")
    heartbeats.beat()
    thread.join(patience.HUNG)
    heartbeats.stop()
    silent.end.set()
    channels.close()
    server.stop()
    (error,) = failures
    if has_started_anew:
        assert isinstance(error, AbortedError) and "has started anew" in error.message
    else:
        assert isinstance(error, UnavailableError) and "is lost" in error.message
    assert PS in error.message


def test_a_server_says_what_is_wrong_with_its_cluster() -> None:
    cluster = cluster_pb2.ClusterDef()
    cluster.job.add(name="worker").tasks[0] = "elsewhere:2222"
    with pytest.raises(UsageError, match="could be used by anybody"):
        ClusterServer(server_def(cluster, "worker", 0), keys=Keys())
    with pytest.raises(UsageError, match="the cluster has no /job:ps"):
        ClusterServer(server_def(cluster, "ps", 0), keys=Keys())
    cluster.job[0].tasks[0] = "localhost"
    with pytest.raises(UsageError, match="expected host:port"):
        ClusterServer(server_def(cluster, "worker", 0), keys=Keys())


def test_a_token_is_asked_for() -> None:
    (port,) = free_ports(1)
    cluster = cluster_pb2.ClusterDef()
    cluster.job.add(name="worker").tasks[0] = f"localhost:{port}"
    server = ClusterServer(server_def(cluster, "worker", 0), keys=Keys(token="secret"))
    server.start()
    with channel(f"localhost:{port}") as made, pytest.raises(grpc.RpcError, match="token"):
        ask_status(made, OPEN, patience.HUNG)
    assert "secret" not in repr(Keys(token="secret"))
    server.stop()


def test_names_and_filters() -> None:
    assert [client_node(name) for name in ("_retval_a/b_0_3", "_arg_x_0_0", "w/read/_S3_7", "a/ctrl/_S1_2", "a")] == [
        "a/b", "x", "w/read", "a", "a",
    ]  # fmt: skip
    assert matching([PS, WORKER], ["/job:ps"]) == [PS] and matching([PS], []) == [PS]
    with pytest.raises(InvalidArgumentError, match="no device name"):
        matching([PS], ["ps!"])
    assert signed(2**64 - 1) == -1 and signed(5) == 5
