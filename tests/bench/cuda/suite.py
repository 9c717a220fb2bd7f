"""The rows of `--suite cuda`, within a time that is said: `--seconds`.

The processes of a few rows get ready at once. A row is measured when all of its engines are ready or have failed, the
others stopped, in turns; who takes too long to get ready is left out of his row. The rows come in an order of their
own, those of `workloads` first whose engines are ready first.
"""

from __future__ import annotations

import contextlib
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.bench.cuda.agreement import apart, disagreement
from tests.bench.cuda.cards import card
from tests.bench.cuda.engines import GPU, OURS, PEERS, installed
from tests.bench.cuda.turns import CudaEngineError, CudaWorker
from tests.bench.cuda.workloads import WORKLOADS, CudaWorkload
from tests.bench.measure import NotRun, Row, compare
from tests.bench.settings import Settings

#: rows whose engines get ready at the same time
AHEAD = 4
#: seconds that an engine may take to get ready, those apart in which it is stopped
PATIENCE = 75.0
#: seconds of a burst; of one before those that count; that an answer may take beyond that
BURST, FIRST, ANSWER = 0.1, 0.05, 20.0
#: at most so much beside the fastest of the peers, and of a step that moves nothing but memory beside a copy
TARGET, SHARE = 1.1, 0.8

Result = Row | NotRun


class _Preparing:
    """A row whose engines get ready.

    Attributes:
        workers: those that are not out.
        failed: engine to why it is out.
    """

    def __init__(self, workload: CudaWorkload, engines: list[str], device: str, folder: Path):
        self.workload = workload
        self.failed: dict[str, str] = {}
        self.workers = {name: CudaWorker(name, workload.name, device, folder) for name in engines}
        self._begun = time.monotonic()
        self._stopped = 0.0

    def look(self) -> bool:
        """Whether all are ready or out."""
        waiting = False
        late = time.monotonic() - self._begun - self._stopped > PATIENCE
        for name, worker in list(self.workers.items()):
            try:
                if worker.is_ready():
                    continue
                if not late:
                    waiting = True
                    continue
                reason = f"not ready after {PATIENCE:.0f} s"
            except CudaEngineError as error:
                reason = str(error)
            self.drop(name, reason)
        return not waiting

    def drop(self, name: str, reason: str) -> None:
        self.failed[name] = reason
        self.workers.pop(name).close()

    @contextlib.contextmanager
    def stopped(self) -> Iterator[None]:
        """Within, none of its processes runs."""
        start = time.monotonic()
        for worker in self.workers.values():
            worker.stop()
        yield
        for worker in self.workers.values():
            worker.go_on()
        self._stopped += time.monotonic() - start

    def close(self) -> None:
        for worker in self.workers.values():
            worker.close()


def run(settings: Settings, device: str = GPU) -> Iterator[Result]:
    """The rows of all workloads that are wanted, until the time is up."""
    wanted = [workload for workload in WORKLOADS.values() if settings.wants(workload.name)]
    peers = [peer for peer in PEERS if peer in settings.peers]
    absent = [peer for peer in PEERS if not installed(peer)]
    if absent:
        print(f"not installed: {', '.join(absent)}", file=sys.stderr)
    yield from of_workloads(wanted, peers, settings.rounds, settings.seconds, device)


def of_workloads(
    wanted: list[CudaWorkload], peers: list[str], rounds: int, seconds: float, device: str = GPU
) -> Iterator[Result]:
    """As `run`, of some workloads beside some peers."""
    end = time.monotonic() + seconds
    rest, active = list(wanted), list[_Preparing]()
    with tempfile.TemporaryDirectory() as folder:
        try:
            while rest or active:
                while rest and len(active) < AHEAD:
                    active.append(_Preparing(rest.pop(0), [OURS, *peers], device, Path(folder)))
                if time.monotonic() > end:
                    break
                ready = next((each for each in active if each.look()), None)
                if ready is None:
                    time.sleep(0.05)
                    continue
                active.remove(ready)
                with contextlib.ExitStack() as others:
                    for each in active:
                        others.enter_context(each.stopped())
                    results = _rows(ready, rounds)
                ready.close()
                yield from results
        finally:
            for each in active:
                each.close()
    for workload in [*(each.workload for each in active), *rest]:
        yield NotRun(workload.name, "all", f"no time left of {seconds:.0f} s")


