"""Profiles: where time and memory go, by op and by node."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from toolkit.runtime.probes.trace import Span, TraceProbe


@dataclass(slots=True)
class ProfileRow:
    """Totals of a group of spans: how often, microseconds, bytes of outputs."""

    name: str
    count: int = 0
    time_us: float = 0.0
    output_bytes: int = 0


def profile(spans: Iterable[Span], key: Callable[[Span], str]) -> list[ProfileRow]:
    """Group spans (by `op` or `node`, say); the most expensive first."""
    rows: dict[str, ProfileRow] = {}
    for span in spans:
        name = key(span)
        row = rows.get(name)
        if row is None:
            row = rows[name] = ProfileRow(name)
        row.count += 1
        row.time_us += span.duration_us
        row.output_bytes += span.output_bytes
    return sorted(rows.values(), key=lambda row: -row.time_us)


def profile_report(tracer: TraceProbe, top: int = 20) -> dict[str, Any]:
    """What a traced run was spent on.

    {"total_us", "compile_us", "memory": [...], "by_op": [...], "by_node": [...]}: per device the most bytes that
    tensors took at once and the node that reached it; rows of the tables have name, count, time_us, share and
    output_bytes.
    """
    spans = tracer.spans
    total = sum(span.duration_us for span in spans)

    def rows(found: list[ProfileRow]) -> list[dict[str, Any]]:
        return [
            {
                "name": row.name,
                "count": row.count,
                "time_us": round(row.time_us, 1),
                "share": round(row.time_us / total, 4) if total else 0.0,
                "output_bytes": row.output_bytes,
            }
            for row in found[:top]
        ]

    return {
        "total_us": round(total, 1),
        "compile_us": round(sum(span.duration_us for span in tracer.compilations), 1),
        "memory": [
            {
                "device": device or "/device:CPU:0",
                "peak_bytes": usage.peak,
                "at": usage.at,
                "made_bytes": usage.allocated,
            }
            for device, usage in sorted(tracer.memory.by_device.items())
        ],
        "by_op": rows(profile(spans, lambda span: span.op)),
        "by_node": rows(profile(spans, lambda span: span.node)),
    }


def profile_lines(report: dict[str, Any]) -> list[str]:
    """The report as two aligned tables."""
    lines: list[str] = [f"total kernel time {report['total_us'] / 1e3:.3f} ms"]
    if report["compile_us"]:
        lines.append(f"compiling took {report['compile_us'] / 1e3:.3f} ms, once")
    lines += [
        f"peak tensor memory {row['peak_bytes'] / 1e6:.3f} MB on {row['device']}, at {row['at']}"
        for row in report["memory"]
        if row["peak_bytes"]
    ]
    for title, key in (("by op", "by_op"), ("by node", "by_node")):
        width = max((len(row["name"]) for row in report[key]), default=4)
        lines += ["", f"{title:<{width}}  {'count':>7}  {'ms':>10}  {'share':>6}  {'output MB':>10}"]
        lines += [
            f"{row['name']:<{width}}  {row['count']:>7}  {row['time_us'] / 1e3:>10.3f}  "
            f"{row['share']:>6.1%}  {row['output_bytes'] / 1e6:>10.3f}"
            for row in report[key]
        ]
    return lines
