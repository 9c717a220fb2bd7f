"""Training: TensorFlow's losses, resuming, signals, damage, hooks, recovery."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from commands.main import run as graphmill
from tests import perturbation
from tests.patience import HUNG
from toolkit.errors import AbortedError, GivenUpError, OutOfRangeError
from toolkit.formats import bundle
from toolkit.formats.bundle.check import check
from toolkit.formats.models.model import Model, read_model
from toolkit.runtime.saving.saver import Saver
from toolkit.runtime.session import Session
from toolkit.runtime.training.hooks import Hook, RunContext
from toolkit.runtime.training.hooks.stop import EarlyStoppingHook, NanGuardHook, StopAtStepHook
from toolkit.runtime.training.monitored import MonitoredSession
from toolkit.runtime.training.scaffold import Scaffold, run_in_dependency_order
from toolkit.runtime.training.session_manager import SessionManager

SAMPLES = Path(__file__).resolve().parents[3] / "samples"
DIGITS = SAMPLES / "digits.npz"


@pytest.fixture(scope="session")
def digits(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The digits CNN as a MetaGraphDef file."""
    path = str(tmp_path_factory.mktemp("digits") / "digits.meta")
    assert graphmill(["build", str(SAMPLES / "digits_cnn.yaml"), "-o", path]) == 0
    return path


def batches(count: int, size: int = 32) -> list[dict[str, Any]]:
    data = np.load(DIGITS)
    return [
        {"x:0": data["x_train"][i * size : (i + 1) * size], "y:0": data["y_train"][i * size : (i + 1) * size]}
        for i in range(count)
    ]


def train_command(model: str, folder: Path, steps: int, *more: str) -> list[str]:
    return [
        "run", model, "--target", "train", "--fetch", "loss",
        "--feed", f"x={DIGITS}:x_train", "--feed", f"y={DIGITS}:y_train", "--batch", "16", "--shuffle", "--seed", "5",
        "--steps", str(steps), "--checkpoint-dir", str(folder), "--save-steps", "5", *more,
    ]  # fmt: skip


@pytest.mark.tensorflow
def test_ten_steps_give_tensorflows_losses(tf: ModuleType, digits: str) -> None:
    """Same graph, same seeds, same batches: initial values are equal bit for bit, losses but for rounding."""
    v1 = tf.compat.v1
    feeds = batches(10)
    with tf.Graph().as_default() as graph:
        v1.train.import_meta_graph(digits)
        with v1.Session(graph=graph) as theirs:
            theirs.run("init")
            initial = theirs.run("conv1/kernel:0")
            wanted = [theirs.run(["loss:0", "train"], feed)[0] for feed in feeds]
    session = Session(read_model(digits))
    session.run("init")
    np.testing.assert_array_equal(session.run("conv1/kernel:0"), initial)
    got = [session.run(["loss:0", "train"], feed)[0] for feed in feeds]

    def work(running: Session) -> list[Any]:
        running.run("init")
        return [running.run(["loss:0", "train"], feed)[0] for feed in feeds]

    perturbation.assert_agree([got, wanted], lambda: perturbation.of_work(read_model(digits), work))
    assert got[-1] < got[0]


@pytest.mark.tensorflow
def test_checkpoints_cross_over(tf: ModuleType, digits: str, tmp_path: Path) -> None:
    """We restore what TensorFlow saved and the other way round."""
    v1 = tf.compat.v1
    model = read_model(digits)
    session = Session(model)
    session.run("init")
    for feed in batches(3):
        session.run("train", feed)
    probe = {"x:0": np.load(DIGITS)["x_test"][:8]}
    mine = session.run("probabilities:0", probe)
    prefix = Saver(model.meta).save(session, str(tmp_path / "ours"), 3)
    with tf.Graph().as_default() as graph:
        saver = v1.train.import_meta_graph(digits)
        with v1.Session(graph=graph) as theirs:
            saver.restore(theirs, prefix)
            restored = theirs.run("probabilities:0", probe)
            theirs.run("train", batches(4)[3])
            back = saver.save(theirs, str(tmp_path / "theirs"), write_meta_graph=False)
            after = theirs.run("probabilities:0", probe)
    for checkpoint, pair in ((prefix, [restored, mine]), (back, [after])):

        def work(running: Session, checkpoint: str = checkpoint) -> list[Any]:
            Saver(model.meta).restore(running, checkpoint)
            return running.run(["probabilities:0"], probe)

        with Session(model) as other:
            results = [[each] for each in pair] + [work(other)]
        perturbation.assert_agree(results, lambda work=work: perturbation.of_work(model, work))


