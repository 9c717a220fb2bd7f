"""What must hold for any command line and any files, whatever is in them."""

from __future__ import annotations

import re
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.fuzz.case import Finding
from toolkit.errors import GraphmillError, InternalError

ROOT = str(Path(__file__).parents[2])
#: commands whose exit code 1 says that there are findings
_FINDS = {"validate", "diff", "run", "inspect", "checkpoint verify", "checkpoint diff", "checkpoint restore-check",
          "checkpoint inspect"}  # fmt: skip
#: bytes beyond which a command that runs nothing uses too much for its input, and how many times the input adds
MEMORY, TIMES_INPUT = 400 << 20, 60
#: the same for runs that cannot be done: seconds of processor time (of milliseconds that they take), and bytes
PROMPT, PROMPT_MEMORY = 1.5, 256 << 20
#: characters that do something to a terminal, or turn text around
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
#: what commands write that is read by people
_READ = (".txt", ".json", ".html", ".svg", ".dot", ".yaml")
_NOTICE = re.compile(
    r"graphmill: (?!error:)[a-z -]+: |saved |step |stopped by |\d|restored |initiali[sz]ed |wrote |no path leads "
)


@dataclass
class Outcome:
    """What a command line did.

    Attributes:
        code: the exit code; None when an exception came through.
        escaped: that exception.
        reported: the error that the exit code and the line are about.
        before, after: names and contents of the files in the folder, without those below "out/" before.
        touched: what was opened elsewhere.
    """

    command: Sequence[str]
    code: int | None
    stdout: bytes
    stderr: bytes
    escaped: BaseException | None = None
    reported: BaseException | None = None
    before: dict[str, bytes] = field(default_factory=dict[str, bytes])
    after: dict[str, bytes] = field(default_factory=dict[str, bytes])
    touched: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    memory: int = 0
    cpu: float = 0.0


def name_of(command: Sequence[str]) -> str:
    """The command of a command line: "inspect", "checkpoint verify"."""
    return " ".join(command[:2]) if command[0] == "checkpoint" and len(command) > 1 else command[0]


def frame_of(error: BaseException) -> str:
    """Where in our code an error arose: the innermost frame, "graph/infer.py:infer"."""
    found = "?"
    for frame, _ in traceback.walk_tb(error.__traceback__):
        file = frame.f_code.co_filename
        if file.startswith((f"{ROOT}/toolkit/", f"{ROOT}/commands/")):
            found = f"{file[len(ROOT) + 1 :].removeprefix('toolkit/')}:{frame.f_code.co_name}"
    return found


