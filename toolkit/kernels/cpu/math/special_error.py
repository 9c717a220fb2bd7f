"""The error function and its kin. Everything is computed in float64 and rounded to the input's type."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from toolkit.kernels.cpu.common import np
from toolkit.kernels.registry import simple
from toolkit.kernels.types import Array


def in_float64(function: Callable[..., Array]) -> Callable[..., Array]:
    """A function of float64 arrays for arrays of any floating type, which broadcast."""

    def compute(*values: Array) -> Array:
        dtype = values[0].dtype
        return np.asarray(function(*(v.astype(np.float64) for v in values))).astype(dtype)

    return compute


def polynomial(x: Array, coefficients: Sequence[float]) -> Array:
    """By Horner's rule, constant term first."""
    out = np.full_like(x, coefficients[-1])
    for c in reversed(coefficients[:-1]):
        out = out * x + c
    return out


# Rational approximations to erf and erfc of relative error below 1e-19, with the numbers of fdlibm (Sun, 1993):
# around 0 (in x^2), around 1 (in |x| - 1), for 1.25 <= |x| < 1/0.35 and beyond (in 1/x^2).
NEAR_0 = (
    (1.28379167095512558561e-01, -3.25042107247001499370e-01, -2.84817495755985104766e-02,
     -5.77027029648944159157e-03, -2.37630166566501626084e-05),
    (1.0, 3.97917223959155352819e-01, 6.50222499887672944485e-02, 5.08130628187576562776e-03,
     1.32494738004321644526e-04, -3.96022827877536812320e-06),
)  # fmt: skip
ERF_1 = 8.45062911510467529297e-01
NEAR_1 = (
    (-2.36211856075265944077e-03, 4.14856118683748331666e-01, -3.72207876035701323847e-01,
     3.18346619901161753674e-01, -1.10894694282396677476e-01, 3.54783043256182359371e-02,
     -2.16637559486879084300e-03),
    (1.0, 1.06420880400844228286e-01, 5.40397917702171048937e-01, 7.18286544141962662868e-02,
     1.26171219808761642112e-01, 1.36370839120290507362e-02, 1.19844998467991074170e-02),
)  # fmt: skip
MIDDLE = (
    (-9.86494403484714822705e-03, -6.93858572707181764372e-01, -1.05586262253232909814e+01,
     -6.23753324503260060396e+01, -1.62396669462573470355e+02, -1.84605092906711035994e+02,
     -8.12874355063065934246e+01, -9.81432934416914548592e+00),
    (1.0, 1.96512716674392571292e+01, 1.37657754143519042600e+02, 4.34565877475229228821e+02,
     6.45387271733267880336e+02, 4.29008140027567833386e+02, 1.08635005541779435134e+02,
     6.57024977031928170135e+00, -6.04244152148580987438e-02),
)  # fmt: skip
FAR = (
    (-9.86494292470009928597e-03, -7.99283237680523006574e-01, -1.77579549177547519889e+01,
     -1.60636384855821916062e+02, -6.37566443368389627722e+02, -1.02509513161107724954e+03,
     -4.83519191608651397019e+02),
    (1.0, 3.03380607434824582924e+01, 3.25792512996573918826e+02, 1.53672958608443695994e+03,
     3.19985821950859553908e+03, 2.55305040643316442583e+03, 4.74528541206955367215e+02,
     -2.24409524465858183362e+01),
)  # fmt: skip


def _ratio(x: Array, pair: tuple[Sequence[float], Sequence[float]]) -> Array:
    return polynomial(x, pair[0]) / polynomial(x, pair[1])


def _tail(a: Array) -> Array:
    """erfc of a >= 1.25."""
    s = 1 / (a * a)
    ratio = np.where(a < 1 / 0.35, _ratio(s, MIDDLE), _ratio(s, FAR))
    # exp(-a^2) in two factors, the first of a number with few bits, so that a^2 loses none
    head = (a.view(np.uint64) & np.uint64(0xFFFFFFFF00000000)).view(np.float64)
    return np.exp(-head * head - 0.5625) * np.exp((head - a) * (head + a) + ratio) / a


