"""Arithmetic on quantized numbers. Each tensor comes with the floats that its lowest and highest stand for."""

from __future__ import annotations

import math

from toolkit.errors import InvalidArgumentError, UnimplementedError
from toolkit.kernels.cpu.arrays.shape import reshape
from toolkit.kernels.cpu.common import broadcasting, np, require, require_scalar, shape_text, wrap_axis
from toolkit.kernels.cpu.quantized.quantize import (
    F32,
    as_floats,
    float_to_quantized,
    half_away,
    limits,
    quantized_to_float,
    unclamped,
)
from toolkit.kernels.registry import Compute, KernelNode, kernel, simple
from toolkit.kernels.types import Array

_Ranged = tuple[Array, Array, Array]


def _scalar(value: Array, what: str) -> Array:
    require(value.size == 1, f"{what} must be a scalar, got shape {shape_text(value)}")
    return F32(value.reshape(()))


def level(x: float, low: Array, high: Array, dtype: Array) -> int:
    """The number that stands for x, not clamped."""
    if low == high:
        return 0
    if not (math.isfinite(low) and math.isfinite(high)):
        raise InvalidArgumentError(f"the range of quantized numbers must be finite, not {low} to {high}")
    return int(unclamped(np.asarray(x, np.float64), low, high, dtype))


def product_range(a: Array, b: Array, a_type: Array, b_type: Array, out: Array) -> tuple[Array, Array]:
    """What the ends of the product's type stand for: one step of it is a step of a times a step of b."""
    steps: list[Array] = []
    for (low, high), dtype in ((a, a_type), (b, b_type)):
        least, most = limits(dtype)
        steps.append(F32((high - low) / F32(most - least)))
    step = F32(steps[0] * steps[1])
    least, most = limits(out)
    return np.asarray(step * F32(least), F32), np.asarray(step * F32(most), F32)


def _spans(min_x: Array, max_x: Array, min_y: Array, max_y: Array) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """Two ranges, neither of them empty."""
    for value, what in ((min_x, "min_x"), (max_x, "max_x"), (min_y, "min_y"), (max_y, "max_y")):
        require_scalar(value, what)
    rx = F32(min_x), F32(max_x)
    ry = F32(min_y), F32(max_y)
    require(rx[1] > rx[0], "max_x must be larger than min_x.")
    require(ry[1] > ry[0], "max_y must be larger than min_y.")
    return rx, ry


def _centred(x: Array, low: Array, high: Array) -> Array:
    return x.astype(np.int32) - np.int32(level(0.0, low, high, x.dtype))


@kernel("QuantizedMatMul")
def quantized_matmul(op: KernelNode) -> Compute:
    """32-bit sums of products of 8-bit numbers."""
    transpose_a, transpose_b = bool(op.attr("transpose_a")), bool(op.attr("transpose_b"))
    out_type = op.output_types[0].numpy

    def compute(a: Array, b: Array, min_a: Array, max_a: Array, min_b: Array, max_b: Array) -> _Ranged:
        require(a.ndim == 2, f"In[0] is not a matrix: {shape_text(a)}")
        require(b.ndim == 2, f"In[1] is not a matrix: {shape_text(b)}")
        ra = _scalar(min_a, "min_a"), _scalar(max_a, "max_a")
        rb = _scalar(min_b, "min_b"), _scalar(max_b, "max_b")
        low, high = product_range(ra, rb, a.dtype, b.dtype, out_type)
        left, right = _centred(a, *ra), _centred(b, *rb)
        left, right = (left.T if transpose_a else left), (right.T if transpose_b else right)
        require(
            left.shape[1] == right.shape[0], f"Matrix size-compatible: In[0]: {shape_text(a)}, In[1]: {shape_text(b)}"
        )
        return np.matmul(left, right).astype(out_type), low, high

    return compute


