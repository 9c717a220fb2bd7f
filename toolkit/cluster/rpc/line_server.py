"""The end of a line that answers: calls of a worker's service that come over sockets beside gRPC (`rpc.lines`).

Who asks over gRPC, and was let in there, has a ticket for one connection (`rpc.tickets`). Each connection has a thread
that reads it. What may wait, a graph that runs, goes on in that very thread, and another one reads on, so
that nothing is handed from thread to thread on a step's way.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from google.protobuf.message import DecodeError, Message

from toolkit.cluster.rpc.channels import MESSAGE_BYTES
from toolkit.cluster.rpc.frames import CANCEL, METHODS, RESPONSE, STATUS, Frames, LineEndedError, Piece
from toolkit.cluster.rpc.statuses import status_of
from toolkit.cluster.rpc.tickets import TicketListener
from toolkit.errors import InvalidArgumentError, ResourceExhaustedError, UnavailableError
from toolkit.runtime.device_threads import start

M = TypeVar("M", bound=Message)

#: what a connection is answered when its ticket is good
WELCOME = b"\x01"
_SECONDS = 10.0  # in which who has a ticket has to come
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
    """The other ends of lines.

    Args:
        methods: by their names, those of `METHODS`.
        waiting: which of them may wait, so that another thread has to read on.
        listener: where they come; whoever made it closes it, which ends them.
        most_bytes: the largest request that is taken.
    """

    def __init__(
        self,
        methods: Mapping[str, Method],
        waiting: Sequence[str],
        listener: TicketListener,
        most_bytes: int = MESSAGE_BYTES,
    ):
        self._methods = [methods[name] for name in METHODS]
        self._waits = [name in waiting for name in METHODS]
        self._most_bytes = most_bytes
        self._listener = listener

    def invite(self) -> bytes:
        """A port (two bytes) and a ticket for one connection.

        Raises:
            ResourceExhaustedError: too many have not come yet.
            UnavailableError: it is closed.
        """
        return self._listener.invite(self._meet, _SECONDS)

    def _meet(self, connection: socket.socket) -> bool:
        connection.sendall(WELCOME)
        self._serve(Frames(connection, self._most_bytes), {})
        return False

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
        self._listener.let_go(frames.connection)
        for each in list(calls.values()):
            each.end()


def parsed(message: type[M], request: bytes) -> M:
    """The message of a request.

    Raises:
        InvalidArgumentError: it is none.
    """
    try:
        return message.FromString(request)
    except DecodeError:
        raise InvalidArgumentError(f"a request is no {message.__name__}") from None
