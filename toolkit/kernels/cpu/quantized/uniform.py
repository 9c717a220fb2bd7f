"""Uniform quantization: x stands for (x - zero point) * scale, per tensor or per slice of one axis."""

from __future__ import annotations

from toolkit.kernels.cpu.common import np, require, shape_text
from toolkit.kernels.cpu.quantized.uniform_math import F32, along, check_parameters
from toolkit.kernels.registry import Compute, KernelNode, kernel
from toolkit.kernels.types import Array


def _parameters(x: Array, scales: Array, zeros: Array, axis: int) -> tuple[Array, Array]:
    """Scales and zero points that broadcast to x."""
    check_parameters(x.shape, scales, zeros, axis)
    return along(scales, x.ndim, axis), along(zeros, x.ndim, axis)


def _round(x: Array) -> Array:
    """Halves upward, as TensorFlow's kernels have it here."""
    return np.floor(x + F32(0.5))


@kernel("UniformQuantize")
def uniform_quantize(op: KernelNode) -> Compute:
    axis, low, high = op.attr("quantization_axis"), op.attr("quantization_min_val"), op.attr("quantization_max_val")
    dtype = op.output_types[0].numpy

    def compute(x: Array, scales: Array, zeros: Array) -> Array:
        scale, zero = _parameters(x, scales, zeros, axis)
        inverse = F32(1) / scale
        return np.clip(_round(x * inverse).astype(np.float64) + zero, low, high).astype(dtype)

    return compute


@kernel("UniformDequantize")
def uniform_dequantize(op: KernelNode) -> Compute:
    axis = op.attr("quantization_axis")

    def compute(x: Array, scales: Array, zeros: Array) -> Array:
        scale, zero = _parameters(x, scales, zeros, axis)
        return ((x.astype(np.int32) - zero).astype(F32) * scale).astype(F32)

    return compute


@kernel("UniformQuantizedClipByValue")
def uniform_clip(op: KernelNode) -> Compute:
    axis = op.attr("quantization_axis")

    def compute(x: Array, low: Array, high: Array, scales: Array, zeros: Array) -> Array:
        _parameters(x, scales, zeros, axis)
        require(
            low.shape == high.shape == scales.shape,
            f"min, max and scales must have the same shape: {shape_text(low)} vs. {shape_text(scales)}",
        )
        return np.minimum(np.maximum(x, along(low, x.ndim, axis)), along(high, x.ndim, axis))

    return compute
