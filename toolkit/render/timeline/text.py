"""A trace in a terminal: a bar for each thread, totals by op."""

from __future__ import annotations

from toolkit.formats.records.timeline import Trace
from toolkit.printable import text_of
from toolkit.render.dot import ellipsize
from toolkit.render.timeline.lanes import Lane, bytes_text, lanes_of, short_device, time_text, totals_of

_WIDTH = 72
_SHADES = " ░▒▓█"
_MOST = 20


def to_text(trace: Trace) -> str:
    """The lanes as bars whose darkness says how busy a thread was, and what each op took."""
    lanes, totals = lanes_of(trace), totals_of(trace.spans)
    length = trace.length or 1.0
    lines = [f"{trace.title}: {len(trace.spans):,} node runs in {time_text(trace.length)}", ""]
    device = None
    for lane in lanes:
        if lane.device != device:
            device = lane.device
            lines.append(short_device(device))
        lines.append(f"  {ellipsize(lane.thread, 20):>20} │{_bar(lane, length)}│ {lane.busy / length:4.0%}")
    end = time_text(length)
    lines += [f"{'':>23}0{end:>{_WIDTH}}", "", f"{'op':<36} {'runs':>8} {'time':>10} {'share':>7} {'memory':>10}"]
    for total in totals[:_MOST]:
        memory = bytes_text(total.memory) if total.memory else ""
        lines.append(
            f"{ellipsize(total.op, 36):<36} {total.count:>8,} {time_text(total.microseconds):>10} "
            f"{total.share:>7.1%} {memory:>10}"
        )
    if len(totals) > _MOST:
        lines.append(f"{len(totals) - _MOST} more ops")
    return text_of(line.rstrip() for line in lines)


def _bar(lane: Lane, length: float) -> str:
    busy = [0.0] * _WIDTH
    for row in lane.rows:
        for span in row:
            a, b = span.start / length * _WIDTH, (span.start + span.duration) / length * _WIDTH
            for cell in range(int(a), min(_WIDTH, int(b) + 1)):
                busy[cell] += min(b, cell + 1) - max(a, cell)
    # Whatever ran at all is seen.
    return "".join(_SHADES[max(min(4, round(4 * share)), int(share > 0))] for share in busy)
