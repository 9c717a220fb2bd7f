"""The gamma function and its kin: incomplete gamma and beta, zeta, exponential integral, dilogarithm.

Computed in float64 and rounded to the input's type.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from toolkit.kernels.cpu.common import check_broadcast, np, require, shape_text
from toolkit.kernels.cpu.math.special_error import in_float64, polynomial
from toolkit.kernels.registry import simple
from toolkit.kernels.types import Array

EULER = 0.57721566490153286061
#: Bernoulli numbers B_2, B_4, ...
BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330)
STIRLING = tuple(b / (2 * k * (2 * k - 1)) for k, b in enumerate(BERNOULLI, 1))
DIGAMMA = tuple(-b / (2 * k) for k, b in enumerate(BERNOULLI, 1))


def _zeta_less_one(k: int) -> float:
    """The sum of n^-k from n = 2 on: 58 terms, and the rest as Euler and Maclaurin have it."""
    n = 60.0
    rest = n ** (1 - k) / (k - 1) + n**-k / 2
    factor = n ** (-k - 1) * k
    for step, divisor in enumerate((12, -720, 30240)):
        rest += factor / divisor
        factor *= (k + 2 * step + 1) * (k + 2 * step + 2) / (n * n)
    return math.fsum([*(float(m) ** -k for m in range(2, 60)), rest])


#: lgamma(2 + d) = (1 - Euler's number) d + the sum of (-1)^k (zeta(k) - 1) / k d^k: up to |d| = 1/2 each term is less
#: than a quarter of the one before
AT_TWO = (1 - EULER, *((-1) ** k * _zeta_less_one(k) / k for k in range(2, 29)))


def _lgamma_positive(x: Array) -> Array:
    """Stirling's series above 8; below, the recurrence leads to numbers about 2, where lgamma is 0."""
    small = x < 8
    y = np.where(small, x, 2.0)
    steps = np.rint(y - 2)
    d = y - (steps + 2)
    factors = np.ones_like(y)
    for k in range(1, 7):
        factors = np.where(steps >= k, factors * (y - k), factors)
    factors = np.where(steps == -2, 1 / (y * (y + 1)), factors)
    with np.errstate(divide="ignore"):
        logarithm = np.where(steps == -1, -np.log1p(np.where(steps == -1, d, 0.0)), np.log(factors))
    below = logarithm + d * polynomial(d, AT_TWO)
    z = np.where(small, 8.0, x)
    above = (z - 0.5) * np.log(z) - z + 0.5 * np.log(2 * np.pi) + polynomial(1 / (z * z), STIRLING) / z
    return np.where(small, below, above)


def lgamma(x: Array) -> Array:
    """log |gamma(x)|."""
    positive = np.where(x > 0, x, 1 - x)
    infinite = ~np.isfinite(positive)
    value = _lgamma_positive(np.where(infinite, 1, positive))
    reduced = x - np.floor(x)
    reflected = np.log(np.pi / np.abs(np.sin(np.pi * reduced))) - value
    out = np.where(x > 0, value, np.where(reduced == 0, np.inf, reflected))
    return np.where(np.isnan(x), np.nan, np.where(np.isinf(x), np.inf, out))


def digamma(x: Array) -> Array:
    """The derivative of log gamma; NaN at the poles below 0, as Eigen has it."""
    reflect = x <= 0
    y = np.where(reflect, 1 - x, x)
    total = np.zeros_like(y)
    z = y.copy()
    for _ in range(10):
        low = z < 10
        total = np.where(low, total - 1 / np.where(low, z, 1), total)
        z = np.where(low, z + 1, z)
    inverse = 1 / (z * z)
    value = total + np.log(z) - 0.5 / z + inverse * polynomial(inverse, DIGAMMA)
    reduced = x - np.floor(x)
    pole = reflect & (reduced == 0)
    safe = np.where(reflect & ~pole, reduced, 0.25)
    value = np.where(reflect, value - np.pi / np.tan(np.pi * safe), value)
    return np.where(pole, np.nan, value)


