"""Engines in their own processes: taking turns, stopped in between, gone with the benchmark; a small row end to end."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.bench import first, memory, speed, turns
from tests.bench.engines import UnsupportedError
from tests.bench.measure import NotRun, Row
from tests.bench.roofline import Peaks, Work
from tests.bench.settings import Settings
from tests.bench.turns import Burst, EngineError, Turns, Worker
from tests.bench.versions import Version
from tests.bench.workloads import WORKLOADS
from tests.models import ROOT

pytestmark = pytest.mark.tensorflow  # which writes the models

ADD = "one scalar Add, Session.run"
PERCEPTRON = "train MLP 784-128-10 SGD"


@pytest.fixture
def start() -> Iterator[Callable[..., Worker]]:
    """Starts workers and ends them."""
    made: list[Worker] = []

    def make(engine: str, workload: str, precision: str = "f32") -> Worker:
        made.append(Worker(engine, workload, 1, precision))
        return made[-1]

    yield make
    for worker in made:
        worker.close()


def _state(pid: int) -> str:
    """The kernel's letter for what a process does, "gone" if there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return "gone"


def _becomes(pid: int, states: set[str]) -> bool:
    """Whether the process comes to one of the states within a minute."""
    end = time.monotonic() + 60
    while _state(pid) not in states:
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def test_a_burst_is_repeatable_and_the_worker_stopped_between(start: Callable[..., Worker], tmp_path: Path) -> None:
    worker = start("graphmill", PERCEPTRON)
    assert _becomes(worker.pid, {"T"})
    first, again, other = (worker.burst(seed, tmp_path, warmup=1, timed=3) for seed in (4, 4, 5))
    assert _becomes(worker.pid, {"T"})
    assert len(first.seconds) == 3 and min(first.seconds) > 0
    assert sorted(first.outputs) == ["0.0", "1.0", "2.0", "3.0"]  # the losses of every run, warm-up included
    for key, loss in first.outputs.items():
        np.testing.assert_array_equal(again.outputs[key], loss)  # variables were reset, the feeds are the same
        assert other.outputs[key] != loss
    assert worker.peak_mb() > 10


def test_workers_end_with_whoever_started_them() -> None:
    script = (
        "import os\nfrom tests.bench.turns import Worker\n"
        f"print(Worker('graphmill', {ADD!r}, 1, 'f32').pid, flush=True)\nos._exit(1)"
    )
    WORKLOADS[ADD].model()
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    assert _becomes(int(done.stdout), {"gone", "Z"})


def test_what_an_engine_cannot_do_is_said(start: Callable[..., Worker]) -> None:
    with pytest.raises(UnsupportedError, match="cannot be run in bf16"):
        start("tensorflow", ADD, "bf16")
    with pytest.raises(UnsupportedError, match="not converted to ONNX"):
        start("onnxruntime", ADD)


def test_an_engine_that_fails_says_how(start: Callable[..., Worker]) -> None:
    with pytest.raises(EngineError, match="graphmill stopped with 1: KeyError: 'no such workload'"):
        start("graphmill", "no such workload")


def test_an_engine_that_dies_in_its_turn_says_so(start: Callable[..., Worker], tmp_path: Path) -> None:
    worker = start("graphmill", ADD)
    with pytest.raises(EngineError, match=r"graphmill stopped with 1: .*unexpected keyword"):
        worker.ask(nonsense=1)
    with pytest.raises(EngineError, match="graphmill stopped with 1"):
        worker.burst(0, tmp_path)


OTHER = """
import numpy

def read_model(path):
    return None

class Session:
    def __init__(self, model):
        pass

    def run(self, fetches, feeds):
        return numpy.float32(42)
"""


@pytest.fixture
def other(tmp_path: Path) -> Version:
    """A version of graphmill to which every answer is 42."""
    (tmp_path / "other" / "toolkit").mkdir(parents=True)
    (tmp_path / "other" / "toolkit" / "__init__.py").write_text(OTHER)
    return Version("graphmill 42", tmp_path / "other")


def test_another_version_comes_from_its_own_folder(tmp_path: Path, other: Version) -> None:
    worker = Worker(other.name, ADD, 1, "f32", other)
    try:
        burst = worker.burst(0, tmp_path, warmup=1, timed=1)
    finally:
        worker.close()
    assert set(map(float, burst.outputs.values())) == {42.0}


def test_a_version_with_modules_from_elsewhere_is_refused(other: Version) -> None:
    init = other.folder / "toolkit" / "__init__.py"
    init.write_text(init.read_text() + "\nimport schemas\n")
    with pytest.raises(
        EngineError, match=r"graphmill 42 stopped with 1: RuntimeError: schemas came from .*, not from "
    ):
        Worker(other.name, ADD, 1, "f32", other)


