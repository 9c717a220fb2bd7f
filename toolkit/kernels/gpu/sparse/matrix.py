"""Sparse matrices in compressed rows (CSRSparseMatrix) with their tensors in the memory of a GPU.

Sums are added in the order of columns, or of what was given, so that results are the same bits each time. How many
values a sum or a product of sparse matrices has, the host asks for: it waits for the GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from toolkit.kernels.cpu.common import require, shape_text, to_ints
from toolkit.kernels.cpu.sparse.basic import check_bounds
from toolkit.kernels.cpu.sparse.csr import (
    ProductFlags,
    check_factor,
    check_one_shape,
    check_places,
    check_sparse_dense,
    check_sparse_sparse,
    check_sum,
    turned_shape,
    which_matrix,
)
from toolkit.kernels.cpu.sparse.forms import check_sparse
from toolkit.kernels.cuda.device import CudaDevice, device_of
from toolkit.kernels.cuda.memory import GpuArray
from toolkit.kernels.cuda.simt.ir import TYPES, WARP, SimtKernel
from toolkit.kernels.gpu.arrays.gather import gather_rows
from toolkit.kernels.gpu.arrays.join import joined
from toolkit.kernels.gpu.arrays.scatter import row_numbers, scatter_rows
from toolkit.kernels.gpu.arrays.transpose import conjugated
from toolkit.kernels.gpu.arrays.unique import run_starts
from toolkit.kernels.gpu.elementwise.nests import broadcast_strides
from toolkit.kernels.gpu.primitives.copying import part
from toolkit.kernels.gpu.primitives.indexing import blocks_for
from toolkit.kernels.gpu.primitives.layout import ElementLayout, layout_of, stand_in
from toolkit.kernels.gpu.primitives.number_types import real_of
from toolkit.kernels.gpu.reductions.scan import scan_of
from toolkit.kernels.gpu.reductions.scan_kernels import scan_array
from toolkit.kernels.gpu.reductions.segment_kernels import (
    SegmentForm,
    last_of,
    reduce_segments,
    segment_offsets,
    sorted_ids,
)
from toolkit.kernels.gpu.registering import gpu_kernel
from toolkit.kernels.gpu.sparse import matrix_kernels as kernels
from toolkit.kernels.registry import Compute, KernelNode
from toolkit.kernels.resources.sparse_matrix import CsrMatrix, matrix_of, matrix_shape
from toolkit.kernels.resources.tensor_space import TensorSpace, space_at
from toolkit.kernels.types import Array


def _held(device: CudaDevice, shape: tuple[int, ...], places: GpuArray, values: GpuArray) -> CsrMatrix:
    return CsrMatrix(shape, places, values, _space(device))


def _space(device: CudaDevice) -> TensorSpace:
    return space_at("GPU", device.index)


def _ordered(device: CudaDevice, shape: tuple[int, ...], places: GpuArray, values: GpuArray) -> CsrMatrix:
    """Put the entries in order."""
    keys, order = sorted_ids(device, places)
    return _held(device, shape, keys, gather_rows(device, values, order))


def _summed(device: CudaDevice, shape: tuple[int, ...], places: GpuArray, values: GpuArray) -> CsrMatrix:
    """Values for one place are added, in their order."""
    if not places.size:
        return _held(device, shape, places, values)
    keys, order = sorted_ids(device, places)
    distinct, offsets = run_starts(device, keys)
    sums = device.empty(distinct.shape, values.dtype)
    form = SegmentForm("sum", real_of(values.dtype).name, 0, 0, rows="i32")
    reduce_segments(device, form, values, offsets, sums, 2 if values.dtype.kind == "c" else 1, order)
    return _held(device, shape, distinct, sums)


def _from_indices(device: CudaDevice, indices: GpuArray, dims: Sequence[int], values: GpuArray) -> CsrMatrix:
    """A matrix of coordinates.

    Raises:
        InvalidArgumentError: one is out of bounds.
    """
    shape = matrix_shape(dims)
    if not indices.nbytes:
        return _held(device, shape, device.empty((0,), np.int64), values)
    made = _ordered(device, shape, row_numbers(device, indices, shape), values)
    if int(device.to_host(made.places.viewed(np.int64, (1,)))[0]) < 0:
        check_bounds(device.to_host(indices), np.array(shape))
    return made


def _lines(device: CudaDevice, a: CsrMatrix) -> GpuArray:
    """The row of each value, counted through all matrices."""
    lines, count = device.empty(a.places.shape, np.int64), a.places.size
    device.launch(kernels.lines_kernel(), blocks_for(count), a.places, lines, count, a.columns)
    return lines


def _offsets(device: CudaDevice, a: CsrMatrix) -> GpuArray:
    """Where rows begin, of all matrices, with the end of the last."""
    return segment_offsets(device, _lines(device, a), a.batches * a.rows)


def _transposed(device: CudaDevice, a: CsrMatrix, conjugate: bool = False) -> CsrMatrix:
    places, count = device.empty(a.places.shape, np.int64), a.places.size
    device.launch(kernels.turned_kernel(), blocks_for(count), a.places, places, count, a.rows, a.columns)
    values = conjugated(device, a.values) if conjugate and a.values.dtype.kind == "c" and count else a.values
    return _ordered(device, turned_shape(a), places, values)


@gpu_kernel("SparseTensorToCSRSparseMatrix")
def from_sparse_tensor(op: KernelNode) -> Compute:
    device = device_of(op.node)

    def compute(indices: GpuArray, values: GpuArray, shape: Array) -> CsrMatrix:
        check_sparse(indices, values, shape)
        return _from_indices(device, indices, to_ints(shape), values)

    return compute


@gpu_kernel("DenseToCSRSparseMatrix")
def from_dense(op: KernelNode) -> Compute:
    """The entries of a tensor at the given places."""
    device = device_of(op.node)

    def compute(x: GpuArray, indices: GpuArray) -> CsrMatrix:
        check_places(x, indices)
        places = _from_indices(device, indices, x.shape, device.zeros((indices.shape[0],), x.dtype)).places
        return _held(device, x.shape, places, gather_rows(device, x.reshaped((x.size,)), places))

    return compute


@gpu_kernel("CSRSparseMatrixToSparseTensor")
def to_sparse_tensor(op: KernelNode) -> Compute:
    device, dtype = device_of(op.node), op.attr("type").numpy

    def compute(matrix: CsrMatrix) -> list[Any]:
        a = matrix_of(matrix, dtype)
        count, rank = a.places.size, len(a.shape)
        indices = device.empty((count, rank), np.int64)
        device.launch(kernels.indices_kernel(rank), blocks_for(count), a.places, indices, count, *a.shape[1:])
        return [indices, a.values, np.array(a.shape, np.int64)]

    return compute


@gpu_kernel("CSRSparseMatrixToDense")
def to_dense(op: KernelNode) -> Compute:
    device, dtype = device_of(op.node), op.attr("type").numpy

    def compute(matrix: CsrMatrix) -> GpuArray:
        a = matrix_of(matrix, dtype)
        y = device.zeros(a.shape, a.values.dtype)
        scatter_rows(device, y, a.values, a.places, y.size, "update")
        return y

    return compute


@gpu_kernel("CSRSparseMatrixComponents")
def components(op: KernelNode) -> Compute:
    """Row pointers, columns and values of one matrix of the batch."""
    device, dtype = device_of(op.node), op.attr("type").numpy

    def compute(matrix: CsrMatrix, index: Array) -> list[GpuArray]:
        a = matrix_of(matrix, dtype)
        line = which_matrix(a, index) * a.rows
        offsets = _offsets(device, a)
        begins, ends = (int(device.to_host(offsets.viewed(np.int64, (1,), 8 * at))[0]) for at in (line, line + a.rows))
        count = ends - begins
        pointers, columns = (device.empty((size,), np.int32) for size in (a.rows + 1, count))
        device.launch(kernels.components_kernel(), blocks_for(max(a.rows + 1, count)), offsets, a.places, pointers,
                      columns, line, a.rows, begins, count, a.columns)  # fmt: skip
        return [pointers, columns, part(device, a.values, ElementLayout((count,), (1,), begins))]

    return compute


@gpu_kernel("SparseMatrixNNZ")
def nonzeros(op: KernelNode) -> Compute:
    """The number of entries, for each matrix of a batch."""
    device = device_of(op.node)

    def compute(matrix: CsrMatrix) -> Array:
        a = matrix_of(matrix)
        if not a.has_batch:
            return np.array(a.places.size, np.int32)
        offsets = device.to_host(segment_offsets(device, _matrices(device, a), a.batches))
        return np.diff(offsets).astype(np.int32)

    return compute


def _matrices(device: CudaDevice, a: CsrMatrix) -> GpuArray:
    """The number of the matrix of each value."""
    made, count = device.empty(a.places.shape, np.int64), a.places.size
    device.launch(kernels.lines_kernel(), blocks_for(count), a.places, made, count, a.rows * a.columns)
    return made


@gpu_kernel("SparseMatrixTranspose")
def transpose(op: KernelNode) -> Compute:
    device, conjugate, dtype = device_of(op.node), bool(op.attr("conjugate")), op.attr("type").numpy

    def compute(matrix: CsrMatrix) -> CsrMatrix:
        return _transposed(device, matrix_of(matrix, dtype), conjugate)

    return compute


def _dense_transposed(device: CudaDevice, x: GpuArray) -> GpuArray:
    base = stand_in(x.shape, x.dtype)
    return part(device, x, layout_of(np.swapaxes(base, -1, -2), base))


@gpu_kernel("SparseMatrixMatMul")
def sparse_dense(op: KernelNode) -> Compute:
    """A sparse matrix times a dense one, batch by batch; the result may be transposed or conjugated."""
    device, flags = device_of(op.node), ProductFlags(op)
    turn_output, conjugate_output = bool(op.attr("transpose_output")), bool(op.attr("conjugate_output"))

    def compute(matrix: CsrMatrix, b: GpuArray) -> GpuArray:
        a = matrix_of(matrix)
        check_sparse_dense(a, b, flags)
        is_complex = b.dtype.kind == "c"
        a = _transposed(device, a, flags.adjoint_a) if flags.turns_a else a
        b = _dense_transposed(device, b) if flags.turns_b else b
        b = conjugated(device, b) if flags.adjoint_b and is_complex else b
        y, width = device.empty((*a.shape[:-1], b.shape[-1]), b.dtype), b.shape[-1]
        if y.size:
            device.launch(kernels.times_dense_kernel(b.dtype.name), blocks_for(y.size), _offsets(device, a), a.places,
                          a.values, b, y, y.size, a.rows, a.columns, width)  # fmt: skip
        y = _dense_transposed(device, y) if turn_output else y
        return conjugated(device, y) if conjugate_output and is_complex else y

    return compute


@gpu_kernel("SparseMatrixSparseMatMul")
def sparse_sparse(op: KernelNode) -> Compute:
    device, flags = device_of(op.node), ProductFlags(op)

    def compute(first: CsrMatrix, second: CsrMatrix) -> CsrMatrix:
        a, b = matrix_of(first), matrix_of(second)
        check_sparse_sparse(a, b, flags)
        a = _transposed(device, a, flags.adjoint_a) if flags.turns_a else a
        b = _transposed(device, b, flags.adjoint_b) if flags.turns_b else b
        return _multiplied(device, a, b)

    return compute


def _multiplied(device: CudaDevice, a: CsrMatrix, b: CsrMatrix) -> CsrMatrix:
    """Each entry of a meets the row of b that its column names; products at one place are added."""
    shape = matrix_shape((*a.shape[:-1], b.columns))
    entries, total = a.places.size, 0
    offsets, ends = _offsets(device, b), device.empty((entries,), np.int64)
    if entries:
        counts = device.empty((entries,), np.int64)
        device.launch(kernels.met_kernel(), blocks_for(entries), offsets, a.places, counts, entries, a.rows, a.columns)
        scan_array(device, scan_of("Cumsum", "int64"), counts, (1, entries, 1), ends)
        total = last_of(device, ends)
    places, values = device.empty((total,), np.int64), device.empty((total,), a.values.dtype)
    kernel = kernels.times_sparse_kernel(values.dtype.name)
    device.launch(kernel, blocks_for(total), offsets, ends, a.places, b.places, a.values, b.values, places, values,
                  total, entries, a.rows, a.columns, b.columns)  # fmt: skip
    return _summed(device, shape, places, values)


@gpu_kernel("SparseMatrixMul")
def multiply_elementwise(op: KernelNode) -> Compute:
    """By a tensor that is broadcast to the matrices' shape."""
    device = device_of(op.node)

    def compute(matrix: CsrMatrix, b: GpuArray) -> CsrMatrix:
        a = matrix_of(matrix)
        steps = broadcast_strides(b.shape, check_factor(a, b))
        values, count = device.empty(a.values.shape, a.values.dtype), a.places.size
        kernel = kernels.scaled_kernel(values.dtype.name, len(a.shape))
        device.launch(kernel, blocks_for(count), a.places, a.values, b, values, count, *a.shape, *steps)
        return _held(device, a.shape, a.places, values)

    return compute


