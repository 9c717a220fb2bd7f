"""Concatenation and batch normalization of quantized numbers."""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

from toolkit.graph import dtypes
from toolkit.kernels.cpu.common import np, require, shape_text, wrap_axis
from toolkit.kernels.cpu.quantized.quantize import (
    F32,
    as_floats,
    float_to_quantized,
    half_away,
    limits,
    quantized_to_float,
)
from toolkit.kernels.registry import Compute, KernelNode, kernel
from toolkit.kernels.types import Array

_qint8, _quint8, _qint32 = (dtypes.from_name(name) for name in ("qint8", "quint8", "qint32"))
_Ranged = tuple[Array, Array, Array]


def _as_numbers(x: Array, low: Any, high: Any, dtype: Any) -> Array:
    """The inverse, saturating."""
    least, most = limits(dtype)
    scale = F32((most - least) / np.float64(high - low)) if high != low else F32(0)
    levels = half_away(x * scale) - half_away(np.asarray(F32(low * scale))) + F32(least)
    return np.clip(levels, least, most).astype(dtype)


@kernel("QuantizedConcatV2", types={"T": [_qint8, _quint8]})
def quantized_concat_v2(op: KernelNode) -> Compute:
    """All parts are brought to one range: symmetric when signed, from 0 on when not."""
    count, signed = op.attr("N"), op.attr("T") is _qint8

    def compute(*inputs: Array) -> _Ranged:
        values, axis_input = inputs[:count], inputs[count]
        lows, highs = (
            [F32(np.reshape(v, ())) for v in part] for part in (inputs[count + 1 :][:count], inputs[-count:])
        )
        require(np.ndim(axis_input) == 0, f"axis must be a scalar, got shape {shape_text(axis_input)}")
        axis = wrap_axis(int(axis_input), values[0].ndim)
        high = F32(max(abs(v) for v in (*lows, *highs)) if signed else max(highs))
        low = F32(-high if signed else 0)
        parts: list[Array] = []
        for value, a, b in zip(values, lows, highs, strict=True):
            require(value.ndim == values[0].ndim, "Ranks of all input tensors should match")
            same = a == low and b == high
            parts.append(value if same else _as_numbers(as_floats(value, a, b), low, high, value.dtype))
        return np.concatenate(parts, axis=axis), np.asarray(low), np.asarray(high)

    return compute


#: the range of results: whole numbers of 32 bits with ten bits behind the point
_NORMAL_END = F32(1 << 20)


@kernel("QuantizedBatchNormWithGlobalNormalization", types={"Tinput": [_quint8], "out_type": [_qint32]})
def quantized_batch_norm(op: KernelNode) -> Compute:
    """In fixed point: (x * scale) / one + offset, with a scale and an offset for each channel."""
    epsilon, scaled = F32(op.attr("variance_epsilon")), op.attr("scale_after_normalization")

    def fixed(values: Array) -> Array:
        return float_to_quantized(values, -_NORMAL_END, _NORMAL_END, np.dtype(np.int32)).astype(np.int64)

    def compute(*inputs: Array) -> _Ranged:
        x, *statistics = (inputs[i] for i in range(0, 15, 3))
        require(x.ndim == 4, f"input must be 4-dimensional{shape_text(x)}")
        for what, value in zip(("mean", "var", "beta", "gamma"), statistics, strict=True):
            require(value.ndim == 1, f"{what} must be 1-dimensional{shape_text(value)}")
        ranges = [(F32(np.reshape(inputs[i + 1], ())), F32(np.reshape(inputs[i + 2], ()))) for i in range(0, 15, 3)]
        floats = [quantized_to_float(v, *ends) for v, ends in zip((x, *statistics), ranges, strict=True)]
        values, mean, variance, beta, gamma = floats
        scale = F32(1) / np.sqrt(variance + epsilon)
        scale = scale * gamma if scaled else scale
        offset = -mean * scale + beta
        product = (fixed(values) * fixed(scale)).astype(np.int32).astype(np.int64)  # 32 bits, wrapping
        one = int(fixed(np.asarray(F32(1))))
        out = np.sign(product) * (np.abs(product) // one) + fixed(offset)
        return out.astype(np.int32), np.asarray(-_NORMAL_END), np.asarray(_NORMAL_END)

    return compute
