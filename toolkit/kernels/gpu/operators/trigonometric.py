"""Trigonometric and hyperbolic functions and their inverses, to a few units in the last place.

Arguments of sine and cosine are reduced by multiples of pi/2 in double: up to 2^20 multiples by pi/2 in parts of 33
bits, whose products are exact (Cody and Waite, "Software Manual for the Elementary Functions", 1980); beyond by the
bits of 2/pi that matter, in integers (Payne and Hanek, "Radian reduction for trigonometric functions", 1983). Series
are Taylor's, whose coefficients are computed here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import cast

from toolkit.kernels.cpu.native import functions
from toolkit.kernels.cpu.native.code import Lanes
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import Value
from toolkit.kernels.gpu.operators.table import gpu_operator


def _arctangent_of_inverse(n: int, scale: int) -> int:
    total, term, k = 0, scale // n, 0
    while term:
        total += (-term if k % 2 else term) // (2 * k + 1)
        term //= n * n
        k += 1
    return total


_PRECISION = 1500  # bits: a double's exponent reaches 1024, and 128 bits behind that are looked at
#: pi 2^1500, by Machin's formula
_PI = (
    4 * (4 * _arctangent_of_inverse(5, 1 << _PRECISION + 40) - _arctangent_of_inverse(239, 1 << _PRECISION + 40)) >> 40
)
_USED = 7  # words of 32 bits of 2/pi that a product is made of
_WORDS = (1024 - 53 - 2) // 32 + _USED  # that the largest double needs


def _parts_of_half_pi() -> tuple[float, float, float, float]:
    """pi/2 in three parts of 33 bits, and the rest."""
    found: list[float] = []
    rest = Fraction(_PI, 1 << (_PRECISION + 1))
    for bits in (33, 33, 33, 53):
        exponent = math.frexp(float(rest))[1]
        part = Fraction(int(rest * Fraction(2) ** (bits - exponent))) / Fraction(2) ** (bits - exponent)
        found.append(float(part))
        rest -= part
    return found[0], found[1], found[2], found[3]


_HALF_PI = _parts_of_half_pi()
#: 2/pi: the first 32 bits behind the point, the next, ...
_TWO_OVER_PI = [(1 << (2 * _PRECISION + 1)) // _PI >> (_PRECISION - 32 * (i + 1)) & 0xFFFFFFFF for i in range(_WORDS)]
_MOST_MULTIPLES = 2.0**20  # so that the product with a part of 33 bits is exact in a double


def polynomial(k: KernelBuilder, x: Value, factors: Sequence[float]) -> Value:
    """The sum of factors[i] x^i, by Horner's rule."""
    value: Lanes = k.number(factors[-1], x.type)
    for factor in reversed(factors[:-1]):
        value = k.fma(value, x, k.number(factor, x.type))
    return cast("Value", value)


def _reduced(k: KernelBuilder, x: Value) -> tuple[Value, Value, Value]:
    """A double less the nearest multiple of pi/2, as a sum of two numbers, and that multiple modulo 4 (an i32).

    Of what is no number, NaN.
    """
    zero = k.number(0.0, "double")
    rest, low, quadrant = k.variable(k.sub(x, x)), k.variable(zero), k.variable(k.number(0, "i32"))
    multiples = k.intrinsic("rint", k.mul(x, k.number(2 / math.pi, "double")))
    is_small = k.compare("ole", k.intrinsic("fabs", multiples), k.number(_MOST_MULTIPLES, "double"))
    with k.when(is_small):
        value, below = x, zero
        for part in _HALF_PI:
            product = k.mul(multiples, k.number(part, "double"))
            less = k.sub(value, product)
            # what the subtraction has lost, exactly, whichever is larger (Knuth's two-sum)
            back = k.sub(less, value)
            lost = k.sub(k.sub(value, k.sub(less, back)), k.add(product, back))
            value, below = less, k.add(below, lost)
        total = k.add(value, below)
        rest.set(total)
        low.set(k.add(k.sub(value, total), below))
        quadrant.set(k.convert(multiples, "i32"))
    with k.otherwise():
        is_finite = k.compare("olt", k.intrinsic("fabs", x), k.number(math.inf, "double"))
        with k.when(is_finite):
            found = _reduced_by_bits(k, x)
            rest.set(found[0])
            low.set(found[1])
            quadrant.set(found[2])
    return rest.get(), low.get(), k.both(quadrant.get(), k.number(3, "i32"))


