"""Training over real TensorFlow servers with our client: the same numbers as TensorFlow's client has there."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import patience
from tests.cluster import mixed_clusters
from tests.cluster import training_programs as programs
from tests.cluster.clients import unique
from tests.cluster.tensorflow_servers import Cluster, start
from tests.tf1 import node_oracle
from toolkit import tensorflow as gm

pytestmark = pytest.mark.tensorflow
STEPS = 12


def run_plainly(fetches: Any, feeds: Any = None) -> Any:
    """For `run_step_fn`: a step without hooks."""

    def step(step_context: Any) -> Any:
        return step_context.session.run(fetches, feeds)

    return step


def chief_alone(tf: Any, cluster: Cluster, folder: Path, config: Any = None) -> list[float]:
    """The losses of a chief whose variables are at the parameter server."""
    container = unique("chief")
    graph, net = programs.replicated(
        tf, cluster, 0, container, lambda: programs.digits_cnn(tf, programs.gradient_descent)
    )
    losses: list[float] = []
    with graph.as_default():
        hooks = [tf.train.StopAtStepHook(last_step=STEPS)]
        with tf.train.MonitoredTrainingSession(
            cluster.target("worker", 0), checkpoint_dir=str(folder), hooks=hooks, save_checkpoint_steps=5,
            config=config,
        ) as session:  # fmt: skip
            while not session.should_stop():
                x, y = programs.batch(len(losses))
                losses.append(float(session.run([net["loss"], net["train"]], {net["x"]: x, net["y"]: y})[0]))
    return losses


def test_the_digits_have_the_losses_of_tensorflows_client(servers: Cluster, tmp_path: Path) -> None:
    ours = chief_alone(gm, servers, tmp_path / "ours")
    with node_oracle.semantics():
        theirs = chief_alone(node_oracle.theirs(), servers, tmp_path / "theirs")
    # The servers compute both; what may differ is the order in which their threads add up.
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)
    assert ours[-1] < ours[0]
    names = [sorted(each.name for each in (tmp_path / who).glob("model*")) for who in ("ours", "theirs")]
    assert names[0] == names[1]
    again = gm.train.latest_checkpoint(str(tmp_path / "theirs"))
    reader = gm.train.NewCheckpointReader(again)
    mine = gm.train.NewCheckpointReader(gm.train.latest_checkpoint(str(tmp_path / "ours")))
    assert reader.get_variable_to_shape_map() == mine.get_variable_to_shape_map()
    assert int(mine.get_tensor("global_step")) == STEPS


def trained_by(cluster: Cluster, task: int, container: str, folder: Path, steps: int) -> float:
    """A worker of asynchronous training; returns the loss over all test images when it is done."""
    graph, net = programs.replicated(
        gm, cluster, task, container, lambda: programs.digits_cnn(gm, programs.gradient_descent)
    )
    data = programs.digits()
    with graph.as_default():
        hooks = [gm.train.StopAtStepHook(last_step=steps)]
        config = gm.ConfigProto(device_filters=["/job:ps", f"/job:worker/task:{task}"])
        with gm.train.MonitoredTrainingSession(
            cluster.target("worker", task), is_chief=task == 0, hooks=hooks, config=config,
            checkpoint_dir=str(folder) if task == 0 else None, max_wait_secs=patience.HUNG,
        ) as session:  # fmt: skip
            number = task
            accuracy = 0.0
            while not session.should_stop():
                x, y = programs.batch(number)
                session.run(net["train"], {net["x"]: x, net["y"]: y})
                number += 2
                accuracy = float(
                    session.run_step_fn(
                        run_plainly(net["accuracy"], {net["x"]: data["x_test"], net["y"]: data["y_test"]})
                    )
                )
            return accuracy


def test_two_workers_train_one_model(servers: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between-graph replication, asynchronous: every worker pulls and pushes when it likes."""
    container = unique("async")
    shorter_waits(monkeypatch)
    steps = 240  # in whatever order they come: right are 0.94 and more in 8 runs; after 80 some runs have less than 0.8
    accuracies = programs.together(
        lambda: trained_by(servers, 0, container, tmp_path, steps),
        lambda: trained_by(servers, 1, container, tmp_path, steps),
    )
    assert max(accuracies) > 0.8
    reader = gm.train.NewCheckpointReader(gm.train.latest_checkpoint(str(tmp_path)))
    assert int(reader.get_tensor("global_step")) >= steps


