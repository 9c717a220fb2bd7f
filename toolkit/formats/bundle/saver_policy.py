"""Which checkpoints of a folder stay and which go, as TensorFlow's Saver decides it.

`RetentionPolicy` keeps the state that tf.compat.v1.train.Saver keeps in memory; `folder.plan_cleanup` applies the same
rules to a folder after the fact.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from toolkit.formats.bundle import paths
from toolkit.formats.bundle import state as states
from toolkit.formats.bundle.folder import files_of, remove_checkpoint

_SECONDS_PER_HOUR = 3600.0


@dataclass
class RetentionPolicy:
    """A Saver's bookkeeping.

    Attributes:
        max_to_keep: how many recent checkpoints stay; 0 or None keeps all, and lists only the latest.
        keep_every_n_hours: of those that would go, one for every so many hours stays for good.
        latest_filename: the name of the state file.
        relative: write paths relative to the folder.
        timestamps: write when each was saved, as TensorFlow 2's CheckpointManager does.
        meta_graph_suffix: what the MetaGraph beside a checkpoint ends in.
        last: the recent checkpoints, oldest first, with the times they were saved at.
    """

    max_to_keep: int | None = 5
    keep_every_n_hours: float = 10000.0
    latest_filename: str | None = None
    relative: bool = False
    timestamps: bool = False
    meta_graph_suffix: str = "meta"
    clock: Callable[[], float] = time.time
    last: list[tuple[str, float]] = field(default_factory=list[tuple[str, float]])
    _next_kept: float = math.nan
    _last_preserved: float | None = None

    def __post_init__(self) -> None:
        self._last_preserved = self.clock()
        self._next_kept = self._last_preserved + self.keep_every_n_hours * _SECONDS_PER_HOUR

    @property
    def last_checkpoints(self) -> list[str]:
        """The checkpoints that have not been deleted, oldest first."""
        return [prefix for prefix, _ in self.last]

    def recover(self, prefixes: Sequence[str]) -> None:
        """Take over checkpoints of an earlier run; those that do not exist are left out."""
        self.last = []
        for prefix in prefixes:
            files = files_of(prefix)
            if files:
                self.last.append((prefix, max(paths.size_and_time(file)[1] for file in files)))

    def saved(self, prefix: str, keep_meta_graph: bool = False) -> list[str]:
        """Note a checkpoint that was just saved: write the state file, then remove what is too much.

        In this order a crash at any point leaves the new checkpoint or the old one named as latest, and whole.

        Returns:
            The checkpoints that were removed.

        Raises:
            OpError: the state file cannot be written.
        """
        gone: list[tuple[str, float]] = []
        if self.max_to_keep:  # a Saver that keeps everything keeps no list either
            self.last = [item for item in self.last if item[0] != prefix]
            self.last.append((prefix, self.clock()))
            if len(self.last) > self.max_to_keep:  # one for each that comes, however many were taken over
                gone.append(self.last.pop(0))
        removed: list[str] = []
        for old, saved_at in gone:
            if saved_at > self._next_kept:
                # As TensorFlow counts: the next one is due so many hours after this one was due, not saved.
                self._next_kept += self.keep_every_n_hours * _SECONDS_PER_HOUR
                self._last_preserved = saved_at
            else:
                removed.append(old)
        self.write_state(prefix)
        for old in removed:
            remove_checkpoint(old, keep_meta_graph, self.meta_graph_suffix)
        return removed

    def write_state(self, latest: str) -> None:
        """Write the state file of the folder that the latest checkpoint is in."""
        states.write_state(
            paths.split(latest)[0],
            latest,
            self.last_checkpoints,
            [at for _, at in self.last] if self.timestamps else (),
            self._last_preserved if self.timestamps else None,
            self.latest_filename,
            self.relative,
        )