def _word(k: KernelBuilder, index: Value) -> Value:
    """A word of 2/pi, as an i64."""
    value = k.number(0, "i64")
    for i, word in enumerate(_TWO_OVER_PI):
        value = k.select(k.compare("eq", index, k.number(i, "i32")), k.number(word, "i64"), value)
    return value


def _reduced_by_bits(k: KernelBuilder, x: Value) -> tuple[Value, Value, Value]:
    """See `_reduced`, of large numbers: x = m 2^e with an integer m of 53 bits.

    Whole multiples of 4 in m 2^e 2/pi need not be known, so that of 2/pi only the words count whose product with m
    reaches below 4. What is behind seven of these changes the fraction by 2^-138 at most, and no double is nearer than
    2^-61 to a multiple of pi/2 (Muller, Elementary Functions, 2016, section 11.3).
    """
    bits = k.cast("bitcast", x, "i64")
    exponent = k.convert(k.both(k.binary("lshr", bits, k.number(52, "i64")), k.number(0x7FF, "i64")), "i32")
    mantissa = k.either(k.both(bits, k.number((1 << 52) - 1, "i64")), k.number(1 << 52, "i64"))
    e = k.sub(exponent, k.number(1075, "i32"))
    # bit i behind the point of 2/pi is worth 2^(e - i) m; those with e - i >= 2 are multiples of 4
    skipped = k.sub(e, k.number(2, "i32"))
    skipped = k.select(k.compare("slt", skipped, k.number(0, "i32")), k.number(0, "i32"), skipped)
    first = k.binary("lshr", skipped, k.number(5, "i32"))
    words = [_word(k, k.add(first, k.number(i, "i32"))) for i in range(_USED)]
    mask = k.number(0xFFFFFFFF, "i64")
    low, high = k.both(mantissa, mask), k.binary("lshr", mantissa, k.number(32, "i64"))
    # the product of m and the words in digits of 32 bits, the least first; carries fit, for m has 53 bits
    digits: list[Value] = []
    carry = k.number(0, "i64")
    before = k.number(0, "i64")
    for word in reversed(words):
        product = k.mul(low, word)
        upper = k.mul(high, before)
        total = k.add(k.add(k.both(product, mask), k.both(upper, mask)), carry)
        digits.append(k.both(total, mask))
        carry = k.add(k.binary("lshr", product, k.number(32, "i64")), k.binary("lshr", upper, k.number(32, "i64")))
        carry = k.add(carry, k.binary("lshr", total, k.number(32, "i64")))
        before = word
    upper = k.mul(high, before)
    total = k.add(upper, carry)
    digits.append(k.both(total, mask))
    digits.append(k.binary("lshr", total, k.number(32, "i64")))
    # the point: the last word ends 32 (first + 7) bits behind that of 2/pi, and the product is shifted by e
    place = k.sub(k.binary("shl", k.add(first, k.number(_USED, "i32")), k.number(5, "i32")), e)
    # of the bits behind it 126 are looked at, and the 2 of the quadrant in front
    top = k.add(place, k.number(2, "i32"))
    at = k.sub(top, k.number(128, "i32"))  # the lowest bit that is looked at
    upper_half, lower_half = _window(k, digits, k.add(at, k.number(64, "i32"))), _window(k, digits, at)
    quadrant = k.convert(k.binary("lshr", upper_half, k.number(62, "i64")), "i32")
    two = k.number(2, "i64")
    fraction = k.either(k.binary("shl", upper_half, two), k.binary("lshr", lower_half, k.number(62, "i64")))
    behind = k.binary("shl", lower_half, two)
    # the nearest multiple: a fraction of a half and more is one of the next, less what lacks
    is_above = k.compare("slt", fraction, k.number(0, "i64"))
    quadrant = k.select(is_above, k.add(quadrant, k.number(1, "i32")), quadrant)
    negative = k.neg(fraction)
    borrowed = k.compare("ne", behind, k.number(0, "i64"))
    negative = k.select(borrowed, k.sub(negative, k.number(1, "i64")), negative)
    size = k.select(is_above, negative, fraction)
    rest = k.select(is_above, k.neg(behind), behind)
    # the leading bits as a double, exactly, and what is behind them
    zeros = k.operation("intrinsic ctlz", (size, k.number(0, "i1")), "i64")
    zeros = k.select(k.compare("sgt", zeros, k.number(63, "i64")), k.number(63, "i64"), zeros)
    moved = k.binary("shl", size, zeros)
    joined = k.binary("lshr", rest, k.sub(k.number(64, "i64"), zeros))
    moved = k.select(k.compare("eq", zeros, k.number(0, "i64")), moved, k.either(moved, joined))
    head = k.both(moved, k.number(-(1 << 11), "i64"))
    tail = k.sub(moved, head)
    scale = k.cast("bitcast", k.binary("shl", k.sub(k.number(1023 - 64, "i64"), zeros), k.number(52, "i64")), "double")
    big = k.mul(k.convert(head, "double", unsigned=True), scale)
    small = k.mul(k.convert(tail, "double"), scale)
    # times pi/2
    value, error = exact_product(k, big, k.number(math.pi / 2, "double"))
    error = k.add(error, k.add(k.mul(big, k.number(_HALF_PI_REST, "double")),
                               k.mul(small, k.number(math.pi / 2, "double"))))  # fmt: skip
    total_ = k.add(value, error)
    lost = k.add(k.sub(value, total_), error)
    sign = k.binary("xor", k.compare("slt", bits, k.number(0, "i64")), is_above)
    signed = [k.select(sign, k.neg(each), each) for each in (total_, lost)]
    quadrant = k.select(k.compare("slt", bits, k.number(0, "i64")), k.neg(quadrant), quadrant)
    return signed[0], signed[1], quadrant


