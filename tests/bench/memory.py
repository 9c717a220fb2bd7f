"""The most memory a process with each workload takes, beside TensorFlow's."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.bench.engines import OURS
from tests.bench.measure import NotRun, Row
from tests.bench.settings import Settings
from tests.bench.turns import EngineError, UnsupportedError, Worker
from tests.bench.workloads import WORKLOADS
from tests.bench.workloads.base import Workload

TARGET = 0.50


def run(settings: Settings) -> Iterator[Row | NotRun]:
    """One row for each workload that TensorFlow can run: peak resident memory after three steps."""
    if "tensorflow" not in settings.peers:
        return
    for workload in WORKLOADS.values():
        if workload.precision == "f32" and workload.call == "run" and settings.wants(workload.name):
            yield _row(workload, settings.threads)


def _row(workload: Workload, threads: int) -> Row | NotRun:
    peaks: list[float] = []
    for engine in (OURS, "tensorflow"):
        try:
            peaks.append(_peak_mb(engine, workload, threads))
        except (EngineError, UnsupportedError) as error:
            return NotRun(workload.name, engine, str(error), failed=isinstance(error, EngineError))
    ours, peer = peaks
    return Row(f"peak memory, {workload.name}", "tensorflow", "MB", ours, peer, ours / peer, TARGET)


def _peak_mb(engine: str, workload: Workload, threads: int) -> float:
    worker = Worker(engine, workload.name, threads, workload.precision)
    try:
        with tempfile.TemporaryDirectory() as folder:
            worker.burst(0, Path(folder), warmup=1, timed=2)
        return worker.peak_mb()
    finally:
        worker.close()
