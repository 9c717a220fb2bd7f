"""Convolutions and matrix products of 8-bit numbers: int32 sums that are exact, or oneDNN's fused results.

oneDNN adds what zero points and signed inputs make necessary in float32, which is exact up to 2^24 (`is_small`).
Larger sums are made without any of that, of unsigned inputs, and corrected in whole numbers (`correction`).
"""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from toolkit.compiler.backends.cpu.emission.emit import Emitter
from toolkit.compiler.backends.cpu.emission.primitives import (
    Operand,
    convolution,
    fixed,
    make,
    packed,
    refusals,
)
from toolkit.compiler.ir.errors import NotSupportedError
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.products import Windows
from toolkit.compiler.ir.value import Value
from toolkit.kernels.cpu.onednn import memory
from toolkit.kernels.cpu.onednn.memory import F32, any_layout, row_major, strided
from toolkit.kernels.cpu.onednn.primitive import Arg, Primitive, Quantization, Query, SumPost

I8, U8, I32 = np.dtype(np.int8), np.dtype(np.uint8), np.dtype(np.int32)
_EXACT = 1 << 24  # whole numbers up to here are exact in float32
#: code that was seen to keep int32 sums as they are, where nothing is to be added to them
_KEEPS_SUMS = ("brg", "brgconv", "brgconv_1x1", "brdgmm_dw", "jit_int8")


def per_output(weights: Any, kind: str, depthwise: bool = False) -> Any:
    """Weights int64 [products added, outputs]."""
    outputs = weights.shape[-1] * (weights.shape[-2] if depthwise else 1)
    return weights.astype(np.int64).reshape(-1, outputs) if kind == "int8_conv" else weights.astype(np.int64)


def largest_sum(weights: Any, most: int) -> int:
    """The largest sum of products of numbers 0 to `most` with weights [products added, outputs], signs aside."""
    positive = np.maximum(weights, 0).sum(axis=0).max(initial=0)
    negative = np.maximum(-weights, 0).sum(axis=0).max(initial=0)
    return int(max(positive, negative)) * most


def is_small(weights: Any, dtype: Any, zero: int) -> bool:
    """Whether everything that is added stays exact in float32: products, zero points, and the 128 of signed inputs."""
    return largest_sum(weights, 255 + (128 if dtype == I8 else 0) + abs(zero)) <= _EXACT


def split(weights: Any) -> Iterator[Any]:
    """Whole numbers as a sum of 8-bit ones."""
    while True:
        part = np.clip(weights, -128, 127)
        yield part.astype(np.int8)
        weights = weights - part
        if not weights.any():
            return


def correction(attrs: dict[str, Any], kind: str, weights: Any, shape: tuple[int, ...], out: tuple[int, ...]) -> Any:
    """int32: the sum of the weights that meet a number, not padding, at each place of a result (batch left out).

    Args:
        shape: of the input.
        out: of the result.
    """
    wide = weights.astype(np.int64)
    if kind != "int8_conv":
        return wide.sum(axis=0).astype(np.int32)
    spatial = wide.shape[:-2]
    taps = wide.reshape(*spatial, -1) if attrs["depthwise"] else wide.sum(axis=-2)
    if not any(map(any, attrs["pads"])):
        return taps.reshape(-1, taps.shape[-1]).sum(axis=0).astype(np.int32)
    total = np.zeros(out[1:], np.int64)
    for tap in product(*map(range, spatial)):
        meets = np.ones((1,) * len(spatial), bool)
        for axis, (t, stride, dilation, (before, _)) in enumerate(
            zip(tap, attrs["strides"], attrs["dilations"], attrs["pads"], strict=True)
        ):
            at = np.arange(out[1 + axis]) * stride + t * dilation - before
            inside = (at >= 0) & (at < shape[1 + axis])
            meets = meets & inside.reshape([-1 if d == axis else 1 for d in range(len(spatial))])
        total += meets[..., None] * taps[tap]
    return total.astype(np.int32)


