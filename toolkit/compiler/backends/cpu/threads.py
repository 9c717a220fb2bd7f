"""How many threads the libraries of this backend use."""

from __future__ import annotations

import threading

from toolkit.kernels.cpu.onednn.library import set_threads, threads


class Threads:
    """How many threads oneDNN uses, which OpenMP keeps for each thread that calls it.

    Attributes:
        is_set: somebody has chosen a number, so everybody must say theirs.
    """

    def __init__(self) -> None:
        self.is_set = False
        self._of_thread = threading.local()

    @staticmethod
    def available() -> int:
        """How many the library would use now; 1 where it is not there."""
        return threads()

    def use(self, count: int | None) -> None:
        """For what this thread runs now: so many, or the default."""
        if not self.is_set and count is None:
            return
        if not self.is_set:
            self._default = threads()
            self.is_set = True
        wanted = count or self._default
        if getattr(self._of_thread, "count", None) != wanted:
            set_threads(wanted)
            self._of_thread.count = wanted


THREADS = Threads()
