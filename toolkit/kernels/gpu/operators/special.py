"""Powers, the error function, gamma functions and their kin.

Where it costs little beside memory they are computed in double and rounded, with the numbers of the CPU's kernels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import cast

from toolkit.kernels.cpu.math import special_error, special_gamma
from toolkit.kernels.cpu.native import functions
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import Value
from toolkit.kernels.gpu.operators.basic import is_whole
from toolkit.kernels.gpu.operators.table import gpu_operator
from toolkit.kernels.gpu.operators.trigonometric import exact_product, polynomial, sin, tan


def _clipped(k: KernelBuilder, x: Value, low: float, high: float) -> Value:
    """Between two numbers; NaN stays."""
    least, most = k.number(low, x.type), k.number(high, x.type)
    x = k.select(k.compare("olt", x, least), least, x)
    return k.select(k.compare("ogt", x, most), most, x)


def _ratio(k: KernelBuilder, x: Value, pair: tuple[Sequence[float], Sequence[float]]) -> Value:
    return k.div(polynomial(k, x, pair[0]), polynomial(k, x, pair[1]))


# -- powers --------------------------------------------------------------------------------------------------------


@gpu_operator("Pow", kinds="f", weight=150)
def power(k: KernelBuilder, x: Value, y: Value) -> Value:
    """|x|^y, with the sign of x where y is odd; all of C's cases of zeros and infinities."""
    if x.type == "float":
        wide = k.convert(x, "double"), k.convert(y, "double")
        return k.convert(_signed_power(k, wide[0], wide[1], _power_of_float), "float")
    return _signed_power(k, x, y, _power_of_double)


def _signed_power(k: KernelBuilder, x: Value, y: Value, of_positive: Callable[..., Value]) -> Value:
    zero, one, half, infinity = (k.number(n, "double") for n in (0.0, 1.0, 0.5, math.inf))
    a, whole = k.intrinsic("fabs", x), is_whole(k, y)
    value = of_positive(k, a, y)
    is_odd = k.both(whole, k.inverse(is_whole(k, k.mul(y, half))))
    is_negative = k.compare("slt", k.cast("bitcast", x, "i64"), k.number(0, "i64"))
    value = k.select(k.both(is_odd, is_negative), k.neg(value), value)
    below = k.both(k.compare("olt", x, zero), k.compare("olt", a, infinity))
    no_root = k.both(below, k.compare("one", k.intrinsic("trunc", y), y))
    value = k.select(no_root, k.number(math.nan, "double"), value)
    is_endless = k.compare("oeq", k.intrinsic("fabs", y), infinity)
    is_one = k.either(k.compare("oeq", x, one), k.compare("oeq", y, zero))
    is_one = k.either(is_one, k.both(k.compare("oeq", a, one), is_endless))
    return k.select(is_one, one, value)


def _power_of_float(k: KernelBuilder, a: Value, y: Value) -> Value:
    """e^(y log a), which has digits enough for a float: where that is finite, |y log a| is below 104."""
    return cast("Value", functions.exp(k, k.mul(y, functions.log(k, a))))


def _power_of_double(k: KernelBuilder, a: Value, y: Value) -> Value:
    """e^(y log a) with a logarithm of 59 bits, as the sum of two doubles."""
    plain = functions.log(k, a)
    high, low = _long_logarithm(k, a)
    product, error = exact_product(k, y, high)
    rest = k.add(error, k.mul(y, low))
    value = functions.exp(k, product)
    value = k.add(value, k.mul(value, rest))
    # where anything is zero, infinite, out of range or has fewer digits, the plain one is right
    simple = functions.exp(k, k.mul(y, plain))
    usual = k.compare("olt", k.intrinsic("fabs", product), k.number(745.0, "double"))
    least, most = k.number(2.0**-1022, "double"), k.number(math.inf, "double")
    usual = k.both(usual, k.both(k.compare("oge", a, least), k.compare("olt", a, most)))
    return k.select(k.both(usual, k.compare("ord", rest, rest)), value, simple)


_LN2_HIGH = 6.93147180369123816490e-1  # 33 bits, so that a multiple of it by an exponent is exact
_LN2_LOW = float(Fraction(math.log(2)) - Fraction(_LN2_HIGH)) + 2.3190468138462996e-17  # what log(2) itself lacks
_HALF_OF_BITS = -(1 << 27)  # leaves 26 bits of a mantissa, whose products are exact


