"""What keeps a machine busy beside a measurement: `python -m tests.bench.neighbours loop|fork` until its parent ends.

loop   computes and never waits
fork   starts a child that fills memory and ends, again and again: what builds, shells and test runners do
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
from collections.abc import Generator
from typing import NoReturn

from tests.models import ROOT

KINDS = ("loop", "fork")
#: bytes that a child of `fork` writes to, page by page
FORKED_BYTES = 64 << 20


def loop() -> NoReturn:
    """Compute without end."""
    while True:
        for _ in range(1_000_000):
            pass


def fork() -> NoReturn:
    """Start children that fill memory, one after the other, without end."""
    while True:
        child = os.fork()
        if not child:
            memory = bytearray(FORKED_BYTES)
            for page in range(0, FORKED_BYTES, 4096):
                memory[page] = 1
            os._exit(0)
        os.waitpid(child, 0)


@contextlib.contextmanager
def running(kind: str, count: int) -> Generator[list[int]]:
    """So many neighbours of a kind, by their process ids, until the block ends."""
    started: list[subprocess.Popen[str]] = []
    try:
        for _ in range(count):
            command = [sys.executable, "-m", "tests.bench.neighbours", kind]
            started.append(subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT, text=True))
        for process in started:
            assert process.stdout is not None
            if process.stdout.readline() != "running\n":
                raise RuntimeError(f"a neighbour '{kind}' ended with {process.wait()} before it had begun")
        yield [process.pid for process in started]
    finally:
        for process in started:
            process.kill()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.neighbours")
    parser.add_argument("kind", choices=KINDS)
    kind = parser.parse_args().kind
    from tests.bench.worker import die_with_parent

    die_with_parent()
    print("running", flush=True)
    (loop if kind == "loop" else fork)()


if __name__ == "__main__":
    main()