def erf(x: Array) -> Array:
    x = np.asarray(x, order="C")  # of one number: ascontiguousarray would make it a vector
    a = np.abs(x)
    near_0 = x + x * _ratio(np.where(a < 0.84375, x * x, 0), NEAR_0)
    near_1 = np.copysign(ERF_1 + _ratio(np.where(a < 1.25, a - 1, 0), NEAR_1), x)
    far = np.copysign(1 - _tail(np.clip(a, 1.25, 6)), x)
    return np.where(a < 0.84375, near_0, np.where(a < 1.25, near_1, np.where(np.isnan(x), x, far)))


def erfc(x: Array) -> Array:
    x = np.asarray(x, order="C")  # of one number: ascontiguousarray would make it a vector
    a = np.abs(x)
    near_0 = 1 - (x + x * _ratio(np.where(a < 0.84375, x * x, 0), NEAR_0))
    value = _ratio(np.where(a < 1.25, a - 1, 0), NEAR_1)
    near_1 = np.where(x >= 0, (1 - ERF_1) - value, 1 + (ERF_1 + value))
    tail = _tail(np.clip(a, 1.25, 28))
    far = np.where(x >= 0, tail, 2 - tail)
    return np.where(a < 0.84375, near_0, np.where(a < 1.25, near_1, np.where(np.isnan(x), x, far)))


# The normal quantile of Wichura's algorithm AS 241 (Applied Statistics 37, 1988): around the middle, in the
# tails, and far out.
CENTRE = (
    (3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3, 1.3731693765509461125e4,
     4.5921953931549871457e4, 6.7265770927008700853e4, 3.3430575583588128105e4, 2.5090809287301226727e3),
    (1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3, 2.1213794301586595867e4,
     3.9307895800092710610e4, 2.8729085735721942674e4, 5.2264952788528545610e3),
)  # fmt: skip
TAILS = (
    (1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0, 3.64784832476320460504e0,
     1.27045825245236838258e0, 2.41780725177450611770e-1, 2.27238449892691845833e-2, 7.74545014278341407640e-4),
    (1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
     1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4, 1.05075007164441684324e-9),
)  # fmt: skip
FAR_OUT = (
    (6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0, 2.96560571828504891230e-1,
     2.65321895265761230930e-2, 1.24266094738807843860e-3, 2.71155556874348757815e-5, 2.01033439929228813265e-7),
    (1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
     7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7, 2.04426310338993978564e-15),
)  # fmt: skip


def _quantile(centred: Array, smaller: Array) -> Array:
    """The normal quantile of p, given p - 1/2 and min(p, 1 - p)."""
    middle = centred * _ratio(np.where(np.abs(centred) <= 0.425, 0.180625 - centred * centred, 0), CENTRE)
    r = np.sqrt(-np.log(np.where(smaller > 0, smaller, 1)))
    tail = np.where(r <= 5, _ratio(np.minimum(r, 5) - 1.6, TAILS), _ratio(np.maximum(r, 5) - 5, FAR_OUT))
    out = np.where(np.abs(centred) <= 0.425, middle, np.copysign(tail, centred))
    out = np.where(smaller == 0, np.copysign(np.inf, centred), out)
    return np.where((smaller >= 0) & (smaller <= 0.5), out, np.nan)


def ndtri(p: Array) -> Array:
    """The quantile function of the standard normal distribution."""
    return _quantile(p - 0.5, np.minimum(p, 1 - p))


def erfinv(x: Array) -> Array:
    return _quantile(x / 2, (1 - np.abs(x)) / 2) / np.sqrt(2.0)


simple("Erf")(in_float64(erf))
simple("Erfc")(in_float64(erfc))
simple("Erfinv")(in_float64(erfinv))
simple("Ndtri")(in_float64(ndtri))


