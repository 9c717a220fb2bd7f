"""Who may listen where, and who is let in."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from schemas import master_pb2
from tests.cluster.certificates import self_signed
from tests.cluster.small_master import status_of
from toolkit.cluster.rpc import services
from toolkit.cluster.rpc.channels import Access, channel
from toolkit.cluster.rpc.server import Listening, Server
from toolkit.errors import UsageError

UNAUTHENTICATED, EXHAUSTED = 16, 8


def _handlers() -> list[Any]:
    def reset(request: Any, context: Any) -> Any:
        return master_pb2.ResetResponse()

    def list_devices(request: Any, answer: services.Answer) -> None:
        answer.give(master_pb2.ListDevicesResponse())

    return [services.handler(services.MASTER, {"Reset": reset}, later={"ListDevices": list_devices})]


def _asked(server: Server, access: Access, size: int = 1) -> tuple[int, str]:
    with channel(f"localhost:{server.port}", access) as open_channel:
        stub = services.Stub(open_channel, services.MASTER)
        request = master_pb2.ResetRequest(container=["x" * size])
        reset = status_of(lambda: stub["Reset"](request, metadata=access.metadata))
        listed = status_of(lambda: stub["ListDevices"](master_pb2.ListDevicesRequest(), metadata=access.metadata))
        assert size > 1 or reset[0] == listed[0]
        return reset


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.2", "example.org"])
def test_elsewhere_than_at_loopback_a_server_asks_who_calls(host: str) -> None:
    with pytest.raises(UsageError, match="token or a TLS key"):
        Listening(host).check()
    Listening(host, token="t").check()
    Listening(host, key=b"k", certificates=b"c").check()


def test_listening_that_makes_no_sense() -> None:
    for host in ("127.0.0.1", "localhost", "::1", "127.1.2.3"):
        Listening(host).check()
    with pytest.raises(UsageError, match="only one of them"):
        Listening(key=b"k").check()
    with pytest.raises(UsageError, match="printable ASCII"):
        Listening(token="a\nb").check()
    assert "secret" not in repr(Listening(token="secret"))


def test_a_token_is_asked_for() -> None:
    server = Server(Listening(token="right"), _handlers())
    server.start()
    try:
        assert _asked(server, Access("right"))[0] == 0
        assert _asked(server, Access("wrong"))[0] == UNAUTHENTICATED
        assert _asked(server, Access())[0] == UNAUTHENTICATED
    finally:
        server.stop()


def test_large_messages_are_refused() -> None:
    server = Server(Listening(message_bytes=1000), _handlers())
    server.start()
    try:
        assert _asked(server, Access())[0] == 0
        assert _asked(server, Access(), 2000)[0] == EXHAUSTED
    finally:
        server.stop()


def test_a_port_that_is_taken() -> None:
    server = Server(Listening(), _handlers())
    with pytest.raises(UsageError, match="cannot listen"):
        Server(Listening(port=server.port), _handlers())
    server.start()
    assert server.address == f"127.0.0.1:{server.port}" and server.wait(0.001)
    server.stop()


@pytest.mark.skipif(shutil.which("openssl") is None, reason="certificates are made by openssl")
def test_tls(tmp_path: Path) -> None:
    key, certificate = self_signed(tmp_path)
    server = Server(Listening(key=key.read_bytes(), certificates=certificate.read_bytes(), token="t"), _handlers())
    server.start()
    try:
        assert _asked(server, Access("t", certificate.read_bytes()))[0] == 0
        assert _asked(server, Access("", certificate.read_bytes()))[0] == UNAUTHENTICATED
    finally:
        server.stop()
