"""Sparse matrices as variants (CSRSparseMatrix): made, taken apart, multiplied, added."""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from toolkit.errors import InvalidArgumentError
from toolkit.graph.dtypes import DType
from toolkit.kernels.cpu.common import np, require, require_scalar, shape_text, to_ints
from toolkit.kernels.cpu.sparse.basic import check_bounds
from toolkit.kernels.cpu.sparse.forms import check_sparse
from toolkit.kernels.registry import Compute, KernelNode, kernel, simple
from toolkit.kernels.resources.sparse_matrix import CsrMatrix, matrix_of, matrix_shape
from toolkit.kernels.types import Array


def _coordinates(a: CsrMatrix) -> tuple[Array, Array, Array]:
    """(matrix, row, column) of each value."""
    rest, column = np.divmod(a.places, max(1, a.columns))
    batch, row = np.divmod(rest, max(1, a.rows))
    return batch, row, column


def _lines(a: CsrMatrix) -> Array:
    """The row of each value, counted through all matrices."""
    return a.places // max(1, a.columns)


def _ordered(shape: tuple[int, ...], places: Array, values: Array) -> CsrMatrix:
    """Put the entries in order."""
    order = np.argsort(places, kind="stable")
    return CsrMatrix(shape, places[order], values[order])


def _summed(shape: tuple[int, ...], places: Array, values: Array) -> CsrMatrix:
    """Values for one place are added."""
    distinct, position = np.unique(places, return_inverse=True)
    sums = np.zeros(len(distinct), values.dtype)
    np.add.at(sums, position.reshape(-1), values)
    return CsrMatrix(shape, distinct, sums)


def _transposed(a: CsrMatrix, conjugate: bool = False) -> CsrMatrix:
    batch, row, column = _coordinates(a)
    values = np.conj(a.values) if conjugate and a.values.dtype.kind == "c" else a.values
    return _ordered(turned_shape(a), (batch * a.columns + column) * a.rows + row, values)


def turned_shape(a: CsrMatrix) -> tuple[int, ...]:
    """The shape of the transposed matrices."""
    return (*a.shape[:-2], a.columns, a.rows)


def from_indices(indices: Array, dims: Sequence[int], values: Array) -> CsrMatrix:
    """A matrix of coordinates."""
    shape = matrix_shape(dims)
    places = np.zeros(len(indices), np.int64)
    for axis, size in enumerate(shape):
        places = places * size + indices[:, axis]
    return _ordered(shape, places, values)


@simple("SparseTensorToCSRSparseMatrix")
def from_sparse_tensor(indices: Array, values: Array, shape: Array) -> CsrMatrix:
    check_sparse(indices, values, shape)
    check_bounds(indices, shape)
    return from_indices(indices, to_ints(shape), values)


@simple("DenseToCSRSparseMatrix")
def from_dense(x: Array, indices: Array) -> CsrMatrix:
    """The entries of x at the given places."""
    check_places(x, indices)
    check_bounds(indices, np.array(x.shape))
    return from_indices(indices, x.shape, x[tuple(indices.T)])


def check_places(x: Array, indices: Array) -> None:
    """Refuse what names no places of matrices."""
    require(x.ndim in (2, 3), f"dense_input must have rank 2 or 3, got {shape_text(x)}")
    require(
        indices.ndim == 2 and indices.shape[1] == x.ndim,
        f"indices must have {x.ndim} columns, got shape {shape_text(indices)}",
    )


def _typed(op: KernelNode, compute: Callable[..., Any]) -> Compute:
    """What is computed of matrices of the type that a node says."""
    dtype: DType = op.attr("type")
    return lambda *given: compute(*(matrix_of(each, dtype.numpy) for each in given))


@kernel("CSRSparseMatrixToSparseTensor")
def to_sparse_tensor(op: KernelNode) -> Compute:
    def compute(a: CsrMatrix) -> tuple[Array, Array, Array]:
        batch, row, column = _coordinates(a)
        indices = np.stack([batch, row, column] if a.has_batch else [row, column], axis=1)
        return indices.astype(np.int64), a.values, np.array(a.shape, np.int64)

    return _typed(op, compute)


