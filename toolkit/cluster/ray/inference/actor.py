"""Runs one shard after another, in a process that Ray gives it: reads, computes, writes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolkit.cluster.ray.actor import ActorSettings, enter
from toolkit.cluster.ray.answers import Failure
from toolkit.errors import UsageError
from toolkit.formats.arrays import output
from toolkit.runtime.jobs.loading import load
from toolkit.runtime.jobs.options import RunOptions
from toolkit.runtime.jobs.passes import Passes
from toolkit.runtime.shards.reading import read_source


@dataclass(frozen=True, slots=True)
class Work:
    """What all shards have in common.

    Attributes:
        source: the model's file or folder, where the actors are.
        tags: of a SavedModel.
        options: of the run; its feeds are a shard's.
        cut: the names of what shards have of their own, which batches are cut of.
    """

    source: str
    tags: tuple[str, ...] | None
    options: RunOptions
    cut: tuple[str, ...]


class ShardActor:
    """One process.

    Args:
        settings: of all of them.
    """

    def __init__(self, work: Work, settings: ActorSettings):
        enter(settings)
        self._work = work
        self._passes: Passes | None = None

    def ping(self) -> int:
        """The number of its process."""
        return os.getpid()

    def run(self, feeds: Mapping[str, str], destination: str) -> Any:
        """Run a shard and write its results, in one piece; how many rows there are, or a `Failure`."""
        try:
            return self._run(feeds, destination)
        except Exception as error:
            return Failure.of(error)

    def _run(self, feeds: Mapping[str, str], destination: str) -> int:
        work = self._work
        if self._passes is None:
            model = load(work.source, work.tags).model
            self._passes = Passes(model, work.options, lambda _line: None)
        read = {name: read_source(name, source) for name, source in feeds.items()}
        rows = _rows({name: read[name] for name in work.cut})
        found = self._passes.run(read, rows)
        path = Path(destination)
        path.parent.mkdir(parents=True, exist_ok=True)
        output.write_arrays(path, found)
        return rows


def _rows(cut: Mapping[str, Any]) -> int:
    """How many examples a shard has.

    Raises:
        UsageError: its arrays have none, or different numbers of them.
    """
    counts = {name: len(array) if getattr(array, "ndim", 0) else 0 for name, array in cut.items()}
    if len(set(counts.values())) > 1:
        told = ", ".join(f"{count} of '{name}'" for name, count in counts.items())
        raise UsageError(f"the inputs of a shard have different numbers of rows: {told}")
    return next(iter(counts.values()), 0)
