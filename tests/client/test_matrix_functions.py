"""Functions of whole matrices: values beside NumPy's, gradients beside TensorFlow's, mistakes."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.client.client_programs import tf1_semantics
from toolkit import tensorflow as ours

A = np.array([[2.0, -1.0, 0.5], [0.25, 1.5, -0.5], [1.0, 0.5, 3.0]])
B = np.array([[1.0, 2.0], [0.0, -1.0], [3.0, 0.5]])
BATCH = np.stack([A, A.T + np.eye(3)])
THREE = np.array([[1.0, 2.0, -1.0, 0.0], [4.0, 5.0, 6.0, 7.0], [0.0, 1.0, -2.0, 0.5]])
DENSE = np.diag(THREE[1]) + np.diag(THREE[0, :-1], 1) + np.diag(THREE[2, 1:], -1)
R = np.arange(8.0).reshape(4, 2)


def _lu(tf: Any, use: str, *more: Any) -> Any:
    return getattr(tf.linalg, use)(*tf.linalg.lu(BATCH), *more)


#: what is computed, and what it has to be
VALUES: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "rank": (lambda tf: tf.linalg.matrix_rank([A, A * 0.0 + 1.0]), [3, 1]),
    "pinv": (lambda tf: tf.linalg.pinv(B), np.linalg.pinv(B)),
    "least squares, tall": (lambda tf: tf.matrix_solve_ls(B, A[:, :1]), np.linalg.lstsq(B, A[:, :1], rcond=None)[0]),
    "least squares, wide": (
        lambda tf: tf.matrix_solve_ls(B.T, A[:2, :1]), np.linalg.lstsq(B.T, A[:2, :1], rcond=None)[0],
    ),
    "least squares, slow": (
        lambda tf: tf.matrix_solve_ls(B, A[:, :1], fast=False), np.linalg.lstsq(B, A[:, :1], rcond=None)[0],
    ),
    "least squares, regularized": (
        lambda tf: tf.matrix_solve_ls(B, A[:, :1], 0.5), np.linalg.solve(B.T @ B + 0.5 * np.eye(2), B.T @ A[:, :1]),
    ),
    "lu, solve": (lambda tf: _lu(tf, "lu_solve", np.stack([B, B])), np.linalg.solve(BATCH, np.stack([B, B]))),
    "lu, inverse": (lambda tf: _lu(tf, "lu_matrix_inverse"), np.linalg.inv(BATCH)),
    "lu, product": (lambda tf: _lu(tf, "lu_reconstruct"), BATCH),
    "normalize": (lambda tf: tf.linalg.normalize(A, axis=1)[0], A / np.linalg.norm(A, axis=1, keepdims=True)),
    "three diagonals, product": (lambda tf: tf.linalg.tridiagonal_matmul(THREE, R), DENSE @ R),
    "three diagonals, matrix": (lambda tf: tf.linalg.tridiagonal_matmul(DENSE, R, "matrix"), DENSE @ R),
    "three diagonals, solved": (lambda tf: tf.linalg.tridiagonal_solve(THREE, R), np.linalg.solve(DENSE, R)),
    "three diagonals, transposed": (
        lambda tf: tf.linalg.tridiagonal_solve(THREE, R.T, transpose_rhs=True), np.linalg.solve(DENSE, R),
    ),
    "three diagonals, vector": (
        lambda tf: tf.linalg.tridiagonal_solve([THREE[0, :-1], THREE[1], THREE[2, 1:]], R[:, 1], "sequence"),
        np.linalg.solve(DENSE, R[:, 1]),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_values(name: str) -> None:
    make, wanted = VALUES[name]
    with ours.Graph().as_default(), ours.Session() as session:
        # float64, matrices of 4 x 4 at most whose condition is below 100
        np.testing.assert_allclose(session.run(make(ours)), wanted, rtol=1e-10, atol=1e-12)


def _exponentials(tf: Any, dtype: Any) -> list[Any]:
    """Matrices for each approximant and for squaring, and gradients."""
    with tf.Graph().as_default():
        x = tf.placeholder(dtype, [None, 3, 3], name="x")
        found = tf.linalg.expm(x)
        gradient = tf.gradients(tf.reduce_sum(tf.square(found)), x)[0]
        scales = np.array([0.001, 0.02, 0.1, 0.4, 1.0, 4.0])[:, None, None]
        with tf.Session() as session:
            values = session.run([found, gradient], {"x:0": A * scales})
            return [*values, session.run(found, {"x:0": np.full([1, 3, 3], np.inf)})]


@pytest.mark.tensorflow
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-12), ("float32", 1e-4)])
def test_exponentials(tf: ModuleType, dtype: str, tolerance: float) -> None:
    with tf1_semantics(tf):
        wanted = _exponentials(tf.compat.v1, dtype)
    for a, b in zip(wanted, _exponentials(ours, dtype), strict=True):
        # rounding of a dozen products grows with exp of the norm, 5e6 here, against the largest element
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def test_exponentials_of_diagonals() -> None:
    with ours.Graph().as_default(), ours.Session() as session:
        found = session.run(ours.linalg.expm(np.diag([1.0, -2.0, 0.0])))
    np.testing.assert_allclose(found, np.diag(np.exp([1.0, -2.0, 0.0])), rtol=1e-14)  # one product more or less


MISTAKES: dict[str, tuple[Callable[[Any], Any], type[Exception], str]] = {
    "expm": (lambda tf: tf.linalg.expm([[1, 2], [3, 4]]), ValueError, "not int32"),
    "rank, integers": (lambda tf: tf.linalg.matrix_rank([[1, 2]]), TypeError, "a: expected .* floating-point"),
    "pinv, vector": (lambda tf: tf.linalg.pinv([1.0]), ValueError, r"expected a matrix, got a tensor of shape \[1\]"),
    "complex": (lambda tf: tf.matrix_solve_ls(A.astype(complex), B, 0.5), NotImplementedError, "no l2_regularizer"),
    "lu, vector": (lambda tf: tf.linalg.lu_solve([1.0], 0, B), ValueError, r"expected matrices, got shape \[1\]"),
    "lu, perm": (lambda tf: tf.linalg.lu_reconstruct(A, 0), ValueError, "perm: expected rank 1"),
    "lu, square": (lambda tf: tf.linalg.lu_reconstruct(B, [0, 1, 2]), ValueError, "expected square matrices"),
    "lu, rhs": (lambda tf: tf.linalg.lu_solve(A, [0, 1, 2], B[:2]), ValueError, "rhs: expected 3 rows"),
    "lu, rhs vector": (lambda tf: tf.linalg.lu_solve(A, [0, 1, 2], B[0]), ValueError, "rhs: expected matrices"),
    "format": (lambda tf: tf.linalg.tridiagonal_matmul(THREE, R, "matric"), ValueError, "did you mean 'matrix'"),
    "not square": (lambda tf: tf.linalg.tridiagonal_solve(THREE, R, "matrix"), ValueError, "expected square"),
    "pivoting": (
        lambda tf: tf.linalg.tridiagonal_solve(THREE, R, partial_pivoting=False, perturb_singular=True),
        ValueError, "needs partial_pivoting",
    ),
    "two diagonals": (lambda tf: tf.linalg.tridiagonal_solve([R, R], R, "sequence"), ValueError, "sequence of three"),
    "short": (
        lambda tf: tf.linalg.tridiagonal_solve([THREE[0, :2], THREE[1], THREE[2]], R, "sequence"),
        ValueError, "the upper diagonal has length 2; expected 4, or one less",
    ),
    "batches": (lambda tf: tf.linalg.tridiagonal_solve(THREE[None], [R, R]), ValueError, "do not fit together"),
    "diagonals": (lambda tf: tf.linalg.tridiagonal_solve(R, R), ValueError, r"expected shape \[..., 3, n\]"),
    "rank of rhs": (lambda tf: tf.linalg.tridiagonal_solve(THREE, R[None]), ValueError, "rhs: expected rank 1 or 2"),
    "rows": (lambda tf: tf.linalg.tridiagonal_solve(THREE, R[:2]), ValueError, "rhs: expected 4 rows"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name: str) -> None:
    make, kind, message = MISTAKES[name]
    with ours.Graph().as_default(), pytest.raises(kind, match=message):
        make(ours)
