"""kill -9 of actors' processes at random moments: training and batches end as if nothing had happened."""

from __future__ import annotations

import json
import os
import random
import signal
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ray")

from commands.main import run as graphmill
from schemas import config_pb2
from tests import patience
from tests.cluster import training_programs as programs
from tests.cluster.ray.conftest import RayCluster
from tests.cluster.test_training_at_servers import run_plainly, shorter_waits
from toolkit import errors
from toolkit import tensorflow as gm
from toolkit.cluster.master.health import Heartbeats
from toolkit.cluster.ray.actor import ActorSettings
from toolkit.cluster.ray.engine import RayEngine
from toolkit.cluster.ray.inference import pool as pools
from toolkit.cluster.ray.session import RaySession
from toolkit.formats.settings.cluster import Cluster, Task
from toolkit.graph.device import DeviceSpec
from toolkit.graph.tensorref import parse_tensor
from toolkit.policy.rules import Policy
from toolkit.runtime.sessions.targets import StepOptions

STEPS, EVERY = 16, 4
VICTIMS = (("ps", 0), ("worker", 0), ("worker", 1))
ASYNC_STEPS = 80


class Strike:
    """kill -9 of a task's process, a random time after the chief has come to a random step; once."""

    def __init__(self, actors: RayCluster, chance: random.Random, steps: int):
        victim = chance.choice(VICTIMS)
        self._process = actors.process(*victim)
        self._at = chance.randrange(1, steps)
        self._later = chance.random() * 0.03
        self.timer: threading.Timer | None = None
        self.told = f"{victim} was killed {self._later:.3f} s after step {self._at}"

    def __call__(self, step: int) -> None:
        if self.timer is None and step >= self._at:
            self.timer = threading.Timer(self._later, os.kill, [self._process, signal.SIGKILL])
            self.timer.start()

    def over(self) -> None:
        """It has struck."""
        assert self.timer is not None, self.told
        self.timer.join()


def towers(tf: Any, places: tuple[str, str], variables: str) -> dict[str, Any]:
    """Synchronous training of the digits CNN, in the default graph: each of two places has half of the batch."""
    nets: list[dict[str, Any]] = []
    optimizer = tf.train.GradientDescentOptimizer(0.3)

    def gradients(tf: Any, loss: Any, step: Any) -> Any:
        return optimizer.compute_gradients(loss)

    for number, place in enumerate(places):
        setter = tf.train.replica_device_setter(ps_tasks=1, ps_device=variables, worker_device=place)
        with tf.variable_scope("", reuse=bool(number)), tf.device(setter), tf.name_scope(f"tower{number}"):
            nets.append(programs.digits_cnn(tf, gradients))
    with tf.device(variables):
        pairs = zip(nets[0]["train"], nets[1]["train"], strict=True)
        averaged = [((one + other) / 2.0, variable) for (one, variable), (other, _) in pairs]
        train = optimizer.apply_gradients(averaged, global_step=nets[0]["step"])
        loss = (nets[0]["loss"] + nets[1]["loss"]) / 2.0
    feeds = [nets[0]["x"], nets[0]["y"], nets[1]["x"], nets[1]["y"]]
    return {"feeds": feeds, "loss": loss, "train": train, "step": nets[0]["step"]}


def fed(net: dict[str, Any], step: int) -> dict[Any, Any]:
    return dict(zip(net["feeds"], [*programs.batch(2 * step), *programs.batch(2 * step + 1)], strict=True))


@pytest.fixture(scope="module")
def expected() -> list[float]:
    """The losses of one process that nobody disturbs."""
    with gm.Graph().as_default() as graph:
        graph.seed = 1
        net = towers(gm, ("", ""), "")
        with gm.Session() as session:
            session.run(gm.global_variables_initializer())
            return [float(session.run([net["loss"], net["train"]], fed(net, at))[0]) for at in range(STEPS)]


class FeedsBySteps(gm.train.SessionRunHook):
    """Feeds each step its batch: a step that is run again after a kill is another one, at the checkpoint."""

    def __init__(self, net: dict[str, Any], strike: Strike):
        self._net = net
        self._strike = strike
        self._step = 0
        self.losses: dict[int, float] = {}

    def before_run(self, run_context: Any) -> Any:
        self._step = int(run_context.session.run(self._net["step"]))
        self._strike(self._step)
        return gm.train.SessionRunArgs(self._net["loss"], feed_dict=fed(self._net, self._step))

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self.losses[self._step] = float(run_values.results)


