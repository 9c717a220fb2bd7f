"""What runs the operations over parts of tensors (`operations`)."""

from __future__ import annotations

import math
from typing import Any

from toolkit.compiler.backends.cuda.parts.operations import JoinMemory, JoinRows, PlacedKernelCall
from toolkit.kernels.cuda.device import CudaDevice
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.gpu.arrays.join import joined
from toolkit.kernels.gpu.elementwise import nests
from toolkit.kernels.gpu.elementwise.nests import NestOperand
from toolkit.kernels.gpu.primitives.copying import ALIGNED


def placed_nest(device: CudaDevice, operation: PlacedKernelCall) -> Any:
    reads = [NestOperand(value.dtype.name, own) for value, own in zip(operation.reads, operation.strides, strict=True)]
    outputs = [(output.shape or (), output.dtype) for output in operation.outputs]
    befores = [
        *(first * value.dtype.itemsize for value, first in zip(operation.reads, operation.offsets, strict=True)),
        *(piece.first * outputs[piece.output][1].itemsize for piece in operation.pieces),
        *(place.first * output[1].itemsize for place, output in zip(operation.places, outputs, strict=True)),
    ]
    found = nests.fused(
        operation.members, reads, operation.stores, operation.shape,
        aligned=not any(before % ALIGNED for before in befores),
        placed=[piece.strides for piece in operation.pieces],
    )  # fmt: skip
    kernel, blocks, numbers = found.kernel, found.blocks, found.numbers
    offsets, pieces, places, count = operation.offsets, operation.pieces, operation.places, len(operation.reads)

    def launch(*given: GpuArray) -> list[GpuArray]:
        targets = given[count:]
        made = [
            device.empty(shape, dtype)
            if place.target < 0
            else targets[place.target].viewed(dtype, shape, place.first * dtype.itemsize)
            for (shape, dtype), place in zip(outputs, places, strict=True)
        ]
        taken = [_behind(value, first) for value, first in zip(given[:count], offsets, strict=True)]
        written = [_behind(made[piece.output], piece.first) for piece in pieces]
        device.launch(kernel, blocks, *taken, *written, *numbers)
        return made

    return launch


def _behind(array: GpuArray, first: int) -> GpuArray:
    """The memory of a tensor from an element on."""
    if not first:
        return array
    return array.viewed(array.dtype, (array.size - first,), first * array.dtype.itemsize)


def join_memory(device: CudaDevice, operation: JoinMemory) -> Any:
    shape, dtype = operation.output.shape or (), operation.output.dtype

    def launch() -> list[GpuArray]:
        return [device.empty(shape, dtype)]

    return launch


def join_rows(device: CudaDevice, operation: JoinRows) -> Any:
    shape, dtype = operation.output.shape or (), operation.output.dtype
    if operation.memory is None:

        def join(*parts: GpuArray) -> list[GpuArray]:
            return [joined(device, parts, 0)]

        return join
    first = operation.first * dtype.itemsize
    sizes = [math.prod(part.shape or ()) * dtype.itemsize for part in operation.parts]
    copied = [(number, first + sum(sizes[:number]), sizes[number]) for number in operation.copied]

    def launch(*given: GpuArray) -> list[GpuArray]:
        *parts, memory = given
        for number, before, nbytes in copied:
            device.context.copy(memory.address + before, parts[number].address, nbytes, device.compute)
        return [memory.viewed(dtype, shape, first)]

    return launch


#: by the class of an operation, as `launchers.LAUNCHERS`
PLACED_LAUNCHERS = {PlacedKernelCall: placed_nest, JoinMemory: join_memory, JoinRows: join_rows}