def _upper(k: KernelBuilder, x: Value) -> Value:
    return k.cast("bitcast", k.both(k.cast("bitcast", x, "i64"), k.number(_HALF_OF_BITS, "i64")), "double")


def _long_logarithm(k: KernelBuilder, a: Value) -> tuple[Value, Value]:
    """e log 2 + 2 artanh((m - 1) / (m + 1)), the quotient in two parts; of positive normal numbers."""
    bits = k.cast("bitcast", a, "i64")
    root, width = k.number(0x3FE6A09E667F3BCD, "i64"), k.number(52, "i64")
    steps = k.binary("ashr", k.sub(bits, root), width)
    m = k.cast("bitcast", k.sub(bits, k.binary("shl", steps, width)), "double")
    e = k.convert(steps, "double")
    one, two = k.number(1.0, "double"), k.number(2.0, "double")
    f = k.sub(m, one)
    below = k.add(f, two)
    lost = k.sub(f, k.sub(below, two))  # of m + 1
    head = _upper(k, k.div(f, below))
    upper = _upper(k, below)
    rest = k.sub(k.sub(f, k.mul(head, upper)), k.mul(head, k.sub(below, upper)))
    tail = k.div(k.sub(rest, k.mul(head, lost)), below)
    s = k.add(head, tail)
    z = k.mul(s, s)
    series = k.mul(k.mul(s, z), polynomial(k, z, [2 / (2 * i + 3) for i in range(12)]))
    large, small = k.mul(e, k.number(_LN2_HIGH, "double")), k.mul(two, head)
    total = k.add(large, small)
    back = k.sub(total, large)
    error = k.add(k.sub(large, k.sub(total, back)), k.sub(small, back))
    low = k.add(error, k.add(k.mul(two, tail), k.add(series, k.mul(e, k.number(_LN2_LOW, "double")))))
    high = k.add(total, low)
    return high, k.add(k.sub(total, high), low)


# -- error functions -----------------------------------------------------------------------------------------------


def _tail(k: KernelBuilder, a: Value) -> Value:
    """erfc of a >= 1.25, as `kernels.cpu.math.special_error` has it."""
    s = k.div(k.number(1.0, "double"), k.mul(a, a))
    is_middle = k.compare("olt", a, k.number(1 / 0.35, "double"))
    ratio = k.select(is_middle, _ratio(k, s, special_error.MIDDLE), _ratio(k, s, special_error.FAR))
    head = k.cast("bitcast", k.both(k.cast("bitcast", a, "i64"), k.number(-(1 << 32), "i64")), "double")
    first = functions.exp(k, k.sub(k.neg(k.mul(head, head)), k.number(0.5625, "double")))
    second = functions.exp(k, k.add(k.mul(k.sub(head, a), k.add(head, a)), ratio))
    return k.div(k.mul(first, second), a)


#: erf of floats: 2/sqrt(pi) times the Taylor series of its integral, up to 1: the next term is below 1e-9
_ERF_SERIES = [2 / math.sqrt(math.pi) * (-1.0) ** n / (math.factorial(n) * (2 * n + 1)) for n in range(12)]


@gpu_operator("Erf", kinds="f", weight=110)
def erf(k: KernelBuilder, x: Value) -> Value:
    if x.type == "float":
        return _erf_of_float(k, x)
    a, one = k.intrinsic("fabs", x), k.number(1.0, "double")
    near_0 = k.add(x, k.mul(x, _ratio(k, k.mul(x, x), special_error.NEAR_0)))
    near_1 = k.add(k.number(special_error.ERF_1, "double"), _ratio(k, k.sub(a, one), special_error.NEAR_1))
    far = k.sub(one, _tail(k, _clipped(k, a, 1.25, 6.0)))
    value = k.select(k.compare("olt", a, k.number(1.25, "double")), near_1, far)
    value = k.intrinsic("copysign", value, x)
    value = k.select(k.compare("olt", a, k.number(0.84375, "double")), near_0, value)
    return k.select(k.compare("uno", x, x), x, value)


