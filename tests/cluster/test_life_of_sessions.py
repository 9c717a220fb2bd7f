"""Sessions at TensorFlow's servers from their start to their end: who shares what, what waits, what is lost."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests import patience
from tests.cluster import mixed_clusters
from tests.cluster.clients import unique
from tests.cluster.tensorflow_servers import Cluster, free_ports, start
from toolkit import tensorflow as gm
from toolkit.cluster.client import calls
from toolkit.errors import (
    AbortedError,
    CancelledError,
    DeadlineExceededError,
    FailedPreconditionError,
    UnavailableError,
    UsageError,
)
from toolkit.runtime.session import Session

pytestmark = pytest.mark.tensorflow
#: more elements than are put before a cancellation has reached the server
MANY = 100_000
ROOT = Path(__file__).resolve().parents[2]


def counter(name: str, container: str = "", job: str = "/job:ps/task:0") -> Any:
    """A graph with a variable at a parameter server, with operations that initialize and count it."""
    with gm.Graph().as_default() as graph, gm.device(job), gm.container(container):
        held = gm.get_variable(name, [], initializer=gm.zeros_initializer(), use_resource=False)
        gm.assign_add(held, 1.0, name="count")
        gm.identity(held, name="value")
        gm.group(held.initializer, name="init")
    return graph


def test_clients_share_variables(tf: ModuleType, servers: Cluster) -> None:
    name = unique("shared")
    first = gm.Session(servers.target("worker", 0), graph=counter(name))
    second = gm.Session(servers.target("worker", 1), graph=counter(name))
    with first, second:
        first.run("init")
        for _ in range(3):
            first.run("count")
            second.run("count")
        assert second.run("value:0") == 6
    v1 = tf.compat.v1
    with v1.Graph().as_default(), v1.device("/job:ps/task:0"):
        held = v1.get_variable(name, [], initializer=v1.zeros_initializer(), use_resource=False)
        with v1.Session(servers.target("worker", 0)) as session:  # they live on, for TensorFlow too
            assert session.run(held) == 6


def test_isolated_sessions_do_not(servers: Cluster) -> None:
    graph = counter(unique("isolated"))
    config = gm.ConfigProto(isolate_session_state=True)
    with (
        gm.Session(servers.target(), graph=graph, config=config) as first,
        gm.Session(servers.target(), graph=graph, config=config) as second,
        gm.Session(servers.target(), graph=graph) as shared,
    ):
        first.run("init")
        first.run("count")
        for other in (second, shared):
            with pytest.raises(FailedPreconditionError):
                other.run("value:0")
        second.run("init")
        assert (first.run("value:0"), second.run("value:0")) == (1, 0)


def test_devices_are_those_that_the_filters_let_through(tf: ModuleType, servers: Cluster) -> None:
    filters = ["/job:ps", "/job:worker/task:1"]
    for chosen in ([], filters):
        with gm.Session(
            servers.target("worker", 1), graph=gm.Graph(), config=gm.ConfigProto(device_filters=chosen)
        ) as session:
            ours = session.list_devices()
        theirs_config = tf.compat.v1.ConfigProto(device_filters=chosen)
        with tf.compat.v1.Session(servers.target("worker", 1), graph=tf.Graph(), config=theirs_config) as session:
            expected = session.list_devices()
        assert sorted((each.name, each.device_type, each.incarnation % (1 << 64)) for each in ours) == sorted(
            (each.name, each.device_type, each.incarnation % (1 << 64))
            for each in expected  # theirs has a sign
        )
        assert len(ours) == (2 if chosen else 3)


def test_a_session_needs_no_nodes_at_first(servers: Cluster) -> None:
    with gm.Graph().as_default(), gm.Session(servers.target()) as session:
        assert len(session.list_devices()) == 3
        assert session.run(gm.constant(4) + 1) == 5


def blocked(cluster: Cluster) -> tuple[Any, str]:
    """A graph whose step "take" waits at a queue for many elements; "put" and "size" are of that queue."""
    name = unique("blocked")
    with gm.Graph().as_default() as graph, gm.device("/job:ps/task:0"):
        queue = gm.FIFOQueue(2 * MANY, [gm.int32], [[]], shared_name=name)
        queue.enqueue(7, name="put")
        gm.identity(queue.dequeue_many(MANY), name="take")
        gm.identity(queue.size(), name="size")
    return graph, name


def waits(watcher: Any) -> None:
    """Until the step waits: it takes what is put one by one."""
    watcher.run("put")
    patience.until(lambda: watcher.run("size:0") == 0, "the step takes from the queue")


def gives_up(watcher: Any) -> None:
    """Until the step has left the queue, and before it has got all that it waited for: what is put stays."""
    puts = 0

    def stays() -> bool:
        nonlocal puts
        watcher.run("put")
        puts += 1
        return watcher.run("size:0") > 0

    patience.until(stays, "the step is cancelled at the server")
    assert puts < MANY - 1


def in_thread(function: Any) -> tuple[threading.Thread, list[BaseException]]:
    errors: list[BaseException] = []

    def run() -> None:
        try:
            function()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, errors


def test_a_step_past_its_deadline_is_cancelled(servers: Cluster) -> None:
    graph, _ = blocked(servers)
    with (
        gm.Session(servers.target(), graph=graph) as session,
        gm.Session(servers.target(), graph=graph) as watcher,
    ):
        with pytest.raises(DeadlineExceededError, match="longer than 300 ms"):
            session.run("take:0", options=gm.RunOptions(timeout_in_ms=300))
        gives_up(watcher)
        watcher.run("size:0")  # both go on
    config = gm.ConfigProto(operation_timeout_in_ms=3000)
    impatient = gm.Session(servers.target(), graph=graph, config=config)
    with impatient, pytest.raises(DeadlineExceededError, match="3000 ms"):
        impatient.run("take:0")


def test_closing_ends_what_runs(servers: Cluster) -> None:
    graph, _ = blocked(servers)
    session = gm.Session(servers.target(), graph=graph)
    with gm.Session(servers.target(), graph=graph) as watcher:
        thread, errors = in_thread(lambda: session.run("take:0"))
        waits(watcher)
        session.close()
        thread.join(patience.HUNG)
        assert isinstance(errors[0], CancelledError) and "session was closed" in str(errors[0])
        gives_up(watcher)
    session.close()
    with pytest.raises(UsageError, match="the session is closed"):
        session.run("size:0")


_INTERRUPTED = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs, and their children, ignore it
from toolkit.formats.models.model import read_model
from toolkit.runtime.session import Session
session = Session(read_model(sys.argv[2]), target=sys.argv[1])
session.run("size:0")
print("runs", flush=True)
try:
    session.run("take:0")
except KeyboardInterrupt:
    print("size", session.run("size:0") >= 0, flush=True)
    sys.stdin.read()
"""


