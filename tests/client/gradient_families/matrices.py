# Rows are lambdas, whose arguments have no types.
# pyright: basic
"""Sparse matrices as variants, and composite tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.client.gradient_families.rows import NO_KERNEL, case
from toolkit import client as gm
from toolkit.client import ops
from toolkit.client.construction.tensor import Tensor

_A = np.array([[0.5, 0.0, -0.3], [0.0, 0.9, 0.0], [0.7, 0.2, 0.0]], np.float32)
_B = np.array([[0.0, 0.4, 0.6], [-0.8, 0.1, 0.0], [0.3, 0.0, -0.2]], np.float32)
_DENSE = np.array([[0.2, -0.6, 1.1], [0.4, 0.3, -0.9], [-0.5, 0.8, 0.7]], np.float32)
#: which flags of a product go together
_FLAGS: list[dict[str, bool]] = [
    {}, {"transpose_a": True}, {"transpose_b": True}, {"transpose_a": True, "transpose_b": True}, {"adjoint_a": True},
    {"adjoint_b": True}, {"adjoint_a": True, "adjoint_b": True}, {"adjoint_a": True, "transpose_b": True},
    {"transpose_a": True, "adjoint_b": True},
]  # fmt: skip


def _sparse(x: Tensor) -> Any:
    return ops.dense_to_csr_sparse_matrix(x, ops.where(ops.not_equal(x, 0.0)))


def _dense(x: Any, like: Tensor) -> Any:
    return ops.csr_sparse_matrix_to_dense(x, type=like.dtype)


def _options(**flags: Any) -> Any:
    """Shapes have to be known to TensorFlow's gradients."""
    return {"dynamic": False, **flags}


for _flags in _FLAGS:
    _name = "+".join(_flags) or "plain"
    for _out in ({}, {"transpose_output": True}):
        case(
            f"SparseMatrixMatMul {_name} {'transposed' if _out else ''}".strip(),
            lambda a, b, flags=_flags, out=_out: ops.sparse_matrix_mat_mul(_sparse(a), b, **flags, **out),
            _A, _DENSE, **_options(),
        )  # fmt: skip
    case(
        f"SparseMatrixSparseMatMul {_name}",
        lambda a, b, flags=_flags: _dense(
            ops.sparse_matrix_sparse_mat_mul(_sparse(a), _sparse(b), type=a.dtype, **flags), a
        ),
        _A, _B, **_options(),
    )  # fmt: skip

case(
    "SparseMatrixTranspose",
    lambda a: _dense(ops.sparse_matrix_transpose(_sparse(a), type=a.dtype), a),
    _A, **_options(),
)  # fmt: skip


def _of_values(values: Tensor, middle: int = 0) -> Any:
    places = gm.constant([[0, 1], [1, middle], [1, 2]], "int64")
    return ops.sparse_tensor_to_csr_sparse_matrix(places, values, gm.constant([2, 3], "int64"))


def _sum(a: Tensor, b: Tensor) -> Any:
    factors = [gm.constant(factor, "float64") for factor in (2.0, -0.5)]
    total = ops.sparse_matrix_add(_of_values(a), _of_values(b, 1), *factors)
    return ops.csr_sparse_matrix_to_dense(total, type=gm.float64)


def _softmax(a: Tensor) -> Any:
    return ops.csr_sparse_matrix_to_sparse_tensor(
        ops.sparse_matrix_softmax(_of_values(a), type=gm.float64), type=gm.float64
    )[1]


_VALUES = np.array([0.5, -0.25, 2.0])
case(
    "SparseTensorToCSRSparseMatrix",
    lambda values: ops.csr_sparse_matrix_to_sparse_tensor(_of_values(values), type=values.dtype)[1],
    _VALUES.astype(np.float32), **_options(),
)  # fmt: skip
case("SparseMatrixAdd", _sum, _VALUES, np.array([1.5, 0.75, -1.0]), **_options(why_differences=NO_KERNEL))
case("SparseMatrixSoftmax", _softmax, _VALUES, **_options(why_differences=NO_KERNEL))
