"""Connections beside gRPC: who has a ticket is served, once; who has none holds up nobody."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from tests import patience
from toolkit.cluster.rpc.server import LOOPBACK
from toolkit.cluster.rpc.tickets import MOST_STRANGERS, MOST_TICKETS, PLACE, TICKET, TicketListener, come
from toolkit.errors import ResourceExhaustedError, UnavailableError

SECONDS = patience.HUNG


class Desk:
    """Answers each ticket with what it is for."""

    def __init__(self, **more: Any) -> None:
        self.listener = TicketListener(LOOPBACK, **more)

    def invite(self, what: bytes, seconds: float = SECONDS) -> tuple[int, bytes]:
        """A port and a ticket."""

        def meet(connection: socket.socket) -> bool:
            connection.sendall(what)
            return True

        place = self.listener.invite(meet, seconds)
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


def test_tickets_that_nobody_comes_with(desk: Desk) -> None:
    port, late = desk.invite(b"!", seconds=-1)
    with _connect(port) as each:
        each.sendall(late)
        assert each.recv(1) == b""
    for _ in range(MOST_TICKETS + 1):  # what is late makes room
        desk.invite(b"!", seconds=-1)
    for _ in range(MOST_TICKETS):
        desk.invite(b"!")
    with pytest.raises(ResourceExhaustedError, match=r"1,024 connections are awaited"):
        desk.invite(b"!")


def test_a_connection_may_be_kept(desk: Desk) -> None:
    kept: list[socket.socket] = []
    place = desk.listener.invite(lambda connection: bool(kept.append(connection)), SECONDS)
    with come(LOOPBACK, place, SECONDS) as known:
        patience.until(lambda: bool(kept), "it was met")
        kept[0].sendall(b"!")
        assert known.recv(1) == b"!"
        desk.listener.let_go(kept[0])
        desk.listener.let_go(kept[0])
        assert known.recv(1) == b""
    desk.listener.close()
    with pytest.raises(OSError):
        come(LOOPBACK, place, SECONDS)


def test_connections_without_a_ticket_are_few(desk: Desk) -> None:
    """Each has a thread until its time is over; what comes on top is closed at once, and they make room in the end."""
    (port, ticket), (_, later) = desk.invite(b"1"), desk.invite(b"2")
    with _connect(port) as known:
        known.sendall(ticket)
        assert known.recv(1) == b"1"
        held = [_connect(port) for _ in range(MOST_STRANGERS)]
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
