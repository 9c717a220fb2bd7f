"""Rules for products of uniformly quantized numbers: exact sums, then whole-number scaling or floats tile by tile."""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from toolkit.compiler.backends.cpu.elementwise.tiles import Filled, Stage, Tiled
from toolkit.compiler.backends.cpu.integers.convolutions import sums
from toolkit.compiler.backends.cpu.integers.elements import add, elementwise
from toolkit.compiler.backends.cpu.integers.forms import Form, MatrixForm, correction
from toolkit.compiler.backends.cpu.integers.products import I8, I32
from toolkit.compiler.backends.cpu.integers.rewriting import Rewriter, Rule, constants
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.products import ConvolutionWindows
from toolkit.compiler.ir.value import Value
from toolkit.kernels.cpu.quantized.uniform_conv import UniformConvolutionAttributes, UniformConvolutionGeometry
from toolkit.kernels.cpu.quantized.uniform_math import (
    WHOLE,
    Multiplier,
    check_parameters,
    check_positive,
    quantize_rows,
    requantized_by,
)
from toolkit.kernels.cpu.quantized.uniform_ops import check_dot, checked_geometry
from toolkit.kernels.registry import KernelNode
from toolkit.kernels.tensors import F32


@dataclass(frozen=True, slots=True)
class _Product:
    """A product of the first input with constant weights, as the primitives want it.

    Attributes:
        weights: int64, their zero points taken off; outputs last.
    """

    form: Form
    weights: Any


def _convolution(host: Operation, geometry: UniformConvolutionGeometry, zeros: Any) -> _Product | None:
    """Channels last and without holes in the input."""
    rank = len(geometry.shape)
    last = (0, rank - 1, *range(1, rank - 1))
    dilated = any(gap > 1 for gap in geometry.x_dilation)
    if geometry.x != last or geometry.y != last or geometry.batch_groups > 1 or dilated:
        return None
    if rank > 5 or geometry.shape != host.output.shape:
        return None
    weights = geometry.right(host.inputs[1].constant).astype(np.int64) - zeros.reshape(-1, *(1,) * (rank - 1))
    form = ConvolutionWindows(geometry.strides, geometry.w_dilation, geometry.pads, geometry.feature_groups)
    return _Product(form, np.transpose(weights, (*range(2, rank), 1, 0)))


def _matrix_product(weights: Any, zeros: Any) -> _Product:
    return _Product(MatrixForm(), weights.astype(np.int64) - zeros.reshape(1, -1))


def _stand_in(value: Value) -> Any:
    """Something of the same shape and type, without its memory."""
    assert value.shape is not None
    return np.broadcast_to(np.zeros((), value.dtype), value.shape)


#: the sums that an op makes, given it, its weights, scales and zero points; None where they are not ours
_ProductOf = Callable[[Operation, Any, Any, Any], _Product | None]


def _dot(host: Operation, weights: Any, scales: Any, zeros: Any) -> _Product | None:
    check_dot(_stand_in(host.inputs[0]), weights, scales, zeros)
    return _matrix_product(weights, zeros[1])


def _filtered(host: Operation, weights: Any, scales: Any, zeros: Any) -> _Product | None:
    geometry = checked_geometry(KernelNode(host.step.node), _stand_in(host.inputs[0]), weights, scales, zeros)
    return _convolution(host, geometry, zeros[1])


def _quantized(rewriter: Rewriter, host: Operation, product_of: _ProductOf) -> None:
    """Sums brought to the scale of the result."""
    x, *others = host.inputs
    known = constants(others)
    if known is None or x.dtype != I8:
        return
    weights, scales, zeros = known[0], known[1::2], known[2::2]
    product, shape, node = product_of(host, weights, scales, zeros), host.output.shape, host.step.node
    if product is None or shape is None:
        return
    multiplier = Multiplier.of(scales[0].astype(np.float64) * scales[1] / scales[2])
    total = sums(rewriter, host, product.form, x, product.weights, int(zeros[0]), shape)
    if total is None:
        return
    low, high = node.attr("output_quantization_min_val"), node.attr("output_quantization_max_val")

    def finish(tile: Any) -> Any:
        return requantized_by(multiplier, tile, zeros[2], low, high)

    rewriter.finish(host, Tiled, input=total, stages=(Stage(lambda: finish, 0, 0),), further=())


def _requantize(rewriter: Rewriter, host: Operation) -> None:
    """With scales that are known, the factor is worked out once."""
    known = constants(host.inputs[1:])
    made = elementwise(rewriter, host)
    if made is None or made.input.dtype != I32 or known is None:
        return
    scales, zeros, to_scales, to_zeros = known
    node = host.step.node
    ends = node.attr("output_quantization_min_val"), node.attr("output_quantization_max_val")
    multiplier = Multiplier.of(scales.astype(np.float64) / to_scales)
    moves, dtype = bool(zeros.any()), host.output.dtype

    def finish(tile: Any) -> Any:
        return requantized_by(multiplier, tile - zeros if moves else tile, to_zeros, *ends).astype(dtype)

    made.stages, made.further = (Stage(lambda: finish, 0, 0),), ()


