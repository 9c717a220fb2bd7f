"""One Ray for all tests of the folder, and one parameter server with two workers on it."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from tests import patience

#: processors that Ray is told of, whatever the machine has: actors of tests wait more than they compute
PROCESSORS = 8


@pytest.fixture(scope="package")
def ray_here() -> Iterator[Any]:
    """The module `ray`, of which this process is a driver."""
    pytest.importorskip("ray")
    from toolkit.cluster.ray import connection, kind, library

    made = connection.Connection("", PROCESSORS)
    assert library.ray().get_runtime_context().gcs_address.startswith("127.0.0.1:")
    yield library.ray()
    kind.close_all()
    made.close()


class RayCluster:
    """What `MixedCluster` offers, of actors.

    Attributes:
        jobs: jobs to their tasks.
    """

    jobs: dict[str, list[str]]

    def __init__(self) -> None:
        self.jobs = {"ps": ["ray:1"], "worker": ["ray:2", "ray:3"]}

    def target(self, job: str = "worker", task: int = 0) -> str:
        """For a session; every one has its master in this process."""
        return "ray"

    @property
    def engine(self) -> Any:
        from schemas import config_pb2
        from toolkit.cluster.ray import kind

        return kind.engine_of("ray", config_pb2.ConfigProto())

    def process(self, job: str, task: int = 0) -> int:
        """The number of a task's process."""
        return self.engine.found([f"/job:{job}/replica:0/task:{task}"])[f"/job:{job}/replica:0/task:{task}"][0]

    def kill(self, job: str, task: int = 0) -> None:
        """End a task as a lost machine does; Ray starts it anew."""
        os.kill(self.process(job, task), signal.SIGKILL)

    def restart(self, job: str, task: int = 0) -> None:
        """End a task, and wait until it is there again."""
        before = self.process(job, task)
        os.kill(before, signal.SIGKILL)
        patience.until(lambda: self.process(job, task) != before, f"{job} is there again")


@pytest.fixture(scope="package")
def actors(ray_here: Any) -> Iterator[RayCluster]:
    """One parameter server and two workers."""
    cluster = RayCluster()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TF_CONFIG", json.dumps({"cluster": cluster.jobs}))
        yield cluster
