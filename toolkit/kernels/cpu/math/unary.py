"""Elementwise functions of one argument."""

from __future__ import annotations

from collections.abc import Callable

from toolkit.kernels.cpu.common import NARROW_FLOATS, np, require, wide, widened
from toolkit.kernels.registry import NUMBER, Compute, KernelNode, kernel, simple
from toolkit.kernels.types import Array


def _plain(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    return lambda x: np.asarray(function(x))


def square(x: Array) -> Array:
    return np.multiply(x, x)


def reciprocal(x: Array) -> Array:
    if x.dtype.kind in "iu":
        return np.floor_divide(np.ones((), x.dtype), x)
    return np.divide(np.ones((), x.dtype), x)


def rsqrt(x: Array) -> Array:
    return np.divide(np.ones((), x.dtype), np.sqrt(x))


def sigmoid(x: Array) -> Array:
    """1 / (1 + e^-x), written so that neither branch overflows."""
    if x.dtype.kind == "c":
        return 1 / (1 + np.exp(-x))
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, small).astype(x.dtype, copy=False) / (1 + small)


def sign(x: Array) -> Array:
    """-1, 0 or 1; x/|x| for complex numbers."""
    if x.dtype.kind == "c":
        size = np.abs(x)
        return np.where(size == 0, 0, x / np.where(size == 0, 1, size)).astype(x.dtype)
    if x.dtype in NARROW_FLOATS:
        return np.sign(x.astype(np.float32)).astype(x.dtype)
    return np.sign(x)


def acosh(x: Array) -> Array:
    return np.arccosh(x)


#: exact or correctly rounded in every type
_DIRECT: dict[str, Callable[[Array], Array]] = {
    "Neg": np.negative, "Abs": np.abs, "Square": square, "Invert": np.invert, "LogicalNot": np.logical_not,
    "Sign": sign, "IsNan": np.isnan, "IsInf": np.isinf, "IsFinite": np.isfinite, "Conj": np.conj,
}  # fmt: skip
#: computed in float32 where the type is narrower
_WIDENED: dict[str, Callable[[Array], Array]] = {
    "Sqrt": np.sqrt, "Rsqrt": rsqrt, "Exp": np.exp, "Expm1": np.expm1, "Log": np.log, "Log1p": np.log1p,
    "Reciprocal": reciprocal, "Inv": reciprocal, "Sigmoid": sigmoid, "Tanh": np.tanh,
    "Sin": np.sin, "Cos": np.cos, "Tan": np.tan, "Asin": np.arcsin, "Acos": np.arccos, "Atan": np.arctan,
    "Sinh": np.sinh, "Cosh": np.cosh, "Asinh": np.arcsinh, "Acosh": acosh, "Atanh": np.arctanh,
}  # fmt: skip
#: nothing to do for integers
_ROUNDING: dict[str, Callable[[Array], Array]] = {
    "Floor": np.floor, "Ceil": np.ceil, "Rint": np.rint, "Round": np.rint,
}  # fmt: skip

for _name, _function in _DIRECT.items():
    # Conj alone may be of variants as well, which only TensorFlow knows how to conjugate
    simple(_name, types={"T": NUMBER} if _name == "Conj" else None)(_plain(_function))
for _name, _function in _WIDENED.items():
    simple(_name)(widened(_function))


def _rounding(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    rounded = widened(function)
    return lambda x: x if x.dtype.kind in "iu" else rounded(x)


for _name, _function in _ROUNDING.items():
    simple(_name)(_rounding(_function))


@kernel("Complex")
def complex_(op: KernelNode) -> Compute:
    dtype = op.output_types[0].numpy

    def compute(real: Array, imag: Array) -> Array:
        out = np.empty(np.broadcast_shapes(real.shape, imag.shape), dtype)
        out.real, out.imag = real, imag
        return out

    return compute


@kernel("Real", "Imag", "ComplexAbs", "Angle")
def complex_part(op: KernelNode) -> Compute:
    """Parts of complex numbers, in the type `Tout`; real inputs are numbers with a zero imaginary part."""
    function = {"Real": np.real, "Imag": np.imag, "ComplexAbs": np.abs, "Angle": np.angle}[op.op]
    dtype, given = op.output_types[0].numpy, op.input_types[0].numpy
    require(
        given.kind != "c" or given.itemsize == 2 * dtype.itemsize,
        f"Signature mismatch: {op.op} of {op.input_types[0]} is no {op.output_types[0]}",
    )

    def compute(x: Array) -> Array:
        return np.asarray(function(wide(x)), dtype)

    return compute
