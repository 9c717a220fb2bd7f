"""What runs the operations that this backend adds: for each class a function that makes what is called in each step.

That takes the operation's inputs, in the order of its fields, and gives its outputs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolkit.compiler.backends.cuda.operations import FusedKernelCall, FusedRowsCall, LibraryProduct
from toolkit.kernels.cuda.device import CudaDevice
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.products import multiply
from toolkit.kernels.gpu import nests, row_nests
from toolkit.kernels.gpu.nests import FusedKernel, NestOperand

Launch = Callable[..., list[GpuArray]]


def _nest(device: CudaDevice, operation: FusedKernelCall) -> Launch:
    found = nests.fused(operation.members, _operands(operation), operation.stores, operation.shape)
    return _launched(device, operation, found)


def _rows(device: CudaDevice, operation: FusedRowsCall) -> Launch:
    found = row_nests.fused_rows(operation.members, _operands(operation), operation.stores, operation.shape)
    return _launched(device, operation, found)


def _operands(operation: FusedKernelCall | FusedRowsCall) -> list[NestOperand]:
    return [NestOperand(value.dtype.name, own) for value, own in zip(operation.reads, operation.strides, strict=True)]


def _launched(device: CudaDevice, operation: FusedKernelCall | FusedRowsCall, found: FusedKernel) -> Launch:
    outputs = [(output.shape or (), output.dtype) for output in operation.outputs]
    kernel, blocks, numbers = found.kernel, found.blocks, found.numbers

    def launch(*given: GpuArray) -> list[GpuArray]:
        made = [device.empty(shape, dtype) for shape, dtype in outputs]
        device.launch(kernel, blocks, *given, *made, *numbers)
        return made

    return launch


def _product(device: CudaDevice, operation: LibraryProduct) -> Launch:
    shape, dtype = operation.output.shape or (), operation.output.dtype
    sizes, name = operation.sizes, operation.activation
    turns = ("T" if operation.turn_a else "N", "T" if operation.turn_b else "N")

    def launch(a: GpuArray, b: GpuArray, bias: GpuArray) -> list[GpuArray]:
        out = device.empty(shape, dtype)
        multiply(device, a, b, out, sizes, turns, bias=bias, name=name)
        return [out]

    return launch


#: by the class of an operation: (the device as its node knows it, the operation) to what runs it
LAUNCHERS: dict[type, Callable[[CudaDevice, Any], Launch]] = {
    FusedKernelCall: _nest,
    FusedRowsCall: _rows,
    LibraryProduct: _product,
}
