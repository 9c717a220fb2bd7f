"""Our worker, asked method by method over its server, without TensorFlow."""

# lambdas over tensors of the client, whose parameters have no types
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from schemas import worker_pb2
from tests import patience
from tests.cluster.small_master import PS, WORKER, Pair, client_key, pair, status_of
from toolkit import client as gm
from toolkit.cluster.rpc import tensors
from toolkit.cluster.rpc.services import WORKER as SERVICE
from toolkit.cluster.rpc.services import methods
from toolkit.errors import AbortedError, FailedPreconditionError, InvalidArgumentError, OpError, UsageError
from toolkit.passes.pruning.client_graph import feed_key, fetch_key

ops = gm.ops
PS_CPU, WORKER_CPU = f"{PS}/device:CPU:0", f"{WORKER}/device:CPU:0"
CANCELLED, ABORTED, NOT_FOUND, INVALID, UNIMPLEMENTED, EXISTS = 1, 10, 5, 3, 12, 6


@pytest.fixture(scope="module")
def both() -> Iterator[Pair]:
    with pair() as made:
        yield made


@pytest.fixture
def handle(both: Pair, request: pytest.FixtureRequest) -> Iterator[str]:
    """A session at both, of the test's name."""
    name = request.node.name
    both.create(name)
    yield name
    for task in both.tasks:
        status_of(lambda: both.call(task, "DeleteWorkerSession", _delete(name)))  # noqa: B023 -- called at once


def _delete(name: str) -> Any:
    return worker_pb2.DeleteWorkerSessionRequest(session_handle=name)


def crossing() -> Any:
    """x on the worker, doubled at the parameter server, then one more at the worker."""
    with gm.Graph().as_default() as graph:
        with graph.device(WORKER_CPU):
            x = gm.placeholder(gm.float32, [2], name="x")
            start = ops.identity(x, name="start")
        with graph.device(PS_CPU):
            doubled = start * 2.0
        with graph.device(WORKER_CPU):
            ops.add(doubled, 1.0, name="y")
    return graph.core


def counting() -> Any:
    """A variable of the parameter server that counts."""
    with gm.Graph().as_default() as graph, graph.device(PS_CPU):
        cell = ops.variable_v2(shape=[], dtype=gm.float32, name="cell")
        ops.assign(cell, 0.0, name="init")
        ops.assign_add(cell, 1.0, name="more")
    return graph.core


def test_tensors_cross_between_tasks(both: Pair, handle: str) -> None:
    graphs = both.register(handle, crossing(), ["x"], ["y"])
    assert set(graphs) == {PS, WORKER}
    for step_id in (11, 12):
        value = np.array([1, step_id], np.float32)
        found = both.run(handle, graphs, step_id, {WORKER: {0: value}}, {WORKER: [0]})
        assert found[0].tolist() == [3.0, 2.0 * step_id + 1]
    assert not len(both.tasks[PS].task.steps) and not len(both.tasks[WORKER].task.steps)


def test_variables_are_shared_or_isolated(both: Pair, handle: str) -> None:
    both.create("alone", isolate_session_state=True)
    graphs = {name: both.register(name, counting(), [], ["init", "more"]) for name in (handle, "alone")}
    first = both.register(handle, counting(), [], ["more"])
    alone = both.register("alone", counting(), [], ["more"])
    both.run(handle, graphs[handle], 21, {}, {PS: [0]})
    before = both.run(handle, first, 22, {}, {PS: [0]})[0]
    with pytest.raises(FailedPreconditionError, match="cell"):
        both.run("alone", alone, 23, {}, {PS: [0]})
    assert both.run(handle, first, 24, {}, {PS: [0]})[0] == before + 1
    both.call(PS, "CleanupAll", worker_pb2.CleanupAllRequest())
    with pytest.raises(FailedPreconditionError, match="cell"):
        both.run(handle, first, 25, {}, {PS: [0]})
    for task in both.tasks:
        both.call(task, "DeleteWorkerSession", _delete("alone"))


