"""How the benchmark is run, from the command line to every suite."""

from __future__ import annotations

import os
from dataclasses import dataclass

from tests.bench.engines import PEERS
from tests.bench.versions import Version


@dataclass(frozen=True)
class Settings:
    """What every suite is told.

    Attributes:
        rounds: counted rounds of every side.
        threads: of each engine.
        peers: the engines beside ours that take part, all installed.
        only: texts of which a workload's name must contain one; empty: all workloads.
        against: another version of graphmill, which takes part in every workload.
        conditions: of the suite busy, by name (`tests.bench.conditions`); empty: all.
        seconds: of the suite cuda: rows that would begin later are left out.
    """

    rounds: int = 7
    threads: int = os.cpu_count() or 1
    peers: tuple[str, ...] = PEERS
    only: tuple[str, ...] = ()
    against: Version | None = None
    conditions: tuple[str, ...] = ()
    seconds: float = 150.0

    def wants(self, name: str) -> bool:
        return not self.only or any(text in name for text in self.only)

    @property
    def versions(self) -> dict[str, Version]:
        """The other versions of ours, by the names that their rows have."""
        return {} if self.against is None else {self.against.name: self.against}

    @property
    def sides(self) -> tuple[str, ...]:
        """Everybody beside ours: peers, then versions."""
        return (*self.peers, *self.versions)
