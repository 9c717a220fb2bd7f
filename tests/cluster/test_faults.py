"""kill -9 of a task at a random moment: training goes on from the checkpoint and ends as if nothing had happened."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("grpc")

from tests import patience
from tests.cluster.mixed_clusters import MixedCluster, start
from toolkit import tensorflow as tf

v1: Any = tf.compat.v1
STEPS, EVERY = 40, 5
VICTIMS = ("ps", "worker", "chief")


@pytest.fixture(scope="module")
def cluster() -> Iterator[MixedCluster]:
    """The chief has the master; all of them are ours."""
    with start({"ps": 1, "worker": 1, "chief": 1}) as made:
        yield made


def _train(target: str, folder: Path, at_step: int, strike: Any) -> tuple[int, float]:
    """Adds 1 to a variable at the parameter server in every step, by way of the worker; the last step and value."""
    with v1.Graph().as_default():
        with v1.device("/job:ps/task:0"):
            step = v1.train.get_or_create_global_step()
            w = v1.get_variable("w", [], initializer=v1.zeros_initializer(), use_resource=False)
        with v1.device("/job:worker/task:0"):
            one = v1.identity(v1.constant(2.0)) - 1.0
        with v1.control_dependencies([w.assign_add(one)]):
            train = v1.assign_add(step, 1)
        struck = False
        seen: tuple[int, float] = (0, 0.0)
        with v1.train.MonitoredTrainingSession(
            target, is_chief=True, checkpoint_dir=str(folder), hooks=[v1.train.StopAtStepHook(last_step=STEPS)],
            save_checkpoint_steps=EVERY, save_summaries_steps=None, save_summaries_secs=None,
            log_step_count_steps=None,
        ) as session:  # fmt: skip
            while not session.should_stop():
                number = session.run(train)
                if number >= at_step and not struck:
                    struck = True
                    strike()
                if not session.should_stop():
                    seen = tuple(session.run([step, w]))
        return seen


def _one_run(cluster: MixedCluster, folder: Path, victim: str, chance: random.Random) -> None:
    ended: list[Any] = []

    def strike() -> None:
        """Some time from now on, for the steps go on meanwhile."""
        threading.Timer(chance.random() * 0.05, cluster.restart, [victim]).start()

    at_step = chance.randrange(1, STEPS - 10)

    def run() -> None:
        try:
            ended.append(_train(cluster.target("chief"), folder, at_step, strike))
        except Exception as error:
            ended.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(patience.HUNG)
    assert ended, f"training hangs after {victim} was killed at step {at_step}"
    for other in threading.enumerate():  # the victim is there again before the next run
        if isinstance(other, threading.Timer):
            other.join(patience.HUNG)
    assert not isinstance(ended[0], Exception), ended[0]
    step, value = ended[0]
    assert value == step, "a step was counted and lost, or counted twice"
    assert v1.train.latest_checkpoint(str(folder)).endswith(f"-{STEPS}")


@pytest.mark.parametrize("victim", VICTIMS)
def test_training_goes_on_after_a_kill(cluster: MixedCluster, victim: str, tmp_path: Path) -> None:
    _one_run(cluster, tmp_path, victim, random.Random(VICTIMS.index(victim)))


@pytest.mark.long
def test_a_hundred_kills(cluster: MixedCluster, tmp_path: Path) -> None:
    chance = random.Random(18)
    for number in range(100):
        _one_run(cluster, tmp_path / str(number), chance.choice(VICTIMS), chance)
