"""Diagonals and bands of matrices. A diagonal is a part of a matrix like any other; each is one copy."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator

from toolkit.kernels.cpu.arrays.diag import (
    alignment,
    band,
    band_limits,
    band_part_limits,
    check_diagonal,
    check_diagonal_range,
    matrix_sizes,
)
from toolkit.kernels.cpu.common import np, require, shape_text
from toolkit.kernels.cuda.device import CudaDevice, device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.simt.builder import KernelBuilder
from toolkit.kernels.cuda.simt.ir import SimtKernel
from toolkit.kernels.gpu.primitives.copying import WORDS, copy_part, part
from toolkit.kernels.gpu.primitives.indexing import BLOCK, Divisor, blocks_for, coordinates, divisors, index_type
from toolkit.kernels.gpu.primitives.layout import ElementLayout
from toolkit.kernels.gpu.registering import gpu_kernel, layouts
from toolkit.kernels.registry import Compute, KernelNode
from toolkit.kernels.types import Array

_Alignment = tuple[bool, bool]


@gpu_kernel("Diag")
def diag(op: KernelNode) -> Compute:
    """A tensor of twice the rank with x on its diagonal."""
    device = device_of(op.node)

    def compute(x: GpuArray) -> GpuArray:
        require(x.ndim >= 1, "Input must be at least rank 1, got 0")
        y = device.zeros(x.shape * 2, x.dtype)
        flat = x.reshaped((x.size,))
        copy_part(device, flat, ElementLayout.dense(flat.shape), y, ElementLayout(flat.shape, (x.size + 1,)))
        return y

    return compute


@gpu_kernel("DiagPart")
def diag_part(op: KernelNode) -> Compute:
    device, find = device_of(op.node), layouts(op)

    def compute(x: GpuArray) -> GpuArray:
        return part(device, x, find(x)[0])

    return compute


@functools.cache
def _band_part(word: str, index: str) -> SimtKernel:
    """Zeros where |row - column| is beyond the limits; words of a number count as columns of their own."""
    k = KernelBuilder(f"band_part_{word}", BLOCK)
    x, y = k.buffer("x", word), k.buffer("y", word, written=True)
    n, below, above = k.scalar("n", index), k.scalar("below", index), k.scalar("above", index)
    sizes = [Divisor.argument(k, name, index) for name in ("rows", "columns", "words")]
    i = k.global_thread(index)
    with k.when(k.compare("slt", i, n)):
        _, row, column, _ = coordinates(k, i, sizes)
        distance = k.sub(row, column)
        kept = k.both(k.compare("sle", distance, below), k.compare("sle", k.neg(distance), above))
        k.store(y, i, k.select(kept, k.load(x, i), k.number(0, word)))
    return k.finish()


@gpu_kernel("MatrixBandPart", "BatchMatrixBandPart")
def matrix_band_part(op: KernelNode) -> Compute:
    device = device_of(op.node)

    def compute(x: GpuArray, num_lower: Array, num_upper: Array) -> GpuArray:
        lower, upper = band_part_limits(x, num_lower, num_upper)
        y = device.empty(x.shape, x.dtype)
        if not y.size:
            return y
        width = min(x.dtype.itemsize, 8)
        words = x.dtype.itemsize // width
        rows, columns = x.shape[-2:]
        limits = [rows if lower < 0 else lower, columns if upper < 0 else upper]
        count = y.size * words
        index = index_type(count)
        sizes = divisors([rows, columns, words], index)
        device.launch(_band_part(WORDS[width], index), blocks_for(count), x, y, count, *limits, *sizes)
        return y

    return compute


def _diagonals(
    batch: int, rows: int, columns: int, low: int, high: int, left: _Alignment
) -> Iterator[tuple[ElementLayout, ElementLayout]]:
    """For each diagonal, top first, where it lies in matrices and where in the rows that have it."""
    length = band(rows, columns, low, high)
    for number, d in enumerate(range(high, low - 1, -1)):
        own = min(rows + min(d, 0), columns - max(d, 0))
        if own <= 0:
            continue
        shift = 0 if left[0 if d >= 0 else 1] else length - own
        matrix = ElementLayout((batch, own), (rows * columns, columns + 1), max(d, 0) - min(d, 0) * columns)
        row = ElementLayout((batch, own), ((high - low + 1) * length, 1), number * length + shift)
        yield matrix, row


def _put(device: CudaDevice, y: GpuArray, diagonals: GpuArray, low: int, high: int, left: _Alignment) -> None:
    rows, columns = y.shape[-2:]
    for matrix, row in _diagonals(math.prod(y.shape[:-2]), rows, columns, low, high, left):
        copy_part(device, diagonals, row, y, matrix)


@gpu_kernel("MatrixDiagPart", "MatrixDiagPartV2", "MatrixDiagPartV3", "BatchMatrixDiagPart")
def matrix_diag_part(op: KernelNode) -> Compute:
    """One diagonal of each matrix, or a band of them as rows padded to the longest."""
    device, left = device_of(op.node), alignment(op)
    banded = "V" in op.op

    def compute(x: GpuArray, *arguments: Array) -> GpuArray:
        require(x.ndim >= 2, f"input must be at least 2-dim, received shape: {shape_text(x)}")
        low, high = band_limits(arguments[0]) if banded else (0, 0)
        rows, columns = x.shape[-2:]
        check_diagonal_range(rows, columns, low, high)
        length = max(band(rows, columns, low, high), 0)
        shape = (*x.shape[:-2], *((high - low + 1,) if low != high else ()), length)
        padding: Array = np.zeros((), x.dtype)
        if banded:
            padding = arguments[1]
            require(padding.size == 1, f"padding_value must be a scalar, got shape {shape_text(padding)}")
        whole = low == high or (low <= 0 <= high and not length)
        y = device.empty(shape, x.dtype) if whole else device.full(shape, x.dtype, padding.reshape(()))
        for matrix, row in _diagonals(math.prod(x.shape[:-2]), rows, columns, low, high, left):
            copy_part(device, x, matrix, y, row)
        return y

    return compute


@gpu_kernel("MatrixSetDiag", "MatrixSetDiagV2", "MatrixSetDiagV3", "BatchMatrixSetDiag")
def matrix_set_diag(op: KernelNode) -> Compute:
    device, left = device_of(op.node), alignment(op)
    banded = "V" in op.op

    def compute(x: GpuArray, diagonal: GpuArray, *arguments: Array) -> GpuArray:
        low, high = check_diagonal(x, diagonal, arguments[0] if banded else None)
        y = device.copied(x)
        _put(device, y, diagonal, low, high, left)
        return y

    return compute


@gpu_kernel("MatrixDiag", "BatchMatrixDiag")
def matrix_diag(op: KernelNode) -> Compute:
    device = device_of(op.node)

    def compute(diagonal: GpuArray) -> GpuArray:
        require(diagonal.ndim >= 1, f"diagonal must be at least 1-dim, received shape: {shape_text(diagonal)}")
        y = device.zeros((*diagonal.shape, diagonal.shape[-1]), diagonal.dtype)
        _put(device, y, diagonal, 0, 0, (True, True))
        return y

    return compute


@gpu_kernel("MatrixDiagV2", "MatrixDiagV3")
def matrix_diag_band(op: KernelNode) -> Compute:
    """Matrices with a band of given diagonals."""
    device, left = device_of(op.node), alignment(op)

    def compute(diagonal: GpuArray, k: Array, num_rows: Array, num_cols: Array, padding: Array) -> GpuArray:
        low, high = band_limits(k)
        rows, columns = matrix_sizes(diagonal, (low, high), num_rows, num_cols, padding)
        batch = diagonal.shape[:-1] if low == high else diagonal.shape[:-2]
        y = device.full((*batch, rows, columns), diagonal.dtype, padding[()])
        _put(device, y, diagonal, low, high, left)
        return y

    return compute
