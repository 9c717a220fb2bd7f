"""Incomplete gamma functions with their slopes, zeta and polygamma, in double, by the formulas of the CPU's kernels.

Series end, thread by thread, when nothing is added any more.
"""

from __future__ import annotations

import math
from typing import cast

from toolkit.kernels.cpu.math import special_gamma
from toolkit.kernels.cpu.native import functions
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import Value
from toolkit.kernels.gpu.operators.basic import is_whole
from toolkit.kernels.gpu.operators.special import digamma, lgamma_of_positive, power
from toolkit.kernels.gpu.operators.table import gpu_operator

_WEIGHT = 1000
_MOST_TERMS = 2000
_DEPTH = 600  # of the continued fraction, from whose tail it is computed
_LEAST = 1e-17  # in parts of the sum, that a term adds


def _is_finite(k: KernelBuilder, x: Value) -> Value:
    return k.compare("olt", k.intrinsic("fabs", x), k.number(math.inf, "double"))


def _series(k: KernelBuilder, a: Value, x: Value) -> Value:
    """Sum of x^n / ((a + 1) ... (a + n)) (DLMF 8.11.4)."""
    one = k.number(1.0, "double")
    term, total, n = k.variable(one), k.variable(one), k.variable(one)
    most = k.number(float(_MOST_TERMS), "double")

    def goes_on() -> Value:
        is_seen = k.compare("ogt", term.get(), k.mul(total.get(), k.number(_LEAST, "double")))
        return k.both(is_seen, k.compare("olt", n.get(), most))

    with k.while_(goes_on):
        term.set(k.mul(term.get(), k.div(x, k.add(a, n.get()))))
        total.set(k.add(total.get(), term.get()))
        n.set(k.add(n.get(), one))
    return total.get()


def _fraction(k: KernelBuilder, a: Value, x: Value) -> Value:
    """The continued fraction of gamma(a, x) x^-a e^x (DLMF 8.9.2), from its tail."""
    one, zero = k.number(1.0, "double"), k.number(0.0, "double")
    value, n = k.variable(zero), k.variable(k.number(float(_DEPTH), "double"))
    base = k.sub(k.add(x, one), a)
    with k.while_(lambda: k.compare("ogt", n.get(), zero)):
        now = n.get()
        below = k.sub(k.add(base, k.add(now, now)), value.get())
        value.set(k.div(k.mul(now, k.sub(now, a)), below))
        n.set(k.sub(now, one))
    return k.div(one, k.sub(base, value.get()))


def _incomplete(k: KernelBuilder, a: Value, x: Value, *, is_upper: bool) -> Value:
    zero, one, infinity = (k.number(n, "double") for n in (0.0, 1.0, math.inf))
    usable = k.both(k.compare("ogt", a, zero), k.compare("ogt", x, zero))
    usable = k.both(usable, k.both(_is_finite(k, a), _is_finite(k, x)))
    sa, sx = k.select(usable, a, one), k.select(usable, x, one)
    exponent = k.sub(k.sub(k.mul(sa, functions.log(k, sx)), sx), lgamma_of_positive(k, sa))
    scale = cast("Value", functions.exp(k, exponent))
    found = k.variable(zero)
    is_small = k.compare("olt", sx, k.add(sa, one))
    with k.when(is_small):
        lower = k.div(k.mul(_series(k, sa, sx), scale), sa)
        found.set(k.sub(one, lower) if is_upper else lower)
    with k.otherwise():
        upper = k.mul(_fraction(k, sa, sx), scale)
        found.set(upper if is_upper else k.sub(one, upper))
    at_zero, at_end = (one, zero) if is_upper else (zero, one)
    value = k.select(k.compare("oeq", x, zero), at_zero, found.get())
    value = k.select(k.compare("oeq", x, infinity), at_end, value)
    is_endless = k.compare("oeq", a, infinity)
    value = k.select(k.both(is_endless, _is_finite(k, x)), at_zero, value)
    wrong = k.either(k.compare("ult", x, zero), k.compare("ule", a, zero))
    wrong = k.either(wrong, k.both(is_endless, k.compare("oeq", x, infinity)))
    return k.select(wrong, k.number(math.nan, "double"), value)


