"""What a recorded step is fed and what it gives, through pinned memory at addresses that its CUDA graph knows.

What is fed lies side by side in one piece of pinned memory, which the graph copies to the device as its first node;
what is fetched is copied out by its last ones. So a replay has nothing to allocate, no events and no calls but its
launch. What is too large for that is copied around the replay, as without a graph: then the host fills one section of
pinned memory while another one is copied.
"""

# numpy's arrays of an unknown type
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from toolkit.kernels.cuda.device import CudaDevice
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.pool import ALIGNMENT
from toolkit.kernels.cuda.staging import SECTION
from toolkit.kernels.types import Array

_ARRAYS = (np.ndarray, np.generic)


class _Pinned:
    """Arrays side by side in one piece of pinned memory, as far as they fit into a section.

    Attributes:
        offsets: of those that do, by their number.
        size: bytes of it all.
    """

    def __init__(self, sizes: Iterable[int]):
        self.offsets: dict[int, int] = {}
        self.size = 0
        for number, nbytes in enumerate(sizes):
            if self.size + nbytes <= SECTION:
                self.offsets[number] = self.size
                self.size += -(-nbytes // ALIGNMENT) * ALIGNMENT

    def memory(self, device: CudaDevice) -> Array:
        """Pinned memory for it."""
        return device.context.pinned(self.size) if self.size else np.empty(0, np.uint8)

    def views(self, memory: Array, specs: Sequence[tuple[tuple[int, ...], Any]]) -> dict[int, Array]:
        """The arrays, by their number."""
        return {
            number: memory[offset : offset + _nbytes(specs[number])].view(specs[number][1]).reshape(specs[number][0])
            for number, offset in self.offsets.items()
        }


class Fed:
    """Arguments that come from host memory.

    Args:
        given: those of the first step, by their positions; the others have their shapes and types.
        more: bytes that are copied with them, for whoever fills them before each step.

    Attributes:
        arrays: on the device, by position: where each step finds them.
        more: these bytes in pinned memory and on the device; None where there are none.
    """

    def __init__(self, device: CudaDevice, given: Mapping[int, Array], more: int = 0):
        self._device = device
        specs = [(tuple(array.shape), array.dtype) for array in given.values()]
        self._layout = _Pinned(map(_nbytes, specs))
        start = self._layout.size
        self._layout.size += more
        self._pinned = self._layout.memory(device)
        self._there = device.empty((self._layout.size,), np.uint8)
        self.more = (self._pinned[start:], self._there.viewed(np.uint8, (more,), start)) if more else None
        views = self._layout.views(self._pinned, specs)
        self.arrays: dict[int, GpuArray] = {}
        self._small: list[tuple[int, tuple[int, ...], Any, Array]] = []
        self._large: list[tuple[int, tuple[int, ...], Any, GpuArray]] = []
        for number, (position, (shape, dtype)) in enumerate(zip(given, specs, strict=True)):
            if number in views:
                self.arrays[position] = self._there.viewed(dtype, shape, self._layout.offsets[number])
                self._small.append((position, shape, dtype, views[number]))
            else:
                self.arrays[position] = made = device.empty(shape, dtype)
                self._large.append((position, shape, dtype, made))

    def record(self) -> None:
        """Put the copy into the graph that is recorded."""
        if self._layout.size:
            self._device.context.copy_in(self._there.address, self._pinned, self._device.compute)

    def write(self, arguments: Sequence[Any]) -> bool:
        """Take the values of a step, when the one before it is done; whether they are what was expected."""
        for position, shape, dtype, place in self._small:
            given = arguments[position]
            if not isinstance(given, _ARRAYS) or given.shape != shape or given.dtype != dtype:
                return False
            place[...] = given
        for position, shape, dtype, place in self._large:
            given = arguments[position]
            if not isinstance(given, np.ndarray) or given.shape != shape or given.dtype != dtype:
                return False
            self._device.refill(place, given)
        return True


class Fetched:
    """Results that are wanted in host memory.

    Args:
        results: on the device, by position, as what gives them: of a variable nobody else may hold the array. Their
            copies are put into the graph that is recorded.

    Attributes:
        positions: of all of them.
    """

    def __init__(self, device: CudaDevice, results: Mapping[int, Callable[[], GpuArray]]):
        self._device = device
        self.positions = frozenset(results)
        specs = [(array.shape, array.dtype) for array in (give() for give in results.values())]
        layout = _Pinned(map(_nbytes, specs))
        pinned = layout.memory(device)
        views = layout.views(pinned, specs)
        self._small: list[tuple[int, Array]] = []
        self._large: list[tuple[int, Callable[[], GpuArray]]] = []
        for number, (position, give) in enumerate(results.items()):
            if number not in views:
                self._large.append((position, give))
                continue
            self._small.append((position, views[number]))
            if nbytes := _nbytes(specs[number]):
                offset = layout.offsets[number]
                device.context.copy_out(pinned[offset : offset + nbytes], give().address, device.compute)

    def begin(self) -> list[tuple[int, Callable[[], Array]]]:
        """Begin the copies of what is large, behind the replay; each is waited for by a call."""
        large = self._large
        return [(position, self._device.begin_to_host(give())) for position, give in large] if large else []

    def read(self, results: list[Any]) -> None:
        """Put the others in their positions, as arrays of the caller's own, when the replay is done."""
        for position, place in self._small:
            results[position] = place.copy()


def _nbytes(spec: tuple[tuple[int, ...], Any]) -> int:
    shape, dtype = spec
    return math.prod(shape) * dtype.itemsize
