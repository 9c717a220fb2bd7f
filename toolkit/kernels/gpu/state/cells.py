"""Variables in the memory of a GPU: what is in a cell of either kind (`kernels.resources.variables`), for its kernels.

A variable shares the memory of what it was assigned: whoever writes in place makes sure first that nobody else holds
it, and works on a copy otherwise. Values that lie elsewhere, restored by the host or written by another device's
kernels, move here when they are read first.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from toolkit.errors import InternalError, InvalidArgumentError
from toolkit.kernels.cuda.device import CudaDevice
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.pool import ALIGNMENT
from toolkit.kernels.cuda.prepared import changed
from toolkit.kernels.device_memory import DeviceArray
from toolkit.kernels.resources import variables
from toolkit.kernels.resources.variables import Cell

#: `cell.value` itself and the argument of getrefcount
_SOLE_OWNER = 2
#: the attribute of the one array itself and the argument of getrefcount
_SOLE_VIEW = 2


def read(device: CudaDevice, cell: Cell) -> GpuArray:
    """The present value of a variable, which whoever reads it must not change.

    Raises:
        FailedPreconditionError: the variable is not initialised.
    """
    value = variables.read_anywhere(cell)
    if device.memory.owns(value):
        return value
    with cell.lock:
        value = variables.read_anywhere(cell)
        if not device.memory.owns(value):
            value = cell.value = brought(device, value)
    return value


def brought(device: CudaDevice, value: Any) -> GpuArray:
    """A tensor in the memory of a device, from wherever it is."""
    if device.memory.owns(value):
        return value
    if isinstance(value, GpuArray):
        return device.copied(value)
    return device.to_device(variables.on_host(value) if isinstance(value, DeviceArray) else np.asarray(value))


def writable(device: CudaDevice, cell: Cell) -> GpuArray:
    """A variable's array, which nobody else holds; hold the cell's lock.

    Raises:
        FailedPreconditionError: the variable is not initialised.
    """
    is_aligned = not read(device, cell).address % ALIGNMENT
    if not is_aligned or sys.getrefcount(cell.value) > _SOLE_OWNER or sys.getrefcount(cell.value.block) > _SOLE_VIEW:
        _not_recording(device, cell)
        cell.value = device.copied(cell.value)
    changed(cell.value)
    return cell.value


def assign(device: CudaDevice, cell: Cell, value: Any) -> None:
    """Have a variable keep a tensor; while a step is recorded, in the memory that it has. Hold the cell's lock."""
    kept, there = owned(device, value), cell.value
    if not device.is_recording:
        cell.value = kept
        return
    fits = isinstance(there, GpuArray) and (there.shape, there.dtype) == (kept.shape, kept.dtype)
    # here it is held by `there` as well
    if (
        not fits
        or kept.nbytes > device.largest_copy
        or sys.getrefcount(there) > _SOLE_OWNER + 1
        or sys.getrefcount(there.block) > _SOLE_VIEW
    ):
        _not_recording(device, cell)
    changed(there)
    device.context.copy(there.address, kept.address, kept.nbytes, device.compute)


def _not_recording(device: CudaDevice, cell: Cell) -> None:
    """Refuse to give a variable another array while a step is recorded, whose replays know the one that it has.

    Raises:
        InternalError: one is recorded.
    """
    if device.is_recording:
        raise InternalError(f"the variable {cell.name} is not changed in place")


def owned(device: CudaDevice, value: Any) -> GpuArray:
    """What a variable keeps of a tensor that it is assigned: the same memory."""
    array = brought(device, value)
    return array.reshaped(array.shape)


def aligned(device: CudaDevice, array: GpuArray) -> GpuArray:
    """A tensor that begins where kernels expect it: a copy of one that is a part of another's memory."""
    return device.copied(array) if array.address % ALIGNMENT else array


def check_shapes(arrays: Sequence[GpuArray], value: GpuArray) -> None:
    """Refuse variables and a gradient of different shapes.

    Raises:
        InvalidArgumentError: they differ.
    """
    shape = arrays[0].shape
    for array in (*arrays[1:], value):
        if array.shape != shape:
            raise InvalidArgumentError(
                "the variable, its slots and the gradient must have one shape: "
                f"{list(shape)} against {list(array.shape)}"
            )
