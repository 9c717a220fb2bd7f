"""A TensorFlow server as master, whose parameter server and second worker are ours; TensorFlow's client in front."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests import patience
from tests.cluster.tensorflow_servers import Cluster, free_ports
from toolkit.cluster.rpc.server import Listening, Server
from toolkit.cluster.worker.service import WorkerService
from toolkit.cluster.worker.task import WorkerTask
from toolkit.graph.device import DeviceSpec

tf: Any = pytest.importorskip("tensorflow").compat.v1
pytest.importorskip("grpc")

PS, MASTER, OURS = "/job:ps/task:0", "/job:worker/task:0", "/job:worker/task:1"
#: what the issue asks for: the same steps on several machines, whose products may be summed in another order
CLOSE = 1e-5


class Ours:
    """A task of ours in this process, which can start anew."""

    def __init__(self, jobs: dict[str, list[str]], job: str, index: int):
        self._spec = DeviceSpec(job, 0, index)
        self._addresses = {
            str(DeviceSpec(each, 0, number)): address
            for each, tasks in jobs.items()
            for number, address in enumerate(tasks)
        }
        self._port = int(jobs[job][index].rpartition(":")[2])
        self._begin()

    def _begin(self) -> None:
        self.task = WorkerTask(self._spec, self._addresses)
        self._service = WorkerService(self.task)
        self._server = Server(Listening(port=self._port), [self._service.handler()])
        self._server.start()

    def stop(self) -> None:
        self.task.close()
        self._server.stop()
        self._service.close()

    def restart(self) -> None:
        self.stop()
        self._begin()


class Mixed:
    """The cluster."""

    def __init__(self) -> None:
        ports = free_ports(3)
        jobs = {"ps": [f"localhost:{ports[0]}"], "worker": [f"localhost:{port}" for port in ports[1:]]}
        self.ps, self.worker = Ours(jobs, "ps", 0), Ours(jobs, "worker", 1)
        self.cluster = Cluster(jobs, [("worker", 0)], {})
        self.target = self.cluster.target("worker", 0)
        failure = self.cluster.failed()
        assert failure is None, failure

    def session(self, graph: Any, **config: Any) -> Any:
        given = tf.ConfigProto(operation_timeout_in_ms=int(patience.HUNG * 1000), **config)
        return tf.Session(self.target, graph=graph, config=given)

    def stop(self) -> None:
        self.cluster.stop()
        self.ps.stop()
        self.worker.stop()


@pytest.fixture(scope="module")
def mixed() -> Iterator[Mixed]:
    made = Mixed()
    yield made
    made.stop()


@pytest.fixture
def graph() -> Iterator[Any]:
    with tf.Graph().as_default() as made:
        yield made


def _network(places: dict[str, str], kind: bool) -> tuple[Any, Any, Any, Any]:
    x, y = tf.placeholder(tf.float32, [None, 4], "x"), tf.placeholder(tf.float32, [None, 1], "y")
    with tf.device(places[PS]):
        first = tf.get_variable("first", [4, 3], use_resource=kind, initializer=tf.ones_initializer())
        second = tf.get_variable("second", [3, 1], use_resource=kind, initializer=tf.ones_initializer())
    with tf.device(places[MASTER]):
        hidden = tf.nn.tanh(tf.matmul(x, first))
    with tf.device(places[OURS]):
        loss = tf.reduce_mean(tf.square(tf.matmul(hidden, second) - y))
    with tf.device(places[PS]):
        train = tf.train.MomentumOptimizer(0.05, 0.9).minimize(loss, colocate_gradients_with_ops=True)
    return x, y, loss, train


@pytest.mark.parametrize("kind", [False, True], ids=["references", "resources"])
def test_training(mixed: Mixed, kind: bool) -> None:
    random = np.random.RandomState(0)
    batches = [random.randn(8, 4).astype(np.float32) for _ in range(5)]

    def losses(session: Any, x: Any, y: Any, loss: Any, train: Any) -> list[Any]:
        session.run(tf.global_variables_initializer())
        return [session.run([loss, train], {x: batch, y: batch[:, :1]})[0] for batch in batches]

    with tf.Graph().as_default() as graph:
        net = _network({each: each for each in (PS, MASTER, OURS)}, kind)
        with mixed.session(graph) as session:
            found = losses(session, *net)
    with tf.Graph().as_default():
        net = _network(dict.fromkeys((PS, MASTER, OURS), ""), kind)
        with tf.Session() as session:
            wanted = losses(session, *net)
    np.testing.assert_allclose(found, wanted, rtol=CLOSE)
    assert found[-1] < found[0]


def test_loops_and_branches_over_tasks(mixed: Mixed, graph: Any) -> None:
    def body(number: Any, value: Any) -> tuple[Any, Any]:
        with tf.device(PS):
            doubled = value * 2.0
        with tf.device(OURS):
            inner = tf.while_loop(lambda k, v: k < 2, lambda k, v: (k + 1, v + 1.0), [0, doubled])[1]
        with tf.device(MASTER):
            return number + 1, inner + 1.0

    choice = tf.placeholder(tf.bool, [])
    with tf.device(MASTER):
        looped = tf.while_loop(lambda number, _: number < 4, body, [0, tf.constant(1.0)])
    with tf.device(PS):
        seven = tf.constant(7.0) * 1.0

    def taken() -> Any:
        with tf.device(OURS):
            return seven + 1.0

    def other() -> Any:
        with tf.device(PS):
            return seven - 1.0

    with tf.device(MASTER):
        chosen = tf.cond(choice, taken, other)
    with mixed.session(graph) as session:
        assert session.run(looped) == [4, 61.0]
        assert session.run(chosen, {choice: True}) == 8.0
        assert session.run(chosen, {choice: False}) == 6.0


def test_queues_between_sessions(mixed: Mixed, graph: Any) -> None:
    with tf.device(PS):
        queue = tf.FIFOQueue(2, [tf.string, tf.float32], shapes=[[], [2]], shared_name="between")
    given = tf.placeholder(tf.float32, [2])
    with tf.device(OURS):
        put = queue.enqueue([tf.constant("from ours"), given * 2.0])
    with tf.device(MASTER):
        taken = queue.dequeue()
        text = tf.strings.join([taken[0], "!"])
    found: list[Any] = []
    with mixed.session(graph) as session, mixed.session(graph) as other:
        waiting = threading.Thread(target=lambda: found.append(other.run([text, taken[1]])), daemon=True)
        waiting.start()
        session.run(put, {given: [1.0, 2.0]})
        waiting.join(patience.HUNG)
    assert found[0][0] == b"from ours!" and found[0][1].tolist() == [2.0, 4.0]


def test_assignments_and_several_sessions(mixed: Mixed, graph: Any) -> None:
    with tf.device(PS):
        count = tf.get_variable("count", [], tf.int32, initializer=tf.zeros_initializer(), use_resource=False)
        step = tf.assign_add(count, 1)
    with mixed.session(graph) as first, mixed.session(graph) as second:
        first.run(count.initializer)
        assert first.run(step) == 1
        assert second.run(step) == 2
        assert first.run(count) == 2
        with mixed.session(graph, isolate_session_state=True) as alone:
            with pytest.raises(tf.errors.FailedPreconditionError):
                alone.run(count)
            alone.run(count.initializer)
            assert alone.run(step) == 1
        assert second.run(count) == 2
    tf.Session.reset(mixed.target)
    with mixed.session(graph) as third, pytest.raises(tf.errors.FailedPreconditionError, match="count"):
        third.run(count)


def test_partial_runs(mixed: Mixed, graph: Any) -> None:
    a, b = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
    with tf.device(PS):
        first = a + 1.0
    with tf.device(OURS):
        second = first * b
    with mixed.session(graph) as session:
        handle = session.partial_run_setup([first, second], [a, b])
        assert session.partial_run(handle, first, {a: 2.0}) == 3.0
        assert session.partial_run(handle, second, {b: 5.0}) == 15.0
        assert session.run(second, {a: 1.0, b: 2.0}) == 4.0


@pytest.mark.parametrize("place", [PS, OURS])
def test_errors_are_tensorflows_and_name_the_node(mixed: Mixed, graph: Any, place: str) -> None:
    x = tf.placeholder(tf.float32, [None, 2])
    with tf.device(place):
        inverse = tf.linalg.inv(x, name="inverse")
    with tf.device(MASTER):
        result = tf.reduce_sum(inverse)
    with mixed.session(graph) as session:
        with pytest.raises(tf.errors.InvalidArgumentError, match="not invertible") as raised:
            session.run(result, {x: np.zeros((2, 2), np.float32)})
        assert "{{node inverse}}" in str(raised.value)
        assert session.run(result, {x: np.eye(2, dtype=np.float32)}) == 2.0  # the session goes on


def test_a_step_that_takes_too_long_ends_everywhere(mixed: Mixed, graph: Any) -> None:
    with tf.device(PS):
        queue = tf.FIFOQueue(1, [tf.float32], shared_name="never filled")
        taken = queue.dequeue()
    with tf.device(OURS):
        result = taken + 1.0
    with mixed.session(graph) as session:
        with pytest.raises(tf.errors.DeadlineExceededError):
            session.run(result, options=tf.RunOptions(timeout_in_ms=500))
        patience.until(lambda: not len(mixed.ps.task.steps) and not len(mixed.worker.task.steps), "the step's end")


def test_timelines_and_partitions(mixed: Mixed, graph: Any) -> None:
    with tf.device(PS):
        one = tf.get_variable("timed", [3], use_resource=False, initializer=tf.ones_initializer())
    with tf.device(OURS):
        result = tf.reduce_sum(one * 2.0)
    with mixed.session(graph) as session:
        session.run(one.initializer)
        metadata = tf.RunMetadata()
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE, output_partition_graphs=True)
        assert session.run(result, options=options, run_metadata=metadata) == 6.0
    names: dict[str, set[str]] = {}
    for each in metadata.step_stats.dev_stats:
        names.setdefault(each.device, set()).update(node.node_name for node in each.node_stats)
    ours, ps = ("/job:worker/replica:0/task:1/device:CPU:0", "/job:ps/replica:0/task:0/device:CPU:0")
    assert {"RecvTensor", "mul", "Sum"} <= names[ours] and "timed" in names[ps], names
    assert len(metadata.partition_graphs) == 3  # the master's part receives what is fetched


def test_files_are_refused(mixed: Mixed, graph: Any, tmp_path: Any) -> None:
    with tf.device(PS):
        wrote = tf.io.write_file(str(tmp_path / "file"), "x")
    with mixed.session(graph) as session, pytest.raises(tf.errors.PermissionDeniedError, match="--allow"):
        session.run(wrote)
    assert not list(tmp_path.iterdir())


def test_a_worker_that_starts_anew_is_found_out(mixed: Mixed, graph: Any) -> None:
    with tf.device(PS):
        kept = tf.get_variable("kept", [], use_resource=False, initializer=tf.ones_initializer())
    with tf.device(MASTER):
        result = kept + 1.0
    with mixed.session(graph) as session:
        session.run(kept.initializer)
        assert session.run(result) == 2.0
        mixed.ps.restart()
        with pytest.raises((tf.errors.AbortedError, tf.errors.UnavailableError)):
            session.run(result)
    with mixed.session(graph) as session:
        with pytest.raises(tf.errors.FailedPreconditionError):
            session.run(result)
        session.run(kept.initializer)
        assert session.run(result) == 2.0
