"""Arithmetic of uniform quantization: products brought to another scale in whole numbers."""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from dataclasses import dataclass

from toolkit.errors import InvalidArgumentError
from toolkit.kernels.cpu.common import np, require, shape_text
from toolkit.kernels.types import Array

F32 = np.float32
WHOLE = (-(1 << 31), (1 << 31) - 1)  # what int32 holds
_POINT = 31  # bits behind the point of a multiplier


def check_parameters(shape: tuple[int, ...], scales: Array, zeros: Array, axis: int) -> None:
    """Refuse scales and zero points that are not scalars (axis -1), or not one a slice of the axis.

    Raises:
        InvalidArgumentError: so.
    """
    require(
        scales.shape == zeros.shape,
        f"scales and zero_points shape must be same, but given scales shape {shape_text(scales)} and zero_points "
        f"shape {shape_text(zeros)}",
    )
    require(-1 <= axis < len(shape), f"quantization_axis must be -1 or in range [0, input.rank), but given {axis}")
    wanted = () if axis == -1 else (shape[axis],)
    require(scales.shape == wanted, f"scales and zero_points must have shape {list(wanted)}: {shape_text(scales)}")


def check_positive(*scales: Array) -> None:
    for values in scales:
        require(bool((values > 0).all()), "scales elements must be all positive.")


def along(values: Array, rank: int, axis: int) -> Array:
    """Parameters that broadcast along their axis of a tensor of this rank."""
    return values if values.ndim == 0 else values.reshape([-1 if d == axis else 1 for d in range(rank)])


@dataclass(frozen=True, slots=True)
class Multiplier:
    """A positive factor as a whole number below 2**31 and a shift to the left, int64 arrays."""

    number: Array
    shift: Array

    @staticmethod
    def of(factor: Array) -> Multiplier:
        """
        Raises:
            InvalidArgumentError: a factor is not positive and finite.
        """
        factor = np.asarray(factor, np.float64)
        if not (np.isfinite(factor) & (factor > 0)).all():
            raise InvalidArgumentError(f"double_multiplier must be a positive finite number. Given {factor}")
        fraction, shift = np.frexp(factor)
        number = np.floor(fraction * 2.0**_POINT + 0.5).astype(np.int64)
        shift = shift.astype(np.int64) + (number == 1 << _POINT)
        number = np.where(number == 1 << _POINT, number // 2, number)
        number = np.where(shift < -31, 0, np.where(shift > 30, (1 << _POINT) - 1, number))
        return Multiplier(number, np.where(shift < -31, 0, np.minimum(shift, 30)))

    def times(self, x: Array) -> Array:
        """int64: x (of 32 bits) times the factor, rounded upward at halves and limited to 32 bits."""
        drop = _POINT - self.shift
        product = x * self.number
        product += np.int64(1) << (drop - 1)
        product >>= drop
        if (self.number <= np.int64(1) << drop).all():  # of a factor up to 1 nothing grows
            return product
        return np.clip(product, -(1 << 31), (1 << 31) - 1, out=product)


def requantized(x: Array, factor: Array, zero: Array, low: int, high: int) -> Array:
    """int32: whole numbers (of 32 bits) times the factor, plus the zero point, within [low, high]."""
    return requantized_by(Multiplier.of(factor), x, zero, low, high)


def requantized_by(multiplier: Multiplier, x: Array, zero: Array, low: int, high: int) -> Array:
    """The same with a factor taken apart beforehand."""
    moved = (multiplier.times(x) + zero).astype(np.int32)
    if (low, high) == WHOLE:
        return moved
    return np.maximum(np.minimum(moved, high, out=moved), low, out=moved)


def quantize_rows(x: Array) -> tuple[Array, Array, Array]:
    """float32 [rows, n] as int8 with a range for each row: (numbers, scales, zero points), the latter [rows, 1].

    Each range has 0 in it; a row of zeros has scale 1.
    """
    least = np.minimum(x.min(axis=1, keepdims=True), F32(0)).astype(np.float64)
    most = np.maximum(x.max(axis=1, keepdims=True), F32(0)).astype(np.float64)
    with np.errstate(all="ignore"):
        scale = ((most - least) / 255).astype(F32)
        inverse = (255 / (most - least)).astype(F32)
        flat = (scale == 0) | ~np.isfinite(inverse)
        from_least, from_most = -128 - least / scale, 127 - most / scale
        nearer = 128 + np.abs(least / scale) < 127 + np.abs(most / scale)
        zero = np.where(nearer, from_least, from_most)
        zero = np.clip(np.trunc(zero + np.copysign(0.5, zero)), -128, 127)
        zero = np.where(flat, 0, zero).astype(np.int32)
        levels = np.floor(x * inverse + F32(0.5)).astype(np.int64) + zero
    numbers = np.where(flat, 0, np.clip(levels, -128, 127)).astype(np.int8)
    return numbers, np.where(flat, F32(1), scale).astype(F32), zero


def exact_product(a: Array, b: Array) -> Array:
    """int32 matrix product, wrapping; in float64, whose products are fast and exact here."""
    return np.matmul(a.astype(np.float64), b.astype(np.float64)).astype(np.int64).astype(np.int32)
