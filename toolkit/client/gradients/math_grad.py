"""Gradients of elementwise arithmetic, comparisons and complex numbers."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from toolkit.client import array_ops, math_ops, ops
from toolkit.client.convert import constant
from toolkit.client.gradients.common import conj, reduce_broadcast
from toolkit.client.gradients.registry import Gradient, gradient, no_gradient
from toolkit.client.operation import Operation
from toolkit.client.scopes import control_dependencies
from toolkit.client.tensor import Tensor

no_gradient(
    "Less", "LessEqual", "Greater", "GreaterEqual", "Equal", "NotEqual", "ApproximateEqual", "LogicalAnd",
    "LogicalOr", "LogicalNot", "Floor", "Ceil", "Round", "Rint", "IsFinite", "IsInf", "IsNan", "FloorDiv",
    "TruncateDiv", "Range", "LinSpace", "ArgMax", "ArgMin", "Bucketize", "BitwiseAnd", "BitwiseOr",
    "BitwiseXor", "Invert", "LeftShift", "RightShift", "PopulationCount", "Bincount", "HistogramFixedWidth",
)  # fmt: skip


def _like(value: float, x: Tensor) -> Tensor:
    return constant(np.array(value, x.dtype.base.numpy))


# -- one input --------------------------------------------------------------------------------------------


#: op to the derivative's factor, as a function of the input x and the output y
_FACTORS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "Exp": lambda x, y: y,
    "Expm1": lambda x, y: ops.exp(x),
    "Log": lambda x, y: ops.reciprocal(x),
    "Log1p": lambda x, y: ops.reciprocal(_like(1, x) + x),
    "Sinh": lambda x, y: ops.cosh(x),
    "Cosh": lambda x, y: ops.sinh(x),
    "Asinh": lambda x, y: ops.reciprocal(ops.cosh(y)),
    "Acosh": lambda x, y: ops.reciprocal(ops.sinh(y)),
    "Atanh": lambda x, y: ops.reciprocal(_like(1, x) - ops.square(x)),
    "Sin": lambda x, y: ops.cos(x),
    "Cos": lambda x, y: -ops.sin(x),
    "Tan": lambda x, y: ops.square(ops.reciprocal(ops.cos(x))),
    "Asin": lambda x, y: ops.rsqrt(_like(1, x) - ops.square(x)),
    "Acos": lambda x, y: -ops.rsqrt(_like(1, x) - ops.square(x)),
    "Atan": lambda x, y: ops.reciprocal(_like(1, x) + ops.square(x)),
    "Erf": lambda x, y: _like(2 / math.sqrt(math.pi), x) * ops.exp(-ops.square(x)),
    "Erfc": lambda x, y: _like(-2 / math.sqrt(math.pi), x) * ops.exp(-ops.square(x)),
    "Erfinv": lambda x, y: _like(math.sqrt(math.pi) / 2, x) * ops.exp(ops.square(y)),
    "Ndtri": lambda x, y: _like(math.sqrt(2 * math.pi), x) * ops.exp(ops.square(y) / _like(2, x)),
    "Lgamma": lambda x, y: ops.digamma(x),
    "Digamma": lambda x, y: ops.polygamma(_like(1, x), x),
    "BesselI0e": lambda x, y: ops.bessel_i1e(x) - ops.sign(x) * y,
    "Square": lambda x, y: x * _like(2, x),
}  # fmt: skip


@gradient(*_FACTORS)
def elementwise(op: Operation, grad: Tensor) -> Gradient:
    """grad times the conjugate of f'(x)."""
    with control_dependencies([grad]):
        return grad * conj(_FACTORS[op.type](op.inputs[0], op.outputs[0]))


@gradient("Neg")
def neg(op: Operation, grad: Tensor) -> Gradient:
    return -grad


@gradient("Abs")
def abs_(op: Operation, grad: Tensor) -> Gradient:
    return grad * ops.sign(op.inputs[0])


@gradient("Sign")
def sign(op: Operation, grad: Tensor) -> Gradient:
    return array_ops.zeros_like(op.inputs[0])


#: ops whose gradient is an op of its own, of the output and the gradient
_OUTPUT_GRADS = {
    "Tanh": "TanhGrad", "Sigmoid": "SigmoidGrad", "Sqrt": "SqrtGrad", "Rsqrt": "RsqrtGrad",
    "Reciprocal": "ReciprocalGrad", "Inv": "ReciprocalGrad",
}  # fmt: skip


@gradient(*_OUTPUT_GRADS)
def by_output(op: Operation, grad: Tensor) -> Gradient:
    with control_dependencies([grad]):
        return ops.function(_OUTPUT_GRADS[op.type])(conj(op.outputs[0]), grad)


@gradient("TanhGrad")
def tanh_grad(op: Operation, grad: Tensor) -> list[Gradient]:
    y, dy = op.inputs
    return [grad * _like(-2, y) * dy * y, ops.tanh_grad(y, grad)]


@gradient("SigmoidGrad")
def sigmoid_grad(op: Operation, grad: Tensor) -> list[Gradient]:
    y, dy = op.inputs
    scaled = grad * dy
    return [scaled - _like(2, y) * scaled * y, ops.sigmoid_grad(y, grad)]


