"""TensorFlow's elementwise ops over lanes: what each computes, and of which types.

Results are those of the NumPy kernels: the same bits where those are exact (sums, quotients, square roots,
comparisons, choices), a few units in the last place apart where either is an approximation.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from toolkit.kernels.cpu.native import functions
from toolkit.kernels.cpu.native.code import BITS, TYPES, Code, Lanes

Write = Callable[..., Lanes]
FLOATS = frozenset({"float32", "float64"})
INTEGERS = frozenset({"int32", "int64"})
NUMBERS = FLOATS | INTEGERS


@dataclass(frozen=True, slots=True)
class Operator:
    """Attributes:
    write: (code, *lanes, **attributes) -> lanes.
    types: numpy's names of the types it takes.
    attributes: which of the node's it wants.
    weight: roughly how many instructions it is.
    divides: it divides integers, which has no result for every divisor: the second operand must be known.
    """

    write: Write
    types: frozenset[str]
    attributes: tuple[str, ...] = ()
    weight: int = 1
    divides: bool = False


OPERATORS: dict[str, Operator] = {}


def operator(
    *ops: str, types: frozenset[str] = FLOATS, attributes: tuple[str, ...] = (), weight: int = 1, divides: bool = False
) -> Callable[[Write], Write]:
    """Register how ops are written."""

    def register(write: Write) -> Write:
        for op in ops:
            if op in OPERATORS:
                raise ValueError(f"two ways to write {op}")
            OPERATORS[op] = Operator(write, types, attributes, weight, divides)
        return write

    return register


@functools.cache
def accepts(op: str, inputs: tuple[Any, ...], output: Any) -> bool:
    """Whether an op of these numpy types can be written."""
    if op == "Cast":
        return (inputs[0].name, output.name) in _CASTS
    found = OPERATORS.get(op)
    if found is None or output.name not in TYPES:
        return False
    values = [dtype.name for dtype in inputs]
    if op in ("Select", "SelectV2"):
        return values[0] == "bool" and values[1] == values[2] and values[1] in found.types
    return len(set(values)) == 1 and values[0] in found.types


# -- arithmetic --------------------------------------------------------------------------------------------------

operator("Add", "AddV2", "BiasAdd", "BiasAddV1", types=NUMBERS)(Code.add)
operator("Sub", types=NUMBERS)(Code.sub)
operator("Mul", types=NUMBERS)(Code.mul)
operator("RealDiv")(Code.div)
operator("Neg", types=NUMBERS)(Code.neg)


@operator("FloorMod", types=INTEGERS, weight=12, divides=True)
def floor_mod(code: Code, a: Lanes, b: Lanes) -> Lanes:
    """The remainder with the sign of the divisor."""
    rest = code.binary("srem", a, b)
    return code.select(_is_rounded_up(code, rest, b), code.add(rest, b), rest)


@operator("FloorDiv", types=INTEGERS, weight=12, divides=True)
def floor_div(code: Code, a: Lanes, b: Lanes) -> Lanes:
    quotient, rest = code.binary("sdiv", a, b), code.binary("srem", a, b)
    return code.select(_is_rounded_up(code, rest, b), code.sub(quotient, code.number(1, a.type)), quotient)


def _is_rounded_up(code: Code, rest: Lanes, divisor: Lanes) -> Lanes:
    """Whether a quotient rounded toward zero is above the true one: there is a rest, of the other sign."""
    zero = code.number(0, rest.type)
    other_sign = code.compare("slt", code.binary("xor", rest, divisor), zero)
    return code.binary("and", code.compare("ne", rest, zero), other_sign)


@operator("AddN", types=NUMBERS, weight=2)
def add_n(code: Code, first: Lanes, *others: Lanes) -> Lanes:
    for other in others:
        first = code.add(first, other)
    return first


@operator("DivNoNan", weight=3)
def div_no_nan(code: Code, a: Lanes, b: Lanes) -> Lanes:
    zero = code.number(0.0, a.type)
    return code.select(code.compare("oeq", b, zero), zero, code.div(a, b))


@operator("MulNoNan", weight=3)
def mul_no_nan(code: Code, a: Lanes, b: Lanes) -> Lanes:
    zero = code.number(0.0, a.type)
    return code.select(code.compare("oeq", b, zero), zero, code.mul(a, b))


@operator("Square", types=NUMBERS)
def square(code: Code, a: Lanes) -> Lanes:
    return code.mul(a, a)


@operator("SquaredDifference", types=NUMBERS, weight=2)
def squared_difference(code: Code, a: Lanes, b: Lanes) -> Lanes:
    return square(code, code.sub(a, b))


@operator("Abs", types=NUMBERS)
def absolute(code: Code, a: Lanes) -> Lanes:
    if a.type in BITS:
        return code.intrinsic("fabs", a)
    return code.select(code.compare("slt", a, code.number(0, a.type)), code.neg(a), a)


@operator("Sign", weight=4)
def sign(code: Code, a: Lanes) -> Lanes:
    """-1, 1, or the number itself: 0 and NaN stay."""
    zero, one = code.number(0.0, a.type), code.number(1.0, a.type)
    value = code.select(code.compare("ogt", a, zero), one, a)
    return code.select(code.compare("olt", a, zero), code.neg(one), value)


@operator("Reciprocal", "Inv")
def reciprocal(code: Code, a: Lanes) -> Lanes:
    return code.div(code.number(1.0, a.type), a)


@operator("Sqrt", weight=2)
def sqrt(code: Code, a: Lanes) -> Lanes:
    return code.intrinsic("sqrt", a)


@operator("Rsqrt", weight=3)
def rsqrt(code: Code, a: Lanes) -> Lanes:
    return reciprocal(code, sqrt(code, a))


@operator("Floor")
def floor(code: Code, a: Lanes) -> Lanes:
    return code.intrinsic("floor", a)


@operator("Ceil")
def ceil(code: Code, a: Lanes) -> Lanes:
    return code.intrinsic("ceil", a)


@operator("Rint", "Round")
def rint(code: Code, a: Lanes) -> Lanes:
    return code.intrinsic("rint", a)


def _chosen(code: Code, ordered: str, signed: str, a: Lanes, b: Lanes) -> Lanes:
    """a where it compares so with b, else b; of floats NaN where either is."""
    if a.type not in BITS:
        return code.select(code.compare(signed, a, b), a, b)
    value = code.select(code.compare(ordered, a, b), a, b)
    return code.select(code.compare("uno", a, a), a, value)


@operator("Maximum", types=NUMBERS, weight=3)
def maximum(code: Code, a: Lanes, b: Lanes) -> Lanes:
    return _chosen(code, "oge", "sge", a, b)


@operator("Minimum", types=NUMBERS, weight=3)
def minimum(code: Code, a: Lanes, b: Lanes) -> Lanes:
    return _chosen(code, "ole", "sle", a, b)


# -- functions ---------------------------------------------------------------------------------------------------

operator("Exp", weight=20)(functions.exp)
operator("Expm1", weight=25)(functions.expm1)
operator("Log", weight=30)(functions.log)
operator("Log1p", weight=50)(functions.log1p)
operator("Sigmoid", weight=22)(functions.sigmoid)
operator("Tanh", weight=25)(functions.tanh)
operator("Softplus", weight=60)(functions.softplus)


@operator("Relu", types=NUMBERS, weight=2)
def relu(code: Code, x: Lanes) -> Lanes:
    zero = code.number(0, x.type)
    return code.select(code.compare("olt" if x.type in BITS else "slt", x, zero), zero, x)


@operator("Relu6", weight=4)
def relu6(code: Code, x: Lanes) -> Lanes:
    six = code.number(6.0, x.type)
    value = relu(code, x)
    return code.select(code.compare("ogt", value, six), six, value)


@operator("LeakyRelu", attributes=("alpha",), weight=3)
def leaky_relu(code: Code, x: Lanes, alpha: float) -> Lanes:
    slope = code.number(_single(alpha), x.type)
    return code.select(code.compare("ogt", x, code.number(0.0, x.type)), x, code.mul(x, slope))


@operator("Elu", weight=28)
def elu(code: Code, x: Lanes) -> Lanes:
    return code.select(code.compare("olt", x, code.number(0.0, x.type)), functions.expm1(code, x), x)


@operator("Selu", weight=30)
def selu(code: Code, x: Lanes) -> Lanes:
    below = code.mul(code.number(SELU_SCALE_ALPHA, x.type), functions.expm1(code, x))
    return code.select(code.compare("olt", x, code.number(0.0, x.type)), below,
                       code.mul(code.number(SELU_SCALE, x.type), x))  # fmt: skip


@operator("Softsign", weight=3)
def softsign(code: Code, x: Lanes) -> Lanes:
    return code.div(x, code.add(absolute(code, x), code.number(1.0, x.type)))


# Self-normalizing networks (Klambauer et al. 2017), eq. 14: lambda and lambda * alpha
SELU_SCALE = 1.0507009873554804934193349852946
SELU_SCALE_ALPHA = 1.7580993408473768599402175208123


def _single(number: float) -> float:
    """An attribute of type float, which kernels of doubles see as one."""
    return struct.unpack("<f", struct.pack("<f", number))[0]


# -- gradients: (dy, x) of activations, (y, dy) of functions -----------------------------------------------------


def _where(code: Code, condition: Lanes, dy: Lanes) -> Lanes:
    """dy times 1 or 0, as the kernels write it: an infinite or NaN dy shows where the gradient is 0, too."""
    return code.mul(dy, code.select(condition, code.number(1.0, dy.type), code.number(0.0, dy.type)))


@operator("ReluGrad", weight=3)
def relu_grad(code: Code, dy: Lanes, x: Lanes) -> Lanes:
    return _where(code, code.compare("ogt", x, code.number(0.0, x.type)), dy)


@operator("Relu6Grad", weight=5)
def relu6_grad(code: Code, dy: Lanes, x: Lanes) -> Lanes:
    above = code.compare("ogt", x, code.number(0.0, x.type))
    below = code.compare("olt", x, code.number(6.0, x.type))
    return _where(code, code.binary("and", above, below), dy)


@operator("LeakyReluGrad", attributes=("alpha",), weight=3)
def leaky_relu_grad(code: Code, dy: Lanes, x: Lanes, alpha: float) -> Lanes:
    slope = code.number(_single(alpha), x.type)
    return code.select(code.compare("ogt", x, code.number(0.0, x.type)), dy, code.mul(dy, slope))


@operator("EluGrad", weight=4)
def elu_grad(code: Code, dy: Lanes, y: Lanes) -> Lanes:
    below = code.mul(code.add(y, code.number(1.0, y.type)), dy)
    return code.select(code.compare("olt", y, code.number(0.0, y.type)), below, dy)


@operator("SeluGrad", weight=5)
def selu_grad(code: Code, dy: Lanes, y: Lanes) -> Lanes:
    below = code.mul(dy, code.add(y, code.number(SELU_SCALE_ALPHA, y.type)))
    above = code.mul(dy, code.number(SELU_SCALE, y.type))
    return code.select(code.compare("olt", y, code.number(0.0, y.type)), below, above)


@operator("SoftplusGrad", weight=22)
def softplus_grad(code: Code, dy: Lanes, x: Lanes) -> Lanes:
    return code.div(dy, code.add(functions.exp(code, code.neg(x)), code.number(1.0, x.type)))


@operator("SigmoidGrad", weight=4)
def sigmoid_grad(code: Code, y: Lanes, dy: Lanes) -> Lanes:
    return code.mul(dy, code.mul(y, code.sub(code.number(1.0, y.type), y)))


@operator("TanhGrad", weight=3)
def tanh_grad(code: Code, y: Lanes, dy: Lanes) -> Lanes:
    return code.mul(dy, code.sub(code.number(1.0, y.type), code.mul(y, y)))


@operator("SqrtGrad", weight=2)
def sqrt_grad(code: Code, y: Lanes, dy: Lanes) -> Lanes:
    return code.div(code.mul(dy, code.number(0.5, y.type)), y)


@operator("RsqrtGrad", weight=4)
def rsqrt_grad(code: Code, y: Lanes, dy: Lanes) -> Lanes:
    cube = code.mul(code.mul(y, y), y)
    return code.mul(dy, code.mul(code.number(-0.5, y.type), cube))


@operator("ReciprocalGrad", "InvGrad", weight=3)
def reciprocal_grad(code: Code, y: Lanes, dy: Lanes) -> Lanes:
    return code.mul(code.neg(dy), code.mul(y, y))


# -- comparisons, choices, types ---------------------------------------------------------------------------------


def _comparison(ordered: str, signed: str) -> Write:
    def write(code: Code, a: Lanes, b: Lanes) -> Lanes:
        return code.compare(ordered if a.type in BITS else signed, a, b)

    return write


for _op, _ordered, _signed in (
    ("Less", "olt", "slt"), ("LessEqual", "ole", "sle"), ("Greater", "ogt", "sgt"), ("GreaterEqual", "oge", "sge"),
    ("Equal", "oeq", "eq"), ("NotEqual", "une", "ne"),
):  # fmt: skip
    operator(_op, types=NUMBERS)(_comparison(_ordered, _signed))


def _logical(instruction: str) -> Write:
    def write(code: Code, a: Lanes, b: Lanes) -> Lanes:
        return code.binary(instruction, a, b)

    return write


operator("LogicalAnd", types=frozenset({"bool"}))(_logical("and"))
operator("LogicalOr", types=frozenset({"bool"}))(_logical("or"))


@operator("LogicalNot", types=frozenset({"bool"}))
def logical_not(code: Code, a: Lanes) -> Lanes:
    return code.binary("xor", a, code.number(1, "i1"))


@operator("IsNan")
def is_nan(code: Code, a: Lanes) -> Lanes:
    return code.compare("uno", a, a)


@operator("IsFinite", weight=2)
def is_finite(code: Code, a: Lanes) -> Lanes:
    return code.compare("olt", absolute(code, a), code.number(float("inf"), a.type))


@operator("IsInf", weight=2)
def is_inf(code: Code, a: Lanes) -> Lanes:
    return code.compare("oeq", absolute(code, a), code.number(float("inf"), a.type))


@operator("SelectV2", "Select", types=NUMBERS)
def select(code: Code, condition: Lanes, a: Lanes, b: Lanes) -> Lanes:
    return code.select(condition, a, b)


#: from, to: the instruction. Floats to integers are left to NumPy: out of range they are what the processor says
_CASTS = {
    ("float32", "float64"): "fpext", ("float64", "float32"): "fptrunc", ("int32", "int64"): "sext",
    ("int64", "int32"): "trunc", ("int32", "float32"): "sitofp", ("int32", "float64"): "sitofp",
    ("int64", "float32"): "sitofp", ("int64", "float64"): "sitofp", ("bool", "float32"): "uitofp",
    ("bool", "float64"): "uitofp", ("bool", "int32"): "zext", ("bool", "int64"): "zext",
}  # fmt: skip


@operator("Cast", types=frozenset(TYPES), attributes=("DstT",))
def cast(code: Code, a: Lanes, DstT: Any) -> Lanes:
    names = {llvm: name for name, llvm in TYPES.items()}
    target = DstT.numpy.name
    return code.cast(_CASTS[names[a.type], target], a, TYPES[target])