def test_an_interruption_cancels_the_step_and_leaves_the_session(servers: Cluster, tmp_path: Path) -> None:
    graph, _ = blocked(servers)
    file = tmp_path / "graph.pb"
    file.write_bytes(graph.as_graph_def().SerializeToString())
    process = subprocess.Popen(
        [sys.executable, "-c", _INTERRUPTED, servers.target(), str(file)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT,
    )  # fmt: skip
    killer = threading.Timer(patience.HUNG, process.kill)
    killer.start()
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "runs\n"
        with gm.Session(servers.target(), graph=graph) as watcher:
            waits(watcher)
            process.send_signal(signal.SIGINT)
            assert process.stdout.readline() == "size True\n"
            gives_up(watcher)
        process.communicate("")
    finally:
        killer.cancel()
        process.kill()
        process.wait()


def test_reset_empties_containers(servers: Cluster) -> None:
    kept, dropped = unique("kept"), unique("dropped")
    graphs = {name: counter("held", name) for name in (kept, dropped)}
    for graph in graphs.values():
        with gm.Session(servers.target(), graph=graph) as session:
            session.run("init")
    gm.Session.reset(servers.target(), [dropped])
    with gm.Session(servers.target(), graph=graphs[kept]) as session:
        assert session.run("value:0") == 0
    emptied = gm.Session(servers.target(), graph=graphs[dropped])
    with emptied, pytest.raises(FailedPreconditionError):
        emptied.run("value:0")


def test_no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "CONNECT_SECS", 0.2)
    (port,) = free_ports(1)
    lonely = Session(counter("v"), target=f"grpc://localhost:{port}")
    with lonely, pytest.raises(UnavailableError, match=f"no server at grpc://localhost:{port}"):
        lonely.run("init")
    with pytest.raises(UnavailableError, match="no server at"):
        Session.reset(f"grpc://localhost:{port}")


