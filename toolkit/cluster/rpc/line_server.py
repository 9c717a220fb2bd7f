"""The end of a line that answers: calls of a worker's service that come over sockets beside gRPC (`rpc.lines`).

Who asks over gRPC, and was let in there, is told a port and a ticket that is good for one connection. Each connection
has a thread that reads it. What may wait, a graph that runs, goes on in that very thread, and another one reads on, so
that nothing is handed from thread to thread on a step's way.
"""

from __future__ import annotations

import contextlib
import hmac
import secrets
import socket
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from google.protobuf.message import DecodeError, Message

from toolkit.cluster.rpc.channels import MESSAGE_BYTES
from toolkit.cluster.rpc.frames import CANCEL, METHODS, RESPONSE, STATUS, Frames, LineEndedError, Piece
from toolkit.cluster.rpc.statuses import status_of
from toolkit.errors import InvalidArgumentError, ResourceExhaustedError, UnavailableError
from toolkit.runtime.device_threads import start

M = TypeVar("M", bound=Message)

#: bytes of a ticket
TICKET = 16
#: what a connection is answered when its ticket is good
WELCOME = b"\x01"
_WAITING = 64  # tickets that nobody has come with yet
_SECONDS = 10.0  # in which one has to come
_CONNECTIONS = 4096
#: calls of one connection that are under way: as many as a server of gRPC's has
_CALLS = 60_000


class LineAnswer:
    """A call that came over a line, to be answered once, from any thread; see `services.Answer`."""

    __slots__ = ("_calls", "_frames", "_is_over", "_lock", "_number", "_reactions")

    def __init__(self, frames: Frames, number: int, calls: dict[int, LineAnswer]):
        self._frames = frames
        self._number = number
        self._calls = calls
        self._lock = threading.Lock()
        self._is_over = False
        self._reactions: list[Callable[[], None]] = []

    def when_over(self, react: Callable[[], None]) -> bool:
        """Call this when the call ends, answered or not; False where it has ended already."""
        with self._lock:
            if not self._is_over:
                self._reactions.append(react)
            return not self._is_over

    #: the name that it has in gRPC's contexts
    add_callback = when_over

    def give(self, response: bytes | Sequence[Piece]) -> None:
        """Send a response."""
        self._answer(RESPONSE, (response,) if isinstance(response, bytes) else response)

    def fail(self, code: int, message: str, details: bytes = b"") -> None:
        """Send a status."""
        self._answer(STATUS, (bytes((code,)), message.encode(errors="replace")))

    def _answer(self, kind: int, pieces: Sequence[Piece]) -> None:
        if self._number and not self._is_over:  # 0: nobody waits for an answer
            with contextlib.suppress(UnavailableError):
                self._frames.write(self._number, kind, pieces)
        self.end()

    def end(self) -> None:
        """It is over. Again is fine."""
        self._calls.pop(self._number, None)
        with self._lock:
            self._is_over = True
            reactions, self._reactions = self._reactions, []
        for react in reactions:
            react()


#: answers a request, now or later
Method = Callable[[bytes, LineAnswer], None]


class LineServer:
    """Listens for lines. Nothing does until the first is asked for.

    Args:
        methods: by their names, those of `METHODS`.
        waiting: which of them may wait, so that another thread has to read on.
        host: where to listen; beyond loopback only a ticket tells who may come.
        most_bytes: the largest request that is taken.
    """

    def __init__(
        self, methods: Mapping[str, Method], waiting: Sequence[str], host: str, most_bytes: int = MESSAGE_BYTES
    ):
        self._methods = [methods[name] for name in METHODS]
        self._waits = [name in waiting for name in METHODS]
        self._host = host
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self._tickets: OrderedDict[bytes, float] = OrderedDict()
        self._listener: socket.socket | None = None
        self._open: dict[Frames, dict[int, LineAnswer]] = {}
        self._unknown = 0  # connections that have not shown a ticket yet
        self._is_closed = False

    def invite(self) -> bytes:
        """A port (two bytes) and a ticket for one connection.

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
                    target=self._accept, args=(self._listener,), daemon=True, name="graphmill lines"
                ).start()
            while self._tickets and (
                len(self._tickets) >= _WAITING or now - next(iter(self._tickets.values())) > _SECONDS
            ):
                self._tickets.popitem(last=False)
            self._tickets[ticket] = now
            port: int = self._listener.getsockname()[1]
        return port.to_bytes(2, "big") + ticket

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with self._lock:
                is_too_many = self._unknown >= 4 * _WAITING
                self._unknown += not is_too_many
            if is_too_many:  # each has a thread until its time is over
                connection.close()
                continue
            start("line", lambda connection=connection: self._meet(connection))

    def _meet(self, connection: socket.socket) -> None:
        """Look at the ticket, and serve who has one."""
        connection.settimeout(_SECONDS)
        try:
            given = connection.recv(TICKET, socket.MSG_WAITALL)
            with self._lock:
                found = next((each for each in self._tickets if hmac.compare_digest(each, given)), None)
                is_welcome = found is not None and time.monotonic() - self._tickets.pop(found) <= _SECONDS
                is_welcome = is_welcome and not self._is_closed and len(self._open) < _CONNECTIONS
            if not is_welcome:
                connection.close()
                return
            connection.sendall(WELCOME)
        except OSError:
            connection.close()
            return
        finally:
            with self._lock:
                self._unknown -= 1
        frames, calls = Frames(connection, self._most_bytes), dict[int, LineAnswer]()
        with self._lock:
            self._open[frames] = calls
        if self._is_closed:
            frames.close()
        self._serve(frames, calls)

    def _serve(self, frames: Frames, calls: dict[int, LineAnswer]) -> None:
        """Read, and answer; until the connection ends, or another thread reads."""
        while True:
            try:
                number, kind, request = frames.read()
                if kind == CANCEL:
                    under_way = calls.get(number)
                    if under_way is not None:
                        under_way.end()
                    continue
                if kind >= len(METHODS) or number in calls:
                    raise LineEndedError("it is no request")
            except LineEndedError:
                self._hang_up(frames, calls)
                return
            answer = LineAnswer(frames, number, calls)
            if number:
                calls[number] = answer
            if len(calls) > _CALLS:
                answer.fail(ResourceExhaustedError.code, f"{_CALLS:,} calls are under way over this connection")
                continue
            is_another_reading = self._waits[kind]
            if is_another_reading:
                start("line", lambda: self._serve(frames, calls))
            try:
                self._methods[kind](request, answer)
            except Exception as error:
                answer.fail(*status_of(error))
            if is_another_reading:
                return

    def _hang_up(self, frames: Frames, calls: dict[int, LineAnswer]) -> None:
        frames.close()
        with self._lock:
            self._open.pop(frames, None)
        for each in list(calls.values()):
            each.end()

    def close(self) -> None:
        """End all connections, and the calls that are under way."""
        with self._lock:
            self._is_closed = True
            listener, frames = self._listener, list(self._open)
        if listener is not None:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        for each in frames:
            each.close()  # who reads it ends its calls


def parsed(message: type[M], request: bytes) -> M:
    """The message of a request.

    Raises:
        InvalidArgumentError: it is none.
    """
    try:
        return message.FromString(request)
    except DecodeError:
        raise InvalidArgumentError(f"a request is no {message.__name__}") from None
