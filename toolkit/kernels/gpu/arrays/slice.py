"""Slices: Slice and the StridedSlice family."""

from __future__ import annotations

from toolkit.errors import InvalidArgumentError
from toolkit.kernels.cpu.arrays.shape import checked_shape
from toolkit.kernels.cpu.arrays.slice import strided_index
from toolkit.kernels.cpu.common import np, shape_text
from toolkit.kernels.cuda.device import device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.gpu.primitives.copying import copy_part, part
from toolkit.kernels.gpu.primitives.layout import ElementLayout, layout_of, stand_in
from toolkit.kernels.gpu.registering import gpu_kernel, layouts
from toolkit.kernels.registry import Compute, KernelNode
from toolkit.kernels.types import Array


@gpu_kernel("Slice", "StridedSlice")
def slice_(op: KernelNode) -> Compute:
    """What is dense shares the memory of the whole."""
    device, find = device_of(op.node), layouts(op)

    def compute(x: GpuArray, *places: Array) -> GpuArray:
        return part(device, x, find(x, *places)[0])

    return compute


@gpu_kernel("StridedSliceGrad")
def strided_slice_grad(op: KernelNode) -> Compute:
    """Zeros with dy at the places that the slice took."""
    device, build = device_of(op.node), strided_index(op)

    def compute(shape: Array, begin: Array, end: Array, strides: Array, dy: GpuArray) -> GpuArray:
        base = stand_in(checked_shape(shape), dy.dtype)
        chosen = base[build(base.shape, begin, end, strides)]
        if chosen.shape != dy.shape:
            raise InvalidArgumentError(f"shape of dy was {shape_text(dy)} instead of {shape_text(chosen)}")
        y = device.zeros(base.shape, dy.dtype)
        copy_part(device, dy, ElementLayout.dense(dy.shape), y, layout_of(chosen, base))
        return y

    return compute


@gpu_kernel("TensorStridedSliceUpdate")
def tensor_strided_slice_update(op: KernelNode) -> Compute:
    device, build = device_of(op.node), strided_index(op)

    def compute(x: GpuArray, begin: Array, end: Array, strides: Array, value: GpuArray) -> GpuArray:
        base = stand_in(x.shape, x.dtype)
        chosen = base[build(x.shape, begin, end, strides)]
        given = stand_in(value.shape, value.dtype)
        try:
            spread = np.broadcast_to(given, chosen.shape)
        except ValueError:
            raise InvalidArgumentError(
                f"Cannot update view of shape {shape_text(chosen)} with a value of shape {shape_text(value)}"
            ) from None
        y = device.copied(x)
        copy_part(device, value, layout_of(spread, given), y, layout_of(chosen, base))
        return y

    return compute
