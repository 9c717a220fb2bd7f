"""A session at a server of its own process: the same answers as over gRPC, without a call."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, cast

import numpy as np
import pytest

pytest.importorskip("grpc")

from tests import patience
from tests.cluster.tensorflow_servers import free_ports
from toolkit import tensorflow as gm
from toolkit.cluster.client import kind, own_master
from toolkit.cluster.master.remote_worker import RemoteWorker

v1: Any = gm.compat.v1


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    ports = free_ports(2)
    cluster = {"worker": [f"localhost:{ports[0]}"], "ps": [f"localhost:{ports[1]}"]}
    ps = v1.train.Server(cluster, job_name="ps", task_index=0)
    made = v1.train.Server(cluster, job_name="worker", task_index=0)
    yield made
    for each in (made, ps):
        each._served.stop()  # TensorFlow's class has no way to stop


@pytest.fixture(params=["here", "grpc"])
def target(request: pytest.FixtureRequest, server: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    """The same server twice: called directly, and through its port."""
    if request.param == "grpc":
        monkeypatch.setattr(kind, "service_at", dict[str, Any]().get)
    else:
        monkeypatch.setattr(kind, "MasterCalls", None)
    return server.target


def test_steps(target: str) -> None:
    with v1.Graph().as_default() as graph:
        x = v1.placeholder(gm.float32, [2], name="x")
        with v1.device("/job:ps/task:0"):
            w = v1.get_variable("w", [2], initializer=v1.zeros_initializer(), use_resource=False)
        add = w.assign_add(x)
        text = v1.constant("a") + v1.constant(["b", "c"])
        begin = v1.global_variables_initializer()
        with v1.Session(target, graph=graph) as session:
            session.run(begin)
            fed = np.ones(2, np.float32)
            first = session.run(add, {x: fed})
            fed[:] = 5
            first[:] = 7
            assert session.run(w).tolist() == [1, 1], "neither what is fed nor what is fetched is the variable"
            assert session.run([text, v1.constant("scalar"), x], {x: [3, 4]})[1] == b"scalar"
            call = session.make_callable([w, begin], feed_list=[x])
            assert call([0, 0])[0].shape == (2,)
            del call
            metadata = v1.RunMetadata()
            options = v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE)
            later = w * 2  # the graph grows
            session.run(later, options=options, run_metadata=metadata)
            assert {each.device.split("/")[1] for each in metadata.step_stats.dev_stats} >= {"job:ps"}
            assert len(session.list_devices()) == 2
            handle = session.partial_run_setup([later], [x])
            with pytest.raises(gm.errors.InvalidArgumentError):
                session.partial_run(handle, later, {w: [1, 1]})
    with pytest.raises(RuntimeError, match="closed"):
        session.run(w)


def test_a_session_is_closed_while_a_step_begins(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    begin = RemoteWorker.begin

    def begin_after_the_end(self: RemoteWorker, handle: int, *arguments: Any) -> Any:
        closing.start()
        patience.until(lambda: handle not in self._graphs, "the end of the session")
        return begin(self, handle, *arguments)

    with v1.Graph().as_default() as graph:
        with v1.device("/job:ps/task:0"):
            x = v1.FIFOQueue(1, gm.float32, []).dequeue()  # nothing ever comes
        with v1.device("/job:worker/task:0"):
            y = x + 1
        session = v1.Session(target, graph=graph)
        closing = threading.Thread(target=session.close)
        monkeypatch.setattr(RemoteWorker, "begin", begin_after_the_end)
        with pytest.raises(gm.errors.CancelledError):
            session.run(y)
        closing.join(patience.HUNG)


def test_partial_runs(target: str) -> None:
    with v1.Graph().as_default() as graph, v1.Session(target, graph=graph) as session:
        a, b = (v1.placeholder(gm.float32, []) for _ in range(2))
        first = a + 1
        second = first * b
        handle = session.partial_run_setup([first, second], [a, b])
        assert session.partial_run(handle, first, {a: 1}) == 2
        assert session.partial_run(handle, second, {b: 3}) == 6


def test_errors(target: str) -> None:
    with v1.Graph().as_default() as graph, v1.Session(target, graph=graph) as session:
        x = v1.placeholder(gm.int32, [None])
        bad = v1.gather(v1.constant([1, 2]), x, name="bad")
        with pytest.raises(gm.errors.InvalidArgumentError) as failed:
            session.run(bad, {x: [9]})
        assert failed.value.node == "bad"
        waiting = v1.FIFOQueue(1, gm.float32).dequeue()
        with pytest.raises(gm.errors.DeadlineExceededError):
            session.run(waiting, options=v1.RunOptions(timeout_in_ms=50))
        v1.get_variable("never_set", [], use_resource=False)
        with pytest.raises(gm.errors.FailedPreconditionError):
            session.run("never_set:0")
        config = v1.ConfigProto(device_filters=["no device"])
        with v1.Session(target, graph=graph, config=config) as other, pytest.raises(gm.errors.InvalidArgumentError):
            other.run(v1.constant(1))


def test_a_session_that_is_closed_ends_its_steps(target: str) -> None:
    with v1.Graph().as_default() as graph:
        queue = v1.FIFOQueue(1, gm.float32)
        waiting, size = queue.dequeue(), queue.size()
    session = v1.Session(target, graph=graph)
    session.run(size)
    ended: list[BaseException] = []

    def run() -> None:
        try:
            session.run(waiting)
        except Exception as error:
            ended.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    session.close()
    thread.join(patience.HUNG)
    assert len(ended) == 1 and isinstance(ended[0], gm.errors.CancelledError | RuntimeError)


def test_who_listens_here_is_known(server: Any) -> None:
    target = server.target
    service = own_master.service_at(target)
    assert service is not None
    assert own_master.service_at("grpc://localhost:1") is None
    own_master.ended(target, cast("Any", object()))
    assert own_master.service_at(target) is service, "another one's end"
