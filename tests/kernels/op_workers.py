"""Processes that do pieces of work, one after the other, and are made anew when one crashes, hangs or asks for it.

On a GPU an illegal address loses the context of its process: whatever runs there later fails as well, so another
process goes on.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any, TypeVar

Piece = TypeVar("Piece")

# a context of a driver does not survive a fork
_SPAWN = multiprocessing.get_context("spawn")


def _work(function: Callable[[Any], tuple[Any, bool]], pipe: Connection) -> None:
    while True:
        try:
            piece = pipe.recv()
        except EOFError:
            return
        pipe.send(function(piece))


class _Worker:
    """A process and what it does."""

    def __init__(self, function: Callable[[Any], tuple[Any, bool]]):
        self.pipe, theirs = _SPAWN.Pipe()
        self.process = _SPAWN.Process(target=_work, args=(function, theirs), daemon=True)
        self.process.start()
        theirs.close()
        self.piece: Any = None
        self.begun = 0.0

    def give(self, piece: Any) -> None:
        self.piece, self.begun = piece, time.monotonic()
        self.pipe.send(piece)

    def close(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


def each(
    pieces: Sequence[Piece], function: Callable[[Piece], tuple[Any, bool]], count: int, patience: float
) -> Iterator[tuple[Piece, Any, str]]:
    """What a function makes of each piece, as it comes: (piece, result, "") or (piece, None, what happened instead).

    Args:
        function: of a module; returns the result, and whether its process is of no more use.
        count: processes at a time.
        patience: seconds that a piece may take.
    """
    rest = list(pieces)
    workers: list[_Worker] = []
    try:
        while rest or workers:
            while rest and len(workers) < count:
                workers.append(_Worker(function))
                workers[-1].give(rest.pop(0))
            ready = wait([worker.pipe for worker in workers], timeout=1.0)
            for worker in list(workers):
                result, problem, is_lost = None, "", False
                if worker.pipe in ready:
                    try:
                        result, is_lost = worker.pipe.recv()
                    except EOFError:
                        worker.process.join()
                        problem, is_lost = f"the process ended with {worker.process.exitcode}", True
                elif time.monotonic() - worker.begun > patience:
                    problem, is_lost = f"not done after {patience:.0f} s", True
                else:
                    continue
                yield worker.piece, result, problem
                if is_lost or not rest:
                    workers.remove(worker)
                    worker.close()
                else:
                    with contextlib.suppress(BrokenPipeError):  # then there is an end of file next
                        worker.give(rest.pop(0))
    finally:
        for worker in workers:
            worker.close()
