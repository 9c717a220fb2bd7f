"""BiasAdd: a number added to each channel."""

from __future__ import annotations

import math

from toolkit.errors import InvalidArgumentError
from toolkit.graph import dtypes
from toolkit.kernels.cpu.nn.window import Layout
from toolkit.kernels.cuda.device import device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.nn.channels import launch_epilogue
from toolkit.kernels.registry import FLOATING, Compute, KernelNode, kernel


@kernel("BiasAdd", "BiasAddV1", types={"T": FLOATING | {dtypes.int32}}, device="GPU")
def bias_add(op: KernelNode) -> Compute:
    device = device_of(op.node)
    channels_first = op.op == "BiasAdd" and Layout.of(op).channels_first

    def compute(x: GpuArray, bias: GpuArray) -> GpuArray:
        if x.ndim < 2:
            raise InvalidArgumentError(f"the input must be at least 2-dimensional, not {x.ndim}", node=op.name)
        axis = 1 if channels_first else x.ndim - 1
        if bias.ndim != 1:
            raise InvalidArgumentError(f"the bias must be 1-dimensional, not of shape {list(bias.shape)}", node=op.name)
        if bias.shape[0] != x.shape[axis]:
            raise InvalidArgumentError(
                f"the bias has {bias.shape[0]} elements, the input {x.shape[axis]} channels", node=op.name
            )
        y = device.empty(x.shape, x.dtype)
        launch_epilogue(device, x, y, bias.shape[0], math.prod(x.shape[axis + 1 :]), vectors=(bias,))
        return y

    return compute
