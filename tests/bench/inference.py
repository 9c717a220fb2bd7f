"""Batch inference on Ray, beside the same processes without Ray: the sum of their throughputs is the aim.

Both sides run the same shards with the same code, `ShardActor`, a process for each processor: Ray's actors are given
shards as they are free, the others a share of them each, which they run from one end to the other. What the others
take is reckoned from the sum of their throughputs while all of them run.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from tests.bench.measure import Row, alternate, compare
from toolkit.cluster.ray.actor import ActorSettings
from toolkit.cluster.ray.inference.actor import Work
from toolkit.cluster.ray.inference.pool import ShardPool
from toolkit.policy.rules import Policy
from toolkit.runtime.jobs.options import RunOptions
from toolkit.runtime.shards.files import Shard, find_shards
from toolkit.runtime.shards.manifest import Manifest

#: shards, and images in each: so many that a shard is seconds' work, and so few that handing them out shows
SIZES = {"large shards": (24, 8000), "small shards": (96, 200)}
#: of the processes' summed throughput, at least
_SHARE = 0.9


def run(rounds: int = 7) -> Iterator[Row]:
    """The rows of this suite."""
    processes = os.cpu_count() or 1
    with ExitStack() as until_the_end:
        folder = Path(until_the_end.enter_context(tempfile.TemporaryDirectory()))
        work = Work(_model(folder), None, RunOptions(fetches=["probabilities"], batch=100, threads=1), ("x",))
        pool = ShardPool("", None, work, ActorSettings(Policy.everything()), lambda _line: None)
        until_the_end.callback(pool.close)
        others = [Beside(work) for _ in range(processes)]
        for each in others:
            until_the_end.callback(each.close)
        for size, (count, rows) in SIZES.items():
            shards = _shards(folder / size.replace(" ", "-"), count, rows)
            numbers = itertools.count()

            def ours(shards: list[Shard] = shards, numbers: Iterator[int] = numbers) -> float:
                out = folder / f"out-{next(numbers)}"
                manifest = Manifest(str(out), {}, shards)
                start = time.perf_counter()
                assert not pool.run(manifest)
                return time.perf_counter() - start

            def theirs(shards: list[Shard] = shards, numbers: Iterator[int] = numbers) -> float:
                out = folder / f"out-{next(numbers)}"
                for number, each in enumerate(others):
                    each.begin(shards[number::processes], out)
                return len(shards) / sum(each.throughput() for each in others)

            figures = alternate(ours, theirs, rounds)
            target = 1 / _SHARE if size == "large shards" else None
            yield compare(f"{count} {size} of {rows:,} digits", f"{processes} processes", "s", figures, target)


def _model(folder: Path) -> str:
    """The digits CNN, frozen, as a file."""
    from commands.main import run as graphmill

    samples = Path(__file__).resolve().parents[2] / "samples"
    meta, checkpoint, frozen = str(folder / "net.meta"), str(folder / "ckpt"), str(folder / "net.pb")
    for command in (
        ["build", str(samples / "digits_cnn.yaml"), "-o", meta],
        ["run", meta, "--init", "--target", "train", "--steps", "1", "--save", checkpoint,
         "--feed", f"x={samples}/digits.npz:x_test", "--feed", f"y={samples}/digits.npz:y_test"],
        ["freeze", meta, "--checkpoint", checkpoint, "--fetch", "probabilities", "-o", frozen],
    ):  # fmt: skip
        assert graphmill(command) == 0, command
    return frozen


def _shards(folder: Path, count: int, rows: int) -> list[Shard]:
    folder.mkdir()
    with np.load(Path(__file__).resolve().parents[2] / "samples" / "digits.npz") as found:
        images = np.resize(found["x_train"], (rows, *found["x_train"].shape[1:]))
    for number in range(count):
        np.save(folder / f"{number:03}.npy", images)
    return find_shards({"x": f"{folder}/*.npy"}, {})


class Beside:
    """A process without Ray that runs shards as an actor does."""

    def __init__(self, work: Work):
        settings = json.dumps({"source": work.source, "fetches": list(work.options.fetches), "batch": 100})
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.bench.inference_process", settings],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},  # as Ray has it for an actor of one processor
        )  # fmt: skip

    def begin(self, shards: list[Shard], out: Path) -> None:
        """Have it run some."""
        rows: list[Any] = [[dict(each.feeds), str(out / f"{each.name}.npz")] for each in shards]
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(rows) + "\n")
        self._process.stdin.flush()

    def throughput(self) -> float:
        """Shards a second, once it has run them."""
        assert self._process.stdout is not None
        return float(self._process.stdout.readline())

    def close(self) -> None:
        """The end."""
        self._process.kill()
        self._process.wait()
