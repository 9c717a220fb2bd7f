"""Complex numbers: arithmetic as NumPy has it, and functions by those of their parts.

Functions of complex64 are computed in double and rounded, so that squares neither overflow nor lose digits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolkit.kernels.cpu.native import functions
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import Value
from toolkit.kernels.gpu.operators.table import gpu_operator
from toolkit.kernels.gpu.operators.trigonometric import atan2, cosh, sine_and_cosine, sinh, tan
from toolkit.kernels.gpu.primitives.element_types import ComplexNumber

_C = ComplexNumber
WriteComplex = Callable[..., Any]


def _in_double(write: WriteComplex) -> WriteComplex:
    """Parts are widened for a function, and what it gives is rounded."""

    def run(k: KernelBuilder, *numbers: ComplexNumber) -> ComplexNumber | Value:
        type = numbers[0].real.type
        made = write(k, *(_C(*(k.convert(part, "double") for part in z)) for z in numbers))
        if isinstance(made, ComplexNumber):
            return _C(*(k.convert(part, type) for part in made))
        return k.convert(made, type)

    return run


def _is_zero(k: KernelBuilder, z: ComplexNumber) -> Value:
    zero = k.number(0.0, z.real.type)
    return k.both(k.compare("oeq", z.real, zero), k.compare("oeq", z.imag, zero))


def choose(k: KernelBuilder, condition: Value, a: ComplexNumber, b: ComplexNumber) -> ComplexNumber:
    """One of two numbers."""
    return _C(k.select(condition, a.real, b.real), k.select(condition, a.imag, b.imag))


gpu_operator("Select", "SelectV2", kinds="c", weight=2)(choose)


@gpu_operator("Add", "AddV2", "BiasAdd", "BiasAddV1", kinds="c", weight=2)
def add(k: KernelBuilder, a: ComplexNumber, b: ComplexNumber) -> ComplexNumber:
    return _C(k.add(a.real, b.real), k.add(a.imag, b.imag))


@gpu_operator("AddN", "AccumulateNV2", kinds="c", weight=4)
def add_n(k: KernelBuilder, first: ComplexNumber, *others: ComplexNumber) -> ComplexNumber:
    for other in others:
        first = add(k, first, other)
    return first


@gpu_operator("Sub", kinds="c", weight=2)
def sub(k: KernelBuilder, a: ComplexNumber, b: ComplexNumber) -> ComplexNumber:
    return _C(k.sub(a.real, b.real), k.sub(a.imag, b.imag))


@gpu_operator("Mul", kinds="c", weight=6)
def mul(k: KernelBuilder, a: ComplexNumber, b: ComplexNumber) -> ComplexNumber:
    real = k.sub(k.mul(a.real, b.real), k.mul(a.imag, b.imag))
    return _C(real, k.add(k.mul(a.real, b.imag), k.mul(a.imag, b.real)))


@gpu_operator("Square", kinds="c", weight=6)
def square(k: KernelBuilder, a: ComplexNumber) -> ComplexNumber:
    return mul(k, a, a)


@gpu_operator("SquaredDifference", kinds="c", weight=8)
def squared_difference(k: KernelBuilder, a: ComplexNumber, b: ComplexNumber) -> ComplexNumber:
    """The difference times its conjugate."""
    difference = sub(k, a, b)
    return mul(k, difference, conj(k, difference))


@gpu_operator("Div", "RealDiv", kinds="c", weight=30)
def div(k: KernelBuilder, a: ComplexNumber, b: ComplexNumber) -> ComplexNumber:
    """By Smith's method (CACM 5, 1962), whose divisor does not overflow."""
    one = k.number(1.0, a.real.type)
    is_wide = k.compare("oge", k.intrinsic("fabs", b.real), k.intrinsic("fabs", b.imag))
    large, small = k.select(is_wide, b.real, b.imag), k.select(is_wide, b.imag, b.real)
    ratio = k.div(small, large)
    scale = k.div(one, k.add(large, k.mul(small, ratio)))
    turned = _C(k.select(is_wide, a.real, a.imag), k.select(is_wide, a.imag, k.neg(a.real)))
    # of (a + ib) / (c + id) with |c| < |d|: (b - ia) / (d - ic)
    sign = k.select(is_wide, ratio, k.neg(ratio))
    real = k.mul(k.add(turned.real, k.mul(turned.imag, sign)), scale)
    imag = k.mul(k.sub(turned.imag, k.mul(turned.real, sign)), scale)
    size = k.intrinsic("fabs", b.real)
    return choose(k, _is_zero(k, b), _C(k.div(a.real, size), k.div(a.imag, size)), _C(real, imag))


