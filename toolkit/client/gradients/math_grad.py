"""Gradients of elementwise arithmetic, comparisons and complex numbers."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import constant
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.scopes import control_dependencies
from toolkit.client.construction.tensor import Tensor
from toolkit.client.gradients.common import conj, reduce_broadcast, same_known_shape, shape_of
from toolkit.client.gradients.registry import Gradient, gradient, no_gradient
from toolkit.client.math import math_ops
from toolkit.graph import dtypes

no_gradient(
    "Less", "LessEqual", "Greater", "GreaterEqual", "Equal", "NotEqual", "ApproximateEqual", "LogicalAnd",
    "LogicalOr", "LogicalNot", "Floor", "Ceil", "Round", "Rint", "IsFinite", "IsInf", "IsNan", "FloorDiv",
    "TruncateDiv", "Range", "LinSpace", "ArgMax", "ArgMin", "Bucketize", "BitwiseAnd", "BitwiseOr",
    "BitwiseXor", "Invert", "LeftShift", "RightShift", "PopulationCount", "Bincount", "HistogramFixedWidth",
)  # fmt: skip


def _like(value: float, x: Tensor) -> Tensor:
    return constant(np.array(value, x.dtype.base.numpy))


# -- one input --------------------------------------------------------------------------------------------


#: op to grad * f'(x), as a function of the gradient, the input x and the output y; complex ones conjugated before
_PRODUCTS: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "Exp": lambda g, x, y: g * y,
    "Expm1": lambda g, x, y: g * ops.exp(x),
    "Log": lambda g, x, y: g * ops.reciprocal(x),
    "Log1p": lambda g, x, y: g * ops.reciprocal(1 + x),
    "Sinh": lambda g, x, y: g * ops.cosh(x),
    "Cosh": lambda g, x, y: g * ops.sinh(x),
    "Asinh": lambda g, x, y: g / ops.cosh(y),
    "Acosh": lambda g, x, y: g / ops.sinh(y),
    "Atanh": lambda g, x, y: g * ops.reciprocal(_with_one(math_ops.subtract, g, ops.square(x))),
    "Sin": lambda g, x, y: g * ops.cos(x),
    "Cos": lambda g, x, y: -g * ops.sin(x),
    "Tan": lambda g, x, y: ops.square(ops.reciprocal(ops.cos(x))) * g,
    "Asin": lambda g, x, y: _over_root(g, x),
    "Acos": lambda g, x, y: _over_root(g, x, negate=True),
    "Atan": lambda g, x, y: g * ops.reciprocal(_with_one(math_ops.add, g, ops.square(x))),
    "Lgamma": lambda g, x, y: g * ops.digamma(x),
    "Digamma": lambda g, x, y: g * ops.polygamma(_like(1, x), x),
    "BesselI0e": lambda g, x, y: g * (ops.bessel_i1e(x) - ops.sign(x) * y),
    "Square": lambda g, x, y: math_ops.multiply(g, math_ops.multiply(x, _like(2, x))),
}  # fmt: skip
_OF_OUTPUT = frozenset({"Exp", "Asinh", "Acosh", "BesselI0e"})
_OF_INPUT_TOO = frozenset({"BesselI0e"})


def _with_one(combine: Callable[[Tensor, Tensor], Tensor], grad: Tensor, squared: Tensor) -> Tensor:
    return combine(_like(1, grad), squared)


def _over_root(grad: Tensor, x: Tensor, negate: bool = False) -> Tensor:
    """grad / sqrt(1 - x^2)."""
    inverse = ops.reciprocal(ops.sqrt(_with_one(math_ops.subtract, grad, ops.square(x))))
    return (-grad if negate else grad) * inverse


@gradient(*_PRODUCTS)
def elementwise(op: Operation, grad: Tensor) -> Gradient:
    """grad times the conjugate of f'(x), computed when the gradient is there."""
    x, y = op.inputs[0], op.outputs[0]
    with control_dependencies([grad]):
        if op.type in _OF_OUTPUT:
            y = conj(y)
        if op.type not in _OF_OUTPUT or op.type in _OF_INPUT_TOO:
            x = conj(x)
        return _PRODUCTS[op.type](grad, x, y)


