"""Random numbers of a recorded step: each replay takes its part of a generator that stays on the host.

A kernel in a CUDA graph has the same arguments each time, so it reads its key and counter from the device's memory, to
where the graph copies them from pinned memory. A replay asks the generators of the session for them, in the order in
which the step draws: whoever draws next, recorded or not, goes on behind it, and the numbers are those of a step that
is launched kernel by kernel.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Protocol

import numpy as np

from toolkit.errors import InternalError
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.random.philox import Philox
from toolkit.kernels.types import Array

if TYPE_CHECKING:
    from toolkit.kernels.cuda.device import CudaDevice

_ENTRY = struct.Struct("=QQQ")  # the key, and the counter's lower and upper half
AREA = 4 << 10  # bytes that are copied at one time: a page, for 170 draws
_U64 = (1 << 64) - 1


class Source(Protocol):
    """A generator that keeps its place: of an op, or in a variable."""

    def take(self, blocks: int) -> tuple[int, int]:
        """Its key and its counter; it moves on by so many blocks."""
        ...


class Draws:
    """What a step draws while it is recorded.

    Args:
        device: whose graph it is.
        first: pinned memory and its place on the device, where the graph copies that anyhow; more is taken as needed.
    """

    def __init__(self, device: CudaDevice, first: tuple[Array, GpuArray] | None = None):
        self._device = device
        self._areas: list[tuple[Array, GpuArray]] = [] if first is None else [first]
        self._taken: list[tuple[Source, int, Array, int]] = []
        self._end = 0 if first is not None else AREA  # of what is used of the last area

    def add(self, generator: Source, blocks: int) -> tuple[GpuArray, GpuArray]:
        """The place of the key and the counter of a draw, for kernels; each replay takes so many blocks for it."""
        if self._end + _ENTRY.size > AREA:
            context, stream = self._device.context, self._device.compute
            pinned, there = context.pinned(AREA), self._device.empty((AREA,), np.uint8)
            context.copy_in(there.address, pinned, stream)
            self._areas.append((pinned, there))
            self._end = 0
        pinned, there = self._areas[-1]
        offset, self._end = self._end, self._end + _ENTRY.size
        self._taken.append((generator, blocks, pinned, offset))
        return there.viewed(np.uint64, (1,), offset), there.viewed(np.uint64, (2,), offset + 8)

    def take(self) -> None:
        """Take the numbers of a replay, when the one before it is done."""
        for generator, blocks, pinned, offset in self._taken:
            key, counter = generator.take(blocks)
            _ENTRY.pack_into(pinned, offset, key, counter & _U64, counter >> 64)


def drawn(device: CudaDevice, generator: Source, blocks: int) -> Philox | tuple[GpuArray, GpuArray]:
    """The next blocks of a generator: where they are now, or where each replay of what is recorded puts that.

    Raises:
        InternalError: what is recorded may draw nothing.
    """
    if not device.is_recording:
        return Philox(*generator.take(blocks))
    draws = device.draws
    if draws is None:
        raise InternalError("random numbers are drawn in a graph that copies nothing from the host")
    return draws.add(generator, blocks)