def test_partial_runs(both: Pair, handle: str) -> None:
    with gm.Graph().as_default() as graph, graph.device(PS_CPU):
        a, b = gm.placeholder(gm.float32, [], name="a"), gm.placeholder(gm.float32, [], name="b")
        first = ops.add(a, 1.0, name="first")
        ops.mul(first, b, name="second")
    graphs = both.register(handle, graph.core, ["a", "b"], ["first", "second"])

    def part(feeds: dict[int, float], fetches: list[int], **more: Any) -> Any:
        request = worker_pb2.RunGraphRequest(
            session_handle=handle, create_worker_session_called=True, graph_handle=graphs[PS], step_id=31,
            is_partial=True, recv_key=[client_key(fetch_key(index)) for index in fetches], **more,
        )  # fmt: skip
        for index, value in feeds.items():
            named = request.send.add(name=client_key(feed_key(index)))
            named.tensor.MergeFromString(tensors.write_tensor(np.float32(value)))
        return [float(tensors.read_message(each.tensor)) for each in both.call(PS, "RunGraph", request).recv]

    assert part({0: 2.0}, [0]) == [3.0]
    assert part({1: 5.0}, [1], is_last_partial_run=True) == [15.0]
    both.call(PS, "CleanupGraph", worker_pb2.CleanupGraphRequest(step_id=31))
    assert both.run(handle, graphs, 32, {PS: {0: np.float32(1), 1: np.float32(2)}}, {PS: [1]})[1] == 4.0


def test_sessions_and_graphs_that_are_not_there(both: Pair, handle: str) -> None:
    run = worker_pb2.RunGraphRequest(session_handle="none", create_worker_session_called=True, step_id=41)
    assert status_of(lambda: both.call(PS, "RunGraph", run))[0] == ABORTED
    run.session_handle = handle
    code, message = status_of(lambda: both.call(PS, "RunGraph", run))
    assert code == ABORTED and "no graph with the handle ''" in message
    drop = worker_pb2.DeregisterGraphRequest(
        session_handle=handle, create_worker_session_called=True, graph_handle="zz"
    )
    assert status_of(lambda: both.call(PS, "DeregisterGraph", drop))[0] == ABORTED
    again = worker_pb2.CreateWorkerSessionRequest(session_handle=handle)
    assert status_of(lambda: both.call(PS, "CreateWorkerSession", again))[0] == EXISTS
    assert (
        status_of(lambda: both.call(PS, "CreateWorkerSession", worker_pb2.CreateWorkerSessionRequest()))[0] == INVALID
    )
    assert status_of(lambda: both.call(PS, "DeleteWorkerSession", _delete("")))[0] == INVALID
    assert status_of(lambda: both.call(PS, "DeleteWorkerSession", _delete("none")))[0] == ABORTED


def test_graphs_are_dropped(both: Pair, handle: str) -> None:
    graphs = both.register(handle, crossing(), ["x"], ["y"])
    for task, name in graphs.items():
        request = worker_pb2.DeregisterGraphRequest(
            session_handle=handle, create_worker_session_called=True, graph_handle=name
        )
        both.call(task, "DeregisterGraph", request)
    with pytest.raises(AbortedError, match="handle"):
        both.run(handle, graphs, 45, {WORKER: {0: np.zeros(2, np.float32)}}, {WORKER: [0]})


def test_a_master_that_starts_anew_ends_its_older_sessions(both: Pair) -> None:
    both.create("old", master_task="/job:m/replica:0/task:0", master_incarnation=1)
    both.create("other", master_task="/job:n/replica:0/task:0", master_incarnation=1)
    both.create("new", master_task="/job:m/replica:0/task:0", master_incarnation=2)
    task = both.tasks[PS].task
    assert {session.handle for session in task.sessions()} >= {"other", "new"}
    assert status_of(lambda: both.call(PS, "DeleteWorkerSession", _delete("old")))[0] == ABORTED
    for name in ("other", "new"):
        for each in both.tasks:
            both.call(each, "DeleteWorkerSession", _delete(name))


