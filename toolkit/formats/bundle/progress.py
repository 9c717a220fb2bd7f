"""How far a long job is: told by whatever moves bytes to whoever asked, without passing it through every call."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

#: called with the bytes done so far and all bytes
Progress = Callable[[int, int], None]
_reporting: ContextVar[Progress | None] = ContextVar("_reporting", default=None)


@contextmanager
def report_to(progress: Progress) -> Generator[None]:
    """Within the block, surgery, conversions and comparisons say how far they are."""
    token = _reporting.set(progress)
    try:
        yield
    finally:
        _reporting.reset(token)


class Counter:
    """Counts the bytes of a job that threads may share, and reports them.

    Args:
        total: bytes there are in all.
    """

    def __init__(self, total: int):
        self._total = total
        self._done = 0
        self._lock = threading.Lock()
        self._report = _reporting.get()

    def __call__(self, pieces: Iterable[bytes]) -> Iterable[bytes]:
        """Pass pieces on and count them."""
        return pieces if self._report is None else self._counted(pieces)

    def _counted(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        for piece in pieces:
            yield piece
            self.add(len(piece))

    def add(self, size: int) -> None:
        """Count bytes that were done at once."""
        if self._report is None:
            return
        with self._lock:
            self._done += size
            self._report(min(self._done, self._total), self._total)
