"""Making graphs by TensorFlow's names: 100,000 nodes beside tf.compat.v1, and the import itself.

Both build the same graph in a process of its own, which tells how long that took; they have to agree on how many nodes
it has.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Iterator

from tests.bench.measure import NotRun, Row, alternate, compare
from tests.bench.settings import Settings
from tests.bench.turns import environment

NODES = 100_000
#: what share of TensorFlow's time building may take, and how long the import may, in seconds
TARGET, IMPORT_LIMIT = 0.5, 0.15

_IMPORTS = {
    "ours": "from toolkit.tensorflow import importer; importer.install(); import tensorflow as tf",
    "tensorflow": "import tensorflow.compat.v1 as tf",
}
#: layers as programs write them: matrix products, activations, reshapes, constants, a variable and a conditional each
_BUILD = """
import time
start = time.perf_counter()
{imports}
imported = time.perf_counter()
with tf.Graph().as_default() as graph:
    x = tf.placeholder(tf.float32, [None, 16])
    layer = 0
    while layer % 50 or len(graph.get_operations()) < {nodes}:
        with tf.name_scope("layer"):
            weights = tf.constant(0.5, shape=[16, 16])
            y = tf.nn.relu(tf.matmul(x, weights) + 1.0)
            z = tf.reshape(tf.concat([y, x], 1), [-1, 2, 16])
            x = tf.reduce_mean(z, 1) * tf.sigmoid(x)
        layer += 1
    count = len(graph.get_operations())
print(imported - start, time.perf_counter() - imported, count)
"""


def measured(side: str, nodes: int = NODES, threads: int = 1) -> tuple[float, float, int]:
    """Seconds of importing and of building, and how many nodes there are.

    Raises:
        RuntimeError: the process failed; the end of its standard error is in the message.
    """
    script = _BUILD.format(imports=_IMPORTS[side], nodes=nodes)
    env = environment(threads)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=env)
    if done.returncode:
        raise RuntimeError(f"building a graph with {side} failed: {done.stderr[-500:]}")
    imported, built, count = done.stdout.split()
    return float(imported), float(built), int(count)


def run(settings: Settings) -> Iterator[Row | NotRun]:
    """Rows of building and of importing."""
    title = f"build a graph of {NODES:,} nodes"
    if not settings.wants(title):
        return
    imports: list[float] = []
    counts: set[int] = set()

    def side(name: str) -> float:
        imported, built, count = measured(name, threads=settings.threads)
        counts.add(count)
        if name == "ours":
            imports.append(imported)
        return built

    if "tensorflow" in settings.peers:
        figures = alternate(lambda: side("ours"), lambda: side("tensorflow"), settings.rounds)
        row = compare(title, "tf.compat.v1", "s", figures, TARGET)
        row.wrong = f"graphs of {sorted(counts)} nodes" if len(counts) > 1 else ""
        yield row
    else:
        yield NotRun(title, "tensorflow", "not asked for")
        side("ours")
    median = statistics.median(imports)
    yield Row("import tensorflow, ours", "limit", "s", median, IMPORT_LIMIT, median / IMPORT_LIMIT, 1.0)
