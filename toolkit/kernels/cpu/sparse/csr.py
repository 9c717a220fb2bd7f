"""Matrices in compressed sparse rows, alone or in batches, as variants (CSRSparseMatrix)."""

from __future__ import annotations

from dataclasses import dataclass

from toolkit.errors import InvalidArgumentError
from toolkit.graph.dtypes import DType
from toolkit.kernels.cpu.common import np, require, require_scalar, shape_text, to_ints
from toolkit.kernels.cpu.sparse.basic import check_bounds
from toolkit.kernels.cpu.sparse.forms import check_sparse
from toolkit.kernels.registry import Compute, KernelNode, kernel, simple
from toolkit.kernels.types import Array


@dataclass(frozen=True, eq=False)
class CsrMatrix:
    """A batch of sparse matrices: row-major coordinates with the batch first.

    Attributes:
        shape: [rows, columns] or [batch, rows, columns].
        batch, row, column: int64 vectors, one entry a value, in order.
        values: what is stored.
    """

    shape: tuple[int, ...]
    batch: Array
    row: Array
    column: Array
    values: Array

    @property
    def batches(self) -> int:
        return self.shape[0] if len(self.shape) == 3 else 1

    def dense(self) -> Array:
        out = np.zeros((self.batches, *self.shape[-2:]), self.values.dtype)
        out[self.batch, self.row, self.column] = self.values
        return out.reshape(self.shape)

    def transposed(self, conjugate: bool = False) -> CsrMatrix:
        values = np.conj(self.values) if conjugate and self.values.dtype.kind == "c" else self.values
        return from_coordinates(
            (*self.shape[:-2], self.shape[-1], self.shape[-2]), self.batch, self.column, self.row, values
        )


def from_coordinates(shape: tuple[int, ...], batch: Array, row: Array, column: Array, values: Array) -> CsrMatrix:
    """Put the entries in order."""
    order = np.lexsort((column, row, batch))
    return CsrMatrix(shape, batch[order], row[order], column[order], values[order])


def _take_apart(indices: Array, shape: Array) -> tuple[tuple[int, ...], Array, Array, Array]:
    dims = tuple(to_ints(shape))
    require(len(dims) in (2, 3), f"a sparse matrix has rank 2 or 3, got shape {list(dims)}")
    batch = indices[:, 0] if len(dims) == 3 else np.zeros(len(indices), np.int64)
    return dims, batch, indices[:, -2], indices[:, -1]


def _check(matrix: object) -> CsrMatrix:
    if not isinstance(matrix, CsrMatrix):
        raise InvalidArgumentError(f"expected a CSRSparseMatrix variant, got a {type(matrix).__name__}")
    return matrix


@simple("SparseTensorToCSRSparseMatrix")
def from_sparse_tensor(indices: Array, values: Array, shape: Array) -> CsrMatrix:
    check_sparse(indices, values, shape)
    check_bounds(indices, shape)
    return from_coordinates(*_take_apart(indices, shape), values)


@simple("DenseToCSRSparseMatrix")
def from_dense(x: Array, indices: Array) -> CsrMatrix:
    """The entries of x at the given places."""
    require(x.ndim in (2, 3), f"dense_input must have rank 2 or 3, got {shape_text(x)}")
    require(
        indices.ndim == 2 and indices.shape[1] == x.ndim,
        f"indices must have {x.ndim} columns, got shape {shape_text(indices)}",
    )
    check_bounds(indices, np.array(x.shape))
    return from_coordinates(*_take_apart(indices, np.array(x.shape)), x[tuple(indices.T)])


@simple("CSRSparseMatrixToSparseTensor")
def to_sparse_tensor(matrix: CsrMatrix) -> tuple[Array, Array, Array]:
    _check(matrix)
    columns = [matrix.batch] if len(matrix.shape) == 3 else []
    indices = np.stack([*columns, matrix.row, matrix.column], axis=1)
    return indices.astype(np.int64), matrix.values, np.array(matrix.shape, np.int64)


