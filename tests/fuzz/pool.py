"""Runs cases by their numbers in forked children, some at a time.

A child has everything imported and makes its cases itself, so what travels is numbers and findings. It says which
case it begins; so when it dies, or does not end, the one that did it is known, and what is left goes to the next
child. Whatever was found is run again alone; what does not happen alone is looked for with the cases before it.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import pickle
import re
import shutil
import signal
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path

from tests.fuzz import confine
from tests.fuzz.case import Case, Finding
from tests.fuzz.judge import ROOT
from tests.fuzz.reference import Asked, Reference

#: makes a case from its number; None where the number has none
Maker = Callable[[int], "Case | None"]
#: seconds of processor time for one case, and how often in a row it may be seen to wait, a second apart
CPU_LIMIT, WAITS = 30.0, 45
#: cases that one child runs
BATCH = 60
#: a file system in memory: on a disk, folders and fsync were half of the time of a case
_MEMORY = Path("/dev/shm")


@dataclass
class Result:
    """What happened to a case.

    Attributes:
        before: the numbers of the cases that must run before it in the same process, where it does not happen alone.
    """

    number: int
    findings: list[Finding]
    before: list[int] = field(default_factory=list[int])


@dataclass
class _Child:
    pid: int
    pipe: Connection
    left: list[int]
    folder: Path
    done: list[int] = field(default_factory=list[int])
    since: float = 0.0
    cpu: float = 0.0
    seen: float = 0.0
    waits: int = 0
    looked: float = 0.0
    killed: str = ""


class Pool:
    """Runs cases.

    Args:
        make: what makes cases of numbers.
        jobs: children at a time.
        reference: what runs are compared with, that ask for it; None for nothing.

    Attributes:
        counts: command lines by (command, exit code).
        cases: how many were run.
        made: how many of each kind, and of these "in every executor".
    """

    def __init__(self, make: Maker, jobs: int = 1, batch: int = BATCH, reference: Reference | None = None):
        self._make = make
        self._jobs = jobs
        self._batch = batch
        self.reference = reference
        self._folder = Path(tempfile.mkdtemp(prefix="graphmill-fuzz-", dir=_MEMORY if _MEMORY.is_dir() else None))
        self.counts: Counter[tuple[str, str]] = Counter()
        self.made: Counter[str] = Counter()
        self.cases = 0

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *exc: object) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def run(self, numbers: Sequence[int], deadline: float | None = None) -> Iterator[Result]:
        """Run the cases of these numbers; yields those with findings, unconfirmed, as they come.

        Args:
            deadline: `time.monotonic()` after which no batch is begun.
        """
        queue = [list(numbers[at : at + self._batch]) for at in range(0, len(numbers), self._batch)][::-1]
        children: list[_Child] = []
        try:
            while queue or children:
                late = deadline is not None and time.monotonic() > deadline
                if late:
                    queue.clear()
                while queue and len(children) < self._jobs:
                    children.append(self._fork(queue.pop()))
                if not children:
                    break
                for pipe in wait([child.pipe for child in children], timeout=1.0):
                    child = next(child for child in children if child.pipe is pipe)
                    ended, results = self._hear(child)
                    yield from results
                    if ended:
                        children.remove(child)
                        if child.left:
                            queue.append(child.left)
                for child in children:
                    self._watch(child)
        finally:
            for child in children:
                os.kill(child.pid, signal.SIGKILL)
                os.waitpid(child.pid, 0)

    def alone(self, numbers: Sequence[int]) -> list[Finding]:
        """What the last of these cases does in a child that ran the others before it."""
        return [finding for result in self.run_together(list(numbers)) if result.number == numbers[-1]
                for finding in result.findings]  # fmt: skip

    def run_together(self, numbers: list[int]) -> list[Result]:
        """Run cases in one child, in this order; they do not count."""
        batch, self._batch = self._batch, max(1, len(numbers))
        counted = Counter(self.counts), Counter(self.made), self.cases
        try:
            return list(self.run(numbers))
        finally:
            self._batch = batch
            self.counts, self.made, self.cases = counted

    def confirm(self, result: Result, earlier: Sequence[int]) -> Result | None:
        """The findings that happen again: alone, or after those of its batch; None where nothing does."""
        again = self.alone([result.number])
        keys = {finding.key for finding in result.findings}
        same = [finding for finding in again if finding.key in keys or not _is_exact(finding.key)]
        if same:
            return Result(result.number, same)
        size = 1
        while size < 2 * len(earlier):
            before = list(earlier[-size:])
            same = [finding for finding in self.alone([*before, result.number]) if finding.key in keys]
            if same:
                return Result(result.number, same, before)
            size *= 4
        return None

    def make(self, number: int) -> Case | None:
        """The case of a number, made in a child, for making it may be what fails."""
        receive, send = Pipe(duplex=False)
        pid = os.fork()
        if not pid:
            try:
                send.send_bytes(pickle.dumps(self._make(number)))
            finally:
                os._exit(0)
        send.close()
        try:
            return pickle.loads(receive.recv_bytes())
        except EOFError:
            return None
        finally:
            receive.close()
            os.waitpid(pid, 0)

    def _fork(self, numbers: list[int]) -> _Child:
        receive, send = Pipe(duplex=False)
        folder = Path(tempfile.mkdtemp(dir=self._folder))
        pid = os.fork()
        if not pid:
            try:
                receive.close()
                _serve(self._make, numbers, send, folder)
            except BaseException:
                traceback.print_exc()
                os._exit(99)
            os._exit(0)
        send.close()
        return _Child(pid, receive, list(numbers), folder, since=time.monotonic())

    def _hear(self, child: _Child) -> tuple[bool, list[Result]]:
        """(whether the child has ended, what it said)."""
        try:
            said, what = pickle.loads(child.pipe.recv_bytes())
        except EOFError:
            return True, self._ended(child)
        if said == "begin":
            child.since, child.cpu, child.waits = time.monotonic(), _cpu(child.pid), 0
            return False, []
        number, findings, counts, asks, made = what
        if self.reference is not None:
            for asked in asks:
                findings += self.reference.ask(asked)
        self.counts.update(counts)
        self.made.update(made)
        child.left.remove(number)
        child.done.append(number)
        self.cases += 1
        return False, [Result(number, findings, list(child.done[:-1]))] if findings else []

    def _ended(self, child: _Child) -> list[Result]:
        _, status = os.waitpid(child.pid, 0)
        child.pipe.close()
        fault = child.folder / "fault"
        dump = fault.read_text(errors="replace") if fault.exists() else ""
        shutil.rmtree(child.folder, ignore_errors=True)
        if os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0:
            return []
        if not child.left:
            return []
        number = child.left.pop(0)
        self.cases += 1
        how = child.killed or (
            f"signal:{signal.Signals(os.WTERMSIG(status)).name}"
            if os.WIFSIGNALED(status)
            else f"ended:{os.WEXITSTATUS(status)}"
        )
        return [Result(number, [Finding(f"{how}:{_frame(dump)}", (), dump[-4000:])], list(child.done))]

    def _watch(self, child: _Child) -> None:
        """End a child that does not end; it says where it was."""
        if child.killed:
            if time.monotonic() - child.since > 10:
                os.kill(child.pid, signal.SIGKILL)
            return
        if time.monotonic() - child.looked < 1:
            return
        child.looked = time.monotonic()
        used = _cpu(child.pid)
        # one that is ready to run and gets no processor does not wait
        child.waits = child.waits + 1 if used == child.seen and _sleeps(child.pid) else 0
        child.seen = used
        if used - child.cpu > CPU_LIMIT or child.waits > WAITS:
            child.killed = "hang (waiting)" if child.waits > WAITS else "hang"
            child.since = time.monotonic()
            os.kill(child.pid, signal.SIGABRT)


def _serve(make: Maker, numbers: list[int], pipe: Connection, folder: Path) -> None:
    """What a child does."""
    from tests.fuzz.child import Runner

    with (folder / "fault").open("w") as fault:
        faulthandler.enable(fault)
        confine.limit()
        runner = Runner(folder)
        for number in numbers:
            pipe.send_bytes(pickle.dumps(("begin", number)))
            case = make(number)
            findings = [] if case is None else runner.run(case)
            asks = [Asked(number, *ask) for ask in runner.asks]
            pipe.send_bytes(pickle.dumps(("done", (number, findings, runner.counts, asks, _made(case)))))
            runner.counts = {}
            runner.asks.clear()


def _made(case: Case | None) -> list[str]:
    """What a case counts as."""
    if case is None:
        return []
    return [case.kind, f"{case.kind} in every executor"] if case.executors else [case.kind]


def _is_exact(key: str) -> bool:
    """Whether a class has a place that must be the same when it happens again; a hang is found anywhere in its loop."""
    return not key.startswith(("hang", "memory"))


def _stat(pid: int) -> list[str]:
    """The fields of a process from its state on."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _cpu(pid: int) -> float:
    """Seconds of processor time that a process has used, those of its own children not included."""
    fields = _stat(pid)
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _sleeps(pid: int) -> bool:
    """Whether all threads of a process wait for something."""
    states: list[str] = []
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):  # it has ended
            states.append((thread / "stat").read_text().rpartition(")")[2].split()[0])
    return set(states) == {"S"}


def _frame(dump: str) -> str:
    """The innermost frame of ours in what faulthandler wrote: "graph/infer.py:infer"."""
    place = re.escape(ROOT)
    dump = dump[max(0, dump.find("Current thread")) :]
    found = re.search(rf'File "{place}/(?:toolkit/)?((?:commands/)?(?!tests/)[^"]+)", line \d+ in (\S+)', dump)
    return f"{found.group(1)}:{found.group(2)}" if found else "?"