DAWSON_STEP, DAWSON_REACH = 0.2, 35  # of Rybicki's series, and how many steps to either side it goes
DAWSON_SERIES = (1, -2 / 3, 4 / 15, -8 / 105, 16 / 945, -32 / 10395, 64 / 135135)


@simple("Dawsn")
@in_float64
def dawsn(x: Array) -> Array:
    """Dawson's integral exp(-x^2) int_0^x exp(t^2) dt, by Rybicki's sampling series (Computers in Physics 3,
    1989): sums of Gaussians at odd multiples of h are exact to exp(-(pi / 2h)^2)."""
    h = DAWSON_STEP
    a = np.abs(x)
    centre = 2 * np.rint(0.5 * np.minimum(a, 1e8) / h)
    total = np.zeros_like(a)
    for n in range(-DAWSON_REACH, DAWSON_REACH + 1, 2):
        total = total + np.exp(-np.square(a - (centre + n) * h)) / (centre + n)
    value = np.where(a > 1e7, 0.5 / a, total / np.sqrt(np.pi))
    small = a * polynomial(a * a, DAWSON_SERIES)
    return np.copysign(np.where(a < 0.1, small, value), x)


@in_float64
def _fresnel_sin(x: Array) -> Array:
    return _fresnel(x)[0]


@in_float64
def _fresnel_cos(x: Array) -> Array:
    return _fresnel(x)[1]


simple("FresnelSin")(_fresnel_sin)
simple("FresnelCos")(_fresnel_cos)


FRESNEL_LIMIT = 1.6  # up to which the power series are taken
FRESNEL_STEP, FRESNEL_STEPS = 0.2, 26  # of the auxiliary functions' integrals


def fresnel_series(*, is_sine: bool) -> list[float]:
    """Factors of the powers of (pi x^2 / 2)^2 in the series of S / (pi x^3 / 6) or of C / x."""
    factors = [1.0]
    for k in range(1, 22):
        if is_sine:
            factors.append(-factors[-1] / ((2 * k) * (2 * k + 1)) * (4 * k - 1) / (4 * k + 3))
        else:
            factors.append(-factors[-1] / ((2 * k - 1) * (2 * k)) * (4 * k - 3) / (4 * k + 1))
    return factors


def _fresnel(x: Array) -> tuple[Array, Array]:
    """S and C: power series near 0; beyond, the auxiliary functions f and g of DLMF 7.7.10-11, integrals of
    exp(-pi x^2 s^2 / 2) / (1 + s^4) and s^2 times it over the line, by the trapezoidal rule."""
    a = np.abs(x)
    near = np.minimum(a, FRESNEL_LIMIT)
    t = np.square(0.5 * np.pi * near * near)
    s_sum = near**3 * np.pi / 6 * polynomial(t, fresnel_series(is_sine=True))
    c_sum = near * polynomial(t, fresnel_series(is_sine=False))
    far = np.clip(a, FRESNEL_LIMIT, 1e8)
    h = FRESNEL_STEP
    f, g = np.full_like(far, 0.5), np.zeros_like(far)
    for i in range(1, FRESNEL_STEPS + 1):
        v = i * h
        s2 = np.square(v / far)
        weight = np.exp(-0.5 * np.pi * v * v) / (1 + s2 * s2)
        f, g = f + weight, g + weight * s2
    scale = h * np.sqrt(2.0) / (np.pi * far)
    f, g = f * scale, g * scale
    angle = 0.5 * np.pi * np.fmod(far * far, 4)
    s_far = 0.5 - f * np.cos(angle) - g * np.sin(angle)
    c_far = 0.5 + f * np.sin(angle) - g * np.cos(angle)
    s_value = np.where(a <= FRESNEL_LIMIT, s_sum, np.where(a > 1e7, 0.5, s_far))
    c_value = np.where(a <= FRESNEL_LIMIT, c_sum, np.where(a > 1e7, 0.5, c_far))
    return np.copysign(s_value, x), np.copysign(c_value, x)