def _erf_of_float(k: KernelBuilder, x: Value) -> Value:
    """Up to 1 the series; beyond 1 - e^-p(|x|) with a polynomial for -log(erfc)."""
    a = k.intrinsic("fabs", x)
    near = k.mul(x, polynomial(k, k.mul(x, x), _ERF_SERIES))
    high = k.number(_ERFC_END, "float")
    t = k.select(k.compare("ogt", a, high), high, a)
    far = k.sub(k.number(1.0, "float"), functions.exp(k, k.neg(polynomial(k, t, _ERFC_LOGARITHM))))
    value = k.select(k.compare("olt", a, k.number(1.0, "float")), near, k.intrinsic("copysign", far, x))
    return k.select(k.compare("uno", x, x), x, value)


_ERFC_END = 4.0  # where erfc is 1.5e-8, and erf the float 1
#: -log(erfc(t)) for 1 <= t <= 4, fitted so that the largest relative error of erf is least, 1.1e-9
_ERFC_LOGARITHM = (
    0.00034151257484399384, 1.1270892338414178, 0.6381447580597127, 0.10310682147266922, -0.021838097019099764,
    0.00294766680979527, -0.00018638008564886228,
)  # fmt: skip


@gpu_operator("Erfc", kinds="f", weight=160, in_double=True)
def erfc(k: KernelBuilder, x: Value) -> Value:
    a, one = k.intrinsic("fabs", x), k.number(1.0, "double")
    is_positive = k.compare("oge", x, k.number(0.0, "double"))
    near_0 = k.sub(one, k.add(x, k.mul(x, _ratio(k, k.mul(x, x), special_error.NEAR_0))))
    value, at_1 = _ratio(k, k.sub(a, one), special_error.NEAR_1), special_error.ERF_1
    above = k.sub(k.number(1.0 - at_1, "double"), value)
    near_1 = k.select(is_positive, above, k.add(one, k.add(k.number(at_1, "double"), value)))
    tail = _tail(k, _clipped(k, a, 1.25, 28.0))
    far = k.select(is_positive, tail, k.sub(k.number(2.0, "double"), tail))
    found = k.select(k.compare("olt", a, k.number(1.25, "double")), near_1, far)
    found = k.select(k.compare("olt", a, k.number(0.84375, "double")), near_0, found)
    return k.select(k.compare("uno", x, x), x, found)


def _quantile(k: KernelBuilder, centred: Value, smaller: Value) -> Value:
    """The normal quantile of p, given p - 1/2 and min(p, 1 - p)."""
    zero, half = k.number(0.0, "double"), k.number(0.5, "double")
    distance = k.sub(k.number(0.180625, "double"), k.mul(centred, centred))
    middle = k.mul(centred, _ratio(k, distance, special_error.CENTRE))
    r = k.intrinsic("sqrt", k.neg(functions.log(k, smaller)))
    five = k.number(5.0, "double")
    tail = _ratio(k, k.sub(r, k.number(1.6, "double")), special_error.TAILS)
    tail = k.select(k.compare("ole", r, five), tail, _ratio(k, k.sub(r, five), special_error.FAR_OUT))
    is_middle = k.compare("ole", k.intrinsic("fabs", centred), k.number(0.425, "double"))
    value = k.select(is_middle, middle, k.intrinsic("copysign", tail, centred))
    endless = k.intrinsic("copysign", k.number(math.inf, "double"), centred)
    value = k.select(k.compare("oeq", smaller, zero), endless, value)
    known = k.both(k.compare("oge", smaller, zero), k.compare("ole", smaller, half))
    return k.select(known, value, k.number(math.nan, "double"))


@gpu_operator("Ndtri", kinds="f", weight=150, in_double=True)
def ndtri(k: KernelBuilder, p: Value) -> Value:
    other = k.sub(k.number(1.0, "double"), p)
    smaller = k.select(k.compare("olt", other, p), other, p)
    return _quantile(k, k.sub(p, k.number(0.5, "double")), smaller)


@gpu_operator("Erfinv", kinds="f", weight=150, in_double=True)
def erfinv(k: KernelBuilder, x: Value) -> Value:
    half = k.number(0.5, "double")
    rest = k.mul(k.sub(k.number(1.0, "double"), k.intrinsic("fabs", x)), half)
    return k.div(_quantile(k, k.mul(x, half), rest), k.number(math.sqrt(2.0), "double"))


