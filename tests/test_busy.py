"""The loops of `sh tests/machine.sh busy` run beside the tests and never outlive them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

BUSY = str(Path(__file__).parent / "busy.py")
# prints the loops' process ids: what shares its parent, itself aside
_SIBLINGS = (
    "import os, sys, time\n"
    "parent = os.getppid()\n"
    "children = open(f'/proc/{parent}/task/{parent}/children').read().split()\n"
    "print(*(child for child in children if child != str(os.getpid())), flush=True)\n"
)


def _is_alive(process: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[:1]
    except OSError:
        return False


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="reads /proc")
@pytest.mark.parametrize("how", ["it ends", "SIGINT", "SIGTERM", "SIGKILL", "on one core"])
def test_no_loop_outlives_the_tests(how: str) -> None:
    alone = how == "on one core"
    ending = "sys.exit(7)" if alone or how == "it ends" else "sys.stdin.read()"
    command = [sys.executable, BUSY, *(["--cores", "1"] if alone else []), sys.executable, "-c", _SIBLINGS + ending]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as busy:
        assert busy.stdout is not None and busy.stdin is not None
        loops = [int(word) for word in busy.stdout.readline().split()]
        assert len(loops) == (1 if alone else len(os.sched_getaffinity(0)))
        if how.startswith("SIG"):
            busy.send_signal(signal.Signals[how])
        status = busy.wait(300)
        assert status == {"it ends": 7, "on one core": 7, "SIGINT": 130, "SIGTERM": 128 + 15, "SIGKILL": -9}[how]
        for loop in loops:  # after SIGKILL they see by themselves that nobody waits for them
            while _is_alive(loop):
                os.sched_yield()
        busy.stdin.close()


def test_a_command_is_needed() -> None:
    done = subprocess.run([sys.executable, BUSY], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "expected a command" in done.stderr
