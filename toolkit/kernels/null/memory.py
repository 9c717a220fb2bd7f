"""The memory of NULL devices."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from toolkit.errors import InternalError, ResourceExhaustedError
from toolkit.kernels.device_memory import DeviceArray, DeviceMemory, MemoryStatistics
from toolkit.kernels.once import once
from toolkit.kernels.types import Array


class NullArray(DeviceArray):
    """A tensor in the memory of a NULL device.

    Attributes:
        dtype, shape, nbytes: what host code may know.
        memory: where it is.
    """

    __slots__ = ("__weakref__", "_content", "dtype", "memory", "nbytes", "shape")

    def __init__(self, memory: NullMemory, content: Array):
        self.memory = memory
        self.dtype = content.dtype
        self.shape: tuple[int, ...] = content.shape
        self.nbytes = int(content.nbytes)
        self._content = content

    def read(self, memory: NullMemory) -> Array:
        """What is in it, for its own device.

        Raises:
            InternalError: another device asks.
        """
        if memory is not self.memory:
            raise InternalError(f"{memory.name} looked into a tensor of {self.memory.name}; it must be copied there")
        return self._content

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise InternalError(f"host code looked into a tensor of {self.memory.name}; it must be copied out first")

    def __bool__(self) -> bool:
        raise InternalError(
            f"host code asked whether a tensor of {self.memory.name} is true; it must be copied out first"
        )

    def __repr__(self) -> str:
        return f"<{self.dtype}{list(self.shape)} in {self.memory.name}>"


class NullMemory:
    """The memory of one NULL device.

    Args:
        limit: bytes; None for no limit.
    """

    def __init__(self, name: str, limit: int | None = None):
        self.name = name
        self._lock = threading.Lock()
        self._statistics = MemoryStatistics(limit=limit)

    def set_limit(self, limit: int | None) -> None:
        """Have room for so many bytes from now on."""
        self._statistics.limit = limit

    def hold(self, content: Array) -> NullArray:
        """An array of this memory with this content, which nobody else has.

        Raises:
            ResourceExhaustedError: there is no room for it.
        """
        made = NullArray(self, content)
        with self._lock:
            known = self._statistics
            if known.limit is not None and known.in_use + made.nbytes > known.limit:
                raise ResourceExhaustedError(
                    f"{self.name} has no room for {made.nbytes} bytes: {known.in_use} of {known.limit} are in use"
                )
            known.allocations += 1
            known.in_use += made.nbytes
            known.peak = max(known.peak, known.in_use)
        weakref.finalize(made, self._release, made.nbytes)
        return made

    def _release(self, nbytes: int) -> None:
        with self._lock:
            self._statistics.in_use -= nbytes

    def copy_in(self, array: Array) -> DeviceArray:
        self._statistics.copies_in += 1
        return self.hold(np.array(array))

    def copy_out(self, array: DeviceArray) -> Array:
        if not isinstance(array, NullArray):
            raise InternalError(f"{self.name} was asked to copy out what is not in its memory: {array!r}")
        self._statistics.copies_out += 1
        return array.read(self).copy()

    def begin_copy_out(self, array: DeviceArray) -> Callable[[], Array]:
        copy = self.copy_out(array)
        return lambda: copy

    def copy_across(self, array: DeviceArray, other: DeviceMemory) -> DeviceArray:
        if not isinstance(array, NullArray) or array.memory is not other:
            raise InternalError(f"{self.name} was asked to copy what is not in the memory of that device: {array!r}")
        self._statistics.copies_across += 1
        return self.hold(array.read(array.memory).copy())

    def owns(self, value: Any) -> bool:
        return isinstance(value, NullArray) and value.memory is self

    def synchronize(self) -> None:
        """Everything is done when it was asked for."""

    def statistics(self) -> MemoryStatistics:
        return self._statistics


@once
def memory_of(index: int) -> NullMemory:
    """The memory of the NULL device with this number."""
    return NullMemory(f"/device:NULL:{index}")
