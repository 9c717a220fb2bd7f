"""Large tensors over gRPC alone, which is TLS and TensorFlow's servers: several channels to a task beside one.

A step takes tensors of 64 MB from one task to another, at the same time, and its result is one number of each. The
receivers differ in nothing but `--channels`. All are processes of their own on loopback.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest import mock

from tests.bench.measure import Row, alternate, compare
from tests.cluster.certificates import self_signed

COUNTS = (1, 2, 4)
#: tensors of a step
TENSORS = (1, 4)
_ELEMENTS = 1 << 24
_STEPS = 2


def run(rounds: int = 7) -> Iterator[Row]:
    """The rows of this suite."""
    for sender in ("ours over TLS", "TensorFlow's"):
        with ExitStack() as until_the_end:
            yield from _rows(sender, rounds, until_the_end)


def _rows(sender: str, rounds: int, until_the_end: ExitStack) -> Iterator[Row]:
    from tests.cluster.tensorflow_servers import ServerProcess, free_ports

    folder = Path(until_the_end.enter_context(tempfile.TemporaryDirectory()))
    ports = free_ports(1 + len(COUNTS))
    jobs = {"sender": [f"localhost:{ports[0]}"]}
    jobs |= {f"by{count}": [f"localhost:{port}"] for count, port in zip(COUNTS, ports[1:], strict=True)}
    file = folder / "cluster.yaml"
    file.write_text(json.dumps({"jobs": jobs}))
    is_theirs = sender == "TensorFlow's"
    if not is_theirs:
        until_the_end.enter_context(mock.patch.dict(os.environ, _keys(folder)))

    def start(command: list[str], name: str) -> None:
        process = ServerProcess([sys.executable, "-m", *command], name)
        until_the_end.callback(process.kill)
        assert process.wait_until_ready(), process.errors

    if is_theirs:
        settings = json.dumps({"jobs": jobs, "job": "sender", "task": 0})
        start(["tests.cluster.tensorflow_server_process", settings], "sender")
    else:
        start(["tests.cluster.channels_process", str(file), "sender", "1"], "sender")
    for count in COUNTS:
        start(["tests.cluster.channels_process", str(file), f"by{count}", str(count)], f"by{count}")

    from toolkit import tensorflow as v1

    for number in TENSORS:
        calls: dict[int, Any] = {}
        for count in COUNTS:
            graph = v1.Graph()
            with graph.as_default():
                with v1.device("/job:sender/task:0"):
                    held = [
                        v1.get_variable(f"v{each}", [_ELEMENTS], initializer=v1.zeros_initializer(), use_resource=False)
                        for each in range(number)
                    ]
                with v1.device(f"/job:by{count}/task:0"):
                    fetches = [v1.strided_slice(each, [7], [8]) for each in held]
                begin = v1.global_variables_initializer()
            config = v1.ConfigProto(device_filters=["/job:sender", f"/job:by{count}"])
            target = f"grpc://{jobs[f'by{count}'][0]}"
            session = until_the_end.enter_context(v1.Session(target, graph=graph, config=config))
            session.run(begin)
            calls[count] = session.make_callable(fetches)
            calls[count]()

        def seconds(count: int, calls: dict[int, Any] = calls) -> float:
            start = time.perf_counter()
            for _ in range(_STEPS):
                calls[count]()
            return 1e3 * (time.perf_counter() - start) / _STEPS

        for count in COUNTS[1:]:
            figures = alternate(lambda count=count: seconds(count), lambda: seconds(1), rounds)
            yield compare(f"{number} x 64 MB, {sender}, {count} channels", "1 channel", "ms", figures)


def _keys(folder: Path) -> dict[str, str]:
    """Certificates of localhost, as the environment names them."""
    key, certificate = self_signed(folder)
    return {
        "GRAPHMILL_CLUSTER_KEY": str(key),
        "GRAPHMILL_CLUSTER_CERT": str(certificate),
        "GRAPHMILL_CLUSTER_CA": str(certificate),
    }