@gpu_operator("Igamma", kinds="f", weight=_WEIGHT, in_double=True)
def igamma(k: KernelBuilder, a: Value, x: Value) -> Value:
    return _incomplete(k, a, x, is_upper=False)


@gpu_operator("Igammac", kinds="f", weight=_WEIGHT, in_double=True)
def igammac(k: KernelBuilder, a: Value, x: Value) -> Value:
    return _incomplete(k, a, x, is_upper=True)


def _series_slope(k: KernelBuilder, a: Value, x: Value) -> tuple[Value, Value]:
    """`_series`, and its derivative in a."""
    one, zero = k.number(1.0, "double"), k.number(0.0, "double")
    term, total, n = k.variable(one), k.variable(one), k.variable(one)
    slope, slope_total = k.variable(zero), k.variable(zero)
    most, least = k.number(float(_MOST_TERMS), "double"), k.number(_LEAST, "double")

    def goes_on() -> Value:
        is_seen = k.compare("ogt", term.get(), k.mul(total.get(), least))
        size = k.intrinsic("fabs", slope_total.get())
        steep = k.compare("ogt", k.intrinsic("fabs", slope.get()), k.mul(size, least))
        return k.both(k.either(is_seen, steep), k.compare("olt", n.get(), most))

    with k.while_(goes_on):
        below = k.add(a, n.get())
        factor = k.div(x, below)
        slope.set(k.sub(k.mul(slope.get(), factor), k.div(k.mul(term.get(), factor), below)))
        term.set(k.mul(term.get(), factor))
        total.set(k.add(total.get(), term.get()))
        slope_total.set(k.add(slope_total.get(), slope.get()))
        n.set(k.add(n.get(), one))
    return total.get(), slope_total.get()


def _fraction_slope(k: KernelBuilder, a: Value, x: Value) -> tuple[Value, Value]:
    """`_fraction`, and its derivative in a."""
    one, zero = k.number(1.0, "double"), k.number(0.0, "double")
    value, slope = k.variable(zero), k.variable(zero)
    n = k.variable(k.number(float(_DEPTH), "double"))
    base = k.sub(k.add(x, one), a)
    with k.while_(lambda: k.compare("ogt", n.get(), zero)):
        now = n.get()
        below = k.sub(k.add(base, k.add(now, now)), value.get())
        found = k.div(k.mul(now, k.sub(now, a)), below)
        slope.set(k.div(k.sub(k.mul(found, k.add(one, slope.get())), now), below))
        value.set(found)
        n.set(k.sub(now, one))
    below = k.sub(base, value.get())
    return k.div(one, below), k.div(k.add(one, slope.get()), k.mul(below, below))


@gpu_operator("IgammaGradA", kinds="f", weight=_WEIGHT, in_double=True)
def igamma_grad_a(k: KernelBuilder, a: Value, x: Value) -> Value:
    """d P(a, x) / da."""
    zero, one = k.number(0.0, "double"), k.number(1.0, "double")
    usable = k.both(k.compare("ogt", a, zero), k.compare("ogt", x, zero))
    usable = k.both(usable, k.both(_is_finite(k, a), _is_finite(k, x)))
    sa, sx = k.select(usable, a, one), k.select(usable, x, one)
    is_small = k.compare("olt", sx, k.add(sa, one))
    total, slope = k.variable(zero), k.variable(zero)
    with k.when(is_small):
        for variable, found in zip((total, slope), _series_slope(k, sa, sx), strict=True):
            variable.set(found)
    with k.otherwise():
        for variable, found in zip((total, slope), _fraction_slope(k, sa, sx), strict=True):
            variable.set(found)
    # behind the loops, through which they would be kept
    logarithm = functions.log(k, sx)
    scale = cast("Value", functions.exp(k, k.sub(k.sub(k.mul(sa, logarithm), sx), lgamma_of_positive(k, sa))))
    rate, inverse = k.sub(logarithm, digamma(k, sa)), k.div(one, sa)
    rate = k.select(is_small, k.sub(rate, inverse), rate)
    scale = k.select(is_small, k.mul(scale, inverse), k.neg(scale))
    value = k.mul(scale, k.add(slope.get(), k.mul(total.get(), rate)))
    value = k.select(usable, value, k.number(math.nan, "double"))
    return k.select(k.compare("oeq", x, zero), zero, value)