#: op to a factor and the exponent's square, of the input or the output: grad * factor * exp(...)
_GAUSSIAN: dict[str, float] = {
    "Erf": 2 / math.sqrt(math.pi), "Erfc": -2 / math.sqrt(math.pi), "Erfinv": math.sqrt(math.pi) / 2,
    "Ndtri": math.sqrt(2 * math.pi),
}  # fmt: skip


@gradient(*_GAUSSIAN)
def gaussian(op: Operation, grad: Tensor) -> Gradient:
    factor = _like(_GAUSSIAN[op.type], grad)
    with control_dependencies([grad]):
        # grad * factor comes first, which says in which order the nodes are numbered
        scaled = grad * factor
        if op.type in ("Erf", "Erfc"):
            return scaled * ops.exp(-ops.square(conj(op.inputs[0])))
        squared = ops.square(op.outputs[0])
        return scaled * ops.exp(squared / 2.0 if op.type == "Ndtri" else squared)


@gradient("Neg")
def neg(op: Operation, grad: Tensor) -> Gradient:
    return -grad


@gradient("Abs")
def abs_(op: Operation, grad: Tensor) -> Gradient:
    return grad * ops.sign(op.inputs[0])


@gradient("Sign")
def sign(op: Operation, grad: Tensor) -> Gradient:
    return array_ops.zeros_like(op.inputs[0])


#: ops whose gradient is an op of its own, of the output and the gradient; of complex numbers most take the conjugate
#: themselves
_OUTPUT_GRADS = {
    "Tanh": "TanhGrad", "Sigmoid": "SigmoidGrad", "Sqrt": "SqrtGrad", "Rsqrt": "RsqrtGrad",
    "Reciprocal": "ReciprocalGrad", "Inv": "ReciprocalGrad",
}  # fmt: skip


@gradient(*_OUTPUT_GRADS)
def by_output(op: Operation, grad: Tensor) -> Gradient:
    with control_dependencies([grad]):
        y = conj(op.outputs[0]) if op.type in ("Tanh", "Sigmoid") else op.outputs[0]
        return ops.function(_OUTPUT_GRADS[op.type])(y, grad)


@gradient("TanhGrad")
def tanh_grad(op: Operation, grad: Tensor) -> list[Gradient]:
    with control_dependencies([grad]):
        y, dy = conj(op.inputs[0]), conj(op.inputs[1])
        return [grad * -2.0 * dy * y, ops.tanh_grad(y, grad)]


@gradient("SigmoidGrad")
def sigmoid_grad(op: Operation, grad: Tensor) -> list[Gradient]:
    with control_dependencies([grad]):
        y, dy = conj(op.inputs[0]), conj(op.inputs[1])
        scaled = grad * dy
        return [scaled - 2.0 * scaled * y, ops.sigmoid_grad(y, grad)]


@gradient("SqrtGrad")
def sqrt_grad(op: Operation, grad: Tensor) -> list[Gradient]:
    with control_dependencies([grad]):
        ratio = grad / op.inputs[0]
        return [-conj(ratio) * op.outputs[0], 0.5 * ratio]


@gradient("RsqrtGrad")
def rsqrt_grad(op: Operation, grad: Tensor) -> list[Gradient]:
    with control_dependencies([grad]):
        y, g = conj(op.inputs[0]), conj(grad)
        return [-1.5 * g * op.inputs[1] * ops.square(y), ops.rsqrt_grad(y, grad)]


@gradient("ReciprocalGrad", "InvGrad")
def reciprocal_grad(op: Operation, grad: Tensor) -> list[Gradient]:
    with control_dependencies([grad]):
        y, g = conj(op.inputs[0]), conj(grad)
        return [g * -2.0 * op.inputs[1] * y, ops.reciprocal_grad(y, grad)]


# -- two inputs -------------------------------------------------------------------------------------------


@gradient("Add", "AddV2")
def add(op: Operation, grad: Tensor) -> list[Gradient]:
    x, y = op.inputs
    if same_known_shape(x, y, grad):
        return [grad, grad]
    return [*reduce_broadcast(x, y, grad, grad)]


