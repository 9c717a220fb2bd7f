"""Integers: divisions, shifts, bits, powers, and what differs between signed and unsigned ones.

A division by zero cannot be told from inside of a kernel: as on TensorFlow's GPUs it gives some number, here 0, and
no error. The least number divided by -1 wraps around to itself.
"""

from __future__ import annotations

from collections.abc import Callable

from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import Value
from toolkit.kernels.gpu.operators.table import gpu_operator

_WIDTHS = {"i8": 8, "i16": 16, "i32": 32, "i64": 64}


def signed_division(k: KernelBuilder, a: Value, b: Value) -> tuple[Value, Value]:
    """Quotient rounded toward zero, and remainder, of any two numbers."""
    zero, one = k.number(0, a.type), k.number(1, a.type)
    by_zero, by_minus_one = k.compare("eq", b, zero), k.compare("eq", b, k.number(-1, a.type))
    safe = k.select(k.either(by_zero, by_minus_one), one, b)
    quotient = k.binary("sdiv", a, safe)
    rest = k.sub(a, k.mul(quotient, safe))
    quotient = k.select(by_minus_one, k.neg(a), quotient)
    return k.select(by_zero, zero, quotient), k.select(by_zero, zero, rest)


def unsigned_division(k: KernelBuilder, a: Value, b: Value) -> tuple[Value, Value]:
    """Quotient and remainder."""
    zero = k.number(0, a.type)
    by_zero = k.compare("eq", b, zero)
    safe = k.select(by_zero, k.number(1, a.type), b)
    quotient = k.binary("udiv", a, safe)
    rest = k.sub(a, k.mul(quotient, safe))
    return k.select(by_zero, zero, quotient), k.select(by_zero, zero, rest)


def _is_rounded_up(k: KernelBuilder, rest: Value, divisor: Value) -> Value:
    """Whether a quotient rounded toward zero is above the true one: there is a rest, of the other sign."""
    zero = k.number(0, rest.type)
    other_sign = k.compare("slt", k.binary("xor", rest, divisor), zero)
    return k.both(k.compare("ne", rest, zero), other_sign)


@gpu_operator("Div", "TruncateDiv", kinds="i", weight=20)
def truncate_div(k: KernelBuilder, a: Value, b: Value) -> Value:
    return signed_division(k, a, b)[0]


@gpu_operator("Mod", "TruncateMod", kinds="i", weight=20)
def truncate_mod(k: KernelBuilder, a: Value, b: Value) -> Value:
    return signed_division(k, a, b)[1]


@gpu_operator("FloorDiv", kinds="i", weight=20)
def floor_div(k: KernelBuilder, a: Value, b: Value) -> Value:
    quotient, rest = signed_division(k, a, b)
    return k.select(_is_rounded_up(k, rest, b), k.sub(quotient, k.number(1, a.type)), quotient)


@gpu_operator("FloorMod", kinds="i", weight=20)
def floor_mod(k: KernelBuilder, a: Value, b: Value) -> Value:
    """The remainder with the sign of the divisor."""
    _, rest = signed_division(k, a, b)
    return k.select(_is_rounded_up(k, rest, b), k.add(rest, b), rest)


@gpu_operator("Div", "TruncateDiv", "FloorDiv", kinds="u", weight=20)
def unsigned_div(k: KernelBuilder, a: Value, b: Value) -> Value:
    return unsigned_division(k, a, b)[0]


@gpu_operator("Mod", "TruncateMod", "FloorMod", kinds="u", weight=20)
def unsigned_mod(k: KernelBuilder, a: Value, b: Value) -> Value:
    return unsigned_division(k, a, b)[1]


@gpu_operator("Reciprocal", "Inv", kinds="i", weight=20)
def reciprocal(k: KernelBuilder, a: Value) -> Value:
    return floor_div(k, k.number(1, a.type), a)


@gpu_operator("Sign", kinds="i", weight=3)
def sign(k: KernelBuilder, a: Value) -> Value:
    zero, one = k.number(0, a.type), k.number(1, a.type)
    below = k.select(k.compare("slt", a, zero), k.number(-1, a.type), zero)
    return k.select(k.compare("sgt", a, zero), one, below)


# -- bits ----------------------------------------------------------------------------------------------------------


def _bits(instruction: str) -> Callable[[KernelBuilder, Value, Value], Value]:
    return lambda k, a, b: k.binary(instruction, a, b)


gpu_operator("BitwiseAnd", kinds="iu")(_bits("and"))
gpu_operator("BitwiseOr", kinds="iu")(_bits("or"))
gpu_operator("BitwiseXor", kinds="iu")(_bits("xor"))


