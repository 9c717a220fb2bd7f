"""Machines that are not one's own: with neighbours, a quota of processor time, or one processor of several.

A condition says how processes of engines are started in it. Quotas are those of a control group, version 2 or 1, where
one may be made; else those of a scope that systemd makes; else there is none, and that is said.
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
def _one_core() -> Generator[Place]:
    core = min(os.sched_getaffinity(0))
    yield Place(enter=lambda: os.sched_setaffinity(0, {core}))


@contextlib.contextmanager
def half() -> Generator[Place]:
    """As much time as half of the processors have.

    Raises:
        NoConditionError: neither control groups nor systemd can be asked.
    """
    processors = len(os.sched_getaffinity(0)) / 2
    try:
        group = _new_group(processors)
    except OSError as error:
        yield _scope(processors, str(error))
        return
    try:
        yield Place(enter=lambda: (group / "cgroup.procs").write_text("0"), said=f"control group {group}")
    finally:
        with contextlib.suppress(OSError):  # a process that is ending still counts; an empty group harms nobody
            group.rmdir()


def _new_group(processors: float) -> Path:
    """A control group with a quota, for whoever writes itself into it.

    Raises:
        OSError: there is no such controller, or it may not be used.
    """
    unified = (MOUNT / "cgroup.controllers").exists()
    group = (MOUNT if unified else MOUNT / "cpu") / f"graphmill-bench-{os.getpid()}"
    group.mkdir()
    try:
        if unified:
            (group / "cpu.max").write_text(f"{round(processors * PERIOD)} {PERIOD}")
        else:
            (group / "cpu.cfs_period_us").write_text(str(PERIOD))
            (group / "cpu.cfs_quota_us").write_text(str(round(processors * PERIOD)))
    except OSError:
        group.rmdir()
        raise
    return group


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
    "one-core": _one_core,
}
