"""A trace as one HTML file: zoom, search, details, totals. Data are columns, as in `toolkit.render.html`.

| key | content |
|---|---|
| strings | texts, each once; columns hold their positions |
| spans | name, op (position in totals), lane, row, start, duration (microseconds), memory (bytes), notes |
| lanes | device, short (its short name), thread, rows |
| totals | op, count, time, share, memory; most time first |
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from toolkit.formats.records.timeline import Trace
from toolkit.render import page
from toolkit.render.themes import THEMES, find_theme
from toolkit.render.timeline.lanes import lanes_of, short_device, totals_of


def to_html(trace: Trace, theme: str = "light") -> bytes:
    """The page of a trace."""
    css = page.asset("viewer.css") + page.asset("timeline.css")
    return page.make("timeline.html", trace.title, page_data(trace, theme), CSS=css, JS=page.script("timeline.js"))


def page_data(trace: Trace, theme: str) -> dict[str, Any]:
    """The data of a page; see the module's table."""
    strings: dict[str, int] = {"": 0}
    lanes, totals = lanes_of(trace), totals_of(trace.spans)
    op = {total.op: n for n, total in enumerate(totals)}
    spans: dict[str, list[Any]] = {
        k: [] for k in ("name", "op", "lane", "row", "start", "duration", "memory", "notes", "home")
    }
    for number, lane in enumerate(lanes):
        for row, found in enumerate(lane.rows):
            for span in found:
                values = (
                    strings.setdefault(span.name, len(strings)), op[span.op], number, row, round(span.start, 3),
                    round(span.duration, 3), span.memory, strings.setdefault("\n".join(span.notes), len(strings)), 0,
                )  # fmt: skip
                for column, value in zip(spans.values(), values, strict=True):
                    column.append(value)
    return {
        "title": trace.title,
        "length": trace.length,
        "strings": list(strings),
        "spans": spans,
        "lanes": [
            {"device": lane.device, "short": short_device(lane.device), "thread": lane.thread, "rows": len(lane.rows)}
            for lane in lanes
        ],
        "totals": [
            {"op": t.op, "count": t.count, "time": t.microseconds, "share": t.share, "memory": t.memory} for t in totals
        ],
        "most": max((span.memory for span in trace.spans), default=0),
        "theme": theme,
        "themes": {name: asdict(find_theme(name)) for name in THEMES},
    }
