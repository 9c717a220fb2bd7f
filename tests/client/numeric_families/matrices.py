# Rows are lambdas, whose arguments have no types.
# pyright: basic
"""Decompositions, solvers and sparse tensors. Signs and phases, which are free, are taken out."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.client.numeric_families.rows import off_zero, positive, row, u, z
from toolkit import client as gm
from toolkit.client import ops
from toolkit.client.gradients.linalg_grad import adjoint

# -- linear algebra ----------------------------------------------------------------------------------------


def _real(x: Any) -> Any:
    return ops.real(x, Tout="float64") if x.dtype.base.is_complex else x


def _size(x: Any) -> Any:
    """|x|^2."""
    return _real(x * (ops.conj(x) if x.dtype.base.is_complex else x))


def _hermitian(x: Any) -> Any:
    return x + adjoint(x)


def _definite(x: Any) -> Any:
    """A positive definite matrix; its eigenvalues are apart."""
    n = x.static_shape[-1]
    shift = gm.constant(np.diag(np.arange(1.0, n + 1) * 3).astype(x.dtype.base.numpy))
    return gm.matmul(x, x, adjoint_b=True) + shift


def _decomposed(x: Any, outputs: list[int], op: str, **options: Any) -> list[Any]:
    made = ops.function(op)(x, **options)
    return [_real(made[0]), *(_size(made[i]) for i in outputs)]


for _make in (u, z):
    _name = "complex" if _make is z else ""
    row("Cholesky", lambda x: ops.cholesky(_definite(x)), _make(2, 3, 3), about=_name)
    row("MatrixInverse", ops.matrix_inverse, _make(2, 3, 3) + 2 * np.eye(3), about=_name)
    row(
        "MatrixInverse",
        lambda x: ops.matrix_inverse(x, adjoint=True),
        _make(3, 3) + 2 * np.eye(3),
        about=f"turned {_name}",
    )
    row("MatrixDeterminant", ops.matrix_determinant, _make(2, 3, 3), about=_name)
    row(
        "LogMatrixDeterminant",
        lambda x: _real(ops.log_matrix_determinant(x)[1]),
        _make(2, 3, 3) + np.eye(3),
        about=_name,
    )
    row("MatrixSquareRoot", lambda x: ops.matrix_square_root(_definite(x)), _make(3, 3), about=_name)
    for _turned in (False, True):
        row(
            "MatrixSolve", lambda a, b, t=_turned: ops.matrix_solve(a, b, adjoint=t), _make(2, 3, 3) + 2 * np.eye(3),
            _make(2, 3, 2), about=f"{_turned} {_name}",
        )  # fmt: skip
        for _lower in (False, True):
            for _batch in ((), (2,)):
                row(
                    "MatrixTriangularSolve",
                    lambda a, b, t=_turned, w=_lower: ops.matrix_triangular_solve(a, b, adjoint=t, lower=w),
                    _make(3, 3) + 3 * np.eye(3), _make(*_batch, 3, 2), about=f"{_turned} {_lower} {_batch} {_name}",
                )  # fmt: skip
            row(
                "BandedTriangularSolve",
                lambda a, b, t=_turned, w=_lower: ops.banded_triangular_solve(a, b, adjoint=t, lower=w),
                _make(2, 2, 3) + 3, _make(2, 3, 2), about=f"{_turned} {_lower} {_name}",
            )  # fmt: skip
    for _m, _n in ((3, 3), (4, 2), (2, 4)):
        row(
            "MatrixSolveLs", lambda a, b: ops.matrix_solve_ls(a, b, gm.constant(0.3, "float64")), _make(_m, _n),
            _make(_m, 2), about=f"{_m}x{_n} {_name}",
        )  # fmt: skip
        # R's diagonal is real, of either sign
        row(
            "Qr",
            lambda x: [_size(y) for y in ops.qr(x)],
            _make(_m, _n) + 2 * np.eye(_m, _n),
            about=f"{_m}x{_n} {_name}",
        )
        _spread = np.eye(_m, _n) * np.arange(2, _n + 2)
        row("Svd", lambda x: _decomposed(x, [1, 2], "Svd"), _make(_m, _n) * 0.5 + _spread, about=f"{_m}x{_n} {_name}")
        row(
            "Svd", lambda x: _decomposed(x, [], "Svd", compute_uv=False), _make(2, _m, _n) * 0.5 + _spread,
            about=f"values {_m}x{_n} {_name}",
        )  # fmt: skip
    row(
        "SelfAdjointEigV2",
        lambda x: _decomposed(_hermitian(x), [1], "SelfAdjointEigV2"),
        _make(2, 3, 3) * 0.5 + np.diag([1.0, 3, 5]),
        about=_name,
    )
    row(
        "SelfAdjointEigV2",
        lambda x: _decomposed(_hermitian(x), [], "SelfAdjointEigV2", compute_v=False),
        _make(3, 3) * 0.5 + np.diag([1.0, 3, 5]),
        about=f"values {_name}",
    )
    row(
        "Eig",
        lambda x: [y[0], _size(y[1])] if (y := ops.eig(x, Tout=gm.complex128)) else None,
        _make(3, 3) * 0.5 + np.diag([1.0, 3, 5]),
        about=_name,
    )
    row(
        "Eig",
        lambda x: ops.eig(x, compute_v=False, Tout=gm.complex128)[0],
        _make(3, 3) * 0.5 + np.diag([1.0, 3, 5]),
        about=f"values {_name}",
    )
    row("TridiagonalMatMul", ops.tridiagonal_mat_mul, *(_make(2, 1, 4) for _ in range(3)), _make(2, 4, 3), about=_name)
    for _pivot in (False, True):
        row(
            "TridiagonalSolve", lambda d, b, p=_pivot: ops.tridiagonal_solve(d, b, partial_pivoting=p),
            _make(2, 3, 4) + np.array([[0], [4], [0]]), _make(2, 4, 2), about=f"{_pivot} {_name}",
        )  # fmt: skip

# -- sparse matrices ---------------------------------------------------------------------------------------

_NO_SUM = "two gradients meet at the sparse matrix, and sparse matrices have no AddN, in TensorFlow neither"
#: a matrix of 3 rows and 3 columns, the same elements whatever their values
_PLACES = np.int64([[0, 0], [0, 2], [1, 1], [2, 0], [2, 1]])


def _csr(values: Any, places: Any = _PLACES) -> Any:
    return ops.sparse_tensor_to_csr_sparse_matrix(places, values, gm.constant([3, 3], "int64"))


def _of_dense(x: Any) -> Any:
    return ops.dense_to_csr_sparse_matrix(x, _PLACES)


def _to_dense(x: Any, like: Any) -> Any:
    return ops.csr_sparse_matrix_to_dense(x, type=like.dtype)


def _factors(like: Any) -> list[Any]:
    return [gm.constant(factor, like.dtype) for factor in (2.0, -0.5)]


def _numbers(x: Any, like: Any) -> Any:
    return ops.csr_sparse_matrix_to_sparse_tensor(x, type=like.dtype)[1]


for _make in (u, z):
    _name = "complex" if _make is z else ""
    row("SparseTensorToCSRSparseMatrix", lambda v: _numbers(_csr(v), v), _make(5), about=_name)
    row("CSRSparseMatrixToSparseTensor", lambda v: _numbers(_csr(v), v) * v, _make(5), about=_name)
    row("CSRSparseMatrixToDense", lambda v: _to_dense(_csr(v), v), _make(5), about=_name)
    row("DenseToCSRSparseMatrix", lambda x: _numbers(_of_dense(x), x), _make(3, 3), about=_name)
    row(
        "SparseMatrixAdd",
        lambda v, w: _to_dense(ops.sparse_matrix_add(_csr(v), _csr(w), *_factors(v)), v),
        _make(5), _make(5), about=_name,
    )  # fmt: skip
    for _flags in (
        {}, {"transpose_a": True}, {"transpose_b": True}, {"transpose_a": True, "transpose_b": True},
        {"adjoint_a": True}, {"adjoint_b": True}, {"adjoint_a": True, "adjoint_b": True},
    ):  # fmt: skip
        row(
            "SparseMatrixMatMul", lambda v, b, f=_flags: ops.sparse_matrix_mat_mul(_csr(v), b, **f), _make(5),
            _make(3, 3),
            about=f"{_flags} {_name}", first_only=_NO_SUM,
        )  # fmt: skip
        row(
            "SparseMatrixSparseMatMul",
            lambda v, w, f=_flags: _to_dense(
                ops.sparse_matrix_sparse_mat_mul(_csr(v), _csr(w), type=v.dtype, **f), v
            ),
            _make(5), _make(5), about=f"{_flags} {_name}", first_only=_NO_SUM,
        )  # fmt: skip
    for _turn in (False, True):
        row(
            "SparseMatrixTranspose",
            lambda v, c=_turn: _to_dense(ops.sparse_matrix_transpose(_csr(v), type=v.dtype, conjugate=c), v),
            _make(5), about=f"{_turn} {_name}",
        )  # fmt: skip
row("SparseMatrixSoftmax", lambda v: _numbers(ops.sparse_matrix_softmax(_csr(v), type=v.dtype), v), u(5))

# -- sparse tensors ----------------------------------------------------------------------------------------

_I, _J = np.int64([[0, 1], [1, 0], [1, 2]]), np.int64([[0, 1], [1, 1]])
_SHAPE = np.int64([2, 3])
row("SparseReorder", lambda v: ops.sparse_reorder(_I[::-1].copy(), v, _SHAPE)[1], u(3))
row("SparseAdd", lambda v, w: ops.sparse_add(_I, v, _SHAPE, _J, w, _SHAPE, gm.constant(0.0, "float64"))[1], u(3), u(2))
row("SparseTensorDenseAdd", lambda v, d: ops.sparse_tensor_dense_add(_I, v, _SHAPE, d), u(3), u(2, 3))
for _axes in ([0], [-1], [0, 1]):
    for _keep in (False, True):
        row(
            "SparseReduceSum",
            lambda v, a=_axes, k=_keep: ops.sparse_reduce_sum(_I, v, _SHAPE, a, keep_dims=k),
            u(3),
            about=f"{_axes} {_keep}",
        )
row(
    "SparseSlice",
    lambda v: ops.sparse_slice(_I, v, _SHAPE, gm.constant([0, 1], "int64"), gm.constant([2, 2], "int64"))[1],
    u(3),
)
for _make in (u, z):
    for _aa in (False, True):
        for _ab in (False, True):
            _rows = 2 if _aa else 3
            row(
                "SparseTensorDenseMatMul",
                lambda v, b, a=_aa, c=_ab: ops.sparse_tensor_dense_mat_mul(_I, v, _SHAPE, b, adjoint_a=a, adjoint_b=c),
                _make(3), _make(*((4, _rows) if _ab else (_rows, 4))), about=f"{_aa} {_ab} {_make is z}",
            )  # fmt: skip
for _op in ("SparseDenseCwiseMul", "SparseDenseCwiseDiv"):
    for _dense in ((2, 3), (1, 3), (3,)):
        _fixed = positive(*_dense)
        row(_op, lambda v, o=_op, d=_fixed: ops.function(o)(_I, v, _SHAPE, d), u(3), about=f"{_dense}")
row("SparseSoftmax", lambda v: ops.sparse_softmax(_I, v, _SHAPE), u(3), first_only="SparseDenseCwiseAdd has none")
row(
    "SparseFillEmptyRows", lambda v, d: ops.sparse_fill_empty_rows(_I, v, gm.constant([4, 3], "int64"), d)[1], u(3), u()
)
row("SparseToDense", lambda v, d: ops.sparse_to_dense(_I, _SHAPE, v, d), u(3), u())
for _ta in (False, True):
    for _tb in (False, True):
        row(
            "SparseMatMul",
            lambda a, b, t=_ta, v=_tb: ops.sparse_mat_mul(a, b, transpose_a=t, transpose_b=v, b_is_sparse=True),
            off_zero(*((3, 2) if _ta else (2, 3))), off_zero(*((4, 3) if _tb else (3, 4))), single=True,
            about=f"{_ta} {_tb}",
        )  # fmt: skip
