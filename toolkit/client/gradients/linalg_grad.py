"""Gradients of decompositions and solvers.

The formulas are those of Giles, "An extended collection of matrix derivative results" (2008), of Walter and Lehmann
(arXiv 1009.6112) for QR, and of Boeddeker et al. (arXiv 1701.00392) for complex eigenvalues; 1/(x - y) of
values that may be equal is taken as (x - y)/((x - y)^2 + 1e-20), as TensorFlow does, so that ties give 0.
"""

from __future__ import annotations

import numpy as np

from toolkit.client import ops
from toolkit.client.arrays import array_ops
from toolkit.client.construction.convert import constant
from toolkit.client.construction.operation import Operation
from toolkit.client.construction.tensor import Tensor
from toolkit.client.gradients.matrix_grad import unbatched
from toolkit.client.gradients.registry import Gradient, gradient
from toolkit.client.math import math_ops
from toolkit.errors import GraphError


def _like(value: float, x: Tensor) -> Tensor:
    return constant(np.array(value, x.dtype.base.numpy))


def product(a: Tensor, b: Tensor, adj_a: bool = False, adj_b: bool = False) -> Tensor:
    return math_ops.matmul(a, b, adjoint_a=adj_a, adjoint_b=adj_b)


def adjoint(a: Tensor) -> Tensor:
    """The conjugate transpose of the last two axes."""
    if a.static_shape.rank is not None:
        rank = a.static_shape.rank
        order: Tensor = constant([*range(rank - 2), rank - 1, rank - 2], "int32")
    else:
        count = array_ops.rank(a)
        order = array_ops.concat([math_ops.range(count - 2), array_ops.stack([count - 1, count - 2])], 0)
    return ops.function("ConjugateTranspose" if a.dtype.base.is_complex else "Transpose")(a, order)


def _half_diagonal(a: Tensor) -> Tensor:
    """The lower triangle with half of the diagonal."""
    lower = ops.matrix_band_part(a, -1, 0)
    return ops.matrix_set_diag(lower, _like(0.5, a) * ops.matrix_diag_part(a))


def _reciprocal(x: Tensor) -> Tensor:
    return x * ops.reciprocal(ops.square(x) + _like(1e-20, x))


def _differences(values: Tensor) -> Tensor:
    """1 / (v_j - v_i) at [i, j], with 0 on the diagonal."""
    gaps = _reciprocal(array_ops.expand_dims(values, -2) - array_ops.expand_dims(values, -1))
    return ops.matrix_set_diag(gaps, array_ops.zeros_like(values))


# -- determinants -----------------------------------------------------------------------------------------


def _as_matrices(values: Tensor) -> Tensor:
    return array_ops.expand_dims(array_ops.expand_dims(values, -1), -1)


@gradient("MatrixDeterminant")
def determinant(op: Operation, grad: Tensor) -> Gradient:
    """det(A) inv(A)^T; of complex numbers conjugated, where TensorFlow forgets the determinant."""
    inverse = ops.matrix_inverse(op.inputs[0], adjoint=True)
    return _as_matrices(grad * _conj(op.outputs[0])) * inverse


@gradient("LogMatrixDeterminant")
def log_determinant(op: Operation, _: Gradient, grad: Tensor) -> Gradient:
    """inv(A)^T; the sign has no gradient."""
    return _as_matrices(grad) * ops.matrix_inverse(op.inputs[0], adjoint=True)


# -- solvers ----------------------------------------------------------------------------------------------


@gradient("MatrixSolve")
def solve(op: Operation, grad: Tensor) -> list[Gradient]:
    a, x = op.inputs[0], op.outputs[0]
    turned = op.get_attr("adjoint")
    by_b = ops.matrix_solve(a, grad, adjoint=not turned)
    by_a = -product(x, by_b, adj_b=True) if turned else -product(by_b, x, adj_b=True)
    return [by_a, by_b]


