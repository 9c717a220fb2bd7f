"""What a device's memory is asked for; a device type names what makes it (`toolkit.kernels.device_types`)."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from toolkit.kernels.types import Array


@dataclass(slots=True)
class MemoryStatistics:
    """What a device's memory has done, in bytes and times (TensorFlow's AllocatorStats).

    Attributes:
        in_use, peak: bytes of arrays that are alive, and the most that ever were.
        limit: bytes that there may be; None for no limit.
        allocations: arrays made.
        copies_in, copies_out: from and to host memory.
        copies_across: from another device of the type.
    """

    in_use: int = 0
    peak: int = 0
    limit: int | None = None
    allocations: int = 0
    copies_in: int = 0
    copies_out: int = 0
    copies_across: int = 0


class DeviceArray(ABC):
    """A tensor in a device's memory: host code may ask what it is, never what is in it.

    Arrays of a library are made known by `DeviceArray.register(their_class)`.

    Attributes:
        dtype: its NumPy type.
        shape: its sizes.
        nbytes: how much memory it takes.
        memory: where it lies.
    """

    __slots__ = ()

    dtype: Any
    shape: tuple[int, ...]
    nbytes: int
    memory: Any


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


@runtime_checkable
class CopiesLater(Protocol):
    """What a memory may offer besides: copies to host memory that go on while the device computes."""

    def begin_copy_out(self, array: DeviceArray) -> Callable[[], Array]:
        """Begin to copy a tensor to host memory, when all that was asked for before is done.

        Returns:
            what waits for its end and gives the copy, an array of the caller's own; called once, from any thread. It
            raises what the copy, or what makes the tensor, failed with. Copies end in the order in which they began.

        Raises:
            InternalError: the array belongs to another device.
        """
        ...


@runtime_checkable
class CopiesAcross(Protocol):
    """What a memory may offer besides: copies from other devices of its type, without their hosts' memory."""

    def copy_across(self, array: DeviceArray, other: DeviceMemory) -> DeviceArray:
        """A tensor of another device's memory, when what makes it there is done.

        Raises:
            ResourceExhaustedError: there is no room for it.
        """
        ...
