"""Gradients of special functions, transforms, matrices, products and diagonals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.client.gradient_families.rows import NOT_CONJUGATED, POSITIVE, TWICE_AT_0, WRONG_ALIGNMENT, X, case, floats
from toolkit import client as gm
from toolkit.client import ops
from toolkit.client.construction.tensor import Tensor

# -- special functions ------------------------------------------------------------------------------------

for _op, _x in {
    "BesselI0": X, "BesselI1": X, "BesselI0e": X, "BesselI1e": X, "BesselK0": POSITIVE, "BesselK0e": POSITIVE,
    "BesselK1": POSITIVE, "BesselK1e": POSITIVE, "BesselJ0": X, "BesselJ1": X, "BesselY0": POSITIVE,
    "BesselY1": POSITIVE, "Dawsn": X, "Expint": POSITIVE, "FresnelCos": X, "FresnelSin": X, "Spence": POSITIVE,
}.items():  # fmt: skip
    case(_op, ops.function(_op), _x)
for _op in ("BesselI1", "BesselI1e", "BesselJ1"):
    case(f"{_op} at 0", ops.function(_op), np.zeros(3), why_differences=TWICE_AT_0 if _op == "BesselI1" else "")
case("Spence at 1", ops.spence, np.ones(2, np.float32))
case("Igammac", ops.igammac, POSITIVE, POSITIVE[:1] + 0.3)
case("Betainc", ops.betainc, POSITIVE + 1, POSITIVE + 2, np.float32([[0.1, 0.4, 0.8], [0.3, 0.5, 0.7]]))
case("Zeta", ops.zeta, POSITIVE + 2, POSITIVE[:1])
case("Polygamma", ops.polygamma, np.float32(2), POSITIVE)
case("NextAfter", ops.next_after, X, X[:1] + 1)
case("RandomGamma", lambda a: ops.random_gamma([4], a, seed=3, seed2=5), POSITIVE)
case("StatelessRandomGammaV2", lambda a: ops.stateless_random_gamma_v2([4, 2, 3], [3, 5], a), POSITIVE)
case(
    "StatelessRandomGammaV3",
    lambda a: ops.stateless_random_gamma_v3([2, 3], gm.constant([7], "uint64"), gm.constant([1, 2], "uint64"), 1, a),
    POSITIVE,
)  # fmt: skip

# -- Fourier transforms -----------------------------------------------------------------------------------


def _complex(x: Tensor) -> Any:
    return gm.complex128 if x.dtype.base is gm.float64 else gm.complex64


def _real(z: Tensor) -> Any:
    return gm.float64 if z.dtype.base is gm.complex128 else gm.float32


for _dtype in (np.complex64, np.complex128):
    _z = (floats(2, 4, 3, 5) + 1j * floats(2, 4, 3, 5)).astype(_dtype)
    for _op in ("FFT", "IFFT", "FFT2D", "IFFT2D", "FFT3D", "IFFT3D"):
        case(f"{_op} {_dtype.__name__}", ops.function(_op), _z)
for _n in (4, 5):
    case(f"RFFT {_n}", lambda x, n=_n: ops.rfft(x, [n], Tcomplex=_complex(x)), floats(3, _n))
    case(f"RFFT2D {_n}", lambda x, n=_n: ops.rfft2d(x, [3, n], Tcomplex=_complex(x)), floats(2, 3, _n))
    _half = _n // 2 + 1
    _z = (floats(3, _half) + 1j * floats(3, _half)).astype(np.complex64)
    case(f"IRFFT {_n}", lambda z, n=_n: ops.irfft(z, [n], Treal=_real(z)), _z)
    case(f"IRFFT2D {_n}", lambda z, n=_n: ops.irfft2d(z, [3, n], Treal=_real(z)), _z[None])

# -- linear algebra ---------------------------------------------------------------------------------------


def spd(n: int, dtype: Any = np.float64) -> np.ndarray:
    a = floats(2, n, n, dtype=np.float64)
    if np.dtype(dtype).kind == "c":
        a = a + 1j * floats(2, n, n, dtype=np.float64)
    return (a @ np.conj(np.swapaxes(a, -1, -2)) + n * np.eye(n)).astype(dtype)


def general(*shape: int, dtype: Any = np.float64) -> np.ndarray:
    a = floats(*shape, dtype=np.float64)
    return (a + 1j * floats(*shape, dtype=np.float64)).astype(dtype) if np.dtype(dtype).kind == "c" else a


def symmetric(x: Tensor) -> Tensor:
    from toolkit.client.gradients.linalg_grad import adjoint

    return x + adjoint(x)


for _dtype in (np.float64, np.complex128):
    _t = _dtype.__name__
    _why = NOT_CONJUGATED if _dtype is np.complex128 else ""
    case(f"Cholesky {_t}", lambda a: ops.cholesky(symmetric(a)), spd(3, _dtype))
    case(f"MatrixDeterminant {_t}", ops.matrix_determinant, general(2, 3, 3, dtype=_dtype), why_differences=_why)
    case(f"LogMatrixDeterminant {_t}", lambda a: ops.log_matrix_determinant(a)[1], spd(3, _dtype))
    for _turned in (False, True):
        case(
            f"MatrixSolve {_t} {_turned}",
            lambda a, b, t=_turned: ops.matrix_solve(a, b, adjoint=t),
            spd(3, _dtype),
            general(2, 3, 2, dtype=_dtype),
        )
        for _lower in (False, True):
            case(
                f"MatrixTriangularSolve {_t} {_turned} {_lower}",
                lambda a, b, t=_turned, w=_lower: ops.matrix_triangular_solve(a, b, adjoint=t, lower=w),
                spd(3, _dtype)[:1],
                general(2, 3, 2, dtype=_dtype),
            )
            case(
                f"BandedTriangularSolve {_t} {_turned} {_lower}",
                lambda a, b, t=_turned, w=_lower: ops.banded_triangular_solve(a, b, adjoint=t, lower=w),
                general(2, 2, 4, dtype=_dtype) + 2,
                general(2, 4, 3, dtype=_dtype),
            )
    for _m, _n in ((3, 3), (4, 2), (2, 4)):
        case(f"Qr {_t} {_m}x{_n}", lambda a: list(ops.qr(a)), general(2, _m, _n, dtype=_dtype), dynamic=False)
        case(
            f"MatrixSolveLs {_t} {_m}x{_n}",
            lambda a, b: ops.matrix_solve_ls(a, b, gm.constant(0.1, "float64")),
            general(2, _m, _n, dtype=_dtype),
            general(2, _m, 2, dtype=_dtype),
            dynamic=False,
            why_differences=_why,
        )
        case(
            f"Svd values {_t} {_m}x{_n}",
            lambda a: ops.svd(a, compute_uv=False)[0],
            general(2, _m, _n, dtype=_dtype),
        )
    case(
        f"SelfAdjointEigV2 {_t}",
        lambda a: list(ops.self_adjoint_eig_v2(symmetric(a))),
        spd(3, _dtype),
        run_ours=False,
    )
    case(
        f"SelfAdjointEigV2 values {_t}",
        lambda a: ops.self_adjoint_eig_v2(symmetric(a), compute_v=False)[0],
        spd(3, _dtype),
    )
    case(f"MatrixSquareRoot {_t}", ops.matrix_square_root, spd(3, _dtype), why_differences=_why)
    case(
        f"TridiagonalMatMul {_t}",
        ops.tridiagonal_mat_mul,
        *(general(2, 1, 4, dtype=_dtype) for _ in range(3)),
        general(2, 4, 3, dtype=_dtype),
    )
    for _pivot in (False, True):
        case(
            f"TridiagonalSolve {_t} {_pivot}",
            lambda d, b, p=_pivot: ops.tridiagonal_solve(d, b, partial_pivoting=p),
            general(2, 3, 4, dtype=_dtype) + np.array([[0], [3], [0]]),
            general(2, 4, 2, dtype=_dtype),
            why_differences=_why,
        )


def _svd(full: bool) -> Callable[[Tensor], list[Tensor]]:
    def build(a: Tensor) -> list[Tensor]:
        s, u, v = ops.svd(a, compute_uv=True, full_matrices=full)
        k = s.shape[-1]
        return [s, u[..., :k], v[..., :k]]

    return build


for _m, _n in ((3, 3), (5, 3), (2, 4)):
    # signs of singular vectors are free: TensorFlow's and ours may differ when run here
    case(f"Svd {_m}x{_n}", _svd(False), general(2, _m, _n), dynamic=False, run_ours=False)
    case(
        f"Svd complex {_m}x{_n}",
        _svd(False),
        general(_m, _n, dtype=np.complex128),
        dynamic=False,
        run_ours=False,
    )
case("Svd full", _svd(True), general(3, 4), dynamic=False, run_ours=False)
case("Eig", lambda a: list(ops.eig(a, Tout=gm.complex128)), general(2, 3, 3), run_ours=False)
case(
    "Eig complex",
    lambda a: list(ops.eig(a, Tout=gm.complex128)),
    general(3, 3, dtype=np.complex128),
    run_ours=False,
)
case(
    "Eig values",
    lambda a: ops.eig(a, compute_v=False, Tout=gm.complex128)[0],
    general(3, 3),
    run_ours=False,
)

for _ta in (False, True):
    for _tb in (False, True):
        _a = floats(*((3, 2) if _ta else (2, 3)))
        _b = floats(*((4, 3) if _tb else (3, 4)))
        case(
            f"SparseMatMul {_ta} {_tb}",
            lambda a, b, t=_ta, u=_tb: ops.sparse_mat_mul(a, b, transpose_a=t, transpose_b=u, b_is_sparse=True),
            _a,
            _b,
        )

# -- Einsum -----------------------------------------------------------------------------------------------

SIZES = {"a": 2, "b": 3, "c": 4, "d": 2, "i": 3, "j": 2, "n": 2}
for _equation in (
    "ab->ba", "ab->a", "ab->", "aab->ab", "ii->i", "ii->", "iij->j", "a->aa", "abc->cb", "aib->b",
    "ab,bc->ac", "ab,bc->ca", "ab,ab->", "a,b->ab", "abc,cd->abd", "nab,nbc->nac", "nabc,ncd->nabd", "ab,ac->bc",
    "ab,cb->a", "abc,cb->b", "aab,bc->ac", "ii,ij->j", "ab,b->ab", "a,->a",
):  # fmt: skip
    _terms = _equation.partition("->")[0].split(",")
    case(
        f"Einsum {_equation}",
        lambda *xs, e=_equation: ops.einsum(list(xs), equation=e),
        *(floats(*(SIZES[label] for label in term), dtype=np.float64) for term in _terms),
    )
for _equation, _shapes in {
    "...ab->...ba": [(2, 3, 4)], "...a->a...": [(2, 3, 4)], "...ab->...b": [(5, 2, 3, 4)], "a...->...": [(2, 3, 4)],
    "...ab,...bc->...ac": [(2, 3, 4), (2, 4, 2)], "...ab,bc->...ac": [(5, 2, 3, 4), (4, 2)],
    "ab,...bc->...ac": [(3, 4), (5, 2, 4, 2)], "a...b,b...c->a...c": [(2, 5, 3), (3, 1, 4)],
    "...ab,...b->...a": [(3, 1, 2, 4), (2, 4)], "...i,...i->...": [(2, 1, 3), (4, 3)],
    "i...,j...->ij...": [(2, 1), (3, 4)],
}.items():  # fmt: skip
    case(
        f"Einsum {_equation} {_shapes}",
        lambda *xs, e=_equation: ops.einsum(list(xs), equation=e),
        *(floats(*shape, dtype=np.float64) for shape in _shapes),
    )
case(
    "Einsum complex",
    lambda x, y: ops.einsum([x, y], equation="ab,bc->ac"),
    general(2, 3, dtype=np.complex128),
    general(3, 2, dtype=np.complex128),
)

# -- diagonals --------------------------------------------------------------------------------------------

case("Diag", ops.diag, floats(2, 3))
case("DiagPart", ops.diag_part, floats(2, 3, 2, 3))
case("MatrixSetDiag", ops.matrix_set_diag, floats(2, 3, 4), floats(2, 3))
for _version in ("V2", "V3"):
    for _align in ("LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT") if _version == "V3" else ("",):
        _more = {"align": _align} if _align else {}
        _why = "" if _align else WRONG_ALIGNMENT
        case(
            f"MatrixDiag{_version} {_align}",
            lambda d, v=_version, m=_more: ops.function("MatrixDiag" + v)(d, [-1, 1], 4, 4, 0.0, **m),
            floats(2, 3, 4),
            why_differences=_why,
        )
        case(
            f"MatrixDiagPart{_version} {_align}",
            lambda x, v=_version, m=_more: ops.function("MatrixDiagPart" + v)(x, [-1, 1], 0.5, **m),
            floats(2, 4, 5),
        )
        case(
            f"MatrixSetDiag{_version} {_align}",
            lambda x, d, v=_version, m=_more: ops.function("MatrixSetDiag" + v)(x, d, [-1, 1], **m),
            floats(2, 4, 4),
            floats(2, 3, 4),
            why_differences=_why,
        )
