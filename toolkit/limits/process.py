"""What holds for the whole process of `graphmill run`, beside what is accounted for."""

from __future__ import annotations

import ctypes
import os
import resource
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from toolkit.errors import DeadlineExceededError
from toolkit.limits.allowance import Allowance
from toolkit.limits.exhaustion import exhaustion
from toolkit.limits.limits import Limits

# threads' stacks, compiled code, buffers of libraries: mapped by every run, little of it ever used
_SLACK = 1 << 30
# numbers of mallopt: from which size on a block is memory of its own, and how much may be free at the end
_M_MMAP_THRESHOLD, _M_TRIM_THRESHOLD = -3, -1
# the most that every release of the GNU C library takes (half of a HEAP_MAX_SIZE): larger than nearly all tensors of
# models, of which the first step of a network makes several copies, one after the other
_KEPT_BLOCK = 32 << 20
# some such blocks
_KEPT = 4 * _KEPT_BLOCK


@contextmanager
def bounded(limits: Limits | None) -> Generator[Allowance | None]:
    """Within this, the process has these limits, and no more memory than the machine has; at a deadline it ends.

    Raises:
        OpError: the limits were exceeded.
    """
    if limits is None:
        with _bounded_memory(None):
            try:
                yield None
            except MemoryError as error:
                raise exhaustion(error, "the run") or error from None
        return
    allowance = Allowance(limits, lambda message: end_process(message, DeadlineExceededError.exit_code))
    try:
        with _bounded_memory(limits), allowance.running(tensors=False):
            yield allowance
    finally:
        allowance.close()


@contextmanager
def _bounded_memory(limits: Limits | None) -> Generator[None]:
    """Have the system refuse memory that is beyond the limit, or beyond what the machine has.

    What is not accounted for fails then with MemoryError instead of driving the machine into its swap. Only Linux
    counts what matters here (private memory that can be written); elsewhere nothing is done.
    """
    if not sys.platform.startswith("linux"):
        yield
        return
    before, hard = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = physical_memory() + _SLACK
    if limits is not None and limits.memory is not None:
        wanted = min(wanted, _data() + limits.memory + _SLACK)
    known = [limit for limit in (before, hard) if limit != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_DATA, (min([wanted, *known]), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (before, hard))


def keep_freed_memory() -> None:
    """Have memory that is freed wait for the next that wants some, instead of going back to the system at once.

    Memory that is touched for the first time is most of what a copy of a weight costs, and the GNU C library has every
    block of 128 kB and more as memory of its own until it has seen one freed. Other libraries stay as they are.
    """
    mallopt: Any = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _KEPT_BLOCK)
        mallopt(_M_TRIM_THRESHOLD, _KEPT)


def physical_memory() -> int:
    """Bytes that this process can have at most: the machine's memory and swap, or its control group's share."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for line in _lines("/proc/meminfo"):
        if line.startswith("SwapTotal:"):
            total += int(line.split()[1]) * 1024
    for place in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        for line in _lines(place):
            if line.isdigit():
                total = min(total, int(line))
    return total


def resident_memory() -> int:
    """Bytes of this process that are in memory now."""
    for line in _lines("/proc/self/status"):
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return 0


def _data() -> int:
    """Bytes of private memory that are mapped now."""
    for line in _lines("/proc/self/status"):
        if line.startswith("VmData:"):
            return int(line.split()[1]) * 1024
    return 0


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []


def end_process(message: str, code: int) -> None:
    """End at once, whatever runs in other threads; files are written whole or not at all, so none is left half."""
    os.write(2, f"graphmill: error: {message}\n".encode(errors="backslashreplace"))
    os._exit(code)
