"""Memory as the SIMT machine sees it: bounds, and who touched what since the last barrier.

Two threads race if both touch an element, one of them writes without an atomic operation, and nothing orders them. What
orders the threads of a block is a barrier; nothing orders blocks but the end of the launch.
"""

from __future__ import annotations

import numpy as np

from toolkit.errors import InternalError
from toolkit.kernels.types import Array

_NOBODY, _SEVERAL, _ATOMIC = -1, -2, -3


class KernelFaultError(InternalError):
    """A kernel did what a GPU would not forgive, or would compute differently each time."""


class KernelMemory:
    """The elements of one buffer.

    Args:
        where: for messages.
        elements: one-dimensional; for memory of blocks or threads those of all of them, `size` for each.
        size: elements of each owner; 0 where everybody has all.
        is_checked: races are looked for.
        written: which elements have a value; None where all have.
    """

    def __init__(self, where: str, elements: Array, size: int, *, is_checked: bool, written: Array | None = None):
        self.where = where
        self.elements = elements
        self._size = size
        self._written = written
        self._is_checked = is_checked
        if is_checked:
            count = len(elements)
            self._writer = np.full(count, _NOBODY, np.int64)
            self._write_time = np.zeros(count, np.int32)
            self._reader = np.full(count, _NOBODY, np.int64)
            self._read_time = np.zeros(count, np.int32)

    def places(self, index: Array, owner: Array) -> Array:
        """Where the elements lie that active threads ask for.

        Raises:
            KernelFaultError: one is not in the buffer.
        """
        size = self._size or len(self.elements)
        index = index.astype(np.int64)
        wrong = (index < 0) | (index >= size)
        if wrong.any():
            raise KernelFaultError(f"element {int(index[wrong][0])} of {self.where}, which has {size}")
        return index + owner * self._size if self._size else index

    def read(self, places: Array, thread: Array, time: Array, block: int) -> Array:
        """Elements.

        Args:
            thread: number of each reader in the grid.
            time: how many barriers its block has passed.
            block: threads of a block.

        Raises:
            KernelFaultError: another thread may be writing one, or nobody has written it.
        """
        if self._written is not None and not self._written[places].all():
            first = int(places[~self._written[places]][0])
            raise KernelFaultError(f"element {self._number(first)} of {self.where} is read, but was never written")
        if self._is_checked:
            self._check_writers(places, thread, time, block, "read")
            known = self._reader[places]
            one_of_block = (known != _SEVERAL) & (known // block == thread // block)
            # a barrier orders all who read shared memory
            earlier = (self._read_time[places] < time) & ((self._size > 0) | one_of_block)
            forget = (known == _NOBODY) | (known == thread) | earlier
            self._reader[places] = np.where(forget, thread, _SEVERAL)
            # several lanes may read one element in this instruction
            self._reader[places[self._reader[places] != thread]] = _SEVERAL
            self._read_time[places] = time
        return self.elements[places]

    def write(self, places: Array, values: Array, thread: Array, time: Array, block: int) -> None:
        """Give elements values.

        Raises:
            KernelFaultError: another thread may be reading or writing one.
        """
        if self._is_checked:
            self._check_writers(places, thread, time, block, "written")
            reader = self._reader[places]
            same_block = (reader // block == thread // block) | (self._size > 0)
            orders = same_block & (self._read_time[places] < time)
            several = reader == _SEVERAL
            # of several readers the last time is known: in shared memory a barrier orders them all
            wrong = ((reader >= 0) & (reader != thread) & ~orders) | (
                several & ~((self._size > 0) & (self._read_time[places] < time))
            )
            self._complain(wrong, places, "written by one thread while another reads it")
            self._writer[places] = thread
            self._write_time[places] = time
            self._complain(self._writer[places] != thread, places, "written by two threads at the same time")
        if self._written is not None:
            self._written[places] = True
        self.elements[places] = values

    def touch_atomically(self, places: Array, thread: Array, time: Array, block: int) -> None:
        """Make sure that an atomic operation meets no plain access.

        Raises:
            KernelFaultError: it may.
        """
        if self._is_checked:
            self._check_writers(places, thread, time, block, "changed atomically", atomic=True)
            self._writer[places] = _ATOMIC
            self._write_time[places] = time
        if self._written is not None:
            self._written[places] = True

    def _check_writers(
        self, places: Array, thread: Array, time: Array, block: int, how: str, *, atomic: bool = False
    ) -> None:
        writer = self._writer[places]
        earlier = self._write_time[places] < time
        same_block = (writer // block == thread // block) | (self._size > 0)
        wrong = (writer >= 0) & (writer != thread) & ~(same_block & earlier)
        if not atomic:
            wrong |= (writer == _ATOMIC) & ~((self._size > 0) & earlier)
        self._complain(wrong, places, f"{how} by one thread while another writes it")

    def _complain(self, wrong: Array, places: Array, what: str) -> None:
        if wrong.any():
            raise KernelFaultError(f"a race: element {self._number(int(places[wrong][0]))} of {self.where} is {what}")

    def _number(self, place: int) -> int:
        return place % self._size if self._size else place