def write_int8_conv(emitter: Emitter, operation: Operation) -> None:
    """Convolution of 8-bit numbers with a constant filter (attrs filter, windows, and those of `_finish`)."""
    x, y, attrs = operation.inputs[0], operation.output, operation.attrs
    assert x.shape is not None and y.shape is not None
    known = attrs["filter"]
    names = ("strides", "dilations", "pads", "groups", "depthwise")
    geometry = convolution(Windows(*(attrs[name] for name in names)), x.shape, known.shape, y.shape)
    source, target = memory.channels_last(x.shape, x.dtype), memory.channels_last(y.shape, y.dtype)
    mask = 3 if len(geometry.filter_shape) > len(known.shape) else 1
    bias = attrs.get("bias")
    with refusals(operation):
        primitive = geometry.forward(
            x.dtype, y.dtype, memory.dense(bias.shape, F32) if bias is not None else None, _posts(attrs),
            weights=I8, quantization=_quantization(operation, mask),
        )  # fmt: skip
    weights = packed(np.ascontiguousarray(known), geometry.filter_desc(I8), primitive.desc(Query.WEIGHTS))
    operands: list[Operand] = [(Arg.SRC, x, source), (Arg.WEIGHTS, weights, None), (Arg.DST, y, target)]
    if bias is not None:
        operands.append((Arg.BIAS, fixed(bias), None))
    _finish(emitter, operation, primitive, operands)


def write_int8_matmul(emitter: Emitter, operation: Operation) -> None:
    """Product of a matrix of 8-bit numbers with a constant one (attrs weights, transpose_a)."""
    x, y, attrs = operation.inputs[0], operation.output, operation.attrs
    assert x.shape is not None and y.shape is not None
    weights = np.ascontiguousarray(attrs["weights"])
    inner, columns = weights.shape
    rows = y.size // columns
    source = strided((rows, inner), x.dtype, (1, rows) if attrs["transpose_a"] else (inner, 1))
    target = memory.dense((rows, columns), y.dtype)
    bias = attrs.get("bias")
    bias_desc = memory.dense((1, columns), F32)
    primitive = make(
        operation, "matmul", source, any_layout((inner, columns), I8), bias_desc if bias is not None else None, target,
        posts=_posts(attrs), quantization=_quantization(operation, 2),
    )  # fmt: skip
    plain = strided(weights.shape, I8, row_major(weights.shape))
    second = packed(weights, plain, primitive.desc(Query.WEIGHTS))
    operands: list[Operand] = [(Arg.SRC, x, source), (Arg.WEIGHTS, second, None), (Arg.DST, y, target)]
    if bias is not None:
        operands.append((Arg.BIAS, fixed(bias.reshape(1, -1), bias_desc), None))
    _finish(emitter, operation, primitive, operands)


def _posts(attrs: dict[str, Any]) -> list[Any]:
    return attrs.get("epilogue", [])


def _quantization(operation: Operation, per_channel: int) -> Quantization:
    """attrs scales: argument to float32 numbers; zero: a number, or None where it is the second input."""
    scales: dict[Arg, Any] = operation.attrs.get("scales", {})
    masks = {arg: per_channel if np.size(values) > 1 else 0 for arg, values in scales.items()}
    return Quantization(masks, {} if operation.attrs.get("zero") == 0 else {Arg.SRC: 0})


def _finish(emitter: Emitter, operation: Operation, primitive: Primitive, operands: list[Operand]) -> None:
    """Execute with scales and zero points; attrs summand: the second input, which is summed in place."""
    attrs, y = operation.attrs, operation.output
    name = primitive.implementation.partition(":")[0]
    if attrs.get("is_large") and (name not in _KEEPS_SUMS or "avx512" not in primitive.implementation):
        raise NotSupportedError(operation, f"sums above 2^24 may not be exact in {primitive.implementation}")
    for arg, values in attrs.get("scales", {}).items():
        operands.append((Arg.SCALES_OF | arg, fixed(np.reshape(values, -1)), None))
    zero = attrs.get("zero")
    if zero is None:
        operands.append((Arg.ZERO_OF | Arg.SRC, operation.inputs[1], memory.dense((1,), I32)))
    elif zero:
        operands.append((Arg.ZERO_OF | Arg.SRC, fixed(np.array([zero], np.int32)), None))
    summand = summed_number(operation)
    if summand is not None and emitter.layout.storage.get(summand) is not emitter.layout.storage[y]:
        held = emitter.share("k", summand.dtype)
        emitter.line(f"copyto({emitter.read(y)}.view({held}), {emitter.read(summand)})")
    emitter.execute(primitive, operands)


def summed_number(operation: Operation) -> Value | None:
    """What a fused product is added to, in the place of its result."""
    if not any(isinstance(post, SumPost) for post in operation.attrs.get("epilogue", ())):
        return None
    return operation.inputs[1]
