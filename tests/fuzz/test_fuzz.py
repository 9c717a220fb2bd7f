"""Everything the fuzzer ever found stays away, and so does anything new in a bounded run; hours under `-m long`."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.fuzz import case as cases
from tests.fuzz import judge, sizes, sources, tally
from tests.fuzz.case import Case

ROOT = Path(__file__).parents[2]


def fuzz(*args: str) -> str:
    """Run the fuzzer in a process of its own, for it forks children; there must be no finding. What it printed."""
    line = [sys.executable, "-m", "tests.fuzz", "--save", "", *args]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(line[1:])}\n{done.stdout[-6000:]}\n{done.stderr[-2000:]}"
    assert " command lines in " in done.stdout
    return done.stdout


def test_everything_ever_found() -> None:
    assert cases.corpus()
    fuzz("--replay")


@pytest.mark.parametrize(
    ("kind", "count"), [("formats", 300), ("graphs", 250), ("networks", 80), ("loops", 100), ("sizes", 120)]
)
def test_a_bounded_run(kind: str, count: int) -> None:
    fuzz("--kind", kind, "--seed", "15", "--count", str(count))


@pytest.mark.tensorflow
def test_single_ops_are_held_to_tensorflow(tf: Any) -> None:
    told = fuzz("--kind", "ops", "--seed", "15", "--count", "120", "--tensorflow")
    asked = dict(re.findall(r"TensorFlow: (.+?) +(\d+)", told))
    assert int(asked["same"]) + int(asked["both fail"]) > 60


@pytest.mark.long
@pytest.mark.parametrize("kind", ["formats", "graphs", "loops", "networks", "ops", "sizes"])
def test_hours(kind: str) -> None:
    fuzz("--kind", kind, "--seed", str(random.randrange(1 << 30)), "--count", "70000", "--jobs", "2")


def test_an_interrupted_run_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    first = list(tally.Tally(path).left("formats", 1, 0, 2 * tally.BLOCK + 5))
    assert [(block.start, block.count) for block in first] == [(0, 240), (240, 240), (480, 5)]
    for block in first[1:]:
        tally.Tally(path).add(block)
    path.write_text(path.read_text() + '{"kind": "formats", "seed": 1, "sta')  # killed while it wrote
    assert list(tally.Tally(path).left("formats", 1, 0, 2 * tally.BLOCK + 5)) == first[:1]
    assert list(tally.Tally(path).left("formats", 2, 0, 5)) != []
    tally.Tally(path).add(first[0])
    assert list(tally.Tally(path).left("formats", 1, 0, 2 * tally.BLOCK + 5)) == []


def test_runs_add_up(tmp_path: Path) -> None:
    found = {"traceback:KeyError:x.py:f": 2, "hang:?": 1}
    blocks = [
        tally.Block("loops", 1, 0, 5, cases={"loops": 5}, codes={"run 0": 20}),
        tally.Block("loops", 1, 5, 5, cases={"loops": 4}, codes={"run 0": 15, "run 2": 1}, classes=found,
                    again=["traceback:KeyError:x.py:f"]),
    ]  # fmt: skip
    for at, block in enumerate([*blocks, blocks[1]]):  # one of them in two files
        tally.Tally(tmp_path / f"{at // 2}.jsonl").add(block)
    text = tally.summary(tally.read([tmp_path / "0.jsonl", tmp_path / "1.jsonl"]))
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert lines[0].startswith("2 blocks, 36 command lines")
    for line in ("9 loops", "35 run 0", "1 run 2", "2 traceback:KeyError:x.py:f", "1 hang:? (not seen again)"):
        assert line in lines


def test_the_same_seed_makes_the_same_cases() -> None:
    made = [sources.numbered(sources.load("networks"), 3)(number) for number in (5, 5)]
    assert made[0] is not None and made[0] == made[1]


def test_kept_cases_are_what_was_kept(tmp_path: Path) -> None:
    case = Case("formats", "bytes", {"a": b"\xff\0", "b/c": "é\n".encode()}, [["inspect", "a"]], executors=True)
    cases.save(case, ["traceback:KeyError:x.py:f"], tmp_path / "case.json")
    kept = cases.load(tmp_path / "case.json")
    assert kept.case == case and kept.once == ["traceback:KeyError:x.py:f"]
    assert cases.corpus(tmp_path) == [tmp_path / "case.json"]


@pytest.mark.parametrize(("op", "is_found"), [(b"PrintV2", False), (b"Identity", True)])
def test_what_a_model_prints_is_its_own(op: bytes, is_found: bool) -> None:
    outcome = judge.Outcome(["run", "model.pb"], 0, b"", b"\x1b[2J any line\n", before={"model.pb": op})
    outcome.after = outcome.before
    keys = {finding.key for finding in judge.judge(outcome)}
    told = {"stderr:run:a line that no message explains", "control:stderr"}
    assert keys == (told if is_found else set())


def test_sizes_are_looked_for_where_values_decide_them() -> None:
    """The generator's ops are found by their shape functions, not listed."""
    found = set(sizes.sized())
    assert {"Fill", "Tile", "Range", "LinSpace", "BroadcastTo", "Pad", "OneHot", "ScatterNd", "SparseToDense"} <= found
    assert {"ResizeBilinear", "RandomUniform", "UnsortedSegmentSum", "RaggedRange", "Bincount", "Where"} <= found
    assert not {"AddV2", "MatMul", "Relu", "Identity"} & found


@pytest.mark.parametrize("count", [pytest.param("150"), pytest.param("10000", marks=pytest.mark.long)])
def test_damaged_requests_end_no_worker(count: str) -> None:
    pytest.importorskip("grpc")
    line = [sys.executable, "-m", "tests.fuzz.requests", "--seed", "15", "--count", count]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout[-6000:]}\n{done.stderr[-2000:]}"
