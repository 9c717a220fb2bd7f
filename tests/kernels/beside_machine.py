"""The op suite on another machine beside this one: every kernel gives what it gives where TensorFlow is beside it.

    python -m tests.kernels.beside_machine record FILE [--most 2]     # here: what each case gives
    python -m tests.kernels.beside_machine compare FILE [--ops Cast]  # there: the same, or a line on what differs

For machines without TensorFlow, such as the emulated ones of `tests/aarch64.sh`. Values are compared as the suite
compares them with TensorFlow's: equal where the arithmetic is exact, else within what roundings explain
(`tests.kernels.op_bounds`). What a file holds is unpickled: read none but your own.
"""

from __future__ import annotations

import argparse
import pickle
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tests.kernels import beside_cpu
from tests.kernels.beside_cpu import ROUNDED, Entry


def outcome(entry: Entry) -> tuple[str | None, Any] | None:
    """A case's status, and what it gives or says; None where that cannot be kept: handles, threads, tensor lists."""
    suite, case = _suite(entry), entry.case
    if _has_state(entry):
        status, given = suite.outcome(lambda: list(suite.run_ours(case)))
        arrays = [each for part in given for each in part if each is not None] if status is None else []
    else:
        ready = suite.prepare(case)
        status, given = suite.outcome(lambda: suite.run_ours(case, ready=ready, defining=True))
        if status is None and case.normalize:
            given = case.normalize(given)
        arrays = given if status is None else []
    is_kept = all(isinstance(each, np.ndarray | np.generic) and _is_plain(np.asarray(each)) for each in arrays)
    return (status, given) if is_kept else None


def _is_plain(array: Any) -> bool:
    return array.dtype != object or all(isinstance(each, bytes | str) for each in array.ravel())


def difference(entry: Entry, wanted: tuple[str | None, Any]) -> str:
    """How what a case gives differs from what was recorded; "" where it does not."""
    try:
        found = outcome(entry)
        if found is None or found[0] != wanted[0]:
            return f"recorded was {wanted[0] or 'success'}, now {'nothing' if found is None else found}"
        if wanted[0] is not None:
            return ""
        suite, case = _suite(entry), entry.case
        if _has_state(entry):
            parts = [[None if each is None else np.asarray(each) for each in part] for part in wanted[1]]
            suite.compare_parts(case, found[1], parts)
        else:
            near = replace(case, exact=False) if case.op in ROUNDED else case
            suite.compare_outputs(near, found[1], wanted[1], suite.prepare(case))
    except Exception as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    return ""


def numbered(op: str) -> dict[str, Entry]:
    """The cases of an op by their labels; of those with one label all but the first have a number as well."""
    found: dict[str, Entry] = {}
    seen: Counter[str] = Counter()
    for entry in beside_cpu.every_case().get(op, ()):
        seen[entry.label] += 1
        count = seen[entry.label]
        found[entry.label if count == 1 else f"{entry.label} ({count})"] = entry
    return found


def _suite(entry: Entry) -> Any:
    return sys.modules[type(entry.case).__module__]


def _has_state(entry: Entry) -> bool:
    return type(entry.case).__name__ == "StateCase"


def record(path: Path, most: int) -> int:
    """Write what at most so many cases of each op give; returns how many these are."""
    kept: dict[str, dict[str, tuple[str | None, Any]]] = {}
    for op, entries in sorted(beside_cpu.every_case().items()):
        chosen = beside_cpu.spread(entries, most) if most else entries
        for label, entry in numbered(op).items():
            if entry not in chosen:
                continue
            try:
                found = outcome(entry)
            except Exception as error:  # cases that only TensorFlow is run with
                print(f"{label}: left out: {type(error).__name__}", file=sys.stderr)
                continue
            if found is not None:
                kept.setdefault(op, {})[label] = found
    path.write_bytes(pickle.dumps(kept))
    return sum(map(len, kept.values()))


def compare(path: Path, ops: Sequence[str]) -> tuple[int, int]:
    """Print what differs from a recording; returns how many cases ran, and how many differ."""
    kept = pickle.loads(path.read_bytes())
    ran = wrong = 0
    for op in ops or sorted(kept):
        for label, entry in numbered(op).items():
            if (wanted := kept.get(op, {}).get(label)) is not None:
                problem = difference(entry, wanted)
                ran, wrong = ran + 1, wrong + bool(problem)
                if problem:
                    print(f"{label}: {problem}", flush=True)
    return ran, wrong


def main(arguments: Sequence[str] | None = None) -> int:
    """Record, or compare; returns 1 if anything differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.kernels.beside_machine", description=__doc__)
    parser.add_argument("what", choices=("record", "compare"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--most", type=int, default=0, help="at most so many cases of each op (0: all)")
    parser.add_argument("--ops", default="", help="only these, separated by commas")
    args = parser.parse_args(arguments)
    if args.what == "record":
        print(f"{record(args.file, args.most)} cases recorded")
        return 0
    ran, wrong = compare(args.file, list(filter(None, args.ops.split(","))))
    print(f"{ran - wrong} cases give the same, {wrong} differ")
    return 1 if wrong or not ran else 0


if __name__ == "__main__":
    sys.exit(main())
