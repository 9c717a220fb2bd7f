"""Shapes: asking for them, and changing them; the memory is shared."""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np

from toolkit.kernels.cuda.device import device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.device_memory import DeviceArray
from toolkit.kernels.gpu.primitives.copying import part
from toolkit.kernels.gpu.registering import cpu_compute, gpu_kernel, layouts
from toolkit.kernels.registry import Compute, KernelNode
from toolkit.kernels.types import Array


def _sizes(x: Any) -> tuple[int, ...]:
    """The sizes of a tensor; a variant is a scalar."""
    return cast("GpuArray", x).shape if isinstance(x, (DeviceArray, np.ndarray, np.generic)) else ()


@gpu_kernel("Shape", "ShapeN")
def shape(op: KernelNode) -> Compute:
    """The results are in host memory, as those of Size and Rank."""
    dtype = op.output_types[0].numpy if op.output_types else np.dtype(np.int32)
    many = op.op == "ShapeN"

    def compute(*values: Any) -> list[Array] | Array:
        shapes = [np.array(_sizes(value), dtype) for value in values]
        return shapes if many else shapes[0]

    return compute


@gpu_kernel("Size")
def size(op: KernelNode) -> Compute:
    dtype = op.output_types[0].numpy

    def compute(x: Any) -> Array:
        return np.array(math.prod(_sizes(x)), dtype)

    return compute


@gpu_kernel("Rank")
def rank(op: KernelNode) -> Compute:
    def compute(x: Any) -> Array:
        return np.array(len(_sizes(x)), np.int32)

    return compute


@gpu_kernel("Reshape", "ExpandDims", "Squeeze")
def reshape(op: KernelNode) -> Compute:
    find = layouts(op)

    def compute(x: GpuArray, *wanted: Array) -> GpuArray:
        return x.reshaped(find(x, *wanted)[0].shape)

    return compute


@gpu_kernel("BroadcastTo")
def broadcast_to(op: KernelNode) -> Compute:
    device, find = device_of(op.node), layouts(op)

    def compute(x: GpuArray, wanted: Array) -> GpuArray:
        return part(device, x, find(x, wanted)[0])

    return compute


@gpu_kernel("EnsureShape", "BroadcastArgs", "BroadcastGradientArgs", "InvertPermutation", "Copy", "CopyHost")
def on_host(op: KernelNode) -> Compute:
    """These look at shapes only, or at what is in host memory."""
    return cpu_compute(op)
