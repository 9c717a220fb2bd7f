"""How the benchmark is run, from the command line to every suite."""

from __future__ import annotations

import os
from dataclasses import dataclass

from tests.bench.engines import PEERS


@dataclass(frozen=True)
class Settings:
    """What every suite is told.

    Attributes:
        rounds: counted rounds of every side.
        threads: of each engine.
        peers: the engines beside ours that take part, all installed.
        only: texts of which a workload's name must contain one; empty: all workloads.
    """

    rounds: int = 7
    threads: int = os.cpu_count() or 1
    peers: tuple[str, ...] = PEERS
    only: tuple[str, ...] = ()

    def wants(self, name: str) -> bool:
        return not self.only or any(text in name for text in self.only)
