"""The memory of fake GPUs: bytes of NumPy behind addresses that mean nothing to the host.

No address is ever given out twice, and between two allocations there is a gap, so that whoever uses memory that is
freed, or goes beyond it, is found. What nobody has written is garbage: every 16 bits of it are `POISON`, a NaN in each
floating type, a large number in each integer type and no bool.
"""

from __future__ import annotations

from bisect import bisect_right

import numpy as np

from toolkit.kernels.cuda.driver.base import DriverError, OutOfDeviceMemory
from toolkit.kernels.types import Array

POISON = 0x7FF7
#: CUDA's allocations begin at multiples of it
ALIGNMENT = 256
_GAP = 1 << 16
#: the part of an address that says which device it is on
_DEVICE = 1 << 44


def poison(memory: Array) -> None:
    """Fill bytes with garbage."""
    even = memory.size & ~1
    if even and memory.ctypes.data % 2 == 0:
        memory[:even].view(np.uint16)[:] = POISON
        memory[even:] = POISON & 0xFF
    else:
        memory[:] = POISON & 0xFF


def aligned_bytes(nbytes: int) -> Array:
    """Host memory that begins at a multiple of `ALIGNMENT`, with garbage in it."""
    raw = np.empty(nbytes + ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    made = raw[start : start + nbytes]
    poison(made)
    return made


class AddressSpace:
    """The allocations of one device.

    Args:
        size: bytes that there are.
    """

    def __init__(self, device: int, size: int):
        self.device = device
        self.size = size
        self.used = 0
        self._next = (device + 1) * _DEVICE
        self._starts: list[int] = []
        self._blocks: dict[int, Array] = {}

    def allocate(self, nbytes: int) -> int:
        """The address of new memory.

        Raises:
            OutOfDeviceMemory: there is no room.
        """
        if nbytes <= 0:
            raise DriverError("cuMemAlloc", "CUDA_ERROR_INVALID_VALUE", f"{nbytes} bytes were asked for")
        if self.used + nbytes > self.size:
            raise OutOfDeviceMemory("cuMemAlloc", "CUDA_ERROR_OUT_OF_MEMORY", f"{nbytes} bytes on GPU {self.device}")
        address = self._next
        self._next = (address + nbytes + _GAP + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT
        self._starts.append(address)  # they only grow
        self._blocks[address] = aligned_bytes(nbytes)
        self.used += nbytes
        return address

    def free(self, address: int) -> None:
        """Take an allocation back.

        Raises:
            DriverError: there is none at this address.
        """
        block = self._blocks.pop(address, None)
        if block is None:
            raise DriverError("cuMemFree", "CUDA_ERROR_INVALID_VALUE", f"there is no allocation at {address:#x}")
        del self._starts[bisect_right(self._starts, address) - 1]
        self.used -= block.size

    def bytes_at(self, address: int, nbytes: int, call: str) -> Array:
        """The bytes of a part of an allocation.

        Raises:
            DriverError: they do not all belong to one that is alive.
        """
        if nbytes == 0:
            return np.empty(0, np.uint8)
        position = bisect_right(self._starts, address) - 1
        if position >= 0:
            start = self._starts[position]
            block = self._blocks[start]
            if address + nbytes <= start + block.size:
                return block[address - start : address - start + nbytes]
        owner = address // _DEVICE - 1
        there = "no allocation holds" if owner == self.device else f"GPU {self.device} does not own"
        raise DriverError(
            call, "CUDA_ERROR_ILLEGAL_ADDRESS", f"{there} the {nbytes} bytes at {address:#x}: freed, or beyond the end"
        )