def test_a_session_may_have_a_cluster_of_its_own(both: Pair) -> None:
    request = worker_pb2.CreateWorkerSessionRequest(session_handle="renamed", isolate_session_state=True)
    request.server_def.job_name, request.server_def.task_index = "here", 3
    request.server_def.cluster.job.add(name="here").tasks[3] = both.addresses[PS]
    both.call(PS, "CreateWorkerSession", request)
    session = both.tasks[PS].task.session("renamed")
    assert [device.name for device in session.devices] == ["/job:here/replica:0/task:3/device:CPU:0"]
    both.call(PS, "DeleteWorkerSession", _delete("renamed"))


def _receive(both: Pair, key: str, step_id: int, **more: Any) -> Any:
    request = worker_pb2.RecvTensorRequest(step_id=step_id, rendezvous_key=key, **more)
    return both.tasks[PS].call("RecvTensor", request)


def _key(both: Pair, name: str = "edge_1_t", incarnation: int | None = None, device: str = PS_CPU) -> str:
    number = both.incarnation(PS_CPU) if incarnation is None else incarnation
    return f"{device};{number:016x};{WORKER_CPU};{name};0:0"


def test_who_asks_early_waits_and_takes_no_thread(both: Pair, handle: str) -> None:
    """More callers than the server has threads for sending, before the step has begun."""
    answers: list[Any] = []
    lock = threading.Lock()
    calls: list[Any] = []
    count = 64
    for number in range(count):
        request = worker_pb2.RecvTensorRequest(step_id=51, rendezvous_key=_key(both, f"edge_{number}_t"))
        call = both.tasks[PS].stub["RecvTensor"].future(request, timeout=patience.HUNG)

        def arrived(finished: Any) -> None:
            with lock:
                answers.append(finished.result())

        call.add_done_callback(arrived)
        calls.append(call)
    rendezvous = both.tasks[PS].task.steps.join(51, both.tasks[PS].task.session(handle))
    waiting: Any = rendezvous._waiting  # pyright: ignore[reportPrivateUsage]
    patience.until(lambda: len(waiting) == count, "all ask")
    busy = sum(thread.name.startswith("graphmill call") for thread in threading.enumerate())
    for number in range(count):
        rendezvous.send(_key(both, f"edge_{number}_t"), np.float32(number))
    patience.until(lambda: len(answers) == count, "all are answered")
    assert sorted(float(tensors.read_message(each.tensor)) for each in answers) == list(range(count))
    assert busy < count
    both.call(PS, "CleanupGraph", worker_pb2.CleanupGraphRequest(step_id=51))


def test_waiting_ends_with_the_step_and_with_the_call(both: Pair) -> None:
    steps = both.tasks[PS].task.steps
    stub = both.tasks[PS].stub["RecvTensor"]
    call = stub.future(worker_pb2.RecvTensorRequest(step_id=52, rendezvous_key=_key(both)), timeout=patience.HUNG)
    patience.until(lambda: len(steps) == 1, "the step is known")
    both.call(PS, "CleanupGraph", worker_pb2.CleanupGraphRequest(step_id=52))
    assert status_of(call.result)[0] == ABORTED
    assert status_of(lambda: _receive(both, _key(both), 52))[0] == ABORTED  # late
    call = stub.future(worker_pb2.RecvTensorRequest(step_id=53, rendezvous_key=_key(both)), timeout=patience.HUNG)
    patience.until(lambda: len(steps) == 1, "the step is known")
    call.cancel()
    patience.until(lambda: len(steps) == 0, "nothing is left of it")


def test_keys_of_other_incarnations_and_devices_are_refused(both: Pair) -> None:
    code, message = status_of(lambda: _receive(both, _key(both, incarnation=7), 54))
    assert code == ABORTED and "started anew" in message
    assert status_of(lambda: _receive(both, _key(both, device=WORKER_CPU), 54))[0] == NOT_FOUND
    for key in ("", "a;b;c", f"{PS_CPU};{'x' * 16};d;e;0:0", f"{PS_CPU};1;d;e;0:0"):
        assert status_of(lambda: _receive(both, key, 54))[0] == INVALID  # noqa: B023 -- called at once
    assert not len(both.tasks[PS].task.steps)


