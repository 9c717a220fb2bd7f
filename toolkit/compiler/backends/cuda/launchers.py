"""What runs the operations that this backend adds: for each class a function that makes what is called in each step.

That takes the operation's inputs, in the order of its fields, and gives its outputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from toolkit.compiler.backends.cuda.attention.launchers import ATTENTION_LAUNCHERS
from toolkit.compiler.backends.cuda.conditionals.host_numbers import HostNumber, launch_host_number
from toolkit.compiler.backends.cuda.fusion.gradient_sums import SummedNest
from toolkit.compiler.backends.cuda.fusion.shared_products import SharedProducts
from toolkit.compiler.backends.cuda.layout.strided_operations import StridedProduct
from toolkit.compiler.backends.cuda.loops.collected import COLLECTED_LAUNCHERS
from toolkit.compiler.backends.cuda.operations import (
    AddedProduct,
    ChannelGradients,
    ChannelMoments,
    FusedCall,
    FusedKernelCall,
    FusedRowsCall,
    LibraryConvolution,
    LibraryProduct,
    UpdatesCall,
)
from toolkit.compiler.backends.cuda.parts.launchers import PLACED_LAUNCHERS
from toolkit.compiler.backends.cuda.precision.float8_launchers import FLOAT8_LAUNCHERS
from toolkit.compiler.backends.cuda.precision.launchers import NARROW_LAUNCHERS
from toolkit.compiler.ir import relations
from toolkit.graph import dtypes
from toolkit.kernels.cuda.convolving import Fused, convolve
from toolkit.kernels.cuda.device import CudaDevice
from toolkit.kernels.cuda.filters import Folding
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.nn.norm_sums import norm_gradients, norm_moments
from toolkit.kernels.cuda.prepared import Prepared
from toolkit.kernels.cuda.products import multiply
from toolkit.kernels.cuda.strided_products import multiply_strided
from toolkit.kernels.gpu.arrays.join import joined
from toolkit.kernels.gpu.elementwise import nests, row_nests
from toolkit.kernels.gpu.elementwise.nests import FusedKernel, NestOperand
from toolkit.kernels.gpu.nn.conv import layers
from toolkit.kernels.gpu.nn.norm_nests import launch_summed_nest, summed_nest
from toolkit.kernels.gpu.state.averages import AVERAGES, average_together
from toolkit.kernels.gpu.state.optimizers import update_together
from toolkit.kernels.registry import KernelNode
from toolkit.kernels.tensors import F32

Launch = Callable[..., list[GpuArray]]
#: of `ChannelMoments`, where the norm is FusedBatchNormV3
_OUTPUTS_WITH_THIRD = 6


def _nest(device: CudaDevice, operation: FusedKernelCall) -> Launch:
    found = nests.fused(operation.members, _operands(operation), operation.stores, operation.shape)
    return _launched(device, operation, found)


def _rows(device: CudaDevice, operation: FusedRowsCall) -> Launch:
    found = row_nests.fused_rows(operation.members, _operands(operation), operation.stores, operation.shape)
    return _launched(device, operation, found)


def _operands(operation: FusedCall) -> list[NestOperand]:
    return [NestOperand(value.dtype.name, own) for value, own in zip(operation.reads, operation.strides, strict=True)]


def _launched(device: CudaDevice, operation: FusedCall, found: FusedKernel) -> Launch:
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


def _added_product(device: CudaDevice, operation: AddedProduct) -> Launch:
    shape, dtype = operation.output.shape or (), operation.output.dtype
    sizes, turns = operation.sizes, ("T" if operation.turn_a else "N", "T" if operation.turn_b else "N")

    def launch(a: GpuArray, b: GpuArray, added: GpuArray) -> list[GpuArray]:
        out = device.empty(shape, dtype)
        multiply(device, a, b, out, sizes, turns, added=added)
        return [out]

    return launch


def _strided_product(device: CudaDevice, operation: StridedProduct) -> Launch:
    shape, dtype = operation.output.shape or (), operation.output.dtype
    product, name = operation.product, operation.activation

    def launch(a: GpuArray, b: GpuArray, bias: GpuArray | None = None) -> list[GpuArray]:
        out = device.empty(shape, dtype)
        multiply_strided(device, product, a, b, out, bias=bias, name=name)
        return [out]

    return launch


def _shared_products(device: CudaDevice, operation: SharedProducts) -> Launch:
    product, name = operation.product, operation.activation
    shape, dtype, count = operation.output.shape or (), operation.output.dtype, len(operation.matrices)
    step = product.stride_out * dtype.itemsize
    kept = [Prepared(("beside", count, part)) for part in ("matrices", "biases")]

    def beside(which: Prepared, arrays: Sequence[GpuArray], size: int) -> GpuArray | None:
        """Arrays one behind the other, kept while they stay."""
        flat = [array.reshaped((size,)) for array in arrays]
        return which.of(device, arrays, lambda: joined(device, flat, 0)) if arrays else None

    def launch(a: GpuArray, *given: GpuArray) -> list[GpuArray]:
        matrices = beside(kept[0], given[:count], product.k * product.n)
        biases = beside(kept[1], given[count:], product.n)
        out = device.empty((count * product.stride_out,), dtype)
        multiply_strided(device, product, a, matrices, out, bias=biases, name=name)
        return [out.viewed(dtype, shape, number * step) for number in range(count)]

    return launch


def _convolution(device: CudaDevice, operation: LibraryConvolution) -> Launch:
    layer_for = layers(KernelNode(operation.steps[0].node))
    out, x_type = operation.output.dtype, operation.x.dtype
    # what is folded is float32, as the norm's numbers are
    types = None if x_type == operation.w.dtype else (x_type, out)
    folding = Folding(operation.epsilon, types)
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
        return [convolve(device, layer, x, w, folding.filters, fused, out)]

    return launch


def _sides(shape: tuple[int, ...], *, first: bool) -> tuple[int, int, int]:
    """A shape as (outer, channels, inner)."""
    if first:
        return shape[0], shape[1], math.prod(shape[2:])
    return math.prod(shape[:-1]), shape[-1], 1


def _moments(device: CudaDevice, operation: ChannelMoments) -> Launch:
    sides = _sides(relations.shape(operation.x), first=operation.channels_first)
    epsilon, has_third = float(np.float32(operation.epsilon)), len(operation.outputs) == _OUTPUTS_WITH_THIRD

    def launch(x: GpuArray, scale: GpuArray) -> list[GpuArray]:
        mean, biased, unbiased, factor = norm_moments(device, x, scale, epsilon, sides)
        third = [device.empty((0,), F32)] if has_third else []
        return [mean, unbiased, mean, biased, *third, factor]

    return launch


def _summed_nest(device: CudaDevice, operation: SummedNest) -> Launch:
    reads, epsilon = len(operation.reads), float(np.float32(operation.epsilon))
    what = summed_nest(operation.members, operation.x.dtype.name, reads, operation.gradient, operation.stores)

    def launch(*given: GpuArray) -> list[GpuArray]:
        x, scale, mean, variance = given[reads:]
        made, sums = launch_summed_nest(device, what, given[:reads], x, scale, mean, variance, epsilon)
        d_offset, d_scale, *vectors = sums
        return [*made, d_scale, d_offset, *vectors]

    return launch


def _norm_sums(device: CudaDevice, operation: ChannelGradients) -> Launch:
    sides = _sides(relations.shape(operation.x), first=operation.channels_first)
    epsilon = float(np.float32(operation.epsilon))

    def launch(
        dy: GpuArray, x: GpuArray, scale: GpuArray, mean: GpuArray, variance: GpuArray, *relu: GpuArray
    ) -> list[GpuArray]:
        made = norm_gradients(device, dy, x, scale, mean, variance, relu, epsilon, sides)
        d_offset, d_scale, *vectors = made
        return [d_scale, d_offset, *vectors]

    return launch


def updates(device: CudaDevice, operation: UpdatesCall) -> Callable[..., None]:
    """What changes variables together: called with the step, the variables, the gradients and the other numbers."""
    there = device.for_node(operation.name)
    if operation.rule in AVERAGES:
        return average_together(there, operation.rule, dtypes.from_numpy(operation.gradients[0].dtype))
    return update_together(there, [KernelNode(step.node) for step in operation.steps])


#: by the class of an operation: (the device as its node knows it, the operation) to what runs it
LAUNCHERS: dict[type, Callable[[CudaDevice, Any], Launch]] = {
    FusedKernelCall: _nest,
    FusedRowsCall: _rows,
    LibraryProduct: _product,
    AddedProduct: _added_product,
    StridedProduct: _strided_product,
    SharedProducts: _shared_products,
    LibraryConvolution: _convolution,
    ChannelMoments: _moments,
    ChannelGradients: _norm_sums,
    SummedNest: _summed_nest,
    **ATTENTION_LAUNCHERS,
    **FLOAT8_LAUNCHERS,
    HostNumber: launch_host_number,
    **COLLECTED_LAUNCHERS,
    **NARROW_LAUNCHERS,
    **PLACED_LAUNCHERS,
}