@gpu_kernel("SparseMatrixAdd")
def add(op: KernelNode) -> Compute:
    """alpha a + beta b."""
    device = device_of(op.node)

    def compute(first: CsrMatrix, second: CsrMatrix, alpha: Array, beta: Array) -> CsrMatrix:
        a, b = matrix_of(first), matrix_of(second)
        check_sum(a, b, alpha, beta)
        scaled = [_scaled(device, a, alpha), _scaled(device, b, beta)]
        places = joined(device, [a.places, b.places], 0)
        return _summed(device, a.shape, places, joined(device, scaled, 0))

    return compute


def _scaled(device: CudaDevice, a: CsrMatrix, factor: Array) -> GpuArray:
    """Values times a number of the host."""
    values, count = device.empty(a.values.shape, a.values.dtype), a.places.size
    kernel = kernels.scaled_kernel(values.dtype.name, 1)
    device.launch(kernel, blocks_for(count), a.places, a.values, device.to_device(factor), values, count, 1, 0)
    return values


@gpu_kernel("SparseMatrixZeros")
def zeros(op: KernelNode) -> Compute:
    device, dtype = device_of(op.node), op.attr("type").numpy

    def compute(shape: Array) -> CsrMatrix:
        require(shape.ndim == 1, f"dense_shape must be a vector, got shape {shape_text(shape)}")
        places, values = device.empty((0,), np.int64), device.empty((0,), dtype)
        return _held(device, matrix_shape(to_ints(shape)), places, values)

    return compute