def test_a_request_that_comes_twice_is_refused(both: Pair, handle: str) -> None:
    graphs = both.register(handle, counting(), [], ["init"])
    both.run(handle, graphs, 55, {}, {PS: [0]}, request_id=1234)
    again = worker_pb2.RunGraphRequest(
        session_handle=handle, create_worker_session_called=True, graph_handle=graphs[PS], step_id=56, request_id=1234
    )
    code, message = status_of(lambda: both.call(PS, "RunGraph", again))
    assert code == ABORTED and "1234" in message
    both.call(PS, "MarkRecvFinished", worker_pb2.MarkRecvFinishedRequest(request_id=1))


def test_a_step_of_one_session_is_closed_to_another(both: Pair, handle: str) -> None:
    both.create("stranger")
    graphs = {name: both.register(name, counting(), [], ["init"]) for name in (handle, "stranger")}
    both.tasks[PS].task.steps.join(57, both.tasks[PS].task.session(handle))
    with pytest.raises(AbortedError, match="another session"):
        both.run("stranger", graphs["stranger"], 57, {}, {PS: [0]})
    for task in both.tasks:
        both.call(task, "DeleteWorkerSession", _delete("stranger"))


def test_the_cause_of_a_failure_is_told_to_all(both: Pair, handle: str) -> None:
    with gm.Graph().as_default() as graph:
        with graph.device(PS_CPU):
            x = gm.placeholder(gm.float32, [2, 2], name="x")
            inverse = ops.matrix_inverse(x, name="inverse")
        with graph.device(WORKER_CPU):
            ops.add(inverse, 1.0, name="y")
    graphs = both.register(handle, graph.core, ["x"], ["y"])
    with pytest.raises(InvalidArgumentError, match="invertible") as raised:
        both.run(handle, graphs, 58, {PS: {0: np.zeros((2, 2), np.float32)}}, {WORKER: [0]})
    assert raised.value.node == "inverse"
    found = both.run(handle, graphs, 59, {PS: {0: np.eye(2, dtype=np.float32)}}, {WORKER: [0]})
    assert found[0].tolist() == [[2.0, 1.0], [1.0, 2.0]]


def waiting_step(both: Pair, handle: str, step_id: int) -> Any:
    """The call of a step at the parameter server that waits for an element of an empty queue."""
    with gm.Graph().as_default() as graph, graph.device(PS_CPU):
        queue = ops.fifo_queue_v2(component_types=[gm.float32], name="empty")
        ops.queue_dequeue_v2(queue, component_types=[gm.float32], name="taken")
    graphs = both.register(handle, graph.core, [], ["taken"])
    request = worker_pb2.RunGraphRequest(
        session_handle=handle, create_worker_session_called=True, graph_handle=graphs[PS], step_id=step_id,
        recv_key=[client_key(fetch_key(0))],
    )  # fmt: skip
    call = both.tasks[PS].stub["RunGraph"].future(request, timeout=patience.HUNG)
    patience.until(lambda: both.tasks[PS].task.steps.session_of(step_id) is not None, "it runs")
    return call


def test_cancelled_calls_end_their_steps(both: Pair, handle: str) -> None:
    call = waiting_step(both, handle, 61)
    task = both.tasks[PS].task
    ended = threading.Event()
    task.steps.join(61, task.session(handle)).recv_local(_key(both), lambda *_: ended.set())
    call.cancel()
    assert ended.wait(patience.HUNG)  # who waits for the step's tensors hears of it
    both.call(PS, "CleanupGraph", worker_pb2.CleanupGraphRequest(step_id=61))


@pytest.mark.parametrize(("method", "first"), [("CleanupGraph", 700), ("DeleteWorkerSession", 710)])
def test_a_step_whose_end_is_told_before_that_of_its_call(both: Pair, handle: str, method: str, first: int) -> None:
    requests = {
        "CleanupGraph": lambda step_id: worker_pb2.CleanupGraphRequest(step_id=step_id),
        "DeleteWorkerSession": lambda _: _delete(handle),
    }
    for step_id in range(first, first + 5):  # the step has begun to wait in some, and in others not
        call = waiting_step(both, handle, step_id)
        both.call(PS, method, requests[method](step_id))
        assert status_of(call.result)[0] in (CANCELLED, ABORTED)
        if method == "DeleteWorkerSession":
            both.call(PS, "CreateWorkerSession", worker_pb2.CreateWorkerSessionRequest(session_handle=handle))


