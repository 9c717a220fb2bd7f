"""Runs a command beside loops that never end, on each core that this process may use or on the first N of them:
busy.py [--cores N] COMMAND [ARGUMENT ...]

The loops end with the command, and when this process is interrupted, terminated or killed: each is a child that looks
now and then whether its parent is still there. The exit status is the command's.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import NoReturn


def _stop(number: int, frame: object) -> NoReturn:
    sys.exit(128 + number)


def _spin(core: int, parent: int) -> NoReturn:
    """Keep a core busy while the parent lives."""
    os.sched_setaffinity(0, {core})
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    while os.getppid() == parent:
        for _ in range(1_000_000):
            pass
    os._exit(0)


def main(command: list[str]) -> int:
    """Run the command; returns its exit status."""
    cores = sorted(os.sched_getaffinity(0))
    if command[:1] == ["--cores"] and command[1:2] and command[1].isdecimal():
        cores, command = cores[: int(command[1])], command[2:]
    if not command:
        print("busy.py: expected a command, for example: python3 tests/busy.py sh tests/run.sh", file=sys.stderr)
        return 2
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # a shell's background jobs begin with SIGINT ignored
        signal.signal(number, _stop)
    parent = os.getpid()
    loops: list[int] = []
    running: subprocess.Popen[bytes] | None = None
    try:
        for core in cores:
            loop = os.fork()
            if not loop:
                _spin(core, parent)
            loops.append(loop)
        running = subprocess.Popen(command)
        status = running.wait()
        return status if status >= 0 else 128 - status
    finally:
        if running is not None and running.poll() is None:
            running.terminate()
            running.wait()
        for loop in loops:
            os.kill(loop, signal.SIGKILL)
            os.waitpid(loop, 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
