"""Timing a step."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from toolkit.runtime.feeds import feed_array
from toolkit.runtime.request import Request
from toolkit.runtime.session import Session


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


def timing_text(report: Mapping[str, Any], repeat: int) -> str:
    """The report in one line."""
    step = report["step_ms"]
    return (
        f"{repeat} step(s): median {step['median']:.3f} ms, min {step['min']:.3f}, mean {step['mean']:.3f}, "
        f"p99 {step['p99']:.3f}; first step {report['first_step_ms']:.1f} ms, loading {report['load_ms']:.1f} ms"
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
