"""What follows a product or a convolution of our own while its sums are in registers: the bias, then oneDNN's post-ops.

Unlike oneDNN's, these let NaN through.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from toolkit.compiler.backends.cpu.emission.emit import Emitter
from toolkit.compiler.backends.cpu.emission.instance import Region, Span
from toolkit.compiler.backends.cpu.networks.operations import PackedGemm
from toolkit.compiler.ir.operations.products import Convolution, MatMul
from toolkit.compiler.ir.post_ops import Apply, BinaryFunction, Combine, UnaryFunction
from toolkit.compiler.ir.value import Value
from toolkit.kernels.cpu.native import functions
from toolkit.kernels.cpu.native.code import Code, Lanes
from toolkit.kernels.cpu.native.operations import OPERATORS, elu, leaky_relu, relu
from toolkit.kernels.cpu.native.panels import OperandForm
from toolkit.kernels.tensors import F32

_Apply = Callable[[Code, Lanes, float, float], Lanes]


#: what has a bias and post-ops
Host = Convolution | MatMul | PackedGemm


def can_follow(operation: Host, kinds: Sequence[OperandForm] = tuple(OperandForm)) -> bool:
    """Whether all post-ops of an operation can be had, with operands of these kinds."""
    return all(
        post.function in _COMBINED and _kind(post.other, operation.output) in kinds
        if isinstance(post, Combine)
        else post.function in APPLIED
        for post in operation.post_ops
    )


class Joined(NamedTuple):
    """x becomes algorithm(x, operand)."""

    function: BinaryFunction
    kind: OperandForm


class Epilogue(NamedTuple):
    """What happens to sums, one step after the other."""

    steps: tuple[Apply | Joined, ...]

    @property
    def kinds(self) -> list[OperandForm]:
        """Of the operands, in the order in which they are taken."""
        return [step.kind for step in self.steps if isinstance(step, Joined)]

    def write(self, code: Code, lanes: Sequence[Lanes]) -> list[Lanes]:
        """Lanes of the output from lanes of the sums and of the operands."""
        value, *others = lanes
        for step in self.steps:
            if isinstance(step, Joined):
                value = _COMBINED[step.function](code, value, others.pop(0))
            else:
                value = APPLIED[step.function](code, value, step.alpha, step.beta)
        return [value]


def epilogue_of(operation: Host) -> Epilogue:
    """The bias and the post-ops of an operation."""
    steps: list[Apply | Joined] = []
    if operation.bias is not None:
        steps.append(Joined(BinaryFunction.ADD, OperandForm.COLUMNS))
    for post in operation.post_ops:
        if isinstance(post, Apply):
            steps.append(post)
            continue
        kind = _kind(post.other, operation.output)
        assert kind is not None
        steps.append(Joined(post.function, kind))
    return Epilogue(tuple(steps))


def operands_of(emitter: Emitter, operation: Host) -> Callable[[int], list[Region]]:
    """Where the operands of the epilogue are, for so many rows of the output from its first."""
    bias, y = operation.bias, operation.output
    assert y.shape is not None
    line = 4 * y.shape[-1]
    given: list[tuple[Any, bool]] = []
    if bias is not None:
        given.append((emitter.kept(np.ascontiguousarray(bias, np.float32).reshape(-1)), False))
    for post in operation.post_ops:
        if isinstance(post, Combine):
            constant = post.other.constant
            thing = post.other if constant is None else emitter.kept(np.ascontiguousarray(constant))
            given.append((thing, _kind(post.other, y) is OperandForm.TENSOR))
    return lambda rows: [Span(thing, rows * line if is_tensor else line) for thing, is_tensor in given]


def _kind(other: Value, y: Value) -> OperandForm | None:
    assert y.shape is not None
    shape = other.shape or ()
    if other.dtype != F32:
        return None
    if shape == y.shape:
        return OperandForm.TENSOR
    return OperandForm.COLUMNS if shape and shape[-1] == other.size == y.shape[-1] else None


def _linear(code: Code, x: Lanes, alpha: float, beta: float) -> Lanes:
    scaled = x if alpha == 1.0 else code.mul(x, code.number(alpha, x.type))
    return scaled if beta == 0.0 else code.add(scaled, code.number(beta, x.type))


def _relu(code: Code, x: Lanes, alpha: float, beta: float) -> Lanes:
    return relu(code, x) if alpha == 0.0 else leaky_relu(code, x, alpha)


def _clip(code: Code, x: Lanes, low: float, high: float) -> Lanes:
    bottom, top = code.number(low, x.type), code.number(high, x.type)
    above = code.select(code.compare("olt", x, bottom), bottom, x)
    return code.select(code.compare("ogt", above, top), top, above)


def _swish(code: Code, x: Lanes, alpha: float, beta: float) -> Lanes:
    return code.mul(x, functions.quick_sigmoid(code, _linear(code, x, alpha, 0.0)))


def _hard_swish(code: Code, x: Lanes, alpha: float, beta: float) -> Lanes:
    """As graphs have it, x * clip(x + beta / alpha, 0, 1 / alpha) * alpha: near the corner the sum is exact."""
    gate = _clip(code, code.add(x, code.number(beta / alpha, x.type)), 0.0, 1.0 / alpha)
    return code.mul(code.mul(x, gate), code.number(alpha, x.type))


def _gelu_erf(code: Code, x: Lanes, alpha: float, beta: float) -> Lanes:
    error = functions.erf_float(code, code.mul(x, code.number(math.sqrt(0.5), x.type)))
    return code.mul(code.mul(x, code.number(0.5, x.type)), code.add(error, code.number(1.0, x.type)))


def _gelu_tanh(code: Code, x: Lanes, alpha: float, beta: float) -> Lanes:
    cube = code.mul(code.mul(x, x), code.mul(x, code.number(0.044715, x.type)))
    inner = code.mul(code.add(x, cube), code.number(math.sqrt(2.0 / math.pi), x.type))
    half = code.mul(x, code.number(0.5, x.type))
    return code.mul(half, code.add(functions.tanh(code, inner), code.number(1.0, x.type)))


def _elu(code: Code, x: Lanes, alpha: float, beta: float) -> Lanes:
    return elu(code, x)


def _sigmoid(code: Code, x: Lanes, alpha: float, beta: float) -> Lanes:
    return functions.quick_sigmoid(code, x)


def _named(name: str) -> _Apply:
    def write(code: Code, x: Lanes, alpha: float, beta: float) -> Lanes:
        return OPERATORS[name].write(code, x)

    return write


APPLIED: dict[UnaryFunction, _Apply] = {
    UnaryFunction.RELU: _relu, UnaryFunction.LINEAR: _linear, UnaryFunction.CLIP: _clip, UnaryFunction.CLIP_V2: _clip,
    UnaryFunction.SWISH: _swish, UnaryFunction.HARD_SWISH: _hard_swish, UnaryFunction.GELU_ERF: _gelu_erf,
    UnaryFunction.GELU_TANH: _gelu_tanh, UnaryFunction.ELU: _elu, UnaryFunction.LOGISTIC: _sigmoid,
    UnaryFunction.TANH: _named("Tanh"), UnaryFunction.ABS: _named("Abs"), UnaryFunction.SQUARE: _named("Square"),
    UnaryFunction.SQRT: _named("Sqrt"),
}  # fmt: skip
_COMBINED: dict[BinaryFunction, Callable[[Code, Lanes, Lanes], Lanes]] = {
    BinaryFunction.ADD: Code.add, BinaryFunction.SUB: Code.sub, BinaryFunction.MUL: Code.mul,
    BinaryFunction.DIV: Code.div,
}  # fmt: skip
#: functions that oneDNN needs some twenty cycles for, and that take half as long here
QUICK = frozenset({UnaryFunction.SWISH, UnaryFunction.LOGISTIC})