simple("Lgamma")(in_float64(lgamma))
simple("Digamma")(in_float64(digamma))


def _broadcast64(function: Callable[..., Array]) -> Callable[..., Array]:
    """As `in_float64`, for two arguments brought to one shape first."""

    def compute(x: Array, y: Array) -> Array:
        check_broadcast(x, y)
        a, b = np.broadcast_arrays(x.astype(np.float64), y.astype(np.float64))
        return np.asarray(function(a, b)).astype(x.dtype)

    return compute


# -- incomplete gamma ------------------------------------------------------------------------------------


def _series(a: Array, x: Array) -> tuple[Array, Array]:
    """Sum of x^n / ((a + 1) ... (a + n)), and its derivative in a (DLMF 8.11.4)."""
    term, total = np.ones_like(a), np.ones_like(a)
    slope, slope_total = np.zeros_like(a), np.zeros_like(a)
    for n in range(1, 2000):
        factor = x / (a + n)
        slope = slope * factor - term * factor / (a + n)
        term = term * factor
        total, slope_total = total + term, slope_total + slope
        if (term <= 1e-17 * total).all() and (np.abs(slope) <= 1e-17 * np.abs(slope_total) + 1e-300).all():
            break
    return total, slope_total


def _fraction(a: Array, x: Array) -> tuple[Array, Array]:
    """The continued fraction of gamma(a, x) x^-a e^x (DLMF 8.9.2), from its tail, and its derivative in a."""
    value, slope = np.zeros_like(a), np.zeros_like(a)
    depth = 600
    for n in range(depth, 0, -1):
        # value_n = n (n - a) / (x + 2n + 1 - a - value_{n+1})
        below = x + 2 * n + 1 - a - value
        value, slope = n * (n - a) / below, (-n + n * (n - a) * (1 + slope) / below) / below
    below = x + 1 - a - value
    return 1 / below, (1 + slope) / (below * below)


def _lower_and_upper(a: Array, x: Array) -> tuple[Array, Array]:
    """The regularized incomplete gamma functions P and Q."""
    usable = (a > 0) & (x > 0) & np.isfinite(x) & np.isfinite(a)
    sa, sx = np.where(usable, a, 1.0), np.where(usable, x, 1.0)
    scale = np.exp(sa * np.log(sx) - sx - lgamma(sa))
    lower = np.zeros_like(sa)
    small = sx < sa + 1
    lower[small] = (_series(sa[small], sx[small])[0] * scale[small] / sa[small]) if small.any() else 0
    upper = 1 - lower
    if not small.all():
        upper[~small] = _fraction(sa[~small], sx[~small])[0] * scale[~small]
        lower[~small] = 1 - upper[~small]
    lower, upper = _edges(a, x, lower, 0.0), _edges(a, x, upper, 1.0)
    return lower, upper


def _edges(a: Array, x: Array, value: Array, at_zero: float) -> Array:
    value = np.where(x == 0, at_zero, value)
    value = np.where(np.isposinf(x), 1 - at_zero, value)
    value = np.where(np.isposinf(a) & np.isfinite(x), at_zero, value)
    invalid = (x < 0) | (a <= 0) | np.isnan(x) | np.isnan(a) | (np.isposinf(a) & np.isposinf(x))
    return np.where(invalid, np.nan, value)


@simple("Igamma")
@_broadcast64
def igamma(a: Array, x: Array) -> Array:
    return _lower_and_upper(a, x)[0]


@simple("Igammac")
@_broadcast64
def igammac(a: Array, x: Array) -> Array:
    return _lower_and_upper(a, x)[1]


def igamma_gradient(a: Array, x: Array) -> Array:
    """d P(a, x) / da."""
    usable = (a > 0) & (x > 0) & np.isfinite(x) & np.isfinite(a)
    sa, sx = np.where(usable, a, 1.0), np.where(usable, x, 1.0)
    scale = np.exp(sa * np.log(sx) - sx - lgamma(sa))
    rate = np.log(sx) - digamma(sa)
    small = sx < sa + 1
    out = np.zeros_like(sa)
    if small.any():
        total, slope = _series(sa[small], sx[small])
        out[small] = scale[small] / sa[small] * (slope + total * (rate[small] - 1 / sa[small]))
    if not small.all():
        total, slope = _fraction(sa[~small], sx[~small])
        out[~small] = -scale[~small] * (slope + total * rate[~small])
    return np.where(x == 0, 0.0, np.where(usable, out, np.nan))


