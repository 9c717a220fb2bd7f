"""How many processors other processes leave to this one, found anew while it runs.

A loop or primitive that is split over threads waits for the last of them. Where another program keeps a processor busy,
one of them is descheduled for milliseconds at a time, and two threads take many times as long as one (measured: 5 times
for a recurrent network on two processors, 10 beside several busy programs). So no more threads are used than processors
are free: those that this process may run on, by its affinity and the quotas of its control groups, less what others
have used of them in the last moments (`/proc/stat`). Affinity and quotas are facts and followed at once, what others
use is a sign that has to last. Processes that are nicer than this one give way, and are not counted.
"""

from __future__ import annotations

import functools
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from toolkit.forks import free_in_children

#: seconds between two looks, for /proc/stat counts in hundredths
INTERVAL = 0.25
#: share of the time between two looks that this process must have run: what was while it waited is no sign of what is
LEAST_OWN = 0.05
#: seconds in which all looks must find fewer processors free before fewer threads are used: what is compiled for fewer
#: is worth its time only when the others stay
PATIENCE = 0.5
#: a thread is given up where less than this share of its processor is left, and comes back with this much
GIVEN_UP, BACK = 0.5, 0.75

_STAT = Path("/proc/stat")
_GROUPS = Path("/proc/self/cgroup")
_MOUNT = Path("/sys/fs/cgroup")
#: columns of /proc/stat, in hundredths of seconds
_BUSY = (1, 3, 6, 7, 8)  # user, system, irq, softirq, steal
_NICE = 2  # user time of processes that are nicer than others


@dataclass(frozen=True, slots=True)
class Usage:
    """Seconds since some moment.

    Attributes:
        clock: that have passed.
        busy: in which the processors that this process may use ran something.
        own: in which they ran this process.
        processors: how many these are.
    """

    clock: float
    busy: float
    own: float
    processors: int


def processors() -> int:
    """How many this process may run on now."""
    if not hasattr(os, "sched_getaffinity"):  # not every system has affinities
        return os.cpu_count() or 1
    return len(os.sched_getaffinity(0))


def usage() -> Usage | None:
    """What the processors have done until now; None where the system does not tell."""
    try:
        lines = _STAT.read_bytes().split(b"\n")
        allowed = os.sched_getaffinity(0)
        counted = (*_BUSY, _NICE) if os.getpriority(os.PRIO_PROCESS, 0) > 0 else _BUSY
        ticks = 0
        for line in lines:
            if line.startswith(b"cpu") and line[3:4].isdigit():
                columns = line.split()
                if int(columns[0][3:]) in allowed:
                    ticks += sum(int(columns[each]) for each in counted)
        return Usage(time.monotonic(), ticks / os.sysconf("SC_CLK_TCK"), time.process_time(), len(allowed))
    except (OSError, ValueError, IndexError):
        return None


@functools.lru_cache(1)
def limit_files(groups: str) -> tuple[tuple[Path, ...], ...]:
    """The files that limit a process: for each control group one of version 2, or quota and period of version 1.

    A group's limit holds for the groups in it, too. What is above the root that this process sees has no files.

    Args:
        groups: the text of /proc/self/cgroup.
    """
    found: list[tuple[Path, ...]] = []
    for line in groups.splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        names = ("cpu.cfs_quota_us", "cpu.cfs_period_us") if controllers else ("cpu.max",)
        root = _MOUNT / "cpu" if controllers else _MOUNT
        group = root / path.lstrip("/")
        if ".." in group.parts:  # outside of what this process sees
            group = root
        for folder in (group, *group.parents):
            if folder.is_relative_to(root) and (folder / names[0]).exists():
                found.append(tuple(folder / name for name in names))
    return tuple(found)


def quota() -> float:
    """How many processors' time this process may take by its control groups; infinity where they have no limit."""
    least = float("inf")
    try:
        for files in limit_files(_GROUPS.read_text(encoding="utf8")):
            limit, period = " ".join(path.read_text(encoding="ascii") for path in files).split()
            if limit not in ("max", "-1"):
                least = min(least, int(limit) / int(period))
    except (OSError, ValueError, ZeroDivisionError):
        pass
    return least


def free_between(before: Usage, after: Usage) -> float:
    """How many processors others left free."""
    others = max(0.0, (after.busy - before.busy) - (after.own - before.own))
    return after.processors - others / (after.clock - before.clock)


class Load:
    """How many threads to use.

    Attributes:
        due: when the next look is, on `time.monotonic`'s clock.

    Args:
        look: `usage`, or what stands for it.
        limit: `quota`, or what stands for it.
        clock: seconds.
    """

    def __init__(
        self,
        look: Callable[[], Usage | None] = usage,
        limit: Callable[[], float] = quota,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._look, self._limit, self._clock = look, limit, clock
        self._lock = threading.Lock()
        free_in_children(self, "_lock")
        self._before = look()
        self.due = clock() + INTERVAL
        self._crowded = 0.0  # seconds for which looks have wanted fewer threads than are used
        self._used: int | None = None

    def threads(self, most: int) -> int:
        """How many of so many threads have a processor of their own, at least 1; costs next to nothing."""
        if self._clock() >= self.due and self._lock.acquire(blocking=False):
            try:
                self._update(most)
            finally:
                self._lock.release()
        return most if self._used is None else min(most, self._used)

    def _update(self, most: int) -> None:
        before, now = self._before, self._look()
        self._before, self.due = now, self._clock() + INTERVAL
        if before is None or now is None:
            return
        seconds = now.clock - before.clock
        used = most if self._used is None else min(most, self._used)
        free = allowed = min(now.processors, self._limit())
        certain = max(1, min(most, int(allowed + GIVEN_UP)))
        # of other processors, and of moments in which it waited, there is no sign
        if now.processors == before.processors and seconds and now.own - before.own >= LEAST_OWN * seconds:
            free = min(free_between(before, now), allowed)
        elif used <= certain and now.processors == before.processors:
            return
        fewer, more = int(free + GIVEN_UP), int(free + 1 - BACK)
        wanted = max(1, min(most, fewer if fewer < used else max(more, used)))
        self._crowded = self._crowded + seconds if wanted < used else 0.0
        if used > certain:
            wanted = min(certain, wanted) if self._crowded >= PATIENCE else certain
        if wanted > used or used > certain or self._crowded >= PATIENCE:
            self._used, self._crowded = (None if wanted == most else wanted), 0.0


LOAD = Load()
