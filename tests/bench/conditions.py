"""Machines that are not one's own: with neighbours, a quota of processor time, or one processor of several.

A condition says how processes of engines are started in it. Quotas are those of a control group, version 2 or 1, where
one may be made; else those of a scope that systemd makes; else there is none, and that is said. One processor is a
group's too, for a program can undo the affinity that it is started with, as onnxruntime does: it gives each of its
threads a processor of the machine's.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import subprocess
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path

from tests.bench import neighbours

MOUNT = Path("/sys/fs/cgroup")
#: microseconds, over which a quota is counted: what container runtimes use
PERIOD = 100_000


class NoConditionError(Exception):
    """The machine cannot be made so; the message says why."""


@dataclass(frozen=True)
class Place:
    """Where processes of engines start.

    Attributes:
        prefix: of their command line.
        enter: called in the new process before its program starts.
        said: what the condition came to, for the row's note.
    """

    prefix: tuple[str, ...] = ()
    enter: Callable[[], object] | None = None
    said: str = ""


Condition = Callable[[], contextlib.AbstractContextManager[Place]]


@contextlib.contextmanager
def _beside(kind: str, count: int) -> Generator[Place]:
    with neighbours.running(kind, count):
        yield Place()


@contextlib.contextmanager
def one_core() -> Generator[Place]:
    """One of the processors: by a control group and by affinity, or by affinity alone where there is none."""
    core = min(os.sched_getaffinity(0))
    files = {"cpuset.cpus": str(core)}
    if not _is_unified():
        files = {"cpuset.mems": _text(MOUNT / "cpuset" / "cpuset.mems"), **files}
    with contextlib.ExitStack() as stack:
        try:
            group = stack.enter_context(_group("cpuset", files))
        except OSError as error:
            yield Place(enter=lambda: os.sched_setaffinity(0, {core}), said=f"affinity alone ({error})")
            return

        def enter() -> None:
            (group / "cgroup.procs").write_text("0")
            os.sched_setaffinity(0, {core})

        yield Place(enter=enter, said=f"control group {group}")


@contextlib.contextmanager
def half() -> Generator[Place]:
    """As much time as half of the processors have.

    Raises:
        NoConditionError: neither control groups nor systemd can be asked.
    """
    processors = len(os.sched_getaffinity(0)) / 2
    quota = str(round(processors * PERIOD))
    files = {"cpu.cfs_period_us": str(PERIOD), "cpu.cfs_quota_us": quota}
    if _is_unified():
        files = {"cpu.max": f"{quota} {PERIOD}"}
    with contextlib.ExitStack() as stack:
        try:
            group = stack.enter_context(_group("cpu", files))
        except OSError as error:
            yield _scope(processors, str(error))
            return
        yield Place(enter=lambda: (group / "cgroup.procs").write_text("0"), said=f"control group {group}")


def _is_unified() -> bool:
    """Whether control groups are of version 2, which has one tree for all controllers."""
    return (MOUNT / "cgroup.controllers").exists()


def _text(file: Path) -> str:
    """What a file of a control group says; nothing where there is none."""
    return file.read_text().strip() if file.exists() else ""


@contextlib.contextmanager
def _group(controller: str, files: dict[str, str]) -> Generator[Path]:
    """A control group for whoever writes itself into it, until the block ends.

    Args:
        files: what is written where, in this order.

    Raises:
        OSError: there is no such controller, or it may not be used.
    """
    group = (MOUNT if _is_unified() else MOUNT / controller) / f"graphmill-bench-{controller}-{os.getpid()}"
    group.mkdir()
    try:
        for name, text in files.items():
            (group / name).write_text(text)
        yield group
    finally:
        with contextlib.suppress(OSError):  # a process that is ending still counts; an empty group harms nobody
            group.rmdir()


def _scope(processors: float, why: str) -> Place:
    """A scope of systemd's with a quota.

    Raises:
        NoConditionError: systemd cannot be asked for one.
    """
    prefix = ("systemd-run", "--scope", "--quiet", f"--property=CPUQuota={round(100 * processors)}%", "--")
    if shutil.which(prefix[0]) is None:
        raise NoConditionError(f"no control group ({why}), and there is no systemd-run")
    tried = subprocess.run([*prefix, "true"], capture_output=True, text=True, check=False)
    if tried.returncode:
        raise NoConditionError(f"no control group ({why}), and systemd-run says: {tried.stderr.strip()[:200]}")
    return Place(prefix, said="a scope of systemd's")


#: how a condition is called to how it is made
CONDITIONS: dict[str, Condition] = {
    "quiet": lambda: contextlib.nullcontext(Place()),
    **{f"{kind}-{count}": functools.partial(_beside, kind, count) for kind in neighbours.KINDS for count in (1, 2, 3)},
    "quota": half,
    "one-core": one_core,
}