_HALF_PI_REST = float(Fraction(_PI, 1 << (_PRECISION + 1)) - Fraction(math.pi / 2))
_SPLIT = 134217729.0  # 2^27 + 1: Veltkamp's, which halves a double


def exact_product(k: KernelBuilder, a: Value, b: Value) -> tuple[Value, Value]:
    """A product of doubles below 2^990, and what its rounding has lost (Dekker)."""
    value = k.mul(a, b)
    halves: list[tuple[Value, Value]] = []
    for number in (a, b):
        scaled = k.mul(number, k.number(_SPLIT, "double"))
        high = k.sub(scaled, k.sub(scaled, number))
        halves.append((high, k.sub(number, high)))
    (a_high, a_low), (b_high, b_low) = halves
    error = k.sub(k.mul(a_high, b_high), value)
    error = k.add(k.add(error, k.mul(a_high, b_low)), k.mul(a_low, b_high))
    return value, k.add(error, k.mul(a_low, b_low))


def _window(k: KernelBuilder, digits: Sequence[Value], at: Value) -> Value:
    """64 bits of a number in digits of 32, from bit `at` on; what is not there is 0."""
    index = k.binary("ashr", at, k.number(5, "i32"))
    shift = k.convert(k.both(at, k.number(31, "i32")), "i64")
    parts: list[Value] = []
    for offset in range(3):
        wanted, value = k.add(index, k.number(offset, "i32")), k.number(0, "i64")
        for i, digit in enumerate(digits):
            value = k.select(k.compare("eq", wanted, k.number(i, "i32")), digit, value)
        parts.append(value)
    low = k.either(parts[0], k.binary("shl", parts[1], k.number(32, "i64")))
    high = k.binary("shl", parts[2], k.sub(k.number(64, "i64"), shift))
    value = k.binary("lshr", low, shift)
    return k.select(k.compare("eq", shift, k.number(0, "i64")), value, k.either(value, high))


#: terms of the series of sine and cosine that are needed on |r| <= pi/4: the next is below half a unit
_TERMS = {"float": 5, "double": 8}


def _sine_and_cosine(k: KernelBuilder, x: Value) -> tuple[Value, Value, Value]:
    """Of the reduced argument, and the quadrant."""
    rest, low, quadrant = _reduced(k, k.convert(x, "double"))
    if x.type == "float":
        rest, low = k.convert(rest, "float"), k.number(0.0, "float")
    return (*_series(k, rest, low), quadrant)