def test_variables_without_a_saver(digits: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Pruned for inference, a graph has neither saver nor collections; its variables are restored by name."""
    assert graphmill(train_command(digits, tmp_path / "ckpt", 5)) == 0
    pruned = str(tmp_path / "pruned.pb")
    assert graphmill(["prune", digits, "--fetch", "probabilities", "--as", "graphdef", "-o", pruned]) == 0
    feed = ["--feed", f"x={DIGITS}:x_test", "--fetch", "probabilities"]
    whole, slim, again = (str(tmp_path / f"{name}.npz") for name in ("whole", "slim", "again"))
    assert graphmill(["run", digits, "--checkpoint", str(tmp_path / "ckpt"), *feed, "--out", whole]) == 0
    copy = str(tmp_path / "copy" / "model")
    assert graphmill(["run", pruned, "--checkpoint", str(tmp_path / "ckpt"), *feed, "--out", slim, "--save", copy]) == 0
    assert graphmill(["run", pruned, "--checkpoint", copy, *feed, "--out", again]) == 0
    for file in (slim, again):
        np.testing.assert_array_equal(np.load(file)["probabilities"], np.load(whole)["probabilities"])
    assert len(bundle.BundleReader(copy).entries) == 8
    assert graphmill(["run", pruned, "--checkpoint", str(tmp_path / "nowhere"), *feed]) == 2
    assert "no such checkpoint" in capsys.readouterr().err


def test_resuming_equals_going_on(digits: str, tmp_path: Path) -> None:
    """Stopped at 10 and continued to 20 gives the checkpoint of an uninterrupted run, bit for bit."""
    assert graphmill(train_command(digits, tmp_path / "whole", 20)) == 0
    assert graphmill(train_command(digits, tmp_path / "parts", 10)) == 0
    assert graphmill(train_command(digits, tmp_path / "parts", 20)) == 0
    assert graphmill(train_command(digits, tmp_path / "parts", 20)) == 0  # nothing left to do
    assert_same_checkpoint(tmp_path / "whole", tmp_path / "parts", 20)


def assert_same_checkpoint(a: Path, b: Path, step: int) -> None:
    first, second = bundle.latest_checkpoint(a), bundle.latest_checkpoint(b)
    assert first is not None and second is not None
    assert first.endswith(f"-{step}") and second.endswith(f"-{step}")
    one, other = bundle.BundleReader(first), bundle.BundleReader(second)
    assert list(one.entries) == list(other.entries)
    for name in one.entries:
        np.testing.assert_array_equal(one.read(name), other.read(name), err_msg=name)


def kill_and_resume(digits: str, tmp_path: Path, kills: int, steps: int, seed: int) -> None:
    """Kill -9 at random moments; every restart must find a whole checkpoint and never lose a completed save."""
    rng = random.Random(seed)
    folder = tmp_path / "killed"
    command = [sys.executable, "-m", "commands.main", *train_command(digits, folder, steps)]
    last = 0
    for number in range(kills):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            process.wait(rng.uniform(0.3, 2.0))
        except subprocess.TimeoutExpired:
            process.kill()
        _, errors = process.communicate()
        assert process.returncode in (0, -signal.SIGKILL), errors.decode()
        latest = bundle.latest_checkpoint(folder) if folder.is_dir() else None
        if latest is not None:
            assert not check(latest).findings, f"kill {number}, seed {seed}"
            reached = int(latest.rpartition("-")[2])
            assert reached >= last, f"kill {number}, seed {seed}: went back from {last} to {reached}"
            last = reached
    assert subprocess.run(command, check=False, capture_output=True).returncode == 0
    assert graphmill(train_command(digits, tmp_path / "whole", steps)) == 0
    assert_same_checkpoint(tmp_path / "whole", folder, steps)


def test_killed_at_random_moments(digits: str, tmp_path: Path) -> None:
    kill_and_resume(digits, tmp_path, kills=4, steps=60, seed=1)


@pytest.mark.long
def test_killed_two_hundred_times(digits: str, tmp_path: Path) -> None:
    kill_and_resume(digits, tmp_path, kills=200, steps=4000, seed=2)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_signals_finish_the_step_and_save(digits: str, tmp_path: Path, number: int, code: int) -> None:
    command = train_command(digits, tmp_path / "ckpt", 100_000, "--log-steps", "1")
    process = subprocess.Popen(
        [sys.executable, "-m", "commands.main", *command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("step 3,"):
            break
    process.send_signal(number)
    rest = process.stderr.read()
    process.stderr.close()
    assert process.wait(HUNG) == code, rest
    saved = bundle.latest_checkpoint(tmp_path / "ckpt")
    assert saved is not None and int(saved.rpartition("-")[2]) >= 3
    assert f"stopped by {signal.Signals(number).name}" in rest


def test_a_damaged_checkpoint_is_passed_over(digits: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "ckpt"
    assert graphmill(train_command(digits, folder, 10)) == 0
    data = folder / "model.ckpt-10.data-00000-of-00001"
    content = bytearray(data.read_bytes())
    content[5] ^= 1
    data.write_bytes(content)
    capsys.readouterr()
    assert graphmill(train_command(digits, folder, 15)) == 0
    told = capsys.readouterr().err
    assert "cannot use the checkpoint" in told and "model.ckpt-10" in told
    assert "restored" in told and "model.ckpt-5 at step 5" in told
    shutil.rmtree(folder)


def test_summaries_are_written(digits: str, tmp_path: Path) -> None:
    command = train_command(digits, tmp_path / "ckpt", 6, "--summaries", str(tmp_path / "log"), "--summary-steps", "2")
    assert graphmill(command) == 0
    files = list((tmp_path / "log").iterdir())
    assert len(files) == 1 and "tfevents" in files[0].name
    from toolkit.formats.records.events import read_events

    events = list(read_events(str(files[0])))
    assert events[0].file_version and any(event.graph_def for event in events)


# -- hooks and recovery, without a process ---------------------------------------------------------------


class Recorder(Hook):
    """Writes down every call."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def begin(self, scaffold: Scaffold) -> None:
        self.calls.append("begin")

    def after_create_session(self, session: Session, step: int) -> None:
        self.calls.append(f"session {step}")

    def before_run(self, run: RunContext) -> None:
        self.calls.append(f"before {run.step}")

    def after_run(self, run: RunContext, values: Any) -> None:
        self.calls.append(f"after {run.step}")

    def end(self, session: Session, step: int) -> None:
        self.calls.append(f"end {step}")


def monitored(digits: str, hooks: list[Hook]) -> MonitoredSession:
    model: Model = read_model(digits)
    scaffold = Scaffold.of(model.meta)
    manager = SessionManager(scaffold, lambda: Session(model), print)
    return MonitoredSession(scaffold, manager.prepare_session, hooks)


def test_hooks_are_called_in_order(digits: str) -> None:
    recorder = Recorder()
    with monitored(digits, [recorder, StopAtStepHook(2)]) as session:
        while not session.should_stop():
            session.run("train", batches(1)[0])
    assert recorder.calls == ["begin", "session 0", "before 0", "after 1", "before 1", "after 2", "end 2"]


def test_lost_sessions_are_made_anew_and_the_step_runs_again(digits: str) -> None:
    class Flaky(Recorder):
        failures = 2

        def after_run(self, run: RunContext, values: Any) -> None:
            super().after_run(run, values)
            if self.failures:
                self.failures -= 1
                raise AbortedError("the peer went away")

    hook = Flaky()
    with monitored(digits, [hook]) as session:
        session.run("train", batches(1)[0])
        assert session.step == 1
    assert hook.calls.count("session 0") == 3


def test_a_graph_that_ends_its_step_has_lost_no_session(digits: str) -> None:
    class Ends(Recorder):
        def after_run(self, run: RunContext, values: Any) -> None:
            super().after_run(run, values)
            raise GivenUpError("Abort was run")

    hook = Ends()
    with pytest.raises(GivenUpError), monitored(digits, [hook]) as session:
        session.run("train", batches(1)[0])
    assert hook.calls.count("session 0") == 1


def test_the_end_of_input_is_a_normal_end(digits: str) -> None:
    recorder = Recorder()
    with monitored(digits, [recorder]):
        raise OutOfRangeError("no more data")
    assert recorder.calls[-1] == "end 0"
    with pytest.raises(ZeroDivisionError), monitored(digits, [recorder]):
        raise ZeroDivisionError
    assert recorder.calls[-1] == "session 0"


def test_nan_guard_and_early_stopping(digits: str) -> None:
    from toolkit.errors import InvalidArgumentError

    bad = {"x:0": np.full((2, 8, 8, 1), np.nan, np.float32), "y:0": np.array([0, 1])}
    guarded = monitored(digits, [NanGuardHook("loss:0")])
    with pytest.raises(InvalidArgumentError, match="'loss:0' is not finite at step 1"), guarded as session:
        session.run("train", bad)
    with monitored(digits, [EarlyStoppingHook("loss:0", patience=3, minimize=False)]) as session:
        steps = 0
        while not session.should_stop() and steps < 200:
            session.run("train", batches(1)[0])  # the loss only falls, so maximising it never improves
            steps += 1
    assert steps <= 10


def test_initialisers_that_need_each_other(digits: str) -> None:
    model = read_model(digits)
    session = Session(model)
    scaffold = Scaffold.of(model.meta)
    run_in_dependency_order(session, scaffold.init_ops)
    assert scaffold.uninitialized(session) == []
    assert scaffold.read_global_step(session) == 0


def test_memory_stays_flat(digits: str) -> None:
    """Hundreds of steps and callables leave nothing behind."""
    session = Session(read_model(digits))
    session.run("init")
    step = session.make_callable(["loss:0", "train"], ["x", "y"])
    feed = batches(1, 8)[0]
    step(*feed.values())
    before = resident_kb()
    for _ in range(300):
        step(*feed.values())
    assert resident_kb() - before < 20_000


def resident_kb() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


def test_hooks_of_a_file_and_dumped_stages(digits: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hook = tmp_path / "mine.py"
    hook.write_text(
        "from toolkit.runtime.training.hooks import Hook\n"
        "class Bell(Hook):\n"
        "    def end(self, session, step):\n"
        "        print('ended at', step)\n"
    )
    stages = tmp_path / "stages"
    command = ["--hook", str(hook), "--dump-stages", str(stages), "--devices", "CPU=2"]
    assert graphmill([*train_command(digits, tmp_path / "ckpt", 2), *command]) == 0
    assert "ended at 2" in capsys.readouterr().out
    names = sorted(p.name for p in stages.iterdir())
    assert names[:3] == ["1-full.pb", "2-placed.pb", "3-client.pb"] and names[3].startswith("4-partition-0")
    client = read_model(stages / "3-client.pb").graph
    assert any(node.op == "_Arg" for node in client) and any(node.op == "_Retval" for node in client)
    hook.write_text("1 / 0\n")
    assert graphmill([*train_command(digits, tmp_path / "ckpt", 4), "--hook", str(hook)]) == 2
    assert "mine.py: line 1: ZeroDivisionError" in capsys.readouterr().err
