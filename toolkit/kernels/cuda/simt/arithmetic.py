"""What the instructions of the kernel IR compute, over NumPy arrays with an element for each thread."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import ml_dtypes
import numpy as np

from toolkit.kernels.types import Array

DTYPES: Mapping[str, np.dtype[Any]] = {
    "i1": np.dtype(np.bool_), "i8": np.dtype(np.int8), "i16": np.dtype(np.int16), "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64), "half": np.dtype(np.float16), "bfloat": np.dtype(ml_dtypes.bfloat16),
    "float": np.dtype(np.float32), "double": np.dtype(np.float64),
}  # fmt: skip

Compute = Callable[..., Array]


def _unsigned(x: Array) -> Array:
    return x.view(np.dtype(f"u{x.dtype.name}")) if x.dtype.kind == "i" else x.astype(np.uint8)


def _signed(x: Array, dtype: np.dtype[Any]) -> Array:
    return x.astype(np.dtype(f"u{dtype.name}")).view(dtype)


def _sdiv(a: Array, b: Array) -> Array:
    safe = np.where(b == 0, 1, b).astype(a.dtype)
    quotient = a // safe
    rest = a - quotient * safe
    return quotient + ((rest != 0) & ((a < 0) != (safe < 0))).astype(a.dtype)


def _srem(a: Array, b: Array) -> Array:
    safe = np.where(b == 0, 1, b).astype(a.dtype)
    return a - _sdiv(a, safe) * safe


def _by_unsigned(compute: Compute) -> Compute:
    def run(a: Array, b: Array) -> Array:
        x, y = _unsigned(a), _unsigned(b)
        return compute(x, np.where(y == 0, 1, y).astype(x.dtype)).view(a.dtype)

    return run


def _shifted(compute: Compute, *, logical: bool) -> Compute:
    """PTX gives 0 (or the sign) for shifts by the width or more, where LLVM and NumPy promise nothing."""

    def run(a: Array, b: Array) -> Array:
        width = a.dtype.itemsize * 8
        by = np.clip(b, 0, width - 1)
        value = compute(_unsigned(a), _unsigned(by)).view(a.dtype) if logical else compute(a, by)
        return np.where((b < 0) | (b >= width), 0, value).astype(a.dtype) if logical else value

    return run


def _fma(a: Array, b: Array, c: Array) -> Array:
    if a.dtype == np.float64:
        return a * b + c
    return (a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)).astype(a.dtype)


def _minnum(a: Array, b: Array) -> Array:
    return np.fmin(a, b)


def _maxnum(a: Array, b: Array) -> Array:
    return np.fmax(a, b)


def _popcount(a: Array) -> Array:
    return np.bitwise_count(_unsigned(a)).astype(a.dtype)


def _leading_zeros(a: Array, _: Array) -> Array:
    """Bits before the first that is set."""
    value, width = _unsigned(a).astype(np.uint64), a.dtype.itemsize * 8
    found = np.full(value.shape, width, a.dtype)
    for bit in range(width):
        found = np.where((value >> np.uint64(bit)) & np.uint64(1) == 1, width - 1 - bit, found).astype(a.dtype)
    return found


_ADD, _SUB, _MUL, _OR = np.add, np.subtract, np.multiply, np.bitwise_or

BINARY: Mapping[str, Compute] = {
    "fadd": _ADD, "fsub": _SUB, "fmul": _MUL, "fdiv": np.divide, "frem": np.fmod,
    "add": _ADD, "sub": _SUB, "mul": _MUL, "sdiv": _sdiv, "srem": _srem,
    "udiv": _by_unsigned(np.floor_divide), "urem": _by_unsigned(np.remainder),
    "and": np.bitwise_and, "or": _OR, "xor": np.bitwise_xor,
    "shl": _shifted(np.left_shift, logical=True), "lshr": _shifted(np.right_shift, logical=True),
    "ashr": _shifted(np.right_shift, logical=False),
}  # fmt: skip
DIVISIONS = frozenset({"sdiv", "srem", "udiv", "urem"})


def _has_nan(a: Array, b: Array) -> Array:
    return np.isnan(a) | np.isnan(b)


def _has_none(a: Array, b: Array) -> Array:
    return ~_has_nan(a, b)


def _ordered(compare: Compute) -> Compute:
    def run(a: Array, b: Array) -> Array:
        return compare(a, b) & ~_has_nan(a, b)

    return run


def _unordered(compare: Compute) -> Compute:
    def run(a: Array, b: Array) -> Array:
        return compare(a, b) | _has_nan(a, b)

    return run


def _unsigned_compare(compare: Compute) -> Compute:
    def run(a: Array, b: Array) -> Array:
        return compare(_unsigned(a), _unsigned(b))

    return run


_COMPARISONS = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip
COMPARE: dict[str, Compute] = {}
for _name, _compare in _COMPARISONS.items():
    COMPARE[f"fcmp o{_name}"] = _ordered(_compare)
    COMPARE[f"fcmp u{_name}"] = _unordered(_compare)
    if _name in ("eq", "ne"):
        COMPARE[f"icmp {_name}"] = _compare
    else:
        COMPARE[f"icmp s{_name}"] = _compare
        COMPARE[f"icmp u{_name}"] = _unsigned_compare(_compare)
COMPARE["fcmp ord"] = _has_none
COMPARE["fcmp uno"] = _has_nan

INTRINSICS: Mapping[str, Compute] = {
    "rint": np.rint, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "fabs": np.abs, "sqrt": np.sqrt,
    "copysign": np.copysign, "fmuladd": _fma, "fma": _fma, "minnum": _minnum, "maxnum": _maxnum,
    "ctpop": _popcount, "ctlz": _leading_zeros,
}  # fmt: skip


#: the largest number of e4m3 without infinities
E4M3_LARGEST = 448.0
_E4M3_NAN = 0x7F  # of which there is one for each sign; PTX gives this one


def pack_e4m3(low: Array, high: Array) -> Array:
    """Pairs of float32 as two bytes of e4m3 each, as `cvt.rn.satfinite.e4m3x2.f32` makes them."""

    def bits(x: Array) -> Array:
        near = np.clip(x, -E4M3_LARGEST, E4M3_LARGEST).astype(ml_dtypes.float8_e4m3fn).view(np.uint8)
        return np.where(np.isnan(x), np.uint8(_E4M3_NAN), near).astype(np.uint16)

    return (bits(low) | (bits(high) << np.uint16(8))).view(np.int16)


def convert(opcode: str, x: Array, type: str) -> Array:
    """What LLVM's conversions give; of floats beyond an integer's range what PTX gives: the nearest, of NaN 0.

    Raises:
        KeyError: there is no such conversion.
    """
    to = DTYPES[type]
    match opcode:
        case "bitcast":
            return x.view(to)
        case "trunc":
            return (x.astype(np.int64) & 1).astype(np.bool_) if type == "i1" else _signed(_unsigned(x), to)
        case "zext":
            return _signed(_unsigned(x), to)
        case "sext":
            return -x.astype(to) if x.dtype == np.bool_ else x.astype(to)
        case "sitofp":
            return x.astype(to)
        case "uitofp":
            return _unsigned(x).astype(to)
        case "fpext" | "fptrunc":
            return x.astype(to)
        case "fptosi":
            return _saturated(x, to)
        case "fptoui":
            return _saturated(x, np.dtype(f"u{to.name}")).view(to)
        case _:
            raise KeyError(opcode)


def _saturated(x: Array, to: np.dtype[Any]) -> Array:
    limits = np.iinfo(cast("Any", to))
    wide = np.trunc(x.astype(np.float64))
    low, high = float(limits.min), float(limits.max)
    inside = np.where(np.isnan(wide) | (wide <= low) | (wide >= high), 0, wide).astype(to)
    below = np.where(wide <= low, limits.min, inside).astype(to)
    return np.where(wide >= high, limits.max, below).astype(to)