@gpu_kernel("SparseMatrixSoftmax")
def softmax(op: KernelNode) -> Compute:
    """Over the entries of each row."""
    device, dtype = device_of(op.node), op.attr("type").numpy

    def compute(matrix: CsrMatrix) -> CsrMatrix:
        a = matrix_of(matrix, dtype)
        return _over_rows(device, a, kernels.softmax_kernel(TYPES[a.values.dtype.name], False), a.values)

    return compute


@gpu_kernel("SparseMatrixSoftmaxGrad")
def softmax_grad(op: KernelNode) -> Compute:
    """softmax * (grad - sum of softmax * grad in the row), at the entries of the softmax."""
    device, dtype = device_of(op.node), op.attr("type").numpy

    def compute(value: CsrMatrix, grad: CsrMatrix) -> CsrMatrix:
        a, g = matrix_of(value, dtype), matrix_of(grad, dtype)
        check_one_shape(a, g)
        incoming, count = device.empty(a.values.shape, dtype), a.places.size
        device.launch(kernels.matched_kernel(TYPES[a.values.dtype.name]), blocks_for(count), a.places, g.places,
                      g.values, incoming, count, g.places.size)  # fmt: skip
        kernel = kernels.softmax_kernel(TYPES[a.values.dtype.name], True)
        return _over_rows(device, a, kernel, a.values, incoming)

    return compute


def _over_rows(device: CudaDevice, a: CsrMatrix, kernel: SimtKernel, *given: GpuArray) -> CsrMatrix:
    values, rows = device.empty(a.values.shape, a.values.dtype), a.batches * a.rows
    if values.size:
        device.launch(kernel, blocks_for(rows * WARP), _offsets(device, a), *given, values, rows)
    return _held(device, a.shape, a.places, values)