@gradient("MatrixTriangularSolve")
def triangular_solve(op: Operation, grad: Tensor) -> list[Gradient]:
    a, x = op.inputs[0], op.outputs[0]
    turned, lower = op.get_attr("adjoint"), op.get_attr("lower")
    by_b = ops.matrix_triangular_solve(a, grad, lower=lower, adjoint=not turned)
    by_a = -product(x, by_b, adj_b=True) if turned else -product(by_b, x, adj_b=True)
    by_a = ops.matrix_band_part(by_a, -1, 0) if lower else ops.matrix_band_part(by_a, 0, -1)
    return unbatched(a, op.inputs[1], by_a, by_b)


@gradient("MatrixSolveLs")
def solve_least_squares(op: Operation, grad: Tensor) -> list[Gradient]:
    """Through the normal equations, which the op itself solves when it is asked to be fast."""
    a, b, l2 = op.inputs
    if not op.get_attr("fast"):
        raise GraphError("the gradient of MatrixSolveLs is there only with fast=True", node=op.name)
    rows, columns = a.static_shape[-2], a.static_shape[-1]
    if rows is None or columns is None:
        raise GraphError("the gradient of MatrixSolveLs needs matrices of known size", node=op.name)
    x = op.outputs[0]
    strength = math_ops.cast(l2, a.dtype.base)
    if rows >= columns:
        return _overdetermined(a, b, x, strength, grad)
    return _underdetermined(a, b, strength, grad)


def _normal(a: Tensor, strength: Tensor, left: bool) -> Tensor:
    """The Cholesky factor of A^H A + l2 I (or of A A^H + l2 I)."""
    square = product(a, a, adj_a=True) if left else product(a, a, adj_b=True)
    diagonal = ops.matrix_diag_part(square)
    return ops.cholesky(ops.matrix_set_diag(square, diagonal + strength))


def _cholesky_solve(factor: Tensor, b: Tensor) -> Tensor:
    return ops.matrix_triangular_solve(factor, ops.matrix_triangular_solve(factor, b), adjoint=True)


def _overdetermined(a: Tensor, b: Tensor, x: Tensor, strength: Tensor, grad: Tensor) -> list[Gradient]:
    """X = inv(A^H A + l2 I) A^H B."""
    z = _cholesky_solve(_normal(a, strength, left=True), grad)
    xz = product(x, z, adj_b=True)
    xz = xz + adjoint(xz)
    return [product(b, z, adj_b=True) - product(a, xz), product(a, z), None]


def _underdetermined(a: Tensor, b: Tensor, strength: Tensor, grad: Tensor) -> list[Gradient]:
    """X = A^H inv(A A^H + l2 I) B."""
    factor = _normal(a, strength, left=False)
    by_b = _cholesky_solve(factor, product(a, grad))
    solved = _cholesky_solve(factor, b)
    first = -product(by_b, product(a, solved, adj_a=True), adj_b=True)
    second = product(solved, grad - product(a, by_b, adj_a=True), adj_b=True)
    return [first + second, by_b, None]


@gradient("BandedTriangularSolve")
def banded_solve(op: Operation, grad: Tensor) -> list[Gradient]:
    """As a triangular solve, whose gradient is wanted on the bands only."""
    bands, b = op.inputs
    x = op.outputs[0]
    turned, lower = op.get_attr("adjoint"), op.get_attr("lower")
    by_b = ops.banded_triangular_solve(bands, grad, lower=lower, adjoint=not turned)
    full = -product(x, by_b, adj_b=True) if turned else -product(by_b, x, adj_b=True)
    width = array_ops.shape(bands)[-2]
    zero = constant(0, "int32")
    reach = array_ops.stack([1 - width, zero] if lower else [zero, width - 1])
    by_bands = ops.matrix_diag_part_v3(full, reach, _like(0, full), align="LEFT_RIGHT")
    return unbatched(bands, b, by_bands, by_b)


