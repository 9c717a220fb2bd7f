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
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

from toolkit.errors import UnavailableError
from toolkit.runtime.device_threads import start

T = TypeVar("T")

#: bytes of a ticket
TICKET = 16
#: bytes of an invitation: a port and a ticket
PLACE = 2 + TICKET
#: tickets that nobody has come with yet
_WAITING = 64
_SHOW_SECONDS = 10.0  # in which who has connected shows a ticket
#: connections that have shown none yet
STRANGERS = 4 * _WAITING


class TicketListener(Generic[T]):
    """Listens for those who have tickets. Nothing does until the first ticket is given out.

    Args:
        meet: serves a connection, in a thread of its own. It asks what the first ticket is for (`next_of`), may return
            before the connection ends, and says when that is (`let_go`).
        host: where to listen; beyond loopback only a ticket tells who may come.
        name: of threads.
        seconds: that a ticket is good for.
        connections: that have shown one, at one time.
    """

    def __init__(
        self, meet: Callable[[socket.socket], None], host: str, *, name: str, seconds: float, connections: int
    ):
        self._meet = meet
        self._host = host
        self._name = name
        self._seconds = seconds
        self._most = connections
        self._lock = threading.Lock()
        self._tickets: OrderedDict[bytes, tuple[T, float]] = OrderedDict()
        self._listener: socket.socket | None = None
        self._strangers: set[socket.socket] = set()  # they have not shown a ticket yet
        self._known: set[socket.socket] = set()
        self._is_closed = False

    def invite(self, what: T) -> bytes:
        """A port (two bytes) and a ticket for something, which is kept until somebody comes for it.

        Raises:
            UnavailableError: it is closed.
        """
        ticket, now = secrets.token_bytes(TICKET), time.monotonic()
        with self._lock:
            if self._is_closed:
                raise UnavailableError("the server stops")
            if self._listener is None:
                family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
                self._listener = socket.create_server((self._host.strip("[]"), 0), family=family, backlog=_WAITING)
                threading.Thread(
                    target=self._accept, args=(self._listener,), daemon=True, name=f"graphmill {self._name}"
                ).start()
            while self._tickets and (
                len(self._tickets) >= _WAITING or now - next(iter(self._tickets.values()))[1] > self._seconds
            ):
                self._tickets.popitem(last=False)
            self._tickets[ticket] = what, now
            port: int = self._listener.getsockname()[1]
        return port.to_bytes(2, "big") + ticket

    def next_of(self, connection: socket.socket) -> T:
        """What the ticket is for that comes next over a connection.

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
            what, since = self._tickets.pop(found[0])
            is_late = time.monotonic() - since > self._seconds
            if is_late or (connection in self._strangers and len(self._known) >= self._most):
                raise UnavailableError("it comes too late, or there are too many")
            if connection in self._strangers:
                self._strangers.remove(connection)
                self._known.add(connection)
                connection.settimeout(None)
        return what

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with self._lock:
                is_too_many = len(self._strangers) >= STRANGERS or self._is_closed
                if not is_too_many:
                    self._strangers.add(connection)
            if is_too_many:  # each has a thread until its time is over
                connection.close()
                continue
            connection.settimeout(_SHOW_SECONDS)
            start(self._name, lambda connection=connection: self._meet(connection))

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
        """Listen no more, and end all connections: who reads from one is told so."""
        with self._lock:
            self._is_closed = True
            sockets = [*self._strangers, *self._known, *([] if self._listener is None else [self._listener])]
            self._tickets.clear()
        for each in sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        if self._listener is not None:
            self._listener.close()