def train_in_step(folder: Path, strike: Strike) -> list[float]:
    """The losses by step; after a kill it goes on from the checkpoint."""
    with gm.Graph().as_default() as graph:
        graph.seed = 1
        net = towers(gm, ("/job:worker/task:0", "/job:worker/task:1"), "/job:ps/task:0")
        feeds = FeedsBySteps(net, strike)
        with gm.train.MonitoredTrainingSession(
            "ray", checkpoint_dir=str(folder), hooks=[gm.train.StopAtStepHook(last_step=STEPS), feeds],
            save_checkpoint_steps=EVERY, save_summaries_steps=None, save_summaries_secs=None,
            log_step_count_steps=None,
        ) as session:  # fmt: skip
            while not session.should_stop():
                session.run(net["train"])
    return [feeds.losses[number] for number in range(STEPS)]


def a_synchronous_run(actors: RayCluster, folder: Path, chance: random.Random, expected: list[float]) -> None:
    gm.Session.reset("ray")
    strike = Strike(actors, chance, STEPS - 3)
    (losses,) = programs.together(lambda: train_in_step(folder, strike))
    strike.over()
    # the same sums in another order, of losses around 1, as in tests/cluster/test_training_at_servers.py
    np.testing.assert_allclose(losses, expected, rtol=1e-5, err_msg=strike.told)
    assert gm.train.latest_checkpoint(str(folder)).endswith(f"-{STEPS}"), strike.told


def train_at_will(task: int, container: str, folder: Path, strike: Strike | None) -> float:
    """One of two asynchronous workers; the best accuracy on images that it has not seen."""
    graph, net = programs.replicated(
        gm, RayCluster(), task, container, lambda: programs.digits_cnn(gm, programs.gradient_descent)
    )
    data, best, number = programs.digits(), 0.0, task
    with graph.as_default(), gm.train.MonitoredTrainingSession(
        "ray", is_chief=task == 0, hooks=[gm.train.StopAtStepHook(last_step=ASYNC_STEPS)],
        config=gm.ConfigProto(device_filters=["/job:ps", f"/job:worker/task:{task}"]),
        checkpoint_dir=str(folder) if task == 0 else None, save_checkpoint_steps=10, save_summaries_steps=None,
        save_summaries_secs=None, log_step_count_steps=None, max_wait_secs=patience.HUNG,
    ) as session:  # fmt: skip
        while not session.should_stop():
            x, y = programs.batch(number)
            session.run(net["train"], {net["x"]: x, net["y"]: y})
            number += 2
            feeds = {net["x"]: data["x_test"], net["y"]: data["y_test"]}
            accuracy, step = session.run_step_fn(run_plainly([net["accuracy"], net["step"]], feeds))
            best = max(best, float(accuracy))
            if strike is not None:
                strike(int(step))
    return best