@gradient("TridiagonalMatMul")
def tridiagonal_product(op: Operation, grad: Tensor) -> list[Gradient]:
    """Row i of the result is super_i x_{i+1} + main_i x_i + sub_i x_{i-1}."""
    upper, middle, lower, x = (_conj(t) for t in op.inputs)
    up = _transposed(upper) * grad
    mid = _transposed(middle) * grad
    low = _transposed(lower) * grad
    by_x = _shifted(up, -1) + mid + _shifted(low, 1)
    by_upper = math_ops.reduce_sum(_shifted(x, 1) * grad, -1)
    by_middle = math_ops.reduce_sum(x * grad, -1)
    by_lower = math_ops.reduce_sum(_shifted(x, -1) * grad, -1)
    rows = [array_ops.expand_dims(g, -2) for g in (by_upper, by_middle, by_lower)]
    return [*rows, by_x]


def _conj(x: Tensor) -> Tensor:
    return ops.conj(x) if x.dtype.base.is_complex else x


def _transposed(row: Tensor) -> Tensor:
    """[..., 1, M] as [..., M, 1]."""
    return array_ops.expand_dims(array_ops.squeeze(row, [-2]), -1)


def _shifted(x: Tensor, by: int) -> Tensor:
    """Row i of the result is row i + by of x; zeros beyond the ends."""
    zeros = array_ops.zeros_like(x[..., :1, :])
    if by > 0:
        return array_ops.concat([x[..., 1:, :], zeros], -2)
    return array_ops.concat([zeros, x[..., :-1, :]], -2)


@gradient("TridiagonalSolve")
def tridiagonal_solve(op: Operation, grad: Tensor) -> list[Gradient]:
    """By the right-hand side: the solution of the adjoint system, whose diagonals are shifted and swapped."""
    diagonals, _ = op.inputs
    x = op.outputs[0]
    upper, middle, lower = (diagonals[..., i, :] for i in range(3))
    zeros = array_ops.zeros_like(upper[..., :1])
    new_upper = array_ops.concat([lower[..., 1:], zeros], -1)
    new_lower = array_ops.concat([zeros, upper[..., :-1]], -1)
    adjoint_diagonals = _conj(array_ops.stack([new_upper, middle, new_lower], -2))
    by_b = ops.tridiagonal_solve(
        adjoint_diagonals, grad, partial_pivoting=op.get_attr("partial_pivoting"),
        perturb_singular=op.get_attr("perturb_singular"),
    )  # fmt: skip
    conj = _conj(x)
    terms = [_shifted(conj, 1), conj, _shifted(conj, -1)]
    by_diagonals = array_ops.stack([-math_ops.reduce_sum(by_b * term, -1) for term in terms], -2)
    return [by_diagonals, by_b]


@gradient("MatrixSquareRoot")
def square_root(op: Operation, grad: Tensor) -> Gradient:
    """Solves the Sylvester equation S^H X + X S^H = grad, written as one linear system with Kronecker products."""
    root = op.outputs[0]
    sizes = array_ops.shape(root)
    n = sizes[-1]
    batch = sizes[:-2]
    identity = ops.matrix_diag(array_ops.ones_like(ops.matrix_diag_part(root)))
    turned = adjoint(root)
    # row-major vec: vec(A X) = kron(A, I) vec(X), vec(X B) = kron(I, B^T) vec(X)
    transposed = _conj(root)  # B^T of B = S^H
    system = _kronecker(turned, identity, batch, n) + _kronecker(identity, transposed, batch, n)
    column = array_ops.reshape(grad, array_ops.concat([batch, array_ops.stack([n * n, constant(1)])], 0))
    return array_ops.reshape(ops.matrix_solve(system, column), sizes)


