"""Bessel functions of orders 0 and 1, in float64.

Up to 25 by the trapezoidal rule on their integrals over a period, which converges geometrically; beyond by
Hankel's asymptotic expansions (DLMF 10.9, 10.17, 10.32, 10.40), whose terms there fall below 1e-17.
"""

from __future__ import annotations

from collections.abc import Callable

from toolkit.kernels.cpu.common import np
from toolkit.kernels.cpu.math.special_error import in_float64
from toolkit.kernels.registry import simple
from toolkit.kernels.types import Array

EULER = 0.57721566490153286061
LIMIT = 25.0
#: Midpoints of a period: by symmetry a half of 96 nodes serves I, a quarter of 160 J and Y.
HALF = 2 * np.pi * (np.arange(48) + 0.5) / 96
QUARTER = 2 * np.pi * (np.arange(40) + 0.5) / 160
TERMS = 22  # of K's series up to 2
STEP, STEPS = 0.3, 32  # of the integral for K beyond
MULTIPLES = 34  # of the angle in Neumann's series


def coefficients(order: int, count: int = 26) -> list[float]:
    """a_k of the asymptotic expansions: products of (4 order^2 - (2j - 1)^2) / (8 j)."""
    out = [1.0]
    for k in range(1, count):
        out.append(out[-1] * (4 * order * order - (2 * k - 1) ** 2) / (8 * k))
    return out


def _periodic(x: Array, nodes: Array, function: Callable[[Array, Array], Array]) -> Array:
    """The mean of function(x, theta) over the nodes, one after the other: no array grows by them."""
    total = np.zeros_like(x)
    for theta in nodes:
        total = total + function(x, theta)
    return total / len(nodes)


# -- I ---------------------------------------------------------------------------------------------------


def _i_scaled(order: int, x: Array) -> Array:
    """exp(-|x|) I_order(x)."""
    a = np.abs(x)
    near = np.minimum(a, LIMIT)

    def integrand(value: Array, theta: Array) -> Array:
        return np.exp(value * (np.cos(theta) - 1)) * np.cos(order * theta)

    inside = _periodic(near, HALF, integrand)
    far = np.clip(a, LIMIT, 1e300)
    series, power = np.zeros_like(far), np.ones_like(far)
    for k, c in enumerate(coefficients(order)):
        series = series + (-1) ** k * c * power
        power = power / far
    value = np.where(a <= LIMIT, inside, series / np.sqrt(2 * np.pi * far))
    if order == 1:
        small = np.minimum(a, 1e-3)  # the mean is a difference of near equals there
        half = small / 2
        value = np.where(a < 1e-3, np.exp(-small) * half * (1 + half**2 / 2 * (1 + half**2 / 6)), value)
        value = np.copysign(value, x)
    value = np.where(np.isinf(x), 0.0, value)
    return np.where(np.isnan(x), np.nan, value)


def _register(name: str, function: Callable[[Array], Array]) -> None:
    simple(name)(in_float64(function))


_register("BesselI0e", lambda x: _i_scaled(0, x))
_register("BesselI1e", lambda x: _i_scaled(1, x))
_register("BesselI0", lambda x: _i_scaled(0, x) * np.exp(np.abs(x)))
_register("BesselI1", lambda x: _i_scaled(1, x) * np.exp(np.abs(x)))


# -- K ---------------------------------------------------------------------------------------------------