def _rows(row: _Preparing, rounds: int) -> list[Result]:
    """Measure a row, whose processes run while all others are stopped."""
    workload = row.workload
    figures: dict[str, list[float]] = {name: [] for name in row.workers}
    fed: dict[str, float] = {}
    if OURS in row.workers:
        card_name = row.workers[OURS].card
        for turn in range(-1, rounds):
            for name in list(row.workers):
                taken = _ask(row, name, what="steps", seconds=FIRST if turn < 0 else BURST)
                if taken is not None and turn >= 0:
                    figures[name].append(taken)
        if workload.fed:
            for name in list(row.workers):
                taken = _ask(row, name, what="fed", seconds=BURST)
                if taken is not None:
                    fed[name] = taken
    else:
        card_name = ""
    found: list[Result] = [NotRun(workload.name, name, why, failed=True) for name, why in row.failed.items()]
    if OURS not in row.workers:
        return found
    mine = row.workers[OURS].results()
    unit, scale = ("us", 1e6) if statistics.median(figures[OURS]) < 1e-3 else ("ms", 1e3)
    ours = [scale * each for each in figures[OURS]]
    about = _about(workload, statistics.median(figures[OURS]), card_name, row.workers[OURS].note)
    peers = [name for name in row.workers if name != OURS]
    fastest = min(peers, key=lambda name: statistics.median(figures[name]), default=None)
    for name in peers:
        theirs = row.workers[name].results()
        note = f"{apart(mine, theirs):.0e} apart"
        if name in fed and OURS in fed:
            note += f"; fed {scale * fed[OURS]:.4g} {unit}, {name} {scale * fed[name]:.4g} {unit}"
        times = (ours, [scale * each for each in figures[name]])
        made = compare(workload.name, name, unit, times, TARGET if name == fastest else None, f"{note}{about}")
        made.wrong = disagreement(workload, mine, theirs)
        found.append(made)
    found += _limits(row, unit, ours, about)
    if not any(isinstance(each, Row) for each in found):
        taken = statistics.median(ours)
        found.append(Row(workload.name, "nobody", unit, taken, float("nan"), float("nan"), note=about.strip("; ")))
    return found


def _ask(row: _Preparing, name: str, **request: object) -> float | None:
    try:
        return row.workers[name].ask(ANSWER, **request)
    except CudaEngineError as error:
        row.drop(name, str(error))
        return None


def _limits(row: _Preparing, unit: str, ours: list[float], about: str) -> list[Row]:
    """The rows beside what a step may take, and beside what a copy takes of as many bytes."""
    workload, taken = row.workload, statistics.median(ours)
    if workload.limit is not None:
        limit = workload.limit / (1 if unit == "us" else 1e3)
        return [Row(workload.name, "limit", unit, taken, limit, taken / limit, 1.0, about.strip("; "))]
    if not workload.bandwidth:
        return []
    nbytes = workload.network.work(False).bytes
    copied = _ask(row, OURS, what="copy", bytes=int(nbytes))
    if copied is None:
        return []
    seconds = taken / (1e6 if unit == "us" else 1e3)
    rates = nbytes / seconds / 1e9, nbytes / copied / 1e9
    note = f"{rates[0]:.0f} GB/s, copies {rates[1]:.0f} GB/s: {100 * rates[0] / rates[1]:.0f} %"
    return [Row(workload.name, "copy", unit, taken, copied * taken / seconds, seconds / copied, 1 / SHARE, note)]


def _about(workload: CudaWorkload, seconds: float, card_name: str, note: str) -> str:
    known = card(card_name)
    text = ""
    if known is not None:
        least = known.least_seconds(workload.network.work(workload.training), workload.precision)
        text += f"; {100 * least / seconds:.0f} % of {known.name}'s roofline"
    return text + (f"; {note}" if note else "")
