"""The tasks of a cluster that are this machine's, each in a process of its own (`graphmill worker`)."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue

from toolkit.cluster.rpc.server import is_own
from toolkit.errors import UsageError
from toolkit.formats.settings.cluster import Cluster, Task

#: seconds that a process has to end after its steps have, or were cancelled
_END_SECONDS = 10.0


class LocalTasks:
    """Processes that start and stop together.

    Args:
        path: of the cluster file.
        options: of `graphmill worker`, besides the task.
        say: is given what they print, line by line, with the task's name in front; from several threads.

    Raises:
        UsageError: none of the tasks is this machine's.
    """

    def __init__(self, cluster: Cluster, path: str, options: Sequence[str], say: Callable[[str], None]):
        self._tasks = [task for task in cluster.tasks if is_own(task.address.rpartition(":")[0])]
        if not self._tasks:
            raise UsageError(
                "no task of this cluster has an address of this machine; each starts at its own: graphmill worker "
                "--cluster FILE --job NAME --task N",
                file=path,
            )
        self._path = path
        self._options = list(options)
        self._say = say
        self._width = max(len(_name(task)) for task in self._tasks)
        self._processes: dict[str, subprocess.Popen[str]] = {}
        self._ended: SimpleQueue[tuple[str, int]] = SimpleQueue()
        self._readers: list[threading.Thread] = []

    def start(self) -> None:
        """Start all of them."""
        for task in self._tasks:
            process = subprocess.Popen(
                [sys.executable, "-m", "commands.main", "worker", "--cluster", self._path, "--job", task.job,
                 "--task", str(task.index), *self._options],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                errors="replace", start_new_session=True,
            )  # fmt: skip
            name = _name(task)
            self._processes[name] = process
            thread = threading.Thread(target=self._read, args=(name, process), daemon=True)
            thread.start()
            self._readers.append(thread)

    def _read(self, name: str, process: subprocess.Popen[str]) -> None:
        for line in process.stdout or ():
            self._say(f"{name:<{self._width}} | {line.rstrip()}")
        self._ended.put((name, process.wait()))

    def wait(self) -> str:
        """Wait until one of them ends; which, and how."""
        name, code = self._ended.get()
        return f"{name} ended with exit code {code}" if code >= 0 else f"{name} was ended by signal {-code}"

    def stop(self, seconds: float) -> None:
        """Have all of them end, and wait for it; those that do not are killed."""
        for process in self._processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in self._processes.values():
            try:
                process.wait(seconds + _END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for thread in self._readers:
            thread.join(_END_SECONDS)


def _name(task: Task) -> str:
    return f"{task.job}/{task.index}"
