"""python -m tests.bench [--suite S] [--json FILE] [--against OLD.json]: how fast we are beside the peers.

Every figure is a median; sides take turns in one run, so that ratios hold when the machine's speed drifts. A
timing here decides no test.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from pathlib import Path
from typing import Any

from tests.bench.measure import Row, machine

#: suite name to (module, what it measures); each module has run(rounds) -> list[Row]
SUITES = {
    "checkpoint": ("tests.bench.checkpoint", "saving and loading 1 GB beside TensorFlow"),
    "process": ("tests.bench.process", "whole commands beside TensorFlow's tools"),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--suite", action="append", choices=list(SUITES), help="default: all; repeatable")
    parser.add_argument("--rounds", type=int, default=7, help="counted rounds of each side")
    parser.add_argument("--json", metavar="FILE", help="also write the rows as JSON")
    parser.add_argument("--against", metavar="OLD.json", help="show the change since an earlier --json file")
    args = parser.parse_args()
    before = _load(args.against)
    print(machine())
    rows: list[Row] = []
    for suite in args.suite or SUITES:
        print(f"\n{suite}: {SUITES[suite][1]}")
        for row in importlib.import_module(SUITES[suite][0]).run(args.rounds):
            rows.append(row)
            print(_line(row, before.get((row.workload, row.peer_name))), flush=True)
    if args.json:
        report = {"machine": machine(), "rows": [row.as_json() for row in rows]}
        Path(args.json).write_text(json.dumps(report, indent=2) + "\n")
    sys.exit(0)


def _load(path: str | None) -> dict[tuple[str, str], dict[str, Any]]:
    if path is None:
        return {}
    rows = json.loads(Path(path).read_text())["rows"]
    return {(row["workload"], row["peer_name"]): row for row in rows}


def _line(row: Row, old: dict[str, Any] | None) -> str:
    text = f"  {row.workload:<40} {row.ours:10.4g} {row.unit:<4} {row.peer_name}: {row.peer:.4g}  ratio {row.ratio:.3f}"
    if row.target is not None:
        text += f" (target {row.target}: {'reached' if row.reached else 'not reached'})"
    if old is not None:
        text += f"  was {old['ratio']:.3f}"
    return text + (f"  {row.note}" if row.note else "")


if __name__ == "__main__":
    main()