def test_what_is_asked_and_not_there(both: Pair, handle: str) -> None:
    graphs = both.register(handle, crossing(), ["x"], ["y"])

    def run(**changes: Any) -> tuple[int, str]:
        request = worker_pb2.RunGraphRequest(
            session_handle=handle, create_worker_session_called=True, graph_handle=graphs[WORKER], **changes
        )
        return status_of(lambda: both.call(WORKER, "RunGraph", request))

    assert run(step_id=62)[0] == INVALID  # nothing is fed
    assert run(step_id=63, recv_key=["nothing"])[0] == INVALID
    assert run(step_id=64, send=[{"name": "nothing"}])[0] == INVALID
    for step_id in (62, 63, 64):
        both.call(WORKER, "CleanupGraph", worker_pb2.CleanupGraphRequest(step_id=step_id))


def test_graphs_of_other_tasks_and_files_are_refused(both: Pair, handle: str) -> None:
    def register(graph: Any) -> tuple[int, str]:
        request = worker_pb2.RegisterGraphRequest(
            session_handle=handle, create_worker_session_called=True, graph_def=graph.core.to_proto()
        )
        return status_of(lambda: both.call(PS, "RegisterGraph", request))

    with gm.Graph().as_default() as graph, graph.device(WORKER_CPU):
        gm.constant(1.0)
    assert register(graph)[0] == INVALID
    with gm.Graph().as_default() as graph, graph.device(PS_CPU):
        ops.read_file("/etc/hostname")
    code, message = register(graph)
    assert code == 7 and "--allow" in message
    both.tasks[PS].service._graph_bytes = 10  # pyright: ignore[reportPrivateUsage]
    code, message = register(graph)
    both.tasks[PS].service._graph_bytes = 1 << 30  # pyright: ignore[reportPrivateUsage]
    assert code == INVALID and "more than this server takes" in message


def test_what_has_no_meaning_here_says_so(both: Pair) -> None:
    rows = methods(SERVICE)
    for name in ("RecvBuf", "CompleteGroup", "CompleteInstance", "GetStepSequence", "Tracing"):
        code, message = status_of(lambda: both.call(PS, name, rows[name].request()))  # noqa: B023 -- called at once
        assert code == UNIMPLEMENTED and name in message
    assert len(rows) == 16


def test_costs_and_partitions_of_a_step(both: Pair, handle: str) -> None:
    graphs = both.register(handle, counting(), [], ["init"])
    request = worker_pb2.RunGraphRequest(
        session_handle=handle, create_worker_session_called=True, graph_handle=graphs[PS], step_id=65,
        recv_key=[client_key(fetch_key(0))],
        exec_opts={"record_costs": True, "record_timeline": True, "record_partition_graphs": True},
    )  # fmt: skip
    response = both.call(PS, "RunGraph", request)
    assert {node.name for node in response.cost_graph.node} >= {"cell", "init"}
    assert response.step_stats.dev_stats[0].device == PS_CPU
    assert len(response.partition_graph) == 1
    both.call(PS, "CleanupGraph", worker_pb2.CleanupGraphRequest(step_id=65))


def test_transfers_are_logged_on_request(both: Pair, handle: str) -> None:
    graphs = both.register(handle, crossing(), ["x"], ["y"])
    both.call(WORKER, "Logging", worker_pb2.LoggingRequest(enable_rpc_logging=True))
    both.run(handle, graphs, 66, {WORKER: {0: np.zeros(2, np.float32)}}, {WORKER: [0]})
    (found,) = both.call(WORKER, "Logging", worker_pb2.LoggingRequest(fetch_step_id=[66])).step
    (entry,) = found.step_stats.dev_stats[0].node_stats
    assert found.step_id == 66 and entry.node_name == "RecvTensor" and PS_CPU in entry.timeline_label
    both.call(WORKER, "Logging", worker_pb2.LoggingRequest(disable_rpc_logging=True, clear=True))
    both.run(handle, graphs, 67, {WORKER: {0: np.zeros(2, np.float32)}}, {WORKER: [0]})
    assert not both.call(WORKER, "Logging", worker_pb2.LoggingRequest(fetch_step_id=[67])).step


