"""Engines in processes of their own that take turns: A B C A B C ..., all but one stopped at any time."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np

from tests.bench.engines import OURS, UnsupportedError
from tests.bench.versions import Version
from tests.bench.workloads.base import Workload
from tests.models import ROOT

WARMUP, TIMED = 5, 10


class EngineError(Exception):
    """A worker died or could not load its engine; the message has the last line it wrote."""


#: by which libraries are told how they use threads
_OF_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OPENBLAS_THREAD_TIMEOUT")


def environment(threads: int | None) -> dict[str, str]:
    """What every worker starts with: the same number of threads for every library that asks; None: as users have it."""
    left_out = ("PYTHONDONTWRITEBYTECODE", *_OF_THREADS)  # as for users
    kept = {name: value for name, value in os.environ.items() if name not in left_out}
    kept |= {
        "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "", "KERAS_BACKEND": "tensorflow",
    }  # fmt: skip
    return kept if threads is None else kept | dict(zip(_OF_THREADS, (str(threads), str(threads), "4"), strict=True))


class Worker:
    """A process with one engine and one workload, stopped unless it was asked something.

    Args:
        name: of an engine, or of `version`.
        threads: of the engine; None: as many as it takes.
        version: the version of ours that it has; None: this one, if it has ours.
        first_steps: it loads the engine whenever it is asked for a first step, and not before.
        prefix: of its command line.
        enter: called in the new process before its program starts.
    """

    def __init__(
        self,
        name: str,
        workload: str,
        threads: int | None,
        precision: str,
        version: Version | None = None,
        first_steps: bool = False,
        *,
        prefix: Sequence[str] = (),
        enter: Callable[[], object] | None = None,
    ):
        self.name = name
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        command = [sys.executable, "-m", "tests.bench.worker", name if version is None else OURS, workload]
        options = [] if version is None else ["--library", str(version.folder)]
        options += [] if threads is None else ["--threads", str(threads)]
        options += ["--first-steps"] if first_steps else []
        self._process = subprocess.Popen(
            [*prefix, *command, "--precision", precision, *options],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, cwd=ROOT, env=environment(threads),
            text=True, preexec_fn=enter,
        )  # fmt: skip
        self.pid = self._process.pid
        try:
            first = self._answer()
        except EngineError:
            self.close()
            raise
        if "unsupported" in first:
            self.close()
            raise UnsupportedError(first["unsupported"])
        self._process.send_signal(signal.SIGSTOP)

    def burst(
        self, seed: int, folder: Path, warmup: int = WARMUP, timed: int = TIMED, settle: float = 0, least: float = 0
    ) -> Burst:
        """Run a burst; its outputs pass through `folder`. See `tests.bench.worker.burst`."""
        return self._saved(folder, seed=seed, warmup=warmup, timed=timed, settle=settle, least=least)

    def serve(self, seed: int, folder: Path, callers: int, seconds: float, coalesced: bool = False) -> Burst:
        """Have threads call the engine; their outputs pass through `folder`. See `tests.bench.worker.serve`."""
        return self._saved(folder, seed=seed, callers=callers, seconds=seconds, coalesced=coalesced)

    def first_step(self, seed: int, folder: Path) -> Burst:
        """Load the engine and run one step; its outputs pass through `folder`."""
        return self._saved(folder, seed=seed)

    def new_shapes(self, seed: int, folder: Path, count: int) -> Burst:
        """Run steps, each of a new shape; their outputs pass through `folder`. See `tests.bench.worker.new_shapes`."""
        return self._saved(folder, seed=seed, shapes=count)

    def _saved(self, folder: Path, **request: Any) -> Burst:
        save = folder / f"{self.name}.npz"
        told = self.ask(**request, save=str(save))
        with np.load(save) as archive:
            outputs = dict(archive)
        save.unlink()
        return Burst(told["seconds"], outputs, told.get("processor", 0.0), told.get("processors", []))

    def ask(self, **request: Any) -> dict[str, Any]:
        """Let the process go on, ask for a burst, and stop it again."""
        self._process.send_signal(signal.SIGCONT)
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it died; the answer tells why
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        answer = self._answer()
        self._process.send_signal(signal.SIGSTOP)
        return answer

    def peak_mb(self) -> float:
        """The most memory the process had so far."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) / 1024

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._errors):
            if stream is not None and not stream.closed:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if line:
            return json.loads(line)
        self._errors.seek(0)
        said = self._errors.read().decode(errors="replace").strip().rpartition("\n")[2]
        raise EngineError(f"{self.name} stopped with {self._process.wait()}: {said[:400]}")