def test_rows_beside_another_version(other: Version) -> None:
    (row,) = speed.rows(WORKLOADS[ADD], Settings(rounds=2, threads=1, peers=(), against=other))
    assert isinstance(row, Row) and (row.peer_name, row.target) == (other.name, None)
    assert row.least is not None and row.least > 0
    assert row.note.endswith("outputs not equal") and row.wrong.startswith("graphmill 42: ")


def test_first_steps_in_cold_and_warm_processes(monkeypatch: pytest.MonkeyPatch, other: Version) -> None:
    monkeypatch.setattr(first, "NAMES", (ADD,))
    this = Version("graphmill as it is", ROOT)
    cold, warm = first.run(Settings(rounds=1, threads=1, peers=(), against=this))
    assert isinstance(cold, Row) and isinstance(warm, Row) and not cold.wrong and not warm.wrong
    assert cold.workload == f"first step, {ADD}, cold process" and warm.workload == f"first step, {ADD}, warm process"
    assert cold.ours > 0 and warm.ours > 0 and cold.note.startswith("processor time: ratio ")
    cold, warm = first.run(Settings(rounds=1, threads=1, peers=("onnxruntime",), against=other))
    assert cold.wrong.startswith("graphmill and graphmill 42: ")
    assert list(first.run(Settings(peers=("openvino",)))) == []


def test_a_first_step_that_fails_is_a_result(monkeypatch: pytest.MonkeyPatch, other: Version) -> None:
    monkeypatch.setattr(first, "NAMES", (ADD,))
    (other.folder / "toolkit" / "__init__.py").write_text("raise RuntimeError('an old mistake')")
    (result,) = first.run(Settings(rounds=1, threads=1, peers=(), against=other))
    assert isinstance(result, NotRun) and result.failed and result.engine == other.name
    assert result.reason == "graphmill 42 stopped with 1: RuntimeError: an old mistake"


def test_a_row_end_to_end() -> None:
    settings = Settings(rounds=2, threads=1, peers=("tensorflow", "onnxruntime"))
    (row,) = speed.rows(WORKLOADS[PERCEPTRON], settings)
    assert isinstance(row, Row)
    assert (row.workload, row.peer_name, row.unit, row.target) == (PERCEPTRON, "tensorflow", "ms", 0.6)
    assert row.wrong == "" and row.note.startswith("error ")
    assert row.ours > 0 and row.peer > 0 and row.ratio > 0
    assert row.roofline is not None and row.roofline > 0


def test_without_peers_the_roofline_is_the_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed, "peaks", lambda threads: Peaks(1e9, None, 1e9, "paper"))
    monkeypatch.setattr(speed, "installed", lambda name: False)
    (row,) = speed.rows(WORKLOADS[ADD], Settings(rounds=1, threads=1, peers=()))
    assert isinstance(row, Row) and row.peer_name == "roofline"
    assert row.peer == pytest.approx(0.008) and row.unit == "us"  # two scalars in at 1 GB/s
    assert row.ratio == pytest.approx(row.ours / row.peer)
    assert row.note == "outputs not compared: TensorFlow is not installed"


def test_memory_beside_tensorflow() -> None:
    settings = Settings(rounds=1, threads=1, peers=("tensorflow",), only=(ADD,))
    (row,) = memory.run(settings)
    assert isinstance(row, Row) and row.workload == f"peak memory, {ADD}"
    assert 10 < row.ours < row.peer
    assert list(memory.run(Settings(peers=("openvino",)))) == []


# -- what is made of the bursts --------------------------------------------------------------------------


def _burst(milliseconds: float, *values: float) -> Burst:
    return Burst([milliseconds / 1e3] * 3, {f"{run}.0": np.float32(value) for run, value in enumerate(values)})


def _taken(bursts: dict[str, list[Burst]], reference: Burst, **more: Any) -> Turns:
    """Turns whose first, uncounted bursts gave what the counted ones begin with."""
    return Turns(bursts, {name: each[0] for name, each in bursts.items()}, reference, **more)


def _turns(monkeypatch: pytest.MonkeyPatch, taken: Turns, name: str = "MobileNetV2 batch 1") -> list[Any]:
    """The rows of a network whose turns went like this."""
    monkeypatch.setattr(speed, "take_turns", lambda *arguments: taken)
    monkeypatch.setattr(speed, "work", lambda workload: Work(1e6, 0.0))
    monkeypatch.setattr(speed, "peaks", lambda threads: Peaks(1e9, None, 1e9, "paper"))
    return list(speed.rows(WORKLOADS[name], Settings(peers=("tensorflow", "onnxruntime", "openvino"))))