def _kronecker(a: Tensor, b: Tensor, batch: Tensor, n: Tensor) -> Tensor:
    left = array_ops.expand_dims(array_ops.expand_dims(a, -1), -3)  # [..., i, 1, j, 1]
    right = array_ops.expand_dims(array_ops.expand_dims(b, -2), -4)  # [..., 1, k, 1, l]
    size = array_ops.stack([n * n, n * n])
    return array_ops.reshape(left * right, array_ops.concat([batch, size], 0))


# -- decompositions ---------------------------------------------------------------------------------------


@gradient("Cholesky")
def cholesky(op: Operation, grad: Tensor) -> Gradient:
    """inv(L)^H Phi(L^H dL) inv(L), made symmetric."""
    factor = op.outputs[0]
    ones = array_ops.ones_like(ops.matrix_diag_part(factor))
    inverse = ops.matrix_triangular_solve(factor, ops.matrix_diag(ones))
    middle = _half_diagonal(product(factor, grad, adj_a=True))
    found = product(product(inverse, middle, adj_a=True), inverse)
    return (found + adjoint(found)) * _like(0.5, found)


@gradient("Qr")
def qr(op: Operation, by_q: Tensor, by_r: Tensor) -> Gradient:
    """Of thin decompositions; a wide matrix [X Y] is one of X with Y = Q V on top."""
    a = op.inputs[0]
    q, r = op.outputs
    rows, columns = a.static_shape[-2], a.static_shape[-1]
    if rows is None or columns is None:
        raise GraphError("the gradient of Qr needs matrices of known size", node=op.name)
    if op.get_attr("full_matrices") and rows > columns:
        raise GraphError("Qr with full_matrices has no gradient for tall matrices: Q is not unique", node=op.name)
    if rows >= columns:
        return _thin_qr(q, r, by_q, by_r)
    x_part, y_part = r[..., :rows], a[..., rows:]
    by_u, by_v = by_r[..., :rows], by_r[..., rows:]
    by_x = _thin_qr(q, x_part, by_q + product(y_part, by_v, adj_b=True), by_u)
    return array_ops.concat([by_x, product(q, by_v)], -1)


def _thin_qr(q: Tensor, r: Tensor, by_q: Tensor, by_r: Tensor) -> Tensor:
    def over_r(x: Tensor) -> Tensor:
        """x inv(R)^H."""
        return adjoint(ops.matrix_triangular_solve(r, adjoint(x), lower=False))

    qdq = product(q, by_q, adj_a=True)
    rdr = product(r, by_r, adj_b=True)
    skew = (qdq - adjoint(qdq)) + (rdr - adjoint(rdr))
    found = product(q, by_r + over_r(ops.matrix_band_part(skew, -1, 0))) + over_r(by_q - product(q, qdq))
    if q.dtype.base.is_complex:
        diagonal = ops.matrix_diag_part(rdr - adjoint(qdq))
        part = ops.complex(array_ops.zeros_like(_imag(diagonal)), _imag(diagonal), Tout=diagonal.dtype.base)
        found = found + product(q, over_r(adjoint(ops.matrix_diag(part))))
    return found


def _imag(x: Tensor) -> Tensor:
    return ops.imag(x, Tout="float64" if x.dtype.base.name == "complex128" else "float32")


def _real(x: Tensor) -> Tensor:
    return ops.real(x, Tout="float64" if x.dtype.base.name == "complex128" else "float32")


@gradient("SelfAdjointEigV2")
def self_adjoint_eig(op: Operation, by_values: Tensor, by_vectors: Tensor) -> Gradient:
    """V (diag(de) + F o (V^H dV)) V^H, on the lower triangle, which is all that the op reads."""
    a = op.inputs[0]
    if op.get_attr("compute_v"):
        values, vectors = op.outputs
        gaps = math_ops.cast(_differences(_plain(values)), vectors.dtype.base)
        middle = ops.matrix_diag(by_values) + gaps * product(vectors, by_vectors, adj_a=True)
    else:
        vectors = ops.self_adjoint_eig_v2(a)[1]
        middle = ops.matrix_diag(by_values)
    found = product(vectors, product(middle, vectors, adj_b=True))
    return _half_diagonal(found + adjoint(found))


