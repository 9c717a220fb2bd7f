"""A trace as an SVG Gantt chart: a lane for each thread of each device, coloured by op, with totals below.

Only shapes that `toolkit.render.pdf` knows are used, so that a PDF can be made of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape

from toolkit.formats.records.timeline import Span, Trace
from toolkit.printable import printable
from toolkit.render.dot import ellipsize
from toolkit.render.pdf import text_width
from toolkit.render.themes import Theme
from toolkit.render.timeline.lanes import (
    OTHER,
    Lane,
    Total,
    bytes_text,
    colours_of,
    lanes_of,
    short_device,
    ticks,
    time_text,
    totals_of,
)

WIDTH = 1200
_LEFT, _RIGHT, _ROW, _TOP = 170, 20, 18, 64
_MOST_TOTALS = 16
_COLUMNS = (
    (40, "op", "start"), (330, "runs", "end"), (420, "time", "end"), (490, "share", "end"), (590, "memory", "end")
)  # fmt: skip
# Spans narrower than this many units are drawn as one with their neighbours.
_NARROW = 0.6


def to_svg(trace: Trace, theme: Theme) -> str:
    """The chart of a trace."""
    lanes, totals = lanes_of(trace), totals_of(trace.spans)
    return "".join(_Chart(trace, lanes, totals, theme).lines())


class _Chart:
    def __init__(self, trace: Trace, lanes: list[Lane], totals: list[Total], theme: Theme):
        self.trace = trace
        self.lanes = lanes
        self.totals = totals
        self.theme = theme
        self.colours: Mapping[str, str] = colours_of(totals, theme)
        self.length = trace.length or 1.0
        self.scale = (WIDTH - _LEFT - _RIGHT) / self.length

    def lines(self) -> Iterator[str]:
        bottom = _TOP
        tops: list[float] = []
        device = None
        for lane in self.lanes:
            bottom += 22 if lane.device != device else 5
            device = lane.device
            tops.append(bottom)
            bottom += _ROW * len(lane.rows)
        shown = self.totals[:_MOST_TOTALS]
        height = bottom + 62 + 17 * (len(shown) + (len(self.totals) > len(shown)))
        yield (
            f'<?xml version="1.0" encoding="UTF-8"?>\n<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" '
            f'height="{height}" viewBox="0 0 {WIDTH} {height}" font-family="Helvetica,sans-serif" role="img">\n'
            f"<title>{escape(printable(self.trace.title))}</title>\n"
        )
        yield self.box(0, 0, WIDTH, height, self.theme.background)
        yield self.text(14, 24, self.trace.title, 14)
        devices = len({lane.device for lane in self.lanes})
        threads = len(self.lanes)
        parts = [
            f"{len(self.trace.spans):,} node runs in {time_text(self.trace.length)}",
            f"{devices} device{'s' if devices > 1 else ''}",
            f"{threads} thread{'s' if threads > 1 else ''}",
        ]
        yield self.text(14, 42, " · ".join(parts), 10, self.theme.muted)
        yield from self.axis(bottom)
        device = None
        for lane, top in zip(self.lanes, tops, strict=True):
            if lane.device != device:
                device = lane.device
                yield self.text(14, top - 6, self.device_text(device), 11)
            yield from self.lane(lane, top)
        yield from self.table(shown, bottom + 34)
        yield "</svg>\n"

    def device_text(self, device: str) -> str:
        busy = sum(lane.busy for lane in self.lanes if lane.device == device)
        return f"{short_device(device)} · {time_text(busy)} of work, {busy / self.length:.0%} of the time"

    def axis(self, bottom: float) -> Iterator[str]:
        for tick in ticks(self.length):
            x = _LEFT + tick * self.scale
            line = f'stroke="{self.theme.cluster_border}" stroke-width="0.5" d="M{x:.1f},{_TOP - 6} L{x:.1f},{bottom}"'
            yield f'<path fill="none" {line}/>\n'
            yield self.text(x, _TOP - 10, time_text(tick), 9, self.theme.muted, anchor="middle")

    def lane(self, lane: Lane, top: float) -> Iterator[str]:
        height = _ROW * len(lane.rows)
        yield self.box(_LEFT, top, WIDTH - _LEFT - _RIGHT, height, self.theme.clusters[0])
        thread = lane.thread if not lane.thread.isdigit() else f"thread {lane.thread}"
        yield self.text(14, top + 13, ellipsize(thread, 26), 9, self.theme.muted)
        for number, row in enumerate(lane.rows):
            y = top + _ROW * number + 1
            for group in self.groups(row):
                yield self.span(group, y)

    def groups(self, row: list[Span]) -> Iterator[list[Span]]:
        """Spans to draw as one: runs of narrow ones close together."""
        narrow: list[Span] = []
        for span in row:
            if span.duration * self.scale >= _NARROW:
                if narrow:
                    yield narrow
                    narrow = []
                yield [span]
                continue
            if narrow and (span.start + span.duration - narrow[0].start) * self.scale > 2 * _NARROW:
                yield narrow
                narrow = []
            narrow.append(span)
        if narrow:
            yield narrow

    def span(self, group: list[Span], y: float) -> str:
        first, last = group[0], group[-1]
        x = _LEFT + first.start * self.scale
        width = max(_NARROW, (last.start + last.duration - first.start) * self.scale)
        busiest = max(group, key=lambda span: span.duration)
        fill = self.colours.get(busiest.op) or self.colours[OTHER]
        lines = _tooltip(busiest)
        if len(group) > 1:
            lines.append(f"and {len(group) - 1} more beside it")
        border = self.theme.border if width > 3 else "none"
        shape = self.box(x, y, width, _ROW - 2, fill, border)
        label = ""
        name = busiest.name.rpartition("/")[2] or busiest.name
        for text in (f"{name} {time_text(busiest.duration)}", name):
            if text_width(text, 9) + 6 < width:
                label = self.text(x + 3, y + 11.5, text, 9)
                break
        title = escape(printable("\n".join(lines), keep="\n"))
        return f'<g class="span"><title>{title}</title>\n{shape}{label}</g>\n'

    def table(self, totals: list[Total], top: float) -> Iterator[str]:
        """What every op took in all; it is the legend, too."""
        columns = (
            (40, "op", "start"),
            (330, "runs", "end"),
            (420, "time", "end"),
            (490, "share", "end"),
            (590, "memory", "end"),
        )
        for x, text, anchor in columns:
            yield self.text(x, top, text, 9, self.theme.muted, anchor)
        for number, total in enumerate(totals):
            y = top + 17 * (number + 1)
            fill = self.colours.get(total.op) or self.colours[OTHER]
            yield self.box(14, y - 10, 20, 12, fill, self.theme.border)
            values = (
                ellipsize(total.op, 40), f"{total.count:,}", time_text(total.microseconds), f"{total.share:.1%}",
                bytes_text(total.memory) if total.memory else "",
            )  # fmt: skip
            for (x, _, anchor), value in zip(_COLUMNS, values, strict=True):
                yield self.text(x, y, value, 10, anchor=anchor)
            yield self.box(
                610, y - 9, max(0.5, total.share * 400), 10, self.colours.get(total.op) or self.colours[OTHER]
            )
        rest = self.totals[len(totals) :]
        if rest:
            time = sum(total.microseconds for total in rest)
            y = top + 17 * (len(totals) + 1)
            yield self.text(40, y, f"{len(rest)} more ops: {time_text(time)}", 10, self.theme.muted)

    def box(self, x: float, y: float, width: float, height: float, fill: str, border: str = "none") -> str:
        points = f"{x:.2f},{y:.2f} {x + width:.2f},{y:.2f} {x + width:.2f},{y + height:.2f} {x:.2f},{y + height:.2f}"
        return f'<polygon fill="{fill}" stroke="{border}" stroke-width="0.5" points="{points}"/>\n'

    def text(self, x: float, y: float, text: str, size: float, fill: str = "", anchor: str = "start") -> str:
        return (
            f'<text text-anchor="{anchor}" x="{x:.2f}" y="{y:.2f}" font-family="Helvetica,sans-Serif" '
            f'font-size="{size:.2f}" fill="{fill or self.theme.ink}">{escape(printable(text))}</text>\n'
        )


def _tooltip(span: Span) -> list[str]:
    lines = [span.name, f"op {span.op}", f"{time_text(span.duration)} from {time_text(span.start)}"]
    if span.memory:
        lines.append(bytes_text(span.memory))
    return [*lines, *(ellipsize(note, 160) for note in span.notes[:4])]
