"""Local response normalization (Krizhevsky et al. 2012)."""

from __future__ import annotations

import numpy as np

from toolkit.errors import InvalidArgumentError
from toolkit.graph import dtypes
from toolkit.kernels.cpu.nn.norm import radius_of
from toolkit.kernels.cuda.device import device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.nn import lrn as kernels
from toolkit.kernels.cuda.nn.common import blocks_of, index_type
from toolkit.kernels.registry import Compute, KernelNode, kernel


def _numbers(op: KernelNode) -> list[float]:
    return [float(np.float32(op.attr(name))) for name in ("bias", "alpha", "beta")]


@kernel("LRN", types={"T": [dtypes.float32]}, device="GPU")
def lrn(op: KernelNode) -> Compute:
    """y = x / (bias + alpha * sum of squares of near channels) ** beta."""
    device, radius, numbers = device_of(op.node), radius_of(op), _numbers(op)

    def compute(x: GpuArray) -> GpuArray:
        if x.ndim != 4:
            raise InvalidArgumentError(f"in must be 4-dimensional, not {x.ndim}", node=op.name)
        y = device.empty(x.shape, x.dtype)
        if y.nbytes:
            kernel = kernels.forward_kernel(index_type(x))
            near = min(radius, x.shape[-1])
            device.launch(kernel, blocks_of(x.size), x, y, *numbers, near, x.shape[-1], x.size)
        return y

    return compute


@kernel("LRNGrad", types={"T": [dtypes.float32]}, device="GPU")
def lrn_grad(op: KernelNode) -> Compute:
    device, radius, numbers = device_of(op.node), radius_of(op), _numbers(op)

    def compute(dy: GpuArray, x: GpuArray, y: GpuArray) -> GpuArray:
        if dy.ndim != 4 or x.ndim != 4:
            raise InvalidArgumentError("inputs must be 4-dimensional", node=op.name)
        if not dy.shape == x.shape == y.shape:
            raise InvalidArgumentError(
                f"input_grads, input_image and out_image must have the same shape, not {list(dy.shape)}, "
                f"{list(x.shape)} and {list(y.shape)}",
                node=op.name,
            )
        dx = device.empty(x.shape, x.dtype)
        if dx.nbytes:
            kernel = kernels.gradient_kernel(index_type(x))
            near = min(radius, x.shape[-1])
            device.launch(kernel, blocks_of(x.size), dy, x, y, dx, *numbers, near, x.shape[-1], x.size)
        return dx

    return compute
