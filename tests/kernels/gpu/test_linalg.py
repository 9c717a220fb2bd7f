"""Small matrices on a GPU: batches of them, pivots that tie, and what is not invertible."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels.cuda.assembler import assembled
from tests.kernels.op_suite import Case, run_ours
from toolkit.errors import InvalidArgumentError
from toolkit.kernels.cuda.simt import ptx
from toolkit.kernels.gpu.linalg import factor_kernels

_RNG = np.random.default_rng(3)
#: a solution's relative error is the roundings of n multiplications and additions, times the condition (under 100 here)
_TOLERANCE = 40 * 2 * 100 * 2.0**-53


def _matrices(batch: int, n: int) -> np.ndarray:
    """Well-conditioned ones, whose rows have to be exchanged."""
    q, _ = np.linalg.qr(_RNG.normal(size=(batch, n, n)))
    return q * _RNG.uniform(1, 10, (batch, n, 1))


@pytest.mark.parametrize("n", [1, 5, 40])
@pytest.mark.parametrize("adjoint", [False, True])
def test_systems_of_several_matrices(n: int, adjoint: bool) -> None:
    a, b = _matrices(3, n), _RNG.normal(size=(3, n, 4))
    (x,) = run_ours(Case("MatrixSolve", [a, b], {"adjoint": adjoint}), "GPU")
    left = a.swapaxes(1, 2) if adjoint else a
    np.testing.assert_allclose(left @ x, b, atol=_TOLERANCE)
    (inverse,) = run_ours(Case("MatrixInverse", [a], {"adjoint": adjoint}), "GPU")
    np.testing.assert_allclose(left @ inverse, np.broadcast_to(np.eye(n), left.shape), atol=_TOLERANCE)


@pytest.mark.parametrize("n", [2, 7, 33])
def test_factors_are_of_the_rows_in_order(n: int) -> None:
    a = _matrices(2, n)
    factors, order = run_ours(Case("Lu", [a]), "GPU")
    lower, upper = np.tril(factors, -1) + np.eye(n), np.triu(factors)
    np.testing.assert_allclose(lower @ upper, np.take_along_axis(a, order[..., None], 1), atol=_TOLERANCE)
    wanted = np.linalg.det(a)
    np.testing.assert_allclose(run_ours(Case("MatrixDeterminant", [a]), "GPU")[0], wanted, rtol=_TOLERANCE)
    sign, log = run_ours(Case("LogMatrixDeterminant", [a]), "GPU")
    np.testing.assert_array_equal(sign, np.sign(wanted))
    np.testing.assert_allclose(log, np.log(np.abs(wanted)), atol=_TOLERANCE)


def _complex_matrices(batch: int, n: int) -> np.ndarray:
    """As `_matrices`, with imaginary parts."""
    q, _ = np.linalg.qr(_RNG.normal(size=(batch, n, n)) + 1j * _RNG.normal(size=(batch, n, n)))
    return q * _RNG.uniform(1, 10, (batch, n, 1))


@pytest.mark.parametrize("n", [1, 6, 33])
def test_complex_matrices(n: int) -> None:
    """Conjugated where they are turned; pivots are the largest numbers."""
    a, b = _complex_matrices(2, n), _RNG.normal(size=(2, n, 3)) + 1j
    for adjoint in (False, True):
        (x,) = run_ours(Case("MatrixSolve", [a, b], {"adjoint": adjoint}), "GPU")
        left = a.conj().swapaxes(1, 2) if adjoint else a
        np.testing.assert_allclose(left @ x, b, atol=_TOLERANCE)
        for lower in (False, True):
            triangle = (np.tril if lower else np.triu)(a / 20) + np.eye(n)  # what is beside the diagonal is below 1
            attrs = {"adjoint": adjoint, "lower": lower}
            (x,) = run_ours(Case("MatrixTriangularSolve", [triangle, b], attrs), "GPU")
            left = triangle.conj().swapaxes(1, 2) if adjoint else triangle
            np.testing.assert_allclose(left @ x, b, atol=_TOLERANCE)
    factors, order = run_ours(Case("Lu", [a]), "GPU")
    lower, upper = np.tril(factors, -1) + np.eye(n), np.triu(factors)
    np.testing.assert_allclose(lower @ upper, np.take_along_axis(a, order[..., None], 1), atol=_TOLERANCE)
    sign, log = run_ours(Case("LogMatrixDeterminant", [a]), "GPU")
    (determinant,) = run_ours(Case("MatrixDeterminant", [a]), "GPU")
    np.testing.assert_allclose(determinant, np.linalg.det(a), rtol=_TOLERANCE)
    np.testing.assert_allclose(sign * np.exp(log), determinant, rtol=_TOLERANCE)
    square = a @ a.conj().swapaxes(1, 2)
    (factor,) = run_ours(Case("Cholesky", [square]), "GPU")
    # numbers of up to 100
    np.testing.assert_allclose(factor @ factor.conj().swapaxes(1, 2), square, atol=100 * _TOLERANCE)
    assert not np.triu(factor, 1).any()


@pytest.mark.parametrize("capability", [(8, 0), (9, 0), (10, 0)], ids=str)
def test_kernels_of_complex_matrices_are_assembled(capability: tuple[int, int]) -> None:
    pytest.importorskip("llvmlite")
    for kernel in (
        factor_kernels.lu("complex64"), factor_kernels.cholesky("complex64"), factor_kernels.lower_or_nan("complex64"),
        factor_kernels.substitute("complex64", True, False), factor_kernels.conjugate("complex64"),
        factor_kernels.determinants("complex64", True), factor_kernels.determinants("complex64", False),
    ):  # fmt: skip
        assert assembled(ptx.write(kernel, capability), capability).spills == 0, kernel.name


def test_a_matrix_that_is_not_positive_definite_is_nan() -> None:
    a = np.stack([np.eye(3) * 4, -np.eye(3), np.diag([1.0, 0, 1])])
    (y,) = run_ours(Case("Cholesky", [a]), "GPU")
    np.testing.assert_array_equal(y, run_ours(Case("Cholesky", [a]))[0])
    np.testing.assert_array_equal(y[0], np.eye(3) * 2)


def test_what_is_not_invertible_is_refused() -> None:
    a = np.stack([np.eye(3), np.ones((3, 3))])
    with pytest.raises(InvalidArgumentError, match="not invertible"):
        run_ours(Case("MatrixInverse", [a]), "GPU")


def test_large_matrices_are_the_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(factor_kernels, "MOST_ROWS", 3)
    a = _matrices(2, 4)
    np.testing.assert_array_equal(*(run_ours(Case("MatrixInverse", [a]), d)[0] for d in ("GPU", "CPU")))
