"""The digits CNN in actors of a Ray cluster, on one parameter server and two workers: as in one process."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cluster import training_programs as programs
from tests.cluster.clients import unique
from tests.cluster.ray.conftest import RayCluster
from tests.cluster.test_distributed_samples import learns, output, started
from tests.cluster.test_training_at_servers import chief_alone, in_step, run_plainly, shorter_waits, trained_by
from toolkit import tensorflow as gm


def weights_here(batches: list[tuple[Any, Any]]) -> list[Any]:
    """The weights after these batches in a session of this process."""
    with gm.Graph().as_default() as graph:
        graph.seed = 1
        net = programs.digits_cnn(gm, programs.gradient_descent)
        with gm.Session() as session:
            session.run(gm.global_variables_initializer())
            for x, y in batches:
                session.run(net["train"], {net["x"]: x, net["y"]: y})
            return session.run(gm.trainable_variables())


def test_synchronous_workers_compute_what_one_process_does(actors: RayCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    shorter_waits(monkeypatch)
    container, barrier, steps = unique("sync"), threading.Barrier(2), 6
    first, second = programs.together(
        lambda: in_step(actors, 0, container, barrier, steps), lambda: in_step(actors, 1, container, barrier, steps)
    )
    pairs = [[programs.batch(2 * number + task) for task in (0, 1)] for number in range(steps)]
    joined = [tuple(np.concatenate(part) for part in zip(*pair, strict=True)) for pair in pairs]
    for one, other, alone in zip(first, second, weights_here(joined), strict=True):
        np.testing.assert_array_equal(one, other)
        # the same sums in another order, of numbers around 0.1, as in tests/cluster/test_training_at_servers.py
        np.testing.assert_allclose(one, alone, rtol=1e-5, atol=1e-6)


def test_asynchronous_workers_train_one_model(
    actors: RayCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shorter_waits(monkeypatch)
    container = unique("async")
    accuracies = programs.together(
        lambda: trained_by(actors, 0, container, tmp_path, 80), lambda: trained_by(actors, 1, container, tmp_path, 80)
    )
    assert max(accuracies) > 0.8  # what one process and servers reach
    reader = gm.train.NewCheckpointReader(gm.train.latest_checkpoint(str(tmp_path)))
    assert int(reader.get_tensor("global_step")) >= 80


def test_a_monitored_chief_goes_on_after_a_kill(actors: RayCluster, tmp_path: Path) -> None:
    """kill -9 of the parameter server: Ray starts it anew, the checkpoint is restored, the losses are the same."""
    undisturbed = chief_alone(gm, actors, tmp_path / "undisturbed")
    graph, net = programs.replicated(
        gm, actors, 0, unique("killed"), lambda: programs.digits_cnn(gm, programs.gradient_descent)
    )
    losses: dict[int, float] = {}
    killed = False
    with graph.as_default():
        hooks = [gm.train.StopAtStepHook(last_step=len(undisturbed))]
        with gm.train.MonitoredTrainingSession(
            "ray", checkpoint_dir=str(tmp_path / "killed"), hooks=hooks, save_checkpoint_steps=5
        ) as session:
            while not session.should_stop():
                at = int(session.run_step_fn(run_plainly(net["step"])))
                x, y = programs.batch(at)
                losses[at] = float(session.run([net["loss"], net["train"]], {net["x"]: x, net["y"]: y})[0])
                if at == 8 and not killed:
                    killed = True
                    actors.kill("ps")
    # other threads may add up in another order
    np.testing.assert_allclose([losses[n] for n in range(len(undisturbed))], undisturbed, rtol=1e-5)


def test_a_program_of_clusters_runs_as_it_is(ray_here: Any, actors: RayCluster, tmp_path: Path) -> None:
    """One of samples/distributed, in a process that joins this one's Ray: the master and all tasks are there."""
    master = f"--master=ray://{ray_here.get_runtime_context().gcs_address}"
    learns(output(started("in_graph.py", tmp_path, master)))
