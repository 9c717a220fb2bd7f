"""Batch normalization (V1-V3, forward and gradient) and local response normalization.

Batch normalization: Ioffe and Szegedy 2015. x is T (float32, float16, bfloat16), the statistics are U (float32);
everything is computed in float32.
"""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import math
from typing import Any

import numpy as np

from toolkit.errors import InvalidArgumentError
from toolkit.graph import dtypes
from toolkit.kernels.cpu.common import require, shape_text
from toolkit.kernels.cpu.nn.window import Layout, widen
from toolkit.kernels.registry import Compute, KernelNode, kernel
from toolkit.kernels.types import Array

_NORM_TYPES = {dtypes.float32, dtypes.float16, dtypes.bfloat16}


def check_channels(op: KernelNode, x: Array, channels: int, *vectors: Array) -> None:
    """Check an input's rank and that there is a number for each of its channels."""
    ranks = (4, 5) if op.op.endswith("V3") else (4,)
    if x.ndim not in ranks:
        raise InvalidArgumentError(f"x must be {' or '.join(map(str, ranks))}-dimensional, not {x.ndim}", node=op.name)
    for vector in vectors:
        if vector.ndim != 1:
            raise InvalidArgumentError(
                f"scale, offset and statistics must be 1-dimensional, not {list(vector.shape)}", node=op.name
            )
        if vector.size != channels:
            raise InvalidArgumentError(
                f"scale, offset and statistics must have {channels} elements, one per channel, not {vector.size}",
                node=op.name,
            )


@kernel("FusedBatchNorm", types={"T": [dtypes.float32]})
@kernel("FusedBatchNormV2", types={"T": _NORM_TYPES, "U": [dtypes.float32]})
@kernel("FusedBatchNormV3", types={"T": _NORM_TYPES, "U": [dtypes.float32]})
def fused_batch_norm(op: KernelNode) -> Compute:
    """Outputs: y, batch mean, batch variance (unbiased when training), and reserve spaces for the gradient.

    The reserve spaces hold the mean and the biased variance (training), or the given statistics (inference); the
    third of V3 is an empty placeholder, as on TensorFlow's CPU.
    """
    layout = Layout.of(op)
    epsilon = np.float32(op.attr("epsilon"))
    factor = np.float32(op.attr("exponential_avg_factor"))
    training: bool = op.attr("is_training")
    has_third = op.op == "FusedBatchNormV3"

    def compute(x: Array, scale: Array, offset: Array, mean: Array, variance: Array) -> tuple[Array, ...]:
        last = layout.last(x) if x.ndim in (4, 5) else x
        channels = last.shape[-1] if x.ndim else 0
        needed = () if training and factor == 1 else (mean, variance)
        check_channels(op, x, channels, scale, offset, *needed)
        for vector, what in ((mean, "estimated_mean"), (variance, "estimated_variance")):
            require(vector.ndim == 1, f"{what} must be 1-dimensional, got shape {shape_text(vector)}")
        if x.size == 0:
            nan = np.full((channels,), np.nan, np.float32)
            out = (widen(last), nan, nan.copy(), np.zeros_like(nan), np.zeros_like(nan))
        elif training:
            out = _train(widen(last), scale, offset, mean, variance)
        else:
            multiplier = scale / np.sqrt(variance + epsilon)
            y = widen(last) * multiplier + (offset - mean * multiplier)
            out = (y, mean, variance, mean, variance)
        y = layout.restore(out[0].astype(x.dtype, copy=False))
        third = (np.zeros((0,), np.float32),) if has_third else ()
        return (y, *out[1:], *third)

    def _train(x: Array, scale: Array, offset: Array, mean: Array, variance: Array) -> tuple[Array, ...]:
        rows = x.reshape(-1, x.shape[-1])
        count = rows.shape[0]
        batch_mean = rows.mean(axis=0, dtype=np.float32)
        centered = rows - batch_mean
        biased = np.einsum("nc,nc->c", centered, centered) / np.float32(count)
        y = centered * (scale / np.sqrt(biased + epsilon)) + offset
        unbiased = biased * np.float32(count / max(count - 1, 1))
        if factor == 1:
            new_mean, new_variance = batch_mean, unbiased
        else:
            new_mean = (1 - factor) * mean + factor * batch_mean
            new_variance = (1 - factor) * variance + factor * unbiased
        return y.reshape(x.shape), new_mean, new_variance, batch_mean, biased

    return compute


