"""Workers: one for each task, behind an interface that needs no shared memory."""

# lambdas over tensors of the client, whose parameters have no types; what a worker keeps for a step is looked at
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportPrivateUsage=false

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tests.patience import HUNG, until
from tests.runtime.devices.serialising_worker import SerialisingWorker
from toolkit import client as gm
from toolkit.errors import AbortedError, CancelledError, DeadlineExceededError, InvalidArgumentError
from toolkit.graph.device import DeviceSpec
from toolkit.graph.node import Node
from toolkit.passes.partitioning.partition import by_device, split
from toolkit.runtime.devices import Device, local_devices
from toolkit.runtime.session import Session
from toolkit.runtime.steps.failures import root_cause
from toolkit.runtime.steps.rendezvous import make_key
from toolkit.runtime.workers.base import Environment, Worker
from toolkit.runtime.workers.local import LocalWorker
from toolkit.runtime.workers.peers import PeerRendezvous

ops = gm.ops
X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
TASKS = ("/job:worker/replica:0/task:0", "/job:worker/replica:0/task:1")
PLACES = [f"{task}/device:CPU:{index}" for task in TASKS for index in (0, 1)]


def cluster() -> list[Device]:
    """Two tasks with two processors each."""
    return [device for task in TASKS for device in local_devices({"CPU": 2}, DeviceSpec.parse(task))]


class Recorded:
    """Makes local workers and remembers them, and what they were asked."""

    def __init__(self) -> None:
        self.workers: dict[str, LocalWorker] = {}

    def __call__(self, task: str, devices: Sequence[Device], environment: Environment) -> Worker:
        self.workers[task] = LocalWorker(task, devices, environment)
        return self.workers[task]


@pytest.fixture(params=[LocalWorker, SerialisingWorker])
def session_of(request: pytest.FixtureRequest) -> Any:
    """Makes sessions over the cluster, with workers of each kind."""

    def make(graph: Any) -> Session:
        return Session(graph, devices=cluster(), workers=request.param)

    return make


def chain(places: Sequence[str]) -> tuple[Any, Any, Any]:
    """x * 2 + 1 over the devices of a list, one operation on each."""
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [2, 3], name="x")
        y = x
        for number, place in enumerate(places):
            with graph.device(place):
                y = y * 2.0 if number % 2 == 0 else y + 1.0
    return graph, x, y


def dequeued() -> Any:
    """What comes out of a queue that nothing is put into."""
    return ops.queue_dequeue_v2(ops.fifo_queue_v2(component_types=[gm.float32]), component_types=[gm.float32])[0]


def test_a_chain_over_all_devices_of_two_tasks(session_of: Any) -> None:
    graph, x, y = chain(PLACES)
    with session_of(graph) as session:
        for _ in range(3):
            np.testing.assert_array_equal(session.run(y, {x: X}), (X * 2 + 1) * 2 + 1)
        parts = session.compiled(y, [x]).stages.partitions
    assert sorted(parts) == PLACES


def test_a_loop_over_all_devices_of_two_tasks(session_of: Any) -> None:
    """Each task gets its part of the loop, and splits it once more."""
    with gm.Graph().as_default() as graph:
        x, n = gm.placeholder(gm.float32, [2, 3]), gm.placeholder(gm.int32, [])

        def body(i: Any, y: Any) -> Any:
            for place in PLACES[1:]:
                with graph.device(place):
                    y = y * 0.5 + x
            with graph.device(PLACES[0]):
                return [i + 1, y]

        with graph.device(PLACES[0]):
            end = gm.while_loop(lambda i, y: i < n, body, [gm.constant(0), x])[1]
    with Session(graph) as alone, session_of(graph) as session:
        for count in (0, 1, 5):
            feeds = {x: X, n: np.int32(count)}
            # halves are exact, so a sum is rounded once, fused with the product or not
            np.testing.assert_array_equal(session.run(end, feeds), alone.run(end, feeds))


def test_branches_not_taken_cross_tasks(session_of: Any) -> None:
    with gm.Graph().as_default() as graph:
        x, p = gm.placeholder(gm.float32, [2, 3]), gm.placeholder(gm.bool, [])
        with graph.device(PLACES[0]):
            switched = ops.switch(x, p)
        with graph.device(PLACES[3]):
            one = ops.identity(switched[0]) * 3.0
        with graph.device(PLACES[2]):
            other = ops.identity(switched[1]) - 1.0
        with graph.device(PLACES[1]):
            merged = ops.merge([one, other])[0]
    with session_of(graph) as session:
        np.testing.assert_array_equal(session.run(merged, {x: X, p: False}), X * 3)
        np.testing.assert_array_equal(session.run(merged, {x: X, p: True}), X - 1)
        with pytest.raises(InvalidArgumentError, match="not taken"):
            session.run(one, {x: X, p: True})


def test_variables_stay_at_their_tasks(session_of: Any) -> None:
    with gm.Graph().as_default() as graph:
        with graph.device(PLACES[2]):
            v = gm.Variable(np.zeros(3, np.float32), name="v", use_resource=True)
            bump = v.assign_add(np.ones(3, np.float32))
        with graph.device(PLACES[0]):
            read = v.value() * 2.0
        start = gm.global_variables_initializer()
    with session_of(graph) as session:
        session.run(start)
        for count in (1, 2):
            session.run(bump)
            np.testing.assert_array_equal(session.run(read), np.full(3, 2.0 * count))