@kernel("QuantizedMul")
def quantized_mul(op: KernelNode) -> Compute:
    out_type = op.output_types[0].numpy
    multiply = broadcasting(np.multiply)

    def compute(x: Array, y: Array, min_x: Array, max_x: Array, min_y: Array, max_y: Array) -> _Ranged:
        rx, ry = _spans(min_x, max_x, min_y, max_y)
        low, high = product_range(rx, ry, x.dtype, y.dtype, out_type)
        return multiply(_centred(x, *rx), _centred(y, *ry)).astype(out_type), low, high

    return compute


@kernel("QuantizedAdd", "QuantizedBiasAdd")
def quantized_add(op: KernelNode) -> Compute:
    """Sums in 32 bits: both operands are brought to a range with room for 2^14 (a bias: 2^17) of the largest number."""
    out_type = op.output_types[0].numpy
    require(out_type == np.int32, f"{op.op} gives sums in 32 bits, not in {op.output_types[0]}")
    bias = op.op == "QuantizedBiasAdd"
    room = 17 if bias else 14
    add = broadcasting(np.add)

    def compute(x: Array, y: Array, min_x: Array, max_x: Array, min_y: Array, max_y: Array) -> _Ranged:
        if bias:
            require(y.ndim == 1, f"Biases must be 1D: {shape_text(y)}")
            require(
                x.ndim >= 1 and x.shape[-1] == len(y),
                "Must provide as many biases as the last dimension of the input "
                f"tensor: {shape_text(y)} vs. {shape_text(x)}",
            )
        if bias:
            rx = _scalar(min_x, "min_x"), _scalar(max_x, "max_x")
            ry = _scalar(min_y, "min_y"), _scalar(max_y, "max_y")
        else:
            rx, ry = _spans(min_x, max_x, min_y, max_y)
            require(x.size and y.size, "there must be some elements to add")
        high = F32(max(abs(rx[0]), abs(rx[1]), abs(ry[0]), abs(ry[1])) * F32(1 << room))
        scale = F32((2.0**32 - 1) / (2.0 * float(high)))
        parts: list[Array] = []
        # what the number for the lowest value is off, in float32: 256 at times, which both operands lose
        start = half_away(np.asarray(-high * scale)) + F32(2.0**31)
        for value, (a, b) in ((x, rx), (y, ry)):
            if bias:
                levels = (half_away(as_floats(value, a, b) * scale) - start).astype(np.int64)
            elif value.size == 1:
                levels = half_away(quantized_to_float(value, a, b) * scale).astype(np.int64)
            else:  # one step, rounded, serves all numbers
                ends = quantized_to_float(np.array([0, 1], value.dtype), a, b)
                zero, one = half_away(ends * scale).astype(np.int64)
                levels = value.astype(np.int64) * (one - zero) + zero
            parts.append(levels.astype(out_type))
        total = add(*parts)
        if bias:
            total += np.int32(level(0.0, -high, high, np.dtype(np.int32)))
        return total, np.asarray(-high, F32), np.asarray(high, F32)

    return compute


@kernel("QuantizedRelu", "QuantizedRelu6", "QuantizedReluX")
def quantized_relu(op: KernelNode) -> Compute:
    """Clamps at the number for 0, and at the one for the bound."""
    kind = op.op
    if op.output_types[0] is not op.input_types[0]:
        raise UnimplementedError(f"{kind} of {op.input_types[0]} gives that type, not {op.output_types[0]}")

    def compute(x: Array, *args: Array) -> _Ranged:
        low, high = _scalar(args[-2], "min_features"), _scalar(args[-1], "max_features")
        least, most = limits(x.dtype)
        floor = min(max(level(0.0, low, high, x.dtype), least), most)
        out = np.maximum(x, x.dtype.type(floor))
        if kind != "QuantizedRelu":
            bound = 6.0 if kind == "QuantizedRelu6" else float(_scalar(args[0], "max_value"))
            out = np.minimum(out, x.dtype.type(min(max(level(bound, low, high, x.dtype), least), most)))
        return out, np.asarray(low, F32), np.asarray(high, F32)

    return compute


