"""Steps over tasks, beside TensorFlow's servers: one client of TensorFlow's, a cluster of each kind.

A step of one parameter server and one worker is tiny, so that what is measured is the way of a step through client,
master and workers. The same master's steps over 1 to 8 workers tell what one worker more costs.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

from tests.bench.measure import Row, alternate, compare

#: how many steps are one figure
STEPS = 30
_WORKERS = (1, 2, 4, 8)
#: the aim: at most as long as TensorFlow's
TARGET = 1.0


def run(rounds: int = 7) -> Iterator[Row]:
    """The rows of this suite."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow.compat.v1 as tf

    from tests.cluster.mixed_clusters import start

    counts = {"ps": 1, "worker": max(_WORKERS)}
    keys = [(job, task) for job, count in counts.items() for task in range(count)]
    with ExitStack() as until_the_end:
        graph = tf.Graph()
        with graph.as_default():
            fetches = {
                "1 ps and 1 worker": _training(tf),
                **{f"{count} workers": _wide(tf, count) for count in _WORKERS},
            }
            begin = tf.global_variables_initializer()
        calls: list[dict[str, Callable[[], Any]]] = []
        for theirs in ((), keys):
            cluster = until_the_end.enter_context(start(counts, theirs))
            session = until_the_end.enter_context(tf.Session(cluster.target(), graph=graph))
            session.run(begin)
            calls.append({name: session.make_callable(fetch) for name, fetch in fetches.items()})
        for name in fetches:
            ours, other = (_figure(each[name]) for each in calls)
            yield compare(name, "TensorFlow's", "ms", alternate(ours, other, rounds), TARGET)


def _figure(call: Callable[[], Any]) -> Callable[[], float]:
    """Milliseconds of a step."""
    call()

    def seconds() -> float:
        start = time.perf_counter()
        for _ in range(STEPS):
            call()
        return 1e3 * (time.perf_counter() - start) / STEPS

    return seconds


def _training(tf: Any) -> Any:
    """A variable at the parameter server, a product at the worker, and the update."""
    with tf.device("/job:ps/task:0"):
        w = tf.get_variable("w", [4, 4], use_resource=False, initializer=tf.ones_initializer())
    with tf.device("/job:worker/task:0"):
        loss = tf.reduce_sum(tf.matmul(tf.ones([1, 4]), w))
    return tf.train.GradientDescentOptimizer(0.0).minimize(loss)


def _wide(tf: Any, count: int) -> Any:
    """A random number at each worker: nothing crosses, and nothing is constant."""
    drawn: list[Any] = []
    for task in range(count):
        with tf.device(f"/job:worker/task:{task}"):
            drawn.append(tf.random_uniform([]).op)
    return drawn
