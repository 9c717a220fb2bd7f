"""From the shell to the first result of a frozen ResNet-50: `graphmill run` beside a TensorFlow script."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tests.bench.agreement import disagreement
from tests.bench.measure import Row, alternate, compare, run_process, tool
from tests.bench.settings import Settings
from tests.bench.turns import environment
from tests.bench.workloads import WORKLOADS

TARGET = 0.25
_SCRIPT = """
import sys
import numpy as np
import tensorflow as tf

model, image, fetch, out, threads = sys.argv[1:]
with tf.Graph().as_default() as graph:
    definition = tf.compat.v1.GraphDef.FromString(open(model, "rb").read())
    tf.import_graph_def(definition, name="")
config = tf.compat.v1.ConfigProto(
    intra_op_parallelism_threads=int(threads), inter_op_parallelism_threads=int(threads)
)
with tf.compat.v1.Session(graph=graph, config=config) as session:
    np.save(out, session.run(fetch, {sys.argv[2].partition("=")[0]: np.load(image.partition("=")[2])}))
"""


def run(settings: Settings) -> Iterator[Row]:
    """Wall time and peak memory of the whole process; both see a new image each round."""
    workload = WORKLOADS["ResNet50 batch 1"]
    if "tensorflow" not in settings.peers or not settings.wants(workload.name):
        return
    built = workload.model()
    (feed,), (fetch,) = built.info["inputs"].values(), built.info["outputs"].values()
    env = environment(settings.threads)
    random = np.random.default_rng(0)
    memory: tuple[list[float], list[float]] = ([], [])
    problems: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        image, mine, theirs = (folder / f"{stem}.npy" for stem in ("image", "mine", "theirs"))
        given = f"{feed}={image}"
        ours_command = [
            tool("graphmill"),
            "run",
            str(built.path),
            "--feed",
            given,
            "--fetch",
            fetch,
            "--out",
            str(mine),
        ]
        peer_command = [
            sys.executable,
            "-c",
            _SCRIPT,
            str(built.path),
            given,
            fetch,
            str(theirs),
            str(settings.threads),
        ]

        def ours() -> float:
            np.save(image, workload.feeds(random)["image"])
            cost = run_process(ours_command, env)
            memory[0].append(cost.peak_mb)
            return cost.wall_s

        def peer() -> float:
            cost = run_process(peer_command, env)
            memory[1].append(cost.peak_mb)
            result, reference = ({"0.0": np.load(path)} for path in (mine, theirs))
            problem = disagreement(result, reference, workload.precision, workload.rtol)
            problems.extend([problem] if problem else [])
            return cost.wall_s

        figures = alternate(ours, peer, settings.rounds)
    title = "first step of a frozen ResNet-50, whole process"
    wrong = problems[0] if problems else ""
    for row in (
        compare(title, "TensorFlow script", "s", figures, TARGET),
        compare(f"peak memory, {title}", "TensorFlow script", "MB", memory, 0.50),
    ):
        row.wrong = wrong
        yield row
