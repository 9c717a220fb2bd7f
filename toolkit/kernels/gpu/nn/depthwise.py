"""Depthwise convolutions and their gradients."""

from __future__ import annotations

from typing import Any

from toolkit.errors import InvalidArgumentError
from toolkit.kernels.cpu.nn.conv import check_gradient, depthwise_windows, vector_of_sizes
from toolkit.kernels.cpu.nn.window import Layout, Windows
from toolkit.kernels.cuda.device import CudaDevice, device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.nn import depthwise as kernels
from toolkit.kernels.cuda.nn.common import Geometry, geometry
from toolkit.kernels.registry import FLOATING, Compute, KernelNode, kernel
from toolkit.kernels.types import Array


def _geometry(windows: Windows, layout: Layout, x_shape: tuple[int, ...], multiplier: int) -> Geometry:
    """Given x's shape with channels last."""
    channels = x_shape[-1]
    return geometry(windows, x_shape[0], channels, channels * multiplier, channels_first=layout.channels_first)


@kernel("DepthwiseConv2dNative", types={"T": FLOATING}, device="GPU")
def depthwise(op: KernelNode) -> Compute:
    return forward_of(op, device_of(op.node))


def forward_of(op: KernelNode, device: CudaDevice, dtype: Any = None) -> Compute:
    """What computes a depthwise convolution.

    Args:
        dtype: of its result; by default that of its operands.
    """
    layout, lay_windows = depthwise_windows(op)

    def compute(x: GpuArray, w: GpuArray) -> GpuArray:
        last = _last(op, layout, x, "input")
        windows = lay_windows(last, w.shape)
        return forward(device, windows, layout, last, x, w, dtype)

    return compute


def forward(
    device: CudaDevice, windows: Windows, layout: Layout, last: tuple[int, ...], x: GpuArray, w: GpuArray,
    dtype: Any = None,
) -> GpuArray:  # fmt: skip
    """y of x, whose shape with channels last is `last`, and w; its type is theirs, or float32 of 16-bit floats."""
    dtype = dtype or x.dtype
    filters = w.shape[2] * w.shape[3]
    spatial = windows.out
    shape = (last[0], filters, *spatial) if layout.channels_first else (last[0], *spatial, filters)
    if not w.nbytes or not x.nbytes:
        return device.zeros(shape, dtype)
    y = device.empty(shape, dtype)
    if y.nbytes:
        kernels.launch_forward(device, _geometry(windows, layout, last, w.shape[3]), w.shape[3], x, w, y)
    return y


@kernel("DepthwiseConv2dNativeBackpropInput", types={"T": FLOATING}, device="GPU")
def depthwise_backprop_input(op: KernelNode) -> Compute:
    return input_gradient_of(op, device_of(op.node))


def input_gradient_of(op: KernelNode, device: CudaDevice, dtype: Any = None) -> Compute:
    """What computes the gradient by the input; see `forward_of`."""
    layout, lay_windows = depthwise_windows(op)

    def compute(sizes: Array, w: GpuArray, dy: GpuArray) -> GpuArray:
        shape = vector_of_sizes(op, sizes, "input_sizes")
        if len(shape) != 4 or min(shape) < 0:
            raise InvalidArgumentError(f"input_sizes must be the 4 sizes of the input, not {shape}", node=op.name)
        last = layout.shape_last(shape)
        windows = lay_windows(last, w.shape)
        check_gradient(op, _last(op, layout, dy, "out_backprop"), windows, last[0], w.shape[2] * w.shape[3])
        if not w.nbytes or not dy.nbytes:
            return device.zeros(shape, dtype or dy.dtype)
        dx = device.empty(shape, dtype or dy.dtype)
        if dx.nbytes:
            kernels.launch_input(device, _geometry(windows, layout, last, w.shape[3]), w.shape[3], w, dy, dx)
        return dx

    return compute


@kernel("DepthwiseConv2dNativeBackpropFilter", types={"T": FLOATING}, device="GPU")
def depthwise_backprop_filter(op: KernelNode) -> Compute:
    return filter_gradient_of(op, device_of(op.node))


def filter_gradient_of(op: KernelNode, device: CudaDevice, dtype: Any = None) -> Compute:
    """What computes the gradient by the filter; see `forward_of`."""
    layout, lay_windows = depthwise_windows(op)

    def compute(x: GpuArray, sizes: Array, dy: GpuArray) -> GpuArray:
        shape = vector_of_sizes(op, sizes, "filter_sizes")
        if len(shape) != 4 or min(shape) < 0:
            raise InvalidArgumentError(f"filter_sizes must be the 4 sizes of the filter, not {shape}", node=op.name)
        last = _last(op, layout, x, "input")
        windows = lay_windows(last, shape)
        check_gradient(op, _last(op, layout, dy, "out_backprop"), windows, last[0], shape[2] * shape[3])
        if not x.nbytes or not dy.nbytes:
            return device.zeros(shape, dtype or x.dtype)
        dw = device.empty(shape, dtype or x.dtype)
        if dw.nbytes:
            kernels.launch_filter(device, _geometry(windows, layout, last, shape[3]), shape[3], x, dy, dw)
        return dw

    return compute


def _last(op: KernelNode, layout: Layout, x: GpuArray, name: str) -> tuple[int, ...]:
    if x.ndim != 4:
        raise InvalidArgumentError(f"{name} must be 4-dimensional, not of shape {list(x.shape)}", node=op.name)
    return layout.shape_last(x.shape)
