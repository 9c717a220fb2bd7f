"""exp, log, tanh and their kin over lanes, from their series: at most a few units in the last place off.

The reductions are the classic ones (Muller, Elementary Functions): exp(x) = 2^n exp(r) with |r| <= ln(2)/2,
log(2^e m) = e ln(2) + 2 artanh((m-1)/(m+1)). NaN stays NaN, infinities and denormal numbers are what they are in the
C library.
"""

from __future__ import annotations

import functools
import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from toolkit.kernels.cpu.native.code import BITS, Code, Lanes
from toolkit.kernels.cpu.native.compiler import compiler

Write = Callable[[Code, Lanes], Lanes]


@dataclass(frozen=True, slots=True)
class _Format:
    """A floating type.

    Attributes:
        mantissa: bits of it that are stored.
        bias: of the exponent.
        high, low: the largest exponent that exp does not overflow for, the least that it does not give 0 for.
        split, rest: ln(2) as a number with few bits, so that a multiple of it is exact, and what is left of it.
        terms: how many terms of exp's series are needed on |r| <= ln(2)/2, and of artanh's on |s| <= 0.172.
    """

    mantissa: int
    bias: int
    high: float
    low: float
    split: float
    rest: float
    terms: tuple[int, int]


_FORMATS = {
    "float": _Format(23, 127, 89.0, -104.0, 0.693359375, -2.12194440054690583e-4, (7, 5)),
    "double": _Format(52, 1023, 710.0, -746.0, 6.93147180369123816490e-1, 1.90821492927058770002e-10, (13, 11)),
}


def _function(write: Write) -> Write:
    """Written out, or called where the code says so."""

    @functools.wraps(write)
    def place(code: Code, x: Lanes) -> Lanes:
        return code.call(write, x) if code.calls else write(code, x)

    return place


@_function
def exp(code: Code, x: Lanes) -> Lanes:
    """e^x."""
    clamped = _clamped(code, x)
    n, series = _reduced(code, clamped)
    value = code.add(series, code.number(1.0, x.type))
    return _scaled(code, value, n)


@_function
def expm1(code: Code, x: Lanes) -> Lanes:
    """e^x - 1, also where x is small."""
    form = _FORMATS[x.type]
    floor = code.number(-50.0, x.type)  # e^x is nothing beside 1 there
    clamped = _clamped(code, x)
    n, series = _reduced(code, code.select(code.compare("olt", clamped, floor), floor, clamped))
    power = _power_of_two(code, n)
    one = code.number(1.0, x.type)
    value = code.fma(power, series, code.sub(power, one))
    # 2^n overflows before e^x does, and below it nothing is left but -1
    too_high = code.compare("ogt", x, code.number((form.bias - 0.5) * math.log(2), x.type))
    value = code.select(too_high, code.sub(_scaled(code, code.add(series, one), n), one), value)
    return code.select(code.compare("oeq", x, code.number(0.0, x.type)), x, value)  # the sum has lost the sign of -0


@_function
def sigmoid(code: Code, x: Lanes) -> Lanes:
    """1 / (1 + e^-x); where e^-x is infinite that is 0."""
    one = code.number(1.0, x.type)
    return code.div(one, code.add(one, exp(code, code.neg(x))))


@_function
def tanh(code: Code, x: Lanes) -> Lanes:
    """expm1(2x) / (expm1(2x) + 2); for |x| beyond 22 that is 1."""
    bound = code.number(10.0 if x.type == "float" else 22.0, x.type)
    inside = code.select(code.compare("ogt", x, bound), bound, x)
    inside = code.select(code.compare("olt", inside, code.neg(bound)), code.neg(bound), inside)
    n, series = _reduced(code, code.add(inside, inside))
    power = _power_of_two(code, n)
    rest = code.fma(power, series, code.sub(power, code.number(1.0, x.type)))
    value = code.div(rest, code.add(rest, code.number(2.0, x.type)))
    return code.intrinsic("copysign", value, x)


