"""Integrals that have names, in double: Dawson's, Fresnel's, exponential, dilogarithm, incomplete beta.

By the formulas of `kernels.cpu.math.special_error` and `kernels.cpu.math.special_gamma`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import cast

from toolkit.kernels.cpu.math import special_error, special_gamma
from toolkit.kernels.cpu.native import functions
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import Value
from toolkit.kernels.gpu.operators.basic import truncate_mod
from toolkit.kernels.gpu.operators.special import lgamma_of_positive
from toolkit.kernels.gpu.operators.table import gpu_operator
from toolkit.kernels.gpu.operators.trigonometric import polynomial, sine_and_cosine_of_turn

_WEIGHT = 1000
_TINY = 1e-300  # in place of 0 below a fraction
_MOST_TERMS = 3000
_NEAR_ONE = 1e-16  # that a factor of a product may be off 1 to be the last


def _number(k: KernelBuilder, value: float) -> Value:
    return k.number(value, "double")


def _over(k: KernelBuilder, first: float, last: float, step: float, body: Callable[[Value], None]) -> None:
    """What is done with each number of a row, `last` included."""
    i = k.variable(_number(k, first))
    with k.while_(lambda: k.compare("ole", i.get(), _number(k, last))):
        body(i.get())
        i.set(k.add(i.get(), _number(k, step)))


def _exp(k: KernelBuilder, x: Value) -> Value:
    return cast("Value", functions.exp(k, x))


@gpu_operator("Dawsn", kinds="f", weight=_WEIGHT, in_double=True)
def dawsn(k: KernelBuilder, x: Value) -> Value:
    """Rybicki's sampling series; near 0 Taylor's, far out 1 / 2x."""
    a, h = k.intrinsic("fabs", x), special_error.DAWSON_STEP
    near = k.select(k.compare("ogt", a, _number(k, 1e8)), _number(k, 1e8), a)
    half = k.div(k.mul(_number(k, 0.5), near), _number(k, h))
    centre = k.mul(_number(k, 2.0), k.intrinsic("rint", half))
    total = k.variable(_number(k, 0.0))

    def add(n: Value) -> None:
        place = k.add(centre, n)
        distance = k.sub(a, k.mul(place, _number(k, h)))
        total.set(k.add(total.get(), k.div(_exp(k, k.neg(k.mul(distance, distance))), place)))

    most = float(special_error.DAWSON_REACH)
    _over(k, -most, most, 2.0, add)
    middle = k.div(total.get(), _number(k, math.sqrt(math.pi)))
    value = k.select(k.compare("ogt", a, _number(k, 1e7)), k.div(_number(k, 0.5), a), middle)
    small = k.mul(a, polynomial(k, k.mul(a, a), special_error.DAWSON_SERIES))
    value = k.select(k.compare("olt", a, _number(k, 0.1)), small, value)
    return k.select(k.compare("uno", x, x), x, k.intrinsic("copysign", value, x))


def _fresnel(k: KernelBuilder, x: Value, *, is_sine: bool) -> Value:
    a, found = k.intrinsic("fabs", x), k.variable(_number(k, 0.5))
    limit = _number(k, special_error.FRESNEL_LIMIT)
    with k.when(k.compare("ole", a, limit)):
        square = k.mul(a, a)
        angle = k.mul(_number(k, 0.5 * math.pi), square)
        first = k.mul(k.mul(square, a), _number(k, math.pi / 6)) if is_sine else a
        found.set(k.mul(first, polynomial(k, k.mul(angle, angle), special_error.fresnel_series(is_sine=is_sine))))
    is_far = k.both(k.compare("ogt", a, limit), k.compare("ole", a, _number(k, 1e7)))
    with k.when(is_far):
        f, g = k.variable(_number(k, 0.5)), k.variable(_number(k, 0.0))

        def add(i: Value) -> None:
            v = k.mul(i, _number(k, special_error.FRESNEL_STEP))
            ratio = k.div(v, a)
            square = k.mul(ratio, ratio)
            weight = _exp(k, k.mul(_number(k, -0.5 * math.pi), k.mul(v, v)))
            weight = k.div(weight, k.add(_number(k, 1.0), k.mul(square, square)))
            f.set(k.add(f.get(), weight))
            g.set(k.add(g.get(), k.mul(weight, square)))

        _over(k, 1.0, float(special_error.FRESNEL_STEPS), 1.0, add)
        scale = k.div(_number(k, special_error.FRESNEL_STEP * math.sqrt(2.0) / math.pi), a)
        turn = k.mul(_number(k, 0.5 * math.pi), truncate_mod(k, k.mul(a, a), _number(k, 4.0)))
        sine, cosine = sine_and_cosine_of_turn(k, turn)
        with_f, with_g = k.mul(f.get(), scale), k.mul(g.get(), scale)
        half = _number(k, 0.5)
        if is_sine:
            found.set(k.sub(k.sub(half, k.mul(with_f, cosine)), k.mul(with_g, sine)))
        else:
            found.set(k.sub(k.add(half, k.mul(with_f, sine)), k.mul(with_g, cosine)))
    return k.select(k.compare("uno", x, x), x, k.intrinsic("copysign", found.get(), x))


@gpu_operator("FresnelSin", kinds="f", weight=_WEIGHT, in_double=True)
def fresnel_sin(k: KernelBuilder, x: Value) -> Value:
    return _fresnel(k, x, is_sine=True)


@gpu_operator("FresnelCos", kinds="f", weight=_WEIGHT, in_double=True)
def fresnel_cos(k: KernelBuilder, x: Value) -> Value:
    return _fresnel(k, x, is_sine=False)


@gpu_operator("Expint", kinds="f", weight=_WEIGHT, in_double=True)
def expint(k: KernelBuilder, x: Value) -> Value:
    """Ei(x) for positive x; NaN below 0."""
    zero, one, limit = (_number(k, n) for n in (0.0, 1.0, special_gamma.EXPINT_LIMIT))
    is_positive, found = k.compare("ogt", x, zero), k.variable(zero)
    safe = k.select(is_positive, x, one)
    term, total = k.variable(one), k.variable(zero)
    with k.when(k.compare("ole", safe, limit)):

        def add(n: Value) -> None:
            term.set(k.div(k.mul(term.get(), safe), n))
            total.set(k.add(total.get(), k.div(term.get(), n)))

        _over(k, 1.0, float(special_gamma.EXPINT_TERMS), 1.0, add)
        head = k.add(_number(k, special_gamma.EULER), functions.log(k, safe))
        found.set(k.add(head, total.get()))
    with k.otherwise():
        total.set(one)

        def add_far(n: Value) -> None:
            term.set(k.div(k.mul(term.get(), n), safe))
            total.set(k.add(total.get(), term.get()))

        _over(k, 1.0, float(special_gamma.EXPINT_TAIL), 1.0, add_far)
        found.set(k.mul(k.div(_exp(k, safe), safe), total.get()))
    other = k.select(k.compare("oeq", x, zero), _number(k, -math.inf), _number(k, math.nan))
    return k.select(is_positive, found.get(), other)


@gpu_operator("Spence", kinds="f", weight=_WEIGHT, in_double=True)
def spence(k: KernelBuilder, x: Value) -> Value:
    """The dilogarithm, brought to arguments between a half and 2 by its reflections; NaN below 0."""
    zero, one, two, half = (_number(k, n) for n in (0.0, 1.0, 2.0, 0.5))
    sixth = _number(k, math.pi**2 / 6)
    is_positive = k.compare("ogt", x, zero)
    safe = k.select(is_positive, x, one)
    is_high = k.compare("ogt", safe, two)
    y = k.select(is_high, k.div(one, safe), safe)
    is_low = k.compare("olt", y, half)
    u = k.neg(functions.log(k, k.select(is_low, k.sub(one, y), y)))
    square = k.mul(u, u)
    series = k.mul(k.mul(u, square), polynomial(k, square, special_gamma.DILOGARITHM))
    value = k.add(k.sub(u, k.mul(square, _number(k, 0.25))), series)
    other = k.mul(functions.log(k, y), functions.log1p(k, k.neg(k.select(is_low, y, zero))))
    value = k.select(is_low, k.sub(k.sub(sixth, other), value), value)
    logarithm = functions.log(k, safe)
    mirrored = k.sub(k.mul(_number(k, -0.5), k.mul(logarithm, logarithm)), value)
    value = k.select(is_high, mirrored, value)
    at_zero = k.select(k.compare("oeq", x, zero), sixth, _number(k, math.nan))
    return k.select(is_positive, value, at_zero)


def _beta_fraction(k: KernelBuilder, a: Value, b: Value, x: Value) -> Value:
    """Lentz's evaluation of the continued fraction of DLMF 8.17.22."""
    one, two, tiny = _number(k, 1.0), _number(k, 2.0), _number(k, _TINY)

    def kept(value: Value) -> Value:
        return k.select(k.compare("olt", k.intrinsic("fabs", value), tiny), tiny, value)

    def inverse(value: Value) -> Value:
        return k.div(one, kept(value))

    c, total = k.variable(one), k.add(a, b)
    d = k.variable(inverse(k.sub(one, k.div(k.mul(total, x), k.add(a, one)))))
    value, change, m = k.variable(d.get()), k.variable(_number(k, math.inf)), k.variable(one)

    def goes_on() -> Value:
        is_off = k.compare("oge", k.intrinsic("fabs", k.sub(change.get(), one)), _number(k, _NEAR_ONE))
        return k.both(is_off, k.compare("olt", m.get(), _number(k, float(_MOST_TERMS))))

    with k.while_(goes_on):
        now = m.get()
        place = k.add(a, k.mul(two, now))
        even = k.div(k.mul(k.mul(now, k.sub(b, now)), x), k.mul(k.sub(place, one), place))
        odd = k.mul(k.mul(k.add(a, now), k.add(total, now)), x)
        odd = k.neg(k.div(odd, k.mul(place, k.add(place, one))))
        for factor in (even, odd):
            d.set(inverse(k.add(one, k.mul(factor, d.get()))))
            c.set(kept(k.add(one, k.div(factor, c.get()))))
            change.set(k.mul(c.get(), d.get()))
            value.set(k.mul(value.get(), change.get()))
        m.set(k.add(now, one))
    return value.get()