def _plain(values: Tensor) -> Tensor:
    return _real(values) if values.dtype.base.is_complex else values


@gradient("Eig")
def eig(op: Operation, by_values: Tensor, by_vectors: Tensor) -> Gradient:
    """inv(V^H) (diag(de) + F* o (V^H dV - V^H V Re(diag(V^H dV)))) V^H, the vectors being of length 1."""
    a = op.inputs[0]
    if op.get_attr("compute_v"):
        values, vectors = op.outputs
        gaps = ops.conj(_differences(values))
        moved = product(vectors, by_vectors, adj_a=True)
        own = ops.matrix_diag(math_ops.cast(_real(ops.matrix_diag_part(moved)), moved.dtype.base))
        norms = product(product(vectors, vectors, adj_a=True), own)
        middle = ops.matrix_diag(by_values) + gaps * (moved - norms)
    else:
        _, vectors = ops.eig(a, Tout=op.get_attr("Tout"))
        middle = ops.matrix_diag(by_values)
    found = ops.matrix_solve(adjoint(vectors), product(middle, vectors, adj_b=True))
    return found if a.dtype.base.is_complex else _real(found)


@gradient("Svd")
def svd(op: Operation, by_s: Tensor, by_u: Tensor, by_v: Tensor) -> Gradient:
    """U (diag(ds) + (F o U^H dU + ...) S + S (F o V^H dV + ...)) V^H, and what lies outside of U's or V's columns."""
    a, s = op.inputs[0], op.outputs[0]
    wide = a.dtype.base
    if not op.get_attr("compute_uv"):
        _, u, v = ops.svd(a, compute_uv=True, full_matrices=False)
        return product(u, product(ops.matrix_diag(math_ops.cast(by_s, wide)), v, adj_b=True))
    rows, columns = a.static_shape[-2], a.static_shape[-1]
    if rows is None or columns is None:
        raise GraphError("the gradient of Svd needs matrices of known size", node=op.name)
    if op.get_attr("full_matrices") and abs(rows - columns) > 1:
        raise GraphError("Svd with full_matrices has a gradient only for (nearly) square matrices", node=op.name)
    if wide.is_complex:
        by_s = math_ops.cast(_real(by_s), wide)  # the singular values are real, whatever their type is
    k = min(rows, columns)
    u, v, by_u, by_v = (t[..., :k] for t in (op.outputs[1], op.outputs[2], by_u, by_v))
    sigma = ops.matrix_diag(math_ops.cast(s, wide))
    gaps = math_ops.cast(_squared_differences(s), wide)
    uu, vv = product(u, by_u, adj_a=True), product(v, by_v, adj_a=True)
    fu, fv = gaps * uu, gaps * vv
    middle = (
        ops.matrix_diag(math_ops.cast(by_s, wide)) + product(fu + adjoint(fu), sigma) + product(sigma, fv + adjoint(fv))
    )
    inverse = ops.matrix_diag(math_ops.cast(_reciprocal(s), wide))
    if wide.is_complex:
        # the phase of a pair of vectors is free; which of the two is taken to turn, as TensorFlow does
        turn = ops.matrix_diag(ops.conj(ops.matrix_diag_part(uu)) if rows > columns else ops.matrix_diag_part(vv))
        middle = middle + _like(0.5, middle) * product(inverse, ops.conj(turn) - turn)
    found = product(u, product(middle, v, adj_b=True))
    if rows > columns:
        found = found + product(product(by_u - product(u, uu), inverse), v, adj_b=True)
    elif columns > rows:
        found = found + product(product(u, inverse), by_v - product(v, vv), adj_b=True)
    return found


def _squared_differences(s: Tensor) -> Tensor:
    return _differences(ops.square(s))
