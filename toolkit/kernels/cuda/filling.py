"""Tensors of one number."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np

from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import SimtKernel
from toolkit.kernels.types import Array

if TYPE_CHECKING:
    from toolkit.kernels.cuda.device import CudaDevice

_BLOCK = 256
_BLOCKS = 1024  # each thread fills several elements of a large tensor: some blocks for every multiprocessor
_TYPES = {1: "i8", 2: "i16", 4: "i32", 8: "i64"}


@functools.cache
def _kernel(type: str, period: int) -> SimtKernel:
    """Fills with `period` numbers in turn."""
    k = KernelBuilder(f"fill_{type}", block=_BLOCK)
    y = k.buffer("y", type, written=True)
    numbers = [k.scalar(f"value{index}", type) for index in range(period)]
    n = k.scalar("n", "i64")
    with k.loop(k.global_thread("i64"), n, k.grid_threads("i64")) as i:
        for index, number in enumerate(numbers):
            k.store(y, k.add(k.mul(i, k.number(period, "i64")), k.number(index, "i64")), number)
    return k.finish()


def filled_by(device: CudaDevice, array: GpuArray, value: Array) -> None:
    """Write one number, of the array's type, into each element."""
    raw = value.reshape(-1).view(np.uint8)
    if (raw == raw[0]).all():
        device.context.fill(array.address, int(raw[0]), array.nbytes, device.compute)
        return
    width = min(len(raw), 8)
    numbers = raw.view(np.dtype(f"i{width}")).tolist()  # two of complex128
    count = array.nbytes // len(raw)
    blocks = min((count + _BLOCK - 1) // _BLOCK, _BLOCKS)
    device.launch(_kernel(_TYPES[width], len(numbers)), blocks, array, *numbers, count)