@simple("QuantizedReshape")
def quantized_reshape(x: Array, shape: Array, low: Array, high: Array) -> _Ranged:
    _scalar(low, "input_min")
    _scalar(high, "input_max")
    return reshape(x, shape), low, high


@kernel("QuantizedConcat")
def quantized_concat(op: KernelNode) -> Compute:
    """All parts are brought to one range, which includes 0."""
    count = op.attr("N")

    def compute(axis_input: Array, *args: Array) -> _Ranged:
        values, lows, highs = args[:count], args[count : 2 * count], args[2 * count :]
        for name, ranges in (("input_mins", lows), ("input_maxes", highs)):
            for value in ranges:
                _scalar(value, name)
        low = F32(min(0.0, *(float(v.reshape(())) for v in lows)))
        high = F32(max(float(v.reshape(())) for v in highs))
        require(axis_input.size == 1, f"concat_dim must be a scalar, got shape {shape_text(axis_input)}")
        axis = wrap_axis(int(axis_input.reshape(())), values[0].ndim, "concat_dim")
        parts: list[Array] = []
        for value, a, b in zip(values, lows, highs, strict=True):
            require(value.ndim == values[0].ndim, "Ranks of all input tensors should match")
            a, b = F32(a.reshape(())), F32(b.reshape(()))
            same = a == low and b == high
            parts.append(value if same else float_to_quantized(quantized_to_float(value, a, b), low, high, value.dtype))
        return np.concatenate(parts, axis=axis), np.asarray(low, F32), np.asarray(high, F32)

    return compute


@kernel("RequantizationRangePerChannel")
def requantization_range_per_channel(op: KernelNode) -> Compute:
    """The range the numbers of all channels use, symmetric unless none is negative, and clipped."""
    most = op.attr("clip_value_max")

    def compute(x: Array, lows: Array, highs: Array) -> tuple[Array, Array]:
        require(x.ndim == 4, f"input must be in NHWC format, got shape {shape_text(x)}")
        depth = x.shape[-1]
        require(lows.shape == highs.shape == (depth,), f"min and max must have {depth} elements, one a channel")
        require(x.size > 0, "input must not be empty")
        rows = x.reshape(-1, depth).astype(np.float32)
        steps = np.maximum(np.abs(lows), np.abs(highs)) / F32(2**31)
        largest = max(float((-rows.min(axis=0) * steps).max()), float((rows.max(axis=0) * steps).max()))
        high = F32(min(largest, most))
        low = F32(0) if rows.min() >= 0 else -high
        return np.asarray(low, F32), np.asarray(high, F32)

    return compute


@kernel("RequantizePerChannel")
def requantize_per_channel(op: KernelNode) -> Compute:
    dtype = op.output_types[0].numpy

    def compute(x: Array, lows: Array, highs: Array, out_low: Array, out_high: Array) -> _Ranged:
        require(x.ndim == 4, f"RequantizePerChannel takes 4-D tensors only, got shape {shape_text(x)}")
        low, high = _scalar(out_low, "requested_output_min"), _scalar(out_high, "requested_output_max")
        depth = x.shape[-1]
        require(
            lows.size in (1, depth) and highs.size in (1, depth),
            f"min and max must have {depth} elements, one a channel",
        )
        spread = np.maximum(np.abs(lows).reshape(-1), np.abs(highs).reshape(-1))
        wanted = F32(max(abs(float(low)), abs(float(high))))
        scale = spread.astype(np.float64) / wanted * (255 if low >= 0 else 127) / 2**31
        least, most = limits(dtype)
        out = np.clip(np.rint(x.astype(np.float64) * scale), least, most)
        return out.astype(dtype), np.asarray(low, F32), np.asarray(high, F32)

    return compute
