"""What a task takes several times of another one crosses once: on our wire, and with TensorFlow's tasks."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from schemas import cluster_pb2
from tests.cluster import mixed_clusters
from tests.cluster.tensorflow_servers import free_ports
from toolkit import tensorflow as v1
from toolkit.cluster.server import ClusterServer, Keys, server_def
from toolkit.cluster.worker.task import WorkerTask

SIZE = 10_000
_CHANGES = 30


@pytest.fixture
def target() -> Iterator[str]:
    """A parameter server and a worker of ours, in this process; the worker's master."""
    ports = free_ports(2)
    cluster = cluster_pb2.ClusterDef()
    for job, port in zip(("ps", "worker"), ports, strict=True):
        cluster.job.add(name=job).tasks[0] = f"localhost:{port}"
    made = [ClusterServer(server_def(cluster, job, 0), keys=Keys()) for job in ("ps", "worker")]
    for each in made:
        each.start()
    yield made[1].target
    for each in made:
        each.stop()


def _program() -> tuple[Any, Any, Any, Any]:
    """A variable's initialiser, a change of all of it, how far two reads of it differ, and one of its elements."""
    with v1.device("/job:ps/task:0"):
        v = v1.get_variable("v", [SIZE], initializer=v1.zeros_initializer(), use_resource=True)
        changed = v.assign_add(v1.ones([SIZE]))
        first, second = v.read_value(), v.read_value()
    with v1.device("/job:worker/task:0"):
        return v.initializer, changed, v1.reduce_max(v1.abs(first - second)), v1.reduce_max(first * 1.0)


def test_a_variable_that_is_read_twice_crosses_once(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    receive = WorkerTask.receive

    def watched(self: WorkerTask, step_id: int, key: str, done: Any) -> Any:
        asked.append(key)
        return receive(self, step_id, key, done)

    monkeypatch.setattr(WorkerTask, "receive", watched)
    with v1.Graph().as_default() as graph:
        begin, changed, difference, element = _program()
        with v1.Session(target, graph=graph) as session:
            session.run(begin)
            session.run(changed)
            asked.clear()
            assert session.run([difference, element]) == [0, 1]
            assert len([key for key in asked if ";edge_" in key]) == 1, asked


@pytest.mark.parametrize("theirs", [None, ("ps", 0), ("worker", 0)])
def test_beside_changes_of_the_variable(theirs: Any) -> None:
    """The reads are one, so they agree, whoever changes the variable meanwhile; a TensorFlow task is told nothing."""
    if theirs is not None:
        pytest.importorskip("tensorflow")
    tasks = {"ps": 1, "worker": 1, "master": 1}
    there = () if theirs is None else {theirs}
    with mixed_clusters.start(tasks, tensorflow=there) as cluster, v1.Graph().as_default() as graph:
        begin, changed, difference, element = _program()
        with v1.Session(cluster.target("master"), graph=graph) as session:
            session.run(begin)
            metadata = v1.RunMetadata()
            options = v1.RunOptions(output_partition_graphs=True)
            session.run(difference, options=options, run_metadata=metadata)
            sent = [
                node.name for part in metadata.partition_graphs for node in part.node
                if node.op == "_Send" and b"/job:worker" in node.attr["recv_device"].s
                and b"/job:ps" in node.attr["send_device"].s
            ]  # fmt: skip
            assert len(sent) == 1, sent

            def change() -> None:
                for _ in range(_CHANGES):
                    session.run(changed)

            changing = threading.Thread(target=change)
            changing.start()
            seen: list[float] = [0.0]
            while changing.is_alive():
                apart, value = session.run([difference, element])
                assert apart == 0 and value >= seen[-1]
                seen.append(value)
            changing.join()
            np.testing.assert_array_equal(session.run([difference, element]), [0, _CHANGES])
