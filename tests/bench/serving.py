"""Many threads that call one session, as servers have them: what a step costs all together, and how evenly.

Nobody is told how many threads to use.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median, quantiles

from tests.bench.agreement import disagreement
from tests.bench.engines import OURS, UnsupportedError
from tests.bench.measure import NotRun, Row, compare
from tests.bench.settings import Settings
from tests.bench.turns import Burst, EngineError, Worker
from tests.bench.workloads import WORKLOADS
from tests.bench.workloads.base import Workload

NAMES = ("ResNet50 batch 1", "MobileNetV2 batch 1", "LSTM(128) T=50 batch 1, functional")
#: whose sessions many threads may call at once; an inference request of OpenVINO's is one caller's
PEERS = ("tensorflow", "onnxruntime")
CALLERS = 8
#: for which they call, each time
SECONDS = 4.0
#: a step with many callers / with one that has all threads; the 99th of a hundred steps / the median
THROUGHPUT, TAIL = 1 / 0.95, 2.0


def run(settings: Settings) -> Iterator[Row | NotRun]:
    """For each workload: a step beside one caller's and beside the peers', and the slowest steps beside the median."""
    for name in NAMES:
        if settings.wants(name):
            WORKLOADS[name].model()  # built before anything is timed
            yield from rows(WORKLOADS[name], settings)


def rows(workload: Workload, settings: Settings) -> Iterator[Row | NotRun]:
    """Have everybody called by many threads in turns, and by one."""
    title = f"{workload.name}, {CALLERS} callers"
    several: dict[str, list[Burst]] = {}
    single: dict[str, list[Burst]] = {}
    coalesced: list[Burst] = []  # ours, requests at the same time in one step
    workers: dict[str, Worker] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        try:
            for side in (OURS, *(side for side in settings.sides if side in PEERS or side in settings.versions)):
                try:
                    version = settings.versions.get(side)
                    workers[side] = Worker(side, workload.name, None, workload.precision, version)
                    several[side], single[side] = [], []
                except (EngineError, UnsupportedError) as error:
                    yield NotRun(title, side, str(error), isinstance(error, EngineError))
            for seed in range(-1, settings.rounds):
                for side, worker in list(workers.items()):
                    try:
                        pair = [worker.serve(max(seed, 0), folder, count, SECONDS) for count in (1, CALLERS)]
                    except EngineError as error:
                        yield NotRun(title, side, str(error), failed=True)
                        workers.pop(side).close()
                        del several[side], single[side]
                        continue
                    if seed >= 0:
                        if side == OURS:
                            coalesced.append(worker.serve(seed, folder, CALLERS, SECONDS, coalesced=True))
                        single[side].append(pair[0])
                        several[side].append(pair[1])
        finally:
            for worker in workers.values():
                worker.close()
    if OURS in several:
        yield _beside(workload, f"{title}, batched: a step", "one by one", coalesced, several[OURS])
        yield _tail(f"{title}, batched", coalesced, None)
        for side, theirs in several.items():
            if side != OURS:
                yield _beside(workload, f"{title}, batched: a step", side, coalesced, theirs)
        yield from _judged(workload, title, single, several)


def _judged(
    workload: Workload, title: str, single: dict[str, list[Burst]], several: dict[str, list[Burst]]
) -> Iterator[Row]:
    for side, bursts in several.items():
        together, alone = ([1e3 * burst.processor for burst in each] for each in (bursts, single[side]))
        mine = side == OURS
        named = title if mine else f"{title}, {side}"
        yield compare(f"{named}: a step", "one caller's", "ms", (together, alone), THROUGHPUT if mine else None)
        yield _tail(named, bursts, TAIL if mine else None)
    mine = several.pop(OURS)
    for side, theirs in several.items():
        yield _beside(workload, f"{title}: a step", side, mine, theirs)


def _tail(title: str, bursts: list[Burst], target: float | None) -> Row:
    """What the slowest of a hundred steps take beside the median."""
    tails = [1e3 * quantiles(burst.seconds, n=100, method="inclusive")[98] for burst in bursts]
    halves = [1e3 * median(burst.seconds) for burst in bursts]
    return compare(f"{title}: 99th of 100", "the median", "ms", (tails, halves), target)


def _beside(workload: Workload, title: str, side: str, mine: list[Burst], theirs: list[Burst]) -> Row:
    """What a step costs, all callers together, with the outputs compared."""
    row = compare(title, side, "ms", ([1e3 * burst.processor for burst in mine], [1e3 * b.processor for b in theirs]))
    problems = (
        disagreement(a.outputs, b.outputs, workload.precision, workload.rtol) for a, b in zip(mine, theirs, strict=True)
    )
    row.wrong = next((f"{OURS} and {side}: {problem}" for problem in problems if problem is not None), "")
    return row
