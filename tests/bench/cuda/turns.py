"""Processes of engines that make themselves ready beside each other, and are stopped while another one is measured.

Compiling takes the peers longer than running, so the processes of several rows get ready at once; each has a group of
its own, so that whatever it starts is stopped with it.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from tests.models import ROOT


class CudaEngineError(Exception):
    """An engine failed; the message is one line."""


class CudaWorker:
    """A process with one engine and one workload.

    Attributes:
        name: of the engine.
        note, card: what it says about itself and about the GPU once it is ready.
        prepared: seconds that it took to get ready.
    """

    def __init__(self, name: str, workload: str, device: str, folder: Path):
        self.name, self.note, self.card, self.prepared = name, "", "", 0.0
        self._results = folder / f"{abs(hash((name, workload)))}.npz"
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        command = [sys.executable, "-m", "tests.bench.cuda.worker", name, workload, device, str(self._results)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
        # compiling in many processes at once: none of them takes all processors
        environment.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "2")
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, cwd=ROOT, env=environment,
            text=True, start_new_session=True,
        )  # fmt: skip
        self._answers: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._first: dict[str, Any] | None = None
        self.begun = time.monotonic()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._answers.put(line)
        self._answers.put("")

    def is_ready(self) -> bool:
        """Whether it has made itself ready.

        Raises:
            CudaEngineError: it failed.
        """
        if self._first is None:
            try:
                self._first = self._answer(0)
            except queue.Empty:
                return False
            self.note, self.card, self.prepared = (self._first[key] for key in ("note", "card", "seconds"))
        return True

    def results(self) -> dict[str, Any]:
        with np.load(self._results) as archive:
            return dict(archive)

    def ask(self, timeout: float, **request: Any) -> float | None:
        """The seconds that it measures.

        Raises:
            CudaEngineError: it failed, or took too long.
        """
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it died; the answer tells why
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        try:
            return self._answer(timeout)["seconds"]
        except queue.Empty:
            raise CudaEngineError(f"no answer within {timeout:.0f} s") from None

    def _answer(self, timeout: float) -> dict[str, Any]:
        line = self._answers.get(timeout=timeout) if timeout else self._answers.get_nowait()
        if not line:
            self._errors.seek(0)
            said = self._errors.read().decode(errors="replace").strip().rpartition("\n")[2]
            raise CudaEngineError(f"stopped with {self._process.wait()}: {said[:300]}")
        told = json.loads(line)
        if "failed" in told:
            raise CudaEngineError(told["failed"])
        return told

    def stop(self) -> None:
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self._signal(signal.SIGCONT)

    def close(self) -> None:
        self._signal(signal.SIGKILL)
        self._process.wait()
        self._reader.join(timeout=1)  # what it started may hold the other end, until it is killed as well
        ended = [] if self._reader.is_alive() else [self._process.stdout]
        for stream in (self._process.stdin, self._errors, *ended):
            if stream is not None and not stream.closed:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
        self._results.unlink(missing_ok=True)

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)
