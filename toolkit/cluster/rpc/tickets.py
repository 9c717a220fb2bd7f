"""Connections beside gRPC: who was let in over gRPC is told a port and a ticket, and comes to the port with the ticket.

A ticket is a random number that only the asker is told, through the connection that it was let in at, and is good for
one time. What nobody comes for is dropped. Whoever shows no ticket holds a thread for a few seconds and nothing else,
and only so many can at one time.
"""

from __future__ import annotations

import contextlib
import hmac
import secrets
import socket
import threading
import time
from collections.abc import Callable

from toolkit.errors import ResourceExhaustedError, UnavailableError
from toolkit.runtime.device_threads import start

#: bytes of a ticket
TICKET = 16
#: bytes of an invitation: a port and a ticket
PLACE = 2 + TICKET
#: tickets that nobody has come with yet
MOST_TICKETS = 1024
#: connections that have shown none yet
MOST_STRANGERS = 256
_SHOW_SECONDS = 10.0  # in which who has connected shows one
_CONNECTIONS = 4096  # that have
_BACKLOG = 64

#: what is written goes at once; a host that is cut off is found while something is under way, and while nothing is
_SETTINGS = (
    (socket.IPPROTO_TCP, "TCP_NODELAY", 1),
    (socket.IPPROTO_TCP, "TCP_USER_TIMEOUT", 20_000),
    (socket.SOL_SOCKET, "SO_KEEPALIVE", 1),
    (socket.IPPROTO_TCP, "TCP_KEEPIDLE", 10),
    (socket.IPPROTO_TCP, "TCP_KEEPINTVL", 5),
    (socket.IPPROTO_TCP, "TCP_KEEPCNT", 3),
)

#: serves who has come with a ticket; True where another ticket may follow over the connection. Else the connection is
#: its own from then on, also when it returns, and it says when that is over (`TicketListener.let_go`)
Meet = Callable[[socket.socket], bool]


class TicketListener:
    """Listens for those who have tickets. Nothing does until the first ticket is given out.

    Args:
        host: where to listen; beyond loopback only a ticket tells who may come.
        connections: that have shown a ticket, at one time.
    """

    def __init__(self, host: str, connections: int = _CONNECTIONS):
        self._host = host
        self._most = connections
        self._lock = threading.Lock()
        self._tickets: dict[bytes, tuple[Meet, float]] = {}
        self._listener: socket.socket | None = None
        self._strangers: set[socket.socket] = set()  # they have not shown a ticket yet
        self._known: set[socket.socket] = set()
        self._is_closed = False

    def invite(self, meet: Meet, seconds: float) -> bytes:
        """A port (two bytes) and a ticket.

        Args:
            meet: serves who comes with it, in a thread of its own.
            seconds: that the ticket is good for.

        Raises:
            ResourceExhaustedError: too many have not come yet.
            UnavailableError: it is closed.
        """
        ticket, now = secrets.token_bytes(TICKET), time.monotonic()
        with self._lock:
            if self._is_closed:
                raise UnavailableError("the server stops")
            if self._listener is None:
                family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
                self._listener = socket.create_server((self._host.strip("[]"), 0), family=family, backlog=_BACKLOG)
                threading.Thread(
                    target=self._accept, args=(self._listener,), daemon=True, name="graphmill tickets"
                ).start()
            for late in [each for each, (_, until) in self._tickets.items() if until < now]:
                del self._tickets[late]
            if len(self._tickets) >= MOST_TICKETS:
                raise ResourceExhaustedError(f"{MOST_TICKETS:,} connections are awaited; no more can be")
            self._tickets[ticket] = meet, now + seconds
            port: int = self._listener.getsockname()[1]
        return port.to_bytes(2, "big") + ticket

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with self._lock:
                is_too_many = len(self._strangers) >= MOST_STRANGERS or self._is_closed
                if not is_too_many:
                    self._strangers.add(connection)
            if is_too_many:  # each has a thread until its time is over
                connection.close()
                continue
            start("tickets", lambda connection=connection: self._serve(connection))

    def _serve(self, connection: socket.socket) -> None:
        try:
            tune(connection)
            connection.settimeout(_SHOW_SECONDS)
            while self._next(connection)(connection):
                pass
        except (OSError, UnavailableError):
            self.let_go(connection)

    def _next(self, connection: socket.socket) -> Meet:
        """Who serves the ticket that comes next over a connection.

        Raises:
            UnavailableError: it is not good.
            OSError: none comes.
        """
        given = connection.recv(TICKET, socket.MSG_WAITALL)
        with self._lock:
            # takes as long whichever it is
            found = [each for each in self._tickets if hmac.compare_digest(each, given)]
            if not found:
                raise UnavailableError("it is no ticket that is good here")
            meet, until = self._tickets.pop(found[0])
            if until < time.monotonic():
                raise UnavailableError("it comes too late")
            if connection in self._strangers:
                if len(self._known) >= self._most:
                    raise UnavailableError("there are too many connections")
                self._strangers.remove(connection)
                self._known.add(connection)
                connection.settimeout(None)
        return meet

    def let_go(self, connection: socket.socket) -> None:
        """A connection is over. Again is fine."""
        with self._lock:
            self._strangers.discard(connection)
            self._known.discard(connection)
        connection.close()

    @property
    def strangers(self) -> int:
        """How many connections have not shown a ticket yet."""
        return len(self._strangers)

    def close(self) -> None:
        """Listen no more, and end all connections: who reads from one is told so. Again is fine."""
        with self._lock:
            self._is_closed = True
            sockets = [*self._strangers, *self._known, *([] if self._listener is None else [self._listener])]
            self._tickets.clear()
        for each in sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        if self._listener is not None:
            self._listener.close()


def come(host: str, place: bytes, seconds: float) -> socket.socket:
    """A connection to where an invitation says, over which the ticket has been shown.

    Args:
        host: of who has sent the invitation.
        seconds: for the connection, and for whatever is waited for over it.

    Raises:
        OSError: nobody listens there any more.
    """
    connection = socket.create_connection((host.strip("[]"), int.from_bytes(place[:2], "big")), timeout=seconds)
    try:
        tune(connection)
        connection.sendall(place[2:PLACE])
    except OSError:
        connection.close()
        raise
    return connection


def tune(connection: socket.socket) -> None:
    """Set a connection so that nothing is held back, and that the loss of the other host is noticed."""
    for level, name, value in _SETTINGS if connection.family != socket.AF_UNIX else ():
        if hasattr(socket, name):  # not every system has all of them
            connection.setsockopt(level, getattr(socket, name), value)
