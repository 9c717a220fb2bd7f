"""What a step costs a master for each of its workers: `python -m tests.bench.masters [--workers 1 10 100 1000]`.

The master is the real one, and so is all that goes from it to a worker: messages, lines, answers. The workers are
played: one other process answers for all of them, at once and with nothing, so that what grows with their number is
the master's part.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

from schemas import config_pb2, worker_pb2
from toolkit.cluster.master.remote_worker import RemoteWorker
from toolkit.cluster.master.session import ClusterSession
from toolkit.cluster.master.task import RemoteTask
from toolkit.cluster.rpc import lines, services
from toolkit.cluster.rpc.channels import Channels
from toolkit.cluster.rpc.frames import METHODS
from toolkit.cluster.rpc.line_server import LineAnswer, LineServer
from toolkit.cluster.rpc.server import LOOPBACK, Listening, Server
from toolkit.cluster.rpc.tickets import TicketListener
from toolkit.graph.device import DeviceSpec
from toolkit.graph.graph import Graph
from toolkit.runtime.devices import Device

_WORKERS = (1, 2, 4, 8, 32, 100, 316, 1000)
#: figures of a row, and seconds that each takes
_ROUNDS, _SECONDS = 5, 0.3


def play() -> None:
    """The other process: every worker at once."""

    def answer_nothing(_data: bytes, answer: LineAnswer) -> None:
        answer.give(b"")

    line_server = LineServer(dict[str, Any].fromkeys(METHODS, answer_nothing), (), TicketListener(LOOPBACK))
    methods: dict[str, Any] = {
        "RegisterGraph": lambda request, context: worker_pb2.RegisterGraphResponse(graph_handle="graph"),
        "DeregisterGraph": lambda request, context: worker_pb2.DeregisterGraphResponse(),
    }
    server = Server(Listening(), [services.handler(services.WORKER, methods), lines.handler(line_server)])
    server.start()
    print(server.port, flush=True)
    sys.stdin.read()


def row(count: int, address: str, channels: Channels, known: lines.Lines) -> tuple[float, float, float]:
    """Milliseconds of the first step, and microseconds of one more: by the clock, and of the master's processor."""
    graph = Graph()
    devices = [Device(DeviceSpec("worker", 0, task, "CPU", 0), task + 1) for task in range(count)]
    for task, device in enumerate(devices):
        graph.add("NoOp", f"work{task}", device=device.name)
    tasks = {each.spec.task_name: RemoteTask(each.spec.task_name, address, channels, known) for each in devices}
    config = config_pb2.ConfigProto()

    def worker(task: str, found: Sequence[Device], _: Any) -> RemoteWorker:
        return RemoteWorker(tasks[task], found, "session", config)

    session = ClusterSession("session", graph.to_proto(), devices, config, worker, at_end=lambda: None)
    wanted = [f"work{task}" for task in range(count)]
    start = time.perf_counter()
    session.run(wanted)
    first = 1e3 * (time.perf_counter() - start)
    figures: list[tuple[float, float]] = []
    for _ in range(_ROUNDS):
        start, processor, steps = time.perf_counter(), time.process_time(), 0
        while steps < 2 or time.perf_counter() - start < _SECONDS:
            session.run(wanted)
            steps += 1
        figures.append((
            1e6 * (time.perf_counter() - start) / steps, 1e6 * (time.process_time() - processor) / steps
        ))  # fmt: skip
    session.close()
    wall, processor = (statistics.median(column) for column in zip(*figures, strict=True))
    return first, wall, processor


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.masters", description=__doc__)
    parser.add_argument("--workers", type=int, nargs="+", default=_WORKERS)
    counts = parser.parse_args().workers
    command = [sys.executable, "-c", "from tests.bench.masters import play; play()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as played:
        assert played.stdout is not None
        address = f"localhost:{played.stdout.readline().strip()}"
        channels = Channels()
        known = lines.Lines(channels)
        assert known.wait(address) is not None
        print("workers  first step ms   step us  us a worker  processor us a worker")
        for count in counts:
            first, wall, processor = row(count, address, channels, known)
            print(f"{count:7} {first:14.1f} {wall:9.0f} {wall / count:12.1f} {processor / count:22.1f}", flush=True)
        known.close()
        channels.close()
        played.kill()


if __name__ == "__main__":
    main()
