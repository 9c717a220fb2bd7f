"""The first step of a model: what is imported, read, built and compiled until its result is there.

In a cold process everything is done for the first time: Python has started and NumPy is imported, no more. In a warm
one the same model has been run before, by another session: what a process keeps (machine code, primitives, kernels)
is there, and the time is mostly the compiler's. Beside the time stands the ratio of processor time, which other
programs disturb less.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.bench.agreement import disagreement
from tests.bench.engines import OURS, UnsupportedError
from tests.bench.measure import NotRun, Row, compare
from tests.bench.settings import Settings
from tests.bench.turns import Burst, EngineError, Worker
from tests.bench.workloads import WORKLOADS
from tests.bench.workloads.base import Workload

NAMES = ("10000 elementwise nodes of 32", "train MLP 784-128-10 SGD", "ResNet50 batch 1")
PROCESSES = ("cold", "warm")


def run(settings: Settings) -> Iterator[Row | NotRun]:
    """Two rows for each workload and peer: the first step in a cold process and in a warm one."""
    peers = [peer for peer in settings.sides if peer == "tensorflow" or peer in settings.versions]
    for name in NAMES:
        if peers and settings.wants(name):
            yield from _rows(WORKLOADS[name], [OURS, *peers], settings)


def _rows(workload: Workload, sides: list[str], settings: Settings) -> Iterator[Row | NotRun]:
    workload.model()  # built before anything is timed
    taken: dict[str, list[list[Burst]]] = {side: [] for side in sides}  # one list for each process: cold, warm
    with tempfile.TemporaryDirectory() as name:
        for seed in range(-1, settings.rounds):
            for side in list(taken):
                try:
                    steps = _process(side, workload, max(seed, 0), Path(name), settings)
                except (EngineError, UnsupportedError) as error:
                    del taken[side]
                    yield NotRun(f"first step, {workload.name}", side, str(error), isinstance(error, EngineError))
                else:
                    if seed >= 0:
                        taken[side].append(steps)
            if OURS not in taken:
                return
    for peer in sides[1:]:
        if peer not in taken:
            continue
        for place, process in enumerate(PROCESSES):
            mine, theirs = ([steps[place] for steps in taken[side]] for side in (OURS, peer))
            figures = [1e3 * burst.median for burst in mine], [1e3 * burst.median for burst in theirs]
            row = compare(f"first step, {workload.name}, {process} process", peer, "ms", figures)
            spent = compare("", peer, "s", ([burst.processor for burst in mine], [burst.processor for burst in theirs]))
            row.note = f"processor time: ratio {spent.ratio:.3f} least {spent.least:.3f}"
            problems = [
                disagreement(a.outputs, b.outputs, workload.precision, workload.rtol)
                for a, b in zip(mine, theirs, strict=True)
            ]
            row.wrong = next((f"{OURS} and {peer}: {problem}" for problem in problems if problem is not None), "")
            yield row


def _process(side: str, workload: Workload, seed: int, folder: Path, settings: Settings) -> list[Burst]:
    """The first steps of as many sessions as there are PROCESSES, in a new process."""
    worker = Worker(
        side, workload.name, settings.threads, workload.precision, settings.versions.get(side), first_steps=True
    )
    try:
        return [worker.first_step(seed, folder) for _ in PROCESSES]
    finally:
        worker.close()
