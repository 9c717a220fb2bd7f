"""Timing a step."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from toolkit.errors import FormatError
from toolkit.formats import io
from toolkit.formats.settings.documents import load_json
from toolkit.runtime.jobs.request import Request
from toolkit.runtime.session import Session
from toolkit.runtime.sessions.feeds import feed_array


@dataclass(slots=True)
class Timing:
    """Step times in milliseconds, and the values of the last step's fetches."""

    first_ms: float
    steps_ms: list[float]
    values: list[Any]

    def report(self, load_ms: float) -> dict[str, Any]:
        """The JSON of `run --stats json`: {"step_ms": {"min", "median", "mean", "p99"}, "first_step_ms", "load_ms"}."""
        ordered = sorted(self.steps_ms)
        count = len(ordered)
        return {
            "step_ms": {
                "min": ordered[0],
                "median": (ordered[(count - 1) // 2] + ordered[count // 2]) / 2,
                "mean": sum(ordered) / count,
                "p99": ordered[min(count - 1, -(-99 * count // 100) - 1)],
            },
            "first_step_ms": self.first_ms,
            "load_ms": load_ms,
        }


def read_estimate(file: str) -> float:
    """The seconds that a step takes on paper by a report of `place`.

    Raises:
        FormatError: the file is no such report, or in it no step was simulated.
    """
    content = load_json(io.read_bytes(file), file)
    simulated = cast("dict[str, Any]", content).get("simulated") if isinstance(content, dict) else None
    seconds = cast("dict[str, Any]", simulated).get("seconds") if isinstance(simulated, dict) else None
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds < float("inf"):
        raise FormatError("is no report that place --report wrote: it has no simulated step", file=file)
    return float(seconds)


def add_estimate(report: dict[str, Any], seconds: float) -> None:
    """Add to a report `estimate`: {"step_ms", "ratio"}; the ratio is to the median of the measured steps."""
    median = report["step_ms"]["median"]
    report["estimate"] = {"step_ms": seconds * 1e3, "ratio": seconds * 1e3 / median if median else None}


def timing_text(report: Mapping[str, Any], repeat: int) -> str:
    """The report in one line."""
    step = report["step_ms"]
    estimate = report.get("estimate")
    beside = ""
    if estimate is not None and estimate["ratio"] is not None:
        beside = f"; estimated {estimate['step_ms']:.3f} ms, {estimate['ratio']:.2f} times the median"
    return (
        f"{repeat} step(s): median {step['median']:.3f} ms, min {step['min']:.3f}, mean {step['mean']:.3f}, "
        f"p99 {step['p99']:.3f}; first step {report['first_step_ms']:.1f} ms, loading {report['load_ms']:.1f} ms"
        f"{beside}"
    )


def time_steps(session: Session, request: Request, *, warmup: int, repeat: int) -> Timing:
    """Run a request `warmup` times and then `repeat` times with a clock.

    The first step, compilation included, is timed apart and counts as one warm-up step.
    """
    clock = time.perf_counter
    values = [feed_array(output, value) for output, value in request.feeds.items()]
    start = clock()
    step = session.make_callable([list(request.fetches.values()), request.targets], list(request.feeds))
    out = step(*values)
    first = (clock() - start) * 1e3
    for _ in range(warmup - 1):
        step(*values)
    times: list[float] = []
    for _ in range(repeat):
        start = clock()
        out = step(*values)
        times.append((clock() - start) * 1e3)
    return Timing(first, times, out[0])
