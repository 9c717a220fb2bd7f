"""Spans in rows: one lane for each thread of a device, with as many rows as spans of it overlap."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from toolkit.formats.records.timeline import Span, Trace
from toolkit.render.themes import Theme

OTHER = "other ops"


@dataclass(slots=True)
class Lane:
    """The spans of one thread.

    Attributes:
        rows: spans that do not overlap, in order, for each row.
        busy: microseconds in which anything ran.
    """

    device: str
    thread: str
    rows: list[list[Span]] = field(default_factory=list[list[Span]])
    busy: float = 0.0


@dataclass(slots=True)
class Total:
    """What all runs of an op took; shares are of the sum over all ops."""

    op: str
    count: int
    microseconds: float
    share: float
    memory: int


def lanes_of(trace: Trace) -> list[Lane]:
    """The lanes in order of device and first start."""
    found: dict[tuple[str, str], list[Span]] = defaultdict(list)
    for span in trace.spans:
        found[span.device, span.thread].append(span)
    lanes: list[Lane] = []
    for (device, thread), spans in sorted(found.items(), key=lambda item: (item[0][0], item[1][0].start)):
        lane = Lane(device, thread)
        free: list[tuple[float, int]] = []  # the end of each row
        until = 0.0
        for span in spans:
            end = span.start + span.duration
            if free and free[0][0] <= span.start:
                _, row = heapq.heappop(free)
            else:
                row = len(lane.rows)
                lane.rows.append([])
            lane.rows[row].append(span)
            heapq.heappush(free, (end, row))
            lane.busy += max(0.0, end - max(until, span.start))
            until = max(until, end)
        lanes.append(lane)
    return lanes


def totals_of(spans: Sequence[Span]) -> list[Total]:
    """Time and memory by op, most time first."""
    count: Counter[str] = Counter()
    time: dict[str, float] = defaultdict(float)
    memory: Counter[str] = Counter()
    for span in spans:
        count[span.op] += 1
        time[span.op] += span.duration
        memory[span.op] += span.memory
    whole = sum(time.values()) or 1.0
    totals = [Total(op, count[op], time[op], time[op] / whole, memory[op]) for op in time]
    return sorted(totals, key=lambda total: (-total.microseconds, total.op))


def colours_of(totals: Sequence[Total], theme: Theme) -> Mapping[str, str]:
    """A fill for the ops that took most; the rest shares the one of `OTHER`."""
    colours = dict(zip((total.op for total in totals), theme.distinct[:-1], strict=False))
    if len(totals) > len(colours):
        colours[OTHER] = theme.distinct[-1]
    return colours


def short_device(name: str) -> str:
    """A device's name without what all names of one machine have in common."""
    return name.replace("/job:localhost/replica:0/task:0", "").replace("/replica:0", "") or "CPU:0"


def time_text(microseconds: float) -> str:
    """A time with three figures: 12.3 ms."""
    for limit, unit, size in ((1e6, "s", 1e6), (1e3, "ms", 1e3), (1.0, "µs", 1.0)):
        if microseconds >= limit:
            return f"{microseconds / size:.3g} {unit}"
    return f"{microseconds * 1e3:.3g} ns" if microseconds else "0 µs"


def bytes_text(count: float) -> str:
    """A size with three figures: 1.2 MB."""
    for limit, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= limit:
            return f"{count / limit:.3g} {unit}"
    return f"{count:.0f} B"


def ticks(length: float, most: int = 10) -> list[float]:
    """Round times from 0 to `length`, at most about `most` of them."""
    if length <= 0:
        return [0.0]
    step = 1e-3
    while length / step > most:
        for factor in (2, 5, 10):
            if length / (step * factor) <= most:
                step *= factor
                break
        else:
            step *= 10
    return [n * step for n in range(int(length / step + 1e-9) + 1)]
