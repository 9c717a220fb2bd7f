"""Lines between two tasks of ours: who may come, what is answered, what ends with them."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("grpc")

from schemas.worker_pb2 import CleanupGraphRequest, RunGraphRequest
from tests import patience
from tests.cluster.tensorflow_servers import free_ports
from toolkit.cluster.rpc import lines
from toolkit.cluster.rpc.channels import Access, Channels
from toolkit.cluster.rpc.frames import METHODS, Frames, LineEndedError
from toolkit.cluster.rpc.line_server import WELCOME, LineAnswer, LineServer, Method, parsed
from toolkit.cluster.rpc.lines import Line, Lines
from toolkit.cluster.rpc.pending import Pending
from toolkit.cluster.rpc.server import LOOPBACK, Listening, Server
from toolkit.cluster.rpc.tickets import TicketListener
from toolkit.errors import AbortedError, CancelledError, InvalidArgumentError, UnavailableError

MOST = 1 << 20


class Answers:
    """What the server's end was asked, and has not answered."""

    def __init__(self) -> None:
        self.waiting: dict[bytes, LineAnswer] = {}
        self.came = threading.Semaphore(0)
        self.over = threading.Semaphore(0)

    def wait(self, request: bytes, answer: LineAnswer) -> None:
        """Answered by the test."""
        self.waiting[request] = answer
        assert answer.when_over(self.over.release)
        self.came.release()

    def echo(self, request: bytes, answer: LineAnswer) -> None:
        """Answered at once, or refused."""
        if request == b"refuse":
            raise AbortedError("no such thing", node="n")
        answer.give((request, memoryview(request)))


@pytest.fixture
def answers() -> Answers:
    return Answers()


@pytest.fixture
def listener() -> Iterator[TicketListener]:
    made = TicketListener(LOOPBACK)
    yield made
    made.close()


@pytest.fixture
def served(answers: Answers, listener: TicketListener) -> LineServer:
    methods = {"RunGraph": answers.wait, "CleanupGraph": answers.echo, "RecvTensor": answers.echo}
    return LineServer(methods, ("RunGraph",), listener, MOST)


def _connected(server: LineServer) -> socket.socket:
    invitation = server.invite()
    connection = socket.create_connection((LOOPBACK, int.from_bytes(invitation[:2], "big")), patience.HUNG)
    connection.sendall(invitation[2:])
    return connection


@pytest.fixture
def line(served: LineServer) -> Iterator[Line]:
    connection = _connected(served)
    assert connection.recv(1) == WELCOME
    made = Line(Frames(connection, MOST))
    yield made
    made.close()


def test_calls_are_answered_in_any_order(line: Line, answers: Answers) -> None:
    first, second = (line.start("RunGraph", (request,), "ps") for request in (b"1", b"2"))
    assert line.start("CleanupGraph", (b"a", b"b"), "ps").result() == b"abab"
    for _ in range(2):
        assert answers.came.acquire(timeout=patience.HUNG)
    told: list[Any] = []
    first.react(lambda response, error: told.append((response, error)))
    answers.waiting[b"2"].give(b"second")
    assert second.result() == b"second" and not told
    answers.waiting[b"1"].give(b"")
    assert first.result() == b""
    second.react(lambda response, error: told.append((response, error)))
    assert told == [(b"", None), (b"second", None)]
    line.tell("CleanupGraph", b"nobody waits")
    large = bytes(range(256)) * 2000
    assert line.start("RecvTensor", (large,), "ps").result() == large * 2, "more than a socket takes at once"


def test_errors_are_the_statuses_of_the_other_end(line: Line, answers: Answers) -> None:
    with pytest.raises(AbortedError, match="no such thing") as refused:
        line.start("CleanupGraph", (b"refuse",), "ps").result()
    assert refused.value.node == "n"
    call = line.start("RunGraph", (b"x",), "ps")
    assert answers.came.acquire(timeout=patience.HUNG)
    answers.waiting[b"x"].fail(3, "wrong")
    with pytest.raises(InvalidArgumentError, match="wrong"):
        call.result()
    with pytest.raises(InvalidArgumentError, match="no CleanupGraphRequest"):
        parsed(CleanupGraphRequest, b"\xff")
    assert parsed(RunGraphRequest, b"").step_id == 0


