"""How messages travel: several channels to a task, compression, and what rpc_options of TensorFlow's programs say."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from commands.main import run
from schemas import config_pb2, rpc_options_pb2, worker_pb2
from tests import patience
from tests.cluster.small_master import PS, WORKER, pair
from tests.cluster.tensorflow_servers import free_ports
from toolkit import tensorflow as v1
from toolkit.cluster.client.calls import MasterCalls
from toolkit.cluster.client.kind import open as open_session
from toolkit.cluster.client.own_master import OwnMaster
from toolkit.cluster.rpc import services
from toolkit.cluster.rpc.channels import MOST_CHANNELS, OPEN, Channels, ChannelSettings, channel
from toolkit.cluster.rpc.server import Listening, Server
from toolkit.cluster.worker.service import WorkerService
from toolkit.errors import UsageError


def _of(**options: Any) -> ChannelSettings:
    return ChannelSettings.of(rpc_options_pb2.RPCOptions(**options))


def test_what_rpc_options_mean(caplog: pytest.LogCaptureFixture) -> None:
    assert _of() == _of(num_channels_per_target=-3) == _of(cache_rpc_response=True) == ChannelSettings()
    assert _of(num_channels_per_target=4).count == 4
    assert _of(compression_algorithm="gzip", compression_level=9) == ChannelSettings(compression="gzip", level=3)
    assert _of(disable_session_connection_sharing=True).is_apart
    assert not caplog.records
    with caplog.at_level(logging.WARNING, "graphmill"):
        assert not _of(compression_algorithm="snappy").compression, "TensorFlow goes on without"
    assert "'snappy' is neither deflate nor gzip" in caplog.text
    with pytest.raises(UsageError, match=f"ask for 1 to {MOST_CHANNELS}"):
        _of(num_channels_per_target=MOST_CHANNELS + 1)
    with pytest.raises(UsageError, match="no compression"):
        ChannelSettings(compression="zip")


@pytest.fixture
def peers() -> Iterator[tuple[str, list[str]]]:
    """A server, and who has called it: one name for each connection."""
    seen: list[str] = []

    def status(request: Any, context: Any) -> Any:
        seen.append(context.peer())
        return worker_pb2.GetStatusResponse()

    server = Server(Listening(), [services.handler(services.WORKER, {"GetStatus": status})])
    server.start()
    yield server.address, seen
    server.stop()


def _ask(made: Any, filler: str = "") -> None:
    stub = services.Stub(made, services.WORKER, raw_requests=("GetStatus",))
    # a field that nobody knows: what messages carry is what is measured
    stub["GetStatus"](b"\xfa\x3f" + _varint(len(filler)) + filler.encode(), timeout=patience.HUNG)


def _varint(number: int) -> bytes:
    parts = bytearray()
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    return bytes((*parts, number))


def test_each_channel_has_a_connection(peers: tuple[str, list[str]]) -> None:
    address, seen = peers
    channels = Channels(OPEN, ChannelSettings(3))
    for made in (*channels.every(address), *channels.every(address), channels[address]):
        _ask(made)
    assert len(set(seen)) == 3 and seen[:3] == seen[3:6] and seen[6] == seen[0]
    channels.close()


def test_connections_are_shared_unless_it_says_otherwise(peers: tuple[str, list[str]]) -> None:
    address, seen = peers
    made = [channel(address), channel(address), channel(address, settings=ChannelSettings(is_apart=True))]
    for each in made:
        _ask(each)
    assert seen[0] == seen[1] != seen[2]
    for each in made:
        each.close()


class _Between:
    """Hands on what comes for a server, and counts it."""

    def __init__(self, address: str):
        self.count = 0
        self._to = address.rpartition(":")[::2]
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._socket.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._socket.accept()
            except OSError:
                return
            far = socket.create_connection((self._to[0], int(self._to[1])))
            threading.Thread(target=self._pass, args=(near, far, True), daemon=True).start()
            threading.Thread(target=self._pass, args=(far, near, False), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket, is_counted: bool) -> None:
        try:
            while data := source.recv(1 << 16):
                self.count += len(data) if is_counted else 0
                target.sendall(data)
        except OSError:
            pass
        for each in (source, target):
            each.close()

    def close(self) -> None:
        self._socket.close()


@pytest.mark.parametrize("compression", ["", "gzip", "deflate"])
def test_compression(peers: tuple[str, list[str]], compression: str) -> None:
    size = 1 << 20
    between = _Between(peers[0])
    made = channel(between.address, settings=ChannelSettings(compression=compression, is_apart=True))
    _ask(made, "a" * size)
    made.close()
    between.close()
    assert (between.count < size / 2) == bool(compression)


def test_tensors_come_over_all_channels(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    receive = WorkerService.receive_tensor

    def watched(self: WorkerService, request: Any, answer: Any) -> None:
        seen.append(answer._context.peer())
        receive(self, request, answer)

    monkeypatch.setattr(WorkerService, "receive_tensor", watched)
    graph = v1.Graph()
    with graph.as_default():
        x = v1.placeholder("float32", [2], name="x")
        with v1.device(f"{PS}/device:CPU:0"):
            sent = [v1.add(x, float(each)) for each in range(6)]
        with v1.device(f"{WORKER}/device:CPU:0"):
            v1.add_n([v1.negative(each) for each in sent], name="sum")
    placed = graph.core.copy()
    for node in placed:
        node.device = node.device or f"{PS}/device:CPU:0"
    with pair(channels=ChannelSettings(3)) as both:
        both.create("s")
        handles = both.register("s", placed, ["x"], ["sum"])
        values = both.run("s", handles, 7, {PS: {0: np.float32([1, 2])}}, {WORKER: [0]})
    np.testing.assert_array_equal(values[0], [-21, -27])
    assert len(seen) == 6 and len(set(seen)) == 3


def _server(**options: Any) -> Any:
    (port,) = free_ports(1)
    config = v1.ConfigProto(rpc_options=options)
    return v1.train.Server({"worker": [f"localhost:{port}"]}, config=config)


def test_a_server_and_a_session_obey_their_configs() -> None:
    server = _server(num_channels_per_target=2, compression_algorithm="gzip")
    channels = server._served._channels
    assert channels.settings == ChannelSettings(2, "gzip")
    with v1.Graph().as_default() as graph:
        seven = v1.constant(7) + 0
        for is_asked, kind in ((False, OwnMaster), (True, MasterCalls)):
            config = v1.ConfigProto()
            config.rpc_options.use_rpc_for_inprocess_master = is_asked
            config.rpc_options.num_channels_per_target = 2
            given = config_pb2.ConfigProto.FromString(config.SerializeToString())
            opened = open_session(server.target, graph.core, given)
            assert isinstance(opened._calls, kind)
            opened.close()
            with v1.Session(server.target, graph=graph, config=config) as session:
                assert session.run(seven) == 7
    server._served.stop()


def test_too_many_are_refused(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UsageError, match="channels to each task cannot be had"):
        _server(num_channels_per_target=1000)
    file = tmp_path / "cluster.yaml"
    file.write_text("jobs: {worker: ['localhost:1']}\n")
    for command in (["worker", "--cluster", str(file)], ["cluster", "up", str(file)]):
        assert run([*command, "--channels", "0"]) == 2
        error = capsys.readouterr().err
        assert "--channels" in error and "0 channels to each task cannot be had; ask for 1 to 64" in error