@gradient("Sub")
def sub(op: Operation, grad: Tensor) -> list[Gradient]:
    x, y = op.inputs
    if same_known_shape(x, y, grad):
        return [grad, -grad]
    return [*reduce_broadcast(x, y, grad, -grad)]


@gradient("Mul")
def mul(op: Operation, grad: Tensor) -> list[Gradient]:
    x, y = op.inputs
    if same_known_shape(x, y, grad) and grad.dtype.base in (dtypes.int32, dtypes.float32):
        return [ops.mul(grad, y), ops.mul(grad, x)]
    gx = ops.mul(grad, conj(y))
    return [*reduce_broadcast(x, y, gx, ops.mul(conj(x), grad))]


@gradient("MulNoNan")
def mul_no_nan(op: Operation, grad: Tensor) -> list[Gradient]:
    x, y = op.inputs
    gx, gy = ops.mul_no_nan(grad, conj(y)), ops.mul_no_nan(conj(x), grad)  # TensorFlow's is right for real numbers only
    return [gx, gy] if same_known_shape(x, y, grad) else [*reduce_broadcast(x, y, gx, gy)]


def _quotient(op: Operation, grad: Tensor, divide: Callable[[Tensor, Tensor], Tensor]) -> list[Gradient]:
    x, y = op.inputs
    cx, cy = conj(x), conj(y)
    gx = divide(grad, cy)
    return [*reduce_broadcast(x, y, gx, grad * divide(divide(-cx, cy), cy))]


@gradient("Div")
def div(op: Operation, grad: Tensor) -> list[Gradient]:
    return _quotient(op, grad, math_ops.divide)


@gradient("RealDiv")
def real_div(op: Operation, grad: Tensor) -> list[Gradient]:
    return _quotient(op, grad, ops.real_div)


@gradient("DivNoNan")
def div_no_nan(op: Operation, grad: Tensor) -> list[Gradient]:
    return _quotient(op, grad, lambda a, b: ops.div_no_nan(a, b, name="div_no_nan"))


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
    cx, cy = conj(x), conj(y)
    gx = grad * cy * math_ops.pow(cx, cy - 1)
    # log(x) where it is defined: elsewhere the derivative by the exponent is taken as 0
    valid = math_ops.not_equal(cx, 0) if x.dtype.base.is_complex else cx > 0
    safe = array_ops.where(valid, cx, array_ops.ones_like(x))
    log = array_ops.where(valid, ops.log(safe), array_ops.zeros_like(x))
    return [*reduce_broadcast(x, y, gx, grad * conj(op.outputs[0]) * log)]


@gradient("Maximum", "Minimum")
def extremum(op: Operation, grad: Tensor) -> list[Gradient]:
    """The gradient goes where the larger (smaller) value came from; to x when both are equal."""
    x, y = op.inputs
    zeros = array_ops.zeros_like(grad)
    chosen = ops.greater_equal(x, y) if op.type == "Maximum" else ops.less_equal(x, y)
    gx = array_ops.where_v2(chosen, grad, zeros)
    return [*reduce_broadcast(x, y, gx, array_ops.where_v2(chosen, zeros, grad))]


@gradient("NextAfter")
def next_after(op: Operation, grad: Tensor) -> list[Gradient]:
    """1 by x; 0 by the direction."""
    x, y = op.inputs
    return [*reduce_broadcast(x, y, grad, array_ops.zeros_like(grad))]


@gradient("SquaredDifference")
def squared_difference(op: Operation, grad: Tensor) -> list[Gradient]:
    x, y = op.inputs
    with control_dependencies([grad]):
        # of complex numbers it is |x - y|^2: twice the real part, where TensorFlow takes twice the gradient
        twice = grad + conj(grad) if grad.dtype.base.is_complex else math_ops.scalar_mul(2.0, grad)
        gx = twice * (x - y)
    if same_known_shape(x, y, grad):
        return [gx, -gx]
    return [*reduce_broadcast(x, y, gx, -gx)]