@gpu_operator("Reciprocal", "Inv", kinds="c", weight=30)
def reciprocal(k: KernelBuilder, a: ComplexNumber) -> ComplexNumber:
    return div(k, _number(k, 1.0, a), a)


def _number(k: KernelBuilder, value: float, like: ComplexNumber) -> ComplexNumber:
    return _C(k.number(value, like.real.type), k.number(0.0, like.real.type))


@gpu_operator("DivNoNan", kinds="c", weight=32)
def div_no_nan(k: KernelBuilder, a: ComplexNumber, b: ComplexNumber) -> ComplexNumber:
    return choose(k, _is_zero(k, b), _number(k, 0.0, a), div(k, a, b))


@gpu_operator("MulNoNan", kinds="c", weight=8)
def mul_no_nan(k: KernelBuilder, a: ComplexNumber, b: ComplexNumber) -> ComplexNumber:
    return choose(k, _is_zero(k, b), _number(k, 0.0, a), mul(k, a, b))


@gpu_operator("Neg", kinds="c", weight=2)
def neg(k: KernelBuilder, a: ComplexNumber) -> ComplexNumber:
    return _C(k.neg(a.real), k.neg(a.imag))


@gpu_operator("Conj", kinds="c")
def conj(k: KernelBuilder, a: ComplexNumber) -> ComplexNumber:
    return _C(a.real, k.neg(a.imag))


@gpu_operator("Equal", kinds="c", weight=3)
def equal(k: KernelBuilder, a: ComplexNumber, b: ComplexNumber) -> Value:
    return k.both(k.compare("oeq", a.real, b.real), k.compare("oeq", a.imag, b.imag))


@gpu_operator("NotEqual", kinds="c", weight=3)
def not_equal(k: KernelBuilder, a: ComplexNumber, b: ComplexNumber) -> Value:
    return k.either(k.compare("une", a.real, b.real), k.compare("une", a.imag, b.imag))


# -- parts ---------------------------------------------------------------------------------------------------------


@gpu_operator("Complex", kinds="f", weight=0)
def complex_(k: KernelBuilder, real: Value, imag: Value) -> ComplexNumber:
    return _C(real, imag)


@gpu_operator("Real", kinds="c", weight=0)
def real_part(k: KernelBuilder, a: ComplexNumber) -> Value:
    return a.real


@gpu_operator("Imag", kinds="c", weight=0)
def imaginary_part(k: KernelBuilder, a: ComplexNumber) -> Value:
    return a.imag


@gpu_operator("ComplexAbs", kinds="c", weight=20)
def size(k: KernelBuilder, a: ComplexNumber) -> Value:
    """sqrt(x^2 + y^2), which overflows only where that does; infinite where a part is, whatever the other."""
    infinity = k.number(float("inf"), a.real.type)
    x, y = k.intrinsic("fabs", a.real), k.intrinsic("fabs", a.imag)
    if x.type == "float":
        wide = [k.convert(part, "double") for part in (x, y)]
        value = k.convert(k.intrinsic("sqrt", k.add(*(k.mul(part, part) for part in wide))), "float")
    else:
        swap = k.compare("olt", x, y)
        large, small = k.select(swap, y, x), k.select(swap, x, y)
        ratio = k.div(small, large)
        root = k.intrinsic("sqrt", k.add(k.number(1.0, x.type), k.mul(ratio, ratio)))
        value = k.select(k.compare("oeq", large, k.number(0.0, x.type)), small, k.mul(large, root))
    has_infinity = k.either(k.compare("oeq", x, infinity), k.compare("oeq", y, infinity))
    return k.select(has_infinity, infinity, value)


