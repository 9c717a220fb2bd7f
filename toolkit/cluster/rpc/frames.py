"""Frames on a socket between two tasks of ours: what a line (`rpc.lines`) is made of.

A frame is its size, the number of a call, a kind, and that many bytes. Writing never waits: what the socket does not
take at once goes on in a thread, for whoever writes is a step, or reads what another one has to say.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections import deque
from collections.abc import Sequence

from toolkit.errors import UnavailableError

#: kinds: of a request, the position of its method in `METHODS`; else one of these
RESPONSE, STATUS, CANCEL = 100, 101, 102
#: the methods of WorkerService that a step makes, by their kinds
METHODS = ("RunGraph", "CleanupGraph", "RecvTensor")
_HEAD = struct.Struct("<IQB")
_READ = 1 << 16
#: pieces that one call of the system takes, well below its limit
_PIECES = 64
#: seconds after which who does not read what was written has gone
_SECONDS = 60.0

Piece = bytes | memoryview


class LineEndedError(Exception):
    """The other end has closed the connection, or sent what is no frame."""


class Frames:
    """The frames of one connection. Any thread may write; one at a time may read.

    Args:
        most_bytes: the largest frame that is taken.

    Attributes:
        connection: the socket.
    """

    def __init__(self, connection: socket.socket, most_bytes: int):
        connection.settimeout(None)
        self.connection = connection
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self._behind: deque[Piece] = deque()
        self._is_closed = False
        self._left = b""

    def write(self, number: int, kind: int, pieces: Sequence[Piece] = ()) -> None:
        """Send a frame, or see to it that it is sent.

        Args:
            pieces: of what is in it; memories must stay as they are until they are sent.

        Raises:
            UnavailableError: the connection has ended.
        """
        size = sum(map(len, pieces))
        if len(pieces) >= _PIECES:
            pieces = (b"".join(pieces),)
        frame: list[Piece] = [_HEAD.pack(size, number, kind), *pieces]
        with self._lock:
            if self._is_closed:
                raise UnavailableError("the connection has ended")
            if self._behind:
                self._behind.extend(frame)
                return
            try:
                sent = self.connection.sendmsg(frame, (), socket.MSG_DONTWAIT)
            except BlockingIOError:
                sent = 0
            except OSError as error:
                raise UnavailableError(f"the connection has ended: {error.strerror}") from None
            if sent == _HEAD.size + size:
                return
            for piece in frame:
                if sent < len(piece):
                    self._behind.append(memoryview(piece)[sent:])
                sent = max(0, sent - len(piece))
            threading.Thread(target=self._catch_up, name="graphmill line", daemon=True).start()

    def _catch_up(self) -> None:
        """Send what is behind, and wait for the socket meanwhile."""
        while True:
            with self._lock:
                if self._is_closed:
                    self._behind.clear()
                    return
                piece = self._behind[0]
            timer = threading.Timer(_SECONDS, self.close)
            timer.daemon = True
            timer.start()
            try:
                self.connection.sendall(piece)
            except OSError:
                self.close()
            finally:
                timer.cancel()
            with self._lock:
                self._behind.popleft()  # only now, so that nobody has overtaken it
                if not self._behind:
                    return

    def read(self) -> tuple[int, int, bytes]:
        """Wait for a frame: the number of its call, its kind, and what is in it.

        Raises:
            LineEndedError: there are no more.
        """
        data = self._left
        while len(data) < _HEAD.size:
            data += self._received()
        size, number, kind = _HEAD.unpack_from(data)
        if size > self._most_bytes:
            raise LineEndedError(f"a frame of {size:,} bytes is more than is taken here, {self._most_bytes:,}")
        end = _HEAD.size + size
        if len(data) >= end:
            self._left = data[end:]
            return number, kind, data[_HEAD.size : end]
        self._left = b""
        pieces = [data[_HEAD.size :]]
        missing = end - len(data)
        if missing > _READ:
            rest = self._exactly(missing)
            return number, kind, b"".join((*pieces, rest))
        while missing > 0:
            more = self._received()
            if len(more) > missing:
                self._left, more = more[missing:], more[:missing]
            pieces.append(more)
            missing -= len(more)
        return number, kind, b"".join(pieces)

    def _received(self) -> bytes:
        try:
            data = self.connection.recv(_READ)
        except OSError as error:
            raise LineEndedError(str(error.strerror)) from None
        if not data:
            raise LineEndedError("the other end has closed it")
        return data

    def _exactly(self, size: int) -> bytes:
        """So many bytes; memory is taken as they come."""
        found: list[bytearray] = []
        room = _READ
        while size:
            found.append(bytearray(min(room, size)))
            size -= len(found[-1])
            view = memoryview(found[-1])
            while view:
                try:
                    count = self.connection.recv_into(view)
                except OSError as error:
                    raise LineEndedError(str(error.strerror)) from None
                if not count:
                    raise LineEndedError("the other end has closed it")
                view = view[count:]
            room *= 2
        return b"".join(found)

    def close(self) -> None:
        """End the connection; who reads is told. Again is fine."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)
        self.connection.close()
