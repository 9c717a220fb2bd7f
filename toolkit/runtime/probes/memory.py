"""How much memory the tensors of a step take: every array is counted when a kernel makes it until it dies."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from toolkit.compiler.backends.base import Entry
from toolkit.graph.node import Node
from toolkit.kernels.device_memory import DeviceArray
from toolkit.kernels.types import Array


@dataclass(slots=True)
class Usage:
    """Bytes on one device.

    Attributes:
        live: held now.
        peak: the most that was held at once.
        at: the node whose outputs reached the peak.
        allocated: everything that was ever made.
    """

    live: int = 0
    peak: int = 0
    at: str = ""
    allocated: int = 0


class MemoryMeter:
    """Counts the bytes of arrays that kernels make, per device, as long as anything refers to them.

    What a kernel passes on (Identity, a view, the value of a variable, a constant) was not made by it and is not
    counted again; neither are numpy scalars. What a kernel uses while it computes is not seen.
    """

    def __init__(self) -> None:
        self.by_device: dict[str, Usage] = {}
        self._tracked: dict[int, weakref.ref[Any]] = {}
        # Arrays may die anywhere, also while the lock is held by the very thread that drops them.
        self._lock = threading.RLock()

    def made(self, node: Node, device: str, inputs: Sequence[Any], outputs: Sequence[Any]) -> tuple[int, int]:
        """Count the outputs of a kernel that has run.

        Returns:
            bytes that this kernel made, and bytes held on the device now.
        """
        with self._lock:
            usage = self.by_device.setdefault(device, Usage())
            given = {_place(owner) for owner in _owners(inputs)}
            size = 0
            for owner in _owners(outputs):
                if _place(owner) not in given and _place(owner) not in self._tracked:
                    size += owner.nbytes
                    self._track(owner, usage)
            usage.live += size
            usage.allocated += size
            if usage.live > usage.peak:
                usage.peak, usage.at = usage.live, node.name
            return size, usage.live

    def planned(self, device: str, entries: Sequence[Entry]) -> None:
        """Count what a compiled function fills of its own memory."""
        with self._lock:
            usage = self.by_device.setdefault(device, Usage())
            for entry in entries:
                usage.allocated += entry.made_bytes
                if usage.live + entry.in_use_bytes > usage.peak:
                    usage.peak, usage.at = usage.live + entry.in_use_bytes, entry.node

    def _track(self, owner: Any, usage: Usage) -> None:
        key, size = _place(owner), int(owner.nbytes)

        def died(_: object) -> None:
            with self._lock:
                self._tracked.pop(key, None)
                usage.live -= size

        self._tracked[key] = weakref.ref(owner, died)


def _owners(values: Iterable[Any]) -> list[Any]:
    """The arrays that hold the memory of these values, and of the variables among them."""
    found: list[Array] = []
    for value in values:
        held: Any = value if _is_tensor(value) else getattr(value, "value", None)
        if _is_tensor(held):
            found.append(owner_of(held))
        elif isinstance(value, DeviceArray) or isinstance(held, DeviceArray):
            found.append(value if isinstance(value, DeviceArray) else held)
    return found


def _place(owner: Any) -> int:
    """What tells memory apart: the address on a device, of which several tensors may be views; else the array."""
    return getattr(owner, "address", 0) or id(owner)


def owner_of(array: Array) -> Array:
    """The array whose memory a view shows."""
    owner: Any = array
    while _is_tensor(owner.base):
        owner = owner.base
    return owner


def _is_tensor(value: Any) -> bool:
    """Arrays only: numpy scalars cannot be watched. (isinstance in place would narrow `Any` to an unknown dtype.)"""
    return isinstance(value, np.ndarray)
