"""Quantized numbers: from and to floats, ranges, and the simulated (fake) quantization used in training.

A quantized tensor is an array of plain integers with the two float32 numbers that its lowest and highest stand for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from toolkit.errors import InvalidArgumentError
from toolkit.kernels.cpu.common import np, require, require_scalar, shape_text, wide
from toolkit.kernels.registry import Compute, KernelNode, kernel
from toolkit.kernels.types import Array

F32 = np.float32


def limits(dtype: Array) -> tuple[int, int]:
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


def half_away(x: Array) -> Array:
    """Round halves away from zero."""
    return np.copysign(np.floor(np.abs(x) + x.dtype.type(0.5)), x)


def _scalars(*values: Array) -> list[Array]:
    for value in values:
        require(value.size == 1, f"the range must be given by scalars, got shape {shape_text(value)}")
    return [F32(value.reshape(())) for value in values]


def per_channel(values: Array, rank: int, axis: int) -> Array:
    """A vector along one axis of a tensor."""
    shape = [1] * rank
    shape[axis] = -1
    return values.reshape(shape)


# -- QuantizeV2 and Dequantize ---------------------------------------------------------------------------


@kernel("QuantizeV2")
def quantize_v2(op: KernelNode) -> Compute:
    mode, to_even = op.text("mode"), op.text("round_mode") == "HALF_TO_EVEN"
    narrow, axis = bool(op.attr("narrow_range")), op.attr("axis")
    least_range = F32(op.attr("ensure_minimum_range"))
    dtype = op.output_types[0].numpy
    if to_even and mode != "SCALED":
        raise InvalidArgumentError("Round mode 'HALF_TO_EVEN' only supported for mode 'SCALED'", node=op.name)
    low, high = limits(dtype)

    def compute(x: Array, low_input: Array, high_input: Array) -> tuple[Array, Array, Array]:
        if axis == -1:
            ranges = _scalars(low_input, high_input)
        else:
            require(axis < x.ndim, f"Axis must be less than input dimension({x.ndim})")
            require(
                low_input.shape == high_input.shape == (x.shape[axis],),
                f"min_range and max_range must be vectors of {x.shape[axis]} elements",
            )
            ranges = [low_input, high_input]
        given_low, given_high = ranges
        require((given_high >= given_low).all(), "input_max_range must be larger than input_min_range.")
        bottom, top = range_around(given_low, given_high, least_range)
        a, b = (bottom, top) if axis == -1 else (per_channel(bottom, x.ndim, axis), per_channel(top, x.ndim, axis))
        if mode == "SCALED":
            out, a, b = _scaled(x, a, b, low + narrow, high, to_even)
        elif mode == "MIN_COMBINED":
            scale = F32(high - low) / (b - a)
            moved = (np.clip(x, a, b) - a) * scale
            out = half_away(moved - F32(half_range(dtype))) if low else np.floor(moved + F32(0.5))
        else:
            out = min_first(x, a, b, dtype)
        out = np.clip(out.astype(np.float64), low, high).astype(dtype)
        return out, np.asarray(a, F32).reshape(given_low.shape), np.asarray(b, F32).reshape(given_low.shape)

    return compute


def range_around(low: Array, high: Array, least_range: Array) -> tuple[Array, Array]:
    """The range that QuantizeV2 takes for one that was given: 0 lies in it, and it is not too small.

    Args:
        least_range: how large it is at least, against its largest end (from 1 on); float32.
    """
    bottom = np.minimum(F32(0), low)
    room = np.maximum(F32(1), np.maximum(np.abs(low), np.abs(high))) * least_range
    return bottom, np.maximum(F32(0), np.maximum(high, bottom + room))


def half_range(dtype: Array) -> float:
    low, high = limits(dtype)
    return (high - low + 1) / 2 if low else 0.0


def _scaled(x: Array, a: Array, b: Array, low: int, high: int, to_even: bool) -> tuple[Array, Array, Array]:
    """Symmetric around zero: the side that needs it sets the scale."""
    from_low = np.where(low * a > 0, F32(low) / np.where(a == 0, F32(1), a), np.finfo(F32).max)
    from_high = np.where(high * b > 0, F32(high) / np.where(b == 0, F32(1), b), np.finfo(F32).max)
    scale = np.minimum(from_low, from_high).astype(F32)
    a, b = F32(low) / scale, F32(high) / scale
    scaled = np.clip(x, a, b) * scale
    return (np.rint(scaled) if to_even else half_away(scaled)), a, b


def min_first(x: Array, a: Array, b: Array, dtype: Array) -> Array:
    """The lowest number stands for the minimum, which is moved so that 0 is exact."""
    low, high = limits(dtype)
    steps = float(high - low)
    scale = np.float64(steps) / (np.float64(b) - np.float64(a))
    return half_away(x.astype(np.float64) * scale) - np.rint(np.float64(a) * scale) + low


@kernel("Dequantize")
def dequantize(op: KernelNode) -> Compute:
    mode, narrow, axis = op.text("mode"), bool(op.attr("narrow_range")), op.attr("axis")
    source, dtype = op.input_types[0].numpy, op.output_types[0].numpy
    low, high = limits(source)
    if op.output_types[0].name != "float32" and mode != "SCALED" and op.output_types[0].name != "bfloat16":
        raise InvalidArgumentError(f"When output type is not float32, mode must be 'SCALED', but received '{mode}'")

    def compute(x: Array, low_input: Array, high_input: Array) -> Array:
        if axis == -1:
            a, b = _scalars(low_input, high_input)
        else:
            require(axis < x.ndim, f"Axis must be less than input dimension({x.ndim})")
            require(
                low_input.size == high_input.size == x.shape[axis],
                f"min_range and max_range must have {x.shape[axis]} elements, one a slice of the axis {axis}",
            )
            a, b = per_channel(low_input, x.ndim, axis), per_channel(high_input, x.ndim, axis)
        if mode == "MIN_COMBINED":
            scale = (b - a) / F32(high - low)
            out = (x.astype(F32) + F32(half_range(source))) * scale + a
        elif mode == "SCALED":
            scale = np.maximum(a / F32(low + narrow), b / F32(high)) if low else b / F32(high)
            out = x.astype(F32) * scale
        else:
            out = as_floats(x, a, b) if axis == -1 else quantized_to_float(x, a, b)
        return np.asarray(out, F32).astype(dtype)

    return compute


def as_floats(x: Array, low: Array, high: Array) -> Array:
    """The MIN_FIRST reading of Dequantize: float32 arithmetic, where `quantized_to_float` takes float64."""
    least, most = limits(x.dtype)
    step = F32(np.float64(high - low) / (most - least))
    start = F32(half_away(np.asarray(low / step))) * step if step else low
    return F32(start - F32(least) * step) + x.astype(F32) * step


def quantized_to_float(x: Array, a: Array, b: Array) -> Array:
    """The MIN_FIRST reading: each step is the range over 2^bits - 1, and 0 is one of the numbers."""
    low, high = limits(x.dtype)
    count = high - low + 1
    scale = _whole_range(a, b, count) / count
    if np.all(scale == 0):
        return np.full(x.shape, a, F32)
    start = half_away(np.asarray(a / F32(scale))) * F32(scale)
    return (np.float64(start) + (x.astype(np.float64) - low) * scale).astype(F32)


def _whole_range(a: Array, b: Array, count: int) -> Array:
    """Of so many steps, of which all but one lie between a and b; rounded where TensorFlow rounds."""
    return np.float64(F32(b) - F32(a)) * (count / (count - 1.0))


def float_to_quantized(x: Array, a: Array, b: Array, dtype: Array) -> Array:
    """The inverse of `quantized_to_float`, saturating."""
    low, high = limits(dtype)
    if a == b:
        return np.zeros(x.shape, dtype)
    return np.clip(unclamped(x.astype(np.float64), a, b, dtype), low, high).astype(dtype)


def unclamped(x: Array, a: Array, b: Array, dtype: Array) -> Array:
    """float64: the whole numbers that stand for x, even where the type ends before."""
    low, high = limits(dtype)
    count = high - low + 1
    scale = count / _whole_range(a, b, count)
    return half_away(x * scale) - half_away(np.asarray(np.float64(a) * scale)) + low


# -- ranges ----------------------------------------------------------------------------------------------


def _used_range(x: Array, a: Array, b: Array) -> tuple[Array, Array]:
    """The floats that the smallest and the largest element stand for, 0 included."""
    found = (x.min(), x.max()) if x.size else limits(x.dtype)[::-1]  # of nothing, the largest is the least
    ends = quantized_to_float(np.array(found, x.dtype), a, b)
    return ends[0] if ends[0] < 0 else F32(0), ends[1]  # NaN is no number below 0


@kernel("RequantizationRange")
def requantization_range(op: KernelNode) -> Compute:
    def compute(x: Array, low: Array, high: Array) -> tuple[Array, Array]:
        a, b = _scalars(low, high)
        first, last = _used_range(x, a, b)
        return np.asarray(first, F32), np.asarray(last, F32)

    return compute


@kernel("Requantize", "QuantizeDownAndShrinkRange")
def requantize(op: KernelNode) -> Compute:
    """To a narrower type, over a range that is asked for or that the numbers use."""
    dtype = op.output_types[0].numpy
    shrink = op.op == "QuantizeDownAndShrinkRange"

    def compute(x: Array, low: Array, high: Array, *wanted: Array) -> tuple[Array, Array, Array]:
        a, b = _scalars(low, high)
        if shrink:
            first, last = _used_range(x, a, b)
        else:
            first, last = _scalars(*wanted)
            require(first <= 0, f"requested_output_min must be <= 0, but got {first}")
            require(last >= first, f"requested_output_max must be >= requested_output_min, but got {last} and {first}")
        if x.dtype == np.int32 and dtype == np.uint8:
            out = _rescale_fixed(x, a, b, first, last)
        else:
            out = float_to_quantized(quantized_to_float(x, a, b), first, last, dtype)
        return out, np.asarray(first, F32), np.asarray(last, F32)

    return compute


def _rescale_fixed(x: Array, a: Array, b: Array, first: Array, last: Array) -> Array:
    """32-bit numbers over [a, b] as 8-bit ones over [first, last], in fixed point with 16 bits after the point."""
    span = float(last - first)
    if span == 0:
        return np.zeros(x.shape, np.uint8)
    one = 1 << 16
    scale = _to_int64(255.0 * one * float(b - a) / span)
    middle = _to_int64(float((a + b) / F32(2) * F32(255.0 / span) * F32(one)))
    offset = _to_int64(float(np.rint(one * (float(first) * 255.0) / span)))
    level = x.reshape(-1) * np.int64(scale)  # an array, whose numbers wrap around, as the sum of the terms does
    level >>= 32
    level += _wrapped(middle - offset + one // 2)
    level >>= 16
    return np.clip(level, 0, 255, out=level).astype(np.uint8).reshape(x.shape)


def _to_int64(value: float) -> int:
    """A float cut to 64 bits; what does not fit, NaN too, is the lowest number, as the processor has it."""
    return int(value) if -(2.0**63) <= value < 2.0**63 else -(1 << 63)


def _wrapped(number: int) -> int:
    """What is left of a number in 64 bits with a sign."""
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


# -- quantize and dequantize in one step -----------------------------------------------------------------


def round_limits(bits: int, signed: bool, narrow: bool) -> tuple[int, int]:
    """The lowest and the highest of the integers that numbers are rounded to."""
    if not signed:
        return 0, (1 << bits) - 1
    return -(1 << (bits - 1)) + narrow, (1 << (bits - 1)) - 1


@dataclass(frozen=True, slots=True)
class Rounding:
    """The attributes of a node that rounds to a few bits and back.

    Attributes:
        signed, narrow: which integers there are.
        is_given: the range is; else it is that of the numbers.
        bits: None where they are an argument.
        axis: of channels that have ranges of their own; -1 for none.
        half_up: halves go up, not to the even number.
        fixed: the range, where the attributes have it.
        is_loose: a vector of one is taken for a scalar.
    """

    signed: bool
    narrow: bool
    is_given: bool
    bits: int | None
    axis: int
    half_up: bool
    fixed: tuple[float, float] | None
    is_loose: bool

    def limits(self, bits: int) -> tuple[int, int]:
        """The lowest and the highest of the integers."""
        return round_limits(bits, self.signed, self.narrow)


def rounding_of(op: KernelNode) -> Rounding:
    """The attributes of a node."""
    first, third = op.op == "QuantizeAndDequantize", op.op == "QuantizeAndDequantizeV3"
    return Rounding(
        signed=bool(op.attr("signed_input")),
        narrow=False if first else bool(op.attr("narrow_range")),
        is_given=bool(op.attr("range_given")),
        bits=None if third else op.attr("num_bits"),
        axis=-1 if first else op.attr("axis"),
        half_up=not first and not third and op.text("round_mode") == "HALF_UP",
        fixed=(op.attr("input_min"), op.attr("input_max")) if first else None,
        is_loose=third,
    )


def rounding_bits(rounding: Rounding, arguments: Sequence[Array]) -> int:
    """How many bits numbers are rounded to; `arguments` are those behind the numbers.

    Raises:
        InvalidArgumentError: there are no so many.
    """
    bits = rounding.bits
    if bits is None:
        require_scalar(arguments[2], "num_bits")
        bits = int(arguments[2])
    signed = rounding.signed
    require(
        0 < bits < (63 if signed else 64) and (bits > 1 or not signed),
        f"num_bits is out of range: {bits} with signed_input {signed}",
    )
    return bits


def range_given(rounding: Rounding, x: Any, arguments: Sequence[Array]) -> tuple[Array, Array] | None:
    """The range of all numbers as scalars, or of each channel as vectors; None where it is that of the numbers.

    Raises:
        InvalidArgumentError: there is no such axis, or the range is none.
    """
    axis = rounding.axis
    if axis != -1:
        require(
            0 <= axis < x.ndim,
            f"Axis requested is larger than input dimensions. Axis: {axis} Input Dimensions: {x.ndim}",
        )
    if not rounding.is_given:
        return None
    kind = np.float32 if x.dtype.itemsize < 4 else x.dtype.type
    if rounding.fixed is not None:
        a, b = (np.asarray(kind(end)) for end in rounding.fixed)
    else:
        a, b = wide(arguments[0]), wide(arguments[1])
    if axis != -1:
        require(
            a.shape == b.shape == (x.shape[axis],),
            f"input_min and input_max must be vectors of {x.shape[axis]} elements",
        )
    elif rounding.fixed is None:
        require(
            a.size == b.size == 1 and (a.ndim == 0 or rounding.is_loose),
            f"input_min and input_max must be scalars, got {shape_text(a)} and {shape_text(b)}",
        )
        a, b = a.reshape(()), b.reshape(())
    require((a <= b).all(), f"Invalid range: input_min {a} > input_max {b}")
    return a, b


def _round_trip(
    x: Array, a: Array, b: Array, bits: int, *, signed: bool, narrow: bool, clamp: bool, half_up: bool
) -> Array:
    dtype = x.dtype
    low, high = round_limits(bits, signed, narrow)
    kind = dtype.type
    from_low = np.where(low * a > 0, kind(low) / np.where(a == 0, kind(1), a), np.finfo(dtype).max)
    from_high = np.where(high * b > 0, kind(high) / np.where(b == 0, kind(1), b), np.finfo(dtype).max)
    by_low = from_low < from_high
    scale = np.where(by_low, from_low, from_high).astype(dtype)
    inverse = np.where(by_low, a / kind(low or 1), b / kind(high)).astype(dtype)
    bottom, top = np.where(by_low, a, kind(low) * inverse), np.where(by_low, kind(high) * inverse, b)
    values = np.clip(x, bottom, top) if clamp else x
    scaled = values * scale
    rounded = np.floor(scaled + kind(0.5)) if half_up else np.rint(scaled)
    return (rounded * inverse).astype(dtype)


@kernel("QuantizeAndDequantize", "QuantizeAndDequantizeV2", "QuantizeAndDequantizeV3", "QuantizeAndDequantizeV4")
def quantize_and_dequantize(op: KernelNode) -> Compute:
    rounding = rounding_of(op)
    axis = rounding.axis

    def compute(x: Array, *args: Array) -> Array:
        bits = rounding_bits(rounding, args)
        values, found = wide(x), range_given(rounding, x, args)
        if found is not None:
            a, b = found if axis == -1 else (per_channel(end, x.ndim, axis) for end in found)
        elif not x.size:  # nothing to find a range of
            return x
        else:
            axes = None if axis == -1 else tuple(d for d in range(x.ndim) if d != axis)
            a, b = values.min(axis=axes, keepdims=axis != -1), values.max(axis=axes, keepdims=axis != -1)
        return _round_trip(
            values, np.asarray(a, values.dtype), np.asarray(b, values.dtype), bits,
            signed=rounding.signed, narrow=rounding.narrow, clamp=rounding.is_given, half_up=rounding.half_up,
        ).astype(x.dtype)  # fmt: skip

    return compute


def check_range_gradient(dy: Any, x: Any, low: Array, high: Array, axis: int) -> None:
    """Refuse gradients that are none of an input, or ranges that are none of its channels.

    Raises:
        InvalidArgumentError: the shapes say so, or there is no such axis.
    """
    require(dy.shape == x.shape, f"gradient and input must be the same size: {shape_text(dy)} vs. {shape_text(x)}")
    if axis == -1:
        require_scalar(low, "input_min")
        require_scalar(high, "input_max")
        return
    require(0 <= axis < x.ndim, f"Axis should be -1 or 0 or a positive value less than {x.ndim}, got {axis}")
    require(low.shape == high.shape == (x.shape[axis],), f"input_min and input_max must have {x.shape[axis]} elements")


@kernel("QuantizeAndDequantizeV4Grad")
def quantize_and_dequantize_grad(op: KernelNode) -> Compute:
    """Passes the gradient where the input lay inside the range."""
    axis = op.attr("axis")

    def compute(dy: Array, x: Array, low: Array, high: Array) -> tuple[Array, Array, Array]:
        check_range_gradient(dy, x, low, high, axis)
        a, b = low, high
        if axis != -1:
            a, b = per_channel(low, x.ndim, axis), per_channel(high, x.ndim, axis)
        inside = (x >= a) & (x <= b)
        return np.where(inside, dy, np.zeros((), dy.dtype)), np.zeros_like(low), np.zeros_like(high)

    return compute


# -- fake quantization -----------------------------------------------------------------------------------


def _nudge(a: Array, b: Array, bits: int, narrow: bool) -> tuple[Array, Array, Array]:
    """The range moved so that 0 falls on a step: (low, high, step), in float32."""
    first, last = F32(1 if narrow else 0), F32((1 << bits) - 1)
    step = (b - a) / (last - first)
    zero = first - a / step
    place = np.where(zero < first, first, np.where(zero > last, last, half_away(np.asarray(zero, F32)))).astype(F32)
    return (first - place) * step, (last - place) * step, step


def fake_quant_steps(a: Array, b: Array, bits: int, narrow: bool) -> tuple[Array, Array, Array, Array, Array, Array]:
    """Of a range: low, high, step, 1 / step, the number of the step that 0 is, and whether the range is empty."""
    low, high, step = _nudge(a, b, bits, narrow)
    inverse = F32(1) / step
    return low, high, step, inverse, np.floor(-low * inverse + F32(0.5)), (a == 0) & (b == 0)


def _fake(x: Array, a: Array, b: Array, bits: int, narrow: bool) -> Array:
    low, high, step, inverse, zero, is_empty = fake_quant_steps(a, b, bits, narrow)
    level = np.floor((np.clip(x, low, high) - low) * inverse - zero + F32(0.5))
    return np.where(is_empty, F32(0), level * step).astype(F32)


def _fake_grad(dy: Array, x: Array, a: Array, b: Array, bits: int, narrow: bool) -> tuple[Array, Array, Array]:
    """dy where x is inside, below, above; a range of nothing passes all."""
    low, high, _ = _nudge(a, b, bits, narrow)
    empty = (a == 0) & (b == 0)
    inside, below, above = (x >= low) & (x <= high), x < low, x > high
    zero = F32(0)
    return (
        np.where(empty | inside, dy, zero),
        np.where(~empty & below, dy, zero),
        np.where(~empty & above, dy, zero),
    )


def fake_quant_attributes(op: KernelNode) -> tuple[int, bool]:
    """How many bits, and whether the lowest number is left out.

    Raises:
        InvalidArgumentError: there are no so many bits.
    """
    bits = op.attr("num_bits")
    require(2 <= bits <= 16, f"num_bits must be between 2 and 16, inclusive, got {bits}")
    return bits, bool(op.attr("narrow_range"))


@kernel("FakeQuantWithMinMaxArgs", "FakeQuantWithMinMaxArgsGradient")
def fake_quant_args(op: KernelNode) -> Compute:
    bits, narrow = fake_quant_attributes(op)
    a, b = F32(op.attr("min")), F32(op.attr("max"))
    require(a < b, f"min has to be smaller than max, was: {a} >= {b}")

    def forward(x: Array) -> Array:
        return _fake(x, a, b, bits, narrow)

    def backward(dy: Array, x: Array) -> Array:
        require(dy.shape == x.shape, f"gradient and input must be the same size: {shape_text(dy)} vs. {shape_text(x)}")
        return _fake_grad(dy, x, a, b, bits, narrow)[0]

    return backward if op.op.endswith("Gradient") else forward


def fake_quant_channels(x: Any, a: Array, b: Array, by_channel: bool) -> None:
    """Refuse ranges that are not one for all, or one for each channel.

    Raises:
        InvalidArgumentError: they are not.
    """
    if not by_channel:
        require(a.ndim == 0, f"`min` must be rank 0 but is rank {a.ndim}")
        require(b.ndim == 0, f"`max` must be rank 0 but is rank {b.ndim}")
        return
    require(x.ndim >= 1, "the input must have at least one dimension")
    for value, name in ((a, "min"), (b, "max")):
        require(value.ndim == 1, f"`{name}` must be rank 1 but is rank {value.ndim}")
        require(len(value) == x.shape[-1], f"{name} has incorrect size, expected {x.shape[-1]} was {len(value)}")


@kernel("FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel")
def fake_quant_vars(op: KernelNode) -> Compute:
    bits, narrow = fake_quant_attributes(op)
    by_channel = op.op.endswith("PerChannel")

    def compute(x: Array, a: Array, b: Array) -> Array:
        fake_quant_channels(x, a, b, by_channel)
        return _fake(x, a, b, bits, narrow)

    return compute


@kernel("FakeQuantWithMinMaxVarsGradient", "FakeQuantWithMinMaxVarsPerChannelGradient")
def fake_quant_vars_grad(op: KernelNode) -> Compute:
    bits, narrow = fake_quant_attributes(op)
    by_channel = "PerChannel" in op.op

    def compute(dy: Array, x: Array, a: Array, b: Array) -> tuple[Array, Array, Array]:
        require(dy.shape == x.shape, f"gradient and input must be the same size: {shape_text(dy)} vs. {shape_text(x)}")
        fake_quant_channels(x, a, b, by_channel)
        inside, below, above = _fake_grad(dy, x, a, b, bits, narrow)
        axes = tuple(range(x.ndim - 1)) if by_channel else None
        return inside, np.asarray(below.sum(axis=axes, dtype=F32)), np.asarray(above.sum(axis=axes, dtype=F32))

    return compute