def _add(rewriter: Rewriter, host: Operation) -> None:
    """Likewise; a bias that is known is a vector in the scale of the result."""
    y, *others = host.inputs[1:]
    made = add(rewriter, host)
    beside = 0 if made is None else made.stages[0].beside
    known = constants(others if beside else [y, *others])
    if made is None or known is None:
        return
    bias = None if beside else known.pop(0)
    scales, zeros = known[0::2], known[1::2]
    node = host.step.node
    low, high = node.attr("output_quantization_min_val"), node.attr("output_quantization_max_val")
    first, second = (_rescaled(scales[i].astype(np.float64) / scales[2], zeros[i]) for i in (0, 1))
    fixed = zeros[2] if bias is None else zeros[2] + second(bias)

    def finish(tile: Any, *tiles: Any) -> Any:
        total = first(tile) + fixed
        if tiles:
            total += second(tiles[0])
        return total if (low, high) == WHOLE else np.clip(total, low, high, out=total)

    made.stages, made.further = (Stage(lambda: finish, beside, 0),), (y,) if beside else ()


def _rescaled(factor: Any, zero: Any) -> Callable[[Any], Any]:
    """From numbers with a zero point to int32 numbers of another scale, without one."""
    multiplier, moves, same = Multiplier.of(factor), bool(zero.any()), bool((factor == 1).all())

    def function(numbers: Any) -> Any:
        centred = numbers - zero if moves else numbers
        return centred if same else requantized_by(multiplier, centred, np.int32(0), *WHOLE)

    return function


def _hybrid_dot(host: Operation, weights: Any, scales: Any, zeros: Any) -> _Product | None:
    given = host.inputs[0].shape or ()
    if len(given) != 2 or weights.ndim != 2 or given[1] != weights.shape[0]:
        return None
    check_parameters(weights.shape, scales, zeros, -1 if scales.ndim == 0 else 1)
    return _matrix_product(weights, zeros)


def _hybrid_filtered(host: Operation, weights: Any, scales: Any, zeros: Any) -> _Product | None:
    node = KernelNode(host.step.node)
    geometry = UniformConvolutionAttributes(node).geometry(host.inputs[0].shape or (), weights.shape)
    axis = node.attr("rhs_quantization_axis")
    geometry.check_filter(axis)
    check_parameters(weights.shape, scales, zeros, axis)
    return _convolution(host, geometry, zeros)


def _hybrid(rewriter: Rewriter, host: Operation, product_of: _ProductOf) -> None:
    """The first input is quantized row by row (or image by image); the sums become floats."""
    x, *others = host.inputs
    known, shape, given = constants(others), host.output.shape, x.shape
    if known is None or x.dtype != F32 or shape is None or given is None:
        return
    weights, scales, zeros = known
    check_positive(scales)
    product = product_of(host, weights, scales, zeros)
    if product is None:
        return
    rows, row_scales, row_zeros = Value(I8, given), Value(F32, (given[0], 1)), Value(I32, (given[0], 1))
    rewriter.add(
        host,
        Filled,
        outputs=[rows, row_scales, row_zeros],
        arguments=(x,),
        function=_quantizer(rewriter.target.nests.tile),
    )
    total = sums(rewriter, host, product.form, rows, product.weights, 0, shape)
    if total is None:
        rewriter.abandon(host)
        return
    met = correction(product.form, product.weights, given, shape)
    rewriter.finish(
        host,
        Filled,
        arguments=(total, row_scales, row_zeros),
        function=_to_floats(met, scales, rewriter.target.nests.tile),
    )


def _blocks(count: int, size: int, tile: int) -> Iterator[slice]:
    """Slices of rows of this size that have about so many elements together."""
    step = max(1, tile // max(1, size))
    return (slice(start, start + step) for start in range(0, count, step))


def _quantizer(tile: int) -> Callable[..., None]:
    def function(out: Any, scales: Any, zeros: Any, x: Any) -> None:
        flat, numbers = x.reshape(len(x), -1), out.reshape(len(x), -1)
        for rows in _blocks(len(flat), flat.shape[1], tile):
            numbers[rows], scales[rows], zeros[rows] = quantize_rows(flat[rows])

    return function


def _to_floats(met: Any, scales: Any, tile: int) -> Callable[..., None]:
    def function(out: Any, total: Any, row_scales: Any, row_zeros: Any) -> None:
        ones = (-1,) + (1,) * (out.ndim - 1)
        for rows in _blocks(len(out), out[0].size, tile):
            centred = total[rows] - met * row_zeros[rows].reshape(ones)
            out[rows] = centred.astype(np.float32) * row_scales[rows].reshape(ones) * scales

    return function


RULES: dict[str, Rule] = {
    "UniformQuantizedAdd": _add,
    "UniformQuantizedConvolution": functools.partial(_quantized, product_of=_filtered),
    "UniformQuantizedConvolutionHybrid": functools.partial(_hybrid, product_of=_hybrid_filtered),
    "UniformQuantizedDot": functools.partial(_quantized, product_of=_dot),
    "UniformQuantizedDotHybrid": functools.partial(_hybrid, product_of=_hybrid_dot),
    "UniformRequantize": _requantize,
}
