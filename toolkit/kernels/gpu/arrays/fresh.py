"""Empty and DeepCopy: tensors in memory of their own."""

from __future__ import annotations

from toolkit.kernels.cpu.arrays.shape import checked_shape
from toolkit.kernels.cuda.device import device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.gpu.registering import gpu_kernel
from toolkit.kernels.registry import Compute, KernelNode
from toolkit.kernels.types import Array


@gpu_kernel("Empty")
def empty(op: KernelNode) -> Compute:
    """Zeros: what TensorFlow leaves undefined, we define."""
    device, dtype = device_of(op.node), op.output_types[0].numpy

    def compute(shape: Array) -> GpuArray:
        return device.zeros(checked_shape(shape), dtype)

    return compute


@gpu_kernel("DeepCopy")
def deep_copy(op: KernelNode) -> Compute:
    return device_of(op.node).copied
