"""Tensors between tasks, beside TensorFlow's servers: one master of TensorFlow's, tasks of both kinds below it.

What is measured is the same step each time, whose tensor goes from one task to another and whose result is one
number; only the tasks are others. All are processes of their own on loopback.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

from tests.bench.measure import Row, alternate, compare

#: elements of float32: 64 MB, and what an update of a small layer has
SIZES = {"64 MB": 1 << 24, "4 kB": 1 << 10}
#: how many steps are one figure
_STEPS = {"64 MB": 3, "4 kB": 50}
_THEIRS, _OURS = ("/job:theirs/task:0", "/job:theirs/task:1"), ("/job:ours/task:0", "/job:ours/task:1")
#: the aims: of the large tensor at least TensorFlow's throughput
_TARGET = {"64 MB": 1.0, "4 kB": None}


def run(rounds: int = 7) -> Iterator[Row]:
    """The rows of this suite."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow.compat.v1 as tf

    from tests.cluster.tensorflow_servers import Cluster, ServerProcess, free_ports

    ports = free_ports(5)
    jobs = {
        "master": [f"localhost:{ports[0]}"],
        "theirs": [f"localhost:{port}" for port in ports[1:3]],
        "ours": [f"localhost:{port}" for port in ports[3:]],
    }
    with ExitStack() as until_the_end:
        for number in (0, 1):
            settings = json.dumps({"jobs": jobs, "job": "ours", "task": number})
            process = ServerProcess([sys.executable, "-m", "tests.cluster.worker_process", settings], f"ours/{number}")
            until_the_end.callback(process.kill)
            assert process.wait_until_ready(), process.errors
        cluster = Cluster(jobs, [("master", 0), ("theirs", 0), ("theirs", 1)], {})
        until_the_end.callback(cluster.stop)
        failure = cluster.failed()
        assert failure is None, failure
        graph = tf.Graph()
        with graph.as_default():
            steps = {size: _steps(tf, size, count) for size, count in SIZES.items()}
            begin = tf.global_variables_initializer()
        session = until_the_end.enter_context(tf.Session(cluster.target("master"), graph=graph))
        session.run(begin)
        yield from _rows(session, steps, rounds)


def _steps(tf: Any, size: str, count: int) -> dict[tuple[str, str], Any]:
    """From each kind of task to each kind, one number of a variable that crosses as a whole."""
    found: dict[tuple[str, str], Any] = {}
    for name, place in (("theirs", _THEIRS[0]), ("ours", _OURS[0])):
        with tf.device(place):
            held = tf.get_variable(
                f"{name}_{size.replace(' ', '_')}", [count], use_resource=False, initializer=tf.zeros_initializer()
            )
        for receiver, there in (("theirs", _THEIRS[1]), ("ours", _OURS[1])):
            with tf.device(there):
                found[name, receiver] = tf.strided_slice(held, [7], [8])
    return found


def _rows(session: Any, steps: dict[str, dict[tuple[str, str], Any]], rounds: int) -> Iterator[Row]:
    for size, pairs in steps.items():
        calls = {pair: session.make_callable(fetch) for pair, fetch in pairs.items()}
        for call in calls.values():
            call()
        count = _STEPS[size]

        def seconds(call: Callable[[], Any], count: int = count) -> float:
            start = time.perf_counter()
            for _ in range(count):
                call()
            return 1e3 * (time.perf_counter() - start) / count

        for sender, receiver in (("ours", "ours"), ("ours", "theirs"), ("theirs", "ours")):
            figures = alternate(
                lambda call=calls[sender, receiver]: seconds(call),
                lambda call=calls["theirs", "theirs"]: seconds(call),
                rounds,
            )
            target = _TARGET[size] if sender == receiver else None
            yield compare(f"{size}, {sender} to {receiver}", "theirs to theirs", "ms", figures, target)
