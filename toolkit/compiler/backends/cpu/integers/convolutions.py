"""Rules for TensorFlow's quantized convolutions and matrix products."""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from toolkit.compiler.backends.cpu.elementwise.operations import Ufunc
from toolkit.compiler.backends.cpu.elementwise.tiles import Filled
from toolkit.compiler.backends.cpu.integers.forms import Form, MatrixForm, correction, per_output
from toolkit.compiler.backends.cpu.integers.products import (
    I8,
    I32,
    U8,
    int8_product,
    is_small,
    largest_sum,
    split,
)
from toolkit.compiler.backends.cpu.integers.rewriting import Rewriter, Rule, constants
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.products import ConvolutionWindows
from toolkit.compiler.ir.value import Value
from toolkit.kernels.cpu.memory.addresses import same_place
from toolkit.kernels.cpu.nn.window import Layout, Windows, window_spec
from toolkit.kernels.cpu.onednn.primitive import Arg
from toolkit.kernels.cpu.quantized.fused import (
    FUSED_CONVOLUTIONS,
    FUSED_PRODUCTS,
    QuantizedEpilogue,
    farthest,
    fused_windows,
    largest,
    sum_range,
)
from toolkit.kernels.cpu.quantized.ops import level, product_range
from toolkit.kernels.cpu.quantized.quantize import limits
from toolkit.kernels.registry import KernelNode
from toolkit.kernels.tensors import F32

_FLAT = Layout(channels_first=False)
_LIMIT = 1 << 31


def _over(windows: Windows, groups: int = 1, *, depthwise: bool = False) -> ConvolutionWindows:
    """How a filter goes over an image of a known size."""
    return ConvolutionWindows(windows.strides, windows.dilations, windows.pads, groups, depthwise)


def sums(
    rewriter: Rewriter, host: Operation, form: Form, x: Value, weights: Any, zero: int | Value, shape: tuple[int, ...],
) -> Value | None:  # fmt: skip
    """The exact int32 sums of (x - zero) * weights, what is padded left out; None if they cannot be had.

    Args:
        weights: whole numbers, which may need more than 8 bits: their zero point is taken off.
        zero: of x; a value int32[1] holds a number that x may be.
        shape: of the result.
    """
    weights = np.asarray(weights, np.int64)
    reach = 255 if isinstance(zero, Value) else abs(zero)
    if not rewriter.exact or largest_sum(per_output(form, weights), 255 + 128 + reach) >= _LIMIT:
        return None
    parts = list(split(weights))
    small = all(is_small(per_output(form, part), x.dtype, reach) for part in parts)
    offset = 0
    if not small and x.dtype == I8:
        unsigned = Value(U8, x.shape)
        rewriter.add(host, Filled, outputs=[unsigned], arguments=(x,), function=_as_unsigned)
        x, offset = unsigned, 128
    given, known = (zero, 0) if isinstance(zero, Value) else (None, zero)
    total: Value | None = None
    for part in parts:
        made = Value(I32, shape)
        rewriter.add(
            host, int8_product, outputs=[made], form=form, input=x, weights=part, is_large=not small,
            zero_point=given if small else None, known_zero=known if small else 0,
        )  # fmt: skip
        if total is None:
            total = made
        else:
            both = Value(I32, shape)
            rewriter.add(host, Ufunc, outputs=[both], function=np.add.__name__, arguments=(total, made))
            total = both
    assert total is not None and x.shape is not None
    if small or (not isinstance(zero, Value) and zero + offset == 0):
        return total
    right = Value(I32, shape)
    met = correction(form, weights, x.shape, shape)
    rewriter.add(host, Filled, outputs=[right], arguments=(total, *([zero] if isinstance(zero, Value) else [])),
                 function=_corrected(met, offset, None if isinstance(zero, Value) else zero))  # fmt: skip
    return right


def _as_unsigned(out: Any, x: Any) -> None:
    """x + 128."""
    np.bitwise_xor(x.view(np.uint8), np.uint8(128), out=out)