@gpu_operator("RandomGammaGrad", kinds="f", weight=_WEIGHT, in_double=True)
def random_gamma_grad(k: KernelBuilder, alpha: Value, sample: Value) -> Value:
    """d sample / d alpha of a gamma-distributed sample, by implicit differentiation of its distribution."""
    zero, one = k.number(0.0, "double"), k.number(1.0, "double")
    safe = k.select(k.compare("ogt", alpha, zero), alpha, one)
    power = k.mul(k.sub(alpha, one), functions.log(k, sample))
    density = functions.exp(k, k.sub(k.sub(power, sample), lgamma_of_positive(k, safe)))
    return k.neg(k.div(igamma_grad_a(k, alpha, sample), density))


@gpu_operator("Zeta", kinds="f", weight=_WEIGHT, in_double=True)
def zeta(k: KernelBuilder, s: Value, q: Value) -> Value:
    """Hurwitz's zeta function, by the formula of Euler and Maclaurin (DLMF 25.11.28)."""
    zero, one, two, half = (k.number(n, "double") for n in (0.0, 1.0, 2.0, 0.5))
    nan, infinity = k.number(math.nan, "double"), k.number(math.inf, "double")
    above, is_positive = k.compare("ogt", s, one), k.compare("ogt", q, zero)
    is_pole = k.both(k.compare("ole", q, zero), k.compare("oeq", k.intrinsic("floor", q), q))
    usable = k.both(above, k.both(k.either(is_positive, is_whole(k, s)), k.inverse(is_pole)))
    ss, z = k.select(usable, s, two), k.variable(k.select(usable, q, one))
    negative = k.neg(ss)
    total, count = k.variable(zero), k.variable(zero)
    lift = k.intrinsic("ceil", k.neg(k.select(k.both(usable, _is_finite(k, q)), q, one)))
    most = k.add(k.number(12.0, "double"), k.select(k.compare("ogt", lift, zero), lift, zero))
    with k.while_(lambda: k.compare("olt", count.get(), most)):
        total.set(k.add(total.get(), power(k, z.get(), negative)))
        z.set(k.add(z.get(), one))
        count.set(k.add(count.get(), one))
    end = z.get()
    last = power(k, end, negative)
    beyond = k.select(k.compare("oeq", end, infinity), last, k.mul(last, end))  # of infinity nothing is left
    value = k.add(total.get(), k.div(beyond, k.sub(ss, one)))
    value = k.add(value, k.mul(half, last))
    term, factorial = k.div(k.mul(ss, last), end), 2.0
    inverse = k.div(one, k.mul(end, end))
    for i, bernoulli in enumerate(special_gamma.BERNOULLI, 1):
        value = k.add(value, k.mul(k.number(bernoulli / factorial, "double"), term))
        term = k.mul(term, k.add(ss, k.number(float(2 * i - 1), "double")))
        term = k.mul(k.mul(term, k.add(ss, k.number(float(2 * i), "double"))), inverse)
        factorial *= (2 * i + 1) * (2 * i + 2)
    found = k.select(usable, value, nan)
    # at the poles TensorFlow has infinity for even s, where both sides agree, and NaN for others
    found = k.select(k.both(above, is_pole), k.select(is_whole(k, k.mul(s, half)), infinity, nan), found)
    found = k.select(k.compare("oeq", s, one), infinity, found)
    return k.select(k.both(k.compare("uno", s, q), k.compare("une", s, one)), nan, found)


@gpu_operator("Polygamma", kinds="f", weight=_WEIGHT, in_double=True)
def polygamma(k: KernelBuilder, n: Value, x: Value) -> Value:
    zero, one, two, half = (k.number(value, "double") for value in (0.0, 1.0, 2.0, 0.5))
    known = k.both(k.compare("oge", n, zero), k.compare("oeq", k.intrinsic("floor", n), n))
    order = k.select(known, n, one)
    is_first = k.compare("oeq", order, zero)
    factorial = cast("Value", functions.exp(k, lgamma_of_positive(k, k.add(order, one))))
    higher = k.mul(factorial, zeta(k, k.select(is_first, two, k.add(order, one)), x))
    signed = k.select(is_whole(k, k.mul(order, half)), k.neg(higher), higher)
    value = k.select(is_first, digamma(k, x), signed)
    return k.select(known, value, k.number(math.nan, "double"))
