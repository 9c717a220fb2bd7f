"""The program as a whole: help, errors, exit codes, start-up."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from commands.main import COMMANDS, run
from toolkit.errors import BugError, InternalError

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


@pytest.mark.parametrize("words", [["ops"], ["checkpoint", "verify", "x"]])
def test_an_interrupt_is_said(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("toolkit.kernels.catalogue.catalogue", interrupt)
    monkeypatch.setattr("toolkit.formats.bundle.locate.find_prefix", interrupt)
    assert run(words) == 130
    out, err = capsys.readouterr()
    assert (out, err) == ("", "graphmill: error: interrupted\n")


def test_an_interrupt_at_the_start_is_said() -> None:
    code = (
        "import builtins, runpy, sys\n"
        "real = builtins.__import__\n"
        "def load(name, *args):\n"
        "    if name == 'typer': raise KeyboardInterrupt\n"
        "    return real(name, *args)\n"
        "builtins.__import__ = load\n"
        "import commands.main\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "graphmill: error: interrupted\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("words", [["ops"], ["checkpoint", "--help"]])
def test_a_full_disk_at_standard_output_is_no_fault_of_the_input(words: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "commands.main", *words]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 3
    assert done.stderr == "graphmill: error: standard output: No space left on device\n"


def test_a_reader_that_leaves_is_no_error(tmp_path: Path) -> None:
    text = subprocess.run(
        f"{sys.executable} -m commands.main --help | head -1",
        shell=True, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert text.returncode == 0 and "Traceback" not in text.stderr


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (MemoryError(), 3, "there is not enough memory"),
        (MemoryError("Unable to allocate 8.00 EiB"), 3, "there is not enough memory: Unable to allocate 8.00 EiB"),
        (
            ImportError("/lib/numbers.so: failed to map segment from shared object"),
            3,
            "there is not enough memory: /lib/numbers.so: failed to map",
        ),
        (OSError("/lib/dnn.so: failed to map segment from shared object"), 3, "there is not enough memory: /lib/dnn"),
        (ImportError("/lib/numbers.so: invalid ELF header"), 70, "internal error in graphmill ops: ImportError: /lib"),
        (RecursionError("maximum recursion depth exceeded"), 3, "the input is nested too deeply"),
        (KeyError("x"), 70, "internal error in graphmill ops: KeyError: 'x'; this is a bug of graphmill, please"),
        (AssertionError(), 70, "internal error in graphmill ops: AssertionError; this is a bug"),
        (UnicodeEncodeError("utf-8", "a\udcff", 1, 2, "surrogates not allowed"), 2, r"'a\udcff' is not UTF-8 text"),
        (
            BugError("the shape function of X", KeyError(1)),
            70,
            "internal error in the shape function of X: KeyError: 1",
        ),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
def test_whatever_is_raised_is_one_line(
    error: Exception, code: int, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise error

    monkeypatch.setattr("toolkit.kernels.catalogue.catalogue", fail)
    assert run(["ops"]) == code
    out, err = capsys.readouterr()
    assert out == "" and err.startswith(f"graphmill: error: {said}") and err.count("\n") == 1
    if code == 70:
        monkeypatch.setenv("GRAPHMILL_TRACEBACK", "1")
        assert run(["ops"]) == code
        err = capsys.readouterr().err
        assert "Traceback" in err and err.splitlines()[-1].startswith(f"graphmill: error: {said}")


def test_an_internal_error_shows_where_on_request(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What a plugin's kernel or a pass raised has its place in the author's file."""

    def fail() -> None:
        raise InternalError("Cube failed") from ZeroDivisionError("by nothing")

    monkeypatch.setattr("toolkit.kernels.catalogue.catalogue", fail)
    assert run(["ops"]) == 3 and capsys.readouterr().err == "graphmill: error: Cube failed\n"
    monkeypatch.setenv("GRAPHMILL_TRACEBACK", "1")
    assert run(["ops"]) == 3
    err = capsys.readouterr().err
    assert "ZeroDivisionError: by nothing" in err and err.splitlines()[-1] == "graphmill: error: Cube failed"


@pytest.mark.parametrize("encoding", ["latin-1", "ascii"])
def test_a_terminal_that_lacks_characters_gets_escapes(encoding: str, tmp_path: Path) -> None:
    (tmp_path / "\u20acx.pbtxt").write_text('node { name: "x" op: "NoOp" }')
    done = graphmill(
        "inspect", "\u20acx.pbtxt", cwd=tmp_path, env=os.environ | {"PYTHONIOENCODING": encoding}, encoding=encoding
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert r"\u20acx.pbtxt" in done.stdout


def test_a_name_that_is_no_text_is_the_users_mistake(tmp_path: Path) -> None:
    (tmp_path / "x.pbtxt").write_text('node { name: "x" op: "NoOp" }')
    done = graphmill("prune", "x.pbtxt", "--fetch", b"\xff", cwd=tmp_path, errors="replace")  # type: ignore[arg-type]
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1, done.stderr


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_closed_streams(closed: str, tmp_path: Path) -> None:
    done = subprocess.run(
        f"{sys.executable} -m commands.main ops {closed}; {sys.executable} -m commands.main wrong {closed}",
        shell=True, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr
    assert done.returncode == 2
