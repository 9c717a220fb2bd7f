"""Batch normalization, V1 to V3, forward and gradient, and with what is fused behind it.

x is float32, float16 or bfloat16; the statistics are float32, in which everything is computed. The reserve spaces hold
what the CPU's kernels keep there, the mean and the biased variance, so that gradients may run on either.
"""

from __future__ import annotations

import math

import numpy as np

from toolkit.errors import InvalidArgumentError, UnimplementedError
from toolkit.graph import dtypes
from toolkit.kernels.cpu.common import require, shape_text
from toolkit.kernels.cpu.nn.norm import check_channels
from toolkit.kernels.cpu.nn.window import Layout
from toolkit.kernels.cuda.device import device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.nn import batch_norm
from toolkit.kernels.cuda.nn.channels import activation, launch_epilogue
from toolkit.kernels.cuda.nn.norm_sums import norm_gradients, norm_moments
from toolkit.kernels.registry import Compute, KernelNode, kernel

_NORM_TYPES = {dtypes.float32, dtypes.float16, dtypes.bfloat16}
_F32 = np.dtype(np.float32)


def _sides(layout: Layout, shape: tuple[int, ...]) -> tuple[int, int, int]:
    """A shape as (outer, channels, inner)."""
    if len(shape) not in (4, 5):
        return 0, shape[-1] if shape else 0, 0
    if layout.channels_first:
        return shape[0], shape[1], math.prod(shape[2:])
    return math.prod(shape[:-1]), shape[-1], 1


@kernel("FusedBatchNorm", types={"T": [dtypes.float32]}, device="GPU")
@kernel("FusedBatchNormV2", types={"T": _NORM_TYPES, "U": [dtypes.float32]}, device="GPU")
@kernel("FusedBatchNormV3", types={"T": _NORM_TYPES, "U": [dtypes.float32]}, device="GPU")
def fused_batch_norm(op: KernelNode) -> Compute:
    """Outputs: y, batch mean, batch variance (unbiased when training), and reserve spaces for the gradient."""
    device = device_of(op.node)
    layout = Layout.of(op)
    epsilon = float(np.float32(op.attr("epsilon")))
    factor = np.float32(op.attr("exponential_avg_factor"))
    training: bool = op.attr("is_training")
    has_third = op.op == "FusedBatchNormV3" or op.op == "_FusedBatchNormEx"

    def compute(
        x: GpuArray, scale: GpuArray, offset: GpuArray, mean: GpuArray, variance: GpuArray
    ) -> tuple[GpuArray, ...]:
        sides = _sides(layout, x.shape)
        channels, inner = sides[1:]
        needed = () if training and factor == 1 else (mean, variance)
        check_channels(op, x, channels, scale, offset, *needed)
        for vector, what in ((mean, "estimated_mean"), (variance, "estimated_variance")):
            require(vector.ndim == 1, f"{what} must be 1-dimensional, got shape {shape_text(vector)}")
        third = (device.empty((0,), _F32),) if has_third else ()
        y = device.empty(x.shape, x.dtype)
        if not x.nbytes:
            nan = device.full((channels,), _F32, np.nan)
            zero = device.zeros((channels,), _F32)
            return (y, nan, nan, zero, zero, *third)
        if not training:
            vectors = batch_norm.launch_affine(device, scale, offset, mean, variance, epsilon)
            launch_epilogue(device, x, y, channels, inner, vectors=vectors)
            return (y, mean, variance, mean, variance, *third)
        batch_mean, biased, unbiased, multiplier = norm_moments(device, x, scale, epsilon, sides)
        batch_norm.launch_normalize(device, x, y, batch_mean, multiplier, offset, channels, inner)
        if factor == 1:
            return (y, batch_mean, unbiased, batch_mean, biased, *third)
        rest = float(1 - factor)
        new_mean = batch_norm.averaged(device, mean, batch_mean, rest, float(factor))
        new_variance = batch_norm.averaged(device, variance, unbiased, rest, float(factor))
        return (y, new_mean, new_variance, batch_mean, biased, *third)

    return compute


@kernel("FusedBatchNormGrad", types={"T": [dtypes.float32]}, device="GPU")
@kernel("FusedBatchNormGradV2", "FusedBatchNormGradV3", types={"T": _NORM_TYPES, "U": [dtypes.float32]}, device="GPU")
def fused_batch_norm_grad(op: KernelNode) -> Compute:
    """Gradients by x, scale and offset; the last two outputs are placeholders."""
    device = device_of(op.node)
    layout = Layout.of(op)
    epsilon = float(np.float32(op.attr("epsilon")))
    training: bool = op.attr("is_training")

    def compute(
        dy: GpuArray, x: GpuArray, scale: GpuArray, mean: GpuArray, variance: GpuArray, *_: GpuArray
    ) -> tuple[GpuArray, ...]:
        if dy.shape != x.shape:
            raise InvalidArgumentError(
                f"y_backprop and x must have the same shape, not {list(dy.shape)} and {list(x.shape)}", node=op.name
            )
        sides = _sides(layout, x.shape)
        channels, inner = sides[1:]
        check_channels(op, x, channels, scale, mean, variance)
        dx, empty = device.empty(x.shape, x.dtype), device.zeros((), _F32)
        if not x.nbytes:
            zero = device.zeros((channels,), _F32)
            return dx, zero, zero, empty, empty
        sums = norm_gradients(device, dy, x, scale, mean, variance, (), epsilon, sides)
        d_offset, d_scale, inverse = sums[:3]
        given = (mean, d_offset, d_scale) if training else ()
        batch_norm.launch_gradient(device, dy, x, dx, scale, inverse, given, channels, inner)
        return dx, d_scale, d_offset, empty, empty

    return compute


@kernel("_FusedBatchNormEx", types={"T": _NORM_TYPES, "U": [dtypes.float32]}, device="GPU")
def fused_batch_norm_ex(op: KernelNode) -> Compute:
    """Batch normalization, then a side input is added, then the activation."""
    device = device_of(op.node)
    normalize = fused_batch_norm(op)
    name = op.text("activation_mode")
    if activation(name, 0.0) is None:
        raise UnimplementedError(f"Fusion is not implemented: {name}", node=op.name)

    def compute(
        x: GpuArray, scale: GpuArray, offset: GpuArray, mean: GpuArray, variance: GpuArray, *side: GpuArray
    ) -> tuple[GpuArray, ...]:
        y, *rest = normalize(x, scale, offset, mean, variance)
        if side or name != "Identity":
            launch_epilogue(device, y, y, 1, 1, added=side[0] if side else None, name=name)
        return (y, *rest)

    return compute