def _corrected(met: Any, offset: int, zero: int | None) -> Callable[..., None]:
    """Takes off what the zero point has added: it, and what was added to x, times the weights that met a number."""
    known = None if zero is None else met * np.int32(zero + offset)

    def function(out: Any, total: Any, *zeros: Any) -> None:
        lost = known if known is not None else met * np.int32(int(zeros[0][0]) + offset)
        for target, source in zip(out, total, strict=True):
            np.subtract(source, lost, out=target)

    return function


# -- products with ranges, whose kernels are TensorFlow's own ------------------------------------------------------


def _ranged(rewriter: Rewriter, host: Operation, form: Form, transpose_weights: bool = False) -> None:
    """Sums of two tensors with ranges: inputs x, constant weights, the four ends."""
    x, w, low, high, *others = host.inputs
    of_w = constants([w, *others])
    if of_w is None or any(value.size != 1 for value in (low, high, *others)):
        return
    w_low, w_high = (F32.type(end.reshape(())) for end in of_w[1:])
    weights = of_w[0].astype(np.int64) - level(0.0, w_low, w_high, w.dtype)
    out = host.output
    assert out.shape is not None

    def numbers(a: Any, b: Any) -> Any:
        span = F32.type(a.reshape(())), F32.type(b.reshape(()))
        return product_range(span, (w_low, w_high), x.dtype, w.dtype, out.dtype)

    if transpose_weights:
        weights = weights.T
    known = constants([low, high])
    least, most = limits(x.dtype)
    if known is not None:
        zero = level(0.0, F32.type(known[0].reshape(())), F32.type(known[1].reshape(())), x.dtype)
        if not least <= zero <= most:  # TensorFlow pads with another number then
            return
        total = sums(rewriter, host, form, x, weights, zero, out.shape)
    else:
        place = Value(I32, (1,))

        def find(into: Any, a: Any, b: Any) -> None:
            found = level(0.0, F32.type(np.reshape(a, ())), F32.type(np.reshape(b, ())), x.dtype)
            into[0] = max(-(1 << 31), min(found, _LIMIT - 1))

        rewriter.add(host, Filled, outputs=[place], arguments=(low, high), function=find)
        total = sums(rewriter, host, form, x, weights, place, out.shape)
        if total is None:
            rewriter.abandon(host)
            return
        checked = Value(I32, out.shape)
        rewriter.add(host, Filled, outputs=[checked], arguments=(total, place, *host.inputs),
                     function=_or_kernel(host.step.compute, least, most))  # fmt: skip
        total = checked
    if total is not None:
        rewriter.replace(host, [total, *rewriter.numbers(host, numbers, [low, high], host.outputs[1:])])


def _or_kernel(compute: Callable[..., Any], least: int, most: int) -> Callable[..., None]:
    """Sums, or what the kernel makes, where the zero point turns out to be none of the type's numbers."""

    def function(out: Any, total: Any, zero: Any, *given: Any) -> None:
        if not least <= zero[0] <= most:
            total = compute(*map(np.asarray, given))[0]
        if not same_place(out, total):
            np.copyto(out, total)

    return function


def _convolution(rewriter: Rewriter, host: Operation) -> None:
    x, w = host.inputs[:2]
    assert x.shape is not None and w.shape is not None
    if len(x.shape) != 4 or len(w.shape) != 4 or x.shape[3] != w.shape[2] or host.output.dtype != I32:
        return
    windows = window_spec(KernelNode(host.step.node), _FLAT).over(x.shape[1:-1], w.shape[:2])
    _ranged(rewriter, host, _over(windows))


def _product(rewriter: Rewriter, host: Operation) -> None:
    x, w = host.inputs[:2]
    node = host.step.node
    if host.output.dtype != I32 or not _fits(x, w, node.attr("transpose_a"), node.attr("transpose_b")):
        return
    _ranged(rewriter, host, MatrixForm(bool(node.attr("transpose_a"))), bool(node.attr("transpose_b")))


def _fits(x: Value, w: Value, turned_x: bool, turned_w: bool) -> bool:
    if x.shape is None or w.shape is None or len(x.shape) != 2 or len(w.shape) != 2:
        return False
    return x.shape[0 if turned_x else 1] == w.shape[1 if turned_w else 0]


# -- fused products, which oneDNN runs in TensorFlow too -----------------------------------------------------------


