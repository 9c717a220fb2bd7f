"""A process with one of our servers: `python -m tests.cluster.server_process SETTINGS`, which ends with its input."""

from __future__ import annotations

import json
import os
import sys
import threading
from typing import Any

from schemas import cluster_pb2
from toolkit.cluster.master.health import Heartbeats
from toolkit.cluster.server import ClusterServer, server_def


def main() -> None:
    """Serve until standard input ends."""
    settings: dict[str, Any] = json.loads(sys.argv[1])
    cluster = cluster_pb2.ClusterDef()
    for job, addresses in settings["jobs"].items():
        entry = cluster.job.add(name=job)
        for index, address in enumerate(addresses):
            entry.tasks[index] = address
    server = ClusterServer(
        server_def(cluster, settings["job"], settings["task"]),
        counts=settings.get("counts"),
        heartbeats=Heartbeats(*settings["heartbeats"]) if "heartbeats" in settings else None,
    )
    server.start()
    threading.Thread(target=_end_with_input, daemon=True).start()
    print("ready", flush=True)
    server.join()


def _end_with_input() -> None:
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
