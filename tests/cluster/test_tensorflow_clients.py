"""A real TensorFlow client at our master, whose other tasks are ours or TensorFlow's."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import patience
from tests.cluster.mixed_clusters import MixedCluster, start

tensorflow = pytest.importorskip("tensorflow")
pytest.importorskip("grpc")
tf: Any = tensorflow.compat.v1

PS, WORKER = "/job:ps/task:0", "/job:worker/task:0"


@pytest.fixture(scope="module", params=["ours", "tensorflow"])
def cluster(request: Any) -> Iterator[MixedCluster]:
    """Our master and worker; the parameter server is ours or TensorFlow's."""
    with start({"ps": 1, "worker": 1}, {("ps", 0)} if request.param == "tensorflow" else ()) as made:
        yield made


@pytest.fixture
def session(cluster: MixedCluster) -> Iterator[Any]:
    """A session of its own graph and variables."""
    config = tf.ConfigProto(isolate_session_state=True, operation_timeout_in_ms=int(patience.HUNG * 1000))
    with tf.Graph().as_default(), tf.Session(cluster.target(), config=config) as made:
        yield made


def _model(ps: str | None = PS, worker: str | None = WORKER) -> tuple[Any, Any, Any]:
    """Variables at the parameter server, the rest at the worker."""
    with tf.device(ps):
        w = tf.get_variable("w", [2, 2], initializer=tf.ones_initializer(), use_resource=False)
        b = tf.get_variable("b", [2], initializer=tf.zeros_initializer(), use_resource=True)
    with tf.device(worker):
        x = tf.placeholder(tf.float32, [None, 2], "x")
        y = tf.add(tf.matmul(x, w), b, "y")
        loss = tf.reduce_sum(y * y)
    return x, y, loss


def test_devices_are_those_of_the_cluster(session: Any) -> None:
    names = {device.name for device in session.list_devices()}
    assert names == {f"/job:{job}/replica:0/task:0/device:CPU:0" for job in ("ps", "worker")}
    assert len({device.incarnation for device in session.list_devices()}) == 2


def test_training_is_that_of_one_process(session: Any) -> None:
    def train(session: Any, x: Any, y: Any, loss: Any) -> list[Any]:
        step = tf.train.GradientDescentOptimizer(0.01).minimize(loss)
        session.run(tf.global_variables_initializer())
        feed = {x: [[1, 2], [3, 4]]}
        return [*(session.run([loss, step], feed)[0] for _ in range(5)), *session.run(y, feed).flat]

    there = train(session, *_model())
    with tf.Graph().as_default(), tf.Session() as local:
        here = train(local, *_model(None, None))
    np.testing.assert_allclose(there, here, rtol=1e-5)  # the same float32 operations; sums may have another order


def test_a_graph_grows_between_steps(session: Any) -> None:
    x, y, _ = _model()
    session.run(tf.global_variables_initializer())
    assert session.run(y, {x: [[1, 2]]}).tolist() == [[3, 3]]
    with tf.device(PS):
        more = y + 1
    assert session.run(more, {x: [[1, 2]]}).tolist() == [[4, 4]]


def test_a_trace_has_both_tasks_and_the_graphs(session: Any) -> None:
    x, _, loss = _model()
    train = tf.train.GradientDescentOptimizer(0.01).minimize(loss)
    session.run(tf.global_variables_initializer())
    told = tf.RunMetadata()
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE, output_partition_graphs=True)
    session.run(train, {x: [[1, 2]]}, options=options, run_metadata=told)
    devices = {each.device: {node.node_name for node in each.node_stats} for each in told.step_stats.dev_stats}
    found = {name for name in devices if name.startswith("/job:")}
    assert {name.split("/")[1] for name in found} == {"job:ps", "job:worker"}
    assert "MatMul" in set().union(*(devices[name] for name in found if "job:worker" in name))
    assert len(told.partition_graphs) == 2


def test_partial_runs_over_tasks(session: Any) -> None:
    with tf.device(PS):
        a, b = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
        first = a + 1
    with tf.device(WORKER):
        second = first * b
    handle = session.partial_run_setup([first, second], [a, b])
    assert session.partial_run(handle, first, {a: 1.0}) == 2
    assert session.partial_run(handle, second, {b: 5.0}) == 10
    handle = session.partial_run_setup([first, second], [a, b])
    with pytest.raises(tf.errors.InvalidArgumentError):
        session.partial_run(handle, second, {b: 5.0})


def test_callables(session: Any) -> None:
    x, y, _ = _model()
    session.run(tf.global_variables_initializer())
    call = session.make_callable(y, [x])
    assert call([[3, 3]]).tolist() == [[6, 6]] and call([[1, 0]]).tolist() == [[1, 1]]
    from tensorflow.core.protobuf import config_pb2

    options = config_pb2.CallableOptions(feed=["x:0"], fetch=["y:0", "y:0"])
    made = session._make_callable_from_options(options)
    assert [value.tolist() for value in made(np.array([[2, 2]], np.float32))] == [[[4, 4]], [[4, 4]]]
    del made