simple("IgammaGradA")(_broadcast64(igamma_gradient))


@simple("RandomGammaGrad")
@_broadcast64
def random_gamma_grad(alpha: Array, sample: Array) -> Array:
    """d sample / d alpha of a gamma-distributed sample, by implicit differentiation of its distribution."""
    density = np.exp((alpha - 1) * np.log(sample) - sample - lgamma(alpha))
    return -igamma_gradient(alpha, sample) / density


# -- incomplete beta -------------------------------------------------------------------------------------


def _beta_fraction(a: Array, b: Array, x: Array) -> Array:
    """Lentz's evaluation of the continued fraction of DLMF 8.17.22."""
    tiny = 1e-300
    c = np.ones_like(x)
    d = 1 - (a + b) * x / (a + 1)
    d = 1 / np.where(np.abs(d) < tiny, tiny, d)
    value = d
    for m in range(1, 3000):
        for factor in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 + factor * d
            d = 1 / np.where(np.abs(d) < tiny, tiny, d)
            c = 1 + factor / c
            c = np.where(np.abs(c) < tiny, tiny, c)
            change = c * d
            value = value * change
        if (np.abs(change - 1) < 1e-16).all():
            break
    return value


def betainc(a: Array, b: Array, x: Array) -> Array:
    """The regularized incomplete beta function I_x(a, b)."""
    inside = (a > 0) & (b > 0) & (x > 0) & (x < 1)
    sa, sb, sx = np.where(inside, a, 1.0), np.where(inside, b, 1.0), np.where(inside, x, 0.5)
    front = np.exp(lgamma(sa + sb) - lgamma(sa) - lgamma(sb) + sa * np.log(sx) + sb * np.log1p(-sx))
    direct = sx < (sa + 1) / (sa + sb + 2)
    first, second = np.where(direct, sa, sb), np.where(direct, sb, sa)
    value = front * _beta_fraction(first, second, np.where(direct, sx, 1 - sx)) / first
    value = np.where(direct, value, 1 - value)
    value = np.where(x == 0, 0.0, np.where(x == 1, 1.0, value))
    return np.where((a > 0) & (b > 0) & (x >= 0) & (x <= 1), value, np.nan)


def common_shape(a: Array, b: Array, x: Array) -> tuple[int, ...]:
    """The shape of Betainc's result: a, b and x have one shape, or are scalars.

    Raises:
        InvalidArgumentError: they have several.
    """
    shapes = {v.shape for v in (a, b, x) if v.ndim}
    require(
        len(shapes) <= 1,
        f"Shapes of a, b and x are inconsistent: {shape_text(a)} vs. {shape_text(b)} vs. {shape_text(x)}",
    )
    return next(iter(shapes), ())


@simple("Betainc")
def betainc_op(a: Array, b: Array, x: Array) -> Array:
    common_shape(a, b, x)
    values = np.broadcast_arrays(*(v.astype(np.float64) for v in (a, b, x)))
    return np.asarray(betainc(*values)).astype(a.dtype)


# -- zeta and others -------------------------------------------------------------------------------------


