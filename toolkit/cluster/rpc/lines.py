"""Lines: what a step asks of another task of ours, over a socket beside gRPC.

A call through gRPC's Python library takes 0.4 ms and as much processor time on both sides, through a socket a
twentieth; a step of one parameter server and one worker makes four. So tasks of ours ask each other over gRPC, where
they are let in by token, for a port and a ticket, and from then on send the same messages of the same methods in
frames (`rpc.frames`). TensorFlow's tasks know no such thing and are called as ever; so is everybody while there is no
line, when one has broken, and over TLS, which lines do not have.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Sequence
from typing import Any

from google.protobuf import empty_pb2, wrappers_pb2

from toolkit.cluster.rpc.channels import MESSAGE_BYTES, Channels
from toolkit.cluster.rpc.frames import CANCEL, METHODS, RESPONSE, STATUS, Frames, LineEndedError, Piece
from toolkit.cluster.rpc.library import grpc
from toolkit.cluster.rpc.line_server import WELCOME, LineServer
from toolkit.cluster.rpc.pending import Pending
from toolkit.cluster.rpc.statuses import abort, to_error
from toolkit.cluster.rpc.tickets import PLACE, come
from toolkit.errors import CancelledError, InternalError, UnavailableError

#: the method by which one is asked for
SERVICE, METHOD = "graphmill.Lines", "Open"
_PATH = f"/{SERVICE}/{METHOD}"
_SECONDS = 5.0  # to ask, and to connect
#: seconds until somebody who had no line, or whose line broke, is asked again
_AGAIN_REFUSED, _AGAIN_BROKEN = 60.0, 0.5
_REQUESTS = {name: kind for kind, name in enumerate(METHODS)}


class Line:
    """A connection to a task. Any thread may call."""

    def __init__(self, frames: Frames):
        self._frames = frames
        self._numbers = itertools.count(1)
        self._calls: dict[int, Pending] = {}
        self.is_lost = False
        threading.Thread(target=self._read, name="graphmill line", daemon=True).start()

    def start(self, method: str, pieces: Sequence[Piece], where: str) -> Pending:
        """Begin a call.

        Args:
            method: one of `METHODS`.
            pieces: the request's bytes.
            where: who is asked what, for messages.

        Raises:
            UnavailableError: the connection has ended.
        """
        number = next(self._numbers)
        call = self._calls[number] = Pending(self._give_up, where, number)
        try:
            self._frames.write(number, _REQUESTS[method], pieces)
        except UnavailableError:
            self._calls.pop(number, None)
            raise
        if self.is_lost:  # between the two
            self._end()
        return call

    def tell(self, method: str, request: bytes) -> None:
        """Make a call whose answer nobody wants.

        Raises:
            UnavailableError: the connection has ended.
        """
        self._frames.write(0, _REQUESTS[method], (request,))

    def _give_up(self, call: Pending) -> None:
        """Say so there, and wait no longer."""
        if self._calls.pop(call.key, None) is not None:
            with contextlib.suppress(UnavailableError):
                self._frames.write(call.key, CANCEL)
        call.finish(b"", CancelledError("the call was cancelled"))

    def _read(self) -> None:
        try:
            while True:
                number, kind, data = self._frames.read()
                call = self._calls.pop(number, None)
                if call is None:  # it was given up
                    continue
                if kind == RESPONSE:
                    call.finish(data)
                elif kind == STATUS and data:
                    call.finish(b"", to_error(data[0], data[1:].decode(errors="replace")))
                else:
                    call.finish(b"", InternalError(f"{call.where}: what came is no answer"))
        except LineEndedError:
            self._frames.close()
            self._end()

    def _end(self) -> None:
        self.is_lost = True
        while self._calls:
            try:
                _, call = self._calls.popitem()
            except KeyError:
                return
            call.finish(b"", UnavailableError(f"{call.where}: the connection has ended"))

    def close(self) -> None:
        """End it, and what is under way."""
        self._frames.close()


class _Known:
    """What is known of an address."""

    def __init__(self) -> None:
        self.line: Line | None = None
        self.is_settled = threading.Event()
        self.is_settled.set()
        self.not_before = 0.0


class Lines:
    """The lines of a process to other tasks, by address.

    Args:
        channels: over which lines are asked for.
        most_bytes: the largest response that is taken.
    """

    def __init__(self, channels: Channels, most_bytes: int = MESSAGE_BYTES):
        self._channels = channels
        self._metadata = channels.access.metadata or None
        self._most_bytes = most_bytes
        self._is_none_possible = bool(channels.access.roots)
        self._lock = threading.Lock()
        self._known: dict[str, _Known] = {}
        self._is_closed = False

    def get(self, address: str) -> Line | None:
        """The line to a task, where there is one; else one is asked for meanwhile."""
        if self._is_none_possible:
            return None
        known = self._known.get(address)
        if known is not None and known.line is not None and not known.line.is_lost:
            return known.line
        with self._lock:
            known = self._known.setdefault(address, _Known())
            now = time.monotonic()
            if known.line is not None and known.line.is_lost:
                known.line, known.not_before = None, now + _AGAIN_BROKEN
            if known.line is None and known.is_settled.is_set() and now >= known.not_before and not self._is_closed:
                known.is_settled.clear()
                threading.Thread(target=self._open, args=(address, known), name="graphmill lines", daemon=True).start()
            return known.line

    def wait(self, address: str) -> Line | None:
        """As `get`, once it is known whether there will be one."""
        line = self.get(address)
        known = self._known.get(address)
        if line is None and known is not None:
            known.is_settled.wait(2 * _SECONDS)
            line = known.line
        return line

    def _open(self, address: str, known: _Known) -> None:
        line, again = None, _AGAIN_REFUSED
        try:
            call = self._channels[address].unary_unary(
                _PATH,
                request_serializer=empty_pb2.Empty.SerializeToString,
                response_deserializer=wrappers_pb2.BytesValue.FromString,
            )
            answer: bytes = call(empty_pb2.Empty(), timeout=_SECONDS, metadata=self._metadata).value
            line = self._connected(address, answer)
        except grpc().RpcError as error:
            if error.code() is grpc().StatusCode.UNAVAILABLE:
                again = _AGAIN_BROKEN
        except (OSError, ValueError):  # ValueError: the channel was closed
            pass
        with self._lock:
            known.line, known.not_before = line, time.monotonic() + again
            known.is_settled.set()
            if line is not None and self._is_closed:
                line.close()

    def _connected(self, address: str, answer: bytes) -> Line | None:
        if len(answer) != PLACE:
            return None
        connection = come(address.rpartition(":")[0], answer, _SECONDS)
        if connection.recv(1) != WELCOME:
            connection.close()
            return None
        return Line(Frames(connection, self._most_bytes))

    def forget(self, address: str) -> None:
        """The task there does not answer any more: end its line, if there is one."""
        known = self._known.get(address)
        line = None if known is None else known.line
        if line is not None:
            line.close()

    def close(self) -> None:
        """End all of them."""
        with self._lock:
            self._is_closed = True
            lines = [known.line for known in self._known.values() if known.line is not None]
        for each in lines:
            each.close()


def handler(server: LineServer) -> Any:
    """What a `grpc.Server` is given, so that others can ask for lines."""
    library = grpc()

    def open_line(_request: Any, context: Any) -> wrappers_pb2.BytesValue:
        try:
            return wrappers_pb2.BytesValue(value=server.invite())
        except Exception as error:
            abort(context, error)
            raise

    row = library.unary_unary_rpc_method_handler(
        open_line,
        request_deserializer=empty_pb2.Empty.FromString,
        response_serializer=wrappers_pb2.BytesValue.SerializeToString,
    )
    return library.method_handlers_generic_handler(SERVICE, {METHOD: row})