def origin(error: BaseException) -> BaseException:
    """The first of the errors that led to an error."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def judge(outcome: Outcome) -> list[Finding]:
    """Everything that is wrong with what a command line did."""
    name = name_of(outcome.command)
    command = tuple(outcome.command)
    found: list[Finding] = []

    def find(key: str, detail: Any = "") -> None:
        found.append(Finding(key, command, str(detail)[-4000:]))

    if outcome.escaped is not None:
        text = "".join(traceback.format_exception(outcome.escaped))
        find(f"traceback:{type(outcome.escaped).__name__}:{frame_of(outcome.escaped)}", text)
    else:
        _code(outcome, name, find)
        _lines(outcome, name, find)
    _files(outcome, name, find)
    for event, what in outcome.touched:
        find(f"outside:{name}:{event}", what)
    if name != "run" and outcome.memory > MEMORY + TIMES_INPUT * sum(map(len, outcome.before.values())):
        find(f"memory:{name}", f"{outcome.memory >> 20} MB")
    return found


def judge_prompt(label: str, outcome: Outcome) -> list[Finding]:
    """What took time or memory although it could not be done.

    Args:
        label: what the case is about.
    """
    command, how = tuple(outcome.command), "tokens" if "--tokens" in outcome.command else "run"
    found: list[Finding] = []
    if outcome.cpu > PROMPT:
        found.append(
            Finding(f"slow:{how}:{label}", command, f"{outcome.cpu:.1f} s of processor time; {outcome.stderr!r}")
        )
    if any("memory=" in word for word in outcome.command) and outcome.memory > PROMPT_MEMORY:
        found.append(Finding(f"memory:{how}:{label}", command, f"{outcome.memory >> 20} MB; {outcome.stderr!r}"))
    return found


def _code(outcome: Outcome, name: str, find: Any) -> None:
    code, error = outcome.code, outcome.reported
    right = {0, 2, 3} | ({1} if name in _FINDS else set[int]())
    if code not in right:
        find(f"exit-code:{name}:{code}", outcome.stderr)
    if isinstance(error, InternalError) and not is_tensorflows(error):
        first = origin(error)
        find(f"internal:{type(first).__name__}:{frame_of(first)}", error)
    elif code == 3 and isinstance(error, GraphmillError) and error.exit_code == 3 and not hasattr(error, "status"):
        find(f"status:{name}:{type(error).__name__}", error)
    if code == 3 and name != "run" and getattr(error, "status", "") not in ("RESOURCE_EXHAUSTED", "UNKNOWN"):
        find(f"exit-code:{name}:3:{getattr(error, 'status', type(error).__name__)}", outcome.stderr)


def is_tensorflows(error: BaseException | str) -> bool:
    """Whether an INTERNAL error is one that TensorFlow raises as well, and not a mistake of ours."""
    return any(text in str(error) for text in _INTERNAL_IN_TENSORFLOW)


#: TruncateDiv and TruncateMod by zero; a sampler whose bounds leave nothing
_INTERNAL_IN_TENSORFLOW = ("Integer division by zero", "TruncatedNormal rejection sampler failed to accept a sample.")


def _lines(outcome: Outcome, name: str, find: Any) -> None:
    text = outcome.stderr.decode(errors="replace")
    lines = text.split("\n")[:-1] if text.endswith("\n") else text.split("\n")
    errors = [line for line in lines if line.startswith("graphmill: error:")]
    failed = outcome.code in (2, 3)
    if failed and len(errors) != 1:
        find(f"lines:{name}:{len(errors)} error lines", text)
    if not failed and errors:
        find(f"lines:{name}:error line with exit code {outcome.code}", text)
    prints = name == "run" and any(b"Print" in data for data in outcome.before.values())  # what models say is theirs
    for line in () if prints else lines:
        if line and line not in errors and not _NOTICE.match(line):
            warning = re.search(r"(\w+Warning)", line)
            find(f"stderr:{name}:{warning.group(1) if warning else 'a line that no message explains'}", text)
            break
    if errors and len(errors[0]) > 50_000:
        find(f"lines:{name}:long line", errors[0][:500])
    bad = None if prints else CONTROL.search(text)
    if bad:
        find("control:stderr", text)
    try:
        shown = outcome.stdout.decode()
    except UnicodeDecodeError:  # a model
        return
    bad = None if prints else CONTROL.search(shown)
    if bad and not (name in ("build", "prune", "place") and outcome.code == 0):
        find(f"control:stdout:{name}", shown[max(0, bad.start() - 80) : bad.end() + 80])


def _files(outcome: Outcome, name: str, find: Any) -> None:
    for path, data in outcome.before.items():
        if outcome.after.get(path) != data and not _may_change(outcome.command):
            find(f"files:{name}:input changed", path)
    new = sorted(set(outcome.after) - set(outcome.before))
    for path in new:
        if not path.startswith("out/"):
            find(f"files:{name}:file beside the outputs", path)
        elif outcome.code in (2, 3) and name != "run":
            find(f"files:{name}:left after an error", path)
        elif re.search(r"tmp|temp|\.part|~", path.removeprefix("out/")):
            find(f"files:{name}:temporary file left", path)
        elif path.endswith(_READ) and (bad := CONTROL.search(outcome.after[path].decode(errors="replace"))):
            text = outcome.after[path].decode(errors="replace")
            find(f"control:{name}:{path.rpartition('.')[2]}", text[max(0, bad.start() - 80) : bad.end() + 80])


def _may_change(command: Sequence[str]) -> bool:
    return tuple(command[:2]) in (("checkpoint", "clean"), ("checkpoint", "relocate"))
