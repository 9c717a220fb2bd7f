"""The first step of each new shape in a session that has been run with others: what is made for its sizes.

Every process is new and has no machine code from before (GRAPHMILL_CACHE=off), so a round begins with what a server
does after it was started. Beside the time stands the ratio of processor time, which other programs disturb less, and
the same of the steps behind, when most has been seen.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from tests.bench.agreement import disagreement
from tests.bench.engines import OURS, UnsupportedError
from tests.bench.measure import NotRun, Row, compare
from tests.bench.settings import Settings
from tests.bench.turns import Burst, EngineError, Worker
from tests.bench.workloads import WORKLOADS
from tests.bench.workloads.base import Workload

#: steps, each of a new shape: uncounted ones, those of the first row, those of the second
UNCOUNTED, EARLY, LATE = 2, 8, 10
#: the environment of every process
_ENVIRONMENT = ("env", "GRAPHMILL_CACHE=off")


def run(settings: Settings) -> Iterator[Row | NotRun]:
    """Two rows for each workload and peer: shapes soon after the start, and later ones."""
    peers = [peer for peer in settings.sides if peer == "tensorflow" or peer in settings.versions]
    for name, workload in WORKLOADS.items():
        if workload.suite == "shapes" and peers and settings.wants(name):
            yield from _rows(workload, [OURS, *peers], settings)


def _rows(workload: Workload, sides: list[str], settings: Settings) -> Iterator[Row | NotRun]:
    workload.model()  # built before anything is timed
    taken: dict[str, list[Burst]] = {side: [] for side in sides}
    with tempfile.TemporaryDirectory() as name:
        for seed in range(settings.rounds):
            for side in list(taken):
                try:
                    taken[side].append(_process(side, workload, seed, Path(name), settings))
                except (EngineError, UnsupportedError) as error:
                    del taken[side]
                    yield NotRun(f"new shapes, {workload.name}", side, str(error), isinstance(error, EngineError))
            if OURS not in taken:
                return
    for peer in sides[1:]:
        if peer in taken:
            yield from _compared(workload, peer, taken[OURS], taken[peer])


def _compared(workload: Workload, peer: str, mine: list[Burst], theirs: list[Burst]) -> Iterator[Row]:
    problems = (
        disagreement(a.outputs, b.outputs, workload.precision, workload.rtol) for a, b in zip(mine, theirs, strict=True)
    )
    wrong = next((f"{OURS} and {peer}: {problem}" for problem in problems if problem is not None), "")
    for when, part in (("early", slice(UNCOUNTED, UNCOUNTED + EARLY)), ("late", slice(UNCOUNTED + EARLY, None))):
        wall = [[1e3 * median(burst.seconds[part]) for burst in side] for side in (mine, theirs)]
        spent = [[1e3 * median(burst.processors[part]) for burst in side] for side in (mine, theirs)]
        row = compare(f"new shapes, {workload.name}, {when}", peer, "ms", (wall[0], wall[1]))
        of = compare("", peer, "ms", (spent[0], spent[1]))
        row.note = f"processor time: {of.ours:.1f} and {of.peer:.1f} ms, ratio {of.ratio:.2f} least {of.least:.2f}"
        row.wrong = wrong
        yield row


def _process(side: str, workload: Workload, seed: int, folder: Path, settings: Settings) -> Burst:
    worker = Worker(
        side, workload.name, settings.threads, workload.precision, settings.versions.get(side), prefix=_ENVIRONMENT
    )
    try:
        return worker.new_shapes(seed, folder, UNCOUNTED + EARLY + LATE)
    finally:
        worker.close()