@kernel("FusedBatchNormGrad", types={"T": [dtypes.float32]})
@kernel("FusedBatchNormGradV2", "FusedBatchNormGradV3", types={"T": _NORM_TYPES, "U": [dtypes.float32]})
def fused_batch_norm_grad(op: KernelNode) -> Compute:
    """Gradients by x, scale and offset; the last two outputs are placeholders."""
    layout = Layout.of(op)
    epsilon = np.float32(op.attr("epsilon"))
    training: bool = op.attr("is_training")

    def compute(dy: Array, x: Array, scale: Array, mean: Array, variance: Array, *_: Array) -> tuple[Array, ...]:
        if dy.shape != x.shape:
            raise InvalidArgumentError(
                f"y_backprop and x must have the same shape, not {list(dy.shape)} and {list(x.shape)}", node=op.name
            )
        last = layout.last(x) if x.ndim in (4, 5) else x
        channels = last.shape[-1] if x.ndim else 0
        check_channels(op, x, channels, scale, mean, variance)
        rows = widen(last).reshape(-1, channels)
        grads = widen(layout.last(dy)).reshape(-1, channels)
        inverse = 1 / np.sqrt(variance + epsilon)
        normal = (rows - mean) * inverse
        d_offset = grads.sum(axis=0)
        d_scale = np.einsum("nc,nc->c", grads, normal)
        if training and rows.size:
            count = np.float32(rows.shape[0])
            dx = (grads - d_offset / count - normal * (d_scale / count)) * (scale * inverse)
        else:
            dx = grads * (scale * inverse)
        dx = layout.restore(dx.reshape(last.shape).astype(x.dtype, copy=False))
        empty = np.zeros((), np.float32)
        return dx, d_scale.astype(np.float32), d_offset.astype(np.float32), empty, empty.copy()

    return compute


# -- local response normalization ------------------------------------------------------------------------------


def _band_sum(x: Array, radius: int) -> Array:
    """For each channel, the sum over channels at most `radius` away."""
    depth = x.shape[-1]
    if not np.isfinite(x).all():  # which running sums would keep
        near = [x[..., max(0, c - radius) : c + radius + 1].sum(axis=-1, dtype=np.float64) for c in range(depth)]
        return np.stack(near, axis=-1).astype(np.float32)
    # float64 running sums lose nothing that float32 could show
    running = np.zeros((*x.shape[:-1], depth + 1), np.float64)
    np.cumsum(x, axis=-1, out=running[..., 1:])
    channel: Array = np.arange(depth)
    high = np.minimum(channel + radius + 1, depth)
    low = np.maximum(channel - radius, 0)
    return (running[..., high] - running[..., low]).astype(np.float32)


def radius_of(op: KernelNode) -> int:
    radius = op.int32("depth_radius")
    if radius < 0:
        raise InvalidArgumentError(f"depth_radius must not be negative, not {radius}", node=op.name)
    return radius


@kernel("LRN", types={"T": _NORM_TYPES})
def lrn(op: KernelNode) -> Compute:
    """y = x / (bias + alpha * sum of squares of near channels) ** beta (Krizhevsky et al. 2012)."""
    radius = radius_of(op)
    bias, alpha, beta = (np.float32(op.attr(name)) for name in ("bias", "alpha", "beta"))

    def compute(x: Array) -> Array:
        if x.ndim != 4:
            raise InvalidArgumentError(f"in must be 4-dimensional, not {x.ndim}", node=op.name)
        wide = widen(x)
        norm = bias + alpha * _band_sum(np.square(wide), radius)
        return (wide * norm**-beta).astype(x.dtype, copy=False)

    return compute


