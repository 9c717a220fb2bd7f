"""Runs cases in this process: the commands of each in a folder of its own, judged as they end."""

from __future__ import annotations

import contextlib
import functools
import io
import os
import resource
import shutil
import sys
import tempfile
import warnings
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import Any

import commands.groups
import commands.main
from tests.fuzz import confine
from tests.fuzz.case import Case, Finding
from tests.fuzz.judge import Outcome, judge, judge_prompt, name_of, origin
from toolkit.errors import BugError

#: bytes of a file in "out/" that are looked at
_MOST_READ = 4 << 20


class Runner:
    """Runs cases one after another.

    Args:
        folder: where the folders of cases are made and removed.

    Attributes:
        counts: command lines by (command, exit code).
        asks: runs that TensorFlow should do too, with how they ended, what they gave and said last.
    """

    def __init__(self, folder: Path):
        self._folder = folder
        self._audit = confine.Audit()
        self._reported: BaseException | None = None
        self.counts: dict[tuple[str, str], int] = {}
        self.asks: list[tuple[Case, Sequence[str], str, bytes | None, str]] = []
        os.environ["COLUMNS"] = "120"
        os.environ.pop("NO_COLOR", None)
        self._note_errors()
        self._make_parsers_once()

    def _note_errors(self) -> None:
        """See which error an exit code stands for."""
        fails: Any = commands.main._failed  # pyright: ignore[reportPrivateUsage]  # the door all errors go through

        def note(error: Exception, args: Any) -> int:
            self._reported = error
            return fails(error, args)

        commands.main._failed = note  # pyright: ignore[reportPrivateUsage]

    @staticmethod
    def _make_parsers_once() -> None:
        """A program parses one command line; here parsers are kept, which were half of the time of a case."""
        load: Any = commands.groups._load  # pyright: ignore[reportPrivateUsage]
        commands.groups._load = functools.cache(load)  # pyright: ignore[reportPrivateUsage]
        commands.main.get_command = functools.cache(commands.main.get_command)

    def run(self, case: Case) -> list[Finding]:
        """Run all command lines of a case; returns what is wrong."""
        from tests.fuzz.executors import compare, executions, status

        folder = Path(tempfile.mkdtemp(dir=self._folder))
        try:
            for name, data in case.files.items():
                path = folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
            (folder / "out").mkdir()
            (folder / ".tmp").mkdir()
            findings: list[Finding] = []
            for command in case.commands:
                if case.executors and command[0] == "run":
                    results = {}
                    for mode, line, environment in executions(command):
                        with _environment(environment):
                            outcome = self.execute(line, folder)
                        results[mode] = (outcome, _read(folder / "out" / "result.npz"))
                        findings += judge(outcome)
                        findings += judge_prompt(case.label, outcome) if case.prompt else []
                        _empty(folder / "out")
                    findings += compare(case, command, results)
                    if case.tensorflow:
                        outcome, result = results["node by node"]
                        self.asks.append((case, command, status(outcome), result, _last_line(outcome.stderr)))
                else:
                    findings += judge(self.execute(command, folder))
                    _empty(folder / "out")
            return findings
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def execute(self, command: Sequence[str], folder: Path) -> Outcome:
        """Run one command line with everything watched."""
        before = _contents(folder)
        self._reported = None
        outcome = Outcome(command, None, b"", b"", before=before)
        started = resource.getrusage(resource.RUSAGE_SELF).ru_utime
        confine.reset_peak()
        resident = confine.resident()
        with _standard_streams(folder) as streams, _in_folder(folder), warnings.catch_warnings():
            # a warning that was shown once would not be shown for the next case
            for category in (UserWarning, RuntimeWarning, SyntaxWarning, FutureWarning, BytesWarning):
                warnings.simplefilter("always", category)
            self._audit.watch(folder)
            try:
                outcome.code = commands.main.run(list(command))
            except BaseException as error:  # whatever comes through is a finding
                outcome.escaped = error
            finally:
                outcome.touched = self._audit.seen
                self._audit.watch(None)
        outcome.stdout, outcome.stderr = streams
        outcome.reported = self._reported
        if outcome.code == BugError.exit_code and self._reported is not None:
            outcome.escaped = origin(self._reported)
        outcome.memory = max(0, confine.peak() - resident)
        outcome.cpu = resource.getrusage(resource.RUSAGE_SELF).ru_utime - started
        outcome.after = _contents(folder)
        code = "exception" if outcome.code is None else str(outcome.code)
        key = (name_of(command), code)
        self.counts[key] = self.counts.get(key, 0) + 1
        return outcome


def _last_line(output: bytes) -> str:
    return output.decode(errors="replace").strip().rpartition("\n")[2]


def _read(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


def _contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    found: dict[str, bytes] = {}
    for parent, folders, files in os.walk(folder):
        if parent == str(folder):
            folders[:] = [name for name in folders if name != ".tmp"]
        for name in files:
            path = os.path.join(parent, name)  # noqa: PTH118  # twice as fast as Path, for every command of millions
            with contextlib.suppress(OSError), open(path, "rb") as file:  # noqa: PTH123
                found[path[len(str(folder)) + 1 :]] = file.read(_MOST_READ)
    return found


def _empty(folder: Path) -> None:
    if any(folder.iterdir()):
        shutil.rmtree(folder)
        folder.mkdir()


@contextlib.contextmanager
def _environment(values: Mapping[str, str]) -> Generator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextlib.contextmanager
def _in_folder(folder: Path) -> Generator[None]:
    here = Path.cwd()
    os.chdir(folder)
    os.environ["TMPDIR"] = tempfile.tempdir = str(folder / ".tmp")
    try:
        yield
    finally:
        tempfile.tempdir = None
        os.environ.pop("TMPDIR", None)
        os.chdir(here)


@contextlib.contextmanager
def _standard_streams(folder: Path) -> Generator[list[bytes]]:
    """Standard input from nothing, output and error into files, those that native code writes to included."""
    texts: list[bytes] = []
    saved = [os.dup(number) for number in (0, 1, 2)]
    files = [os.open(os.devnull, os.O_RDONLY), *(os.memfd_create(name) for name in ("out", "err"))]
    streams = sys.stdin, sys.stdout, sys.stderr
    for number, file in enumerate(files):
        os.dup2(file, number)
    sys.stdin = io.TextIOWrapper(open(0, "rb", closefd=False))  # noqa: SIM115
    sys.stdout = io.TextIOWrapper(open(1, "wb", closefd=False), encoding="utf-8")  # noqa: SIM115
    sys.stderr = io.TextIOWrapper(
        open(2, "wb", closefd=False), encoding="utf-8", errors="backslashreplace", line_buffering=True  # noqa: SIM115
    )  # fmt: skip
    try:
        yield texts
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        sys.stdin, sys.stdout, sys.stderr = streams
        for number, file in enumerate(saved):
            os.dup2(file, number)
            os.close(file)
        for file in files[1:]:
            os.lseek(file, 0, os.SEEK_SET)
            texts.append(os.read(file, _MOST_READ))
        for file in files:
            os.close(file)
