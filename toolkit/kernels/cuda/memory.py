"""The memory of NVIDIA GPUs: their arrays, and what the runtime asks of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from toolkit.errors import InternalError
from toolkit.kernels.cuda.pool import Block
from toolkit.kernels.device_memory import DeviceArray, DeviceMemory, MemoryStatistics
from toolkit.kernels.types import Array

if TYPE_CHECKING:
    from toolkit.kernels.cuda.device import CudaDevice


class GpuArray(DeviceArray):
    """A tensor in the memory of a GPU, dense and in C order.

    Attributes:
        dtype, shape, nbytes: what host code may know.
        address: of the first element; 0 where there is none.
        block: keeps the memory; None where there are no elements.
        device: where it is.
        watch: of those who made something of it (`prepared`); None where nobody did.
    """

    __slots__ = ("__weakref__", "address", "block", "device", "dtype", "nbytes", "shape", "watch")

    def __init__(self, device: CudaDevice, block: Block | None, dtype: Any, shape: tuple[int, ...], nbytes: int):
        self.device = device
        self.block = block
        self.address = 0 if block is None else block.address
        self.dtype = dtype
        self.shape = shape
        self.nbytes = nbytes
        self.watch: Any = None

    @property
    def memory(self) -> GpuMemory:
        """Where it lies, as the runtime asks for it."""
        return self.device.memory

    @property
    def size(self) -> int:
        """How many elements there are."""
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def reshaped(self, shape: tuple[int, ...]) -> GpuArray:
        """The same memory in another shape of as many elements.

        Raises:
            InternalError: the shape has more or fewer.
        """
        shape = tuple(map(int, shape))
        if math.prod(shape) != math.prod(self.shape):
            raise InternalError(f"{self!r} cannot have the shape {list(shape)}: other numbers of elements")
        made = GpuArray(self.device, self.block, self.dtype, shape, self.nbytes)
        made.address = self.address  # of a part of a block it is not the block's
        return made

    def viewed(self, dtype: Any, shape: tuple[int, ...], offset: int = 0) -> GpuArray:
        """A part of the memory as another tensor.

        Args:
            offset: bytes before it.

        Raises:
            InternalError: it goes beyond the memory, or its elements are not aligned.
        """
        dtype = np.dtype(dtype)
        nbytes = math.prod(shape) * dtype.itemsize
        if not nbytes:  # it is nowhere
            return GpuArray(self.device, None, dtype, tuple(shape), 0)
        if offset < 0 or offset + nbytes > self.nbytes or (self.address + offset) % dtype.itemsize:
            raise InternalError(f"{self!r} has no {dtype}{list(shape)} at byte {offset}")
        made = GpuArray(self.device, self.block, dtype, tuple(shape), nbytes)
        made.address = self.address + offset
        return made

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise InternalError(f"host code looked into a tensor of {self.device.name}; it must be copied out first")

    def __bool__(self) -> bool:
        raise InternalError(
            f"host code asked whether a tensor of {self.device.name} is true; it must be copied out first"
        )

    def __len__(self) -> int:
        raise InternalError(f"host code asked for the length of a tensor of {self.device.name}; ask for its shape")

    def __repr__(self) -> str:
        return f"<{self.dtype}{list(self.shape)} in {self.device.name}>"


class GpuMemory:
    """The memory of one GPU, as the runtime asks for it (`toolkit.kernels.device_memory.DeviceMemory`)."""

    def __init__(self, device: CudaDevice):
        self._device = device
        self._copies_in = self._copies_out = self._copies_across = 0

    def copy_in(self, array: Array) -> GpuArray:
        """A tensor from host memory. The array may be changed as soon as this returns.

        Raises:
            InternalError: it has no numbers.
            ResourceExhaustedError: there is no room for it.
        """
        self._copies_in += 1
        return self._device.to_device(array)

    def copy_out(self, array: DeviceArray) -> Array:
        """A tensor to host memory.

        Raises:
            InternalError: it belongs to another device.
        """
        return self.begin_copy_out(array)()

    def begin_copy_out(self, array: DeviceArray) -> Callable[[], Array]:
        """Begin a copy to host memory, behind what is in the compute stream; what is returned waits for it.

        Raises:
            InternalError: it belongs to another device.
        """
        if not self.owns(array):
            raise InternalError(f"{self._device.name} was asked to copy out what is not in its memory: {array!r}")
        self._copies_out += 1
        return self._device.begin_to_host(cast("GpuArray", array))

    def copy_across(self, array: DeviceArray, other: DeviceMemory) -> GpuArray:
        """A tensor of another GPU.

        Raises:
            InternalError: it does not belong to that one.
            ResourceExhaustedError: there is no room for it.
        """
        if not other.owns(array):
            raise InternalError(
                f"{self._device.name} was asked to copy what is not in the memory of that GPU: {array!r}"
            )
        self._copies_across += 1
        return self._device.copied(cast("GpuArray", array))

    def moved(self, into: int, out: int) -> None:
        """Count tensors that a CUDA graph copied."""
        self._copies_in += into
        self._copies_out += out

    def owns(self, value: Any) -> bool:
        return isinstance(value, GpuArray) and value.device.index == self._device.index

    def synchronize(self) -> None:
        self._device.synchronize()

    def statistics(self) -> MemoryStatistics:
        budget = self._device.pool.budget
        return MemoryStatistics(
            budget.in_use, budget.peak, budget.limit, budget.allocations, self._copies_in, self._copies_out,
            self._copies_across,
        )  # fmt: skip