def in_step(cluster: Cluster, task: int, container: str, together: threading.Barrier, steps: int) -> list[Any]:
    """A worker of synchronous training, in step with the other; returns the weights at the end."""
    made: list[Any] = []

    def averaging(tf: Any, loss: Any, step: Any) -> Any:
        made.append(tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(0.3), 2, total_num_replicas=2))
        return made[0].minimize(loss, global_step=step)

    graph, net = programs.replicated(gm, cluster, task, container, lambda: programs.digits_cnn(gm, averaging))
    with graph.as_default():
        weights = gm.trainable_variables()
        with gm.train.MonitoredTrainingSession(
            cluster.target("worker", task), is_chief=task == 0, stop_grace_period_secs=1, max_wait_secs=patience.HUNG,
            hooks=[made[0].make_session_run_hook(task == 0, num_tokens=0)],
            config=gm.ConfigProto(device_filters=["/job:ps", f"/job:worker/task:{task}"]),
        ) as session:  # fmt: skip
            for number in range(steps):
                # A worker that is ahead may give two gradients to one average: that is no error, but no one sequence.
                together.wait(patience.HUNG)
                x, y = programs.batch(2 * number + task)
                session.run(net["train"], {net["x"]: x, net["y"]: y})
            together.wait(patience.HUNG)
            found = session.run_step_fn(run_plainly(weights))
            together.wait(patience.HUNG)
            return found