def _series(k: KernelBuilder, rest: Value, low: Value) -> tuple[Value, Value]:
    """Sine and cosine of rest + low, up to pi/4."""
    terms, type = _TERMS[rest.type], rest.type
    z = k.mul(rest, rest)
    sines = [(-1.0) ** i / math.factorial(2 * i + 1) for i in range(1, terms + 1)]
    cosines = [(-1.0) ** i / math.factorial(2 * i) for i in range(2, terms + 2)]
    cubed = k.mul(z, rest)
    half = k.mul(z, k.number(0.5, type))
    # sin(r + l) = sin(r) + l cos(r), cos(r + l) = cos(r) - l sin(r)
    sine = k.fma(cubed, polynomial(k, z, sines), k.sub(low, k.mul(low, half)))
    one = k.number(1.0, type)
    whole = k.sub(one, half)
    rounding = k.sub(k.sub(one, whole), half)
    cosine = k.fma(k.mul(z, z), polynomial(k, z, cosines), k.sub(rounding, k.mul(low, rest)))
    return k.add(rest, sine), k.add(whole, cosine)


def _rotated(k: KernelBuilder, sine: Value, cosine: Value, quadrant: Value) -> Value:
    """The sine of an angle in a quadrant."""
    one, two, zero = (k.number(n, "i32") for n in (1, 2, 0))
    value = k.select(k.compare("ne", k.both(quadrant, one), zero), cosine, sine)
    return k.select(k.compare("ne", k.both(quadrant, two), zero), k.neg(value), value)


def sine_and_cosine(k: KernelBuilder, x: Value) -> tuple[Value, Value]:
    """Both, for the price of one."""
    sine, cosine, quadrant = _sine_and_cosine(k, x)
    return _kept_zero(k, x, _rotated(k, sine, cosine, quadrant)), _rotated(
        k, sine, cosine, k.add(quadrant, k.number(1, "i32"))
    )


def sine_and_cosine_of_turn(k: KernelBuilder, x: Value) -> tuple[Value, Value]:
    """Of a double that is no more than a few multiples of pi."""
    multiples = k.intrinsic("rint", k.mul(x, k.number(2 / math.pi, "double")))
    rest = x
    for part in _HALF_PI[:3]:
        rest = k.sub(rest, k.mul(multiples, k.number(part, "double")))
    sine, cosine = _series(k, rest, k.number(0.0, "double"))
    quadrant = k.convert(multiples, "i32")
    one = k.number(1, "i32")
    return _rotated(k, sine, cosine, quadrant), _rotated(k, sine, cosine, k.add(quadrant, one))


def _kept_zero(k: KernelBuilder, x: Value, value: Value) -> Value:
    """Of a zero that zero, with its sign."""
    return k.select(k.compare("oeq", x, k.number(0.0, x.type)), x, value)


#: most of it is what large arguments need: written once, not for each element of a thread
_WEIGHT = 500


@gpu_operator("Sin", kinds="f", weight=_WEIGHT)
def sin(k: KernelBuilder, x: Value) -> Value:
    return sine_and_cosine(k, x)[0]


@gpu_operator("Cos", kinds="f", weight=_WEIGHT)
def cos(k: KernelBuilder, x: Value) -> Value:
    return sine_and_cosine(k, x)[1]


@gpu_operator("Tan", kinds="f", weight=_WEIGHT)
def tan(k: KernelBuilder, x: Value) -> Value:
    sine, cosine, quadrant = _sine_and_cosine(k, x)
    is_odd = k.compare("ne", k.both(quadrant, k.number(1, "i32")), k.number(0, "i32"))
    above, below = k.select(is_odd, cosine, sine), k.select(is_odd, k.neg(sine), cosine)
    return _kept_zero(k, x, k.div(above, below))


# -- inverse functions ---------------------------------------------------------------------------------------------

#: terms of artangent's series on |t| <= tan(pi/8), of arcsine's on |z| <= 1/2
_ARCTANGENT = {"float": 10, "double": 21}
_ARCSINE = {"float": 11, "double": 25}


def _low_part(value: float, type: str, exact: Fraction) -> float:
    """What a constant rounded to a type lacks."""
    import struct

    rounded = struct.unpack("<f", struct.pack("<f", value))[0] if type == "float" else value
    return float(exact - Fraction(rounded))


_PI_FRACTION = Fraction(_PI, 1 << _PRECISION)


