"""How many threads the libraries of this backend use."""

from __future__ import annotations

import os
import threading
from time import monotonic

from toolkit.kernels.cpu import openblas
from toolkit.kernels.cpu.onednn.library import set_threads, threads
from toolkit.target.load import LOAD, processors

#: environment variables by which a user says how many threads there are: so many there are, whatever else runs
_CHOSEN = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")


class Threads:
    """How many threads oneDNN uses, which OpenMP keeps for each thread that calls it.

    Attributes:
        is_set: somebody has chosen a number, so everybody must say theirs.
        free: how many a step may use beside what other processes do (`toolkit.target.load`); None for the default.
        is_chosen: the user has said how many, in the environment.
    """

    def __init__(self) -> None:
        self.is_set = False
        self.free: int | None = None
        self._default: int | None = None
        self._of_thread = threading.local()
        self.is_chosen = any(each in os.environ for each in _CHOSEN)

    @staticmethod
    def available() -> int:
        """How many the library would use now; 1 where it is not there."""
        return threads()

    def look(self) -> None:
        """Find out how many threads steps may use now (`free`); for the beginning of each."""
        if monotonic() < LOAD.due or self.is_chosen or os.cpu_count() == 1:
            return
        if self._default is None:
            self._default = threads()
        first = max(self._default, openblas.threads())
        most = max(first, processors())  # which may be more by now than when the libraries were loaded
        found = LOAD.threads(most)
        self.free = None if found == most == first else found

    def use(self, count: int | None) -> None:
        """For what this thread runs now: so many, or the default."""
        if not self.is_set and count is None:
            return
        if self._default is None:
            self._default = threads()
        self.is_set = True
        wanted = count or self._default
        if getattr(self._of_thread, "count", None) != wanted:
            set_threads(wanted)
            self._of_thread.count = wanted
            openblas.set_threads(count)


THREADS = Threads()