@gradient("SqrtGrad")
def sqrt_grad(op: Operation, grad: Tensor) -> list[Gradient]:
    ratio = grad / op.inputs[0]
    return [-ratio * op.outputs[0], _like(0.5, grad) * ratio]


@gradient("RsqrtGrad")
def rsqrt_grad(op: Operation, grad: Tensor) -> list[Gradient]:
    y, dy = op.inputs
    return [_like(-1.5, y) * grad * dy * ops.square(y), ops.rsqrt_grad(y, grad)]


@gradient("ReciprocalGrad", "InvGrad")
def reciprocal_grad(op: Operation, grad: Tensor) -> list[Gradient]:
    y, dy = op.inputs
    return [grad * _like(-2, y) * dy * y, ops.reciprocal_grad(y, grad)]


# -- two inputs -------------------------------------------------------------------------------------------


@gradient("Add", "AddV2")
def add(op: Operation, grad: Tensor) -> list[Gradient]:
    x, y = op.inputs
    return [*reduce_broadcast(x, y, grad, grad)]


@gradient("Sub")
def sub(op: Operation, grad: Tensor) -> list[Gradient]:
    x, y = op.inputs
    return [*reduce_broadcast(x, y, grad, -grad)]


@gradient("Mul")
def mul(op: Operation, grad: Tensor) -> list[Gradient]:
    x, y = op.inputs
    return [*reduce_broadcast(x, y, grad * conj(y), conj(x) * grad)]


@gradient("MulNoNan")
def mul_no_nan(op: Operation, grad: Tensor) -> list[Gradient]:
    x, y = op.inputs
    return [*reduce_broadcast(x, y, ops.mul_no_nan(grad, y), ops.mul_no_nan(x, grad))]


@gradient("Div", "RealDiv")
def div(op: Operation, grad: Tensor) -> list[Gradient]:
    x, y = op.inputs
    cx, cy = conj(x), conj(y)
    gy = grad * ops.real_div(ops.real_div(-cx, cy), cy)
    return [*reduce_broadcast(x, y, ops.real_div(grad, cy), gy)]


@gradient("DivNoNan")
def div_no_nan(op: Operation, grad: Tensor) -> list[Gradient]:
    x, y = op.inputs
    cx, cy = conj(x), conj(y)
    gy = grad * ops.div_no_nan(ops.div_no_nan(-cx, cy), cy)
    return [*reduce_broadcast(x, y, ops.div_no_nan(grad, cy), gy)]


@gradient("FloorMod")
def floor_mod(op: Operation, grad: Tensor) -> list[Gradient]:
    x, y = op.inputs
    return [*reduce_broadcast(x, y, grad, grad * -ops.floor_div(x, y))]


@gradient("Mod", "TruncateMod")
def truncate_mod(op: Operation, grad: Tensor) -> list[Gradient]:
    x, y = op.inputs
    quotient = ops.real_div(x - op.outputs[0], y)
    return [*reduce_broadcast(x, y, grad, grad * -quotient)]


@gradient("Pow")
def pow_(op: Operation, grad: Tensor) -> list[Gradient]:
    x, y = op.inputs
    z = conj(op.outputs[0])
    cx, cy = conj(x), conj(y)
    # log(x) where it is defined: elsewhere the derivative by the exponent is taken as 0
    if x.dtype.base.is_complex:
        valid = ops.not_equal(cx, _like(0, cx))
    else:
        valid = ops.greater(cx, _like(0, cx))
    log = array_ops.where(valid, ops.log(array_ops.where(valid, cx, array_ops.ones_like(cx))), array_ops.zeros_like(cx))
    return [*reduce_broadcast(x, y, grad * cy * ops.pow(cx, cy - _like(1, cy)), grad * z * log)]


@gradient("Maximum", "Minimum")
def extremum(op: Operation, grad: Tensor) -> list[Gradient]:
    """The gradient goes where the larger (smaller) value came from; to x when both are equal."""
    x, y = op.inputs
    chosen = ops.greater_equal(x, y) if op.type == "Maximum" else ops.less_equal(x, y)
    zeros = _like(0, grad)
    return [*reduce_broadcast(x, y, array_ops.where(chosen, grad, zeros), array_ops.where(chosen, zeros, grad))]


@gradient("NextAfter")
def next_after(op: Operation, grad: Tensor) -> list[Gradient]:
    """1 by x; 0 by the direction."""
    x, y = op.inputs
    return [*reduce_broadcast(x, y, grad, array_ops.zeros_like(grad))]


@gradient("SquaredDifference")
def squared_difference(op: Operation, grad: Tensor) -> list[Gradient]:
    x, y = op.inputs
    with control_dependencies([grad]):
        gx = _like(2, grad) * grad * (x - y)
    return [*reduce_broadcast(x, y, gx, -gx)]


@gradient("Atan2")
def atan2(op: Operation, grad: Tensor) -> list[Gradient]:
    y, x = op.inputs
    scaled = grad / (ops.square(x) + ops.square(y))
    return [*reduce_broadcast(y, x, x * scaled, -y * scaled)]


