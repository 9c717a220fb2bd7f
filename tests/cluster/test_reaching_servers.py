"""What a user is told who does not get to a server: keys that do not fit, names that nobody has, tasks that are not
there. One line, with what to do, and at once where waiting changes nothing."""

from __future__ import annotations

import shutil
import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path

import pytest

from schemas import cluster_pb2, master_pb2
from tests import patience
from tests.cluster.tensorflow_servers import free_ports
from toolkit.cluster import processes
from toolkit.cluster.client import calls
from toolkit.cluster.client.kind import access
from toolkit.cluster.rpc.certificates import check_pair, read_roots
from toolkit.cluster.rpc.server import is_own
from toolkit.cluster.rpc.unreachable import is_lasting, reason
from toolkit.cluster.server import ClusterServer, Keys, server_def
from toolkit.cluster.status import ask_all
from toolkit.errors import OpError, PermissionDeniedError, UnavailableError, UsageError
from toolkit.formats.settings.cluster import read_cluster
from toolkit.policy.rules import Policy

openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="certificates are made by openssl")


@dataclass
class Files:
    """Certificates of an authority `ca` for localhost, and of others that do not fit."""

    folder: Path

    def __getitem__(self, name: str) -> str:
        return str(self.folder / name)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    folder = tmp_path_factory.mktemp("keys")

    def call(*words: str) -> None:
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)

    for name in ("ca", "other"):
        call("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}",
             "-keyout", f"{name}.key", "-out", f"{name}.pem")  # fmt: skip
    for name, host, days in (("good", "localhost", "2"), ("old", "localhost", "-1"), ("stranger", "far.example", "2")):
        call("req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={host}", "-keyout", f"{name}.key",
             "-out", f"{name}.csr")  # fmt: skip
        (folder / "names").write_text(f"subjectAltName=DNS:{host}")
        call("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
             "-days", days, "-extfile", "names", "-out", f"{name}.pem")  # fmt: skip
    (folder / "text").write_text("no certificate\n")
    (folder / "empty").write_text("")
    return Files(folder)


def _served(keys: Keys, others: int = 0) -> ClusterServer:
    """A server at loopback, of a cluster with so many other tasks that are not there."""
    ports = free_ports(1 + others)
    cluster = cluster_pb2.ClusterDef()
    cluster.job.add(name="worker").tasks[0] = f"localhost:{ports[0]}"
    for number in range(others):
        cluster.job.add(name=f"missing{number}").tasks[0] = f"localhost:{ports[1 + number]}"
    server = ClusterServer(server_def(cluster, "worker", 0), policy=Policy(), keys=keys)
    server.start()
    return server


def _error_at(target: str) -> OpError:
    """What a session at a server of another process would end with (one of this process takes no connection)."""
    found = calls.MasterCalls(target, target.removeprefix("grpc://"), access())
    try:
        with pytest.raises(OpError) as raised:
            found.create(master_pb2.CreateSessionRequest(), None)
    finally:
        found.close()
    return raised.value


