"""Large tensors between two tasks of one machine, beside gRPC.

gRPC's Python library copies a message several times and puts what comes together piece by piece, at an eighth of what
loopback carries. So where a task of ours asks another one on the same machine, and no TLS was asked for, the response
of RecvTensor says where the elements are to be had: a port and a ticket, in `transport_options`, which TensorFlow has
for such ways (`rpc.tickets`). The elements are then written from the array's memory and read into the receiver's.
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

from toolkit.cluster.rpc.tickets import PLACE, TicketListener
from toolkit.errors import UnavailableError

#: asks for this way, and says that it is taken, in `transport_options.type_url`
BULK = "graphmill/bulk"
#: smaller tensors are there sooner in the response
LEAST = 1 << 20
_LOOPBACK = "127.0.0.1"
_SECONDS = 60.0  # a receiver that has not come by then has died; an array lives as long as its ticket
_RECEIVERS = 256  # connections of other tasks
_CONNECTIONS = 8  # kept open to one task, which is how many tensors it sends at one time
_BUFFER = 256 << 10  # of a socket: what is written is still in the cache when it is read
#: bytes of buffers that are kept for the tensors of the next step
_KEPT = 256 << 20


class BulkSender:
    """Gives arrays to who has a ticket. Nothing listens until the first is offered."""

    def __init__(self) -> None:
        self._listener: TicketListener[Any] = TicketListener(
            self._serve, _LOOPBACK, name="bulk", seconds=_SECONDS, connections=_RECEIVERS
        )

    def offer(self, array: Any) -> bytes | None:
        """Keep an array until it is fetched.

        Returns:
            what tells the receiver where, for `fetch`; None where this way is closed.
        """
        try:
            return self._listener.invite(np.ascontiguousarray(array))
        except UnavailableError:
            return None

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError, UnavailableError):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER)
            while True:
                array = self._listener.next_of(connection)
                connection.sendall(array.reshape(-1).view(np.uint8).data)
                del array
        self._listener.let_go(connection)

    def close(self) -> None:
        """Stop listening and end what is under way."""
        self._listener.close()


class BulkReceiver:
    """Fetches what other tasks of this machine offer; keeps connections for the next time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: dict[int, list[socket.socket]] = {}
        self._buffers: list[Any] = []

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

    def fetch(self, where: bytes, array: Any) -> None:
        """Fill a dense array with what was offered.

        Raises:
            UnavailableError: the offer is gone, or its task.
        """
        port, ticket = int.from_bytes(where[:2], "big"), where[2:PLACE]
        with self._lock:
            idle = self._idle.setdefault(port, [])
            connection = idle.pop() if idle else None
        try:
            if connection is None:
                connection = socket.create_connection((_LOOPBACK, port), timeout=_SECONDS)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
            connection.sendall(ticket)
            left = array.reshape(-1).view(np.uint8).data
            while left:
                count = connection.recv_into(left)
                if not count:
                    raise ConnectionError("the connection ended")
                left = left[count:]
        except OSError as error:
            if connection is not None:
                connection.close()
            raise UnavailableError(f"a tensor that was offered could not be fetched: {error}") from None
        with self._lock:
            if len(idle) < _CONNECTIONS:
                idle.append(connection)
                return
        connection.close()

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            connections = [each for idle in self._idle.values() for each in idle]
            self._idle.clear()
        for each in connections:
            each.close()
