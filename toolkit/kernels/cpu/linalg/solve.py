"""Linear systems."""

from __future__ import annotations

from typing import Any

from toolkit.errors import InvalidArgumentError
from toolkit.kernels.cpu.common import np, require, shape_text, wide
from toolkit.kernels.cpu.linalg.decompositions import adjoint, check_matrix, check_square, guarded
from toolkit.kernels.registry import Compute, KernelNode, kernel
from toolkit.kernels.types import Array

_solve = guarded(np.linalg.solve, "Input matrix is not invertible.")


def check_rows_of(matrix: Any, rhs: Any) -> None:
    """Refuse right-hand sides that a matrix has not as many rows as.

    Raises:
        InvalidArgumentError: it has not.
    """
    check_matrix(rhs, "Right-hand side")
    require(
        matrix.shape[-2] == rhs.shape[-2],
        f"Input matrix and rhs are incompatible: {shape_text(matrix)} vs. {shape_text(rhs)}",
    )


def check_same_batch(matrix: Any, rhs: Any) -> None:
    """Refuse batches of different shapes.

    Raises:
        InvalidArgumentError: they have.
    """
    require(
        matrix.shape[:-2] == rhs.shape[:-2],
        f"All batch dimensions must match: {shape_text(matrix)} vs. {shape_text(rhs)}",
    )


@kernel("MatrixSolve", "BatchMatrixSolve")
def matrix_solve(op: KernelNode) -> Compute:
    transposed = bool(op.attr("adjoint"))

    def compute(matrix: Array, rhs: Array) -> Array:
        check_square(matrix)
        check_rows_of(matrix, rhs)
        check_same_batch(matrix, rhs)
        left = wide(matrix)
        return _solve(adjoint(left) if transposed else left, wide(rhs)).astype(matrix.dtype)

    return compute


def check_batches(matrix: Any, rhs: Any) -> tuple[int, ...]:
    """The shape that the batches of both broadcast to.

    Raises:
        InvalidArgumentError: there is none.
    """
    try:
        return np.broadcast_shapes(matrix.shape[:-2], rhs.shape[:-2])
    except ValueError:
        raise InvalidArgumentError(
            f"The batch dimensions of {shape_text(matrix)} and {shape_text(rhs)} do not broadcast"
        ) from None


@kernel("MatrixTriangularSolve", "BatchMatrixTriangularSolve")
def matrix_triangular_solve(op: KernelNode) -> Compute:
    """Only one triangle is read; batch axes broadcast."""
    lower, transposed = bool(op.attr("lower")), bool(op.attr("adjoint"))

    def compute(matrix: Array, rhs: Array) -> Array:
        check_square(matrix)
        check_rows_of(matrix, rhs)
        check_batches(matrix, rhs)
        left = np.tril(wide(matrix)) if lower else np.triu(wide(matrix))
        if transposed:
            left = adjoint(left)
        right = wide(rhs)
        # elimination with pivots would spread what is not finite to rows that do not depend on it
        is_plain = (np.einsum("...ii->...i", left) != 0).all() and np.isfinite(left).all() and np.isfinite(right).all()
        if is_plain:
            return _solve(left, right).astype(matrix.dtype)
        return _substitute(left, right, lower != transposed).astype(matrix.dtype)

    return compute


def _substitute(left: Array, rhs: Array, forward: bool) -> Array:
    """Row by row, dividing by zeros on the diagonal where there are any, as Eigen does."""
    size = left.shape[-1]
    batch = np.broadcast_shapes(left.shape[:-2], rhs.shape[:-2])
    out = np.array(np.broadcast_to(rhs, batch + rhs.shape[-2:]))
    for i in range(size) if forward else range(size - 1, -1, -1):
        known = slice(0, i) if forward else slice(i + 1, size)
        row = left[..., i : i + 1, known] @ out[..., known, :]
        out[..., i, :] = (out[..., i, :] - row[..., 0, :]) / left[..., i, i, None]
    return out


@kernel("BandedTriangularSolve")
def banded_triangular_solve(op: KernelNode) -> Compute:
    """The matrix is given by its diagonals as rows: the main one first when it is lower, last when upper."""
    lower, transposed = bool(op.attr("lower")), bool(op.attr("adjoint"))

    def compute(bands: Array, rhs: Array) -> Array:
        check_matrix(bands)
        check_matrix(rhs, "Right-hand side")
        count, size = bands.shape[-2:]
        require(
            size == rhs.shape[-2], f"Input matrix and rhs are incompatible: {shape_text(bands)} vs. {shape_text(rhs)}"
        )
        require(1 <= count <= max(size, 1), f"The number of bands must be between 1 and {size}, got {count}")
        matrix = np.zeros((*bands.shape[:-2], size, size), bands.dtype)
        for i in range(count):
            offset = i if lower else count - 1 - i
            at = np.arange(size - offset)
            if lower:
                matrix[..., at + offset, at] = bands[..., i, offset:]
            else:
                matrix[..., at, at + offset] = bands[..., i, : size - offset]
        if matrix.size:
            require((np.einsum("...ii->...i", matrix) != 0).all(), "Input matrix is not invertible.")
        return _solve(adjoint(matrix) if transposed else matrix, rhs)

    return compute


