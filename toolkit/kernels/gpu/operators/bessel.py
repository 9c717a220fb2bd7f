"""Bessel functions of orders 0 and 1, in double, by the formulas of `kernels.cpu.math.special_bessel`.

Means over a period are taken in a loop over their nodes, whose sines are computed as they come.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import cast

from toolkit.kernels.cpu.math import special_bessel
from toolkit.kernels.cpu.native import functions
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import Value
from toolkit.kernels.gpu.operators.table import gpu_operator
from toolkit.kernels.gpu.operators.trigonometric import polynomial, sine_and_cosine, sine_and_cosine_of_turn, sinh

_WEIGHT = 3000
_LIMIT = special_bessel.LIMIT
#: nodes of half a period for I, of a quarter for J and Y, and the step between them
_HALF, _QUARTER = len(special_bessel.HALF), len(special_bessel.QUARTER)
_HALF_STEP, _QUARTER_STEP = math.pi / _HALF, 0.5 * math.pi / _QUARTER
_SMALL = 1e-3  # where means of order 1 are differences of near equals


def _number(k: KernelBuilder, value: float) -> Value:
    return k.number(value, "double")


def _at_most(k: KernelBuilder, x: Value, most: float) -> Value:
    """NaN stays."""
    return k.select(k.compare("ogt", x, _number(k, most)), _number(k, most), x)


def _at_least(k: KernelBuilder, x: Value, least: float) -> Value:
    return k.select(k.compare("olt", x, _number(k, least)), _number(k, least), x)


def _mean(k: KernelBuilder, nodes: int, step: float, integrand: Callable[[Value, Value], Value]) -> Value:
    """Of a function of (sine, cosine) over the midpoints of `nodes` steps from 0 on."""
    total, i, one = k.variable(_number(k, 0.0)), k.variable(_number(k, 0.5)), _number(k, 1.0)
    with k.while_(lambda: k.compare("olt", i.get(), _number(k, float(nodes)))):
        sine, cosine = sine_and_cosine_of_turn(k, k.mul(i.get(), _number(k, step)))
        total.set(k.add(total.get(), integrand(sine, cosine)))
        i.set(k.add(i.get(), one))
    return k.div(total.get(), _number(k, float(nodes)))


# -- I -------------------------------------------------------------------------------------------------------------


def _i_scaled(k: KernelBuilder, order: int, x: Value) -> Value:
    """exp(-|x|) I_order(x)."""
    a, one = k.intrinsic("fabs", x), _number(k, 1.0)
    found = k.variable(_number(k, 0.0))
    with k.when(k.compare("ole", a, _number(k, _LIMIT))):

        def integrand(sine: Value, cosine: Value) -> Value:
            value = cast("Value", functions.exp(k, k.mul(a, k.sub(cosine, one))))
            return k.mul(value, cosine) if order else value

        found.set(_mean(k, _HALF, _HALF_STEP, integrand))
    with k.otherwise():
        far = _at_most(k, a, 1e300)
        signed = [(-1) ** i * c for i, c in enumerate(special_bessel.coefficients(order))]
        series = polynomial(k, k.div(one, far), signed)
        found.set(k.div(series, k.intrinsic("sqrt", k.mul(_number(k, 2 * math.pi), far))))
    value = found.get()
    if order:
        small = _at_most(k, a, _SMALL)
        half = k.mul(small, _number(k, 0.5))
        near = k.mul(half, polynomial(k, k.mul(half, half), (1.0, 1 / 2, 1 / 12)))
        near = k.mul(near, functions.exp(k, k.neg(small)))
        value = k.select(k.compare("olt", a, _number(k, _SMALL)), near, value)
        value = k.intrinsic("copysign", value, x)
    value = k.select(k.compare("oeq", a, _number(k, math.inf)), _number(k, 0.0), value)
    return k.select(k.compare("uno", x, x), x, value)


def _i(k: KernelBuilder, order: int, x: Value) -> Value:
    return k.mul(_i_scaled(k, order, x), functions.exp(k, k.intrinsic("fabs", x)))


# -- K -------------------------------------------------------------------------------------------------------------


def _k_series(k: KernelBuilder, order: int, x: Value) -> Value:
    """K_order(x) for 0 < x <= 2."""
    regular: list[float] = []
    weighted: list[float] = []
    term, harmonic = 1.0, (1.0 if order else 0.0) - (2 if order else 1) * special_bessel.EULER
    for i in range(special_bessel.TERMS):
        regular.append(term)
        weighted.append(term * harmonic)
        harmonic += 1 / (i + 1) + (1 / (i + 2) if order else 0.0)
        term /= (i + 1) * (i + 2 if order else i + 1)
    half = k.mul(x, _number(k, 0.5))
    q, logarithm = k.mul(half, half), functions.log(k, half)
    product = k.mul(logarithm, polynomial(k, q, regular))
    total = polynomial(k, q, weighted)
    if not order:
        return k.sub(total, product)
    value = k.add(k.div(_number(k, 1.0), x), k.mul(half, product))
    return k.sub(value, k.mul(k.mul(half, _number(k, 0.5)), total))


def _k_integral(k: KernelBuilder, order: int, x: Value) -> Value:
    """exp(x) K_order(x) for x >= 2: of exp(-x (cosh t - 1)) cosh(order t), by the trapezoidal rule."""
    one, half, root = _number(k, 1.0), _number(k, 0.5), k.intrinsic("sqrt", x)
    total, i = k.variable(half), k.variable(one)
    with k.while_(lambda: k.compare("ole", i.get(), _number(k, float(special_bessel.STEPS)))):
        t = _at_most(k, k.div(k.mul(i.get(), _number(k, special_bessel.STEP)), root), 700.0)
        sine = sinh(k, k.mul(t, half))
        grown = k.mul(_number(k, 2.0), k.mul(sine, sine))  # cosh t - 1
        value = cast("Value", functions.exp(k, k.neg(k.mul(x, grown))))
        total.set(k.add(total.get(), k.mul(value, k.add(one, grown)) if order else value))
        i.set(k.add(i.get(), one))
    return k.div(k.mul(total.get(), _number(k, special_bessel.STEP)), root)


def _k(k: KernelBuilder, order: int, x: Value, *, is_scaled: bool) -> Value:
    found, zero = k.variable(_number(k, 0.0)), _number(k, 0.0)
    with k.when(k.compare("ole", x, _number(k, 2.0))):
        near = _at_least(k, x, 1e-300)
        series = _k_series(k, order, near)
        found.set(k.mul(series, functions.exp(k, near)) if is_scaled else series)
    with k.otherwise():
        far = _at_most(k, x, 1e300)
        integral = _k_integral(k, order, far)
        found.set(integral if is_scaled else k.mul(integral, functions.exp(k, k.neg(far))))
    value = k.select(k.compare("ole", x, zero), _number(k, math.inf), found.get())
    value = k.select(k.compare("oeq", x, _number(k, math.inf)), zero, value)
    return k.select(k.compare("uno", x, x), x, value)


# -- J and Y -------------------------------------------------------------------------------------------------------


def _hankel(k: KernelBuilder, order: int, x: Value) -> tuple[Value, Value]:
    """J and Y for large x."""
    factors = special_bessel.coefficients(order)
    even = [(-1) ** i * c for i, c in enumerate(factors[::2])]
    odd = [(-1) ** i * c for i, c in enumerate(factors[1::2])]
    inverse = k.div(_number(k, 1.0), x)
    square = k.mul(inverse, inverse)
    p, q = polynomial(k, square, even), k.mul(inverse, polynomial(k, square, odd))
    sine, cosine = sine_and_cosine(k, k.sub(x, _number(k, (0.5 * order + 0.25) * math.pi)))
    scale = k.intrinsic("sqrt", k.div(_number(k, 2 / math.pi), x))
    j, y = k.sub(k.mul(p, cosine), k.mul(q, sine)), k.add(k.mul(p, sine), k.mul(q, cosine))
    return k.mul(scale, j), k.mul(scale, y)


def _near_zero(k: KernelBuilder, a: Value) -> Value:
    """J_1 of 0 <= a < 1e-3."""
    half = k.mul(a, _number(k, 0.5))
    return k.mul(half, polynomial(k, k.mul(half, half), (1.0, -1 / 2, 1 / 12)))


def _waves(k: KernelBuilder, order: int, x: Value) -> Callable[[Value, Value], Value]:
    """What is integrated for J."""

    def integrand(sine: Value, cosine: Value) -> Value:
        one, other = sine_and_cosine(k, k.mul(x, sine))
        return k.mul(one, sine) if order else other

    return integrand


def _j(k: KernelBuilder, order: int, x: Value) -> Value:
    a, found = k.intrinsic("fabs", x), k.variable(_number(k, 0.0))
    with k.when(k.compare("ole", a, _number(k, _LIMIT))):
        found.set(_mean(k, _QUARTER, _QUARTER_STEP, _waves(k, order, a)))
    with k.otherwise():
        found.set(_hankel(k, order, _at_most(k, a, 1e300))[0])
    value = found.get()
    if order:
        value = k.select(k.compare("olt", a, _number(k, _SMALL)), _near_zero(k, a), value)
        value = k.select(k.compare("olt", x, _number(k, 0.0)), k.neg(value), value)
    is_finite = k.compare("olt", a, _number(k, math.inf))
    return k.select(is_finite, value, _number(k, math.nan))


def _weight(k: KernelBuilder, sine: Value, cosine: Value) -> Value:
    """The sum of (-1)^n cos(2 n theta) / n up to `special_bessel.MULTIPLES` (Clenshaw)."""
    double = k.mul(_number(k, 2.0), k.sub(k.mul(cosine, cosine), k.mul(sine, sine)))  # 2 cos(2 theta)
    last, before = k.variable(_number(k, 0.0)), k.variable(_number(k, 0.0))
    n, sign = k.variable(_number(k, float(special_bessel.MULTIPLES))), k.variable(_number(k, 1.0))
    with k.while_(lambda: k.compare("oge", n.get(), _number(k, 1.0))):
        now = k.sub(k.add(k.div(sign.get(), n.get()), k.mul(double, last.get())), before.get())
        before.set(last.get())
        last.set(now)
        sign.set(k.neg(sign.get()))
        n.set(k.sub(n.get(), _number(k, 1.0)))
    value = k.sub(k.mul(k.mul(double, _number(k, 0.5)), last.get()), before.get())
    return k.neg(value) if special_bessel.MULTIPLES % 2 else value


def _y(k: KernelBuilder, order: int, x: Value) -> Value:
    """By the series of Neumann."""
    found = k.variable(_number(k, 0.0))
    with k.when(k.compare("ole", x, _number(k, _LIMIT))):
        near = _at_least(k, x, 1e-300)
        j = [k.variable(_number(k, 0.0)) for _ in range(order + 1)]
        waves = [_waves(k, i, near) for i in range(order + 1)]

        def integrand(sine: Value, cosine: Value) -> Value:
            values = [wave(sine, cosine) for wave in waves]
            for sum_of, value in zip(j, values, strict=True):
                sum_of.set(k.add(sum_of.get(), value))
            return k.mul(_weight(k, sine, cosine), values[-1])

        total = _mean(k, _QUARTER, _QUARTER_STEP, integrand)
        means = [k.div(each.get(), _number(k, float(_QUARTER))) for each in j]
        logarithm = k.add(functions.log(k, k.mul(near, _number(k, 0.5))), _number(k, special_bessel.EULER))
        if order:
            one = k.select(k.compare("olt", near, _number(k, _SMALL)), _near_zero(k, near), means[1])
            product = k.sub(k.mul(logarithm, one), k.div(means[0], near))
        else:
            product = k.mul(logarithm, means[0])
        head, tail = k.mul(_number(k, 2 / math.pi), product), k.mul(_number(k, 4 / math.pi), total)
        found.set(k.sub(head, tail))
    with k.otherwise():
        found.set(_hankel(k, order, _at_most(k, x, 1e300))[1])
    value = k.select(k.compare("ole", x, _number(k, 0.0)), _number(k, -math.inf), found.get())
    known = k.compare("olt", x, _number(k, math.inf))
    return k.select(known, value, _number(k, math.nan))


def _register(name: str, write: Callable[[KernelBuilder, Value], Value]) -> None:
    gpu_operator(name, kinds="f", weight=_WEIGHT, in_double=True)(write)


_register("BesselI0e", lambda k, x: _i_scaled(k, 0, x))
_register("BesselI1e", lambda k, x: _i_scaled(k, 1, x))
_register("BesselI0", lambda k, x: _i(k, 0, x))
_register("BesselI1", lambda k, x: _i(k, 1, x))
_register("BesselK0e", lambda k, x: _k(k, 0, x, is_scaled=True))
_register("BesselK1e", lambda k, x: _k(k, 1, x, is_scaled=True))
_register("BesselK0", lambda k, x: _k(k, 0, x, is_scaled=False))
_register("BesselK1", lambda k, x: _k(k, 1, x, is_scaled=False))
_register("BesselJ0", lambda k, x: _j(k, 0, x))
_register("BesselJ1", lambda k, x: _j(k, 1, x))
_register("BesselY0", lambda k, x: _y(k, 0, x))
_register("BesselY1", lambda k, x: _y(k, 1, x))