@kernel("LRNGrad", types={"T": _NORM_TYPES})
def lrn_grad(op: KernelNode) -> Compute:
    radius = radius_of(op)
    bias, alpha, beta = (np.float32(op.attr(name)) for name in ("bias", "alpha", "beta"))

    def compute(dy: Array, x: Array, y: Array) -> Array:
        if dy.ndim != 4 or x.ndim != 4:
            raise InvalidArgumentError("inputs must be 4-dimensional", node=op.name)
        if not dy.shape == x.shape == y.shape:
            raise InvalidArgumentError(
                f"input_grads, input_image and out_image must have the same shape, not {list(dy.shape)}, "
                f"{list(x.shape)} and {list(y.shape)}",
                node=op.name,
            )
        grads, wide, outputs = widen(dy), widen(x), widen(y)
        norm = bias + alpha * _band_sum(np.square(wide), radius)
        through = _band_sum(grads * outputs / norm, radius)
        return (grads * norm**-beta - (2 * alpha * beta) * wide * through).astype(x.dtype, copy=False)

    return compute


@kernel("BatchNormWithGlobalNormalization", types={"T": _NORM_TYPES | {dtypes.float64}})
def batch_norm_global(op: KernelNode) -> Compute:
    """The batch normalization of the first TensorFlow releases (deprecated since 9)."""
    epsilon: float = op.attr("variance_epsilon")
    scaled: bool = op.attr("scale_after_normalization")

    def compute(x: Array, mean: Array, variance: Array, beta: Array, gamma: Array) -> Array:
        check_global(op, x, mean, variance, beta, gamma)
        inverse = 1 / np.sqrt(widen(variance) + epsilon)
        multiplier = inverse * widen(gamma) if scaled else inverse
        return ((widen(x) - widen(mean)) * multiplier + widen(beta)).astype(x.dtype, copy=False)

    return compute


@kernel("BatchNormWithGlobalNormalizationGrad", types={"T": _NORM_TYPES | {dtypes.float64}})
def batch_norm_global_grad(op: KernelNode) -> Compute:
    epsilon: float = op.attr("variance_epsilon")
    scaled: bool = op.attr("scale_after_normalization")

    def compute(x: Array, mean: Array, variance: Array, gamma: Array, dy: Array) -> tuple[Array, ...]:
        check_global_grad(op, x, dy, mean, variance, gamma)
        dtype, depth = x.dtype, x.shape[-1]
        flat = (math.prod(x.shape[:-1]), depth)
        rows, grads = widen(x).reshape(flat), widen(dy).reshape(flat)
        inverse = 1 / np.sqrt(widen(variance) + epsilon)
        centered = rows - widen(mean)
        multiplier = inverse * widen(gamma) if scaled else inverse
        d_beta = grads.sum(axis=0)
        by_centered = np.einsum("nc,nc->c", grads, centered)
        d_gamma = by_centered * inverse if scaled else np.zeros_like(inverse)
        weight = widen(gamma) if scaled else 1
        d_variance = by_centered * weight * -0.5 * inverse**3
        parts = (grads * multiplier).reshape(x.shape), -d_beta * multiplier, d_variance, d_beta, d_gamma
        return tuple(p.astype(dtype, copy=False) for p in parts)

    return compute


def check_global_grad(op: KernelNode, x: Any, dy: Any, *vectors: Any) -> None:
    """As `check_global`, and the gradient has the input's shape."""
    check_global(op, x, *vectors)
    if dy.shape != x.shape:
        raise InvalidArgumentError(
            f"backprop must have the input's shape {list(x.shape)}, not {list(dy.shape)}", node=op.name
        )


def check_global(op: KernelNode, x: Any, *vectors: Any) -> None:
    if x.ndim != 4:
        raise InvalidArgumentError(f"input must be 4-dimensional, not {x.ndim}", node=op.name)
    for vector in vectors:
        if vector.shape != (x.shape[-1],):
            raise InvalidArgumentError(
                f"statistics must be vectors of {math.prod(x.shape[-1:])} elements, not {list(vector.shape)}",
                node=op.name,
            )