@kernel("CSRSparseMatrixToDense")
def to_dense(op: KernelNode) -> Compute:
    return _typed(op, CsrMatrix.dense)


@kernel("CSRSparseMatrixComponents")
def components(op: KernelNode) -> Compute:
    """(row pointers, columns, values) of one matrix of the batch."""
    dtype: DType = op.attr("type")

    def compute(matrix: CsrMatrix, index: Array) -> tuple[Array, Array, Array]:
        a = matrix_of(matrix, dtype.numpy)
        own = _lines(a) // max(1, a.rows) == which_matrix(a, index)
        counts = np.bincount(_lines(a)[own] % max(1, a.rows), minlength=a.rows)
        pointers = np.concatenate([[0], np.cumsum(counts)])
        return pointers.astype(np.int32), (a.places[own] % max(1, a.columns)).astype(np.int32), a.values[own]

    return compute


def which_matrix(a: CsrMatrix, index: Array) -> int:
    """The number of a matrix of a batch.

    Raises:
        InvalidArgumentError: there is none with this number.
    """
    require(index.ndim == 0, f"index should be a scalar, but saw shape {shape_text(index)}")
    at = int(index)
    require(0 <= at < a.batches, f"index ({at}) not in [0, {a.batches})")
    return at


@simple("SparseMatrixNNZ")
def nonzeros(matrix: CsrMatrix) -> Array:
    """The number of entries, for each matrix of a batch."""
    a = matrix_of(matrix)
    counts = np.bincount(_coordinates(a)[0], minlength=a.batches).astype(np.int32)
    return counts if a.has_batch else counts.reshape(())


@kernel("SparseMatrixTranspose")
def transpose(op: KernelNode) -> Compute:
    conjugate = bool(op.attr("conjugate"))
    dtype: DType = op.attr("type")

    def compute(matrix: CsrMatrix) -> CsrMatrix:
        return _transposed(matrix_of(matrix, dtype.numpy), conjugate)

    return compute


class ProductFlags:
    """The attributes of a product.

    Raises:
        InvalidArgumentError: a factor is transposed and its adjoint is taken.
    """

    def __init__(self, op: KernelNode):
        self.adjoint_a, self.adjoint_b = bool(op.attr("adjoint_a")), bool(op.attr("adjoint_b"))
        self.turns_a = bool(op.attr("transpose_a")) or self.adjoint_a
        self.turns_b = bool(op.attr("transpose_b")) or self.adjoint_b
        for name in "ab":
            both = op.attr(f"adjoint_{name}") and op.attr(f"transpose_{name}")
            require(not both, f"Only one of adjoint_{name} and transpose_{name} may be true.")


def check_sparse_dense(a: CsrMatrix, b: Array, flags: ProductFlags) -> None:
    """Refuse a sparse and a dense factor that do not fit, as they are given."""
    require(len(a.shape) == b.ndim, f"Ranks of a and b must match, saw: {len(a.shape)} vs. {b.ndim}.")
    require(
        not a.has_batch or a.batches == b.shape[0],
        f"Batch sizes of a and b must match, saw: {a.batches} vs. {b.shape[0]}.",
    )
    _check_inner(a.rows if flags.turns_a else a.columns, b.shape[-1] if flags.turns_b else b.shape[-2])
    require(a.values.dtype == b.dtype, f"a is of type {a.values.dtype}, b of {b.dtype}")


def _check_inner(left: int, right: int) -> None:
    require(left == right, f"Inner dimensions of a and b do not agree: {left} vs. {right}")


