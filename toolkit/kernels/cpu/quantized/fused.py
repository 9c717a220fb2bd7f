"""Convolutions and matrix products of 8-bit numbers fused with what follows them: bias, sum, relu, requantization.

The meaning is that of oneDNN, which alone runs these ops in TensorFlow: filters are symmetric around 0, inputs are
too (an unsigned one from 0 on) unless the op says MIN_FIRST, and everything behind the 32-bit sums is computed on
the real values, in float32. What is padded stands for 0.
"""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from toolkit.graph import dtypes
from toolkit.graph.dtypes import DType
from toolkit.graph.shapes.quantized import FUSED_CONVOLUTIONS
from toolkit.kernels.cpu.common import np, require, shape_text
from toolkit.kernels.cpu.nn import conv_math as nn_conv_math
from toolkit.kernels.cpu.nn.window import Layout, WindowSpec, window_spec
from toolkit.kernels.cpu.quantized.quantize import F32, limits
from toolkit.kernels.registry import Compute, KernelNode, kernel
from toolkit.kernels.types import Array

_qint8, _quint8, _qint32 = (dtypes.from_name(name) for name in ("qint8", "quint8", "qint32"))
_SMALL: list[DType] = [_qint8, _quint8]
FUSED_PRODUCTS = (
    "QuantizedMatMulWithBias", "QuantizedMatMulWithBiasAndDequantize", "QuantizedMatMulWithBiasAndRelu",
    "QuantizedMatMulWithBiasAndReluAndRequantize", "QuantizedMatMulWithBiasAndRequantize",
)  # fmt: skip


def _scalar(value: Array, what: str) -> Any:
    require(np.ndim(value) == 0, f"`{what}` must be rank 0 but is rank {np.ndim(value)}")
    return F32(value)


def farthest(low: Array, high: Array) -> Array:
    """The larger distance from 0."""
    return np.maximum(np.abs(low), np.abs(high)).astype(F32)


def largest(dtype: Any) -> Any:
    """The number that stands for the end of a symmetric range."""
    return F32(limits(dtype)[1])


def sum_range(low: Array, high: Array, dtype: Any, w_low: Array, w_high: Array) -> tuple[Array, Array]:
    """What the ends of 32-bit sums stand for: one step is a step of the input times one of the filter."""
    least, most = limits(dtype)
    levels = F32(most - (least if least == 0 else -most))
    step = ((high - low) / levels * ((w_high - w_low) / F32(254))).astype(F32)
    return np.asarray(step * F32(-(2.0**31)), F32), np.asarray(step * F32(2.0**31), F32)


class QuantizedEpilogue:
    """What an op does with its sums, told by its name.

    Attributes:
        bias, summand, relu, requantize, dequantize: whether each follows, in this order.
    """

    def __init__(self, op: KernelNode):
        name = op.op
        self.bias, self.summand, self.relu = "WithBias" in name, "Sum" in name, "Relu" in name
        self.requantize, self.dequantize = "Requantize" in name, "Dequantize" in name
        self.dtype = op.output_types[0].numpy

    def finish(self, sums: Array, step: Array, bias: Array | None, summand: Array | None, ends: Any) -> Array:
        """The result of real values sums * step + bias + summand, in the number's type; `ends` its range's."""
        y = sums.astype(F32) * step
        if bias is not None:
            y = y + (bias.astype(F32) * step if bias.dtype.kind == "i" else bias)
        if summand is not None:
            y = y + summand
        if self.relu:
            y = np.maximum(y, 0)
        if self.dequantize:
            return y.astype(F32)
        unit = farthest(*ends) / largest(self.dtype) if self.requantize else step
        least, most = limits(self.dtype)
        return np.clip(np.rint(y * (F32(1) / unit)), least, most).astype(self.dtype)


def fused_windows(op: KernelNode) -> WindowSpec:
    """The windows of a fused convolution."""
    spec = window_spec(op, Layout(False))
    given: list[int] = op.attr("padding_list") if "padding_list" in op.node.op_def.attrs else []
    if given:  # instead of what `padding` says
        require(len(given) == 8 and min(given) >= 0, f"padding_list must have 8 entries, none negative: {given}")
        spec = replace(spec, padding="EXPLICIT", explicit=((given[2], given[3]), (given[4], given[5])))
    return spec