def test_an_error_keeps_its_node_and_ends_the_step_everywhere(session_of: Any) -> None:
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, None)
        with graph.device(PLACES[3]):
            bad = ops.reshape(x, [5], name="bad")
        with graph.device(PLACES[0]):
            out = ops.identity(bad)
        with graph.device(PLACES[1]):  # waits for what never comes, unless it is told
            waiting = dequeued()
    with session_of(graph) as session:
        with pytest.raises(InvalidArgumentError) as caught:
            session.run([out, waiting], {x: X})
        assert caught.value.node == "bad"
        np.testing.assert_array_equal(session.run(out, {x: np.zeros(5, np.float32)}), np.zeros(5))


def test_the_first_real_error_wins() -> None:
    real = InvalidArgumentError("it", node="n")
    assert root_cause([CancelledError("so"), AbortedError("so"), real, InvalidArgumentError("later")]) is real
    first = CancelledError("the first")
    assert root_cause([first, AbortedError("then")]) is first


def test_a_deadline_and_a_close_reach_every_worker(session_of: Any) -> None:
    with gm.Graph().as_default() as graph:
        waits: list[Any] = []
        for place in PLACES:
            with graph.device(place):
                waits.append(dequeued())
    session = session_of(graph)
    with pytest.raises(DeadlineExceededError):
        session.run(waits, timeout_ms=50)
    ended: list[BaseException] = []

    def wait() -> None:
        try:
            session.run(waits)
        except CancelledError as error:
            ended.append(error)

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    until(lambda: len([t for t in threading.enumerate() if "task:1" in t.name]) > 0, "the step's second worker")
    session.close()
    thread.join(HUNG)
    assert len(ended) == 1


def test_partial_runs_over_tasks(session_of: Any) -> None:
    with gm.Graph().as_default() as graph:
        a, b = gm.placeholder(gm.float32, []), gm.placeholder(gm.float32, [])
        with graph.device(PLACES[1]):
            first = a * 2.0
        with graph.device(PLACES[2]):
            second = first + b
    with session_of(graph) as session:
        handle = session.partial_run_setup([first, second], [a, b])
        assert session.partial_run(handle, first, {a: 3}) == 6
        assert session.partial_run(handle, second, {b: 1}) == 7


def test_traces_and_statistics_come_from_every_worker(session_of: Any) -> None:
    from schemas import config_pb2

    graph, x, y = chain(PLACES)
    options = config_pb2.RunOptions(trace_level=config_pb2.RunOptions.FULL_TRACE, output_partition_graphs=True)
    metadata = config_pb2.RunMetadata()
    with session_of(graph) as session:
        session.run(y, {x: X}, options, metadata)
    assert sorted(device.device for device in metadata.step_stats.dev_stats) == PLACES
    assert len(metadata.partition_graphs) == len(PLACES)
    with gm.Graph().as_default() as graph, graph.device("/device:NULL:0"):
        y = gm.constant(X) * 2.0
    with Session(graph, devices={"NULL": 1}, precision="exact") as session:
        session.run(y)
        statistics = session.device_statistics()
    assert [name[-6:] for name in statistics] == ["NULL:0"] and next(iter(statistics.values())).copies_out > 0


def test_nothing_of_a_step_or_a_session_stays() -> None:
    workers = Recorded()
    graph, x, y = chain(PLACES)
    session = Session(graph, devices=cluster(), workers=workers)
    session.run(y, {x: X})
    handle = session.partial_run_setup([y], [x])
    session.partial_run(handle, y, {x: X})
    with pytest.raises(InvalidArgumentError):
        session.run(y, {x: X}, timeout_ms=None, probe=_Failing())
    for worker in workers.workers.values():
        assert not worker._steps
    session.partial_run_setup([y], [x])
    session.close()
    for worker in workers.workers.values():
        assert not worker._steps and not worker._graphs


class _Failing:
    """A probe that ends the step."""

    def ran(
        self, node: Node, device: str, start_ns: int, end_ns: int, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> None:
        raise InvalidArgumentError("enough")


def test_a_cancelled_worker_does_not_wait_for_another_one() -> None:
    """A task that never answers: the receiver hears of the abortion, once, and a late answer is dropped."""
    asked: list[Any] = []

    class Silent:
        def receive(self, step_id: int, key: str, done: Any) -> None:
            asked.append(done)

    heard: list[tuple[Any, BaseException | None]] = []
    rendezvous = PeerRendezvous(1, TASKS[0], {TASKS[1]: Silent()}.__getitem__)
    key = make_key(PLACES[2], 0, PLACES[0], "t", (0, 0))
    rendezvous.recv_async(key, lambda value, is_dead, error: heard.append((value, error)))
    assert not heard and len(asked) == 1
    rendezvous.abort()
    asked[0](X, False, None)
    rendezvous.recv_async(key, lambda value, is_dead, error: heard.append((value, error)))
    assert len(asked) == 1 and [type(error) for _, error in heard] == [AbortedError, AbortedError]


def test_splitting_by_task_and_then_by_device_gives_the_devices_of_one_split() -> None:
    graph, x, y = chain(PLACES)
    with Session(graph, devices=cluster()) as session:
        stages = session.compiled(y, [x]).stages
        at_once = split(stages.client, by_device)
        for name, part in stages.partitions.items():
            assert sorted(node.op for node in part) == sorted(node.op for node in at_once[name])
