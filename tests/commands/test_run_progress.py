"""What training says: a bar on a terminal, lines elsewhere."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from commands.main import run as graphmill
from tests.patience import HUNG

ROOT = Path(__file__).resolve().parents[2]
DIGITS = ROOT / "samples" / "digits.npz"


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("digits") / "digits.meta")
    assert graphmill(["build", str(ROOT / "samples" / "digits_cnn.yaml"), "-o", path]) == 0
    return path


def train(model: str, steps: int, *more: str) -> list[str]:
    return [
        "run", model, "--init", "--target", "train", "--fetch", "loss", "--feed", f"x={DIGITS}:x_train",
        "--feed", f"y={DIGITS}:y_train", "--batch", "16", "--steps", str(steps), *more,
    ]  # fmt: skip


def on_a_terminal(command: list[str]) -> tuple[str, str]:
    """Standard output, which is a file, and what a terminal on standard error shows."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "120", "LINES": "30"}
    process = subprocess.Popen(
        [sys.executable, "-m", "commands.main", *command],
        stdout=subprocess.PIPE, stderr=theirs, cwd=ROOT, env=environment, text=True,
    )  # fmt: skip
    os.close(theirs)
    shown = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # Linux says so when the other end is closed
            break
        if not piece:
            break
        shown += piece
    out, _ = process.communicate(timeout=HUNG)
    os.close(ours)
    assert process.returncode == 0, shown
    return out, re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode())


def test_a_bar_on_a_terminal(digits: str, tmp_path: Path) -> None:
    out, shown = on_a_terminal(train(digits, 30))
    assert out.startswith("loss = ")
    assert "30/30" in shown and re.search(r"loss = \d\.\d+, \d+\.\d steps/s", shown), shown


def test_lines_appear_above_the_bar(digits: str, tmp_path: Path) -> None:
    more = ["--log-steps", "10", "--checkpoint-dir", str(tmp_path / "ckpt")]
    _, shown = on_a_terminal([part for part in train(digits, 20, *more) if part != "--init"])
    lines = [line.strip() for line in re.split(r"[\r\n]+", shown)]
    assert any(line.startswith("step 10, loss = ") for line in lines), lines
    assert any(re.fullmatch(r"saved .*model\.ckpt-20", line) for line in lines), lines


def test_inference_draws_nothing(digits: str) -> None:
    out, shown = on_a_terminal(
        ["run", digits, "--init", "--fetch", "loss", "--feed", f"x={DIGITS}:x_test", "--feed", f"y={DIGITS}:y_test"]
    )
    assert out.startswith("loss = ") and shown == ""


def test_plain_lines_elsewhere(digits: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert graphmill(train(digits, 3)) == 0
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 1 and re.fullmatch(r"step 3, loss = \d\.\d+, \d+\.\d steps/s", told[0]), told
    assert graphmill(train(digits, 4, "--log-steps", "2")) == 0
    assert [line.split(",")[0] for line in capsys.readouterr().err.splitlines()] == ["step 2", "step 4"]


def test_quiet(digits: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = [
        part for part in train(digits, 4, "--log-steps", "2", "--checkpoint-dir", str(tmp_path)) if part != "--init"
    ]
    for _ in range(2):  # the second time it is there already
        assert graphmill([*command, "-q"]) == 0
        assert capsys.readouterr().err == ""
    _, shown = on_a_terminal([*train(digits, 30), "-q"])
    assert shown == ""
    timed = ["run", digits, "--init", "--fetch", "loss", "--feed", f"x={DIGITS}:x_test", "--feed", f"y={DIGITS}:y_test"]
    assert graphmill([*timed, "--repeat", "2", "-q"]) == 0
    assert "2 step(s): median" in capsys.readouterr().err  # timings were asked for


def test_the_bar_is_not_imported_before_it_is_drawn(digits: str) -> None:
    program = (
        "import sys; from commands.main import run; code = run(sys.argv[1:]); "
        "assert not any(name.startswith('rich') for name in sys.modules), 'rich'; sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *train(digits, 2)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_an_error_leaves_the_terminal_alone(digits: str, tmp_path: Path) -> None:
    """The bar ends, the error is one line."""
    hook = tmp_path / "h.py"
    hook.write_text(
        "from toolkit.errors import InvalidArgumentError\nfrom toolkit.runtime.training.hooks import Hook\n"
        "class Fail(Hook):\n    def after_run(self, run, values):\n"
        "        if run.step == 3:\n            raise InvalidArgumentError('enough of this')\n"
    )
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "commands.main", *train(digits, 9, "--hook", str(hook))],
        stdout=subprocess.PIPE, stderr=theirs, cwd=ROOT, env={**os.environ, "TERM": "xterm"},
    )  # fmt: skip
    os.close(theirs)
    shown = b""
    while True:
        try:
            shown += os.read(ours, 65536)
        except OSError:
            break
    process.communicate(timeout=HUNG)
    os.close(ours)
    assert process.returncode == 3
    last = shown.decode().rstrip().splitlines()[-1].removeprefix("\x1b[?25h")
    assert last.startswith("graphmill: error: ") and last.endswith("enough of this")
    assert b"\x1b[?25h" in shown  # the cursor is back
