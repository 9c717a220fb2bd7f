"""Measuring fairly on a machine whose speed drifts: sides take turns, figures are medians and ratios of pairs."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass
class Row:
    """One comparison.

    Attributes:
        workload: what was done.
        ours, peer: medians, in `unit`.
        ratio: the median of ours / peer, pair by pair; lower is better.
        target: the ratio to reach, or None.
        low, high: quartiles of the ratios pair by pair, or None.
        least: the least of our figures / the least of the peer's, or None: what holds where others disturb both.
        roofline: the least time the machine could take, divided by ours, or None.
        wrong: what is wrong with our outputs or the peer's, or "".
    """

    workload: str
    peer_name: str
    unit: str
    ours: float
    peer: float
    ratio: float
    target: float | None = None
    note: str = ""
    low: float | None = None
    high: float | None = None
    least: float | None = None
    roofline: float | None = None
    wrong: str = ""

    @property
    def reached(self) -> bool | None:
        return None if self.target is None else self.ratio <= self.target

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "reached": self.reached}


@dataclass
class NotRun:
    """An engine that has no row for a workload, and why; `failed` where it should have had one."""

    workload: str
    engine: str
    reason: str
    failed: bool = False

    @property
    def wrong(self) -> str:
        return self.reason if self.failed else ""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def alternate(ours: Callable[[], float], peer: Callable[[], float], rounds: int) -> tuple[list[float], list[float]]:
    """Run A B A B ... and return both lists of figures; one round of each goes first, uncounted."""
    ours()
    peer()
    mine: list[float] = []
    theirs: list[float] = []
    for _ in range(rounds):
        mine.append(ours())
        theirs.append(peer())
    return mine, theirs


def compare(
    workload: str,
    peer_name: str,
    unit: str,
    figures: tuple[list[float], list[float]],
    target: float | None = None,
    note: str = "",
) -> Row:
    """The row of figures that were taken in pairs."""
    mine, theirs = figures
    ratios = [a / b for a, b in zip(mine, theirs, strict=True)]
    low, ratio, high = statistics.quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else ratios * 3
    ours, peer = statistics.median(mine), statistics.median(theirs)
    return Row(workload, peer_name, unit, ours, peer, ratio, target, note, low, high, min(mine) / min(theirs))


@dataclass
class ProcessCost:
    """What one run of a program took."""

    wall_s: float
    peak_mb: float


def run_process(command: Sequence[str], env: dict[str, str] | None = None) -> ProcessCost:
    """Run a program to its end and account for it alone.

    Raises:
        RuntimeError: it failed; the end of its standard error is in the message.
    """
    start = time.perf_counter()
    process = subprocess.Popen(
        list(command), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env={**os.environ, **(env or {})}
    )
    assert process.stderr is not None
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stderr.close()
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} failed: {errors.decode(errors='replace')[-500:]}")
    return ProcessCost(wall, usage.ru_maxrss / 1024)


def tool(name: str) -> str:
    """A console script of the running environment."""
    return str(Path(sys.executable).parent / name)


def machine() -> str:
    """One line about where the figures come from."""
    model = "unknown processor"
    with Path("/proc/cpuinfo").open() as lines:
        for line in lines:
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    memory = resource.getpagesize() * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{model}, {os.cpu_count()} CPUs, {memory:.0f} GiB, Python {sys.version.split()[0]}"
