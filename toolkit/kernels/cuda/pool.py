"""The caching allocator of a device: memory is taken from the driver in regions, and handed out in blocks.

As TensorFlow's BFC allocator: best fit, neighbours that are free become one, regions grow from small ones or are all of
the limit at once. A block of a size that was freed before is found without a search, for steps ask for the same sizes
each time.

Blocks are for the compute stream: what is freed while the stream still uses it is given to work behind that. Other
streams say so (`Block.used_until`), and a block is not handed out before they are done. `Block.__del__` may run in any
thread and at any moment, so it only leaves a note, which the next allocation reads.
"""

from __future__ import annotations

import gc
import itertools
import threading
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from toolkit.errors import ResourceExhaustedError
from toolkit.kernels.cuda.driver.base import Context, Event, OutOfDeviceMemory, Stream
from toolkit.kernels.cuda.live import LiveTensor, described, largest
from toolkit.kernels.cuda.spares import Spares

#: blocks begin at multiples of it, as CUDA's allocations do
ALIGNMENT = 256
_REGION = 2 << 20  # what CUDA maps at least, and the first region
_MOST_REGION = 1 << 30  # regions stop to double here: with more, what is unused could be half of the device


class Chunk:
    """A part of a region.

    Attributes:
        start, size: in bytes.
        before, behind: its neighbours in the region.
        ticket: when it was freed last, see `Pool.tickets`.
    """

    __slots__ = ("before", "behind", "size", "start", "ticket")

    def __init__(self, start: int, size: int, ticket: int = 0):
        self.start, self.size, self.ticket = start, size, ticket
        self.before: Chunk | None = None
        self.behind: Chunk | None = None


class Block:
    """Memory of the pool, given back when nobody refers to this any more.

    Attributes:
        address: of the first byte.
        ticket: when whoever had the memory before gave it back; 0 for nobody.
    """

    __slots__ = ("_chunk", "_events", "_pool", "address", "ticket")

    def __init__(self, pool: Pool, chunk: Chunk):
        self._pool = pool
        self._chunk = chunk
        self._events: list[Event] | None = None
        self.address = chunk.start
        self.ticket = chunk.ticket

    def used_until(self, event: Event) -> None:
        """Another stream than the compute stream uses the memory until an event, which is recorded."""
        if self._events is None:
            self._events = []
        self._events.append(event)

    def __del__(self) -> None:
        self._pool.returned.append((self._chunk, self._events, next(self._pool.tickets)))


class Lender(Protocol):
    """Who holds tensors until others have copied them."""

    def let_go(self, *, wait: bool = False) -> None:
        """Let those go that are copied; all, where that is waited for."""
        ...


@dataclass(slots=True)
class Budget:
    """What a device's pools have together.

    Attributes:
        limit: bytes that may be taken from the driver.
        reserved: bytes that are.
        in_use, peak: bytes of blocks that are alive, and the most that ever were.
        allocations: blocks made.
        live: the blocks that are alive, by address.
    """

    limit: int
    reserved: int = 0
    in_use: int = 0
    peak: int = 0
    allocations: int = 0
    live: dict[int, LiveTensor] = field(default_factory=dict[int, LiveTensor])