@gradient("Atan2")
def atan2(op: Operation, grad: Tensor) -> list[Gradient]:
    y, x = op.inputs
    with control_dependencies([grad]):
        scaled = grad / (ops.square(y) + ops.square(x))
        gy = x * scaled
        return [*reduce_broadcast(y, x, gy, -y * scaled)]


def _by_arguments(
    op: Operation, grad: Tensor, partials: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
) -> list[Gradient]:
    """Two inputs whose shapes are compared in the step, before their partial derivatives are computed.

    Complex ones are conjugated, which TensorFlow leaves out.
    """
    x, y = op.inputs
    sizes = shape_of(x), shape_of(y)
    axes = ops.broadcast_gradient_args(*sizes)
    with control_dependencies([grad]):
        derivatives = partials(conj(x), conj(y))
        return [
            array_ops.reshape(math_ops.reduce_sum(partial * grad, along), size)
            for partial, along, size in zip(derivatives, axes, sizes, strict=True)
        ]


def _nonzero(x: Tensor) -> Tensor:
    return math_ops.cast(math_ops.not_equal(x, math_ops.cast(0.0, x.dtype.base)), x.dtype.base)


@gradient("Xlogy")
def xlogy(op: Operation, grad: Tensor) -> list[Gradient]:
    return _by_arguments(op, grad, lambda x, y: (ops.xlogy(_nonzero(x), y), ops.xdivy(x, y)))


@gradient("Xlog1py")
def xlog1py(op: Operation, grad: Tensor) -> list[Gradient]:
    return _by_arguments(op, grad, lambda x, y: (ops.xlog1py(_nonzero(x), y), ops.xdivy(x, y + 1.0)))


@gradient("Xdivy")
def xdivy(op: Operation, grad: Tensor) -> list[Gradient]:
    return _by_arguments(op, grad, lambda x, y: (ops.xdivy(_nonzero(x), y), ops.xdivy(ops.neg(x), y**2)))


@gradient("Igamma")
def igamma(op: Operation, grad: Tensor) -> list[Gradient]:
    def partials(a: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        by_a = ops.igamma_grad_a(a, x)
        return by_a, ops.exp(-x + (a - 1) * ops.log(x) - ops.lgamma(a))

    return _by_arguments(op, grad, partials)


# -- choosing ---------------------------------------------------------------------------------------------


@gradient("Select")
def select(op: Operation, grad: Tensor) -> list[Gradient]:
    condition, x, _ = op.inputs
    zeros = array_ops.zeros_like(x)
    return [None, array_ops.where(condition, grad, zeros), array_ops.where(condition, zeros, grad)]


@gradient("SelectV2")
def select_v2(op: Operation, grad: Tensor) -> list[Gradient]:
    condition, x, y = op.inputs
    zeros = array_ops.zeros([], grad.dtype.base)
    gx = array_ops.where_v2(condition, grad, zeros)
    gy = array_ops.where_v2(condition, zeros, grad)
    result = op.outputs[0]
    return [None, reduce_broadcast(x, result, gx, None)[0], reduce_broadcast(y, result, gy, None)[0]]


@gradient("ClipByValue")
def clip_by_value(op: Operation, grad: Tensor) -> list[Gradient]:
    """To the value where it is inside, to the bound that it was clipped to elsewhere."""
    x, low, high = op.inputs
    sizes = [array_ops.shape(tensor) for tensor in (x, low, high)]
    zeros = array_ops.zeros(array_ops.shape(grad), grad.dtype.base)
    below, above = ops.less(x, low), ops.greater(x, high)
    _, low_axes = ops.broadcast_gradient_args(sizes[0], sizes[1])
    _, high_axes = ops.broadcast_gradient_args(sizes[0], sizes[2])
    outside = ops.logical_or(below, above)
    inside = array_ops.where(outside, zeros, grad)
    to_low = array_ops.where(below, grad, zeros)
    to_high = array_ops.where(above, grad, zeros)
    return [
        inside,
        array_ops.reshape(math_ops.reduce_sum(to_low, low_axes), sizes[1]),
        array_ops.reshape(math_ops.reduce_sum(to_high, high_axes), sizes[2]),
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