@kernel("MatrixSolveLs", "BatchMatrixSolveLs")
def matrix_solve_ls(op: KernelNode) -> Compute:
    """Least squares: with `fast` by the regularized normal equations, else of minimal norm."""
    fast = bool(op.attr("fast"))

    def compute(matrix: Array, rhs: Array, l2: Array) -> Array:
        check_matrix(matrix)
        check_rows_of(matrix, rhs)
        check_same_batch(matrix, rhs)
        require(l2.ndim == 0, f"l2_regularizer must be a scalar, got {shape_text(l2)}")
        require(l2 >= 0, "l2_regularizer must be >= 0.")
        rows, columns = matrix.shape[-2:]
        transposed = adjoint(matrix)
        if not fast:
            return np.matmul(np.linalg.pinv(matrix), rhs).astype(matrix.dtype)
        ridge = np.eye(min(rows, columns), dtype=matrix.dtype) * l2.astype(matrix.dtype)
        if rows >= columns:
            return _solve(np.matmul(transposed, matrix) + ridge, np.matmul(transposed, rhs))
        return np.matmul(transposed, _solve(np.matmul(matrix, transposed) + ridge, rhs))

    return compute


def check_tridiagonal(diagonals: Any, rhs: Any) -> None:
    """Raise unless these are matrices given by three diagonals, and right-hand sides for them."""
    check_matrix(diagonals)
    check_matrix(rhs, "Right-hand side")
    require(diagonals.shape[-2] == 3, f"Expected diagonals to have 3 rows, got shape {shape_text(diagonals)}")
    size = diagonals.shape[-1]
    require(rhs.shape[-2] == size, f"The numbers of rows differ: {shape_text(diagonals)} vs. {shape_text(rhs)}")
    require(rhs.shape[:-2] == diagonals.shape[:-2], "Batch shapes of diagonals and rhs must be equal")


@kernel("TridiagonalSolve")
def tridiagonal_solve(op: KernelNode) -> Compute:
    """Gaussian elimination on three diagonals (super, main, sub), all systems of the batch at once.

    Those with a pivot that is 0 have no solution: NaN (of complex numbers too, for which TensorFlow has zeros).
    """
    pivoting = bool(op.attr("partial_pivoting"))

    def compute(diagonals: Array, rhs: Array) -> Array:
        check_tridiagonal(diagonals, rhs)
        if rhs.size == 0:
            return rhs
        size = diagonals.shape[-1]
        d = diagonals.reshape(-1, 3, size)
        out = _eliminate(d[:, 0], d[:, 1], d[:, 2], rhs.reshape(-1, size, rhs.shape[-1]), pivoting)
        return out.reshape(rhs.shape)

    return compute


def _eliminate(above: Array, main: Array, below: Array, rhs: Array, pivoting: bool) -> Array:
    size = main.shape[1]
    upper = np.zeros((3, *main.shape), main.dtype)  # the diagonal and two above it, after elimination
    out = np.array(rhs)
    row = [main[:, 0], above[:, 0] if size > 1 else np.zeros_like(main[:, 0]), np.zeros_like(main[:, 0])]
    current, singular = out[:, 0], np.zeros(len(main), bool)
    for i in range(size - 1):
        after = [below[:, i + 1], main[:, i + 1], above[:, i + 1] if i + 2 < size else np.zeros_like(main[:, 0])]
        swap = np.abs(after[0]) > np.abs(row[0]) if pivoting else np.zeros(len(main), bool)
        keep = [np.where(swap, b, a) for a, b in zip(row, after, strict=True)]
        other = [np.where(swap, a, b) for a, b in zip(row, after, strict=True)]
        right = out[:, i + 1]
        kept, rest = np.where(swap[:, None], right, current), np.where(swap[:, None], current, right)
        singular |= keep[0] == 0
        keep[0] = np.where(keep[0] == 0, 1, keep[0])
        factor = other[0] / keep[0]
        upper[:, :, i] = keep
        out[:, i] = kept
        row = [other[1] - factor * keep[1], other[2] - factor * keep[2], np.zeros_like(factor)]
        current = rest - factor[:, None] * kept
    singular |= row[0] == 0
    row[0] = np.where(row[0] == 0, 1, row[0])
    upper[:, :, size - 1] = row
    out[:, size - 1] = current
    for i in range(size - 1, -1, -1):
        for step in (1, 2):
            if i + step < size:
                out[:, i] -= upper[step, :, i, None] * out[:, i + step]
        out[:, i] /= upper[0, :, i, None]
    out[singular] = np.nan
    return out


def check_diagonals(above: Any, main: Any, below: Any, rhs: Any) -> None:
    """Refuse diagonals that are not those of matrices which a product's other factor goes with.

    Raises:
        InvalidArgumentError: they are not.
    """
    check_matrix(rhs, "Right-hand side")
    size = rhs.shape[-2]
    for value, name in ((above, "superdiag"), (main, "maindiag"), (below, "subdiag")):
        require(
            value.ndim >= 2 and value.shape[-2:] == (1, size),
            f"{name} must have the shape [..., 1, {size}], got {shape_text(value)}",
        )
        require(value.shape[:-2] == rhs.shape[:-2], f"Batch shapes of {name} and rhs must be equal")


@kernel("TridiagonalMatMul")
def tridiagonal_mat_mul(op: KernelNode) -> Compute:
    """The product of a matrix given by three diagonals with another; what does not lie in it is not read."""

    def compute(above: Array, main: Array, below: Array, rhs: Array) -> Array:
        check_diagonals(above, main, below, rhs)
        out = main[..., 0, :, None] * rhs
        out[..., :-1, :] += above[..., 0, :-1, None] * rhs[..., 1:, :]
        out[..., 1:, :] += below[..., 0, 1:, None] * rhs[..., :-1, :]
        return out

    return compute