@_function
def log(code: Code, x: Lanes) -> Lanes:
    """The natural logarithm: -inf of 0, NaN of negative numbers."""
    form, bits = _FORMATS[x.type], BITS[x.type]
    zero = code.number(0.0, x.type)
    tiny = code.compare("olt", x, code.number(2.0 ** (1 - form.bias), x.type))
    normal = code.select(tiny, code.mul(x, code.number(2.0**form.mantissa, x.type)), x)
    raw = code.cast("bitcast", normal, bits)
    # the exponent that leaves a mantissa between sqrt(1/2) and sqrt(2)
    root = code.number(_integer_of(math.sqrt(0.5), x.type), bits)
    steps = code.binary("ashr", code.sub(raw, root), code.number(form.mantissa, bits))
    m = code.cast("bitcast", code.sub(raw, code.binary("shl", steps, code.number(form.mantissa, bits))), x.type)
    e = code.cast("sitofp", steps, x.type)
    e = code.select(tiny, code.sub(e, code.number(float(form.mantissa), x.type)), e)
    one = code.number(1.0, x.type)
    f = code.sub(m, one)
    s = code.div(f, code.add(m, one))
    z = code.mul(s, s)
    terms = form.terms[1]
    series = code.number(2.0 / (2 * terms + 1), x.type)
    for k in range(terms - 1, 0, -1):
        series = code.fma(series, z, code.number(2.0 / (2 * k + 1), x.type))
    # log(m) = f - f^2/2 + s (f^2/2 + z series), which loses no digits near 1
    half = code.mul(code.mul(f, f), code.number(0.5, x.type))
    low = code.fma(s, code.fma(z, series, half), code.mul(e, code.number(form.rest, x.type)))
    value = code.fma(e, code.number(form.split, x.type), code.sub(f, code.sub(half, low)))
    infinite = code.compare("oeq", x, code.number(math.inf, x.type))
    value = code.select(infinite, x, value)
    value = code.select(code.compare("oeq", x, zero), code.number(-math.inf, x.type), value)
    return code.select(code.compare("ult", x, zero), code.number(math.nan, x.type), value)


@_function
def log1p(code: Code, x: Lanes) -> Lanes:
    """log(1 + x), also where x is small: log(u) x / (u - 1) with u = 1 + x rounded."""
    one = code.number(1.0, x.type)
    u = code.add(x, one)
    rounded = code.sub(u, one)
    value = code.mul(log(code, u), code.div(x, rounded))
    value = code.select(code.compare("oeq", rounded, code.number(0.0, x.type)), x, value)
    infinite = code.compare("oeq", code.intrinsic("fabs", x), code.number(math.inf, x.type))
    return code.select(code.compare("oeq", u, code.number(0.0, x.type)), code.number(-math.inf, x.type),
                       code.select(infinite, log(code, u), value))  # fmt: skip


@_function
def softplus(code: Code, x: Lanes) -> Lanes:
    """log(1 + e^x) = max(x, 0) + log1p(e^-|x|)."""
    zero = code.number(0.0, x.type)
    positive = code.select(code.compare("olt", x, zero), zero, x)
    return code.add(positive, log1p(code, exp(code, code.neg(code.intrinsic("fabs", x)))))


#: 2^r for |r| <= 1/2, 8e-8 off at most
_POWER = (
    1.0000000716556336,
    0.6931469670596699,
    0.24022119718976365,
    0.05550713279356311,
    0.00967554160227183,
    0.0013276470875961553,
)
_LOG2_E = math.log2(math.e)
_LOG2_E_HIGH = struct.unpack("<f", struct.pack("<f", _LOG2_E))[0]


def quick_sigmoid(code: Code, x: Lanes) -> Lanes:
    """1 / (1 + e^-x) of floats by the instructions that AVX-512 has for it: 3e-7 off, in half the time of `sigmoid`.

    Below -87, where it is 2e-38, it is 0.
    """
    machine = compiler()
    if x.type != "float" or machine is None or not machine.has_avx512():
        return sigmoid(code, x)
    low, high, vector = code.number(-87.0, x.type), code.number(87.0, x.type), x.vector
    is_low = code.compare("olt", x, low)
    x = code.select(code.compare("ogt", x, high), high, x)  # infinities have no remainder
    n = code.intrinsic("rint", code.mul(x, code.number(-_LOG2_E, x.type)))
    r = code.fma(x, code.number(-_LOG2_E_HIGH, x.type), code.neg(n))
    r = code.fma(x, code.number(_LOG2_E_HIGH - _LOG2_E, x.type), r)
    power = _polynomial(code, r, _POWER)
    everywhere, current = f"{vector} zeroinitializer, i16 -1", "i32 4"  # a mask, and the rounding that is set
    scale = f"{vector} @llvm.x86.avx512.mask.scalef.ps.512"
    code.declared.add(f"declare {scale}({vector}, {vector}, {vector}, i16, i32)")
    power = code.emit(x.type, f"call {scale}({vector} {power.name}, {vector} {n.name}, {everywhere}, {current})")
    below = code.add(power, code.number(1.0, x.type))
    inverse = f"{vector} @llvm.x86.avx512.rcp14.ps.512"
    code.declared.add(f"declare {inverse}({vector}, {vector}, i16)")
    first = code.emit(x.type, f"call {inverse}({vector} {below.name}, {everywhere})")
    rest = code.fma(code.neg(below), first, code.number(2.0, x.type))  # one step of Newton's method
    return code.select(is_low, code.number(0.0, x.type), code.mul(first, rest))


