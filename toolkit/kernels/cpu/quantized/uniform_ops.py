"""Operations on uniformly quantized numbers: other scales, sums, matrix products, convolutions."""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Sequence

from toolkit.graph import dtypes
from toolkit.graph.dtypes import DType
from toolkit.kernels.cpu.common import check_broadcast, np, require, shape_text
from toolkit.kernels.cpu.quantized.uniform_conv import UniformConvolutionAttributes, UniformConvolutionGeometry
from toolkit.kernels.cpu.quantized.uniform_math import (
    F32,
    along,
    check_parameters,
    check_positive,
    exact_product,
    quantize_rows,
    requantized,
)
from toolkit.kernels.registry import Compute, KernelNode, kernel
from toolkit.kernels.types import Array

_qint8: DType = dtypes.from_name("qint8")
_qint32: DType = dtypes.from_name("qint32")
_INT32 = np.iinfo(np.int32)


@kernel("UniformRequantize", types={"Tin": [_qint8, _qint32], "Tout": [_qint8]})
def uniform_requantize(op: KernelNode) -> Compute:
    axis_in, axis_out = op.attr("input_quantization_axis"), op.attr("output_quantization_axis")
    low, high = op.attr("output_quantization_min_val"), op.attr("output_quantization_max_val")
    require(axis_in >= -1, f"input_quantization_axis must be >= -1, given: {axis_in}")
    require(axis_out >= -1, f"output_quantization_axis must be >= -1, given: {axis_out}")
    require(
        axis_in == -1 or axis_out == -1 or axis_in == axis_out,
        "If input and output is both per-axis quantized, the quantization axis must be same.",
    )
    dtype = op.output_types[0].numpy

    def compute(x: Array, scales: Array, zeros: Array, out_scales: Array, out_zeros: Array) -> Array:
        check_parameters(x.shape, scales, zeros, axis_in)
        check_parameters(x.shape, out_scales, out_zeros, axis_out)
        check_positive(scales, out_scales)
        factor = along(scales, x.ndim, axis_in).astype(np.float64) / along(out_scales, x.ndim, axis_out)
        centred = x.astype(np.int32) - along(zeros, x.ndim, axis_in)
        return requantized(centred, factor, along(out_zeros, x.ndim, axis_out), low, high).astype(dtype)

    return compute


@kernel("UniformQuantizedAdd", types={"T": [_qint32]})
def uniform_add(op: KernelNode) -> Compute:
    """Both operands are brought to the scale of the result."""
    axes = [op.attr(f"{side}_quantization_axis") for side in ("lhs", "rhs", "output")]
    low, high = op.attr("output_quantization_min_val"), op.attr("output_quantization_max_val")
    require(min(axes) >= -1, "lhs, rhs and output quantization_axis must be -1 or within [0, dims)")

    def compute(x: Array, y: Array, *parameters: Array) -> Array:
        scales, zeros = parameters[0::2], parameters[1::2]
        check_parameters(x.shape, scales[0], zeros[0], axes[0])
        check_parameters(y.shape, scales[1], zeros[1], axes[1])
        shape = check_broadcast(x, y)
        check_parameters(shape, scales[2], zeros[2], axes[2])
        for what, value, axis in (("lhs", x, axes[0]), ("rhs", y, axes[1])):
            require(
                axis < 0 or axes[2] < 0 or value.ndim - axis == len(shape) - axes[2],
                f"If {what} and output is both per-axis quantized, the quantization axis must match.",
            )
        check_positive(*scales)
        total = along(zeros[2], len(shape), axes[2])
        for value, scale, zero, axis in zip((x, y), scales, zeros, axes, strict=False):
            own = len(shape) if axis < 0 else axis + len(shape) - value.ndim  # the axis in the result
            factor = along(scale, len(shape), own).astype(np.float64) / along(scales[2], len(shape), axes[2])
            centred = value.astype(np.int32) - along(zero, value.ndim, axis)
            total = total + requantized(centred, factor, np.int32(0), _INT32.min, _INT32.max)
        return np.clip(total, low, high).astype(np.int32)

    return compute


def _check_dot(x: Array, w: Array) -> None:
    require(x.ndim == 2, f"lhs rank must be 2, but given lhs shape {shape_text(x)}")
    require(w.ndim == 2, f"rhs rank must be 2, but given rhs shape {shape_text(w)}")
    require(
        x.shape[1] == w.shape[0],
        f"lhs.dim_size(1) and rhs.dim_size(0) must be equal, but given lhs shape {shape_text(x)} and rhs shape "
        f"{shape_text(w)}",
    )


def check_dot(x: Array, w: Array, scales: Sequence[Array], zeros: Sequence[Array]) -> None:
    """Refuse what is not two matrices that fit together, with parameters that fit to them."""
    check_positive(*scales)
    _check_dot(x, w)
    shape = (x.shape[0], w.shape[1])
    check_parameters(x.shape, scales[0], zeros[0], -1)
    check_parameters(w.shape, scales[1], zeros[1], -1 if scales[1].ndim == 0 else 1)
    check_parameters(shape, scales[2], zeros[2], -1 if scales[2].ndim == 0 else 1)
    _check_output(scales)


def _check_output(scales: Sequence[Array]) -> None:
    require(
        scales[1].ndim > 0 or scales[2].ndim == 0,
        "If rhs is per-tensor quantized, output must be also per-tensor quantized.",
    )