def _convolve(op: KernelNode) -> Compute:
    """Sums of products, float64: exact, as they stay far below 2**53."""
    spec = fused_windows(op)
    depthwise = "Depthwise" in op.op
    forward = nn_conv_math.depthwise_forward if depthwise else nn_conv_math.forward

    def compute(x: Array, w: Array) -> Array:
        require(x.ndim == 4, f"input must be 4-dimensional: {shape_text(x)}")
        require(w.ndim == 4, f"filter must be 4-dimensional: {shape_text(w)}")
        require(x.shape[3] == w.shape[2], f"input and filter must have the same depth: {x.shape[3]} vs {w.shape[2]}")
        return forward(x.astype(np.float64), w.astype(np.float64), spec.over(x.shape[1:-1], w.shape[:2]))

    return compute


@kernel(*FUSED_CONVOLUTIONS, types={"Tinput": _SMALL, "Tfilter": [_qint8]})
def fused_convolution(op: KernelNode) -> Compute:
    epilogue, convolve = QuantizedEpilogue(op), _convolve(op)

    def compute(x: Array, w: Array, *rest: Array) -> tuple[Array, Array, Array]:
        inputs: Iterator[Array] = iter(rest)
        bias = next(inputs) if epilogue.bias else None
        low, high = _scalar(next(inputs), "min_input"), _scalar(next(inputs), "max_input")
        w_low, w_high = next(inputs), next(inputs)
        require(
            w_low.shape == w_high.shape and w_low.size > 0,
            "`min_filter` and `max_filter` must have the same shape and at least one element.",
        )
        ends = [_scalar(next(inputs), f"{e}_freezed_output") for e in ("min", "max")] if epilogue.requantize else None
        summand = next(inputs) if epilogue.summand else None
        if summand is not None and summand.dtype != F32:
            scale = farthest(next(inputs), next(inputs)) / largest(summand.dtype)
            summand = summand * scale.astype(F32)
        step = farthest(low, high) / largest(x.dtype) * (farthest(w_low, w_high) / F32(127))
        y = epilogue.finish(convolve(x, w), np.asarray(step), bias, summand, ends)
        if ends is not None:
            return y, np.asarray(ends[0]), np.asarray(ends[1])
        return y, *sum_range(low, high, x.dtype, w_low, w_high)

    return compute


@kernel(*FUSED_PRODUCTS, types={"T1": [_quint8], "T2": [_qint8]})
def fused_matmul(op: KernelNode) -> Compute:
    """In MIN_FIRST mode the lowest number of the left side stands for the lower end of its range."""
    epilogue, min_first = QuantizedEpilogue(op), op.text("input_quant_mode") == "MIN_FIRST"
    turned_a, turned_b = op.attr("transpose_a"), op.attr("transpose_b")

    def compute(a: Array, b: Array, bias: Array, *ranges: Array) -> Any:
        require(a.ndim == 2, f"In[0] is not a matrix: {shape_text(a)}")
        require(b.ndim == 2, f"In[1] is not a matrix: {shape_text(b)}")
        names = ("min_a", "max_a", "min_b", "max_b", "min_freezed_output", "max_freezed_output")
        low, high, b_low, b_high, *ends = (_scalar(v, name) for v, name in zip(ranges, names, strict=False))
        left, right = (a.T if turned_a else a), (b.T if turned_b else b)
        require(
            left.shape[1] == right.shape[0], f"Matrix size-incompatible: In[0]: {shape_text(a)}, In[1]: {shape_text(b)}"
        )
        right = right.astype(np.float64)
        sums = left.astype(np.float64) @ right
        a_step = (high - low if min_first else farthest(low, high)) / F32(255)
        if min_first and bias.dtype.kind == "f":  # one of whole numbers has this in it already
            sums = sums + right.sum(axis=0) * (float(low) / float(a_step))
        step = np.asarray(a_step * (farthest(b_low, b_high) / F32(127)))
        y = epilogue.finish(sums, step, bias, None, ends)
        if epilogue.dequantize:
            return y
        if epilogue.requantize:
            return y, np.asarray(ends[0]), np.asarray(ends[1])
        return y, *sum_range(low, high, a.dtype, b_low, b_high)

    return compute
