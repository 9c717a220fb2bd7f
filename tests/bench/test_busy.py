"""The suite busy: conditions and what they do to processes, figures of medians and worst processes; a small row."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.bench import __main__ as command
from tests.bench import busy, conditions, neighbours
from tests.bench.conditions import CONDITIONS, NoConditionError, Place
from tests.bench.engines import UnsupportedError
from tests.bench.measure import NotRun, Row
from tests.bench.settings import Settings
from tests.bench.test_turns import _becomes
from tests.bench.turns import Burst, environment
from tests.bench.workloads import WORKLOADS
from tests.models import ROOT, Built

ADD = "one scalar Add, Session.run"
SETTINGS = Settings(rounds=1, peers=("tensorflow",))


def _asked(place: Place, script: str) -> str:
    """What a script prints that is started in a place."""
    done = subprocess.run(
        [*place.prefix, sys.executable, "-c", script],
        preexec_fn=place.enter,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


@pytest.mark.parametrize("kind", neighbours.KINDS)
def test_neighbours_live_as_long_as_the_block(kind: str) -> None:
    with neighbours.running(kind, 2) as running:
        for process in running:
            os.kill(process, 0)  # raises if there is none
    for process in running:
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)


def test_a_neighbour_that_cannot_begin_is_told() -> None:
    with pytest.raises(RuntimeError, match="a neighbour 'none' ended with 2"), neighbours.running("none", 1):
        pass


def test_one_core_is_one_of_those_that_there_are() -> None:
    with CONDITIONS["one-core"]() as place:
        told = _asked(place, "import os; print(*os.sched_getaffinity(0))")
    assert int(told) in os.sched_getaffinity(0)


@pytest.mark.parametrize("version", [1, 2])
def test_one_core_is_a_control_groups(version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conditions, "MOUNT", tmp_path)
    if version == 2:
        (tmp_path / "cgroup.controllers").touch()
    else:
        (tmp_path / "cpuset").mkdir()
        (tmp_path / "cpuset" / "cpuset.mems").write_text("0-1\n")
    core = str(min(os.sched_getaffinity(0)))
    with conditions.one_core() as place:
        (group,) = tmp_path.glob("**/graphmill-bench-*")
        assert _asked(place, "import os; print(*os.sched_getaffinity(0))") == core
        assert (group / "cgroup.procs").read_text() == "0"  # whoever writes it
        written = {each.name: each.read_text() for each in group.glob("cpuset.*")}
        assert written == {"cpuset.cpus": core} | ({} if version == 2 else {"cpuset.mems": "0-1"})
        for each in group.iterdir():
            each.unlink()  # which a control group's files need not be
    assert not group.exists()


def test_one_core_without_control_groups_is_by_affinity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conditions, "MOUNT", tmp_path / "none")
    with conditions.one_core() as place:
        assert _asked(place, "import os; print(len(os.sched_getaffinity(0)))") == "1"
    assert "affinity alone" in place.said


def test_a_process_that_stood_still_has_a_longer_step() -> None:
    assert Burst([1.0] * 9 + [11.0], {}).mean == 2.0


@pytest.mark.parametrize("version", [1, 2])
def test_a_quota_is_half_of_the_processors(version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conditions, "MOUNT", tmp_path)
    if version == 2:
        (tmp_path / "cgroup.controllers").touch()
    else:
        (tmp_path / "cpu").mkdir()
    with conditions.half() as place:
        (group,) = tmp_path.glob("**/graphmill-bench-*")
        _asked(place, "")
        assert (group / "cgroup.procs").read_text() == "0"  # whoever writes it
        written = {each.name: each.read_text() for each in group.glob("cpu.*")}
        half = len(os.sched_getaffinity(0)) * conditions.PERIOD // 2
        assert written == (
            {"cpu.max": f"{half} {conditions.PERIOD}"}
            if version == 2
            else {"cpu.cfs_quota_us": str(half), "cpu.cfs_period_us": str(conditions.PERIOD)}
        )
        for each in group.iterdir():
            each.unlink()  # which a control group's files need not be
    assert not group.exists()


def test_no_quota_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conditions, "MOUNT", tmp_path / "none")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoConditionError, match=r"no control group .*no systemd-run"), conditions.half():
        pass
    workload = replace(WORKLOADS[ADD], model=lambda: Built(tmp_path, {}))
    monkeypatch.setattr(busy, "WORKLOADS", {ADD: workload})
    monkeypatch.setattr(busy, "SUITES", (workload.suite,))
    (result,) = busy.run(Settings(conditions=("quota",)))
    assert isinstance(result, NotRun) and not result.failed and "no control group" in result.reason


def test_nobody_is_told_how_many_threads_to_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    assert environment(3)["OMP_NUM_THREADS"] == environment(3)["OPENBLAS_NUM_THREADS"] == "3"
    assert not {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OPENBLAS_THREAD_TIMEOUT"} & set(environment(None))


def test_rows_have_the_median_and_the_worst_process(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = {"graphmill": [1.0, 2.0, 9.0], "tensorflow": [2.0, 4.0, 6.0], "onnxruntime": [1.0, 2.0, 3.0]}

    def process(side: str, workload: Any, seed: int, *_: Any) -> Burst:
        if side == "openvino":
            raise UnsupportedError("it has no such thing")
        return Burst([taken[side][seed] / 1e3], {})

    monkeypatch.setattr(busy, "_process", process)
    monkeypatch.setattr(busy, "_disagreement", lambda *_: "")
    workload = WORKLOADS["ResNet50 batch 1"]
    settings = Settings(rounds=3, peers=("tensorflow", "onnxruntime", "openvino"))
    absent, *rows = busy.rows(workload, "loop-1", Place(), settings)
    assert isinstance(absent, NotRun) and absent.engine == "openvino" and not absent.failed
    told = {(row.workload.rpartition(" ")[2], row.peer_name): row for row in rows if isinstance(row, Row)}
    assert told["median", "tensorflow"].ratio == 0.5 and told["worst", "tensorflow"].ratio == 1.5
    assert told["worst", "tensorflow"].reached is False and told["worst", "onnxruntime"].target is None
    assert told["median", "fastest: onnxruntime"].ratio == 1.0
    assert told["median", "fastest: onnxruntime"].reached is False


@pytest.mark.tensorflow
def test_a_small_row_beside_a_neighbour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(busy, "SETTLING", 0.0)
    monkeypatch.setattr(busy, "TIMED", 0.0)
    WORKLOADS[ADD].model()
    with CONDITIONS["fork-1"]() as place:
        rows = list(busy.rows(WORKLOADS[ADD], "fork-1", place, SETTINGS))
    assert [row.workload.rpartition(", ")[2] for row in rows] == ["median", "worst", "median"]
    assert all(isinstance(row, Row) and not row.wrong and row.ratio > 0 for row in rows)


def test_conditions_are_picked_by_name(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    told: list[Settings] = []

    def note(settings: Settings) -> list[Row]:
        told.append(settings)
        return []

    monkeypatch.setitem(command.SUITES, "busy", (note, "picked"))
    assert command.main(["--suite", "busy", "--conditions", "quota,loop-2", "--peers", ""]) == 0
    assert told[0].conditions == ("quota", "loop-2")
    with pytest.raises(SystemExit):
        command.main(["--suite", "busy", "--conditions", "loud"])
    assert "there is no condition 'loud'; there are quiet, loop-1" in capsys.readouterr().err


def test_a_killed_benchmark_leaves_no_neighbour() -> None:
    script = (
        "import os\nfrom tests.bench.neighbours import running\n"
        "with running('loop', 1) as ids:\n    print(*ids, flush=True)\n    os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    assert done.returncode == -signal.SIGKILL
    assert _becomes(int(done.stdout), {"gone", "Z"})
