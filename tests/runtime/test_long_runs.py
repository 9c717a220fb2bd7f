"""Resident memory stays flat, however long a run: many steps, an input without end. The long ones with -m long.

Each runs in a process of its own, in which nothing else takes or gives back memory.
"""

from __future__ import annotations

import gc
import itertools
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.patience import HUNG
from tests.runtime.oracle import our_graph
from toolkit.formats.models.model import read_model
from toolkit.graph.graph import Graph
from toolkit.runtime.session import Session
from toolkit.runtime.training.coordinator import Coordinator
from toolkit.runtime.training.queue_runner import start_queue_runners

pytestmark = pytest.mark.tensorflow
ROOT = Path(__file__).resolve().parents[2]
#: what allocators and caches may still take after the first tenth; a leak of 8 bytes a step in a million is 8 MB
ALLOWED_KB = 6_000


def resident_kb() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


def assert_flat(step: Callable[[], Any], steps: int) -> list[int]:
    """Run it often; the memory after each tenth from the first on.

    A leak grows all the time: where a large process takes some megabytes at once, most tenths take nothing.
    """
    seen: list[int] = []
    for _ in range(10):
        for _ in range(steps // 10):
            step()
        seen.append(resident_kb())
    growth = sorted(after - before for before, after in itertools.pairwise(seen))
    assert seen[-1] - seen[0] < ALLOWED_KB or growth[len(growth) // 2] * len(growth) < ALLOWED_KB // 10, seen
    return seen


def small_graph(tf: ModuleType) -> Graph:
    """A step of training in small: a variable, an update, a counter, a branch and a loop."""
    v1 = tf.compat.v1
    v1.disable_control_flow_v2()
    try:
        with tf.Graph().as_default() as graph:
            x = v1.placeholder("float32", [4], name="x")
            w = v1.get_variable("w", initializer=np.ones(4, np.float32), use_resource=True)
            n = v1.get_variable("n", initializer=np.int64(0), dtype="int64", use_resource=False)
            loss = v1.reduce_sum(v1.square(w - x), name="loss")
            v1.group(w.assign_sub(0.01 * (w - x)), v1.assign_add(n, 1), name="train")
            y = v1.cond(loss > 1.0, lambda: loss * 0.5, lambda: loss + 1.0)
            v1.identity(v1.while_loop(lambda i, s: i < 2, lambda i, s: (i + 1, s * 0.5), [0, y])[1], name="flow")
            v1.global_variables_initializer()
    finally:
        v1.enable_control_flow_v2()
    return our_graph(graph)


def run_steps(tf: ModuleType, tmp_path: Path, fetches: list[str], steps: int) -> None:
    path = tmp_path / "small.pb"
    path.write_bytes(small_graph(tf).to_proto().SerializeToString())
    alone("steps", str(path), ",".join(fetches), str(steps))


def alone(*arguments: str) -> None:
    """Run this module's `_steps` or `_pipeline` in a process of its own."""
    command = [sys.executable, "-m", "tests.runtime.test_long_runs", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    print(done.stdout)
    assert done.returncode == 0, done.stderr


def _steps(path: str, names: str, count_of_steps: str) -> None:
    steps, fetches = int(count_of_steps), names.split(",")
    session = Session(read_model(path))
    session.run("init")
    x = np.arange(4, dtype=np.float32)
    count = session.make_callable(fetches, ["x:0"])
    seen = assert_flat(lambda: count(x), steps)
    assert session.run("n:0") == steps // 10 * 10
    print(f"{steps} steps: {seen[0]} kB after the first tenth, {seen[-1]} kB at the end")


def test_thousands_of_steps(tf: ModuleType, tmp_path: Path) -> None:
    run_steps(tf, tmp_path, ["train", "loss:0"], 5_000)
    run_steps(tf, tmp_path, ["train", "flow:0"], 2_000)


@pytest.mark.long
def test_a_million_steps(tf: ModuleType, tmp_path: Path) -> None:
    run_steps(tf, tmp_path, ["train", "loss:0"], 1_000_000)


@pytest.mark.long
def test_a_hundred_thousand_steps_of_the_dataflow_executor(tf: ModuleType, tmp_path: Path) -> None:
    run_steps(tf, tmp_path, ["train", "flow:0"], 100_000)


def pipeline(tf: ModuleType, path: str) -> None:
    """Random examples without end, two enqueuing threads, shuffled, taken out in batches."""
    v1 = tf.compat.v1
    with tf.Graph().as_default():
        example = v1.random_uniform([64, 64])
        shuffled = v1.RandomShuffleQueue(32, 8, ["float32"], [[64, 64]], name="shuffled")
        enqueue = shuffled.enqueue([example])
        v1.train.add_queue_runner(v1.train.QueueRunner(shuffled, [enqueue, enqueue]))
        v1.reduce_mean(shuffled.dequeue_many(4), name="mean")
        v1.identity(shuffled.size(), name="size")
        v1.train.export_meta_graph(path)


def run_pipeline(tf: ModuleType, tmp_path: Path, steps: int) -> None:
    path = str(tmp_path / "p.meta")
    pipeline(tf, path)
    alone("pipeline", path, str(steps))


def _pipeline(path: str, count_of_steps: str) -> None:
    steps = int(count_of_steps)
    model = read_model(path)
    session = Session(model)
    coordinator = Coordinator()
    threads = start_queue_runners(session, model.meta, coordinator)
    take = session.make_callable("mean:0")
    seen = assert_flat(take, steps)
    assert session.run("size:0") <= 32  # backpressure: the producers wait
    coordinator.request_stop()
    coordinator.join(threads, grace_seconds=HUNG)
    assert not any(thread.is_alive() for thread in threads)
    print(f"{steps} batches of an endless input: {seen[0]} kB after the first tenth, {seen[-1]} kB at the end")


def test_hundreds_of_batches_of_an_endless_input(tf: ModuleType, tmp_path: Path) -> None:
    run_pipeline(tf, tmp_path, 500)


@pytest.mark.long
def test_an_endless_input(tf: ModuleType, tmp_path: Path) -> None:
    run_pipeline(tf, tmp_path, 50_000)


if __name__ == "__main__":
    {"steps": _steps, "pipeline": _pipeline}[sys.argv[1]](*sys.argv[2:])
