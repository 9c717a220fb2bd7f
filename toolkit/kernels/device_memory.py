"""What a device's memory is asked for; a device type names what makes it (`toolkit.kernels.device_types`)."""

from __future__ import annotations

from abc import ABC
from dataclasses import dataclass
from typing import Any, Protocol

from toolkit.kernels.types import Array


@dataclass(slots=True)
class MemoryStatistics:
    """What a device's memory has done, in bytes and times (TensorFlow's AllocatorStats).

    Attributes:
        in_use, peak: bytes of arrays that are alive, and the most that ever were.
        limit: bytes that there may be; None for no limit.
        allocations: arrays made.
        copies_in, copies_out: from and to host memory.
    """

    in_use: int = 0
    peak: int = 0
    limit: int | None = None
    allocations: int = 0
    copies_in: int = 0
    copies_out: int = 0


class DeviceArray(ABC):
    """A tensor in a device's memory: host code may ask what it is, never what is in it.

    Arrays of a library are made known by `DeviceArray.register(their_class)`.

    Attributes:
        dtype: its NumPy type.
        shape: its sizes.
        nbytes: how much memory it takes.
    """

    __slots__ = ()

    dtype: Any
    shape: tuple[int, ...]
    nbytes: int


class DeviceMemory(Protocol):
    """The memory of one device."""

    def copy_in(self, array: Array) -> DeviceArray:
        """A tensor from host memory.

        Raises:
            ResourceExhaustedError: there is no room for it.
        """
        ...

    def copy_out(self, array: DeviceArray) -> Array:
        """A tensor to host memory: an array of the caller's own.

        Raises:
            InternalError: the array belongs to another device.
        """
        ...

    def owns(self, value: Any) -> bool:
        """Whether a value lies in this memory."""
        ...

    def synchronize(self) -> None:
        """Wait until all that was asked for is done."""
        ...

    def statistics(self) -> MemoryStatistics: ...