def zeta(s: Array, q: Array) -> Array:
    """Hurwitz's zeta function, by the formula of Euler and Maclaurin (DLMF 25.11.28)."""
    usable = (s > 1) & ((q > 0) | (np.floor(s) == s)) & ~((q <= 0) & (np.floor(q) == q))
    ss, sq = np.where(usable, s, 2.0), np.where(usable, q, 1.0)
    total = np.zeros_like(ss)
    z = sq.copy()
    lift = np.maximum(0, np.ceil(-np.where(np.isfinite(sq), sq, 1))).astype(np.int64)
    for k in range(12 + int(lift.max(initial=0))):
        active = k < 12 + lift
        total = np.where(active, total + np.power(z, -ss), total)
        z = np.where(active, z + 1, z)
    total = total + np.power(z, 1 - ss) / (ss - 1) + 0.5 * np.power(z, -ss)
    term = ss * np.power(z, -ss - 1)
    factorial = 2.0
    for k, bernoulli in enumerate(BERNOULLI, 1):
        total = total + bernoulli / factorial * term
        term = term * (ss + 2 * k - 1) * (ss + 2 * k) / (z * z)
        factorial *= (2 * k + 1) * (2 * k + 2)
    out = np.where(usable, total, np.nan)
    # at the poles TensorFlow has infinity for even s, where both sides agree, and NaN for others
    out = np.where((s > 1) & (q <= 0) & (np.floor(q) == q), np.where(np.fmod(s, 2) == 0, np.inf, np.nan), out)
    return np.where(s == 1, np.inf, np.where(np.isnan(s) | np.isnan(q), np.nan, out))


simple("Zeta")(_broadcast64(zeta))


@simple("Polygamma")
@_broadcast64
def polygamma(n: Array, x: Array) -> Array:
    order = np.where((n >= 0) & (np.floor(n) == n), n, 1)
    sign = np.where(np.fmod(order, 2) == 0, -1.0, 1.0)
    higher = sign * np.exp(lgamma(order + 1)) * zeta(np.where(order == 0, 2, order + 1), np.array(x))
    value = np.where(order == 0, digamma(np.array(x)), higher)
    return np.where((n >= 0) & (np.floor(n) == n), value, np.nan)


EXPINT_LIMIT, EXPINT_TERMS = 40.0, 159  # up to which the series is taken, and so many terms of it
EXPINT_TAIL = 37  # terms of the asymptotic series


def _expint_positive(x: Array) -> Array:
    near = np.minimum(x, EXPINT_LIMIT)
    term, total = np.ones_like(x), np.zeros_like(x)
    for k in range(1, EXPINT_TERMS + 1):
        term = term * near / k
        total = total + term / k
    far = np.maximum(x, EXPINT_LIMIT)
    tail, term = np.ones_like(x), np.ones_like(x)
    for k in range(1, EXPINT_TAIL + 1):
        term = term * k / far
        tail = tail + term
    return np.where(x <= EXPINT_LIMIT, EULER + np.log(near) + total, np.exp(far) / far * tail)


@simple("Expint")
@in_float64
def expint(x: Array) -> Array:
    """Ei(x) for positive x; NaN below 0."""
    value = _expint_positive(np.where(x > 0, x, 1.0))
    return np.where(x > 0, value, np.where(x == 0, -np.inf, np.nan))


#: Li_2(1 - e^-u) = u - u^2 / 4 + u^3 times a polynomial in u^2, for small u
DILOGARITHM = tuple(b / math.factorial(2 * k + 1) for k, b in enumerate(BERNOULLI, 1))


def _dilogarithm(u: Array) -> Array:
    """Li_2(1 - e^-u) for small u, by the series in Bernoulli numbers."""
    return u - u * u / 4 + u * u * u * polynomial(u * u, DILOGARITHM)


@simple("Spence")
@in_float64
def spence(x: Array) -> Array:
    """The dilogarithm as Spence has it: the integral of -log(t) / (t - 1) from 1 to x; NaN below 0."""
    safe = np.where(x > 0, x, 1.0)
    high = safe > 2
    y = np.where(high, 1 / safe, safe)
    low = y < 0.5
    value = _dilogarithm(-np.log(np.where(low, 1 - y, y)))
    value = np.where(low, np.pi**2 / 6 - np.log(y) * np.log1p(-np.where(low, y, 0)) - value, value)
    value = np.where(high, -0.5 * np.log(safe) ** 2 - value, value)
    return np.where(x == 0, np.pi**2 / 6, np.where(x > 0, value, np.nan))
