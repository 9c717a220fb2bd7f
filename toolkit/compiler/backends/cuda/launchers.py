"""What runs the operations that this backend adds: for each class a function that makes what is called in each step.

That takes the operation's inputs, in the order of its fields, and gives its outputs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolkit.compiler.backends.cuda.operations import (
    FusedKernelCall,
    FusedRowsCall,
    LibraryConvolution,
    LibraryProduct,
    UpdatesCall,
)
from toolkit.kernels.cuda.convolving import Folding, Fused, convolve
from toolkit.kernels.cuda.device import CudaDevice
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.products import multiply
from toolkit.kernels.gpu import nests, row_nests
from toolkit.kernels.gpu.nests import FusedKernel, NestOperand
from toolkit.kernels.gpu.nn_conv import layers
from toolkit.kernels.gpu.optimizers import update_together
from toolkit.kernels.registry import KernelNode

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


def _convolution(device: CudaDevice, operation: LibraryConvolution) -> Launch:
    layer_for = layers(KernelNode(operation.steps[0].node))
    folding = Folding(operation.epsilon)
    fields = ("x", "w", "bias", "scale", "offset", "mean", "variance", "added")
    names = [name for name in fields if getattr(operation, name) is not None]
    activation = operation.activation

    def launch(*given: GpuArray) -> list[GpuArray]:
        by = dict(zip(names, given, strict=True))
        x, w, bias = by["x"], by["w"], by.get("bias")
        layer = layer_for(x, w)
        vectors = () if bias is None else (bias,)
        if "scale" in by:
            w, shift = folding.folded(device, w, [by[name] for name in ("scale", "offset", "mean", "variance")])
            vectors = (shift,)
        fused = Fused(vectors, by.get("added"), activation)
        return [convolve(device, layer, x, w, folding.filters, fused)]

    return launch


def updates(device: CudaDevice, operation: UpdatesCall) -> Callable[..., None]:
    """What changes variables together: called with the step, the variables, the gradients and the other numbers."""
    return update_together(device.for_node(operation.name), [KernelNode(step.node) for step in operation.steps])


#: by the class of an operation: (the device as its node knows it, the operation) to what runs it
LAUNCHERS: dict[type, Callable[[CudaDevice, Any], Launch]] = {
    FusedKernelCall: _nest,
    FusedRowsCall: _rows,
    LibraryProduct: _product,
    LibraryConvolution: _convolution,
}