@pytest.mark.parametrize(
    "target",
    ["grpc://", "grpc://localhost", "grpc://localhost:0", "grpc://localhost:99999", "grpc://a b:1", "grpc://:5"],
)
def test_no_address(target: str) -> None:
    with pytest.raises(UsageError, match="no address of a master; expected grpc://HOST:PORT"):
        Session(gm.Graph(), target=target)


def test_other_targets() -> None:
    with pytest.raises(UsageError, match=r"'http://x:1' is not a session target; expected '' or one of grpc://"):
        Session(gm.Graph(), target="http://x:1")


def test_a_proxy_is_not_asked_for_loopback(servers: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    (nowhere,) = free_ports(1)
    for name in ("http_proxy", "https_proxy", "grpc_proxy"):
        monkeypatch.setenv(name, f"http://localhost:{nowhere}")
    with gm.Session(servers.target(), graph=counter(unique("proxied"))) as session:
        session.run("init")


@pytest.mark.parametrize("begin", [start, mixed_clusters.start], ids=["tensorflow", "graphmill"])
def test_servers_that_are_lost(begin: Any) -> None:
    """kill -9 of a parameter server and of the master within a step: one clear error each, and a way on."""
    with begin({"ps": 1, "worker": 1}) as cluster:
        graph, _ = blocked(cluster)
        session = Session(graph, target=cluster.target())
        watcher = Session(graph, target=cluster.target())
        thread, errors = in_thread(lambda: session.run("take:0"))
        waits(watcher)
        cluster.kill("ps")
        thread.join(patience.HUNG)
        assert isinstance(errors[0], UnavailableError | AbortedError | CancelledError), errors
        cluster.restart("ps")

        # The master finds out that the task is another one; a new session goes on with what is left, which is nothing.
        def again() -> bool:
            try:
                with Session(graph, target=cluster.target()) as fresh:
                    return fresh.run("size:0") == 0
            except (UnavailableError, AbortedError):
                return False

        patience.until(again, "the master finds the new task")
        session = Session(graph, target=cluster.target())
        watcher = Session(graph, target=cluster.target())
        thread, errors = in_thread(lambda: session.run("take:0"))
        waits(watcher)
        cluster.kill("worker")
        thread.join(patience.HUNG)
        assert isinstance(errors[0], UnavailableError), errors
        assert f"the master at {cluster.target()} cannot be reached" in str(errors[0])
        cluster.restart("worker")
        known: list[AbortedError] = []

        def forgotten() -> bool:
            try:
                session.run("size:0")
            except UnavailableError:
                return False
            except AbortedError as error:
                known.append(error)
            return True

        patience.until(forgotten, "the new master answers")
        assert "not found" in str(known[0]) or "has no session" in str(known[0])
        session.close()
        watcher.close()
        with Session(graph, target=cluster.target()) as fresh:
            assert fresh.run("size:0") >= 0