def _arctangent(k: KernelBuilder, t: Value) -> Value:
    """Of 0 <= t <= 1: from tan(pi/8) on pi/4 + atan((t - 1) / (t + 1))."""
    one = k.number(1.0, t.type)
    is_high = k.compare("ogt", t, k.number(math.tan(math.pi / 8), t.type))
    moved = k.select(is_high, k.div(k.sub(t, one), k.add(t, one)), t)
    z = k.mul(moved, moved)
    series = polynomial(k, z, [(-1.0) ** i / (2 * i + 1) for i in range(1, _ARCTANGENT[t.type] + 1)])
    small = k.mul(k.mul(moved, z), series)
    quarter = k.number(math.pi / 4, t.type)
    rest = k.number(_low_part(math.pi / 4, t.type, _PI_FRACTION / 4), t.type)
    high = k.add(quarter, k.add(moved, k.add(small, rest)))
    return k.select(is_high, high, k.add(moved, small))


@gpu_operator("Atan", kinds="f", weight=40)
def atan(k: KernelBuilder, x: Value) -> Value:
    one = k.number(1.0, x.type)
    a = k.intrinsic("fabs", x)
    is_large = k.compare("ogt", a, one)
    value = _arctangent(k, k.select(is_large, k.div(one, a), a))
    half = k.number(math.pi / 2, x.type)
    rest = k.number(_low_part(math.pi / 2, x.type, _PI_FRACTION / 2), x.type)
    return k.intrinsic("copysign", k.select(is_large, k.sub(half, k.sub(value, rest)), value), x)


@gpu_operator("Atan2", kinds="f", weight=50)
def atan2(k: KernelBuilder, y: Value, x: Value) -> Value:
    """The angle of the point (x, y), with all cases of zeros and infinities that C has."""
    a, b = k.intrinsic("fabs", y), k.intrinsic("fabs", x)
    is_steep = k.compare("ogt", a, b)
    high, low = k.select(is_steep, a, b), k.select(is_steep, b, a)
    zero, infinity = k.number(0.0, x.type), k.number(math.inf, x.type)
    ratio = k.div(low, high)
    ratio = k.select(k.compare("oeq", high, zero), zero, ratio)
    ratio = k.select(k.compare("oeq", low, infinity), k.number(1.0, x.type), ratio)
    angle = _arctangent(k, ratio)
    for condition, whole in ((is_steep, 2), (_is_negative(k, x), 1)):
        full = k.number(math.pi / whole, x.type)
        rest = k.number(_low_part(math.pi / whole, x.type, _PI_FRACTION / whole), x.type)
        angle = k.select(condition, k.sub(full, k.sub(angle, rest)), angle)
    angle = k.intrinsic("copysign", angle, y)
    return k.select(k.compare("uno", x, y), k.add(x, y), angle)


def _is_negative(k: KernelBuilder, x: Value) -> Value:
    """Whether the sign is set, of zeros too."""
    bits = {"float": "i32", "double": "i64"}[x.type]
    return k.compare("slt", k.cast("bitcast", x, bits), k.number(0, bits))


def _arcsine_factors(count: int) -> list[float]:
    """Taylor's, of z^3, z^5, ...: (2n)! / (4^n n!^2 (2n + 1))."""
    return [math.factorial(2 * n) / (4**n * math.factorial(n) ** 2 * (2 * n + 1)) for n in range(1, count + 1)]


def _arcsine(k: KernelBuilder, z: Value, square: Value) -> Value:
    """Of 0 <= z <= 1/2, of which the square is known better."""
    series = polynomial(k, square, _arcsine_factors(_ARCSINE[z.type]))
    return cast("Value", k.fma(k.mul(z, square), series, z))


def _halves(k: KernelBuilder, x: Value) -> tuple[Value, Value]:
    """Whether |x| <= 1/2; the arcsine of |x| where so, else that of sqrt((1 - |x|) / 2)."""
    a = k.intrinsic("fabs", x)
    half = k.number(0.5, x.type)
    is_small = k.compare("ole", a, half)
    square = k.select(is_small, k.mul(a, a), k.mul(k.sub(k.number(1.0, x.type), a), half))
    z = k.select(is_small, a, k.intrinsic("sqrt", square))
    return is_small, _arcsine(k, z, square)