@pytest.fixture
def no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """The network need not be built."""
    workload = WORKLOADS["MobileNetV2 batch 1"]
    monkeypatch.setitem(WORKLOADS, workload.name, type(workload)(**{**vars(workload), "model": lambda: None}))


@pytest.mark.usefixtures("no_model")
def test_the_fastest_peer_is_picked_round_by_round(monkeypatch: pytest.MonkeyPatch) -> None:
    values = (1.0, 2.0)
    bursts = {
        "graphmill": [_burst(2, *values), _burst(2, *values), _burst(6, *values)],
        "tensorflow": [_burst(10, *values)] * 3,
        "onnxruntime": [_burst(1, *values), _burst(8, *values), _burst(3, *values)],
        "openvino": [_burst(4, *values)] * 3,
    }
    rows = {row.peer_name: row for row in _turns(monkeypatch, _taken(bursts, bursts["tensorflow"][0]))}
    best = rows["fastest of onnxruntime, openvino"]
    assert (best.ratio, best.target) == (2.0, 0.97)  # of 2/1, 2/4 and 6/3
    assert (rows["tensorflow"].ratio, rows["tensorflow"].target) == (pytest.approx(0.2), 0.7)
    assert rows["openvino"].target is None
    assert rows["tensorflow"].roofline == pytest.approx(0.5)  # a millisecond's work in two
    assert not any(row.wrong for row in rows.values())


@pytest.mark.usefixtures("no_model")
def test_wrong_outputs_in_any_round_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    good, bad = _burst(1, 1.0, 2.0), _burst(1, 1.0, 2.1)
    bursts = {"graphmill": [good, bad], "tensorflow": [good, good], "openvino": [good, good]}
    rows = _turns(monkeypatch, _taken(bursts, good, absent={"onnxruntime": "not today"}))
    assert rows[0] == NotRun("MobileNetV2 batch 1", "onnxruntime", "not today")
    assert all(row.wrong == "graphmill: off by 5.0e-02, more than 0.001" for row in rows[1:])
    assert [row.peer_name for row in rows[1:]] == ["tensorflow", "openvino", "fastest of openvino"]


@pytest.mark.usefixtures("no_model")
def test_first_bursts_are_compared_with_first_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is drawn depends on the runs before; TensorFlow did not take part, so it has only a first burst."""
    first, later = _burst(1, 1.0, 2.0), _burst(1, 3.0, 4.0)
    for mine, wrong in ((first, False), (later, True)):
        taken = Turns({"graphmill": [later], "openvino": [later]}, {"graphmill": mine, "openvino": first}, first)
        assert [bool(row.wrong) for row in _turns(monkeypatch, taken)] == [wrong, wrong]


@pytest.mark.usefixtures("no_model")
def test_an_output_that_does_not_vary_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    still = _burst(1, 1.0, 1.0)
    rows = _turns(monkeypatch, _taken({"graphmill": [still], "tensorflow": [still]}, still))
    assert "hardly vary with the input" in rows[0].wrong


@pytest.mark.usefixtures("no_model")
def test_our_failure_is_a_result(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = Turns({"tensorflow": [_burst(1, 1.0, 2.0)]}, failed={"graphmill": "graphmill stopped with 1: oh"})
    (result,) = _turns(monkeypatch, taken)
    assert result.failed and result.wrong == "graphmill stopped with 1: oh"


@pytest.mark.parametrize(("off", "said"), [(1.0, True), (1.01, False)])
def test_float32_in_the_guise_of_bfloat16_is_pointed_out(
    off: float, said: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "MobileNetV2 batch 1 bf16"
    monkeypatch.setitem(WORKLOADS, name, type(WORKLOADS[name])(**{**vars(WORKLOADS[name]), "model": lambda: None}))
    reference = _burst(1, 1.0, 2.0)
    taken = _taken({"graphmill": [_burst(1, off, 2 * off)], "openvino": [_burst(1, 1.02, 2.04)]}, reference)
    (row,) = _turns(monkeypatch, taken, name)
    assert ("ours computed in float32" in row.note) == said
    assert row.wrong == "" and row.target == 1.05
    assert row.roofline is None  # nobody measured the peak


def test_peers_do_not_run_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []

    def worker(engine: str, *arguments: Any) -> Worker:
        started.append(engine)
        raise EngineError("oh")

    monkeypatch.setattr(turns, "Worker", worker)
    result = turns.take_turns(WORKLOADS[ADD], ["graphmill", "tensorflow"], True, 1, 1)
    assert started == ["graphmill"] and result.failed == {"graphmill": "oh"} and not result.bursts
