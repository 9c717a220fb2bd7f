"""What a cluster consists of: jobs, their tasks and the addresses of these (ClusterSpec).

Read from whatever says so: a dict, a ClusterDef, `{"cluster": ...}` as TF_CONFIG has it, a cluster file (YAML).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from schemas import cluster_pb2
from toolkit.errors import FormatError, UsageError
from toolkit.formats.settings.cluster import Cluster, read_cluster

#: environment variable in which managers of clusters tell a process its place
TF_CONFIG = "TF_CONFIG"


class ClusterSpec:
    """The jobs of a cluster and the addresses of their tasks.

    Args:
        cluster: a dict from jobs to lists of addresses, or to dicts from task numbers to addresses; that dict as
            {"cluster": ...}; a ClusterDef; what a cluster file says; another ClusterSpec.

    Raises:
        TypeError: it is none of these, or a name or an address is no text.
    """

    def __init__(self, cluster: Any):
        self._jobs: dict[str, dict[int, str]] = {}
        if isinstance(cluster, ClusterSpec):
            self._jobs = {job: dict(tasks) for job, tasks in cluster._jobs.items()}
        elif isinstance(cluster, Cluster):
            for task in cluster.tasks:
                self._jobs.setdefault(task.job, {})[task.index] = _addressed(task.job, task.index, task.address)
        elif hasattr(cluster, "job") and hasattr(cluster, "SerializeToString"):
            self._jobs = {job.name: dict(job.tasks) for job in cluster.job}
        elif isinstance(cluster, Mapping):
            self._take(cast("Mapping[Any, Any]", cluster))
        else:
            raise TypeError(f"a cluster is a dict from jobs to addresses or a ClusterDef, not {type(cluster).__name__}")

    def _take(self, cluster: Mapping[Any, Any]) -> None:
        inner: Any = cluster.get("cluster")
        if isinstance(inner, Mapping):  # a job's tasks may be a dict too, but of numbers
            jobs = cast("Mapping[Any, Any]", inner)
            if not all(isinstance(key, int) for key in jobs) or not jobs:
                cluster = jobs
        for job, tasks in cluster.items():
            if not isinstance(tasks, list | tuple | Mapping):
                raise TypeError(f"the tasks of the job '{job}' are a list or dict of addresses, not {tasks!r}")
            numbered: Any = cast("Any", tasks).items() if isinstance(tasks, Mapping) else enumerate(cast("Any", tasks))
            self._jobs[_text(job)] = {int(number): _text(address) for number, address in numbered}

    def __bool__(self) -> bool:
        return bool(self._jobs)

    def __eq__(self, other: object) -> bool:
        return self._jobs == (other._jobs if isinstance(other, ClusterSpec) else other)

    __hash__ = None  # type: ignore[assignment]  # as of a dict

    def __repr__(self) -> str:
        shown = self.as_dict()
        return "ClusterSpec({" + ", ".join(f"{job!r}: {shown[job]!r}" for job in sorted(shown)) + "})"

    def as_dict(self) -> dict[str, Any]:
        """Jobs to lists of addresses; to dicts where task numbers are missing."""
        found: dict[str, Any] = {}
        for job, tasks in self._jobs.items():
            numbers = self.task_indices(job)
            dense = bool(numbers) and numbers[-1] + 1 == len(numbers)
            found[job] = self.job_tasks(job) if dense else {number: tasks[number] for number in numbers}
        return found

    def as_cluster_def(self) -> cluster_pb2.ClusterDef:
        """The message, jobs by name."""
        message = cluster_pb2.ClusterDef()
        for job in sorted(self._jobs):
            entry = message.job.add(name=job)
            for number in self.task_indices(job):
                entry.tasks[number] = self._jobs[job][number]
        return message

    @property
    def jobs(self) -> list[str]:
        """Their names."""
        return list(self._jobs)

    def num_tasks(self, job_name: str) -> int:
        """How many tasks a job has.

        Raises:
            ValueError: there is no such job; so do the others.
        """
        return len(self._tasks(job_name))

    def task_indices(self, job_name: str) -> list[int]:
        """The numbers of a job's tasks."""
        return sorted(self._tasks(job_name))

    def task_address(self, job_name: str, task_index: int) -> str:
        """The address of a task.

        Raises:
            ValueError: there is no such task.
        """
        tasks = self._tasks(job_name)
        if task_index not in tasks:
            raise ValueError(f"the job '{job_name}' has no task {task_index}; it has {sorted(tasks)}")
        return tasks[task_index]

    def job_tasks(self, job_name: str) -> list[str | None]:
        """The addresses by number; None where a number is missing."""
        tasks = self._tasks(job_name)
        return [tasks.get(number) for number in range(max(tasks) + 1)] if tasks else []

    def _tasks(self, job: str) -> dict[int, str]:
        if job not in self._jobs:
            raise ValueError(f"the cluster has no job '{job}'; it has {sorted(self._jobs)}")
        return self._jobs[job]


@dataclass(frozen=True, slots=True)
class TaskPlace:
    """A cluster, and the task of it that this process is.

    Attributes:
        job, task: None where nothing says so.
    """

    cluster: ClusterSpec
    job: str | None = None
    task: int | None = None


def read_specification(source: str | Path) -> ClusterSpec:
    """The cluster of a file: YAML as in `toolkit.formats.settings.cluster`, or JSON of TensorFlow's dict or TF_CONFIG.

    Raises:
        FormatError: it is none of these, or tasks have no address.
    """
    text = str(source)
    if text.endswith(".json"):
        return place_of(_file_text(text), text).cluster
    return ClusterSpec(read_cluster(text))


def from_environment(variables: Mapping[str, str] = os.environ) -> TaskPlace | None:
    """What TF_CONFIG says; None where it is not set.

    Raises:
        FormatError: it is no JSON, or has no cluster.
    """
    text = variables.get(TF_CONFIG, "")
    return place_of(text, TF_CONFIG) if text else None


def place_of(text: str, source: str = "") -> TaskPlace:
    """Read `{"cluster": {job: [address, ...]}, "task": {"type": job, "index": number}}`, or the cluster alone.

    Raises:
        FormatError: it is something else; the message has the source.
    """
    try:
        found: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"no JSON: {error}", file=source) from None
    if not isinstance(found, dict):
        raise FormatError('expected an object with "cluster", from jobs to lists of addresses', file=source)
    document = cast("dict[str, Any]", found)
    task: Any = document.get("task") if "cluster" in document else None
    try:
        cluster = ClusterSpec(document.get("cluster", document))
        if task is None:
            return TaskPlace(cluster)
        job, number = str(task["type"]), int(task["index"])
        cluster.task_address(job, number)
    except (TypeError, KeyError, ValueError, UsageError) as error:
        what = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise FormatError(what, file=source) from None
    return TaskPlace(cluster, job, number)


def _file_text(path: str) -> str:
    from toolkit.formats.io import read_bytes

    return read_bytes(path).decode(errors="replace")


def _addressed(job: str, task: int, address: str) -> str:
    if not address:
        raise FormatError(f"the task /job:{job}/task:{task} has no address; servers need host:port")
    return address


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode()
    if not isinstance(value, str):
        raise TypeError(f"names of jobs and addresses are texts, not {value!r}")
    return value
