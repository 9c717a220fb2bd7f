"""What runs the operations of `operations`; see `launchers`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from toolkit.compiler.backends.cuda.precision.depthwise import DepthwiseCall
from toolkit.compiler.backends.cuda.precision.operations import ConvolutionGradient, NarrowCopies, ProductsCall, WideSum
from toolkit.compiler.ir import relations
from toolkit.kernels.cuda.conversions import converted
from toolkit.kernels.cuda.convolving import Layer, filter_gradient, input_gradient
from toolkit.kernels.cuda.device import CudaDevice
from toolkit.kernels.cuda.filters import Filters
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.prepared import Prepared
from toolkit.kernels.cuda.products import batches, multiply
from toolkit.kernels.gpu.nn import depthwise as nn_depthwise
from toolkit.kernels.gpu.nn.conv import gradient_layer
from toolkit.kernels.gpu.reductions.axes import reduction_of
from toolkit.kernels.gpu.reductions.launch import collapse, reduce_array
from toolkit.kernels.registry import KernelNode

Launch = Callable[..., list[GpuArray]]


def _copies(device: CudaDevice, operation: NarrowCopies) -> Launch:
    dtype = operation.output.dtype
    if not operation.stays:
        return lambda *given: converted(device, given, dtype)
    kept = [Prepared(("narrow", dtype)) for _ in operation.values]

    def launch(*given: GpuArray) -> list[GpuArray]:
        return [
            each.of(device, [x], lambda x=x: converted(device, [x], dtype)[0])
            for each, x in zip(kept, given, strict=True)
        ]

    return launch


def _products(device: CudaDevice, operation: ProductsCall) -> Launch:
    a, b, shape = relations.shape(operation.a), relations.shape(operation.b), relations.shape(operation.output)
    m, n, k = operation.sizes
    turns = ("T" if operation.turn_a else "N", "T" if operation.turn_b else "N")
    dtype = operation.output.dtype
    if not operation.turn_a and all(size == 1 for size in b[:-2]):
        rows = m  # one matrix for all: the rows of a batch are those of a single matrix
        for size in a[:-2]:
            rows *= size
        sizes, many = (rows, n, k), [None]
    else:
        sizes, many = (m, n, k), batches(a[:-2], b[:-2])[1]

    def launch(left: GpuArray, right: GpuArray) -> list[GpuArray]:
        out = device.empty(shape, dtype)
        for batch in many:
            multiply(device, left, right, out, sizes, turns, batch=batch)
        return [out]

    return launch


def _gradient(device: CudaDevice, operation: ConvolutionGradient) -> Launch:
    node, by, dtype = KernelNode(operation.step.node), operation.by, operation.output.dtype
    first, dy_shape, shape = map(relations.shape, (operation.first, operation.dy, operation.output))
    filters = Filters(is_constant=False)
    found: list[Layer] = []

    def launch(first_operand: GpuArray, dy: GpuArray) -> list[GpuArray]:
        if not found:  # shapes that do not fit are an error of the step
            x_shape, w_shape = (shape, first) if by == "input" else (first, shape)
            found.append(gradient_layer(node, x_shape, w_shape, dy_shape))
        if by == "input":
            return [input_gradient(device, found[0], first_operand, dy, shape, filters, dtype)]
        return [filter_gradient(device, found[0], first_operand, dy, shape, dtype)]

    return launch


def _depthwise(device: CudaDevice, operation: DepthwiseCall) -> Launch:
    node, dtype, makes = KernelNode(operation.step.node), operation.output.dtype, operation.makes
    of = {
        "result": nn_depthwise.forward_of, "input": nn_depthwise.input_gradient_of,
        "filter": nn_depthwise.filter_gradient_of,
    }[makes]  # fmt: skip
    compute, sizes = of(node, device, dtype), np.array(relations.shape(operation.output), np.int32)

    def launch(first: GpuArray, second: GpuArray) -> list[GpuArray]:
        given = {"result": (first, second), "input": (sizes, first, second), "filter": (first, sizes, second)}[makes]
        return [compute(*given)]

    return launch


def _sum(device: CudaDevice, operation: WideSum) -> Launch:
    x, out = operation.x, operation.output
    runs, shape = collapse(relations.shape(x), operation.axes), relations.shape(out)
    reduction = reduction_of("Mean" if operation.mean else "Sum", x.dtype.name, out.dtype.name)

    def launch(given: GpuArray) -> list[GpuArray]:
        return [reduce_array(device, reduction, given, runs, shape, out.dtype)]

    return launch


#: by the class of an operation: (the device as its node knows it, the operation) to what runs it
NARROW_LAUNCHERS: dict[type, Callable[[CudaDevice, Any], Launch]] = {
    NarrowCopies: _copies,
    ProductsCall: _products,
    ConvolutionGradient: _gradient,
    DepthwiseCall: _depthwise,
    WideSum: _sum,
}
