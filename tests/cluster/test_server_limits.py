"""What a server takes at most, and what a program's own server lets graphs touch."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("grpc")

from schemas import cluster_pb2
from tests import patience
from tests.cluster.tensorflow_servers import free_ports
from toolkit import tensorflow as gm
from toolkit.cluster.limits import MOST_SESSIONS, ServerLimits
from toolkit.cluster.rpc.channels import MESSAGE_BYTES
from toolkit.cluster.server import ALLOW, ClusterServer, Keys, policy_of_environment, server_def
from toolkit.errors import PermissionDeniedError, ResourceExhaustedError, UsageError
from toolkit.limits.limits import Limits

v1: Any = gm.compat.v1
ROOT = Path(__file__).resolve().parents[2]


def test_texts() -> None:
    found = ServerLimits.parse("memory=2K, tensor=1KiB,message=1M,graph=5KB,sessions=3")
    assert found == ServerLimits(2048, 1024, 1 << 20, 5000, 3) and found.of_steps == Limits(memory=2048, tensor=1024)
    some = ServerLimits.parse("message=4T")
    assert some.message == MESSAGE_BYTES and some.sessions == MOST_SESSIONS and some.of_steps is None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "no limit ''"), ("sesions=3", "did you mean"), ("time=3s", "no limit 'time'"), ("graph", "'' is not a"),
        ("graph=1,graph=2", "twice"), ("sessions=0", "too small"), ("message=100", "too small"), ("memory=-1", "-1"),
    ],
)  # fmt: skip
def test_wrong_texts(text: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        ServerLimits.parse(text)


@pytest.fixture
def start() -> Any:
    """Starts a server of one task with limits; its target."""
    made: list[ClusterServer] = []

    def one(limits: str = "", **more: Any) -> str:
        address = f"localhost:{free_ports(1)[0]}"
        cluster = cluster_pb2.ClusterDef(job=[{"name": "worker", "tasks": {0: address}}])
        given = ServerLimits.parse(limits) if limits else None
        server = ClusterServer(server_def(cluster, "worker", 0), keys=Keys(), limits=given, **more)
        made.append(server)
        server.start()
        return server.target

    yield one
    for server in made:
        server.stop()


def test_what_is_too_much_is_refused(start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    target = start("message=64K,graph=2K,sessions=2,memory=64M,tensor=1M")
    with v1.Graph().as_default() as graph, v1.Session(target, graph=graph) as session:
        x = v1.placeholder(gm.float32, [None])
        total = v1.reduce_sum(x)
        assert session.run(total, {x: np.ones(10)}) == 10
        large = v1.fill([1 << 19], 1.0)  # 2 MB
        with pytest.raises(ResourceExhaustedError):
            session.run(v1.reduce_sum(large + x[:1]), {x: [1.0]})
        assert session.run(total, {x: np.ones(10)}) == 10
        with v1.Session(target, graph=graph) as second:
            assert second.run(total, {x: [1]}) == 1
            with v1.Session(target, graph=graph) as third, pytest.raises(ResourceExhaustedError, match="2 sessions"):
                third.run(total, {x: [1]})
        for _ in range(40):
            v1.identity(x)
        with pytest.raises(ResourceExhaustedError, match="2,048 at most"):
            session.run(total, {x: [1]})
    monkeypatch.setattr("toolkit.cluster.client.kind.service_at", dict[str, Any]().get)  # by way of its port
    with v1.Graph().as_default() as graph, v1.Session(target, graph=graph) as session:
        x = v1.placeholder(gm.float32, [None])
        assert session.run(v1.size(x), {x: np.ones(10)}) == 10
        with pytest.raises(ResourceExhaustedError):
            session.run(v1.size(x), {x: np.ones(20_000)})


def test_a_programs_own_server_is_as_free_as_the_environment_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(ALLOW, raising=False)
    assert policy_of_environment() is None
    monkeypatch.setenv(ALLOW, "nonsense=1")
    with pytest.raises(UsageError):
        policy_of_environment()
    monkeypatch.setenv(ALLOW, "read='")
    with pytest.raises(UsageError, match=ALLOW):
        policy_of_environment()
    path = tmp_path / "a b" / "file"
    path.parent.mkdir()
    path.write_text("text")
    for allowed, is_allowed in (("", False), (f"'read={path.parent}'", True)):
        monkeypatch.setenv(ALLOW, allowed)
        server = v1.train.Server({"worker": [f"localhost:{free_ports(1)[0]}"]}, job_name="worker", task_index=0)
        try:
            with v1.Graph().as_default() as graph, v1.Session(server.target, graph=graph) as session:
                read = v1.io.read_file(str(path))
                if is_allowed:
                    assert session.run(read) == b"text"
                else:
                    with pytest.raises(PermissionDeniedError, match="read"):
                        session.run(read)
        finally:
            server._served.stop()


def test_a_cluster_goes_up_and_down(tmp_path: Path) -> None:
    """`graphmill cluster up` with its options; a step over both tasks; all end together."""
    ps, worker = (f"localhost:{port}" for port in free_ports(2))
    file = tmp_path / "cluster.yaml"
    file.write_text(f'jobs:\n  ps: ["{ps}"]\n  worker: ["{worker}"]\n')
    options = ["--limit", "sessions=1,memory=1G", "--compress-transfers", "bfloat16", "--drain", "1", "--channels", "2"]
    process = subprocess.Popen(
        [sys.executable, "-m", "commands.main", "cluster", "up", str(file), *options],
        cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    killer = threading.Timer(patience.HUNG, process.kill)
    killer.start()
    try:
        lines = [process.stdout.readline() for _ in range(2)]  # type: ignore[union-attr]
        assert sorted(line.split(" ready: ")[0].replace(" ", "") for line in lines) == ["ps/0|", "worker/0|"], lines
        with v1.Graph().as_default() as graph, v1.Session(f"grpc://{worker}", graph=graph) as session:
            with v1.device("/job:ps/task:0"):
                sent = v1.fill([v1.placeholder_with_default(2000, [])], 1 + 2.0**-12)
            with v1.device("/job:worker/task:0"):
                came = v1.reduce_max(sent)
            assert session.run(came) == 1, "it came in 16 bits"
            with v1.Session(f"grpc://{worker}", graph=graph) as other, pytest.raises(ResourceExhaustedError):
                other.run(came)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate()
        assert process.returncode in (0, 143, -signal.SIGTERM), errors
    finally:
        killer.cancel()
        process.kill()
        process.wait()
    for address in (ps, worker):
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((address.split(":")[0], int(address.split(":")[1])), patience.HUNG)
