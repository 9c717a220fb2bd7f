"""Steps on a machine that is not one's own: with neighbours, a quota, one processor; in processes as users start them.

Nobody is told how many threads to use. Each round starts a process of every engine in turn, lets it run for a while (an
engine that looks around finds out where it is) and times its steps. A process's figure is the mean of its steps: the
median would not see that a process with a quota rushes through half of each period and stands still in the other. There
are two figures for each engine: the median of its processes and the worst of them, for a process that settles badly
stays so as long as it lives.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.bench.agreement import disagreement
from tests.bench.conditions import CONDITIONS, NoConditionError, Place
from tests.bench.engines import OURS, UnsupportedError
from tests.bench.measure import NotRun, Row, compare
from tests.bench.settings import Settings
from tests.bench.turns import Burst, EngineError, Worker
from tests.bench.workloads import WORKLOADS
from tests.bench.workloads.base import Workload

SUITES = ("networks", "transformer", "rnn", "training")
#: seconds that a process runs before it is timed, and for which it is
SETTLING, TIMED = 2.0, 1.5
#: ours / the faster peer's median, and ours / TensorFlow's worst process
MEDIAN, WORST = 0.95, 1.3


def run(settings: Settings) -> Iterator[Row | NotRun]:
    """For each workload and condition: medians beside each peer's and the fastest peer's, and the worst processes."""
    for workload in WORKLOADS.values():
        if workload.suite in SUITES and settings.wants(workload.name):
            workload.model()  # built before anybody is busy
            for name in settings.conditions or CONDITIONS:
                try:
                    with CONDITIONS[name]() as place:
                        yield from rows(workload, name, place, settings)
                except NoConditionError as error:
                    yield NotRun(f"{workload.name}, {name}", "all", str(error))


def rows(workload: Workload, condition: str, place: Place, settings: Settings) -> Iterator[Row | NotRun]:
    """Run one workload under one condition."""
    title = f"{workload.name}, {condition}"
    sides = [OURS, *(side for side in settings.sides if side in workload.peers or side in settings.versions)]
    taken: dict[str, list[Burst]] = {side: [] for side in sides}
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(settings.rounds):
            for side in list(taken):
                try:
                    taken[side].append(_process(side, workload, seed, Path(folder), place, settings))
                except (EngineError, UnsupportedError) as error:
                    del taken[side]
                    yield NotRun(title, side, str(error), isinstance(error, EngineError))
            if OURS not in taken:
                return
    mine = taken.pop(OURS)
    ours = [1e3 * burst.mean for burst in mine]
    figures = {side: [1e3 * burst.mean for burst in bursts] for side, bursts in taken.items()}
    for side, theirs in figures.items():
        wrong = _disagreement(workload, mine, taken[side]) if side == "tensorflow" else ""
        row = compare(f"{title}, median", side, "ms", (ours, theirs), None, place.said)
        row.ratio = row.ours / row.peer  # of processes, which are not pairs: a bad one stays with whoever had it
        row.wrong = wrong
        yield row
        target = WORST if side == "tensorflow" else None
        yield Row(f"{title}, worst", side, "ms", max(ours), max(theirs), max(ours) / max(theirs), target)
    if figures:
        best = min(figures, key=lambda side: compare("", side, "ms", (ours, figures[side])).peer)
        row = compare(f"{title}, median", f"fastest: {best}", "ms", (ours, figures[best]), MEDIAN)
        row.ratio = row.ours / row.peer
        yield row


def _process(side: str, workload: Workload, seed: int, folder: Path, place: Place, settings: Settings) -> Burst:
    """What a new process takes, once it has settled."""
    worker = Worker(
        side, workload.name, None, workload.precision, settings.versions.get(side),
        prefix=place.prefix, enter=place.enter,
    )  # fmt: skip
    try:
        return worker.burst(seed, folder, settle=SETTLING, least=TIMED)
    finally:
        worker.close()


def _disagreement(workload: Workload, mine: list[Burst], theirs: list[Burst]) -> str:
    """What is wrong with our outputs, process by process."""
    problems = (
        disagreement(a.outputs, b.outputs, workload.precision, workload.rtol) for a, b in zip(mine, theirs, strict=True)
    )
    return next((f"{OURS}: {problem}" for problem in problems if problem is not None), "")