@simple("CSRSparseMatrixToDense")
def to_dense(matrix: CsrMatrix) -> Array:
    return _check(matrix).dense()


@simple("CSRSparseMatrixComponents")
def components(matrix: CsrMatrix, index: Array) -> tuple[Array, Array, Array]:
    """(row pointers, columns, values) of one matrix of the batch."""
    _check(matrix)
    require(index.ndim == 0, f"index should be a scalar, but saw shape {shape_text(index)}")
    at = int(index)
    require(0 <= at < matrix.batches, f"index ({at}) not in [0, {matrix.batches})")
    own = matrix.batch == at
    counts = np.bincount(matrix.row[own], minlength=matrix.shape[-2])
    pointers = np.concatenate([[0], np.cumsum(counts)])
    return pointers.astype(np.int32), matrix.column[own].astype(np.int32), matrix.values[own]


@simple("SparseMatrixNNZ")
def nonzeros(matrix: CsrMatrix) -> Array:
    """The number of entries, for each matrix of a batch."""
    _check(matrix)
    counts = np.bincount(matrix.batch, minlength=matrix.batches).astype(np.int32)
    return counts if len(matrix.shape) == 3 else counts.reshape(())


@kernel("SparseMatrixTranspose")
def transpose(op: KernelNode) -> Compute:
    conjugate = bool(op.attr("conjugate"))
    dtype = op.attr("type")

    def compute(matrix: CsrMatrix) -> CsrMatrix:
        given = _check(matrix)
        require(given.values.dtype == dtype.numpy, f"the matrix is of type {given.values.dtype}, 'type' says {dtype}")
        return given.transposed(conjugate)

    return compute


@kernel("SparseMatrixMatMul")
def sparse_dense(op: KernelNode) -> Compute:
    """A sparse matrix times a dense one, batch by batch; the result may be transposed or conjugated."""
    adjoint_a, adjoint_b = bool(op.attr("adjoint_a")), bool(op.attr("adjoint_b"))
    transpose_a, transpose_b = bool(op.attr("transpose_a")), bool(op.attr("transpose_b"))
    turn_output, conjugate_output = bool(op.attr("transpose_output")), bool(op.attr("conjugate_output"))
    require(not (adjoint_a and transpose_a), "Only one of adjoint_a and transpose_a may be true.")
    require(not (adjoint_b and transpose_b), "Only one of adjoint_b and transpose_b may be true.")

    def compute(matrix: CsrMatrix, b: Array) -> Array:
        a = _check(matrix)
        require(len(a.shape) == b.ndim, f"Ranks of a and b must match, saw: {len(a.shape)} vs. {b.ndim}.")
        if adjoint_a or transpose_a:
            a = a.transposed(adjoint_a)
        if adjoint_b or transpose_b:
            b = np.swapaxes(b, -1, -2)
            b = np.conj(b) if adjoint_b and b.dtype.kind == "c" else b
        require(
            a.shape[-1] == b.shape[-2], f"Inner dimensions of a and b do not agree: {a.shape[-1]} vs. {b.shape[-2]}"
        )
        stacked = b.reshape(a.batches, *b.shape[-2:])
        out = np.zeros((a.batches, a.shape[-2], b.shape[-1]), b.dtype)
        np.add.at(out, (a.batch, a.row), a.values[:, None] * stacked[a.batch, a.column])
        out = out.reshape(*a.shape[:-1], b.shape[-1])
        out = np.swapaxes(out, -1, -2) if turn_output else out
        return np.conj(out) if conjugate_output and out.dtype.kind == "c" else out

    return compute


