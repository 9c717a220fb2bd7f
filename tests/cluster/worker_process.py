"""A task of ours, for tests: `python -m tests.cluster.worker_process SETTINGS` serves until its input ends.

SETTINGS is JSON: {"jobs": {job: [address, ...]}, "job": ..., "task": ..., "devices": {"CPU": 1}, "allow": [...],
"memory": bytes that all its tensors may take}.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from schemas import cluster_pb2
from toolkit.cluster.rpc.server import LOOPBACK, Listening, Server
from toolkit.cluster.rpc.services import WORKER
from toolkit.cluster.worker.service import WorkerService
from toolkit.cluster.worker.task import WorkerTask, task_addresses
from toolkit.graph.device import DeviceSpec
from toolkit.limits.limits import Limits
from toolkit.limits.process import bounded
from toolkit.policy.rules import Policy


def cluster_of(jobs: dict[str, list[str]]) -> cluster_pb2.ClusterDef:
    """The message of a cluster."""
    return cluster_pb2.ClusterDef(job=[{"name": job, "tasks": dict(enumerate(tasks))} for job, tasks in jobs.items()])


def main() -> None:
    settings: dict[str, Any] = json.loads(sys.argv[1])
    jobs: dict[str, list[str]] = settings["jobs"]
    task = WorkerTask(
        DeviceSpec(settings["job"], 0, settings["task"]),
        task_addresses(cluster_of(jobs)),
        settings.get("devices"),
        policy=Policy().allowing(*settings.get("allow", ())),
        limits=Limits(memory=settings["memory"], tensor=settings["memory"]) if "memory" in settings else None,
    )
    address = jobs[settings["job"]][int(settings["task"])]
    port = int(address.rpartition(":")[2])
    server = Server(Listening(port=port), WorkerService(task, line_host=LOOPBACK).handlers(), [WORKER])
    server.start()
    with bounded(None):  # what is not counted is bounded by what the machine has
        print("ready", flush=True)
        sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