def _fused_convolution(rewriter: Rewriter, host: Operation) -> None:
    x, w = host.inputs[:2]
    assert x.shape is not None and w.shape is not None
    if len(x.shape) != 4 or len(w.shape) != 4 or x.shape[3] != w.shape[2] or not w.is_constant:
        return
    depthwise = "Depthwise" in host.op
    windows = fused_windows(KernelNode(host.step.node)).over(x.shape[1:-1], w.shape[:2])
    _fused(rewriter, host, _over(windows, w.shape[2] if depthwise else 1, depthwise=depthwise), w.constant)


def _fused_product(rewriter: Rewriter, host: Operation) -> None:
    x, w = host.inputs[:2]
    node = host.step.node
    if not w.is_constant or not _fits(x, w, node.attr("transpose_a"), node.attr("transpose_b")):
        return
    weights = w.constant.T if node.attr("transpose_b") else w.constant
    _fused(rewriter, host, MatrixForm(bool(node.attr("transpose_a"))), weights)


def _fused(rewriter: Rewriter, host: Operation, form: Form, weights: Any) -> None:
    """One primitive, where everything but the numbers themselves is known."""
    x, node, epilogue = host.inputs[0], KernelNode(host.step.node), QuantizedEpilogue(KernelNode(host.step.node))
    rest = list(host.inputs[2:])
    summand = rest.pop(-3) if epilogue.summand and rest[-1].shape == () else None
    known = constants(rest)
    if known is None or (epilogue.summand and (summand is None or host.inputs.count(summand) > 1)):
        return
    flat = per_output(form, weights)
    # unsigned inputs leave nothing to be added to the sums, which become floats as they are
    if not rewriter.exact or (x.dtype == I8 and not is_small(flat, I8, 0)) or largest_sum(flat, 255) >= _LIMIT:
        return
    bias = known.pop(0) if epilogue.bias else None
    low, high, w_low, w_high, *more = (F32.type(each) if each.ndim == 0 else each for each in known)
    if np.ndim(low) or np.ndim(high) or np.shape(w_low) != np.shape(w_high):
        return
    min_first = isinstance(form, MatrixForm) and node.text("input_quant_mode") == "MIN_FIRST"
    if min_first and bias is not None and bias.dtype.kind == "f" and low != 0:
        return
    of_x = (high - low if min_first else farthest(low, high)) / largest(x.dtype)
    of_w = farthest(w_low, w_high) / F32.type(127)
    step = of_x * of_w
    scales = {Arg.SRC: of_x, Arg.WEIGHTS: of_w}
    if epilogue.requantize:
        scales[Arg.DST] = farthest(*more[:2]) / largest(host.output.dtype)
    elif not epilogue.dequantize:
        if np.size(step) > 1:
            return
        scales[Arg.DST] = step
    if any(not np.all((values > 0) & np.isfinite(values)) for values in scales.values()):
        return
    unit = 1.0 if summand is None else float(farthest(*more[-2:]) / largest(summand.dtype))
    if bias is not None:
        bias = np.broadcast_to(bias.astype(np.float32) * step if bias.dtype.kind == "i" else bias, flat.shape[1:])
    scales = {arg: np.asarray(values, np.float32) for arg, values in scales.items()}
    if not epilogue.dequantize:
        ends = more[:2] if epilogue.requantize else sum_range(low, high, x.dtype, w_low, w_high)
        rewriter.set_ranges(host, [Value(F32, np.shape(end), np.asarray(end, np.float32)) for end in ends])
    rewriter.finish(
        host, int8_product, form=form, input=x, weights=weights, summand=summand, summand_scale=unit,
        relu=epilogue.relu, input_scale=scales[Arg.SRC], weight_scales=scales[Arg.WEIGHTS],
        output_scale=scales.get(Arg.DST), bias=None if bias is None else np.ascontiguousarray(bias, np.float32),
    )  # fmt: skip


RULES: dict[str, Rule] = {
    "QuantizedConv2D": _convolution,
    "QuantizedMatMul": _product,
    **dict.fromkeys(FUSED_CONVOLUTIONS, _fused_convolution),
    **dict.fromkeys(FUSED_PRODUCTS, _fused_product),
}