@kernel("SparseMatrixMatMul")
def sparse_dense(op: KernelNode) -> Compute:
    """A sparse matrix times a dense one, batch by batch; the result may be transposed or conjugated."""
    flags = ProductFlags(op)
    turn_output, conjugate_output = bool(op.attr("transpose_output")), bool(op.attr("conjugate_output"))

    def compute(matrix: CsrMatrix, b: Array) -> Array:
        a = matrix_of(matrix)
        check_sparse_dense(a, b, flags)
        a = _transposed(a, flags.adjoint_a) if flags.turns_a else a
        b = np.swapaxes(b, -1, -2) if flags.turns_b else b
        b = np.conj(b) if flags.adjoint_b and b.dtype.kind == "c" else b
        stacked = b.reshape(a.batches, *b.shape[-2:])
        out = np.zeros((a.batches, a.rows, b.shape[-1]), b.dtype)
        batch, row, column = _coordinates(a)
        np.add.at(out, (batch, row), a.values[:, None] * stacked[batch, column])
        out = out.reshape(*a.shape[:-1], b.shape[-1])
        out = np.swapaxes(out, -1, -2) if turn_output else out
        return np.conj(out) if conjugate_output and out.dtype.kind == "c" else out

    return compute


def check_sparse_sparse(a: CsrMatrix, b: CsrMatrix, flags: ProductFlags) -> None:
    """Refuse two sparse factors that do not fit, as they are given."""
    require(a.shape[:-2] == b.shape[:-2], f"Batch sizes differ: {list(a.shape)} vs. {list(b.shape)}")
    _check_inner(a.rows if flags.turns_a else a.columns, b.columns if flags.turns_b else b.rows)
    require(a.values.dtype == b.values.dtype, f"a is of type {a.values.dtype}, b of {b.values.dtype}")


@kernel("SparseMatrixSparseMatMul")
def sparse_sparse(op: KernelNode) -> Compute:
    flags = ProductFlags(op)

    def compute(first: CsrMatrix, second: CsrMatrix) -> CsrMatrix:
        a, b = matrix_of(first), matrix_of(second)
        check_sparse_sparse(a, b, flags)
        a = _transposed(a, flags.adjoint_a) if flags.turns_a else a
        b = _transposed(b, flags.adjoint_b) if flags.turns_b else b
        return _multiply(a, b)

    return compute


def _multiply(a: CsrMatrix, b: CsrMatrix) -> CsrMatrix:
    """Each entry of a meets the row of b that its column names; products at one place are added."""
    lines = _lines(b)
    batch, row, column = _coordinates(a)
    wanted = batch * b.rows + column
    starts, ends = (np.searchsorted(lines, wanted, side=side) for side in ("left", "right"))
    counts = ends - starts
    left = np.repeat(np.arange(len(a.values)), counts)
    right = np.arange(len(left)) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(starts, counts)
    shape = matrix_shape((*a.shape[:-1], b.columns))
    places = (batch[left] * a.rows + row[left]) * b.columns + b.places[right] % max(1, b.columns)
    return _summed(shape, places, a.values[left] * b.values[right])


@simple("SparseMatrixMul")
def multiply_elementwise(matrix: CsrMatrix, b: Array) -> CsrMatrix:
    """By a scalar, or row by row by [rows] or [batch, 1, 1] numbers."""
    a = matrix_of(matrix)
    factor = np.broadcast_to(b, check_factor(a, b))
    return CsrMatrix(a.shape, a.places, a.values * factor[_coordinates(a)[3 - len(a.shape) :]])


def check_factor(a: CsrMatrix, b: Array) -> tuple[int, ...]:
    """The shape that a factor of each number is broadcast to.

    Raises:
        InvalidArgumentError: it is of another type, or cannot be.
    """
    require(b.dtype == a.values.dtype, f"b is {b.dtype}, but the matrix {a.values.dtype}")
    fits = len(b.shape) <= len(a.shape) and all(
        size in (1, other) for size, other in zip(b.shape[::-1], a.shape[::-1], strict=False)
    )
    require(fits, f"b of shape {shape_text(b)} does not broadcast to {list(a.shape)}")
    return a.shape


@simple("SparseMatrixAdd")
def add(first: CsrMatrix, second: CsrMatrix, alpha: Array, beta: Array) -> CsrMatrix:
    """alpha a + beta b."""
    a, b = matrix_of(first), matrix_of(second)
    check_sum(a, b, alpha, beta)
    return _summed(a.shape, np.concatenate([a.places, b.places]), np.concatenate([alpha * a.values, beta * b.values]))


