"""Convolutions and matrix products of 8-bit numbers: int32 sums that are exact, or oneDNN's fused results.

oneDNN adds what zero points and signed inputs make necessary in float32, which is exact up to 2^24 (`is_small`).
Larger sums are made without any of that, of unsigned inputs, and corrected in whole numbers (`forms.correction`).
"""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from toolkit.compiler.backends.cpu.emission.emit import Emitter
from toolkit.compiler.backends.cpu.emission.primitives import (
    ELTWISE,
    Operand,
    convolution,
    fixed,
    make,
    packed,
    refusals,
)
from toolkit.compiler.backends.cpu.integers.forms import Form, MatrixForm
from toolkit.compiler.ir import relations
from toolkit.compiler.ir.errors import NotSupportedError
from toolkit.compiler.ir.fields import operand
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.products import ConvolutionWindows
from toolkit.compiler.ir.post_ops import Apply
from toolkit.compiler.ir.traits import Trait
from toolkit.compiler.ir.value import Value
from toolkit.kernels.cpu.onednn import memory
from toolkit.kernels.cpu.onednn.memory import any_layout, strided
from toolkit.kernels.cpu.onednn.primitive import (
    Arg,
    DescriptorQuery,
    Eltwise,
    EltwisePost,
    Primitive,
    Quantization,
    SumPost,
)
from toolkit.kernels.tensors import F32, row_major

I8, U8, I32 = np.dtype(np.int8), np.dtype(np.uint8), np.dtype(np.int32)
_EXACT = 1 << 24  # whole numbers up to here are exact in float32
#: code that was seen to keep int32 sums as they are, where nothing is to be added to them
_KEEPS_SUMS = ("brg", "brgconv", "brgconv_1x1", "brdgmm_dw", "jit_int8")


class Int8Product(Operation):
    """Sums of products of 8-bit numbers with constant weights: int32, or brought to the scale of the output.

    Attributes:
        input: int8 or uint8.
        zero_point: int32 [1], the number that stands for 0 in the input, where it is computed.
        known_zero: that number where it is not.
        summand: what the result is added to, in whose place it may be; as large as the output.
        weights: constant, int8.
        bias: constant float32, one for each output; None for none.
        input_scale, weight_scales, output_scale: constant float32, what a unit stands for; None for 1.
        summand_scale: what a unit of the summand stands for.
        before: what is done to the scaled sums before something is added to them.
        after: what is done to the result.
        relu: negative results become 0, before anything in `after`.
        is_large: sums may exceed 2^24.
    """

    input: Value = operand()
    zero_point: Value | None = operand(default=None)
    summand: Value | None = operand(default=None)
    weights: Any
    known_zero: int = 0
    bias: Any = None
    input_scale: Any = None
    weight_scales: Any = None
    output_scale: Any = None
    summand_scale: float = 1.0
    before: tuple[Apply, ...] = ()
    after: tuple[Apply, ...] = ()
    relu: bool = False
    is_large: bool = False

    @property
    def scales(self) -> dict[Arg, Any]:
        """Of oneDNN's arguments, where there are scales."""
        given = {Arg.SRC: self.input_scale, Arg.WEIGHTS: self.weight_scales, Arg.DST: self.output_scale}
        return {arg: values for arg, values in given.items() if values is not None}

    def release(self) -> None:
        self.weights = None

    def verify(self) -> Iterator[str]:
        outputs = relations.shape(self.output)[-1]
        yield from relations.constant("the bias", self.bias, outputs)
        for values in self.scales.values():
            yield from relations.scales(values, outputs)


class Int8Convolution(Int8Product, mnemonic="int8_conv", traits=Trait.IN_ARENA):
    """A convolution of 8-bit numbers, channels last."""

    form: ConvolutionWindows

    def verify(self) -> Iterator[str]:
        x, y = relations.shapes(self.input, self.output)
        yield from self.form.fit(x, self.weights.shape, y)
        yield from super().verify()


class Int8MatMul(Int8Product, mnemonic="int8_matmul", traits=Trait.IN_ARENA):
    """A product of a matrix of 8-bit numbers with a constant one."""

    form: MatrixForm

    def verify(self) -> Iterator[str]:
        a, y = relations.shapes(self.input, self.output)
        if len(a) != 2 or len(y) != 2:
            yield f"a product of {list(a)} makes {list(y)}"
            return
        rows, inner = a[::-1] if self.form.transpose else a
        if (inner, y[-1]) != self.weights.shape or y[0] != rows:
            yield f"a product of {rows}x{inner} and {list(self.weights.shape)} makes {list(y)}"
        yield from super().verify()


def int8_product(*, form: Form, **fields: Any) -> Int8Product:
    """The operation of a form."""
    if isinstance(form, ConvolutionWindows):
        return Int8Convolution(form=form, **fields)
    return Int8MatMul(form=form, **fields)


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


