"""Random numbers of a recorded step: each replay takes its part of a generator that stays on the host.

A kernel in a CUDA graph has the same arguments each time, so it reads its key and counter from the device's memory, to
where the graph copies them from pinned memory. A replay asks the generators of the session for them, in the order in
which the step draws: whoever draws next, recorded or not, goes on behind it, and the numbers are those of a step that
is launched kernel by kernel.

How often a loop draws that tensors decide only the device knows. There a generator's place goes along on the device,
where each draw moves it on; behind the replay the host reads where it is, and moves its own.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

import numpy as np

from toolkit.errors import InternalError, UnimplementedError
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import WARP, SimtKernel
from toolkit.kernels.random.philox import Philox
from toolkit.kernels.types import Array

if TYPE_CHECKING:
    from toolkit.kernels.cuda.device import CudaDevice

_ENTRY = struct.Struct("=QQQ")  # the key, and the counter's lower and upper half
_WORDS = 3
AREA = 4 << 10  # bytes that are copied at one time: a page, for 170 draws
_MOVED = 40  # generators that may go along on the device: their entries are the last ones of the first page
_U64, _U128 = (1 << 64) - 1, (1 << 128) - 1


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
            Without it nothing can be drawn where the device decides.
    """

    def __init__(self, device: CudaDevice, first: tuple[Array, GpuArray] | None = None):
        self._device = device
        self._areas: list[tuple[Array, GpuArray]] = [] if first is None else [first]
        self._taken: list[tuple[Source, int, Array, int]] = []
        self._end = 0  # of what is used of the last area
        self._limit = AREA - _MOVED * _ENTRY.size if first is not None else 0
        self._moved: dict[Source, int] = {}  # with the offsets of their entries
        self._is_decided = False  # the device decides whether, and how often, what is recorded now is done

    def add(self, generator: Source, blocks: int) -> tuple[GpuArray, GpuArray]:
        """The place of the key and the counter of a draw, for kernels; each replay takes so many blocks for it.

        Raises:
            UnimplementedError: too many generators draw where the device decides.
        """
        if self._is_decided or generator in self._moved:
            return self._move(generator, blocks)
        if self._end + _ENTRY.size > self._limit:
            context, stream = self._device.context, self._device.compute
            pinned, there = context.pinned(AREA), self._device.empty((AREA,), np.uint8)
            context.copy_in(there.address, pinned, stream)
            self._areas.append((pinned, there))
            self._end, self._limit = 0, AREA
        pinned, there = self._areas[-1]
        offset, self._end = self._end, self._end + _ENTRY.size
        self._taken.append((generator, blocks, pinned, offset))
        return there.viewed(np.uint64, (1,), offset), there.viewed(np.uint64, (2,), offset + 8)

    @contextmanager
    def decided(self) -> Generator[None]:
        """Within, the device decides whether, and how often, what is recorded is done."""
        outer, self._is_decided = self._is_decided, True
        try:
            yield
        finally:
            self._is_decided = outer

    def _move(self, generator: Source, blocks: int) -> tuple[GpuArray, GpuArray]:
        """Likewise, of a generator whose place is on the device, and moves on there each time."""
        if not self._areas or (generator not in self._moved and len(self._moved) == _MOVED):
            raise UnimplementedError(f"more than {_MOVED} generators draw in loops or branches that the device decides")
        pinned, there = self._areas[0]
        offset = self._moved.get(generator)
        if offset is None:
            offset = self._moved[generator] = AREA - (_MOVED - len(self._moved)) * _ENTRY.size
            self._taken.append((generator, 0, pinned, offset))
        own = self._device.empty((_WORDS,), np.int64)
        self._device.launch(moving_kernel(), 1, there.viewed(np.int64, (_WORDS,), offset), own, blocks)
        return own.viewed(np.uint64, (1,)), own.viewed(np.uint64, (2,), 8)

    @property
    def ends(self) -> GpuArray | None:
        """Where a replay leaves the entries of generators that go along on the device; None where there are none."""
        if not self._moved:
            return None
        return self._areas[0][1].viewed(np.uint64, (len(self._moved), _WORDS), AREA - _MOVED * _ENTRY.size)

    def settle(self, ends: Array) -> None:
        """Move the generators to where a replay left them."""
        pinned = self._areas[0][0]
        for (generator, offset), (_, low, high) in zip(self._moved.items(), ends.tolist(), strict=True):
            _, *first = _ENTRY.unpack_from(pinned, offset)
            generator.take((high << 64 | low) - (first[1] << 64 | first[0]) & _U128)

    def give_back(self) -> None:
        """Move the generators to where they were before a replay that is not to count."""
        for generator, blocks, _, _ in reversed(self._taken):
            generator.take(-blocks & _U128)

    def take(self) -> None:
        """Take the numbers of a replay, when the one before it is done."""
        for generator, blocks, pinned, offset in self._taken:
            key, counter = generator.take(blocks)
            _ENTRY.pack_into(pinned, offset, key, counter & _U64, counter >> 64)


@functools.cache
def moving_kernel() -> SimtKernel:
    """Copies a generator's entry, and moves it on by a number of blocks: a counter of 128 bits."""
    k = KernelBuilder("generator_moved", WARP)
    entry, own = k.buffer("entry", "i64", written=True), k.buffer("own", "i64", written=True)
    blocks = k.scalar("blocks", "i64")
    with k.when(k.compare("eq", k.thread, k.number(0, "i32"))):
        places = [k.number(place, "i64") for place in range(_WORDS)]
        key, low, high = (k.load(entry, place) for place in places)
        for place, word in zip(places, (key, low, high), strict=True):
            k.store(own, place, word)
        after, zero = k.add(low, blocks), k.number(0, "i64")
        carried = k.convert(k.compare("ult", after, low), "i64")
        sign = k.select(k.compare("slt", blocks, zero), k.number(-1, "i64"), zero)  # its upper half
        k.store(entry, places[1], after)
        k.store(entry, places[2], k.add(k.add(high, carried), sign))
    return k.finish()


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