@gpu_operator("Angle", kinds="c", weight=50)
def angle(k: KernelBuilder, a: ComplexNumber) -> Value:
    return atan2(k, a.imag, a.real)


@gpu_operator("Sign", kinds="c", weight=30)
def sign(k: KernelBuilder, a: ComplexNumber) -> ComplexNumber:
    length, one = size(k, a), k.number(1.0, a.real.type)
    is_zero = k.compare("oeq", length, k.number(0.0, a.real.type))
    safe = k.select(is_zero, one, length)
    return choose(k, is_zero, _number(k, 0.0, a), _C(k.div(a.real, safe), k.div(a.imag, safe)))


# -- functions -----------------------------------------------------------------------------------------------------


@gpu_operator("Exp", kinds="c", weight=500)
@_in_double
def exp(k: KernelBuilder, a: ComplexNumber) -> ComplexNumber:
    """e^x (cos y + i sin y); of a real number a real one."""
    sine, cosine = sine_and_cosine(k, a.imag)
    length = functions.exp(k, a.real)
    is_real = k.compare("oeq", a.imag, k.number(0.0, "double"))
    return _C(k.select(is_real, length, k.mul(length, cosine)), k.select(is_real, a.imag, k.mul(length, sine)))


def log(k: KernelBuilder, a: ComplexNumber) -> ComplexNumber:
    """log |a| and the angle, of doubles; the logarithm of the square less 1 where that is small."""
    one, half = k.number(1.0, "double"), k.number(0.5, "double")
    x, y = k.intrinsic("fabs", a.real), k.intrinsic("fabs", a.imag)
    excess = k.add(k.mul(k.sub(x, one), k.add(x, one)), k.mul(y, y))
    near = k.mul(half, functions.log1p(k, excess))
    is_near = k.compare("olt", k.intrinsic("fabs", excess), half)
    return _C(k.select(is_near, near, functions.log(k, size(k, a))), angle(k, a))


@_in_double
def sqrt(k: KernelBuilder, a: ComplexNumber) -> ComplexNumber:
    """The root with no negative real part, by the half angle; NumPy's of infinities."""
    half, zero, infinity = (k.number(n, "double") for n in (0.5, 0.0, float("inf")))
    x, y = k.intrinsic("fabs", a.real), k.intrinsic("fabs", a.imag)
    long = k.intrinsic("sqrt", k.mul(half, k.add(x, size(k, a))))
    short = k.div(k.mul(half, y), long)
    is_right = k.compare("oge", a.real, zero)
    root = _C(k.select(is_right, long, short), k.intrinsic("copysign", k.select(is_right, short, long), a.imag))
    root = choose(k, _is_zero(k, a), _C(zero, a.imag), root)
    return choose(k, k.compare("oeq", y, infinity), _C(infinity, a.imag), root)


def log1p(k: KernelBuilder, a: ComplexNumber) -> ComplexNumber:
    """log(1 + a), of doubles."""
    one, half, two = (k.number(n, "double") for n in (1.0, 0.5, 2.0))
    excess = k.add(k.mul(a.real, k.add(a.real, two)), k.mul(a.imag, a.imag))
    near = k.mul(half, functions.log1p(k, excess))
    is_near = k.compare("olt", k.intrinsic("fabs", excess), half)
    moved = _C(k.add(a.real, one), a.imag)
    return _C(k.select(is_near, near, functions.log(k, size(k, moved))), angle(k, moved))