@dataclass
class Burst:
    """What a burst took.

    Attributes:
        seconds: of each timed run.
        outputs: of the first runs: "RUN.OUTPUT" to array.
        processor: of a first step, seconds of the processors; of callers, seconds a step, all together.
        processors: of steps of new shapes, seconds of the processors, for each.
    """

    seconds: list[float]
    outputs: dict[str, Any]
    processor: float = 0.0
    processors: list[float] = field(default_factory=list[float])

    @property
    def median(self) -> float:
        return median(self.seconds)

    @property
    def mean(self) -> float:
        """What a step takes with the pauses that a few of them have: a process that used up its quota stands still."""
        return fmean(self.seconds)


@dataclass
class Turns:
    """What came of a workload.

    Attributes:
        bursts: engine to its bursts, one for each round; the same round has the same feeds.
        first: engine to the burst before those, the first of its process, with the feeds of round 0.
        reference: TensorFlow's first burst with the same feeds, if it is installed.
        absent: engine to why it has no bursts.
        failed: engine to how it failed; no bursts either.
    """

    bursts: dict[str, list[Burst]] = field(default_factory=dict[str, list[Burst]])
    first: dict[str, Burst] = field(default_factory=dict[str, Burst])
    reference: Burst | None = None
    absent: dict[str, str] = field(default_factory=dict[str, str])
    failed: dict[str, str] = field(default_factory=dict[str, str])


def take_turns(
    workload: Workload,
    engines: list[str],
    reference: bool,
    rounds: int,
    threads: int,
    versions: Mapping[str, Version] | None = None,
) -> Turns:
    """Run the engines in turns, one uncounted round first.

    Args:
        engines: ours first; if that cannot be loaded, no other is.
        reference: whether TensorFlow is there to say what outputs should be.
        versions: which of `engines` are versions of ours.
    """
    versions = versions or {}
    result = Turns()
    workers: dict[str, Worker] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        try:
            for engine in engines:
                try:
                    workers[engine] = Worker(engine, workload.name, threads, workload.precision, versions.get(engine))
                    result.bursts[engine] = []
                except UnsupportedError as error:
                    result.absent[engine] = str(error)
                except EngineError as error:
                    result.failed[engine] = str(error)
                if engine not in workers and engine == engines[0]:
                    return result
            for seed in range(-1, rounds):
                _round(result, workers, seed, folder)
        finally:
            for worker in workers.values():
                worker.close()
        if reference:
            result.reference = result.first.get("tensorflow") or _reference(workload, threads, folder)
    return result


def _round(result: Turns, workers: dict[str, Worker], seed: int, folder: Path) -> None:
    """One burst of every engine; those of the round -1 are not counted. An engine that fails is out."""
    for engine in list(workers):
        try:
            burst = workers[engine].burst(max(seed, 0), folder)
        except EngineError as error:
            result.failed[engine] = str(error)
            workers.pop(engine).close()
            del result.bursts[engine]
        else:
            if seed >= 0:
                result.bursts[engine].append(burst)
            else:
                result.first[engine] = burst


def _reference(workload: Workload, threads: int, folder: Path) -> Burst:
    """TensorFlow's first burst, where it takes no part."""
    worker = Worker("tensorflow", workload.name, threads, "f32")
    try:
        return worker.burst(0, folder, warmup=2, timed=1)
    finally:
        worker.close()
