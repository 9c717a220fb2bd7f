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
    """Rows for each workload that TensorFlow can run: peak resident memory after three steps."""
    peers = [peer for peer in settings.sides if peer == "tensorflow" or peer in settings.versions]
    for workload in WORKLOADS.values():
        if workload.precision == "f32" and workload.call == "run" and settings.wants(workload.name):
            for peer in peers:
                yield _row(workload, peer, settings)


def _row(workload: Workload, other: str, settings: Settings) -> Row | NotRun:
    peaks: list[float] = []
    for engine in (OURS, other):
        try:
            peaks.append(_peak_mb(engine, workload, settings))
        except (EngineError, UnsupportedError) as error:
            return NotRun(workload.name, engine, str(error), failed=isinstance(error, EngineError))
    ours, peer = peaks
    target = TARGET if other == "tensorflow" else None
    return Row(f"peak memory, {workload.name}", other, "MB", ours, peer, ours / peer, target)


def _peak_mb(engine: str, workload: Workload, settings: Settings) -> float:
    worker = Worker(engine, workload.name, settings.threads, workload.precision, settings.versions.get(engine))
    try:
        with tempfile.TemporaryDirectory() as folder:
            worker.burst(0, Path(folder), warmup=1, timed=2)
        return worker.peak_mb()
    finally:
        worker.close()