@gpu_operator("Asin", kinds="f", weight=60)
def asin(k: KernelBuilder, x: Value) -> Value:
    is_small, value = _halves(k, x)
    full = k.number(math.pi / 2, x.type)
    rest = k.number(_low_part(math.pi / 2, x.type, _PI_FRACTION / 2), x.type)
    large = k.sub(full, k.sub(k.add(value, value), rest))
    return k.intrinsic("copysign", k.select(is_small, value, large), x)


@gpu_operator("Acos", kinds="f", weight=60)
def acos(k: KernelBuilder, x: Value) -> Value:
    is_small, value = _halves(k, x)
    negative = k.compare("olt", x, k.number(0.0, x.type))
    half, whole = (k.number(math.pi / n, x.type) for n in (2, 1))
    rests = [k.number(_low_part(math.pi / n, x.type, _PI_FRACTION / n), x.type) for n in (2, 1)]
    signed = k.select(negative, k.neg(value), value)
    near = k.sub(half, k.sub(signed, rests[0]))
    twice = k.add(value, value)
    far = k.select(negative, k.sub(whole, k.sub(twice, rests[1])), twice)
    return k.select(is_small, near, far)


# -- hyperbolic functions ------------------------------------------------------------------------------------------

#: beyond it e^x overflows, though half of it need not
_LARGE = {"float": 88.0, "double": 709.0}
#: beyond it x^2 + 1 is x^2
_HUGE = {"float": 2.0**14, "double": 2.0**30}

Function = Callable[..., Value]


def _large_half(k: KernelBuilder, a: Value) -> Value:
    """e^a / 2 where e^a overflows."""
    root = functions.exp(k, k.mul(a, k.number(0.5, a.type)))
    return k.mul(k.mul(root, k.number(0.5, a.type)), root)


@gpu_operator("Sinh", kinds="f", weight=60)
def sinh(k: KernelBuilder, x: Value) -> Value:
    a = k.intrinsic("fabs", x)
    e = functions.expm1(k, a)
    below = k.mul(k.add(e, k.div(e, k.add(e, k.number(1.0, x.type)))), k.number(0.5, x.type))
    is_large = k.compare("ogt", a, k.number(_LARGE[x.type], x.type))
    return k.intrinsic("copysign", k.select(is_large, _large_half(k, a), below), x)


@gpu_operator("Cosh", kinds="f", weight=60)
def cosh(k: KernelBuilder, x: Value) -> Value:
    a = k.intrinsic("fabs", x)
    e, half = functions.exp(k, a), k.number(0.5, x.type)
    below = k.add(k.mul(e, half), k.div(half, e))
    return k.select(k.compare("ogt", a, k.number(_LARGE[x.type], x.type)), _large_half(k, a), below)


@gpu_operator("Asinh", kinds="f", weight=120)
def asinh(k: KernelBuilder, x: Value) -> Value:
    a, one = k.intrinsic("fabs", x), k.number(1.0, x.type)
    square = k.mul(a, a)
    root = k.intrinsic("sqrt", k.add(square, one))
    near = functions.log1p(k, k.add(a, k.div(square, k.add(one, root))))
    far = k.add(functions.log(k, a), k.number(math.log(2), x.type))
    value = k.select(k.compare("ogt", a, k.number(_HUGE[x.type], x.type)), far, near)
    return k.intrinsic("copysign", value, x)


@gpu_operator("Acosh", kinds="f", weight=120)
def acosh(k: KernelBuilder, x: Value) -> Value:
    one = k.number(1.0, x.type)
    t = k.sub(x, one)
    root = k.intrinsic("sqrt", k.mul(t, k.add(t, k.number(2.0, x.type))))
    near = functions.log1p(k, k.add(t, root))
    far = k.add(functions.log(k, x), k.number(math.log(2), x.type))
    value = k.select(k.compare("ogt", x, k.number(_HUGE[x.type], x.type)), far, near)
    return k.select(k.compare("ult", x, one), k.number(math.nan, x.type), value)


@gpu_operator("Atanh", kinds="f", weight=60)
def atanh(k: KernelBuilder, x: Value) -> Value:
    a, one = k.intrinsic("fabs", x), k.number(1.0, x.type)
    value = functions.log1p(k, k.div(k.add(a, a), k.sub(one, a)))
    return k.intrinsic("copysign", k.mul(value, k.number(0.5, x.type)), x)