def test_transfers_of_a_traced_step_are_logged(both: Pair, handle: str) -> None:
    graphs = both.register(handle, crossing(), ["x"], ["y"])
    value = {WORKER: {0: np.zeros(2, np.float32)}}
    both.run(handle, graphs, 168, value, {WORKER: [0]}, exec_opts={"record_timeline": True})
    (found,) = both.call(WORKER, "Logging", worker_pb2.LoggingRequest(fetch_step_id=[167, 168])).step
    assert found.step_id == 168 and found.step_stats.dev_stats[0].node_stats[0].node_name == "RecvTensor"


def test_logs_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    from toolkit.cluster.worker import step_logs

    monkeypatch.setattr(step_logs, "_ALL_ENTRIES", 5)
    logs = step_logs.StepLogs()
    for step_id in range(4):
        for number in range(3):
            logs.received(step_id, f"{PS_CPU};1;{WORKER_CPU};edge_{number};0:0", 8, 1000, 2000)
    assert [each.step_id for each in logs.fetch(range(4))] == [2, 3]


def test_a_closed_session_ends_its_steps(both: Pair) -> None:
    both.create("brief")
    task = both.tasks[PS].task
    failures: list[OpError | BaseException | None] = []
    task.steps.join(68, task.session("brief")).recv_local("k", lambda _, __, error: failures.append(error))
    for each in both.tasks:
        both.call(each, "DeleteWorkerSession", _delete("brief"))
    assert isinstance(failures[0], AbortedError) and not len(task.steps)


def test_large_tensors_cross(both: Pair, handle: str) -> None:
    with gm.Graph().as_default() as graph:
        with graph.device(PS_CPU):
            x = gm.placeholder(gm.float32, None, name="x")
            sent = ops.add(x, 1.0)
        with graph.device(WORKER_CPU):
            ops.reverse_v2(sent, [0], name="y")
    graphs = both.register(handle, graph.core, ["x"], ["y"])
    value = np.arange(1 << 19, dtype=np.float32)
    found = both.run(handle, graphs, 71, {PS: {0: value}}, {WORKER: [0]})[0]
    assert np.array_equal(found, value[::-1] + 1)


def test_transfers_in_16_bits() -> None:
    with pytest.raises(UsageError, match="not compressed to 'bf16'"):
        Pair(compress_transfers="bf16")
    with pair(compress_transfers="bfloat16") as both, gm.Graph().as_default() as graph:
        both.create("s")
        with graph.device(PS_CPU):
            x = gm.placeholder(gm.float32, None, name="x")
            sent = ops.neg(x)
        with graph.device(WORKER_CPU):
            ops.neg(sent, name="y")
        graphs = both.register("s", graph.core, ["x"], ["y"])
        value = np.linspace(1, 2, 1000, dtype=np.float32)
        found = both.run("s", graphs, 81, {PS: {0: value}}, {WORKER: [0]})[0]
    assert np.array_equal(found.view(np.uint32), value.view(np.uint32) & np.uint32(0xFFFF0000))


def test_so_many_calls_may_wait(both: Pair) -> None:
    service = both.tasks[PS].service
    waiting: Any = service._waiting  # pyright: ignore[reportPrivateUsage]
    patience.until(lambda: not waiting, "those of other tests are over")
    service._most_waiting = 3  # pyright: ignore[reportPrivateUsage]
    try:
        calls = [
            both.tasks[PS]
            .stub["RecvTensor"]
            .future(
                worker_pb2.RecvTensorRequest(step_id=91, rendezvous_key=_key(both, f"edge_{number}_t")),
                timeout=patience.HUNG,
            )
            for number in range(3)
        ]
        patience.until(lambda: len(waiting) == 3, "all wait")
        assert status_of(lambda: _receive(both, _key(both), 91))[0] == 8
    finally:
        service._most_waiting = 50_000  # pyright: ignore[reportPrivateUsage]
    both.call(PS, "CleanupGraph", worker_pb2.CleanupGraphRequest(step_id=91))
    assert {status_of(call.result)[0] for call in calls} == {ABORTED}
    patience.until(lambda: not waiting, "nobody waits")
