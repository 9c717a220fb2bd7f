"""Running one request many times: plain repetition, training, timing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from toolkit.graph.node import Output
from toolkit.runtime.request import Request
from toolkit.runtime.session import Session

Observer = Callable[[int, Sequence[Any]], None]


@dataclass(slots=True)
class LoopResult:
    """What a loop leaves.

    Attributes:
        steps: how many were run.
        values: for each fetch, its values: of the last step, or of every step when they were kept.
        stopped: the loop was asked to stop before its end.
    """

    steps: int = 0
    values: list[Any] = field(default_factory=list[Any])
    stopped: bool = False


def run_steps(
    session: Session,
    request: Request,
    batches: Iterable[dict[Output, Any]],
    *,
    limit: int | None,
    keep: bool,
    observers: Sequence[Observer] = (),
    should_stop: Callable[[], bool] = lambda: False,
) -> LoopResult:
    """Run a request once per batch.

    Args:
        limit: at most so many steps.
        keep: collect the fetched values of every step, not only of the last.
        observers: called after every step with its number (from 1) and values.
        should_stop: asked before every step.
    """
    fetches = list(request.fetches.values())
    result = LoopResult()
    kept: list[list[Any]] = [[] for _ in fetches]
    last: list[Any] = []
    for batch in batches:
        if limit is not None and result.steps >= limit:
            break
        if should_stop():
            result.stopped = True
            break
        last = session.run([fetches, request.targets], batch)[0]
        result.steps += 1
        if keep:
            for values, value in zip(kept, last, strict=True):
                values.append(value)
        for observer in observers:
            observer(result.steps, last)
    result.values = kept if keep else last
    return result


@dataclass(slots=True)
class Timing:
    """Step times in milliseconds."""

    first_ms: float
    steps_ms: list[float]
    values: list[Any]

    def report(self, load_ms: float) -> dict[str, Any]:
        """The documented JSON of `run --stats json`."""
        ordered = sorted(self.steps_ms)
        count = len(ordered)
        middle = (ordered[(count - 1) // 2] + ordered[count // 2]) / 2
        return {
            "step_ms": {
                "min": ordered[0],
                "median": middle,
                "mean": sum(ordered) / count,
                "p99": ordered[min(count - 1, -(-99 * count // 100) - 1)],
            },
            "first_step_ms": self.first_ms,
            "load_ms": load_ms,
        }


def time_steps(session: Session, request: Request, *, warmup: int, repeat: int) -> Timing:
    """Run a request `warmup` times and then `repeat` times with a clock.

    The first step, compilation included, is timed apart and counts as one warm-up step.
    """
    fetches = [list(request.fetches.values()), request.targets]
    step = session.make_callable(fetches, list(request.feeds))
    values = list(request.feeds.values())
    clock = time.perf_counter
    start = clock()
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
