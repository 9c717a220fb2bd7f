"""Connections beside gRPC: who has a ticket is served, once; who has none holds up nobody."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator

import pytest

from tests import patience
from toolkit.cluster.rpc.server import LOOPBACK
from toolkit.cluster.rpc.tickets import PLACE, STRANGERS, TICKET, TicketListener
from toolkit.errors import UnavailableError

NEVER = 1e9  # seconds


class Desk:
    """Answers each ticket with what it is for."""

    def __init__(self, connections: int = 4, seconds: float = NEVER) -> None:
        self.listener: TicketListener[bytes] = TicketListener(
            self._meet, LOOPBACK, name="desk", seconds=seconds, connections=connections
        )

    def _meet(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError, UnavailableError):
            while True:
                connection.sendall(self.listener.next_of(connection))
        self.listener.let_go(connection)

    def invite(self, what: bytes) -> tuple[int, bytes]:
        """A port and a ticket."""
        place = self.listener.invite(what)
        assert len(place) == PLACE
        return int.from_bytes(place[:2], "big"), place[2:]


@pytest.fixture
def desk() -> Iterator[Desk]:
    made = Desk()
    yield made
    made.listener.close()


def _connect(port: int) -> socket.socket:
    return socket.create_connection((LOOPBACK, port), patience.HUNG)


def test_a_ticket_is_good_once(desk: Desk) -> None:
    port, ticket = desk.invite(b"!")
    for given, answer in ((bytes(TICKET), b""), (ticket[:3], b""), (ticket, b"!"), (ticket, b"")):
        with _connect(port) as stranger:
            stranger.sendall(given)
            if len(given) < TICKET:
                stranger.shutdown(socket.SHUT_WR)
            assert stranger.recv(1) == answer


def test_one_connection_may_show_several(desk: Desk) -> None:
    (port, first), (same, second) = desk.invite(b"1"), desk.invite(b"2")
    assert port == same
    with _connect(port) as known:
        for ticket, answer in ((second, b"2"), (first, b"1"), (first, b"")):
            known.sendall(ticket)
            assert known.recv(1) == answer


def test_tickets_that_nobody_comes_with_are_dropped(desk: Desk) -> None:
    tickets = [desk.invite(bytes((number,))) for number in range(70)]
    for (port, ticket), answer in ((tickets[-1], bytes((69,))), (tickets[0], b"")):
        with _connect(port) as each:
            each.sendall(ticket)
            assert each.recv(1) == answer
    late = Desk(seconds=-1)  # over before anybody can come
    port, ticket = late.invite(b"!")
    with _connect(port) as each:
        each.sendall(ticket)
        assert each.recv(1) == b""
    late.listener.close()


def test_connections_without_a_ticket_are_few(desk: Desk) -> None:
    """Each has a thread until its time is over; what comes on top is closed at once, and they make room in the end."""
    (port, ticket), (_, later) = desk.invite(b"1"), desk.invite(b"2")
    with _connect(port) as known:
        known.sendall(ticket)
        assert known.recv(1) == b"1"
        held = [_connect(port) for _ in range(STRANGERS)]
        with _connect(port) as over:
            assert over.recv(1) == b""
        known.sendall(later)
        assert known.recv(1) == b"2", "who is known already is served meanwhile"
        for each in held:
            each.close()
        patience.until(lambda: desk.listener.strangers == 0, "they are gone")
    port, ticket = desk.invite(b"3")
    with _connect(port) as welcome:
        welcome.sendall(ticket)
        assert welcome.recv(1) == b"3"


def test_connections_with_a_ticket_are_counted() -> None:
    desk = Desk(connections=1)
    (port, first), (_, second), (_, third) = (desk.invite(bytes((number,))) for number in range(3))
    with _connect(port) as known, _connect(port) as other:
        known.sendall(first)
        assert known.recv(1) == b"\0"
        other.sendall(second)
        assert other.recv(1) == b""
        known.sendall(third)
        assert known.recv(1) == b"\2"
    desk.listener.close()


def test_the_end_ends_all_connections(desk: Desk) -> None:
    port, ticket = desk.invite(b"!")
    with _connect(port) as known, _connect(port) as stranger:
        known.sendall(ticket)
        assert known.recv(1) == b"!"
        patience.until(lambda: desk.listener.strangers == 1, "it was seen")
        desk.listener.close()
        assert known.recv(1) == b"" and stranger.recv(1) == b""
    with pytest.raises(UnavailableError, match="stops"):
        desk.invite(b"!")
    with pytest.raises(OSError):
        _connect(port)