def check_sum(a: CsrMatrix, b: CsrMatrix, alpha: Array, beta: Array) -> None:
    """Refuse matrices that cannot be added, and factors that are none of theirs."""
    check_one_shape(a, b)
    for value, name in ((alpha, "alpha"), (beta, "beta")):
        require_scalar(value, name)
        require(value.dtype == a.values.dtype == b.values.dtype, f"the matrices and {name} must be of one type")


def check_one_shape(a: CsrMatrix, b: CsrMatrix) -> None:
    """Refuse matrices of different shapes."""
    require(a.shape == b.shape, f"the shapes differ: {list(a.shape)} vs. {list(b.shape)}")


@kernel("SparseMatrixZeros")
def zeros(op: KernelNode) -> Compute:
    dtype: DType = op.attr("type")

    def compute(shape: Array) -> CsrMatrix:
        require(shape.ndim == 1, f"dense_shape must be a vector, got shape {shape_text(shape)}")
        return CsrMatrix(matrix_shape(to_ints(shape)), np.zeros(0, np.int64), np.zeros(0, dtype.numpy))

    return compute


def _row_sums(a: CsrMatrix, values: Array) -> Array:
    """For each value the sum of its row's."""
    total = np.zeros(a.batches * a.rows, values.dtype)
    np.add.at(total, _lines(a), values)
    return total[_lines(a)]


@kernel("SparseMatrixSoftmax")
def softmax(op: KernelNode) -> Compute:
    return _typed(op, _softmax)


def _softmax(a: CsrMatrix) -> CsrMatrix:
    """Over the entries of each row."""
    peak = np.full(a.batches * a.rows, -np.inf, a.values.dtype)
    np.maximum.at(peak, _lines(a), a.values)
    raised = np.exp(a.values - peak[_lines(a)])
    return CsrMatrix(a.shape, a.places, (raised / _row_sums(a, raised)).astype(a.values.dtype))


@kernel("SparseMatrixSoftmaxGrad")
def softmax_grad(op: KernelNode) -> Compute:
    return _typed(op, _softmax_grad)


def _softmax_grad(a: CsrMatrix, g: CsrMatrix) -> CsrMatrix:
    """softmax * (grad - sum of softmax * grad in the row), at the entries of the softmax."""
    check_one_shape(a, g)
    # not by way of all places, which may be more than there is memory
    last = np.searchsorted(g.places, a.places, side="right") - 1
    incoming = np.zeros_like(a.values)
    there = last >= 0
    there[there] = g.places[last[there]] == a.places[there]
    incoming[there] = g.values[last[there]]
    return CsrMatrix(a.shape, a.places, a.values * (incoming - _row_sums(a, a.values * incoming)))


def _square(matrix: CsrMatrix) -> int:
    """Rows and columns of a square matrix."""
    require(
        matrix.rows == matrix.columns,
        f"sparse matrix must be square, got {matrix.rows} rows and {matrix.columns} columns",
    )
    return matrix.columns


@simple("SparseMatrixOrderingAMD")
def ordering(matrix: CsrMatrix) -> Array:
    """A permutation that keeps the Cholesky factor sparse: by rising number of entries, ties in order. (AMD is one
    such heuristic; any permutation is a valid answer.)"""
    a = matrix_of(matrix)
    size = _square(a)
    counts = np.bincount(_lines(a), minlength=a.batches * size).reshape(a.batches, size)
    return np.argsort(counts, axis=1, kind="stable").astype(np.int32).reshape(a.shape[:-1])


@simple("SparseMatrixSparseCholesky")
def cholesky(matrix: CsrMatrix, permutation: Array) -> CsrMatrix:
    """The lower factor of the permuted matrix, as a sparse matrix."""
    a = matrix_of(matrix)
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
    places = np.flatnonzero(factor)
    return CsrMatrix(a.shape, places, factor.reshape(-1)[places])
