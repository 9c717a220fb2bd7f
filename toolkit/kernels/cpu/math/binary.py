"""Elementwise functions of two arguments that broadcast."""

from __future__ import annotations

from collections.abc import Callable

from toolkit.errors import InternalError, InvalidArgumentError, OpError
from toolkit.kernels.cpu.common import NARROW_FLOATS, broadcasting, check_broadcast, np, require
from toolkit.kernels.registry import simple
from toolkit.kernels.types import Array


def add(x: Array, y: Array) -> Array:
    if x.dtype == object:
        return np.asarray(np.add(x, y), object)
    return np.add(x, y)


def _check_divisor(x: Array, y: Array, error: type[OpError] = InvalidArgumentError) -> None:
    """See that nothing is divided by 0, which is nothing where there is no result.

    Raises:
        InvalidArgumentError: x and y do not broadcast.
        OpError: of the given kind, when something is.
    """
    if (np.asarray(y) == 0).any() and 0 not in check_broadcast(x, y):
        raise error("Integer division by zero")


def truncate_divide(x: Array, y: Array) -> Array:
    """C's integer division, rounding toward zero; the divisor has been checked."""
    quotient = np.floor_divide(x, y)
    if x.dtype.kind == "u":
        return quotient
    inexact = np.multiply(quotient, y) != x
    return np.add(quotient, (inexact & (quotient < 0)).astype(x.dtype))


def divide(x: Array, y: Array) -> Array:
    if x.dtype.kind in "iu":
        _check_divisor(x, y)
        return truncate_divide(x, y)
    return np.true_divide(x, y)


def _internal_on_zero(function: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    """TruncateDiv and TruncateMod report a zero divisor as an internal error."""

    def compute(x: Array, y: Array) -> Array:
        if x.dtype.kind in "iu":
            _check_divisor(x, y, InternalError)
        return function(x, y)

    return compute


def divide_no_nan(x: Array, y: Array) -> Array:
    """x / y, and 0 where y is 0."""
    zero = y == 0
    return np.where(zero, np.zeros((), x.dtype), np.true_divide(x, np.where(zero, np.ones((), y.dtype), y)))


def multiply_no_nan(x: Array, y: Array) -> Array:
    """x * y, and 0 where y is 0, whatever x is."""
    return np.where(y == 0, np.zeros((), x.dtype), np.multiply(x, y))


def floor_divide(x: Array, y: Array) -> Array:
    if x.dtype.kind in "iu":
        _check_divisor(x, y)
        return np.floor_divide(x, y)
    require(x.dtype.kind != "c", "FloorDiv of complex numbers is not defined")
    if x.dtype in NARROW_FLOATS:
        return np.floor(np.true_divide(x, y).astype(np.float32)).astype(x.dtype)
    return np.floor(np.true_divide(x, y))


def truncate_mod(x: Array, y: Array) -> Array:
    """C's remainder: the sign of the dividend."""
    if x.dtype.kind in "iu":
        _check_divisor(x, y)
        return np.fmod(x, y)
    if x.dtype in NARROW_FLOATS:
        return np.fmod(x.astype(np.float32), y.astype(np.float32)).astype(x.dtype)
    return np.fmod(x, y)


def floor_mod(x: Array, y: Array) -> Array:
    """The remainder with the sign of the divisor."""
    if x.dtype.kind in "iu":
        _check_divisor(x, y)
        return np.remainder(x, y)
    remainder = truncate_mod(x, y)
    return np.where((remainder != 0) & ((remainder < 0) != (y < 0)), np.add(remainder, y), remainder)


def power(x: Array, y: Array) -> Array:
    if x.dtype.kind == "i" and (y < 0).any():
        raise InvalidArgumentError("Integers to negative integer powers are not allowed")
    if x.dtype in NARROW_FLOATS:
        return np.power(x.astype(np.float32), y.astype(np.float32)).astype(x.dtype)
    return np.power(x, y)


def squared_difference(x: Array, y: Array) -> Array:
    difference = np.subtract(x, y)
    return np.multiply(difference, np.conj(difference) if x.dtype.kind == "c" else difference)


def _zero_where_first_is(function: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    def compute(x: Array, y: Array) -> Array:
        dtype = x.dtype
        if dtype in NARROW_FLOATS:
            x, y = x.astype(np.float32), y.astype(np.float32)
        return np.where(x == 0, np.zeros((), x.dtype), function(x, y)).astype(dtype)

    return compute


def arctan2(y: Array, x: Array) -> Array:
    if x.dtype in NARROW_FLOATS:
        return np.arctan2(y.astype(np.float32), x.astype(np.float32)).astype(x.dtype)
    return np.arctan2(y, x)


_OPS: dict[str, Callable[[Array, Array], Array]] = {
    "Add": add, "AddV2": add, "Sub": np.subtract, "Mul": np.multiply, "Div": divide, "RealDiv": divide,
    "DivNoNan": divide_no_nan, "MulNoNan": multiply_no_nan, "TruncateDiv": _internal_on_zero(divide),
    "FloorDiv": floor_divide,
    "Mod": truncate_mod, "TruncateMod": _internal_on_zero(truncate_mod), "FloorMod": floor_mod, "Maximum": np.maximum,
    "Minimum": np.minimum, "Pow": power, "SquaredDifference": squared_difference, "Atan2": arctan2,
    "NextAfter": np.nextafter,
    "Xdivy": _zero_where_first_is(np.true_divide),
    "Xlogy": _zero_where_first_is(lambda x, y: x * np.log(y)),
    "Xlog1py": _zero_where_first_is(lambda x, y: x * np.log1p(y)),
}  # fmt: skip

for _name, _function in _OPS.items():
    simple(_name)(broadcasting(_function))
