"""A program of one parameter server and one worker, as published ones are, run by TensorFlow and by ours.

Each task is the same script, with `tf.train.Server` and, at the worker, a session at that server: the way of most
programs, in which a step's client and master are one process. The suite's other rows have a client of TensorFlow's in a
process of its own (`cluster_steps`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack

from tests.bench.cluster_steps import STEPS, TARGET
from tests.bench.measure import Row, alternate, compare
from tests.cluster.tensorflow_servers import ServerProcess, free_ports

_IMPORTS = {
    "ours": "from toolkit.tensorflow import importer; importer.install(); import tensorflow.compat.v1 as tf",
    "TensorFlow's": "import tensorflow.compat.v1 as tf",
}
_PROGRAM = """
import sys, time
{imports}
ps, worker, job = sys.argv[1:]
cluster = tf.train.ClusterSpec({{"ps": ["localhost:" + ps], "worker": ["localhost:" + worker]}})
server = tf.train.Server(cluster, job_name=job, task_index=0)
if job == "ps":
    print("ready", flush=True)
    sys.stdin.read()
    sys.exit()
tf.disable_eager_execution()
with tf.device(tf.train.replica_device_setter(cluster=cluster, worker_device="/job:worker/task:0")):
    w = tf.get_variable("w", [4, 4], use_resource=False, initializer=tf.ones_initializer())
    loss = tf.reduce_sum(tf.matmul(tf.ones([1, 4]), w))
    train = tf.train.GradientDescentOptimizer(0.0).minimize(loss)
with tf.Session(server.target) as session:
    session.run(tf.global_variables_initializer())
    session.run(train)
    print("ready", flush=True)
    for count in sys.stdin:
        start = time.perf_counter()
        for _ in range(int(count)):
            session.run(train)
        print((time.perf_counter() - start) / int(count), flush=True)
"""


def run(rounds: int = 7) -> Iterator[Row]:
    """The row of this suite."""
    with ExitStack() as until_the_end:
        ours, theirs = (_program(side, until_the_end) for side in _IMPORTS)
        figures = alternate(ours, theirs, rounds)
        yield compare("1 ps and 1 worker, a program each", "TensorFlow", "ms", figures, TARGET)


def _program(side: str, until_the_end: ExitStack) -> Callable[[], float]:
    """Start both tasks; what is returned runs steps and says how many milliseconds one took."""
    ports = [str(port) for port in free_ports(2)]
    script = _PROGRAM.format(imports=_IMPORTS[side])
    for job in ("ps", "worker"):
        task = ServerProcess([sys.executable, "-c", script, *ports, job], f"{side} {job}")
        until_the_end.callback(task.kill)
        assert task.wait_until_ready(), task.errors
    return lambda: 1e3 * float(task.ask(str(STEPS)))