#: erf(x) = x P(x^2) / Q(x^2) up to where it is 1: fitted so that the largest relative error is least, 2e-8
_ERF_ABOVE = (1.128379145871635, 0.1905893871742407, 0.05276868782156391, 0.003772352630963465, 0.0002848375051435818,
              2.0460411835498806e-06)  # fmt: skip
_ERF_BELOW = (1.0, 0.5022381783818572, 0.11418088609141736, 0.014982805188593046, 0.0011638068254518424,
              3.804759996618259e-05)  # fmt: skip
_ERF_END = 3.925


def erf_float(code: Code, x: Lanes) -> Lanes:
    """The error function of floats, 4e-7 off at most: for what is rounded anyway, such as gelu."""
    high, low = code.number(_ERF_END, x.type), code.number(-_ERF_END, x.type)
    inside = code.select(code.compare("ogt", x, high), high, x)
    inside = code.select(code.compare("olt", inside, low), low, inside)
    z = code.mul(inside, inside)
    return code.div(code.mul(inside, _polynomial(code, z, _ERF_ABOVE)), _polynomial(code, z, _ERF_BELOW))


def _polynomial(code: Code, z: Lanes, factors: Sequence[float]) -> Lanes:
    """The sum of factors[i] z^i."""
    value = code.number(factors[-1], z.type)
    for factor in reversed(factors[:-1]):
        value = code.fma(value, z, code.number(factor, z.type))
    return value


def _clamped(code: Code, x: Lanes) -> Lanes:
    form = _FORMATS[x.type]
    high, low = code.number(form.high, x.type), code.number(form.low, x.type)
    inside = code.select(code.compare("ogt", x, high), high, x)
    return code.select(code.compare("olt", inside, low), low, inside)


def _reduced(code: Code, x: Lanes) -> tuple[Lanes, Lanes]:
    """n and exp(x - n ln 2) - 1; n as a floating number."""
    form = _FORMATS[x.type]
    n = code.intrinsic("rint", code.mul(x, code.number(math.log2(math.e), x.type)))
    r = code.fma(n, code.number(-form.split, x.type), x)
    r = code.fma(n, code.number(-form.rest, x.type), r)
    terms = form.terms[0]
    value = code.number(1.0 / math.factorial(terms), x.type)
    for k in range(terms - 1, 1, -1):
        value = code.fma(value, r, code.number(1.0 / math.factorial(k), x.type))
    return n, code.fma(code.mul(value, r), r, r)


def _power_of_two(code: Code, n: Lanes) -> Lanes:
    """2^n of an n whose power is a normal number; NaN gives something."""
    form, bits = _FORMATS[n.type], BITS[n.type]
    # adding this number leaves the integer in the lowest bits, without a conversion that NaN would break
    shifted = code.add(n, code.number(1.5 * 2.0**form.mantissa + form.bias, n.type))
    exponent = code.binary("shl", code.cast("bitcast", shifted, bits), code.number(form.mantissa, bits))
    return code.cast("bitcast", exponent, n.type)


def _scaled(code: Code, value: Lanes, n: Lanes) -> Lanes:
    """value * 2^n in two steps, so that 2^n may be too large or too small for a normal number."""
    half = code.intrinsic("floor", code.mul(n, code.number(0.5, n.type)))
    first, second = _power_of_two(code, half), _power_of_two(code, code.sub(n, half))
    return code.mul(code.mul(value, first), second)


def _integer_of(value: float, type: str) -> int:
    pattern = ("<f", "<i") if type == "float" else ("<d", "<q")
    return struct.unpack(pattern[1], struct.pack(pattern[0], value))[0]