def test_what_is_given_up_is_over_there(line: Line, answers: Answers) -> None:
    call = line.start("RunGraph", (b"x",), "ps")
    assert answers.came.acquire(timeout=patience.HUNG)
    call.cancel()
    call.cancel()
    with pytest.raises(CancelledError):
        call.result()
    assert answers.over.acquire(timeout=patience.HUNG)
    answers.waiting[b"x"].give(b"late")
    assert not answers.waiting[b"x"].when_over(lambda: None)
    assert line.start("RecvTensor", (b"x",), "ps").result() == b"xx"


@pytest.mark.parametrize("who", ["server", "client"])
def test_a_line_that_ends_ends_its_calls(
    who: str, line: Line, listener: TicketListener, served: LineServer, answers: Answers
) -> None:
    call = line.start("RunGraph", (b"x",), "/job:ps/task:0 cannot be reached")
    assert answers.came.acquire(timeout=patience.HUNG)
    (listener if who == "server" else line).close()
    with pytest.raises(UnavailableError, match="/job:ps/task:0 cannot be reached"):
        call.result()
    assert answers.over.acquire(timeout=patience.HUNG)
    with pytest.raises(UnavailableError):
        while True:  # what was written before the end was noticed is lost
            line.start("RecvTensor", (b"x",), "ps").result()
    if who == "server":
        with pytest.raises(UnavailableError, match="stops"):
            served.invite()


@pytest.mark.parametrize(
    "frame",
    [
        b"\xff\xff\xff\xff" + bytes(9),  # larger than is taken
        bytes(12) + bytes((len(METHODS),)),  # no such method
        bytes(12) + b"\xff",
        (2).to_bytes(4, "little") + bytes(8) + b"\x00" + b"x",  # ends in the middle
        b"GET / HTTP/1.1\r\n\r\n",
    ],
)
def test_what_is_no_frame_ends_the_connection_alone(frame: bytes, served: LineServer, line: Line) -> None:
    with _connected(served) as stranger:
        assert stranger.recv(1) == WELCOME
        stranger.sendall(frame)
        stranger.shutdown(socket.SHUT_WR)
        assert stranger.recv(1) == b""
    assert line.start("RecvTensor", (b"x",), "ps").result() == b"xx"


def test_two_calls_of_one_number_end_the_connection(served: LineServer, answers: Answers) -> None:
    with _connected(served) as stranger:
        assert stranger.recv(1) == WELCOME
        frames = Frames(stranger, MOST)
        for _ in range(2):
            frames.write(7, 0, (b"x",))
        with pytest.raises(LineEndedError):
            frames.read()
    assert answers.over.acquire(timeout=patience.HUNG)


def test_who_reads_slowly_holds_up_nobody() -> None:
    """Writing returns although the socket is full, and all arrives in order."""
    here, there = socket.socketpair()
    writer, reader = Frames(here, 1 << 24), Frames(there, 1 << 24)
    sent = [np.full(1 << 19, number, np.uint8) for number in range(8)]
    for number, array in enumerate(sent):
        writer.write(number, 0, (array.data, b"end"))
    for number, array in enumerate(sent):
        found, _, data = reader.read()
        assert found == number and data == array.tobytes() + b"end"
    writer.write(9, 1, [b"x"] * 5000)
    assert reader.read() == (9, 1, b"x" * 5000)
    writer.close()
    with pytest.raises(UnavailableError):
        writer.write(1, 1)
    with pytest.raises(LineEndedError):
        reader.read()
    reader.close()


def test_lines_are_asked_for_over_grpc(answers: Answers) -> None:
    methods: dict[str, Method] = dict.fromkeys(METHODS, answers.echo)
    server, listener = None, TicketListener(LOOPBACK)
    line_server = LineServer(methods, (), listener)
    known = Lines(Channels(Access("right")))
    try:
        port, other = free_ports(2)
        server = Server(Listening(port=port, token="right"), [lines.handler(line_server)])
        server.start()
        found = known.wait(f"localhost:{port}")
        assert found is not None and known.get(f"localhost:{port}") is found
        assert found.start("RecvTensor", (b"x",), "ps").result() == b"xx"
        assert known.wait(f"localhost:{other}") is None, "nobody listens there"
        for channels in (Channels(Access("wrong")), Channels(Access("right", b"roots"))):
            assert Lines(channels).wait(f"localhost:{port}") is None
    finally:
        known.close()
        listener.close()
        if server is not None:
            server.stop()


def test_a_call_is_finished_once() -> None:
    given_up: list[Pending] = []
    call = Pending(given_up.append, "ps")
    call.finish(b"a")
    call.finish(b"b", AbortedError("late"))
    call.cancel()
    assert call.result() == b"a" and not given_up
