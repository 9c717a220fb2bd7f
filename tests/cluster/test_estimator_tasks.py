"""Estimators over a cluster that TF_CONFIG tells of: which task a process is, and four processes that train, serve
parameters and evaluate."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import patience
from tests.cluster.tensorflow_servers import free_ports
from toolkit import tensorflow as tf
from toolkit.tensorflow.estimators import cluster_tasks
from toolkit.tensorflow.estimators.cluster_tasks import read_place

ROOT = Path(__file__).resolve().parents[2]
_LAST_STEP = re.compile(r".*ckpt-(\d+)")
CLUSTER = {"chief": ["a:1"], "worker": ["b:1", "c:1"], "ps": ["d:1", "e:1"]}
PROGRAM = """\
import numpy as np
import tensorflow as tf
tf.logging.set_verbosity(tf.logging.INFO)

def model_fn(features, labels, mode):
    guess = tf.layers.dense(features["x"], 1)
    if mode == tf.estimator.ModeKeys.TRAIN:
        devices = {v.device for v in tf.trainable_variables()}
        assert devices == {"/job:ps/task:0"}, devices
    loss = tf.losses.mean_squared_error(labels, guess)
    step = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, guess, loss, step)

def input_fn():
    x = np.linspace(-1, 1, 32, dtype=np.float32)[:, None]
    return tf.data.Dataset.from_tensors(({"x": x}, 3 * x)).repeat(40)

config = tf.estimator.RunConfig("model", save_checkpoints_steps=10, experimental_max_worker_delay_secs=0)
print("task", config.task_type, config.is_chief, config.num_ps_replicas, config.num_worker_replicas)
result = tf.estimator.train_and_evaluate(
    tf.estimator.Estimator(model_fn, config=config),
    tf.estimator.TrainSpec(input_fn, max_steps=30),
    tf.estimator.EvalSpec(input_fn, steps=1, start_delay_secs=0, throttle_secs=0),
)
print("result", result)
"""


def _place(kind: Any, index: Any = 0, cluster: Any = CLUSTER, **more: Any) -> cluster_tasks.Place:
    return read_place({"cluster": cluster, "task": {"type": kind, "index": index}, **more})


def test_which_task_this_is() -> None:
    chief, worker, server = _place("chief"), _place("worker", 1), _place("ps", 1)
    assert (chief.is_chief, chief.master, chief.number, chief.servers, chief.trainers) == (True, "grpc://a:1", 0, 2, 3)
    assert (worker.is_chief, worker.master, worker.number) == (False, "grpc://c:1", 2)
    assert (server.is_chief, server.master, server.number) == (False, "grpc://e:1", 4)
    evaluator = _place("evaluator", eval_session_master="grpc://x:1")
    assert (evaluator.cluster, evaluator.servers, evaluator.trainers) == ({}, 0, 0)
    assert (evaluator.master, evaluator.evaluation_master, evaluator.number) == ("", "grpc://x:1", None)
    assert _place("worker", cluster={"master": ["m:1"], "worker": ["w:1"]}).number == 1
    assert _place("chief", cluster={"chief": ["a:1"]}).master == ""
    assert _place("chief", session_master="grpc://y:1").master == "grpc://y:1"
    alone = read_place({})
    assert alone.is_chief and not alone.cluster and alone.trainers == 1


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"cluster": CLUSTER}, 'no "type"'),
        ({"cluster": CLUSTER, "task": {"type": "worker"}}, 'no "index"'),
        ({"cluster": CLUSTER, "task": {"type": "worker", "index": 2}}, "'worker' has no task 2; it has 2 tasks"),
        ({"cluster": CLUSTER, "task": {"type": "wroker", "index": 0}}, 'no "wroker"'),
        ({"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 0}}, "one task of the job 'chief'"),
        ({"cluster": {"chief": ["a:1", "b:1"]}, "task": {"type": "chief", "index": 0}}, "one task of the job 'chief'"),
        ({"cluster": {"chief": ["a:1"], "master": ["b:1"]}, "task": {"type": "chief", "index": 0}}, "one of them"),
        ({"cluster": {"chief": "a:1"}, "task": {"type": "chief", "index": 0}}, "list or dict of addresses"),
        ({"task": {"type": "ps", "index": 0}}, 'no "cluster"'),
        ({"task": {"type": "worker", "index": 3}}, 'no "cluster"'),
    ],
)
def test_what_says_no_task(config: dict[str, Any], expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        read_place(config)


def test_what_sessions_see(monkeypatch: pytest.MonkeyPatch) -> None:
    def config(kind: str, **settings: Any) -> Any:
        monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": CLUSTER, "task": {"type": kind, "index": 0}}))
        return tf.estimator.RunConfig("model", **settings)

    filters = cluster_tasks.session_config(config("worker")).device_filters
    assert list(filters) == ["/job:ps", "/job:worker/task:0"]
    assert list(cluster_tasks.session_config(config("chief")).device_filters) == ["/job:ps", "/job:chief"]
    own = tf.ConfigProto(log_device_placement=True)
    assert cluster_tasks.session_config(config("chief", session_config=own)) is own
    assert cluster_tasks.session_config(config("evaluator")) is None
    assert cluster_tasks.device_function(config("evaluator")) is None
    assert cluster_tasks.delay(config("worker")) == 5
    assert cluster_tasks.delay(config("worker", experimental_max_worker_delay_secs=2)) == 2
    assert cluster_tasks.delay(config("chief")) == 0


def test_four_processes(tmp_path: Path) -> None:
    ports = iter(free_ports(3))
    cluster = {job: [f"localhost:{next(ports)}"] for job in ("chief", "worker", "ps")}
    (tmp_path / "program.py").write_text(PROGRAM)

    def started(kind: str) -> subprocess.Popen[str]:
        place = json.dumps({"cluster": cluster, "task": {"type": kind, "index": 0}})
        return subprocess.Popen(
            [sys.executable, "-m", "commands.main", "python", "program.py"], cwd=tmp_path, text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT), "TF_CONFIG": place},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    tasks = {kind: started(kind) for kind in ("ps", "worker", "evaluator", "chief")}
    texts: dict[str, str] = {}
    try:
        for kind in ("chief", "worker", "evaluator"):
            texts[kind] = tasks[kind].communicate(timeout=patience.HUNG)[0]
            assert tasks[kind].returncode == 0, texts[kind]
        assert tasks["ps"].poll() is None  # as a parameter server of TensorFlow's: until it is ended
    finally:
        for task in tasks.values():
            task.kill()
            task.communicate()
    assert "task chief True 1 2" in texts["chief"] and "result None" in texts["chief"]
    assert "task worker False 1 2" in texts["worker"]
    # Chief and worker count one step together. Whoever read 28 or less before the other's last step and its own goes on
    # after the 30th; where both did, each takes a step more, so that the last one is 30, 31 or 32. The evaluator may be
    # late, too, and see the last checkpoint only.
    last = _LAST_STEP.fullmatch(tf.train.latest_checkpoint(str(tmp_path / "model")))
    assert last is not None and int(last[1]) in (30, 31, 32), texts
    assert f"global step {last[1]}: " in texts["evaluator"], texts