def an_asynchronous_run(actors: RayCluster, folder: Path, chance: random.Random, container: str) -> None:
    gm.Session.reset("ray")
    strike = Strike(actors, chance, ASYNC_STEPS // 2)
    accuracies = programs.together(
        lambda: train_at_will(0, container, folder, strike), lambda: train_at_will(1, container, folder, None)
    )
    strike.over()
    assert max(accuracies) > 0.8, strike.told  # what it reaches undisturbed


@pytest.mark.parametrize("seed", range(2))
def test_synchronous_training_goes_on_after_a_kill(
    actors: RayCluster, tmp_path: Path, expected: list[float], seed: int
) -> None:
    a_synchronous_run(actors, tmp_path, random.Random(seed), expected)


def test_asynchronous_training_goes_on_after_a_kill(
    actors: RayCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shorter_waits(monkeypatch)
    an_asynchronous_run(actors, tmp_path, random.Random(5), "struck")


def test_a_process_that_stands_still_is_found_and_started_anew(ray_here: Any) -> None:
    """SIGSTOP is what a cut network looks like: nothing ends, and nobody answers."""
    cluster = Cluster((Task("worker", 0, "", {"CPU": 1}),), DeviceSpec("worker", 0, 0))
    heartbeats = Heartbeats(interval=patience.HUNG, timeout=1.0)  # those that the test makes
    engine = RayEngine("", cluster, ActorSettings(Policy.everything()), patience.HUNG, 1.0, heartbeats)
    task = "/job:worker/replica:0/task:0"
    with gm.Graph().as_default() as graph:
        two = gm.constant(1.0) + 1.0
    config = config_pb2.ConfigProto(allow_soft_placement=True)
    try:
        first = RaySession(engine, graph.core, config)
        step = first.prepare([], [graph.core.output(parse_tensor(two.name))], [])
        assert first.run(step, [], StepOptions()) == [2.0]
        process = engine.found()[task][0]
        os.kill(process, signal.SIGSTOP)
        raised: list[BaseException] = []

        def run() -> None:
            try:
                first.run(step, [], StepOptions())
            except BaseException as error:
                raised.append(error)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()

        def is_found() -> bool:
            heartbeats.beat()
            return bool(raised)

        patience.until(is_found, "the heartbeats find it")
        thread.join()
        assert isinstance(raised[0], errors.UnavailableError)
        assert f"{task} is lost: it does not answer" in str(raised[0])
        first.close()
        second = RaySession(engine, graph.core, config)
        assert second.run(step, [], StepOptions()) == [2.0]
        assert engine.found()[task][0] != process
        second.close()
    finally:
        engine.close()


def infer(model: str, folder: Path, out: Path, cluster: Path) -> int:
    feed = ["--feed", f"x={folder}/*.npy", "--fetch", "y", "--batch", "8"]
    return graphmill(["run", model, "--engine", "ray", "--cluster", str(cluster), *feed, "--out", str(out)])


@pytest.fixture(scope="module")
def batches(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path, Path]:
    """A model, a folder of shards, and a cluster of two."""
    folder = tmp_path_factory.mktemp("batches")
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [None, 64], name="x")
        gm.identity(gm.matmul(x, gm.ones([64, 64])) + 1.0, name="y")
        (folder / "model.pb").write_bytes(graph.as_graph_def().SerializeToString())
    (folder / "two.yaml").write_text("jobs: {worker: [{}, {}]}")
    (folder / "shards").mkdir()
    for number in range(60):
        np.save(folder / "shards" / f"{number:02}.npy", np.full((64, 64), number, np.float32))
    return str(folder / "model.pb"), folder / "shards", folder / "two.yaml"


def some_batches(
    batches: tuple[str, Path, Path], out: Path, chance: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One run in which a random process is killed a random time after it was given its first shard."""
    model, shards, cluster = batches
    timers: list[threading.Timer] = []
    original = pools.ShardPool._answered

    def answered(self: Any, actor: Any, now: float) -> None:
        original(self, actor, now)
        if actor.ping is None and not timers:
            process = pools.ray().get(actor.handle.ping.options(concurrency_group="control").remote())
            timers.append(threading.Timer(chance.random() * 0.3, os.kill, [process, signal.SIGKILL]))
            timers[0].start()

    monkeypatch.setattr(pools.ShardPool, "_answered", answered)
    (code,) = programs.together(lambda: infer(model, shards, out, cluster))
    monkeypatch.undo()
    timers[0].cancel()
    timers[0].join()
    assert code == 0
    rows = json.loads((out / "manifest.json").read_text())["shards"]
    assert [each["name"] for each in rows] == [f"{number:02}" for number in range(60)]
    for number, each in enumerate(rows):
        with np.load(out / each["output"]) as found:
            np.testing.assert_array_equal(found["y"], np.full((64, 64), number * 64 + 1, np.float32))
    assert len(list(out.iterdir())) == 61


def test_batches_go_on_after_a_kill(
    ray_here: Any, batches: tuple[str, Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    some_batches(batches, tmp_path / "out", random.Random(2), monkeypatch)


@pytest.mark.long
def test_a_hundred_kills(
    actors: RayCluster, batches: tuple[str, Path, Path], tmp_path: Path, expected: list[float],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    chance = random.Random(18)
    for number in range(100):
        kind_of_run = number % 3
        if kind_of_run == 0:
            a_synchronous_run(actors, tmp_path / str(number), chance, expected)
        elif kind_of_run == 1:
            with monkeypatch.context() as patch:
                shorter_waits(patch)
                an_asynchronous_run(actors, tmp_path / str(number), chance, f"run{number}")
        else:
            with monkeypatch.context() as patch:
                some_batches(batches, tmp_path / str(number), chance, patch)
