"""Copies between a GPU's memory and others: what is small in the compute stream, what is large beside it.

Copies in streams of their own come behind the compute stream where that matters: reading a tensor, behind what makes
it; writing one, behind whoever had its memory before. A tensor that is being copied there is held meanwhile, so that
its memory is nobody else's, and nobody takes it for his own and changes it in place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from toolkit.kernels.cuda.driver.base import Context, Event, Stream
from toolkit.kernels.cuda.held import HeldElsewhere
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.pool import Pool
from toolkit.kernels.cuda.staging import SECTION, Buffers, Ring
from toolkit.kernels.types import Array

#: bytes up to which copies go into the compute stream: they take less than the two microseconds of an event that is
#: recorded and waited for, at 25 GB/s and more over PCIe
SMALL = 64 << 10
#: bytes from which a copy to the host is made in parts, while it is waited for: to pin so much memory takes longer
LARGE = 64 << 20


class Transfers:
    """The copies of one device.

    Args:
        compute: the stream of kernels.
        pool: of the tensors.

    Attributes:
        into, out: the streams of what is large.
    """

    def __init__(self, context: Context, compute: Stream, pool: Pool):
        self._context, self._compute, self._pool = context, compute, pool
        self.into, self.out = context.stream(), context.stream()
        self._ring = Ring(context, self.into)
        self._buffers = Buffers(context)
        self._spare: list[Event] = []
        self._reached = 0  # the last ticket (`Pool.tickets`) of which everything before it is done
        self._held = pool.held = HeldElsewhere(context)
        self._is_busy = False  # whether there may be work in the streams of what is large

    def copy_in(self, made: GpuArray, raw: Array) -> None:
        """Bytes of the host, which may be changed as soon as this returns, into a new tensor."""
        if made.nbytes <= SMALL:
            self._context.copy_in_bytes(made.address, raw, self._compute)
            return
        self._behind_its_memory(made, self.into)
        self._copy_in_sections(made, raw)

    def copy_over(self, made: GpuArray, raw: Array) -> None:
        """Likewise, into a tensor that work of the compute stream may still read."""
        self._order(self._compute, self.into)
        self._copy_in_sections(made, raw)

    def _copy_in_sections(self, made: GpuArray, raw: Array) -> None:
        for start in range(0, made.nbytes, SECTION):
            part = raw[start : start + SECTION]
            with self._ring.lock:
                pinned = self._ring.take(part.size)
                pinned[:] = part
                self._context.copy_in(made.address + start, pinned, self.into)
                self._ring.put()
        self._order(self.into, self._compute)
        self._is_busy = True

    def begin_copy_out(self, array: GpuArray) -> Callable[[], Array]:
        """Begin a copy to the host behind what is in the compute stream; what is returned waits for it, once."""
        made = np.empty(array.shape, array.dtype)
        if not array.nbytes:
            return lambda: made
        raw = made.reshape(-1).view(np.uint8)
        if array.nbytes > LARGE:
            return self._in_parts(array, made, raw)
        context, ticket = self._context, next(self._pool.tickets)
        is_small = array.nbytes <= SMALL
        stream = self._compute if is_small else self.out
        if not is_small:
            self._order(self._compute, stream)
            self._is_busy = True
        buffer = self._buffers.take(array.nbytes)
        pinned = buffer[: array.nbytes]
        done = self._event()
        context.copy_out(pinned, array.address, stream)
        context.record(done, stream)
        held = [] if is_small else [array]

        def wait() -> Array:
            context.synchronize(done)
            held.clear()
            raw[:] = pinned
            self._buffers.give(buffer)
            self._spare.append(done)
            self._reached = max(self._reached, ticket)
            return made

        return wait

    def _in_parts(self, array: GpuArray, made: Array, raw: Array) -> Callable[[], Array]:
        """A copy of which one part comes while the host copies the one before."""
        context, stream = self._context, self.out
        ready, ticket = context.event(), next(self._pool.tickets)
        context.record(ready, self._compute)

        def wait() -> Array:
            context.wait(stream, ready)
            under_way: list[tuple[Any, Array, Event]] = []
            for start in range(0, array.nbytes, SECTION):
                part, buffer, done = raw[start : start + SECTION], self._buffers.take(SECTION), self._event()
                context.copy_out(buffer[: part.size], array.address + start, stream)
                context.record(done, stream)
                under_way.append((part, buffer, done))
                if len(under_way) > 1:
                    self._arrived(*under_way.pop(0))
            self._arrived(*under_way.pop())
            self._reached = max(self._reached, ticket)
            return made

        return wait

    def _arrived(self, part: Array, buffer: Array, done: Event) -> None:
        self._context.synchronize(done)
        part[:] = buffer[: part.size]
        self._buffers.give(buffer)
        self._spare.append(done)

    def copy_across(self, made: GpuArray, array: GpuArray, source: Transfers) -> None:
        """A tensor of another device, whose transfers these are, into a new one of this device."""
        stream = source.out
        source._order(source._compute, stream)
        event = self._event()
        self._context.record(event, self._compute)
        source._context.wait(stream, event)
        self._spare.append(event)
        source._context.copy_peer(made.address, self._context, array.address, made.nbytes, stream)
        done = source._context.event()
        source._context.record(done, stream)
        self._context.wait(self._compute, done)
        source._held.hold(array, done)
        source._is_busy = True

    def synchronize(self) -> None:
        """Wait until everything is done, computing included."""
        ticket = next(self._pool.tickets)
        self._context.synchronize(self._compute)
        if self._is_busy:
            self._is_busy = False
            self._context.synchronize(self.into)
            self._context.synchronize(self.out)
            self._held.let_go()
        self._reached = max(self._reached, ticket)

    def _behind_its_memory(self, made: GpuArray, stream: Stream) -> None:
        """What comes next in a stream waits for whoever had a new tensor's memory before."""
        if made.block is not None and made.block.ticket > self._reached:
            self._order(self._compute, stream)

    def _order(self, first: Stream, second: Stream) -> None:
        """What is put into the second stream from now on comes behind what is in the first."""
        event = self._event()
        self._context.record(event, first)
        self._context.wait(second, event)
        self._spare.append(event)

    def _event(self) -> Event:
        """An event that nobody asks any more; a wait is for the record before it, so it may be recorded anew."""
        try:
            return self._spare.pop()
        except IndexError:
            return self._context.event()