@gpu_operator("Invert", kinds="iu")
def invert(k: KernelBuilder, a: Value) -> Value:
    return k.binary("xor", a, k.number(-1, a.type))


def _shift(instruction: str, *, signed: bool) -> Callable[[KernelBuilder, Value, Value], Value]:
    """Amounts outside of the width are brought to its ends, as TensorFlow takes them."""

    def write(k: KernelBuilder, a: Value, by: Value) -> Value:
        most = k.number(_WIDTHS[a.type] - 1, a.type)
        amount = k.select(k.compare("sgt" if signed else "ugt", by, most), most, by)
        if signed:
            zero = k.number(0, a.type)
            amount = k.select(k.compare("slt", amount, zero), zero, amount)
        return k.binary(instruction, a, amount)

    return write


gpu_operator("LeftShift", kinds="i", weight=4)(_shift("shl", signed=True))
gpu_operator("LeftShift", kinds="u", weight=3)(_shift("shl", signed=False))
gpu_operator("RightShift", kinds="i", weight=4)(_shift("ashr", signed=True))
gpu_operator("RightShift", kinds="u", weight=3)(_shift("lshr", signed=False))


@gpu_operator("PopulationCount", kinds="iu", weight=2)
def population_count(k: KernelBuilder, a: Value) -> Value:
    """The number of one bits, an i8."""
    return k.convert(k.intrinsic("ctpop", a), "i8")


# -- order of unsigned numbers -------------------------------------------------------------------------------------


def _comparison(predicate: str) -> Callable[[KernelBuilder, Value, Value], Value]:
    return lambda k, a, b: k.compare(predicate, a, b)


for _op, _predicate in (("Less", "ult"), ("LessEqual", "ule"), ("Greater", "ugt"), ("GreaterEqual", "uge")):
    gpu_operator(_op, kinds="u")(_comparison(_predicate))


@gpu_operator("Maximum", kinds="u", weight=2)
def maximum(k: KernelBuilder, a: Value, b: Value) -> Value:
    return k.select(k.compare("uge", a, b), a, b)


@gpu_operator("Minimum", kinds="u", weight=2)
def minimum(k: KernelBuilder, a: Value, b: Value) -> Value:
    return k.select(k.compare("ule", a, b), a, b)


@gpu_operator("ClipByValue", kinds="u", weight=4)
def clip_by_value(k: KernelBuilder, x: Value, low: Value, high: Value) -> Value:
    return minimum(k, maximum(k, x, low), high)


@gpu_operator("SquaredDifference", kinds="u", weight=2)
def squared_difference(k: KernelBuilder, a: Value, b: Value) -> Value:
    difference = k.sub(a, b)
    return k.mul(difference, difference)


def _unchanged(k: KernelBuilder, x: Value) -> Value:
    return x


gpu_operator("Relu", "Abs", kinds="u", weight=0)(_unchanged)


@gpu_operator("Relu6", kinds="i", weight=4)
def relu6(k: KernelBuilder, x: Value) -> Value:
    zero, six = k.number(0, x.type), k.number(6, x.type)
    above = k.select(k.compare("slt", x, zero), zero, x)
    return k.select(k.compare("sgt", above, six), six, above)


@gpu_operator("Relu6", kinds="u", weight=2)
def relu6_unsigned(k: KernelBuilder, x: Value) -> Value:
    six = k.number(6, x.type)
    return k.select(k.compare("ugt", x, six), six, x)


# -- powers --------------------------------------------------------------------------------------------------------


@gpu_operator("Pow", kinds="iu", weight=200)
def power(k: KernelBuilder, x: Value, y: Value) -> Value:
    """By squaring, modulo the type's range; a negative exponent gives 1, -1 or 0, the power rounded toward zero."""
    one, zero = k.number(1, x.type), k.number(0, x.type)
    result, factor, rest = k.variable(one), k.variable(x), k.variable(y)
    with k.while_(lambda: k.compare("sgt", rest.get(), zero)):
        is_odd = k.compare("ne", k.both(rest.get(), one), zero)
        result.set(k.select(is_odd, k.mul(result.get(), factor.get()), result.get()))
        factor.set(k.mul(factor.get(), factor.get()))
        rest.set(k.binary("lshr", rest.get(), one))
    is_unit = k.either(k.compare("eq", x, one), k.compare("eq", x, k.number(-1, x.type)))
    odd = k.compare("ne", k.both(y, one), zero)
    unit = k.select(odd, x, one)
    below = k.select(is_unit, unit, zero)
    return k.select(k.compare("slt", y, zero), below, result.get())