@gradient("Xlogy")
def xlogy(op: Operation, grad: Tensor) -> list[Gradient]:
    x, y = op.inputs
    positive = ops.cast(ops.not_equal(x, _like(0, x)), DstT=x.dtype.base)
    return [*reduce_broadcast(x, y, grad * ops.xlogy(positive, y), grad * ops.xdivy(x, y))]


@gradient("Xlog1py")
def xlog1py(op: Operation, grad: Tensor) -> list[Gradient]:
    x, y = op.inputs
    positive = ops.cast(ops.not_equal(x, _like(0, x)), DstT=x.dtype.base)
    return [*reduce_broadcast(x, y, grad * ops.xlog1py(positive, y), grad * ops.xdivy(x, y + _like(1, y)))]


@gradient("Xdivy")
def xdivy(op: Operation, grad: Tensor) -> list[Gradient]:
    x, y = op.inputs
    positive = ops.cast(ops.not_equal(x, _like(0, x)), DstT=x.dtype.base)
    return [*reduce_broadcast(x, y, grad * ops.xdivy(positive, y), grad * ops.xdivy(-x, ops.square(y)))]


@gradient("Igamma")
def igamma(op: Operation, grad: Tensor) -> list[Gradient]:
    a, x = op.inputs
    ga = grad * ops.igamma_grad_a(a, x)
    gx = grad * ops.exp(-x + (a - _like(1, a)) * ops.log(x) - ops.lgamma(a))
    return [*reduce_broadcast(a, x, ga, gx)]


# -- choosing ---------------------------------------------------------------------------------------------


@gradient("Select")
def select(op: Operation, grad: Tensor) -> list[Gradient]:
    condition = op.inputs[0]
    zeros = array_ops.zeros_like(grad)
    return [None, ops.select(condition, grad, zeros), ops.select(condition, zeros, grad)]


@gradient("SelectV2")
def select_v2(op: Operation, grad: Tensor) -> list[Gradient]:
    condition, x, y = op.inputs
    zeros = _like(0, grad)
    gx = array_ops.where(condition, grad, zeros)
    gy = array_ops.where(condition, zeros, grad)
    result = op.outputs[0]
    return [None, reduce_broadcast(x, result, gx, None)[0], reduce_broadcast(y, result, gy, None)[0]]


@gradient("ClipByValue")
def clip_by_value(op: Operation, grad: Tensor) -> list[Gradient]:
    x, low, high = op.inputs
    below, above = ops.less(x, low), ops.greater(x, high)
    zeros = array_ops.zeros_like(grad)
    inside = array_ops.where(ops.logical_or(below, above), zeros, grad)
    return [
        inside,
        reduce_broadcast(low, x, array_ops.where(below, grad, zeros), None)[0],
        reduce_broadcast(high, x, array_ops.where(above, grad, zeros), None)[0],
    ]


@gradient("AddN")
def add_n(op: Operation, grad: Tensor) -> list[Gradient]:
    return [grad] * len(op.inputs)


@gradient("AccumulateNV2")
def accumulate_n(op: Operation, grad: Tensor) -> list[Gradient]:
    return [grad] * len(op.inputs)


@gradient("Cast")
def cast(op: Operation, grad: Tensor) -> Gradient:
    source = op.inputs[0].dtype.base
    if source.kind in "fc" and op.outputs[0].dtype.base.kind in "fc":
        return math_ops.cast(grad, source)
    return None


# -- complex numbers ---------------------------------------------------------------------------------------


@gradient("Real")
def real(op: Operation, grad: Tensor) -> Gradient:
    return ops.complex(grad, _like(0, grad), Tout=op.inputs[0].dtype.base)


@gradient("Imag")
def imag(op: Operation, grad: Tensor) -> Gradient:
    return ops.complex(_like(0, grad), grad, Tout=op.inputs[0].dtype.base)


@gradient("Conj")
def conj_grad(op: Operation, grad: Tensor) -> Gradient:
    return ops.conj(grad)


@gradient("Complex")
def complex_(op: Operation, grad: Tensor) -> list[Gradient]:
    x, y = op.inputs
    part = x.dtype.base
    return [*reduce_broadcast(x, y, ops.real(grad, Tout=part), ops.imag(grad, Tout=part))]


@gradient("ComplexAbs")
def complex_abs(op: Operation, grad: Tensor) -> Gradient:
    x = op.inputs[0]
    zero = _like(0, grad)
    return ops.div_no_nan(
        ops.complex(grad, zero, Tout=x.dtype.base) * x, ops.complex(op.outputs[0], zero, Tout=x.dtype.base)
    )


@gradient("Angle")
def angle(op: Operation, grad: Tensor) -> Gradient:
    x = op.inputs[0]
    part = grad.dtype.base
    re, im = ops.real(x, Tout=part), ops.imag(x, Tout=part)
    wide = x.dtype.base
    rotated = ops.reciprocal(ops.complex(im, re, Tout=wide))
    return -ops.complex(grad, _like(0, grad), Tout=wide) * rotated
