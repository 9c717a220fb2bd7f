"""Clusters of real TensorFlow servers on loopback, a process for each task: the oracle of what is distributed.

    def test_x(tensorflow_cluster):                    # 1 ps and 2 workers, shared by the tests of the folder
        session = Session(graph, tensorflow_cluster.target("worker", 0))

    with start({"ps": 1, "worker": 1}) as cluster:     # one of its own, to kill a task of it
        cluster.kill("ps", 0)

    with start({"ps": 1, "worker": 1}, given={("worker", 0): ours}) as cluster:    # the worker is somebody else's

A server ends with its standard input, so that none outlives the tests, however these end.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests import patience

_ROOT = Path(__file__).resolve().parents[2]
_READY = "ready"
#: another process may take a port between our look and the server's; then all are chosen anew
_ATTEMPTS = 3
#: what TensorFlow writes when its port is somebody's, for a message
_TAIL = 4000
#: loopback needs none of them, and some gRPC libraries would go there
_PROXIES = ("http_proxy", "https_proxy", "grpc_proxy", "all_proxy")

Key = tuple[str, int]


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens at: different ones, for they are held until all are found."""
    with contextlib.ExitStack() as stack:
        found = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in found:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in found]


class ServerProcess:
    """One task, in a process of its own.

    Args:
        command: starts it; it prints "ready" when it serves, and ends when its standard input does.
        name: for messages.
    """

    def __init__(self, command: list[str], name: str):
        environment = {key: value for key, value in os.environ.items() if key.lower() not in _PROXIES}
        environment |= {"PYTHONPATH": str(_ROOT), "TF_CPP_MIN_LOG_LEVEL": "1"}
        self.name = name
        self._process = subprocess.Popen(
            command, cwd=_ROOT, env=environment, text=True, errors="replace",
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        self._errors: list[str] = []
        self._drain = threading.Thread(target=self._read_errors, daemon=True)
        self._drain.start()

    def _read_errors(self) -> None:
        for line in self._process.stderr or ():
            self._errors.append(line)

    @property
    def errors(self) -> str:
        """The end of what it wrote to standard error."""
        return "".join(self._errors)[-_TAIL:]

    @property
    def is_alive(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait_until_ready(self) -> bool:
        """Whether it serves; False when it ended instead.

        Raises:
            AssertionError: it does neither.
        """
        killer = threading.Timer(patience.HUNG, self._process.kill)
        killer.start()
        try:
            return any(line.strip() == _READY for line in iter(self._process.stdout.readline, ""))  # type: ignore[union-attr]
        finally:
            killer.cancel()

    def ask(self, line: str) -> str:
        """Send it a line, and wait for one; "" when it has ended."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()

    def kill(self) -> None:
        """End it at once (SIGKILL). Again is fine."""
        self._process.kill()
        self._process.wait(patience.HUNG)
        self._drain.join(patience.HUNG)
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()


class Cluster:
    """The tasks of a cluster.

    Attributes:
        jobs: jobs to the addresses of their tasks, as ClusterSpec takes them.
        processes: the tasks that were started here.
    """

    def __init__(self, jobs: dict[str, list[str]], ours: list[Key], options: Mapping[str, Any]):
        self.jobs = jobs
        self._options = options
        self.processes: dict[Key, ServerProcess] = {key: self._start(*key) for key in ours}

    def _start(self, job: str, task: int) -> ServerProcess:
        settings = json.dumps({"jobs": self.jobs, "job": job, "task": task, **self._options})
        return ServerProcess(
            [sys.executable, "-m", "tests.cluster.tensorflow_server_process", settings], f"{job}/{task}"
        )

    def failed(self) -> str | None:
        """Waits until all serve; what the first wrote that does not."""
        for process in self.processes.values():
            if not process.wait_until_ready():
                return f"{process.name} did not start:\n{process.errors}"
        return None

    def address(self, job: str, task: int = 0) -> str:
        """Host and port."""
        return self.jobs[job][task]

    def target(self, job: str = "worker", task: int = 0) -> str:
        """For a session: "grpc://host:port"."""
        return f"grpc://{self.address(job, task)}"

    def kill(self, job: str, task: int = 0) -> None:
        """End a task as a lost machine does: nothing is said to anybody."""
        self.processes[job, task].kill()

    def restart(self, job: str, task: int = 0) -> None:
        """Start a task again, at its address, with a new incarnation and nothing in it."""
        self.kill(job, task)
        process = self.processes[job, task] = self._start(job, task)
        assert process.wait_until_ready(), process.errors

    def stop(self) -> None:
        """End all tasks that were started here."""
        for process in self.processes.values():
            process.kill()


@contextlib.contextmanager
def start(counts: Mapping[str, int], given: Mapping[Key, str] | None = None, **options: Any) -> Generator[Cluster]:
    """A cluster of TensorFlow servers that serve when this returns, and have ended after the block.

    Args:
        counts: jobs to how many tasks they have.
        given: tasks that somebody else runs, to their addresses.
        options: `config`: a dict for ConfigProto; `filters`: device filters, as in "/job:ps".
    """
    given = given or {}
    tasks = [(job, task) for job, count in counts.items() for task in range(count)]
    failure: str | None = None
    for _ in range(_ATTEMPTS):
        ports = iter(free_ports(len(tasks)))
        jobs: dict[str, list[str]] = {job: [] for job in counts}
        for key in tasks:
            address = f"localhost:{next(ports)}"
            jobs[key[0]].append(given.get(key, address))
        cluster = Cluster(jobs, [key for key in tasks if key not in given], options)
        try:
            failure = cluster.failed()
            if failure is None:
                yield cluster
                return
        finally:
            cluster.stop()
    raise AssertionError(failure)


@pytest.fixture(scope="package")
def tensorflow_cluster() -> Iterator[Cluster]:
    """One parameter server and two workers of TensorFlow, for all tests of the folder.

    They share its variables where they have the same name and container: give them names of their own, or isolate
    the session.
    """
    pytest.importorskip("tensorflow")
    pytest.importorskip("grpc")
    with start({"ps": 1, "worker": 2}) as cluster:
        yield cluster