def write_int8_conv(emitter: Emitter, operation: Int8Convolution) -> None:
    """Convolution of 8-bit numbers with a constant filter."""
    x, y, known = operation.input, operation.output, operation.weights
    assert x.shape is not None and y.shape is not None
    geometry = convolution(operation.form, x.shape, known.shape, y.shape)
    source, target = memory.channels_last(x.shape, x.dtype), memory.channels_last(y.shape, y.dtype)
    mask = 3 if len(geometry.filter_shape) > len(known.shape) else 1
    bias = operation.bias
    with refusals(operation):
        primitive = geometry.forward(
            x.dtype, y.dtype, memory.dense(bias.shape, F32) if bias is not None else None, _post_ops(operation),
            weights=I8, quantization=_quantization(operation, mask),
        )  # fmt: skip
    weights = packed(np.ascontiguousarray(known), geometry.filter_desc(I8), primitive.desc(DescriptorQuery.WEIGHTS))
    operands: list[Operand] = [(Arg.SRC, x, source), (Arg.WEIGHTS, weights, None), (Arg.DST, y, target)]
    if bias is not None:
        operands.append((Arg.BIAS, fixed(bias), None))
    _finish(emitter, operation, primitive, operands)


def write_int8_matmul(emitter: Emitter, operation: Int8MatMul) -> None:
    """Product of a matrix of 8-bit numbers with a constant one."""
    x, y = operation.input, operation.output
    weights = np.ascontiguousarray(operation.weights)
    inner, columns = weights.shape
    rows = y.size // columns
    source = strided((rows, inner), x.dtype, (1, rows) if operation.form.transpose else (inner, 1))
    target = memory.dense((rows, columns), y.dtype)
    bias = operation.bias
    bias_desc = memory.dense((1, columns), F32)
    primitive = make(
        operation, "matmul", source, any_layout((inner, columns), I8), bias_desc if bias is not None else None, target,
        posts=_post_ops(operation), quantization=_quantization(operation, 2),
    )  # fmt: skip
    plain = strided(weights.shape, I8, row_major(weights.shape))
    second = packed(weights, plain, primitive.desc(DescriptorQuery.WEIGHTS))
    operands: list[Operand] = [(Arg.SRC, x, source), (Arg.WEIGHTS, second, None), (Arg.DST, y, target)]
    if bias is not None:
        operands.append((Arg.BIAS, fixed(bias.reshape(1, -1), bias_desc), None))
    _finish(emitter, operation, primitive, operands)


def _post_ops(operation: Int8Product) -> list[Any]:
    found: list[Any] = [_post(each) for each in operation.before]
    if operation.summand is not None:
        found.append(SumPost(operation.summand_scale, operation.summand.dtype))
    if operation.relu:
        found.append(EltwisePost(Eltwise.RELU))
    return found + [_post(each) for each in operation.after]


def _post(apply: Apply) -> EltwisePost:
    return EltwisePost(ELTWISE[apply.function], apply.alpha, apply.beta)


def _quantization(operation: Int8Product, per_channel: int) -> Quantization:
    masks = {arg: per_channel if np.size(values) > 1 else 0 for arg, values in operation.scales.items()}
    has_zero = operation.zero_point is not None or operation.known_zero != 0
    return Quantization(masks, {Arg.SRC: 0} if has_zero else {})


def _finish(emitter: Emitter, operation: Int8Product, primitive: Primitive, operands: list[Operand]) -> None:
    """Execute with scales, zero points and the summand."""
    y, summand = operation.output, operation.summand
    name = primitive.implementation.partition(":")[0]
    if operation.is_large and (name not in _KEEPS_SUMS or "avx512" not in primitive.implementation):
        raise NotSupportedError(operation, f"sums above 2^24 may not be exact in {primitive.implementation}")
    for arg, values in operation.scales.items():
        operands.append((Arg.SCALES_OF | arg, fixed(np.reshape(values, -1)), None))
    if operation.zero_point is not None:
        operands.append((Arg.ZERO_OF | Arg.SRC, operation.zero_point, memory.dense((1,), I32)))
    elif operation.known_zero:
        operands.append((Arg.ZERO_OF | Arg.SRC, fixed(np.array([operation.known_zero], np.int32)), None))
    if summand is not None and emitter.layout.storage.get(summand) is not emitter.layout.storage[y]:
        held = emitter.share("k", summand.dtype)
        emitter.line(f"copyto({emitter.read(y)}.view({held}), {emitter.read(summand)})")
    emitter.execute(primitive, operands)


def summed_number(operation: Operation) -> Value | None:
    """What a fused product is added to, in the place of its result: not what it takes besides."""
    if not isinstance(operation, Int8Product) or operation.summand is None:
        return None
    return operation.summand if operation.inputs.count(operation.summand) == 1 else None
