"""Gradients of Fourier transforms: the transform back, scaled by how many numbers there are."""

from __future__ import annotations

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import constant
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.tensor import Tensor
from toolkit.client.gradients.registry import Gradient, gradient
from toolkit.client.math import math_ops
from toolkit.graph import dtypes
from toolkit.graph.dtypes import DType

_RANKS = {"": 1, "2D": 2, "3D": 3}


def _rank(op: Operation) -> int:
    return _RANKS[op.type.partition("FFT")[2]]


def _count(tensor: Tensor, rank: int, dtype: DType) -> Tensor:
    """How many elements the last `rank` axes have, as a number of that type (complex ones by way of their parts)."""
    sizes = array_ops.shape(tensor)
    total = math_ops.reduce_prod(sizes[array_ops.size(sizes) - rank :])
    part = {dtypes.complex64: dtypes.float32, dtypes.complex128: dtypes.float64}.get(dtype, dtype)
    return math_ops.cast(math_ops.cast(total, part), dtype)


@gradient("FFT", "FFT2D", "FFT3D")
def fft(op: Operation, grad: Tensor) -> Gradient:
    return ops.function("I" + op.type)(grad) * _count(grad, _rank(op), grad.dtype.base)


@gradient("IFFT", "IFFT2D", "IFFT3D")
def ifft(op: Operation, grad: Tensor) -> Gradient:
    return ops.function(op.type[1:])(grad) / _count(grad, _rank(op), grad.dtype.base)


@gradient("RFFT", "RFFT2D")
def rfft(op: Operation, grad: Tensor) -> list[Gradient]:
    """The real part of the transform back from half a spectrum.

    IRFFT takes every column twice, for itself and its conjugate that is not there; the first column and, with an even
    length, the last one only once. Half of IRFFT plus half of those columns' own waves is what is wanted.
    """
    rank = _rank(op)
    x, length = op.inputs
    real = x.dtype.base
    inverse = ops.function("IRFFT" if rank == 1 else "IRFFT2D")(grad, length, Treal=real)
    even = math_ops.cast(ops.equal(length[-1] % 2, 0), real)
    wave = math_ops.cast(1 - 2 * (math_ops.range(length[-1]) % 2), real)
    first, last = (_real_column(column, rank, real) for column in (grad[..., :1], grad[..., -1:]))
    return [constant(0.5, real) * (inverse * _count(x, rank, real) + first + last * wave * even), None]


def _real_column(column: Tensor, rank: int, real: DType) -> Tensor:
    """The real part of a column; in two dimensions, after the transform back along the column."""
    if rank == 2:
        rows = array_ops.squeeze(column, [-1])
        column = array_ops.expand_dims(ops.ifft(rows) * _count(rows, 1, rows.dtype.base), -1)
    return ops.real(column, Tout=real)


@gradient("IRFFT", "IRFFT2D")
def irfft(op: Operation, grad: Tensor) -> list[Gradient]:
    """The forward transform over the count; the columns that stand for two, themselves and their conjugate, double."""
    rank = _rank(op)
    spectrum, length = op.inputs
    wide = spectrum.dtype.base
    part = grad.dtype.base
    width = length[-1]
    forward = ops.function("RFFT" if rank == 1 else "RFFT2D")(grad, length, Tcomplex=wide)
    # [1, 2, ..., 2, (1 when the length is even)]
    columns = math_ops.range(width // 2 + 1)
    single = ops.logical_or(ops.equal(columns, 0), ops.equal(columns * 2, width))
    doubled = array_ops.where_v2(single, constant(1.0, part), constant(2.0, part))
    count = math_ops.cast(math_ops.reduce_prod(length), part)
    scaled = forward * math_ops.cast(doubled / count, wide)
    # what the transform cut off gets zeros, what it padded gets nothing
    given = array_ops.shape(spectrum)
    made = array_ops.shape(scaled)
    kept = array_ops.slice(scaled, array_ops.zeros_like(made), ops.minimum(made, given))
    missing = given - array_ops.shape(kept)
    return [array_ops.pad(kept, array_ops.stack([array_ops.zeros_like(missing), missing], 1)), None]
