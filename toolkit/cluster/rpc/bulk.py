"""Large tensors between two tasks of ours, beside gRPC and beside the line that they were asked for over.

gRPC's Python library copies a message several times and puts what comes together piece by piece, at an eighth of what
loopback carries; and over a line (`rpc.lines`) whatever else is answered would wait behind a large tensor. So where a
task of ours asks another one, over a line or on the same machine, and no TLS was asked for, the response of RecvTensor
says where the elements are to be had: a port and a ticket (`rpc.tickets`), in `transport_options`, which TensorFlow has
for such ways. The elements are then written from the array's memory and read into the receiver's, several tensors at
one time, each over a connection of its own.
"""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import contextlib
import socket
import sys
import threading
from typing import Any

import numpy as np

from toolkit.cluster.rpc.server import is_loopback
from toolkit.cluster.rpc.tickets import PLACE, TicketListener, come
from toolkit.errors import ResourceExhaustedError, UnavailableError

#: asks for this way, and says that it is taken, in `transport_options.type_url`
BULK = "graphmill/bulk"
#: smaller tensors are there sooner in the response
LEAST = 1 << 20
_SECONDS = 60.0  # a receiver that has not come by then has died; an array lives as long as its ticket
_CONNECTIONS = 8  # kept open to one task, which is how many tensors it sends at one time
_BUFFER = 256 << 10  # of a socket on one machine: what is written is still in the cache when it is read
#: bytes of buffers that are kept for the tensors of the next step
_KEPT = 256 << 20


class BulkSender:
    """Gives arrays to who has a ticket.

    Args:
        listener: where they come; whoever made it closes it.
    """

    def __init__(self, listener: TicketListener):
        self._listener = listener

    def offer(self, array: Any) -> bytes | None:
        """Keep an array until it is fetched.

        Returns:
            what tells the receiver where, for `fetch`; None where this way is closed, or too many are kept already.
        """
        dense = np.ascontiguousarray(array)

        def send(connection: socket.socket) -> bool:
            if is_loopback(connection.getsockname()[0]):
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER)
            connection.sendall(dense.reshape(-1).view(np.uint8).data)
            return True

        try:
            return self._listener.invite(send, _SECONDS)
        except (ResourceExhaustedError, UnavailableError):
            return None


class BulkReceiver:
    """Fetches what other tasks offer; keeps connections for the next time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: dict[tuple[str, bytes], list[socket.socket]] = {}  # by host and port
        self._busy: set[socket.socket] = set()
        self._buffers: list[Any] = []
        self._is_closed = False

    def room(self, size: int) -> Any:
        """So many bytes to fetch into; those of a tensor of before that nobody has any more, where there are some.

        The system gives fresh memory page by page, which takes as long as reading what comes.
        """
        with self._lock:
            for buffer in self._buffers:
                # the list, the loop and the argument; whoever has a view of it is counted
                if buffer.size == size and sys.getrefcount(buffer) == 3:
                    return buffer.view()
            made = np.empty(size, np.uint8)
            self._buffers.append(made)
            while len(self._buffers) > 1 and sum(each.size for each in self._buffers) > _KEPT:
                self._buffers.pop(0)
            return made.view()

    def fetch(self, host: str, where: bytes, array: Any) -> None:
        """Fill a dense array with what was offered.

        Args:
            host: of the task that has offered it.

        Raises:
            UnavailableError: the offer is gone, or its task.
        """
        with self._lock:
            idle = self._idle.setdefault((host, where[:2]), [])
            connection = idle.pop() if idle else None
            if connection is not None:
                self._busy.add(connection)
        try:
            if connection is None:
                connection = come(host, where, _SECONDS)
                with self._lock:
                    self._busy.add(connection)
                    if self._is_closed:
                        raise ConnectionError("this task ends")
                if is_loopback(connection.getpeername()[0]):
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
            else:
                connection.sendall(where[2:PLACE])
            left = array.reshape(-1).view(np.uint8).data
            while left:
                count = connection.recv_into(left)
                if not count:
                    raise ConnectionError("the connection ended")
                left = left[count:]
        except OSError as error:
            if connection is not None:
                with self._lock:
                    self._busy.discard(connection)
                connection.close()
            raise UnavailableError(f"a tensor that was offered could not be fetched: {error}") from None
        with self._lock:
            self._busy.discard(connection)
            if len(idle) < _CONNECTIONS and not self._is_closed:
                idle.append(connection)
                return
        connection.close()

    def close(self) -> None:
        """Close the connections; what is under way fails."""
        with self._lock:
            self._is_closed = True
            connections = [each for idle in self._idle.values() for each in idle]
            self._idle.clear()
            for each in self._busy:  # closed by who reads from it
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
        for each in connections:
            each.close()
