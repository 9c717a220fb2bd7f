"""Decompositions, determinants and inverses of the matrices in the last two axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolkit.errors import InvalidArgumentError
from toolkit.kernels.cpu.common import np, require, shape_text, wide
from toolkit.kernels.registry import Compute, KernelNode, kernel, simple
from toolkit.kernels.types import Array


def check_matrix(x: Any, what: str = "Input") -> None:
    require(x.ndim >= 2, f"{what} must be a matrix or a batch of them, got shape {shape_text(x)}")


def check_square(x: Any, what: str = "Input matrix") -> None:
    check_matrix(x, what)
    require(x.shape[-1] == x.shape[-2], f"{what} must be square, got {shape_text(x)}")


def adjoint(x: Array) -> Array:
    x = np.swapaxes(x, -1, -2)
    return np.conj(x) if x.dtype.kind == "c" else x


def guarded(function: Callable[..., Array], message: str) -> Callable[..., Array]:
    """A numpy.linalg function whose failure is the op's error."""

    def compute(*args: Array) -> Array:
        try:
            return function(*args)
        except np.linalg.LinAlgError:
            raise InvalidArgumentError(message) from None

    return compute


@simple("Cholesky", "BatchCholesky")
def cholesky(x: Array) -> Array:
    """The lower factor; only the lower triangle is read. That of a matrix which is not positive definite is NaN."""
    check_square(x)
    if x.size == 0:
        return x
    try:
        return np.linalg.cholesky(wide(x)).astype(x.dtype)
    except np.linalg.LinAlgError:
        size = x.shape[-1]
        each = [_cholesky_or_nan(matrix) for matrix in wide(x).reshape(-1, size, size)]
        return np.stack(each).reshape(x.shape).astype(x.dtype)


def _cholesky_or_nan(x: Array) -> Array:
    try:
        return np.linalg.cholesky(x)
    except np.linalg.LinAlgError:
        return np.tril(np.full_like(x, np.nan))


@simple("CholeskyGrad", "BatchCholeskyGrad")
def cholesky_grad(factor: Array, grad: Array) -> Array:
    """Gradient of x with respect to its lower factor, as a Hermitian matrix (Murray, arXiv:1602.07527)."""
    check_square(factor, "Input matrix l")
    check_square(grad, "Input matrix grad")
    require(factor.shape == grad.shape, "Inputs L and grad must be equal in size.")
    lower = np.tril(wide(factor))
    middle = np.tril(np.matmul(adjoint(lower), np.tril(wide(grad))))
    diagonal = np.einsum("...ii->...i", middle)
    diagonal *= 0.5
    inverse = _inverse_of_factor(lower)
    whole = np.matmul(np.matmul(adjoint(inverse), middle), inverse)
    return (0.5 * (whole + adjoint(whole))).astype(factor.dtype)


def _inverse_of_factor(lower: Array) -> Array:
    """The inverses of lower triangular matrices; NaN where there is none."""
    regular = (np.einsum("...ii->...i", lower) != 0).all(axis=-1)
    out = np.full_like(lower, np.nan)
    out[regular] = np.linalg.inv(lower[regular])
    return out


@kernel("Qr")
def qr(op: KernelNode) -> Compute:
    mode = "complete" if op.attr("full_matrices") else "reduced"

    def compute(x: Array) -> tuple[Array, Array]:
        check_matrix(x)
        q, r = np.linalg.qr(wide(x), mode=mode)
        return q.astype(x.dtype), r.astype(x.dtype)

    return compute


@kernel("Svd", "BatchSvd")
def svd(op: KernelNode) -> Compute:
    """x = u diag(s) v^H, the singular values falling."""
    with_vectors, full = bool(op.attr("compute_uv")), bool(op.attr("full_matrices"))

    def decompose(x: Array) -> Array:
        return np.linalg.svd(x, full_matrices=full, compute_uv=with_vectors)

    solve = guarded(decompose, "SVD did not converge")

    def compute(x: Array) -> tuple[Array, Array, Array]:
        check_matrix(x)
        finite = np.isfinite(x).all(axis=(-2, -1), keepdims=True)  # what is made of others is NaN
        found = solve(np.where(finite, wide(x), 0))
        if not with_vectors:
            nothing = np.zeros((), x.dtype)
            return np.where(finite[..., 0], found, np.nan).astype(x.dtype), nothing, nothing
        u, v = (np.where(finite, part, np.nan).astype(x.dtype) for part in (found[0], adjoint(found[2])))
        return np.where(finite[..., 0], found[1], np.nan).astype(x.dtype), u, v

    return compute


