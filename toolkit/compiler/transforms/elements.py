"""Elementwise operations as oneDNN knows them: what can follow a convolution or matrix product inside one primitive.

`posts_of` reads an operation of the graph as "take one of the inputs, then do this to it".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from toolkit.compiler.ir.elementwise import ELEMENTWISE, ElementwiseOpDef
from toolkit.compiler.ir.operation import Operation
from toolkit.compiler.ir.operations.elementwise import Activation
from toolkit.compiler.ir.post_ops import Apply, BinaryFunction, Combine, PostOp, UnaryFunction
from toolkit.compiler.ir.value import Value
from toolkit.kernels.resources.variables import on_host
from toolkit.kernels.tensors import F32, row_major

#: what oneDNN computes without heed to NaN: not for programs that train, which must notice one
SWALLOW_NAN = frozenset(op for op, row in ELEMENTWISE.items() if row.hides_nan)
#: sums of two
ADDS = ("Add", "AddV2")
_BATCH_NORMS = frozenset({"FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"})


def is_float(value: Value) -> bool:
    """A float32 tensor of known, non-empty shape."""
    return value.dtype == F32 and value.shape is not None and 0 not in value.shape


def posts_of(operation: Operation, subject: Value) -> list[PostOp] | None:
    """What an operation does to one of its inputs; None when it is not elementwise, or not in oneDNN's way.

    Args:
        subject: the input that is computed just before; it must have the shape of the output.
    """
    if not is_float(operation.output) or not is_float(subject) or operation.output.shape != subject.shape:
        return None
    if isinstance(operation, Activation):
        return [operation.function]
    rule = _POSTS.get(operation.op)
    if rule is not None:
        return rule(operation, subject)
    row = ELEMENTWISE.get(operation.op)
    if row is None:
        return None
    if row.post_ops:
        return _gradient(row, operation, subject) if row.gradient else list(row.post_ops)
    return None if row.binary is None else _binary(operation, subject, row.binary, commutative=row.commutative)


def _leaky_relu(operation: Operation, subject: Value) -> list[PostOp]:
    return [Apply(UnaryFunction.RELU, float(operation.step.node.attr("alpha")))]


def _sum(operation: Operation, subject: Value) -> list[PostOp] | None:
    """Of few tensors, the first of which is the subject."""
    first, *others = operation.inputs
    if first is not subject or not 1 <= len(others) <= 3 or any(value.shape != subject.shape for value in others):
        return None
    return [Combine(BinaryFunction.ADD, value) for value in others]


def _gradient(row: ElementwiseOpDef, operation: Operation, subject: Value) -> list[PostOp] | None:
    """Of a function of which the result y is the subject, and the other operand the gradient dy by it."""
    y, dy = operation.inputs
    if y is not subject or dy.shape != subject.shape:
        return None
    by_value = [Combine(BinaryFunction.MUL, subject)] if row.takes_value else []
    return [*row.post_ops, *by_value, Combine(BinaryFunction.MUL, dy)]


def _binary(
    operation: Operation, subject: Value, function: BinaryFunction, *, commutative: bool
) -> list[PostOp] | None:
    first, second = operation.inputs
    if first is second or not all(map(is_float, operation.inputs)):
        return None
    if operation.op.startswith("BiasAdd") and is_channels_first(operation):
        return None
    other = second if first is subject else first
    constant = scalar_of(other)
    if commutative:
        if constant is not None:
            return [_linear(function, constant)]
        return [Combine(function, other)]
    if first is subject:
        if constant is not None and function is BinaryFunction.SUB:
            return [Apply(UnaryFunction.LINEAR, 1.0, -constant)]
        if function is BinaryFunction.DIV and other.is_constant:
            inverse = _inverse(other.constant)
            if constant is not None:
                return None if inverse is None else [Apply(UnaryFunction.LINEAR, float(inverse.reshape(())), 0.0)]
            if inverse is not None:
                return [Combine(BinaryFunction.MUL, Value(F32, inverse.shape, inverse))]
        return [Combine(function, other)]
    if function is BinaryFunction.SUB:  # other - x
        if constant is not None:
            return [Apply(UnaryFunction.LINEAR, -1.0, constant)]
        return [Apply(UnaryFunction.LINEAR, -1.0, 0.0), Combine(BinaryFunction.ADD, other)]
    return None


def _inverse(constant: Any) -> Any:
    """1 / constant; None where that loses digits: it is 0, infinite or denormal."""
    with np.errstate(divide="ignore", over="ignore"):
        inverse = np.float32(1) / np.asarray(constant)
    size = np.abs(inverse)
    return inverse if bool(np.all((size >= np.finfo(np.float32).tiny) & np.isfinite(size))) else None


def _linear(function: BinaryFunction, constant: float) -> Apply:
    if function is BinaryFunction.ADD:
        return Apply(UnaryFunction.LINEAR, 1.0, constant)
    return Apply(UnaryFunction.LINEAR, constant, 0.0)


def _batch_norm(operation: Operation, subject: Value) -> list[PostOp] | None:
    """At inference a batch norm is a scale and an offset for each channel."""
    folded = batch_norm_affine(operation)
    if folded is None or operation.inputs[0] is not subject:
        return None
    scale, offset = folded
    return [
        Combine(BinaryFunction.MUL, Value(F32, scale.shape, scale)),
        Combine(BinaryFunction.ADD, Value(F32, offset.shape, offset)),
    ]


#: ops of which the table of elementwise ops does not say it all
_POSTS: dict[str, Callable[[Operation, Value], list[PostOp] | None]] = {
    "LeakyRelu": _leaky_relu,
    "AddN": _sum,
    **dict.fromkeys(_BATCH_NORMS, _batch_norm),
}


def batch_norm_affine(operation: Operation) -> tuple[Any, Any] | None:
    """(scale, offset) per channel of a batch norm at inference with known statistics."""
    if operation.op not in _BATCH_NORMS or operation.step.node.attr("is_training", True):
        return None
    if is_channels_first(operation) or any(v.users or v.is_result for v in operation.outputs[1:]):
        return None
    parameters = [value.constant for value in operation.inputs[1:5]]
    if any(parameter is None for parameter in parameters):
        return None
    gamma, beta, mean, variance = (np.asarray(p, np.float64) for p in parameters)
    scale = gamma / np.sqrt(variance + float(operation.step.node.attr("epsilon")))
    return scale.astype(np.float32), (beta - mean * scale).astype(np.float32)


def data_format(operation: Operation) -> str:
    """What its node says of where the channels are; "" when it says nothing."""
    layout = operation.step.node.attr("data_format", b"")
    return layout.decode() if isinstance(layout, bytes) else str(layout)


def is_channels_first(operation: Operation) -> bool:
    """Whether an operation could not be made channels last (`layout`)."""
    return data_format(operation).startswith("NC")


def scalar_of(value: Value) -> float | None:
    """The number that a constant holds in all of its elements when it has one element."""
    constant = value.constant
    if constant is None or getattr(constant, "size", 0) != 1:
        return None
    return float(np.asarray(on_host(constant)).reshape(()))


class StridedLayout(NamedTuple):
    """How a tensor lies in memory: sizes in the order in which a library wants them, strides in elements."""

    sizes: tuple[int, ...]
    strides: tuple[int, ...]


class Frame:
    """How a tensor's dimensions are told to a library: as an image (N, C, spatial; channels last), or as rows.

    Attributes:
        shape: of the tensor that is computed; what takes part is broadcast to it.
    """

    def __init__(self, shape: tuple[int, ...], *, image: bool):
        self.shape = shape
        self.image = image

    def layout(self, shape: tuple[int, ...]) -> StridedLayout | None:
        """A dense tensor that is broadcast to `self.shape`; None when that cannot be said."""
        rank = len(self.shape)
        if len(shape) > rank:
            return None
        full = (1,) * (rank - len(shape)) + tuple(shape)
        if any(size not in (1, whole) for size, whole in zip(full, self.shape, strict=True)):
            return None
        if self.image:
            strides = row_major(full)
            order = (0, rank - 1, *range(1, rank - 1))
            return StridedLayout(tuple(full[i] for i in order), tuple(strides[i] for i in order))
        rows, columns = _rows(self.shape)
        if full == self.shape:
            return StridedLayout((rows, columns), (columns, 1))
        if all(size == 1 for size in full):
            return StridedLayout((1, 1), (1, 1))
        if all(size == 1 for size in full[:-1]) and full[-1] == columns:
            return StridedLayout((1, columns), (columns, 1))
        return None


def _rows(shape: tuple[int, ...]) -> tuple[int, int]:
    columns = shape[-1] if shape else 1
    return int(np.prod(shape[:-1], dtype=np.int64)) if len(shape) > 1 else 1, columns


def frame_of(shape: tuple[int, ...]) -> Frame:
    """Tensors of rank 4 and 5 are images; others are rows."""
    return Frame(shape, image=len(shape) in (4, 5))
