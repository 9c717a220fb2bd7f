"""What it costs to look at a step: traced and checked steps beside plain ones, ours and TensorFlow's.

All are steps of one session, in turns, so that a row's ratio is the watched step over the plain one of the same turn.
TensorFlow's trace is that of RunOptions.FULL_TRACE, ours the same message (`RunMetadata.step_stats`) and `--trace`'s.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tests.bench.measure import NotRun, Row, compare
from tests.bench.settings import Settings
from tests.bench.workloads import WORKLOADS
from tests.bench.workloads.base import Workload

NAMES = (
    "ResNet50 batch 1",
    "MobileNetV2 batch 1",
    "LSTM(128) T=50 batch 32, functional",
    "train MLP 784-128-10 SGD",
    "train LeNet batch 64",
)
#: a traced step / a plain one; to look at every number is another pass over all that is made
TARGET = 1.1
CHECKED = "--check-numerics"
#: turns that are not counted, in which steps are compiled and memory is touched
WARM = 5
#: turns of a round
TURNS = 10

Steps = dict[str, Callable[[], Any]]


def run(settings: Settings) -> Iterator[Row | NotRun]:
    """For each workload what a trace and a check of all numbers cost, and TensorFlow's trace."""
    for name in NAMES:
        if settings.wants(name):
            workload = WORKLOADS[name]
            yield from _rows(workload, _ours(workload, settings.threads), settings.rounds, TARGET)
            if "tensorflow" in settings.sides:
                yield from _rows(workload, _tensorflow(workload, settings.threads), settings.rounds, None)


def _rows(workload: Workload, steps: Steps, rounds: int, target: float | None) -> Iterator[Row]:
    """A row for each way to look at the steps, of which the first is plain."""
    taken: dict[str, list[float]] = {name: [] for name in steps}
    for turn in range(WARM + rounds * TURNS):
        for name, step in steps.items():
            start = time.perf_counter()
            step()
            if turn >= WARM:
                taken[name].append(1e3 * (time.perf_counter() - start))
    (_, plain), *watched = taken.items()
    for name, figures in watched:
        aim = None if name == CHECKED else target
        yield compare(f"{workload.name}, {name}", "plain", "ms", (figures, plain), aim)


def _asked(workload: Workload) -> tuple[Any, list[str], dict[str, Any]]:
    """The model, what is fetched, and what is fed."""
    built = workload.model()
    info = built.info
    inputs = list(info["inputs"].values())
    values = workload.feeds(np.random.default_rng(0)).values()
    fetches = [*info["outputs"].values(), *([info["train"]] if "train" in info else [])]
    return built, fetches, dict(zip(inputs, values, strict=True))


def _ours(workload: Workload, threads: int) -> Steps:
    from schemas import config_pb2
    from toolkit import Session, read_model
    from toolkit.runtime.probes.numerics import NumericsProbe
    from toolkit.runtime.probes.trace import TraceProbe

    built, fetches, feeds = _asked(workload)
    session = Session(read_model(str(built.path)), threads=threads)
    if "init" in built.info:
        session.run(built.info["init"])
    options = config_pb2.RunOptions(trace_level=config_pb2.RunOptions.FULL_TRACE)
    return {
        "plain": lambda: session.run(fetches, feeds),
        "--trace": lambda: session.run(fetches, feeds, probe=TraceProbe()),
        "RunMetadata": lambda: session.run(fetches, feeds, options, config_pb2.RunMetadata()),
        CHECKED: lambda: session.run(fetches, feeds, probe=NumericsProbe()),
    }


def _tensorflow(workload: Workload, threads: int) -> Steps:
    import tensorflow as tf

    v1 = tf.compat.v1
    built, fetches, feeds = _asked(workload)
    with v1.Graph().as_default() as graph:
        if built.path.suffix == ".meta":
            v1.train.import_meta_graph(str(built.path))
        else:
            v1.import_graph_def(v1.GraphDef.FromString(built.path.read_bytes()), name="")
    config = v1.ConfigProto(intra_op_parallelism_threads=threads, inter_op_parallelism_threads=threads)
    session = v1.Session(graph=graph, config=config)
    if "init" in built.info:
        session.run(graph.get_operation_by_name(built.info["init"]))
    options = v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE)
    return {
        "plain": lambda: session.run(fetches, feeds),
        "RunMetadata, tensorflow": lambda: session.run(fetches, feeds, options, v1.RunMetadata()),
    }
