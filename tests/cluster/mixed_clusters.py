"""Clusters whose tasks are TensorFlow's or ours, a process for each, on loopback.

with start({"ps": 1, "worker": 1}, tensorflow={("ps", 0)}) as cluster:
    session = Session(cluster.target("worker"))
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Collection, Generator, Mapping
from typing import Any

from tests.cluster.tensorflow_servers import Key, ServerProcess, free_ports

_OURS, _THEIRS = "tests.cluster.server_process", "tests.cluster.tensorflow_server_process"


class MixedCluster:
    """The tasks.

    Attributes:
        jobs: jobs to the addresses of their tasks.
        processes: by job and task.
    """

    def __init__(self, jobs: dict[str, list[str]], tensorflow: Collection[Key], settings: Mapping[str, Any]):
        self.jobs = jobs
        self._tensorflow = tensorflow
        self._settings = settings
        self.processes: dict[Key, ServerProcess] = {}
        for job, addresses in jobs.items():
            for task in range(len(addresses)):
                self._start(job, task)

    def _start(self, job: str, task: int) -> None:
        module = _THEIRS if (job, task) in self._tensorflow else _OURS
        settings: dict[str, Any] = {"jobs": self.jobs, "job": job, "task": task}
        if module == _OURS:
            settings |= self._settings
        command = [sys.executable, "-m", module, json.dumps(settings)]
        self.processes[job, task] = ServerProcess(command, f"{job}/{task}")

    def wait(self) -> None:
        """Until all serve."""
        for process in self.processes.values():
            assert process.wait_until_ready(), process.errors

    def target(self, job: str = "worker", task: int = 0) -> str:
        """For a session."""
        return f"grpc://{self.jobs[job][task]}"

    def kill(self, job: str, task: int = 0) -> None:
        """End a task as a lost machine does."""
        self.processes[job, task].kill()

    def restart(self, job: str, task: int = 0) -> None:
        """Start a task again, at its address, with a new incarnation and nothing in it."""
        self.kill(job, task)
        self._start(job, task)
        assert self.processes[job, task].wait_until_ready(), self.processes[job, task].errors

    def stop(self) -> None:
        """End all tasks."""
        for process in self.processes.values():
            process.kill()


@contextlib.contextmanager
def start(counts: Mapping[str, int], tensorflow: Collection[Key] = (), **settings: Any) -> Generator[MixedCluster]:
    """A cluster that serves when this returns, and has ended after the block.

    Args:
        counts: jobs to how many tasks they have.
        tensorflow: which tasks are TensorFlow's; the others are ours.
        settings: of ours (`server_process`).
    """
    ports = iter(free_ports(sum(counts.values())))
    jobs = {job: [f"localhost:{next(ports)}" for _ in range(count)] for job, count in counts.items()}
    cluster = MixedCluster(jobs, tensorflow, settings)
    try:
        cluster.wait()
        yield cluster
    finally:
        cluster.stop()
