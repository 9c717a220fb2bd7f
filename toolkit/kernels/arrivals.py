"""Threads that wait for copies: one for each memory, whose copies end in the order in which they began."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Protocol

from toolkit.forks import held_over_forks
from toolkit.kernels.device_memory import DeviceMemory

#: what waits for a copy and gives it
Wait = Callable[[], Any]


class Receiver(Protocol):
    """What is given a copy when it is there; what it raises it is told."""

    def __call__(self, value: Any) -> None: ...

    def failed(self, error: BaseException) -> None:
        """There is none, and why."""
        ...


class _Arrivals:
    """The thread of one memory.

    Attributes:
        memory: kept, so that its number is nobody else's.
    """

    def __init__(self, memory: DeviceMemory):
        self.memory = memory
        self.waiting: SimpleQueue[tuple[Wait, Receiver]] = SimpleQueue()
        threading.Thread(target=self._serve, name="graphmill copies", daemon=True).start()

    def _serve(self) -> None:
        while True:
            wait, receiver = self.waiting.get()
            try:
                receiver(wait())
            except Exception as error:
                with contextlib.suppress(Exception):  # whoever it is for has ended
                    receiver.failed(error)
            del wait, receiver  # what they hold must not live until the next one comes


_threads: dict[int, _Arrivals] = {}
_lock = held_over_forks()


def hand_over(memory: DeviceMemory, wait: Wait, receiver: Receiver) -> None:
    """Have the thread of a memory wait for a copy and give it on; returns at once."""
    found = _threads.get(id(memory))
    if found is None:
        with _lock:
            found = _threads.get(id(memory)) or _threads.setdefault(id(memory), _Arrivals(memory))
    found.waiting.put((wait, receiver))


os.register_at_fork(after_in_child=_threads.clear)  # a child has none of its parent's threads