def _check_sides(op: KernelNode, *sides: str) -> None:
    for side in sides:
        axis = op.attr(f"{side}_quantization_axis")
        require(axis in (-1, 1), f"{side}_quantization_axis Attr must be 1 (per-channel) or -1 (per-tensor).")


@kernel("UniformQuantizedDot", types={"Tin": [_qint8], "Tout": [_qint32]})
def uniform_dot(op: KernelNode) -> Compute:
    require(op.attr("lhs_quantization_axis") == -1, "lhs_quantization_axis Attr must be -1 (per-tensor).")
    _check_sides(op, "rhs", "output")
    low, high = op.attr("output_quantization_min_val"), op.attr("output_quantization_max_val")

    def compute(x: Array, w: Array, *parameters: Array) -> Array:
        scales, zeros = parameters[0::2], parameters[1::2]
        check_dot(x, w, scales, zeros)
        sums = exact_product(x.astype(np.int32) - zeros[0], w.astype(np.int32) - zeros[1])
        factor = scales[0].astype(np.float64) * scales[1] / scales[2]
        return requantized(sums, factor, zeros[2], low, high).astype(np.int32)

    return compute


@kernel("UniformQuantizedDotHybrid", types={"Tlhs": [dtypes.float32], "Trhs": [_qint8], "Tout": [dtypes.float32]})
def uniform_dot_hybrid(op: KernelNode) -> Compute:
    """The left side is quantized to 8 bits row by row."""
    _check_sides(op, "rhs")

    def compute(x: Array, w: Array, scales: Array, zeros: Array) -> Array:
        _check_dot(x, w)
        check_parameters(w.shape, scales, zeros, -1 if scales.ndim == 0 else 1)
        check_positive(scales)
        if x.size == 0:
            return np.zeros((x.shape[0], w.shape[1]), F32)
        rows, row_scales, row_zeros = quantize_rows(x)
        sums = exact_product(rows.astype(np.int32) - row_zeros, w.astype(np.int32) - zeros)
        return sums.astype(F32) * row_scales * scales

    return compute


def checked_geometry(
    op: KernelNode, x: Array, w: Array, scales: Sequence[Array], zeros: Sequence[Array]
) -> UniformConvolutionGeometry:
    """The shapes of a quantized convolution; refuses parameters that do not fit to them."""
    axis_w, axis_out = op.attr("rhs_quantization_axis"), op.attr("output_quantization_axis")
    check_positive(*scales)
    geometry = UniformConvolutionAttributes(op).geometry(x.shape, w.shape)
    check_parameters(x.shape, scales[0], zeros[0], -1)
    geometry.check_filter(axis_w)
    check_parameters(w.shape, scales[1], zeros[1], axis_w)
    geometry.check_output(axis_out)
    check_parameters(geometry.shape, scales[2], zeros[2], axis_out)
    _check_output(scales)
    return geometry


@kernel("UniformQuantizedConvolution", types={"Tin": [_qint8], "Tout": [_qint32]})
def uniform_convolution(op: KernelNode) -> Compute:
    require(op.attr("lhs_quantization_axis") == -1, "lhs_quantization_axis Attr must be -1 (per-tensor).")
    low, high = op.attr("output_quantization_min_val"), op.attr("output_quantization_max_val")
    UniformConvolutionAttributes(op)  # refuses malformed attributes now

    def compute(x: Array, w: Array, *parameters: Array) -> Array:
        scales, zeros = parameters[0::2], parameters[1::2]
        geometry = checked_geometry(op, x, w, scales, zeros)
        channels = (-1, *(1,) * (x.ndim - 2))
        centred = geometry.left(x).astype(np.int32) - zeros[0]
        filters = geometry.right(w).astype(np.int32) - zeros[1].reshape(-1, 1, *(1,) * (x.ndim - 2))
        sums = geometry.sums(centred, filters)
        factor = (scales[0].astype(np.float64) * scales[1] / scales[2]).reshape(channels)
        return geometry.back(requantized(sums, factor, zeros[2].reshape(channels), low, high)).astype(np.int32)

    return compute


@kernel(
    "UniformQuantizedConvolutionHybrid", types={"Tlhs": [dtypes.float32], "Trhs": [_qint8], "Tout": [dtypes.float32]}
)
def uniform_convolution_hybrid(op: KernelNode) -> Compute:
    """The left side is quantized to 8 bits image by image."""
    axis_w = op.attr("rhs_quantization_axis")
    convolution = UniformConvolutionAttributes(op)

    def compute(x: Array, w: Array, scales: Array, zeros: Array) -> Array:
        check_positive(scales)
        geometry = convolution.geometry(x.shape, w.shape)
        geometry.check_filter(axis_w)
        check_parameters(w.shape, scales, zeros, axis_w)
        images = geometry.left(x)
        rest = (1,) * (x.ndim - 1)
        if x.size == 0:
            return np.zeros(geometry.shape, F32)
        numbers, image_scales, image_zeros = quantize_rows(images.reshape(len(images), -1))
        centred = numbers.reshape(images.shape).astype(np.int32) - image_zeros.reshape(-1, *rest)
        filters = geometry.right(w).astype(np.int32) - zeros.reshape(-1, *rest)
        sums = geometry.sums(centred, filters).astype(F32)
        # of several groups of images, each gives the channels of one part of the result
        per_image = geometry.spread(image_scales.reshape(-1), sums.shape)
        return geometry.back(sums * per_image * scales.reshape(-1, *rest[1:]))

    return compute
