"""Real requests, damaged: no server ends by one, and who asks it properly meanwhile gets the right answer."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

pytest.importorskip("grpc")

from schemas import cluster_pb2
from tests.cluster.mixed_clusters import start
from tests.fuzz import messages
from toolkit import tensorflow as gm
from toolkit.cluster.rpc import lines, services
from toolkit.cluster.rpc.channels import Channels
from toolkit.cluster.rpc.library import grpc
from toolkit.cluster.rpc.pending import Pending
from toolkit.cluster.server import ClusterServer, Keys, server_def
from toolkit.errors import UnavailableError

v1: Any = gm.compat.v1
#: a request that has become one to wait is given up after this time; which of them are changes no outcome
_SECONDS = 0.5
#: requests under way at one time
_ABREAST = 32
#: what ends the session that the others are about, where it arrives undamaged
_ENDS = {"CloseSession", "Reset", "DeleteWorkerSession", "CleanupAll", "DeregisterGraph"}

Recorded = dict[str, list[bytes]]


def _record(monkeypatch: pytest.MonkeyPatch, victim: str) -> Recorded:
    """Has every request of this process to an address written down, by the path of its method."""
    found: Recorded = {}

    def keep(path: str, data: bytes) -> None:
        if data not in found.setdefault(path, []):
            found[path].append(data)

    class Channel:
        def __init__(self, channel: Any):
            self._channel = channel

        def __getattr__(self, name: str) -> Any:
            return getattr(self._channel, name)

        def unary_unary(self, path: str, request_serializer: Any = None, **more: Any) -> Any:
            def written(request: Any) -> bytes:
                data: bytes = request if request_serializer is None else request_serializer(request)
                keep(path, data)
                return data

            return self._channel.unary_unary(path, request_serializer=written, **more)

    begun, told = lines.Line.start, lines.Line.tell

    def line_start(self: lines.Line, method: str, pieces: Sequence[Any], where: str) -> Any:
        keep(f"line/{method}", b"".join(pieces))
        return begun(self, method, pieces, where)

    def line_tell(self: lines.Line, method: str, request: bytes) -> None:
        keep(f"line/{method}", request)
        told(self, method, request)

    made: Callable[..., Any] = grpc().insecure_channel

    def channel(address: str, *more: Any) -> Any:
        return Channel(made(address, *more)) if address == victim else made(address, *more)

    monkeypatch.setattr(grpc(), "insecure_channel", channel)
    monkeypatch.setattr(lines.Line, "start", line_start)
    monkeypatch.setattr(lines.Line, "tell", line_tell)
    return found


def _program() -> tuple[Any, dict[str, Any]]:
    """Variables, a queue, a loop and a function at the victim, and what crosses to and from it."""
    with v1.Graph().as_default() as graph:
        with v1.device("/job:ps/task:0"):
            w = v1.get_variable("w", [4], use_resource=False, initializer=v1.ones_initializer())
            queue = v1.FIFOQueue(3, gm.float32, [[4]])
        with v1.device("/job:worker/task:0"):
            x = v1.placeholder(gm.float32, [4], name="x")
            looped = v1.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a + w), [0, x])[1]
        put, take = queue.enqueue(looped), queue.dequeue()
        fetches = {"train": v1.assign_add(w, 0 * looped), "put": put, "take": take, "text": v1.as_string(w)}
        fetches["begin"] = v1.global_variables_initializer()
    return graph, fetches


def _is_right(target: str) -> bool:
    """Whether a new session computes what it should."""
    with v1.Graph().as_default() as graph, v1.device("/job:ps/task:0"):
        total = v1.reduce_sum(v1.placeholder_with_default(np.arange(5.0), [5]))
        config = v1.ConfigProto(isolate_session_state=True)
        with v1.Session(target, graph=graph, config=config) as session:
            return session.run(total) == 10


def _assault(monkeypatch: pytest.MonkeyPatch, count: int, seed: int) -> None:
    rng = random.Random(seed)
    with start({"ps": 1, "worker": 1}) as ours:
        victim = ours.jobs["ps"][0]
        cluster = cluster_pb2.ClusterDef(
            job=[{"name": job, "tasks": dict(enumerate(addresses))} for job, addresses in ours.jobs.items()]
        )
        ours.kill("worker")  # in its place comes one of this process, whose requests can be looked at
        recorded = _record(monkeypatch, victim)
        server = ClusterServer(server_def(cluster, "worker", 0), keys=Keys())
        server.start()
        sessions: list[Any] = []
        try:
            graph, fetches = _program()
            for target in (server.target, f"grpc://{victim}"):
                for _ in range(2):  # what is recorded of the second is about a session that goes on
                    made = _play(target, graph, fetches)
                    sessions.append(made)
                sessions[-2].close()
            known = {path: data for path, data in recorded.items() if path.startswith(("/tensorflow", "line/"))}
            seen = {path.rpartition("/")[2] for path in known}
            assert {"CreateSession", "RunStep", "RegisterGraph", "RunGraph", "RecvTensor", "CleanupGraph"} <= seen
            channels = Channels()
            send = _Sender(channels, victim)
            for number in range(count):
                path = rng.choice(sorted(known))
                send(path, _damaged(rng, path, rng.choice(known[path])))
                if number % 500 == 499:
                    assert ours.processes["ps", 0].is_alive, ours.processes["ps", 0].errors
                    assert _is_right(f"grpc://{victim}")
            send.finish()
            channels.close()
            assert ours.processes["ps", 0].is_alive, ours.processes["ps", 0].errors
            assert _is_right(f"grpc://{victim}")
        finally:
            server.stop()


def _play(target: str, graph: Any, fetches: dict[str, Any]) -> Any:
    session = v1.Session(target, graph=graph)
    feed = {"x:0": np.ones(4, np.float32)}
    session.list_devices()
    session.run(fetches["begin"])
    session.run(fetches["train"], feed)
    session.run(fetches["put"], feed)
    session.run([fetches["take"], fetches["text"]], options=v1.RunOptions(trace_level=3), run_metadata=v1.RunMetadata())
    session.make_callable(fetches["train"], ["x:0"])(np.ones(4, np.float32))
    handle = session.partial_run_setup([fetches["train"]], ["x:0"])
    session.partial_run(handle, fetches["train"], feed)
    return session


def _damaged(rng: random.Random, path: str, data: bytes) -> bytes:
    method = path.rpartition("/")[2]
    service = services.MASTER if "MasterService" in path else services.WORKER
    kind = services.methods(service)[method].request
    while (damaged := messages.mutate_serialized(rng, data, kind)) == data and method in _ENDS:
        pass
    return damaged


class _Sender:
    """Sends requests, many at a time, and waits for no answer for long."""

    def __init__(self, channels: Channels, address: str):
        self._channel = channels[address]
        self._lines = lines.Lines(channels)
        self._address = address
        self._under_way: list[Any] = []

    def __call__(self, path: str, data: bytes) -> None:
        if path.startswith("line/"):
            line = self._lines.wait(self._address)
            try:
                assert line is not None
                call = line.start(path.partition("/")[2], (data,), "ps")
            except UnavailableError:
                return
        else:
            call = self._channel.unary_unary(path).future(data, timeout=_SECONDS)
        self._under_way.append(call)
        if len(self._under_way) >= _ABREAST:
            self.finish()

    def finish(self) -> None:
        """Give up what is still waited for."""
        ends = time.monotonic() + _SECONDS
        for call in self._under_way:
            while not _is_done(call) and time.monotonic() < ends:
                time.sleep(0.002)
            call.cancel()
        self._under_way.clear()


def _is_done(call: Any) -> bool:
    return call.is_done if isinstance(call, Pending) else call.done()


def test_damaged_requests_end_no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    _assault(monkeypatch, 200, 1)


@pytest.mark.long
def test_ten_thousand_damaged_requests_end_no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    _assault(monkeypatch, 10_000, 2)
