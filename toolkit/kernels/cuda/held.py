"""Tensors that other devices copy from here.

Whoever made such a tensor may be done with it before it is copied: its memory must not be given to others meanwhile,
and nobody may take it for his own and change it in place. So it is referred to here, until the copy is done.
"""

from __future__ import annotations

import threading
from collections import deque

from toolkit.kernels.cuda.driver.base import Context, Event
from toolkit.kernels.cuda.memory import GpuArray


class HeldElsewhere:
    """The tensors of one device, in the order in which they are copied.

    Args:
        context: of that device.
    """

    def __init__(self, context: Context):
        self._context = context
        self._tensors: deque[tuple[Event, GpuArray]] = deque()
        self._lock = threading.Lock()

    def hold(self, tensor: GpuArray, until: Event) -> None:
        """Hold a tensor until an event."""
        self.let_go()
        with self._lock:
            self._tensors.append((until, tensor))

    def let_go(self, *, wait: bool = False) -> None:
        """Let those go that are copied.

        Args:
            wait: for all.
        """
        gone: list[GpuArray] = []  # nothing is freed with the lock held
        with self._lock:
            for until, _ in self._tensors if wait else ():
                self._context.synchronize(until)
            while self._tensors and self._context.done(self._tensors[0][0]):
                gone.append(self._tensors.popleft()[1])
