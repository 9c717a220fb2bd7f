"""The results of `--suite cuda` as a Markdown table: a line a workload, a column an engine."""

from __future__ import annotations

from collections.abc import Sequence

from tests.bench.cuda.engines import PEERS
from tests.bench.measure import NotRun, Row


def markdown(results: Sequence[Row | NotRun], where: str = "") -> str:
    """The table, and below it what failed or was not run."""
    rows = [each for each in results if isinstance(each, Row)]
    peers = [peer for peer in PEERS if any(row.peer_name == peer for row in rows)]
    lines = [where, ""] if where else []
    lines += ["| step | graphmill | " + " | ".join([*peers, "ratio", "notes"]) + " |"]
    lines += ["|---|---:|" + "---:|" * (len(peers) + 1) + "---|"]
    for name in dict.fromkeys(row.workload for row in rows):
        mine = [row for row in rows if row.workload == name]
        beside = {row.peer_name: row for row in mine}
        cells = [_time(beside[peer].peer, mine[0].unit) if peer in beside else "" for peer in peers]
        aimed = [row for row in mine if row.target is not None]
        ratio = ", ".join(f"{row.ratio:.2f}{'' if row.peer_name in PEERS else f' ({row.peer_name})'}" for row in aimed)
        wrong = [f"**wrong beside {row.peer_name}: {row.wrong}**" for row in mine if row.wrong]
        notes = "; ".join(dict.fromkeys([*wrong, *(row.note for row in aimed or mine)]))
        lines.append(f"| {name} | {_time(mine[0].ours, mine[0].unit)} | {' | '.join([*cells, ratio, notes])} |")
    rest = [each for each in results if isinstance(each, NotRun)]
    if rest:
        lines += ["", *(f"- {each.workload}, {each.engine}: {each.reason}" for each in rest)]
    return "\n".join(lines) + "\n"


def _time(value: float, unit: str) -> str:
    return f"{value:.4g} {unit}"