def test_synchronous_workers_are_one_with_larger_batches(servers: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    shorter_waits(monkeypatch)
    container, barrier, steps = unique("sync"), threading.Barrier(2), 6
    first, second = programs.together(
        lambda: in_step(servers, 0, container, barrier, steps), lambda: in_step(servers, 1, container, barrier, steps)
    )
    graph, net = programs.replicated(
        gm, servers, 0, unique("alone"), lambda: programs.digits_cnn(gm, programs.gradient_descent)
    )
    with graph.as_default(), gm.Session(servers.target()) as session:
        session.run(gm.global_variables_initializer())
        for number in range(steps):
            batches = [programs.batch(2 * number + task) for task in (0, 1)]
            x, y = (np.concatenate(part) for part in zip(*batches, strict=True))
            session.run(net["train"], {net["x"]: x, net["y"]: y})
        expected = session.run(gm.trainable_variables())
    for one, other, alone in zip(first, second, expected, strict=True):
        np.testing.assert_array_equal(one, other)
        # the same sums in another order, of numbers around 0.1
        np.testing.assert_allclose(one, alone, rtol=1e-5, atol=1e-6)


def shorter_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers look for the chief's variables every 30 seconds otherwise."""
    from toolkit.tensorflow.families.train import session_manager

    original = session_manager.SessionManager.__init__

    def patched(self: Any, *arguments: Any, **named: Any) -> None:
        original(self, *arguments, **{**named, "recovery_wait_secs": 0.1})

    monkeypatch.setattr(session_manager.SessionManager, "__init__", patched)


@pytest.mark.parametrize("begin", [start, mixed_clusters.start], ids=["tensorflow", "graphmill"])
def test_a_lost_parameter_server_costs_the_steps_since_the_last_checkpoint(begin: Any, tmp_path: Path) -> None:
    """kill -9 between two steps: the session is made anew, the checkpoint restored, and the numbers are the same."""
    with begin({"ps": 1, "worker": 1}) as cluster:
        graph, net = programs.replicated(gm, cluster, 0, "", lambda: programs.digits_cnn(gm, programs.gradient_descent))
        steps: list[int] = []
        losses: dict[int, float] = {}
        killed = False
        with graph.as_default():
            hooks = [gm.train.StopAtStepHook(last_step=STEPS)]
            with gm.train.MonitoredTrainingSession(
                cluster.target(), checkpoint_dir=str(tmp_path), hooks=hooks, save_checkpoint_steps=5
            ) as session:
                while not session.should_stop():
                    at = int(session.run_step_fn(run_plainly(net["step"])))
                    x, y = programs.batch(at)
                    loss = session.run([net["loss"], net["train"]], {net["x"]: x, net["y"]: y})[0]
                    steps.append(at)
                    losses[at] = float(loss)
                    if at == 8 and not killed:
                        killed = True
                        cluster.restart("ps")
        assert steps[:9] == list(range(9))
        assert steps[-1] == STEPS - 1
        again = steps[9]
        assert again in (5, 6), steps  # where the last checkpoint is
        undisturbed = chief_alone(gm, cluster, tmp_path / "undisturbed")
        # the servers' threads may add up in another order, as above
        np.testing.assert_allclose([losses[n] for n in range(STEPS)], undisturbed, rtol=1e-5)


def test_supervisor(servers: Cluster, tmp_path: Path) -> None:
    graph, net = programs.replicated(
        gm, servers, 1, unique("supervised"),
        lambda: programs.digits_cnn(gm, programs.gradient_descent),
    )  # fmt: skip
    losses: list[float] = []
    with graph.as_default():
        supervisor = gm.train.Supervisor(logdir=str(tmp_path), save_model_secs=0, save_summaries_secs=0)
        with supervisor.managed_session(servers.target("worker", 1)) as session:
            for number in range(5):
                x, y = programs.batch(number)
                losses.append(float(session.run([net["loss"], net["train"]], {net["x"]: x, net["y"]: y})[0]))
            supervisor.saver.save(session, supervisor.save_path, global_step=supervisor.global_step)
    assert losses[-1] < losses[0]
    assert gm.train.latest_checkpoint(str(tmp_path)).endswith("model.ckpt-5")


def queue_program(tf: Any, cluster: Cluster) -> list[Any]:
    """Numbers through a queue at a parameter server, filled by threads, and through a loop over two tasks."""
    with tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            at = tf.get_variable(unique("at"), [], tf.int32, initializer=tf.zeros_initializer(), use_resource=False)
            queue = tf.FIFOQueue(4, [tf.int32], [[]], shared_name=unique("input"))
            number = tf.assign_add(at, 1) + 0  # the queue must not hold the variable itself
            runner = tf.train.QueueRunner(queue, [queue.enqueue(number)])
        tf.train.add_queue_runner(runner)
        with tf.device("/job:worker/task:1"):
            taken = queue.dequeue()

            def body(n: Any, total: Any) -> Any:
                with tf.device("/job:ps/task:0"):
                    more = total + n
                with tf.device("/job:worker/task:0"):
                    return n + 1, more * 2

            out = tf.while_loop(lambda n, _: n < 4, body, [tf.constant(0), taken])[1]
        values: list[Any] = []
        with tf.Session(cluster.target("worker", 0)) as session:
            session.run(at.initializer)
            coordinator = tf.train.Coordinator()
            threads = tf.train.start_queue_runners(session, coordinator)
            try:
                for _ in range(6):
                    values.append(int(session.run(out)))
            finally:
                coordinator.request_stop()
                session.run(queue.close(cancel_pending_enqueues=True))
                coordinator.join(threads, stop_grace_period_secs=patience.HUNG, ignore_live_threads=True)
        return values


def test_queues_and_loops_over_tasks(servers: Cluster) -> None:
    ours = queue_program(gm, servers)
    with node_oracle.semantics():
        theirs = queue_program(node_oracle.theirs(), servers)
    assert ours == theirs
    assert len(set(ours)) == 6
