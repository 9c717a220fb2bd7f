"""Linear algebra and Fourier transforms against TensorFlow."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests import perturbation, tolerance
from tests.kernels.op_suite import COMPLEX, Case, check, check_against, run_ours, sample, suite

pytestmark = pytest.mark.tensorflow

BAD = "INVALID_ARGUMENT"
TYPES = ("float32", "float64", *COMPLEX)
F = np.float32


def regular(dt: str, *shape: int, seed: int = 0) -> Any:
    """Well-conditioned square matrices."""
    x = sample(dt, shape, -1, 1, seed)
    return (x + 3 * np.eye(shape[-1])).astype(x.dtype)


def positive(dt: str, *shape: int) -> Any:
    x = sample(dt, shape, -1, 1)
    return (x @ np.conj(np.swapaxes(x, -1, -2)) + np.eye(shape[-1])).astype(x.dtype)


def same_sign(*which: int) -> Any:
    """Columns of these outputs are determined up to a factor of absolute value 1; make their largest real."""

    def normalize(outputs: list[Any]) -> list[Any]:
        result = list(outputs)
        for i in which:
            x = outputs[i]
            if x.ndim < 2:
                continue
            top = np.take_along_axis(x, np.argmax(np.abs(x), axis=-2)[..., None, :], axis=-2)
            result[i] = x * np.conj(top) / np.abs(top)
        return [np.asarray(r).astype(o.dtype) for r, o in zip(result, outputs, strict=True)]

    return normalize


def qr_sign(outputs: list[Any]) -> list[Any]:
    """Rows of r with a positive diagonal, columns of q to match; the columns that complete q are dropped."""
    q, r = outputs
    n = min(r.shape[-2:])
    d = np.einsum("...ii->...i", r[..., :n, :n])
    phase = d / np.abs(d)
    dtype = q.dtype
    return [
        (q[..., :n] * phase[..., None, :]).astype(dtype),
        (r[..., :n, :] * np.conj(phase)[..., :, None]).astype(dtype),
    ]


def by_eigenvalue(outputs: list[Any]) -> list[Any]:
    """Eigenpairs in one order, eigenvectors with one phase."""
    values, vectors = outputs
    order = np.lexsort((np.round(values.imag, 3), np.round(values.real, 3)), axis=-1)
    values = np.take_along_axis(values, order, axis=-1)
    if vectors.ndim < 2:
        return [values, vectors]
    return same_sign(1)([values, np.take_along_axis(vectors, order[..., None, :], axis=-1)])


def without_first_row_signs(outputs: list[Any]) -> list[Any]:
    x = outputs[0]
    values, vectors = x[..., :1, :], x[..., 1:, :]
    return [values, *same_sign(0)([vectors])]


DECOMPOSE = [
    *(Case("Cholesky", [positive(dt, *s)]) for dt in TYPES for s in ((3, 3), (2, 4, 4), (1, 1))),
    *(Case("Cholesky", [np.zeros(s, F)]) for s in ((0, 0), (2, 0, 0))),
    # The matrix is not positive definite; TensorFlow leaves part of its NaN result unset.
    Case("Cholesky", [F([[1, 2], [2, 1]])], skip_outputs=(0,)),
    Case("Cholesky", [sample("float32", (2, 3))], error=BAD),
    *(
        Case("CholeskyGrad", [np.linalg.cholesky(positive(dt, 2, 4, 4)), np.tril(sample(dt, (2, 4, 4)))])
        for dt in ("float32", "float64")
    ),
    # A factor without an inverse: which of the results are NaN and which infinite is the library's.
    Case("CholeskyGrad", [F([[[1, 0], [1, 0]], [[1, 0], [1, 2]]]), F([[[1, 0], [1, 1]]] * 2)], skip_outputs=(0,)),
    *(
        Case("Qr", [sample(dt, s, -1, 1)], {"full_matrices": full}, normalize=qr_sign)
        for dt in TYPES
        for s in ((4, 3), (2, 3, 3), (3, 5))
        for full in (False, True)
    ),
    *(
        Case(
            "Svd",
            [sample(dt, s, -1, 1)],
            {"full_matrices": False},
            normalize=same_sign(1, 2),
            skip_outputs=(1, 2),
        )
        for dt in TYPES
        for s in ((4, 3), (2, 3, 3), (3, 5))
    ),
    *(Case("Svd", [sample(dt, (4, 3), -1, 1)], {"full_matrices": True}, skip_outputs=(1, 2)) for dt in TYPES),
    *(Case("Svd", [sample(dt, (4, 3), -1, 1)], {"compute_uv": False}, skip_outputs=(1, 2)) for dt in TYPES),
    *(
        Case(
            "SelfAdjointEigV2",
            [positive(dt, 2, 4, 4)],
            {"compute_v": v},
            normalize=same_sign(1),
            skip_outputs=() if v else (1,),
        )
        for dt in TYPES
        for v in (False, True)
    ),
    *(
        Case(
            op,
            [positive(dt, *shape)],
            graph=True,
            producer=10,
            normalize=without_first_row_signs,
        )
        for dt in ("float32", "float64")
        for op, shape in (("SelfAdjointEig", (4, 4)), ("BatchSelfAdjointEig", (2, 3, 3)))
    ),
    *(
        Case("Eig", [np.float32([[bad, 1], [0, 1]])], {"compute_v": v, "Tout": "complex64"}, error=BAD)
        for bad in (np.inf, -np.inf, np.nan)
        for v in (True, False)
    ),
    *(
        Case(
            "Eig",
            [sample(dt, (2, 4, 4))],
            {"compute_v": v, "Tout": out},
            normalize=by_eigenvalue,
            skip_outputs=() if v else (1,),
        )
        for dt, out in (
            ("float32", "complex64"),
            ("float64", "complex128"),
            ("complex64", "complex64"),
            ("complex128", "complex128"),
        )
        for v in (False, True)
    ),
    *(
        Case("Lu", [sample(dt, s, -1, 1)], {"output_idx_type": it})
        for dt in TYPES
        for s in ((3, 3), (2, 4, 4))
        for it in ("int32", "int64")
    ),
    Case("Lu", [F([[1, 2], [2, 4]])], error=BAD),
    *(Case("MatrixDeterminant", [sample(dt, s, -1, 1)]) for dt in TYPES for s in ((3, 3), (2, 4, 4), (1, 1))),
    *(Case("MatrixDeterminant", [np.zeros((0, 0), F)]) for _ in (0,)),
    *(Case("LogMatrixDeterminant", [sample(dt, s, -1, 1)]) for dt in TYPES for s in ((3, 3), (2, 4, 4))),
    *(
        Case("MatrixInverse", [regular(dt, *s)], {"adjoint": a})
        for dt in TYPES
        for s in ((3, 3), (2, 4, 4))
        for a in (False, True)
    ),
    Case("MatrixInverse", [F([[1, 2], [2, 4]])], error=BAD),
    Case("MatrixInverse", [sample("float32", (2, 3))], error=BAD),
]

SOLVE = [
    *(
        Case("MatrixSolve", [regular(dt, *s), sample(dt, (*s[:-1], 2))], {"adjoint": a})
        for dt in TYPES
        for s in ((3, 3), (2, 4, 4))
        for a in (False, True)
    ),
    Case("MatrixSolve", [F([[1, 2], [2, 4]]), sample("float32", (2, 1))], error=BAD),
    Case("MatrixSolve", [regular("float32", 3, 3), sample("float32", (2, 1))], error=BAD),
    *(
        Case(
            "MatrixTriangularSolve",
            [regular(dt, *s), sample(dt, (*s[:-1], 2))],
            {"lower": low, "adjoint": a},
        )
        for dt in TYPES
        for s in ((3, 3), (2, 4, 4))
        for a in (False, True)
        for low in (False, True)
    ),
    Case("MatrixTriangularSolve", [regular("float32", 3, 3), sample("float32", (4, 3, 2))]),
    *(
        Case(
            "MatrixTriangularSolve",
            [F(m), F([[1], [2]])],
            {"lower": low, "adjoint": adj},
            id=f"singular-{i}-{low}-{adj}",
        )
        for i, m in enumerate(([[1, 2], [2, 0]], [[0, 1], [2, 0]]))
        for low in (False, True)
        for adj in (False, True)
    ),
    Case("BandedTriangularSolve", [F([[1, 0], [2, 0]]), F([[1], [2]])], error=BAD),
    *(
        Case(
            "BandedTriangularSolve",
            [regular(dt, 2, 4, 4)[:, :2] + 3, sample(dt, (2, 4, 2))],
            {"lower": low, "adjoint": a},
        )
        for dt in TYPES
        for a in (False, True)
        for low in (False, True)
    ),
    *(
        Case(
            "MatrixSolveLs",
            [sample(dt, s, -1, 1), sample(dt, (*s[:-1], 2)), np.float64(reg)],
            {"fast": fast},
        )
        for dt in TYPES
        for s in ((4, 3), (2, 3, 4))
        for reg, fast in ((0.5, True), (0.0, False))
    ),
    *(
        Case(
            "TridiagonalSolve",
            [sample(dt, (2, 3, 5), 1, 2), sample(dt, (2, 5, 3))],
            {"partial_pivoting": p},
        )
        for dt in TYPES
        for p in (True, False)
    ),
    Case("TridiagonalSolve", [sample("float64", (3, 1), 1, 2), sample("float64", (1, 2))]),
    Case("TridiagonalSolve", [sample("float64", (2, 4), 1, 2), sample("float64", (4, 2))], error=BAD),
    *(
        Case("TridiagonalMatMul", [sample(dt, (2, 1, 5), seed=i) for i in range(3)] + [sample(dt, (2, 5, 3))])
        for dt in TYPES
    ),
    Case("TridiagonalMatMul", [sample("float32", (1, 5))] * 3 + [sample("float32", (2, 5, 3))], error=BAD),
    Case("TridiagonalMatMul", [sample("float32", (1, 1, 5))] * 3 + [sample("float32", (2, 5, 3))], error=BAD),
    *(
        Case(
            "MatrixExponential",
            [sample(dt, s, -2, 2)],
            graph=True,
            producer=26,
        )
        for dt in TYPES
        for s in ((3, 3), (2, 4, 4))
    ),
    *(Case("MatrixLogarithm", [regular(dt, *s)]) for dt in COMPLEX for s in ((3, 3), (2, 4, 4))),
    *(Case("MatrixSquareRoot", [regular(dt, *s)]) for dt in TYPES for s in ((3, 3), (2, 4, 4))),
]

OLD = [
    Case(op, inputs, graph=True, producer=12, normalize=norm, skip_outputs=skip)
    for op, inputs, norm, skip in (
        ("BatchCholesky", [positive("float32", 2, 3, 3)], None, ()),
        (
            "BatchCholeskyGrad",
            [np.linalg.cholesky(positive("float32", 2, 3, 3)), np.tril(sample("float32", (2, 3, 3)))],
            None,
            (),
        ),
        ("BatchSvd", [sample("float32", (2, 3, 3))], None, (1, 2)),
        ("BatchSelfAdjointEigV2", [positive("float32", 2, 3, 3)], same_sign(1), ()),
        ("BatchMatrixDeterminant", [sample("float32", (2, 3, 3))], None, ()),
        ("BatchMatrixInverse", [regular("float32", 2, 3, 3)], None, ()),
        ("BatchMatrixSolve", [regular("float32", 2, 3, 3), sample("float32", (2, 3, 2))], None, ()),
        ("BatchMatrixTriangularSolve", [regular("float32", 2, 3, 3), sample("float32", (2, 3, 2))], None, ()),
        ("BatchMatrixSolveLs", [sample("float64", (2, 4, 3)), sample("float64", (2, 4, 2)), np.float64(0.1)], None, ()),
    )
]

FOURIER = [
    *(
        Case(
            op,
            [sample(dt, (2, 3, 4, 5))],
        )
        for op in ("FFT", "FFT2D", "FFT3D", "IFFT", "IFFT2D", "IFFT3D")
        for dt in COMPLEX
    ),
    *(
        Case(
            "RFFT" + d,
            [sample(dt, (2, 4, 5, 6)), np.int32(n)],
            {"Tcomplex": out},
        )
        for d, lengths in (("", ([6], [4], [5])), ("2D", ([5, 6], [3, 4], [4, 5])), ("3D", ([4, 5, 6], [2, 3, 5])))
        for n in lengths
        for dt, out in (("float32", "complex64"), ("float64", "complex128"))
    ),
    *(
        Case(
            "IRFFT" + d,
            [sample(dt, (2, 4, 5, 4)), np.int32(n)],
            {"Treal": out},
        )
        for d, lengths in (("", ([6], [4], [5])), ("2D", ([5, 6], [3, 4], [4, 5])), ("3D", ([4, 5, 6], [2, 3, 5])))
        for n in lengths
        for dt, out in (("complex64", "float32"), ("complex128", "float64"))
    ),
    Case("FFT2D", [sample("complex64", (3,))], error=BAD),
    Case("RFFT", [sample("float32", (3,)), np.int32([4])], error=BAD),
    Case("RFFT", [sample("float32", (3,)), np.int32([3, 3])], error=BAD),
    Case("FFT", [np.zeros((0, 3), np.complex64)]),
]

CASES = [*DECOMPOSE, *SOLVE, *OLD, *FOURIER]


@suite(CASES)
def test_linalg(case: Case, device: str, tf: ModuleType) -> None:
    check(case, device)


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("dtype", TYPES)
def test_svd_reconstructs(dtype: str, full: bool) -> None:
    """Singular vectors are not unique; what they must do is give the matrix back and be orthogonal."""
    x = sample(dtype, (2, 5, 3), -1, 1)
    s, u, v = run_ours(Case("Svd", [x], {"full_matrices": full}))
    again = (u[..., :3] * s[..., None, :]) @ np.conj(np.swapaxes(v, -1, -2))
    # backward stable: what it is the decomposition of is off by a unit of the matrix for each of its numbers; the
    # vectors are orthogonal to as many units of 1
    roundings = x.size / len(x) * perturbation.unit(dtype)
    tolerance.assert_within(again, x, roundings * np.linalg.norm(x, axis=(1, 2), keepdims=True))
    unitary = np.broadcast_to(np.eye(u.shape[-1]), (2, u.shape[-1], u.shape[-1]))
    tolerance.assert_within(np.conj(np.swapaxes(u, -1, -2)) @ u, unitary, roundings)


def test_fft_over_axes() -> None:
    """TensorFlow has no CPU kernels for the ops that take axes; they agree with the ones of fixed rank."""
    x = sample("complex64", (3, 4, 5))
    for op, other in (("FFTND", "FFT2D"), ("IFFTND", "IFFT2D")):
        check_against(Case(op, [x, np.int32([4, 5]), np.int32([1, -1])]), run_ours(Case(other, [x])))
    real = sample("float32", (3, 4, 6))
    wanted = run_ours(Case("RFFT2D", [real, np.int32([4, 6])]))
    check_against(Case("RFFTND", [real, np.int32([4, 6]), np.int32([1, 2])]), wanted)
    check_against(Case("IRFFTND", [wanted[0], np.int32([4, 6]), np.int32([1, 2])]), [real])


def test_old_batch_fft() -> None:
    """BatchFFT and its kin have no kernels in TensorFlow any more; they are the present ones."""
    x = sample("complex64", (2, 3, 4, 5))
    for name in ("FFT", "FFT2D", "FFT3D", "IFFT", "IFFT2D", "IFFT3D"):
        np.testing.assert_array_equal(run_ours(Case("Batch" + name, [x]))[0], run_ours(Case(name, [x]))[0])


def _spoilt(x: Any, place: tuple[int, ...], value: float) -> Any:
    x = x.copy()
    x[place] = value
    return x


_SINGULAR = np.ones((3, 3, 3), np.float32)
_SINGULAR[1:, :, :2] = 0
NOT_FINITE = [
    *(
        Case("TridiagonalSolve", [given, np.ones((*given.shape[:-2], 3, 2), "float32")], {"partial_pivoting": pivoting})
        for given in (_SINGULAR, _SINGULAR[1], _SINGULAR[0])
        for pivoting in (False, True)
    ),
    *(
        Case("MatrixTriangularSolve", [_spoilt(lower, place, value), right], {"lower": True})
        for lower in (np.float32([[2, 0, 0], [1, 3, 0], [3, 4, 5]]),)
        for right in (np.ones((3, 2), np.float32), _spoilt(np.ones((3, 2), np.float32), (1, 0), np.inf))
        for place, value in (((1, 1), np.nan), ((2, 0), np.inf), ((0, 0), np.nan), ((0, 0), 2.0))
    ),
    *(
        Case("SelfAdjointEigV2", [_spoilt(np.float32([[2, 1], [1, 2]]), place, value)], {"compute_v": with_vectors},
             error="INVALID_ARGUMENT")
        for place, value in (((0, 0), np.nan), ((1, 0), np.inf))
        for with_vectors in (False, True)
    ),
]  # fmt: skip


@suite(NOT_FINITE)
def test_what_is_not_finite(case: Case, device: str, tf: ModuleType) -> None:
    """Rows of a triangular system that do not depend on it are solved; there are no eigenvalues."""
    check(case, device)
