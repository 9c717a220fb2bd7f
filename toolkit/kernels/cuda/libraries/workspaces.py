"""Memory that a library uses while it computes.

There is one piece in a context for each library, for all their work goes through the compute stream, or is recorded
and replayed in it, in order. A piece stays where it is as long as the context lives, for a captured graph has its
address: where more is wanted, a larger one follows, at least twice as large, and the old one stays as well.
"""

from __future__ import annotations

import threading

from toolkit.kernels.cuda.driver.base import Context, GpuSpan


class Workspace:
    """Of one library in one context.

    Args:
        least: bytes of the first piece.
    """

    def __init__(self, context: Context, least: int):
        self._context = context
        self._least = least
        self._lock = threading.Lock()
        self._pieces: list[GpuSpan] = []

    def of(self, nbytes: int) -> GpuSpan:
        """At least so many bytes.

        Raises:
            OutOfDeviceMemory: there is no room.
        """
        with self._lock:
            if not self._pieces or self._pieces[-1].nbytes < nbytes:
                before = self._pieces[-1].nbytes if self._pieces else 0
                size = max(nbytes, self._least, 2 * before)
                self._pieces.append(GpuSpan(self._context.allocate(size), size))
            return self._pieces[-1]

    @property
    def nbytes(self) -> int:
        """All that is held."""
        return sum(piece.nbytes for piece in self._pieces)
