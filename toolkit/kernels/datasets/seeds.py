"""Seeds of iterations: one generator hands every new iteration its own pair."""

from __future__ import annotations

import threading

from toolkit.forks import free_in_children
from toolkit.kernels.random.philox import WordStream


class SeedGenerator:
    """Seeds for successive iterations.

    Args:
        seed, seed2: both zero: from the system's entropy.
        reshuffle: a new pair for each iteration, drawn from the seeds; otherwise the seeds themselves.
    """

    def __init__(self, seed: int, seed2: int, reshuffle: bool):
        self._seeds = (seed, seed2)
        self._random = WordStream.seeded(seed, seed2)
        self._reshuffle = reshuffle
        self._lock = threading.Lock()
        free_in_children(self, "_lock")

    def next(self) -> tuple[int, int]:
        if not self._reshuffle:
            return self._seeds
        with self._lock:
            return self._random.next(), self._random.next()


class NoSeedGenerator:
    """What DummySeedGenerator's handle stands for: the dataset makes its own."""