def _parts(k: KernelBuilder, circular: Value, hyperbolic: Value) -> tuple[Value, Value, Value, Value]:
    """Sine and cosine of the one part, hyperbolic ones of the other."""
    return (*sine_and_cosine(k, circular), sinh(k, hyperbolic), cosh(k, hyperbolic))


def _product(k: KernelBuilder, circular: Value, hyperbolic: Value) -> Value:
    """0 times infinity is 0: what is infinite overflowed, and what is 0 is."""
    zero, one = k.number(0.0, "double"), k.number(1.0, "double")
    by = k.select(k.compare("oeq", circular, zero), k.intrinsic("copysign", one, hyperbolic), hyperbolic)
    return k.mul(circular, by)


@gpu_operator("Sin", kinds="c", weight=600)
@_in_double
def sin(k: KernelBuilder, a: ComplexNumber) -> ComplexNumber:
    sine, cosine, sinh_, cosh_ = _parts(k, a.real, a.imag)
    return _C(_product(k, sine, cosh_), _product(k, cosine, sinh_))


@gpu_operator("Cos", kinds="c", weight=600)
@_in_double
def cos(k: KernelBuilder, a: ComplexNumber) -> ComplexNumber:
    sine, cosine, sinh_, cosh_ = _parts(k, a.real, a.imag)
    return _C(_product(k, cosine, cosh_), k.neg(_product(k, sine, sinh_)))


@gpu_operator("Sinh", kinds="c", weight=600)
@_in_double
def complex_sinh(k: KernelBuilder, a: ComplexNumber) -> ComplexNumber:
    sine, cosine, sinh_, cosh_ = _parts(k, a.imag, a.real)
    return _C(_product(k, cosine, sinh_), _product(k, sine, cosh_))


@gpu_operator("Cosh", kinds="c", weight=600)
@_in_double
def complex_cosh(k: KernelBuilder, a: ComplexNumber) -> ComplexNumber:
    sine, cosine, sinh_, cosh_ = _parts(k, a.imag, a.real)
    return _C(_product(k, cosine, cosh_), _product(k, sine, sinh_))


@gpu_operator("Tan", kinds="c", weight=700)
@_in_double
def complex_tan(k: KernelBuilder, a: ComplexNumber) -> ComplexNumber:
    """By Kahan's formula for the hyperbolic tangent ("Branch cuts", 1987), turned by a quarter.

    Where the imaginary part is beyond 200, tan is i but for what no double holds.
    """
    one = k.number(1.0, "double")
    t, s = tan(k, a.real), sinh(k, a.imag)
    beta = k.add(one, k.mul(t, t))
    rho = k.intrinsic("sqrt", k.add(one, k.mul(s, s)))
    below = k.add(one, k.mul(beta, k.mul(s, s)))
    found = _C(k.div(t, below), k.div(k.mul(k.mul(beta, rho), s), below))
    is_far = k.compare("ogt", k.intrinsic("fabs", a.imag), k.number(200.0, "double"))
    far = _C(k.intrinsic("copysign", k.number(0.0, "double"), t), k.intrinsic("copysign", one, a.imag))
    return choose(k, is_far, far, found)


def _zero_where_first_is(write: WriteComplex) -> WriteComplex:
    def run(k: KernelBuilder, x: ComplexNumber, y: ComplexNumber) -> ComplexNumber:
        return choose(k, _is_zero(k, x), _number(k, 0.0, x), write(k, x, y))

    return run


gpu_operator("Xdivy", kinds="c", weight=34)(_zero_where_first_is(div))


@gpu_operator("Xlogy", kinds="c", weight=200)
@_zero_where_first_is
@_in_double
def xlogy(k: KernelBuilder, x: ComplexNumber, y: ComplexNumber) -> ComplexNumber:
    return mul(k, x, log(k, y))


@gpu_operator("Xlog1py", kinds="c", weight=200)
@_zero_where_first_is
@_in_double
def xlog1py(k: KernelBuilder, x: ComplexNumber, y: ComplexNumber) -> ComplexNumber:
    return mul(k, x, log1p(k, y))