@openssl
def test_connections_that_cannot_be_made(files: Files, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(calls, "CONNECT_SECS", patience.HUNG)  # who waits for what will never be takes so long
    read = files.folder.joinpath
    for name, trusted, expected in (
        ("good", "other.pem", "not signed by those of GRAPHMILL_CLUSTER_CA"),
        ("stranger", "ca.pem", "not for the name 'localhost'"),
        ("old", "ca.pem", "certificate has expired"),
        ("", "ca.pem", "speaks no TLS, but GRAPHMILL_CLUSTER_CA is set"),
    ):
        pair = (read(f"{name}.key").read_bytes(), read(f"{name}.pem").read_bytes()) if name else (b"", b"")
        server = _served(Keys("", *pair))
        monkeypatch.setenv("GRAPHMILL_CLUSTER_CA", files[trusted])
        error = _error_at(server.target)
        assert isinstance(error, UnavailableError) and expected in error.message, error
        file = tmp_path / "cluster.yaml"
        file.write_text(f"jobs: {{worker: ['{server.target.removeprefix('grpc://')}']}}")
        (row,) = ask_all(read_cluster(str(file)), patience.HUNG)
        assert expected in row["error"]
        server.stop()


@openssl
def test_a_plain_client_at_a_server_with_tls(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GRAPHMILL_CLUSTER_CA", raising=False)
    read = files.folder.joinpath
    server = _served(Keys("", read("good.key").read_bytes(), read("good.pem").read_bytes()))
    messages: list[str] = []
    for seconds in (0.1, 1.0, calls.CONNECT_SECS):  # a busy machine closes the first connection late
        monkeypatch.setattr(calls, "CONNECT_SECS", seconds)
        messages.append(_error_at(server.target).message)
        if "it closed the connection" in messages[-1]:
            break
    server.stop()
    assert "if it speaks TLS, set GRAPHMILL_CLUSTER_CA" in messages[-1]


def test_nobody_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "CONNECT_SECS", 0.1)
    (port,) = free_ports(1)
    message = _error_at(f"grpc://localhost:{port}").message
    assert "there is no server" in message and "nobody listens there" in message
    assert "there is no host of the name 'no such.host'" in _error_at("grpc://no such.host:1").message


def test_tokens_that_do_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    server = _served(Keys("right"))
    for token, expected in (("", "asks for its token: set GRAPHMILL_CLUSTER_TOKEN"), ("wrong", "is not this server's")):
        monkeypatch.setenv("GRAPHMILL_CLUSTER_TOKEN", token)
        error = _error_at(server.target)
        assert isinstance(error, PermissionDeniedError) and expected in error.message
    server.stop()
    monkeypatch.setenv("GRAPHMILL_CLUSTER_TOKEN", "with a\u00e9")
    with pytest.raises(UsageError, match="printable ASCII"):
        access()


@openssl
def test_files_that_no_server_can_prove_itself_with(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    root = read_roots("CA", files["ca.pem"])
    check_pair(files["good.key"], files["good.pem"], root)
    check_pair(files["good.key"], files["good.pem"], b"")
    check_pair(files["ca.key"], files["ca.pem"], root)  # signed by itself
    for key, certificate, roots, expected in (
        ("other.key", "good.pem", root, "the key is not that of the certificate"),
        ("text", "good.pem", root, "expected PEM"),
        ("good.key", "text", root, "expected PEM"),
        ("old.key", "old.pem", root, "certificate has expired"),
        ("old.key", "old.pem", b"", "certificate has expired"),
        ("good.key", "good.pem", read_roots("CA", files["other.pem"]), "nobody would take this certificate"),
    ):
        with pytest.raises(UsageError, match=expected):
            check_pair(files[key], files[certificate], roots)
    for name, expected in (("text", "no certificate in it"), ("empty", "is empty"), ("nowhere", "No such file")):
        with pytest.raises(UsageError, match=expected):
            read_roots("CA", files[name])
    monkeypatch.setenv("GRAPHMILL_CLUSTER_KEY", files["other.key"])
    monkeypatch.setenv("GRAPHMILL_CLUSTER_CERT", files["good.pem"])
    with pytest.raises(UsageError, match="the key is not that"):
        Keys.of_environment()


def test_a_session_that_waits_says_so(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(calls, "_SAY_SECS", 0.01)
    server = _served(Keys(), others=1)
    ended: list[OpError] = []
    thread = threading.Thread(target=lambda: ended.append(_error_at(server.target)))
    thread.start()
    patience.until(lambda: "waits for tasks of its cluster" in caplog.text, "the line that says so")
    server.stop()
    thread.join(patience.HUNG)
    assert len(ended) == 1


def test_whose_address_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert is_own("localhost") and is_own("127.0.0.1") and is_own("0.0.0.0")
    assert not is_own("192.0.2.77") and not is_own("no such.host")
    file = tmp_path / "c.yaml"
    file.write_text("jobs: {ps: ['192.0.2.77:1'], worker: ['192.0.2.78:1']}")
    with pytest.raises(UsageError, match="no task of this cluster has an address of this machine"):
        processes.LocalTasks(read_cluster(str(file)), str(file), [], print)


def test_what_is_not_known_is_told_as_it_is() -> None:
    assert reason("the moon is full", "a:1") == "the moon is full"
    assert reason("Socket closed", "a:1") == "Socket closed"  # in the middle of a step
    assert not is_lasting("failed to connect to all addresses; Connection refused")