def test_queues_and_loops_over_tasks(session: Any) -> None:
    with tf.device(PS):
        queue = tf.FIFOQueue(10, tf.float32)
        taken = queue.dequeue()
    with tf.device(WORKER):
        put = queue.enqueue(tf.constant(3.0) + 1)

    def body(i: Any, v: Any) -> tuple[Any, Any]:
        with tf.device(PS):
            doubled = v * 2
        return i + 1, doubled

    with tf.device(WORKER):
        looped = tf.while_loop(lambda i, _: i < 5, body, [0, tf.constant(1.0)])
        chosen = tf.cond(taken > 3, lambda: taken + 1, lambda: taken - 1)
    session.run(put)
    assert session.run(chosen) == 5
    assert session.run(looped) == [5, 32]


@pytest.mark.parametrize("device", [PS, WORKER])
def test_errors_have_their_type_and_node(session: Any, device: str) -> None:
    with tf.device(device):
        given = tf.placeholder(tf.float32, [], "given")
        never = tf.Variable(1.0, name="never", use_resource=False)
        checked = tf.check_numerics(given, "seen", name="checked")
        queue = tf.FIFOQueue(1, tf.float32)
        closed = queue.close()
        ended = queue.dequeue(name="ended")
    with pytest.raises(tf.errors.InvalidArgumentError) as wrong:
        session.run(checked, {given: np.nan})
    assert wrong.value.op.name == "checked" and "seen" in wrong.value.message
    with pytest.raises(tf.errors.FailedPreconditionError) as unset:
        session.run(never.value())
    assert "never" in unset.value.op.name
    session.run(closed)
    with pytest.raises(tf.errors.OutOfRangeError) as over:
        session.run(ended)
    assert over.value.op.name == "ended"
    with pytest.raises(tf.errors.InvalidArgumentError):
        session.run(checked)
    assert session.run(checked, {given: 2.0}) == 2


def test_what_waits_ends_with_its_deadline_and_with_the_session(cluster: MixedCluster, session: Any) -> None:
    with tf.device(PS):
        empty = tf.FIFOQueue(1, tf.float32).dequeue()
    with tf.device(WORKER):
        waiting = empty + 1
    with pytest.raises(tf.errors.DeadlineExceededError):
        session.run(waiting, options=tf.RunOptions(timeout_in_ms=200))
    # a worker hears a little later that the step is over; it is not the step that is waited for below
    patience.until(lambda: _running(cluster) == 0, "the end of the step")
    other = tf.Session(cluster.target(), graph=session.graph)
    failures: list[Any] = []

    def wait() -> None:
        try:
            other.run(waiting)
        except tf.errors.OpError as error:
            failures.append(error)

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    patience.until(lambda: _running(cluster) > 0, "a step")
    other.close()
    thread.join(patience.HUNG)
    assert [type(each) for each in failures] == [tf.errors.CancelledError], [str(e) for e in failures]


def _running(cluster: MixedCluster) -> int:
    from toolkit.cluster.rpc.channels import OPEN, channel
    from toolkit.cluster.server import ask_status

    with channel(cluster.jobs["worker"][0]) as made:
        status = ask_status(made, OPEN, patience.HUNG)
    return int(sum(each["running"] for each in status["sessions"]))


def test_sessions_share_variables_unless_they_are_isolated(cluster: MixedCluster) -> None:
    with tf.Graph().as_default():
        with tf.device(PS):
            shared = tf.get_variable("shared", [], initializer=tf.zeros_initializer(), use_resource=False)
            add = shared.assign_add(1)
        with tf.Session(cluster.target()) as one, tf.Session(cluster.target()) as two:
            one.run(shared.initializer)
            two.run(add)
            one.run(add)
            assert two.run(shared) == 2
        with (
            tf.Session(cluster.target(), config=tf.ConfigProto(isolate_session_state=True)) as alone,
            pytest.raises(tf.errors.FailedPreconditionError),
        ):
            alone.run(add)
        tf.Session.reset(cluster.target())
        with tf.Session(cluster.target()) as after, pytest.raises(tf.errors.FailedPreconditionError):
            after.run(add)


def test_device_filters(cluster: MixedCluster) -> None:
    config = tf.ConfigProto(device_filters=["/job:worker/task:0"])
    with tf.Graph().as_default(), tf.Session(cluster.target(), config=config) as session:
        assert [device.name for device in session.list_devices()] == ["/job:worker/replica:0/task:0/device:CPU:0"]
        with tf.device(PS):
            away = tf.constant(1.0)
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(away)


def test_a_monitored_session_trains_saves_and_goes_on(cluster: MixedCluster, tmp_path: Path) -> None:
    def losses(steps: int) -> list[float]:
        with tf.Graph().as_default():
            x, _, loss = _model()
            step = tf.train.get_or_create_global_step()
            train = tf.train.AdamOptimizer(0.1).minimize(loss, global_step=step)
            seen: list[float] = []
            hooks = [tf.train.StopAtStepHook(num_steps=steps)]
            with tf.train.MonitoredTrainingSession(
                cluster.target(), is_chief=True, checkpoint_dir=str(tmp_path), hooks=hooks, save_checkpoint_steps=2,
                log_step_count_steps=None, save_summaries_steps=None, save_summaries_secs=None,
            ) as session:  # fmt: skip
                while not session.should_stop():
                    seen.append(float(session.run([loss, train], {x: [[1.0, 2.0]]})[0]))
            return seen

    first = losses(4)
    assert tf.train.latest_checkpoint(str(tmp_path)).endswith("-4")
    second = losses(3)
    assert second[0] < first[-1] < first[0]
    assert tf.train.latest_checkpoint(str(tmp_path)).endswith("-7")