class Pool:
    """An allocator.

    Args:
        context: whose memory it is.
        stream: the one that uses the blocks.
        budget: the limit.
        name: of the device, for messages.
        grows: it takes regions as they are needed, not all of the limit at first.
        parent: whose regions may be given back when memory is short.

    Attributes:
        returned: blocks that were given back: chunk, events of other streams, ticket.
        spares: who gives memory back where there is no room.
        held: tensors that nobody but other devices uses; None where there is no such thing.
        tickets: numbers of moments. What was put into the compute stream before a ticket is done when an event is
            that was recorded behind it.
    """

    def __init__(
        self, context: Context, stream: Stream, budget: Budget, name: str, *, grows: bool = True,
        parent: Pool | None = None,
    ):  # fmt: skip
        self._context, self._stream, self._budget, self._name, self._parent = context, stream, budget, name, parent
        self._grows = grows
        self._lock = threading.Lock() if parent is None else parent._lock
        self.returned: deque[tuple[Chunk, list[Event] | None, int]] = deque()
        self.spares = Spares() if parent is None else parent.spares
        self.held: Lender | None = None
        self.tickets: Iterator[int] = itertools.count(1) if parent is None else parent.tickets
        self._regions: dict[int, Chunk] = {}  # by address, the first chunk
        self._sizes: dict[int, int] = {}  # of regions
        self._free: list[tuple[int, int]] = []  # size and address, in order
        self._chunks: dict[int, Chunk] = {}  # those in _free
        self._quick: dict[int, list[Chunk]] = {}  # by size, freed and not yet joined with neighbours
        self._waiting: list[tuple[Chunk, list[Event], int]] = []  # other streams still use them
        self._next_region = _REGION
        self._alive = 0
        self._is_closed = False
        self._private: dict[int, Pool] = {}  # those that are recorded into, by thread
        self._kept: list[Pool] = []  # those of graphs
        self._is_recording = parent is not None

    # -- what is asked of it -------------------------------------------------------------------------------------

    def allocate(self, nbytes: int, shape: tuple[int, ...] = (), dtype: Any = None, node: str = "") -> Block:
        """A block of so many bytes, 1 at least. Its content is anything.

        Args:
            shape, dtype, node: what it is for and who asks, for the message when there is no more.

        Raises:
            ResourceExhaustedError: there is no room.
        """
        if self._private:
            private = self._private.get(threading.get_ident())
            if private is not None:
                return private._allocated(nbytes, shape, dtype, node)
        is_collected = False
        while True:
            try:
                return self._allocated(nbytes, shape, dtype, node)
            except ResourceExhaustedError:
                # while a graph is recorded, by whichever thread, none can be freed
                if self._private or (is_collected and not self.spares.give_back()):
                    raise
            if not is_collected:
                # a step that failed and the error that it left hold each other, with all tensors that it had made
                is_collected = True
                gc.collect()

    def _allocated(self, nbytes: int, shape: tuple[int, ...], dtype: Any, node: str) -> Block:
        """A block of what there is."""
        size = (nbytes + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT
        with self._lock:
            if self.returned or self._waiting:
                self._take_back()
            quick = self._quick.get(size)
            chunk = quick.pop() if quick else self._best(size) or self._more(size, nbytes, shape, dtype, node)
            budget = self._budget
            budget.live[chunk.start] = (nbytes, shape, dtype, node)
            budget.allocations += 1
            budget.in_use += nbytes
            if budget.in_use > budget.peak:
                budget.peak = budget.in_use
            self._alive += 1
        return Block(self, chunk)

    def collect(self) -> None:
        """Take back what was returned; allocations do so, too."""
        if self.held is not None and not self._private:  # while a graph is recorded nothing may be asked
            self.held.let_go()
        with self._lock:
            self._take_back()

    @property
    def budget(self) -> Budget:
        """The counts, of now."""
        self.collect()
        return self._budget

    def trim(self) -> int:
        """Give regions without a block back to the driver; how many bytes these were.

        Raises:
            DriverError: the driver refuses.
        """
        with self._lock:
            self._take_back()
            return self._release()

    @contextmanager
    def capturing(self, stream: Stream) -> Generator[Pool]:
        """What this thread allocates within comes from a pool of its own, for a CUDA graph.

        Its memory stays reserved, and blocks that are given back are handed out in it alone, until it is closed: a
        graph uses the same addresses each time.

        Args:
            stream: the one that is recorded.
        """
        private = Pool(self._context, stream, self._budget, self._name, parent=self)
        thread = threading.get_ident()
        self._private[thread] = private
        self._kept.append(private)
        try:
            yield private
        except BaseException:
            private._is_recording = False  # what is given back now is nothing for its stream, for which nobody waits
            private.close()
            raise
        finally:
            del self._private[thread]
            private._is_recording = False

    @contextmanager
    def redirected(self, stream: Stream) -> Generator[None]:
        """Within, what this thread allocates for a CUDA graph is used by another stream, which records a body of it."""
        private = self._private[threading.get_ident()]
        outer, private._stream = private._stream, stream
        try:
            yield
        finally:
            private._stream = outer

    def close(self) -> None:
        """Give the driver everything back as soon as no block is alive and nothing is recorded."""
        with self._lock:
            self._is_closed = True
            self._take_back()
            if self._parent is not None:
                self._parent._take_back()

    # -- inside, with the lock held --------------------------------------------------------------------------------

    def _take_back(self) -> None:
        """Read the notes of blocks that are gone."""
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            for chunk, events, ticket in waiting:
                self._give(chunk, events, ticket)
        while self.returned:
            try:
                chunk, events, ticket = self.returned.popleft()
            except IndexError:
                break  # another thread
            gone = self._budget.live.pop(chunk.start)
            self._budget.in_use -= gone[0]
            self._alive -= 1
            self._give(chunk, events or (), ticket)
        for pool in self._kept:
            pool._take_back()
        if self._kept and not self._private:
            closed = [one for one in self._kept if one._is_closed and not one._alive and not one._waiting]
            for pool in closed:
                pool._release()
                self._kept.remove(pool)

    def _give(self, chunk: Chunk, events: Any, ticket: int) -> None:
        """Make a chunk free, or wait for other streams."""
        quiet = self._is_recording or bool(self._private)  # then nothing may be asked
        left = [event for event in events if quiet or not self._context.done(event)]
        if left:
            self._waiting.append((chunk, left, ticket))
            return
        chunk.ticket = ticket
        if self._context.poisons and (self._parent is None or self._is_recording):
            self._context.poison(chunk.start, chunk.size, self._stream)
            chunk.ticket = next(self.tickets)  # other streams come behind that, too
        self._quick.setdefault(chunk.size, []).append(chunk)

    def _best(self, size: int) -> Chunk | None:
        """The smallest free chunk that is large enough, cut to size."""
        position = bisect_left(self._free, (size, 0))
        if position == len(self._free):
            return None
        _, address = self._free.pop(position)
        chunk = self._chunks.pop(address)
        if chunk.size > size:
            rest = Chunk(chunk.start + size, chunk.size - size, chunk.ticket)
            rest.before, rest.behind = chunk, chunk.behind
            if chunk.behind is not None:
                chunk.behind.before = rest
            chunk.behind, chunk.size = rest, size
            self._add(rest)
        return chunk

    def _add(self, chunk: Chunk) -> None:
        insort(self._free, (chunk.size, chunk.start))
        self._chunks[chunk.start] = chunk

    def _join(self) -> None:
        """Make one of neighbours that are free."""
        quick, self._quick = self._quick, {}
        for chunks in quick.values():
            for chunk in chunks:
                self._add(self._joined(chunk))

    def _joined(self, chunk: Chunk) -> Chunk:
        behind = chunk.behind
        if behind is not None and behind.start in self._chunks:
            self._forget(behind)
            self._merge(chunk, behind)
        before = chunk.before
        if before is not None and before.start in self._chunks:
            self._forget(before)
            self._merge(before, chunk)
            return before
        return chunk

    def _forget(self, chunk: Chunk) -> None:
        del self._chunks[chunk.start]
        del self._free[bisect_left(self._free, (chunk.size, chunk.start))]

    @staticmethod
    def _merge(first: Chunk, second: Chunk) -> None:
        first.size += second.size
        first.ticket = max(first.ticket, second.ticket)
        first.behind = second.behind
        if second.behind is not None:
            second.behind.before = first

    def _more(self, size: int, nbytes: int, shape: tuple[int, ...], dtype: Any, node: str) -> Chunk:
        """A chunk where none fits: from neighbours, from the driver, from what is cached, from what is waited for."""
        for attempt in (self._join, lambda: None, self._wait, self._release_all):
            attempt()
            found = self._best(size)
            if found is None and attempt is not self._join and self._region(size):
                found = self._best(size)
            if found is not None:
                return found
        raise self._exhausted(nbytes, shape, dtype, node)

    def _region(self, size: int) -> bool:
        """Take a region for a chunk of so many bytes from the driver; whether there is one."""
        least = (size + _REGION - 1) // _REGION * _REGION
        room = self._budget.limit - self._budget.reserved
        wanted = max(least, self._next_region) if self._grows else room
        for nbytes in dict.fromkeys((min(wanted, room), min(wanted // 2, room), min(least, room), size)):
            if not size <= nbytes <= room:
                continue
            try:
                address = self._context.allocate(nbytes)
            except OutOfDeviceMemory:
                continue
            chunk = Chunk(address, nbytes)
            self._regions[address] = chunk
            self._sizes[address] = nbytes
            self._budget.reserved += nbytes
            self._next_region = min(2 * self._next_region, _MOST_REGION)
            self._add(chunk)
            return True
        return False

    def _wait(self) -> None:
        """Wait for the other streams that use chunks which were given back."""
        if self._is_recording or self._private:
            return
        if self.held is not None:
            self.held.let_go(wait=True)
            self._take_back()
        for _, events, _ in self._waiting:
            for event in events:
                self._context.synchronize(event)
        self._take_back()
        self._join()

    def _release_all(self) -> None:
        self._release()
        if self._parent is not None:
            self._parent._take_back()
            self._parent._release()

    def _release(self) -> int:
        """Give the driver what has no block."""
        if self._private or self._is_recording:
            return 0  # nothing may be waited for while a graph is recorded
        self._join()
        unused = [
            (address, first) for address, first in self._regions.items()
            if first.start in self._chunks and first.size == self._sizes[address]
        ]  # fmt: skip
        if not unused:
            return 0
        # what was recorded is done in the stream of the pool that it is a part of
        self._context.synchronize(self._stream if self._parent is None else self._parent._stream)
        for address, first in unused:
            self._context.free(address)  # where that is refused, the region stays
            self._forget(first)
            del self._regions[address]
            self._budget.reserved -= self._sizes.pop(address)
        return sum(first.size for _, first in unused)

    def _exhausted(self, nbytes: int, shape: tuple[int, ...], dtype: Any, node: str) -> ResourceExhaustedError:
        budget = self._budget
        wanted = "" if dtype is None else f" for {described(shape, dtype)}"
        return ResourceExhaustedError(
            f"{self._name} has no room for {nbytes} bytes{wanted}: {budget.in_use} of {budget.limit} are in use, "
            f"{budget.reserved} reserved{largest(budget.live.values())}",
            node=node or None,
        )