def _k_scaled(order: int, x: Array) -> Array:
    """exp(x) K_order(x) for x > 0: a series up to 2, beyond the integral of exp(-x (cosh t - 1)) cosh(order t)."""
    near = np.clip(x, 1e-300, 2)
    q = near * near / 4
    logarithm = np.log(near / 2)
    term, total, regular = np.ones_like(q), np.zeros_like(q), np.zeros_like(q)
    harmonic = -2 * EULER + 1 if order else -EULER
    for k in range(TERMS):
        if order:
            regular = regular + term
            total = total + term * harmonic
            harmonic += 1 / (k + 1) + 1 / (k + 2)
            term = term * q / ((k + 1) * (k + 2))
        else:
            regular = regular + term
            total = total + term * harmonic
            harmonic += 1 / (k + 1)
            term = term * q / ((k + 1) ** 2)
    if order:
        series = 1 / near + logarithm * (near / 2) * regular - near / 4 * total
    else:
        series = total - logarithm * regular
    far = np.clip(x, 2, 1e300)
    integral = np.full_like(far, 0.5)
    root = np.sqrt(far)
    for i in range(1, STEPS + 1):
        t = i * STEP / root
        grown = 2 * np.square(np.sinh(np.minimum(t, 700) / 2))  # cosh t - 1
        integral = integral + np.exp(-far * grown) * (1 + grown if order else 1)
    value = np.where(x <= 2, series * np.exp(near), integral * STEP / root)
    value = np.where(x <= 0, np.inf, np.where(np.isposinf(x), 0.0, value))
    return np.where(np.isnan(x), np.nan, value)


_register("BesselK0e", lambda x: _k_scaled(0, x))
_register("BesselK1e", lambda x: _k_scaled(1, x))
_register("BesselK0", lambda x: _k_scaled(0, x) * np.exp(-x))
_register("BesselK1", lambda x: _k_scaled(1, x) * np.exp(-x))


# -- J and Y ---------------------------------------------------------------------------------------------


def _hankel(order: int, x: Array) -> tuple[Array, Array]:
    """J and Y for large x."""
    p, q, power = np.zeros_like(x), np.zeros_like(x), np.ones_like(x)
    for k, c in enumerate(coefficients(order)):
        sign = -1 if k // 2 % 2 else 1
        if k % 2 == 0:
            p = p + sign * c * power
        else:
            q = q + sign * c * power
        power = power / x
    phase = x - (0.5 * order + 0.25) * np.pi
    scale = np.sqrt(2 / (np.pi * x))
    return scale * (p * np.cos(phase) - q * np.sin(phase)), scale * (p * np.sin(phase) + q * np.cos(phase))


def _j(order: int, x: Array) -> Array:
    a = np.abs(x)
    near = np.minimum(a, LIMIT)

    def integrand(value: Array, theta: Array) -> Array:
        angle = value * np.sin(theta)
        return np.cos(angle) if order == 0 else np.sin(angle) * np.sin(theta)

    value = np.where(a <= LIMIT, _periodic(near, QUARTER, integrand), _hankel(order, np.clip(a, LIMIT, 1e300))[0])
    if order == 1:
        small = np.minimum(a, 1e-3) / 2
        value = np.where(a < 1e-3, small * (1 - small**2 / 2 * (1 - small**2 / 6)), value)
        value = np.where(x < 0, -value, value)
    return np.where(np.isfinite(x), value, np.nan)


#: Neumann's series Y_0 = 2/pi (log(x/2) + gamma) J_0 - 4/pi sum (-1)^k J_2k / k, its sum taken under the integral
_WEIGHTS: Array = sum((-1) ** k * np.cos(2 * k * QUARTER) / k for k in range(1, MULTIPLES + 1))


def _y(order: int, x: Array) -> Array:
    near = np.clip(x, 1e-300, LIMIT)
    logarithm = np.log(near / 2) + EULER
    total = np.zeros_like(near)
    for theta, weight in zip(QUARTER, _WEIGHTS, strict=True):
        sine = np.sin(theta)
        total = total + weight * (np.cos(near * sine) if order == 0 else sine * np.sin(near * sine))
    total = total / len(QUARTER)
    if order == 0:
        inside = 2 / np.pi * logarithm * _j(0, near) - 4 / np.pi * total
    else:
        inside = 2 / np.pi * (logarithm * _j(1, near) - _j(0, near) / near) - 4 / np.pi * total
    value = np.where(x <= LIMIT, inside, _hankel(order, np.clip(x, LIMIT, 1e300))[1])
    value = np.where(x < 0, -np.inf, np.where(x == 0, -np.inf, value))
    return np.where(np.isnan(x) | np.isposinf(x), np.nan, value)


_register("BesselJ0", lambda x: _j(0, x))
_register("BesselJ1", lambda x: _j(1, x))
_register("BesselY0", lambda x: _y(0, x))
_register("BesselY1", lambda x: _y(1, x))
