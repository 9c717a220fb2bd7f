"""SIGINT and SIGTERM at every stage of a training run: exit codes, no traceback, the last checkpoint whole."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.patience import HUNG, until
from toolkit.formats import bundle
from toolkit.formats.bundle.check import check

pytestmark = pytest.mark.tensorflow
ROOT = Path(__file__).resolve().parents[2]
BOTH = pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])

#: a hook that says where the run is; saves may wait for a file, so that a signal comes before they end
HOOK = """
import os, sys, time
from toolkit.runtime.saving.saver import Saver
from toolkit.runtime.training.hooks import Hook

real = Saver.save

def slow(self, session, prefix, step=None, **settings):
    print("saving", step, file=sys.stderr, flush=True)
    while step and not os.path.exists({go!r}):
        time.sleep(0.01)
    return real(self, session, prefix, step, **settings)

class Tell(Hook):
    def begin(self, scaffold):
        Saver.save = slow
    def before_run(self, run):
        print("step from", run.step, file=sys.stderr, flush=True)
"""


def meta_graph(tf: ModuleType, path: Path, body: Callable[[Any], Any]) -> str:
    """`train` adds 1 to global_step after `body` has run."""
    v1 = tf.compat.v1
    v1.disable_control_flow_v2()
    try:
        with tf.Graph().as_default():
            step = v1.train.get_or_create_global_step()
            with v1.control_dependencies([body(v1)]):
                counted = v1.assign_add(step, 1)
            with v1.control_dependencies([counted]):
                v1.no_op(name="train")
            v1.global_variables_initializer()
            v1.train.export_meta_graph(str(path), saver_def=v1.train.Saver().as_saver_def())
    finally:
        v1.enable_control_flow_v2()
    return str(path)


def long_loop(v1: Any) -> Any:
    """Turns of a loop that only the interpreter can run, for a third of a second on a quiet machine."""

    def turn(i: Any) -> Any:
        return i + 1 + 0 * v1.strings.length(v1.strings.as_string(i))

    return v1.while_loop(lambda i: i < 100_000, turn, [v1.constant(0)], parallel_iterations=1)


def empty_queue(v1: Any) -> Any:
    return v1.FIFOQueue(10, ["int32"], [[]], name="queue").dequeue()


def filled_queue(v1: Any) -> Any:
    """A runner that enqueues ten elements and then waits for an input that never comes."""
    never = v1.FIFOQueue(1, ["int32"], [[]], name="never")
    counter = v1.Variable(0, name="n", collections=[v1.GraphKeys.GLOBAL_VARIABLES])
    more = v1.cond(counter.assign_add(1, read_value=True) <= 10, lambda: v1.constant(1), lambda: never.dequeue())
    queue = v1.FIFOQueue(3, ["int32"], [[]], name="queue")
    v1.train.add_queue_runner(v1.train.QueueRunner(queue, [queue.enqueue(more)]))
    return queue.dequeue()


class Run:
    """A training run in a process of its own."""

    def __init__(self, model: str, tmp_path: Path, *more: str, holds_saves: bool = False):
        hook = tmp_path / "tell.py"
        self.go = tmp_path / "go"
        if not holds_saves:
            self.go.touch()
        hook.write_text(HOOK.format(go=str(self.go)))
        self.folder = tmp_path / "ckpt"
        command = [
            "run", model, "--target", "train", "--steps", "1000000", "--checkpoint-dir", str(self.folder),
            "--hook", str(hook), *more,
        ]  # fmt: skip
        self.process = subprocess.Popen(
            [sys.executable, "-m", "commands.main", *command],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=ROOT,
            # a shell's background jobs ignore SIGINT, and so would their children
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )  # fmt: skip
        self.told: list[str] = []

    def wait_for(self, line: str) -> None:
        assert self.process.stderr is not None
        for text in self.process.stderr:
            self.told.append(text)
            if text.startswith(line):
                return
        raise AssertionError(f"never said {line!r}: {self.told}")

    def end(self) -> str:
        try:
            _, rest = self.process.communicate(timeout=HUNG)
        finally:
            self.process.kill()
        told = "".join(self.told) + rest
        assert "Traceback" not in told, told
        return told

    @property
    def code(self) -> int:
        """As a shell shows it."""
        code = self.process.returncode
        return 128 - code if code < 0 else code

    def saved_step(self) -> int:
        """Of the latest checkpoint, which must be whole."""
        latest = bundle.latest_checkpoint(self.folder)
        assert latest is not None and not check(latest).findings
        return int(latest.rpartition("-")[2])


@BOTH
def test_while_starting(tf: ModuleType, tmp_path: Path, number: int, code: int) -> None:
    """The model comes from a pipe that says nothing."""
    run = Run("-", tmp_path)
    status = Path(f"/proc/{run.process.pid}/status")

    def handles_signals() -> bool:
        caught = next(line for line in status.read_text().splitlines() if line.startswith("SigCgt"))
        return bool(int(caught.split()[1], 16) >> (signal.SIGTERM - 1) & 1)

    until(handles_signals, "the command has begun")
    run.process.send_signal(number)
    run.end()
    assert run.code == code
    assert not run.folder.exists()


@BOTH
def test_a_long_step_is_finished(tf: ModuleType, tmp_path: Path, number: int, code: int) -> None:
    run = Run(meta_graph(tf, tmp_path / "m.meta", long_loop), tmp_path, "--save-steps", "1000")
    run.wait_for("step from 1")
    run.process.send_signal(number)
    told = run.end()
    assert run.code == code, told
    assert "stopping after this step" in told
    steps = run.saved_step()  # 2, unless the signal was slower than a step
    assert steps >= 2 and f"stopped by {signal.Signals(number).name} after {steps} step(s)" in told


@BOTH
def test_while_saving(tf: ModuleType, tmp_path: Path, number: int, code: int) -> None:
    run = Run(
        meta_graph(tf, tmp_path / "m.meta", lambda v1: v1.no_op()), tmp_path, "--save-steps", "2", holds_saves=True
    )
    run.wait_for("saving 2")
    run.process.send_signal(number)
    run.wait_for(f"{signal.Signals(number).name}: stopping after this step")
    run.go.touch()
    told = run.end()
    assert run.code == code, told
    assert run.saved_step() == 2


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_at_once(tf: ModuleType, tmp_path: Path, number: int) -> None:
    """In the middle of a save: what was saved before stays whole."""
    run = Run(
        meta_graph(tf, tmp_path / "m.meta", lambda v1: v1.no_op()), tmp_path, "--save-steps", "2", holds_saves=True
    )
    run.wait_for("saving 2")
    run.process.send_signal(number)
    run.wait_for(f"{signal.Signals(number).name}: stopping after this step, which has ")
    # Python overlooks a signal that comes while its handler for the one before returns to a sleep: people press again
    while run.process.poll() is None:
        run.process.send_signal(number)
        time.sleep(0.1)
    told = run.end()
    assert run.code == 128 + number, told
    assert run.saved_step() == 0


@BOTH
def test_while_waiting_for_a_queue(tf: ModuleType, tmp_path: Path, number: int, code: int) -> None:
    run = Run(meta_graph(tf, tmp_path / "m.meta", empty_queue), tmp_path, "--save-steps", "1")
    run.wait_for("step from 0")
    run.process.send_signal(number)
    told = run.end()
    assert run.code == code, told
    assert f"stopped by {signal.Signals(number).name} after 0 step(s)" in told
    assert run.saved_step() == 0


@BOTH
def test_while_a_queue_runner_waits_too(tf: ModuleType, tmp_path: Path, number: int, code: int) -> None:
    """Ten steps find input, the eleventh waits; it is given up, the ten are saved."""
    run = Run(meta_graph(tf, tmp_path / "m.meta", filled_queue), tmp_path, "--save-steps", "1000")
    run.wait_for("step from 10")
    run.process.send_signal(number)
    told = run.end()
    assert run.code == code, told
    assert f"stopped by {signal.Signals(number).name} after 10 step(s)" in told
    assert run.saved_step() == 10
