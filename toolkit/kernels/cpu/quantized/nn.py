"""Convolution, pooling, normalization and resizing of quantized numbers.

The arithmetic is that of TensorFlow's own kernels (MIN_FIRST: the lowest number stands for the lowest value). The
fused ops, which oneDNN runs, read ranges in another way: they are in `quantized_fused`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from toolkit.graph import dtypes
from toolkit.graph.dtypes import DType
from toolkit.kernels.cpu.common import require, shape_text
from toolkit.kernels.cpu.images.resize import Grid, bilinear
from toolkit.kernels.cpu.nn import conv_math as nn_conv_math
from toolkit.kernels.cpu.nn.pool import PoolAttributes, max_forward
from toolkit.kernels.cpu.nn.window import Layout, window_spec
from toolkit.kernels.cpu.quantized.ops import level, product_range
from toolkit.kernels.cpu.quantized.quantize import F32, float_to_quantized, limits
from toolkit.kernels.registry import Compute, KernelNode, kernel
from toolkit.kernels.types import Array

_Ranged = tuple[Array, Array, Array]
_quint8: DType = dtypes.from_name("quint8")
_SMALL = [_quint8, dtypes.from_name("qint8")]


def _range(low: Array, high: Array, what: str) -> tuple[float, float]:
    for value, name in ((low, "min"), (high, "max")):
        require(np.size(value) == 1, f"{name}_{what} must be a scalar, got shape {shape_text(value)}")
    return F32(np.reshape(low, ())), F32(np.reshape(high, ()))


@kernel("QuantizedConv2D", types={"Tinput": [_quint8], "Tfilter": [_quint8]})
def quantized_conv2d(op: KernelNode) -> Compute:
    """32-bit sums of products; padding stands for 0."""
    spec = window_spec(op, Layout(False))
    dilations: list[int] = op.attr("dilations")
    require(all(d == 1 for d in dilations), f"dilations must be 1, not {dilations}: there are no quantized gaps")
    strides: list[int] = op.attr("strides")
    require(strides[1] == strides[2], f"strides must be equal in both directions, not {strides[1:3]}")
    out_type = op.output_types[0].numpy

    def compute(x: Array, w: Array, *ranges: Array) -> _Ranged:
        require(x.ndim == 4, f"input must be rank 4 but is rank {x.ndim}")
        require(w.ndim == 4, f"filter must be rank 4 but is rank {w.ndim}")
        low_x, high_x = _range(ranges[0], ranges[1], "input")
        low_w, high_w = _range(ranges[2], ranges[3], "filter")
        require(x.shape[3] == w.shape[2], f"input and filter must have the same depth: {x.shape[3]} vs {w.shape[2]}")
        for value, what in ((x, "input"), (w, "filter")):
            require(0 not in value.shape, f"{what} must have at least one element, got shape {shape_text(value)}")
        # In float64, for the sake of its fast products: the sums are whole numbers far below 2**53.
        zero = level(0.0, low_x, high_x, x.dtype)
        a = x.astype(np.float64) - zero
        b = w.astype(np.float64) - level(0.0, low_w, high_w, w.dtype)
        windows = spec.over(x.shape[1:-1], w.shape[:-2])
        # TensorFlow pads with the lower 8 bits of the number for 0, which is another one where the range leaves 0 out.
        padded = windows.pad(a, float(zero % 256 - zero))
        no_pads = tuple((0, 0) for _ in windows.pads)
        y = nn_conv_math.forward(padded, b, replace(windows, sizes=padded.shape[1:-1], pads=no_pads))
        least, most = limits(out_type)
        ends = product_range((low_x, high_x), (low_w, high_w), x.dtype, w.dtype, out_type)
        return np.clip(y, least, most).astype(out_type), *ends

    return compute


@kernel("QuantizedMaxPool", types={"T": _SMALL})
def quantized_max_pool(op: KernelNode) -> Compute:
    pool = PoolAttributes(op)

    def compute(x: Array, low: Array, high: Array) -> _Ranged:
        a, b = _range(low, high, "input")
        return max_forward(pool.last(x), pool.windows(x.shape)), np.asarray(a, F32), np.asarray(b, F32)

    return compute


@kernel("QuantizedAvgPool", types={"T": _SMALL})
def quantized_avg_pool(op: KernelNode) -> Compute:
    """Means of the numbers inside the image, rounded to even.

    As TensorFlow does with oneDNN, its default on processors with AVX512-VNNI or better; without it, TensorFlow rounds
    towards zero.
    """
    pool = PoolAttributes(op)

    def compute(x: Array, low: Array, high: Array) -> _Ranged:
        a, b = _range(low, high, "input")
        windows = pool.windows(x.shape)
        padded = windows.pad(pool.last(x).astype(np.int32))
        inside = windows.pad(np.ones((1, *x.shape[1:-1], 1), np.int32))
        total = np.zeros((x.shape[0], *windows.out, x.shape[-1]), np.int32)
        count = np.zeros((1, *windows.out, 1), np.int32)
        for _, at in windows.taps():
            total += padded[at]
            count += inside[at]
        return np.rint(total / count).astype(x.dtype), np.asarray(a, F32), np.asarray(b, F32)

    return compute


@kernel("QuantizedInstanceNorm", types={"T": [_quint8]})
def quantized_instance_norm(op: KernelNode) -> Compute:
    """Each channel of each image with mean 0 and variance 1."""
    given: bool = op.attr("output_range_given")
    epsilon, separation = F32(op.attr("variance_epsilon")), F32(op.attr("min_separation"))
    given_range = F32(op.attr("given_y_min")), F32(op.attr("given_y_max"))
    require(not given or given_range[0] < given_range[1], "given_y_min must be less than given_y_max")

    def compute(x: Array, low: Array, high: Array) -> _Ranged:
        require(x.ndim == 4, f"input must be 4-dimensional, got shape {shape_text(x)}")
        a, b = _range(low, high, "x")
        require(a < b, f"input_min must be less than input_max : {a} >= {b}")
        if not x.size and not given:  # least and most of nothing
            empty = np.asarray(np.inf, F32)
            return x, empty, empty
        values = x.astype(F32) * F32((b - a) / F32(255)) + a
        centred = values - values.mean(axis=(1, 2), keepdims=True, dtype=F32)
        variance = np.mean(centred * centred, axis=(1, 2), keepdims=True, dtype=F32)
        y = centred / np.sqrt(variance + epsilon)
        least, most = given_range
        if not given:
            least = F32(y.min())
            most = max(F32(y.max()), F32(least + separation))
        return float_to_quantized(y, least, most, x.dtype), np.asarray(least, F32), np.asarray(most, F32)

    return compute


@kernel("QuantizedResizeBilinear", types={"T": [_quint8, dtypes.from_name("qint32"), dtypes.float32]})
def quantized_resize_bilinear(op: KernelNode) -> Compute:
    grid = Grid.of(op)

    def compute(images: Array, size: Array, low: Array, high: Array) -> _Ranged:
        require(images.ndim == 4, f"input must be 4-dimensional, got shape {shape_text(images)}")
        require(np.shape(size) == (2,), f"shape_t must be 1-dimensional with 2 elements, got {shape_text(size)}")
        height, width = (int(n) for n in size)
        require(height > 0 and width > 0, "output dimensions must be positive")
        require(min(images.shape[1:3]) > 0, "input image must be of non-zero size")
        require(images.shape[3] > 0, "image must have at least one channel")
        a, b = _range(low, high, "images")
        if images.shape[1:3] == (height, width):
            y = images
        elif images.dtype == np.float32:
            y = bilinear(images, grid, height, width)
        else:
            y = _fixed_point_bilinear(images, grid, height, width)
        return y, np.asarray(a, F32), np.asarray(b, F32)

    return compute


#: bits behind the point of the weights, which TensorFlow chose to fit the width of its sums
_WEIGHT_BITS = {"uint8": 7, "int32": 30}


def _fixed_point_bilinear(x: Array, grid: Grid, height: int, width: int) -> Array:
    """Interpolation in whole numbers; quotients are cut off towards zero, as C++ does."""
    one = 1 << _WEIGHT_BITS[x.dtype.name]
    top, bottom, dy = grid.linear(x.shape[1], height)
    left, right, dx = grid.linear(x.shape[2], width)
    down, across = (np.floor(d * F32(one)).astype(np.int64) for d in (dy, dx))
    wide: Array = x.astype(np.int64)

    def row(at: Array) -> Array:
        line = wide[:, at]
        near = line[:, :, left]
        return near * one + (line[:, :, right] - near) * across[:, None]

    def divide(value: Array) -> Array:
        return np.sign(value) * (np.abs(value) // one)

    upper = row(top)
    y = upper + divide(row(bottom) - upper) * down[:, None, None]
    return divide(y + one // 2).astype(x.dtype)