@kernel("SparseMatrixSparseMatMul")
def sparse_sparse(op: KernelNode) -> Compute:
    adjoint_a, adjoint_b = bool(op.attr("adjoint_a")), bool(op.attr("adjoint_b"))
    transpose_a, transpose_b = bool(op.attr("transpose_a")), bool(op.attr("transpose_b"))
    require(not (adjoint_a and transpose_a), "Only one of adjoint_a and transpose_a may be true.")
    require(not (adjoint_b and transpose_b), "Only one of adjoint_b and transpose_b may be true.")

    def compute(first: CsrMatrix, second: CsrMatrix) -> CsrMatrix:
        a, b = _check(first), _check(second)
        a = a.transposed(adjoint_a) if adjoint_a or transpose_a else a
        b = b.transposed(adjoint_b) if adjoint_b or transpose_b else b
        require(a.shape[:-2] == b.shape[:-2], f"Batch sizes differ: {list(a.shape)} vs. {list(b.shape)}")
        require(
            a.shape[-1] == b.shape[-2], f"Inner dimensions of a and b do not agree: {a.shape[-1]} vs. {b.shape[-2]}"
        )
        return _multiply(a, b)

    return compute


def _multiply(a: CsrMatrix, b: CsrMatrix) -> CsrMatrix:
    """Each entry of a meets the row of b that its column names; products at one place are added."""
    keys = b.batch * b.shape[-2] + b.row
    starts = np.searchsorted(keys, a.batch * b.shape[-2] + a.column, side="left")
    ends = np.searchsorted(keys, a.batch * b.shape[-2] + a.column, side="right")
    counts = ends - starts
    left = np.repeat(np.arange(len(a.values)), counts)
    right = np.arange(len(left)) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(starts, counts)
    rows, columns = a.shape[-2], b.shape[-1]
    places = (a.batch[left] * rows + a.row[left]) * columns + b.column[right]
    distinct, position = np.unique(places, return_inverse=True)
    values = np.zeros(len(distinct), a.values.dtype)
    np.add.at(values, position.reshape(-1), a.values[left] * b.values[right])
    batch, rest = distinct // (rows * columns or 1), distinct % (rows * columns or 1)
    return CsrMatrix((*a.shape[:-1], columns), batch, rest // (columns or 1), rest % (columns or 1), values)


@simple("SparseMatrixMul")
def multiply_elementwise(matrix: CsrMatrix, b: Array) -> CsrMatrix:
    """By a scalar, or row by row by [rows] or [batch, 1, 1] numbers."""
    a = _check(matrix)
    require(b.dtype == a.values.dtype, f"b is {b.dtype}, but the matrix {a.values.dtype}")
    try:
        factor = np.broadcast_to(b, a.shape).reshape(a.batches, *a.shape[-2:])
    except ValueError:
        raise InvalidArgumentError(f"b of shape {shape_text(b)} does not broadcast to {list(a.shape)}") from None
    return CsrMatrix(a.shape, a.batch, a.row, a.column, a.values * factor[a.batch, a.row, a.column])


@simple("SparseMatrixAdd")
def add(first: CsrMatrix, second: CsrMatrix, alpha: Array, beta: Array) -> CsrMatrix:
    """alpha a + beta b."""
    a, b = _check(first), _check(second)
    require(a.shape == b.shape, f"the shapes differ: {list(a.shape)} vs. {list(b.shape)}")
    for value, name in ((alpha, "alpha"), (beta, "beta")):
        require_scalar(value, name)
        require(value.dtype == a.values.dtype == b.values.dtype, f"the matrices and {name} must be of one type")
    rows, columns = a.shape[-2:]
    places = [(m.batch * rows + m.row) * columns + m.column for m in (a, b)]
    distinct, position = np.unique(np.concatenate(places), return_inverse=True)
    values = np.zeros(len(distinct), a.values.dtype)
    np.add.at(values, position.reshape(-1), np.concatenate([alpha * a.values, beta * b.values]))
    batch, rest = distinct // (rows * columns or 1), distinct % (rows * columns or 1)
    return CsrMatrix(a.shape, batch, rest // (columns or 1), rest % (columns or 1), values)


@kernel("SparseMatrixZeros")
def zeros(op: KernelNode) -> Compute:
    dtype: DType = op.attr("type")

    def compute(shape: Array) -> CsrMatrix:
        require(shape.ndim == 1, f"dense_shape must be a vector, got shape {shape_text(shape)}")
        nothing = np.zeros(0, np.int64)
        return CsrMatrix(tuple(to_ints(shape)), nothing, nothing, nothing, np.zeros(0, dtype.numpy))

    return compute


def _row_sums(a: CsrMatrix, values: Array) -> tuple[Array, Array]:
    group = a.batch * a.shape[-2] + a.row
    total = np.zeros(a.batches * a.shape[-2], values.dtype)
    np.add.at(total, group, values)
    return total, group


@simple("SparseMatrixSoftmax")
def softmax(matrix: CsrMatrix) -> CsrMatrix:
    """Over the entries of each row."""
    a = _check(matrix)
    peak = np.full(a.batches * a.shape[-2], -np.inf, a.values.dtype)
    np.maximum.at(peak, a.batch * a.shape[-2] + a.row, a.values)
    raised = np.exp(a.values - peak[a.batch * a.shape[-2] + a.row])
    total, group = _row_sums(a, raised)
    return CsrMatrix(a.shape, a.batch, a.row, a.column, (raised / total[group]).astype(a.values.dtype))


@simple("SparseMatrixSoftmaxGrad")
def softmax_grad(value: CsrMatrix, grad: CsrMatrix) -> CsrMatrix:
    """softmax * (grad - sum of softmax * grad in the row), at the entries of the softmax."""
    a, g = _check(value), _check(grad)
    require(a.shape == g.shape, f"the shapes differ: {list(a.shape)} vs. {list(g.shape)}")
    incoming = g.dense().reshape(a.batches, *a.shape[-2:])[a.batch, a.row, a.column]
    total, group = _row_sums(a, a.values * incoming)
    return CsrMatrix(a.shape, a.batch, a.row, a.column, a.values * (incoming - total[group]))


def _square(matrix: CsrMatrix) -> int:
    """Rows and columns of a square matrix."""
    rows, columns = matrix.shape[-2:]
    require(rows == columns, f"sparse matrix must be square, got {rows} rows and {columns} columns")
    return columns


@simple("SparseMatrixOrderingAMD")
def ordering(matrix: CsrMatrix) -> Array:
    """A permutation that keeps the Cholesky factor sparse: by rising number of entries, ties in order. (AMD is one
    such heuristic; any permutation is a valid answer.)"""
    a = _check(matrix)
    size = _square(a)
    counts = np.zeros((a.batches, size), np.int64)
    np.add.at(counts, (a.batch, a.row), 1)
    return np.argsort(counts, axis=1, kind="stable").astype(np.int32).reshape(a.shape[:-1])


@simple("SparseMatrixSparseCholesky")
def cholesky(matrix: CsrMatrix, permutation: Array) -> CsrMatrix:
    """The lower factor of the permuted matrix, as a sparse matrix."""
    a = _check(matrix)
    dense = a.dense().reshape(a.batches, *a.shape[-2:])
    size = _square(a)
    require(
        permutation.shape == a.shape[:-1] and (np.sort(permutation, axis=-1) == np.arange(size)).all(),
        f"permutation must be one of {size} rows for each matrix, got shape {shape_text(permutation)}",
    )
    order = permutation.reshape(a.batches, size)
    each = np.arange(a.batches)[:, None, None]
    moved = dense[each, order[:, :, None], order[:, None, :]]
    try:
        factor = np.linalg.cholesky(moved)
    except np.linalg.LinAlgError:
        raise InvalidArgumentError(
            "Sparse Cholesky factorization failed: the matrix is not positive definite"
        ) from None
    batch, row, column = np.nonzero(factor)
    return CsrMatrix(a.shape, batch, row, column, factor[batch, row, column])
