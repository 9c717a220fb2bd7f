"""The program as a whole: help, errors, exit codes, start-up."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from commands.main import COMMANDS, run

HEAVY = ("numpy", "grpc", "cupy", "ml_dtypes", "yaml", "rich", "google.protobuf", "pydantic")


def graphmill(*args: str, **settings: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "commands.main", *args]
    return subprocess.run(command, capture_output=True, text=True, check=False, **settings)  # type: ignore[call-overload]


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from commands.main import run; code = run(['--help']);"
        f"print([m for m in {HEAVY!r} if m in sys.modules], file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert done.stderr.strip() == "[]"
    for name, (_, text) in COMMANDS.items():
        assert name in done.stdout and text.split(".")[0][:30] in done.stdout


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_help_of_every_command(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([name, "--help"]) == 0
    text = capsys.readouterr().out
    assert f"graphmill {name}" in text
    assert "Traceback" not in text


@pytest.mark.parametrize("name", ["prune", "place", "partition", "inspect"])
def test_array_free_stages_start_without_numpy(name: str) -> None:
    code = (
        "import sys; from commands.main import run; run([sys.argv[1], 'no-such-file', '-o', 'x', '--fetch', 'a'])\n"
        "print('numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, name], capture_output=True, text=True, check=False)
    assert done.stdout.strip().splitlines()[-1] == "False", done.stderr


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["bild"], "there is no command 'bild'; did you mean 'build'?"),
        (["--wrong"], "--wrong"),
        (["run", "nope.pb"], "nope.pb"),
        (["inspect"], ""),
        (["run", "--steps", "0", "x"], "--steps"),
    ],
)
def test_mistakes_are_one_line_and_exit_2(args: list[str], message: str, tmp_path: Path) -> None:
    done = graphmill(*args, stdin=subprocess.DEVNULL, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert message in done.stderr
    assert not list(tmp_path.iterdir())


def test_version() -> None:
    done = graphmill("--version")
    assert done.returncode == 0 and done.stdout.startswith("graphmill ")


def test_a_reader_that_leaves_is_no_error(tmp_path: Path) -> None:
    text = subprocess.run(
        f"{sys.executable} -m commands.main --help | head -1",
        shell=True, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert text.returncode == 0 and "Traceback" not in text.stderr