@gpu_operator("Betainc", kinds="f", weight=_WEIGHT, in_double=True)
def betainc(k: KernelBuilder, a: Value, b: Value, x: Value) -> Value:
    """The regularized incomplete beta function I_x(a, b)."""
    zero, one, two, half = (_number(k, n) for n in (0.0, 1.0, 2.0, 0.5))
    is_known = k.both(k.compare("ogt", a, zero), k.compare("ogt", b, zero))
    is_inside = k.both(is_known, k.both(k.compare("ogt", x, zero), k.compare("olt", x, one)))
    sa, sb, sx = k.select(is_inside, a, one), k.select(is_inside, b, one), k.select(is_inside, x, half)
    total = k.add(sa, sb)
    gammas = k.sub(k.sub(lgamma_of_positive(k, total), lgamma_of_positive(k, sa)), lgamma_of_positive(k, sb))
    powers = k.add(k.mul(sa, functions.log(k, sx)), k.mul(sb, functions.log1p(k, k.neg(sx))))
    front = _exp(k, k.add(gammas, powers))
    is_direct = k.compare("olt", sx, k.div(k.add(sa, one), k.add(total, two)))
    first, second = k.select(is_direct, sa, sb), k.select(is_direct, sb, sa)
    fraction = _beta_fraction(k, first, second, k.select(is_direct, sx, k.sub(one, sx)))
    value = k.div(k.mul(front, fraction), first)
    value = k.select(is_direct, value, k.sub(one, value))
    value = k.select(k.compare("oeq", x, zero), zero, k.select(k.compare("oeq", x, one), one, value))
    is_known = k.both(is_known, k.both(k.compare("oge", x, zero), k.compare("ole", x, one)))
    return k.select(is_known, value, _number(k, math.nan))