# -- gamma functions -----------------------------------------------------------------------------------------------


def lgamma_of_positive(k: KernelBuilder, x: Value) -> Value:
    """Stirling's series above 8; below, the recurrence leads to numbers about 2, where lgamma is 0."""
    one, two, eight = (k.number(n, "double") for n in (1.0, 2.0, 8.0))
    is_small = k.compare("olt", x, eight)
    y = k.select(is_small, x, two)
    steps = k.intrinsic("rint", k.sub(y, two))
    d = k.sub(y, k.add(steps, two))
    factors = one
    for i in range(1, 7):
        more = k.mul(factors, k.sub(y, k.number(float(i), "double")))
        factors = k.select(k.compare("oge", steps, k.number(float(i), "double")), more, factors)
    is_least = k.compare("oeq", steps, k.number(-2.0, "double"))
    factors = k.select(is_least, k.div(one, k.mul(y, k.add(y, one))), factors)
    near_one = k.neg(functions.log1p(k, d))
    logarithm = k.select(
        k.compare("oeq", steps, k.number(-1.0, "double")), near_one, cast("Value", functions.log(k, factors))
    )
    below = k.add(logarithm, k.mul(d, polynomial(k, d, special_gamma.AT_TWO)))
    z = k.select(is_small, eight, x)
    half = k.number(0.5, "double")
    above = k.sub(k.mul(k.sub(z, half), functions.log(k, z)), z)
    inverse = k.div(one, z)
    series = k.mul(polynomial(k, k.mul(inverse, inverse), special_gamma.STIRLING), inverse)
    above = k.add(k.add(above, k.number(0.5 * math.log(2 * math.pi), "double")), series)
    return k.select(is_small, below, above)


@gpu_operator("Lgamma", kinds="f", weight=600, in_double=True)
def lgamma(k: KernelBuilder, x: Value) -> Value:
    """log |gamma(x)|."""
    zero, one = k.number(0.0, "double"), k.number(1.0, "double")
    infinity = k.number(math.inf, "double")
    is_positive = k.compare("ogt", x, zero)
    value = lgamma_of_positive(k, k.select(is_positive, x, k.sub(one, x)))
    reduced = k.sub(x, k.intrinsic("floor", x))
    sine = k.intrinsic("fabs", sin(k, k.mul(k.number(math.pi, "double"), reduced)))
    reflected = k.sub(functions.log(k, k.div(k.number(math.pi, "double"), sine)), value)
    below = k.select(k.compare("oeq", reduced, zero), infinity, reflected)
    found = k.select(is_positive, value, below)
    found = k.select(k.compare("oeq", k.intrinsic("fabs", x), infinity), infinity, found)
    return k.select(k.compare("uno", x, x), x, found)


@gpu_operator("Digamma", kinds="f", weight=600, in_double=True)
def digamma(k: KernelBuilder, x: Value) -> Value:
    """The derivative of log gamma; NaN at the poles below 0."""
    zero, one, ten, half = (k.number(n, "double") for n in (0.0, 1.0, 10.0, 0.5))
    reflect = k.compare("ole", x, zero)
    z = k.select(reflect, k.sub(one, x), x)
    total = zero
    for _ in range(10):
        low = k.compare("olt", z, ten)
        total = k.select(low, k.sub(total, k.div(one, k.select(low, z, one))), total)
        z = k.select(low, k.add(z, one), z)
    inverse = k.div(one, k.mul(z, z))
    value = k.sub(k.add(total, functions.log(k, z)), k.div(half, z))
    value = k.add(value, k.mul(inverse, polynomial(k, inverse, special_gamma.DIGAMMA)))
    reduced = k.sub(x, k.intrinsic("floor", x))
    pole = k.both(reflect, k.compare("oeq", reduced, zero))
    pi = k.number(math.pi, "double")
    safe = k.select(k.both(reflect, k.inverse(pole)), reduced, k.number(0.25, "double"))
    value = k.select(reflect, k.sub(value, k.div(pi, tan(k, k.mul(pi, safe)))), value)
    return k.select(pole, k.number(math.nan, "double"), value)
