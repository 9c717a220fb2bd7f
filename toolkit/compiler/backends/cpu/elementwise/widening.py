"""Nests over a few channels with a constant for each: constants are repeated, so that the innermost loop is long.

Three channels fill three of sixteen lanes. Where everything else lies dense, a tensor of pixels is as well one of rows
of many pixels, and a constant for each channel one for each number in a row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from toolkit.kernels.cpu.native.code import LANES
from toolkit.kernels.cpu.native.loops import Operand
from toolkit.kernels.tensors import row_major
from toolkit.kernels.types import Array
from toolkit.target.thresholds import NestThresholds


def rows_of(
    shape: Sequence[int], operands: Sequence[Operand], constants: Sequence[Array], sizes: NestThresholds
) -> tuple[int, int] | None:
    """The shape of the same elements as long rows, None where a nest is better left as it is.

    Args:
        operands: what is not constant; each must be dense, or one number.
    """
    channels, size = shape[-1] if shape else 1, math.prod(shape)
    if not 1 < channels < LANES or not any(_is_per_channel(array, channels) for array in constants):
        return None
    if not all(_is_per_channel(array, channels) or array.size in (1, size) for array in constants):
        return None
    if not all(_is_dense(operand, shape) or not any(operand.strides) for operand in operands):
        return None
    pixels = size // channels
    times = max(n for n in range(1, sizes.row // channels + 1) if pixels % n == 0)
    row = times * channels
    return (size // row, row) if row >= sizes.short_row else None


def repeated(array: Array, channels: int, row: int) -> Array:
    """A constant of such a nest along a row; one of all elements or of a single one has its elements in order."""
    flat = array.reshape(-1)
    if _is_per_channel(array, channels):
        return np.tile(flat, row // channels)
    return flat if array.size == 1 else flat.reshape(-1, row)


def along(operand: Operand, row: int) -> Operand:
    """What is not constant, over rows."""
    return Operand(operand.type, (row, 1) if any(operand.strides) else (0, 0))


def _is_per_channel(array: Array, channels: int) -> bool:
    return array.size == channels and array.shape[-1] == channels


def _is_dense(operand: Operand, shape: Sequence[int]) -> bool:
    return all(
        size == 1 or own == dense for size, own, dense in zip(shape, operand.strides, row_major(shape), strict=True)
    )