def _check_hermitian(x: Array) -> None:
    """Refuse what has no real eigenvalues: of LAPACK's iterations some would end without a word."""
    check_square(x)
    is_finite = np.isfinite(np.tril(x)).all()
    require(is_finite, "Self-adjoint eigen decomposition was not successful. The input might not be valid.")


@kernel("SelfAdjointEigV2", "BatchSelfAdjointEigV2")
def self_adjoint_eig_v2(op: KernelNode) -> Compute:
    """Eigenvalues, rising, and eigenvectors of Hermitian matrices, of which the lower triangle is read."""
    with_vectors = bool(op.attr("compute_v"))

    def compute(x: Array) -> tuple[Array, Array]:
        _check_hermitian(x)
        if not with_vectors:
            return np.linalg.eigvalsh(wide(x)).astype(x.dtype), np.zeros((), x.dtype)
        values, vectors = np.linalg.eigh(wide(x))
        return values.astype(x.dtype), vectors.astype(x.dtype)

    return compute


@simple("SelfAdjointEig", "BatchSelfAdjointEig")
def self_adjoint_eig(x: Array) -> Array:
    """V1: the eigenvalues as a first row above the eigenvectors."""
    _check_hermitian(x)
    values, vectors = np.linalg.eigh(wide(x))
    return np.concatenate([values[..., None, :], vectors], axis=-2).astype(x.dtype)


@kernel("Eig")
def eig(op: KernelNode) -> Compute:
    with_vectors = bool(op.attr("compute_v"))
    dtype = op.output_types[0].numpy

    def compute(x: Array) -> tuple[Array, Array]:
        check_square(x)
        require(
            np.isfinite(x).all(),
            "Eigen decomposition was not successful: the input holds values that are not finite",
        )
        if not with_vectors:
            return np.linalg.eigvals(x).astype(dtype), np.zeros((), dtype)
        values, vectors = np.linalg.eig(x)
        return values.astype(dtype), vectors.astype(dtype)

    return compute


def lu_decompose(x: Array) -> tuple[Array, Array, Array]:
    """(packed factors, row order, sign) of a batch [B, n, n], by partial pivoting, one column at a time."""
    out = np.array(x)
    batch, size = out.shape[:2]
    order = np.tile(np.arange(size), (batch, 1))
    sign = np.ones(batch, np.int64)
    each = np.arange(batch)
    for k in range(size):
        pivot = k + np.argmax(np.abs(out[:, k:, k]), axis=1)
        rows, chosen = out[each, k].copy(), out[each, pivot].copy()
        out[each, k], out[each, pivot] = chosen, rows
        first, second = order[each, k].copy(), order[each, pivot].copy()
        order[each, k], order[each, pivot] = second, first
        sign = np.where(pivot == k, sign, -sign)
        if (out[:, k, k] == 0).any():
            raise InvalidArgumentError("Input is not invertible.")
        out[:, k + 1 :, k] /= out[:, k, k][:, None]
        out[:, k + 1 :, k + 1 :] -= out[:, k + 1 :, k, None] * out[:, None, k, k + 1 :]
    return out, order, sign


@kernel("Lu")
def lu(op: KernelNode) -> Compute:
    """L (unit diagonal, below) and U in one matrix, and the order of rows: x[p] = L U."""
    index_type = op.output_types[1].numpy

    def compute(x: Array) -> tuple[Array, Array]:
        check_square(x)
        size = x.shape[-1]
        factors, order, _ = lu_decompose(wide(x).reshape(-1, size, size))
        return factors.reshape(x.shape).astype(x.dtype), order.reshape(x.shape[:-1]).astype(index_type)

    return compute


@simple("MatrixDeterminant", "BatchMatrixDeterminant")
def matrix_determinant(x: Array) -> Array:
    check_square(x)
    return np.asarray(np.linalg.det(wide(x))).astype(x.dtype)


@simple("LogMatrixDeterminant")
def log_matrix_determinant(x: Array) -> tuple[Array, Array]:
    """(sign, log |det|); both of the matrix's type."""
    check_square(x)
    sign, logarithm = np.linalg.slogdet(wide(x))
    return np.asarray(sign).astype(x.dtype), np.asarray(logarithm).astype(x.dtype)


_inverse = guarded(np.linalg.inv, "Input is not invertible.")


@kernel("MatrixInverse", "BatchMatrixInverse")
def matrix_inverse(op: KernelNode) -> Compute:
    transposed = bool(op.attr("adjoint"))

    def compute(x: Array) -> Array:
        check_square(x)
        values = wide(x)
        return _inverse(adjoint(values) if transposed else values).astype(x.dtype)

    return compute
