"""Everything the fuzzer ever found stays away, and so does anything new in a bounded run; hours under `-m long`."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz import case as cases
from tests.fuzz import sources
from tests.fuzz.case import Case

ROOT = Path(__file__).parents[2]


def fuzz(*args: str) -> None:
    """Run the fuzzer in a process of its own, for it forks children; there must be no finding."""
    line = [sys.executable, "-m", "tests.fuzz", "--save", "", *args]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(line[1:])}\n{done.stdout[-6000:]}\n{done.stderr[-2000:]}"
    assert " command lines in " in done.stdout


def test_everything_ever_found() -> None:
    assert cases.corpus()
    fuzz("--replay")


@pytest.mark.parametrize(("kind", "count"), [("formats", 300), ("graphs", 250), ("networks", 40), ("loops", 100)])
def test_a_bounded_run(kind: str, count: int) -> None:
    fuzz("--kind", kind, "--seed", "15", "--count", str(count))


@pytest.mark.long
@pytest.mark.parametrize("kind", ["formats", "graphs", "loops", "networks"])
def test_hours(kind: str) -> None:
    fuzz("--kind", kind, "--seed", str(random.randrange(1 << 30)), "--count", "70000", "--jobs", "2")


def test_the_same_seed_makes_the_same_cases() -> None:
    made = [sources.numbered(sources.load("networks"), 3)(number) for number in (5, 5)]
    assert made[0] is not None and made[0] == made[1]


def test_kept_cases_are_what_was_kept(tmp_path: Path) -> None:
    case = Case("formats", "bytes", {"a": b"\xff\0", "b/c": "é\n".encode()}, [["inspect", "a"]], executors=True)
    cases.save(case, ["traceback:KeyError:x.py:f"], tmp_path / "case.json")
    kept = cases.load(tmp_path / "case.json")
    assert kept.case == case and kept.once == ["traceback:KeyError:x.py:f"]
    assert cases.corpus(tmp_path) == [tmp_path / "case.json"]
