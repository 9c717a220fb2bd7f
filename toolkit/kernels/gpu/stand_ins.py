"""FakeParam: a value of a type and shape that nobody reads."""

from __future__ import annotations

from toolkit.kernels.cuda.device import device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.gpu.registering import gpu_kernel
from toolkit.kernels.registry import Compute, KernelNode


@gpu_kernel("FakeParam")
def fake_param(op: KernelNode) -> Compute:
    """Unknown sizes are 0."""
    device, dtype = device_of(op.node), op.attr("dtype").numpy
    sizes = [size or 0 for size in op.attr("shape").dims or ()]

    def compute() -> GpuArray:
        return device.zeros(sizes, dtype)

    return compute
