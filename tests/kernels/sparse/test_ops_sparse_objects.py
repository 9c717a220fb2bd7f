"""Sparse matrices as variants, serialized sparse tensors, and their map, against TensorFlow's chains of ops."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests import tolerance
from tests.kernels.op_suite import SAME, Case, check, compare, outcome, run_ours, run_tensorflow, sample, suite
from tests.kernels.sparse.test_ops_sparse import sparse
from tests.kernels.step import FakeStep

pytestmark = pytest.mark.tensorflow

BAD = "INVALID_ARGUMENT"
I64 = np.int64
TYPES = ("float32", "float64", "complex64", "complex128")

CASES = [
    *(
        Case("SerializeSparse", sparse(dt, (3, 4), n))
        for dt in ("float32", "int64", "string", "bool", "int8")
        for n in (1, 5)
    ),
    *(Case("SerializeManySparse", sparse(dt, (3, 4, 2), 7)) for dt in ("float32", "string")),
    Case("SerializeManySparse", [I64([[0]]), np.float32([1]), I64([3])], error=BAD),
    *(
        Case(
            op,
            [np.int64(indices).reshape(-1, 2), sample("float32", (n,)), I64(shape)],
            error=SAME,
            skip_outputs=(0,) if op.startswith("Add") else (),
            id=f"{indices}{n}{shape}",
        )
        for op in ("SerializeSparse", "SerializeManySparse", "AddSparseToTensorsMap", "AddManySparseToTensorsMap")
        for indices, n, shape in (
            ([[1, 0], [0, 0]], 2, [2, 3]),
            ([[1, 0], [1, 0]], 2, [2, 3]),
            ([[0, 0], [1, 7]], 2, [2, 3]),
            ([[-1, 0], [1, 1]], 2, [2, 3]),
            ([[0, 0], [1, 1]], 2, [2, -3]),
            ([], 0, [2, 2**62]),
            ([], 0, [2**62, 4, 0]),
            ([[0, 0]], 2, [2, 3]),
            ([[0, 0]], 1, [2, 3, 4]),
        )
    ),
    *(
        Case("SerializeSparse", [np.zeros(a, I64), np.zeros(b, np.float32), np.zeros(c, I64)], error=BAD)
        for a, b, c in (((3,), (3,), (1,)), ((3, 1), (3, 1), (1,)), ((3, 1), (3,), ()))
    ),
    Case("DeserializeSparse", [np.array([b"x", b"y", b"z"], object)], {"dtype": "float32"}, error=BAD),
    Case("DeserializeSparse", [np.array([b"x", b"y"], object)], {"dtype": "float32"}, error=BAD),
]


@suite(CASES)
def test_serialize(case: Case, device: str, tf: ModuleType) -> None:
    check(case, device)


@pytest.mark.parametrize("variant", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "int64", "string"])
def test_round_trip(tf: ModuleType, dtype: str, variant: bool) -> None:
    """What is serialized row by row comes back as it was; so does what a matrix of rows holds."""
    attrs = {"out_type": "variant"} if variant else {}
    triple = sparse(dtype, (3, 4, 2), 9)
    kind = {"dtype": dtype, "Tserialized": "variant" if variant else "string"}
    rows = run_ours(Case("SerializeManySparse", triple, attrs))[0]
    for mine, given in zip(run_ours(Case("DeserializeSparse", [rows], kind)), triple, strict=True):
        compare(mine, given)
    one = run_ours(Case("SerializeSparse", triple, attrs))[0]
    for mine, given in zip(run_ours(Case("DeserializeSparse", [one], kind)), triple, strict=True):
        compare(mine, given)
    if not variant:
        case = Case("DeserializeManySparse", [rows], {"dtype": dtype})
        for mine, theirs in zip(run_ours(case), run_tensorflow(case), strict=True):
            compare(mine, theirs)
        nested = Case("DeserializeSparse", [np.stack([rows, rows])], kind)
        for mine, theirs in zip(run_ours(nested), run_tensorflow(nested), strict=True):
            compare(mine, theirs)


def test_tensors_map() -> None:
    step, triple = FakeStep(), sparse("float32", (3, 4), 6)
    shared = {"shared_name": "map"}
    one = run_ours(Case("AddSparseToTensorsMap", triple, shared), step=step)[0]
    many = run_ours(Case("AddManySparseToTensorsMap", triple, shared), step=step)[0]
    assert one.shape == () and many.shape == (3,)
    take = Case("TakeManySparseFromTensorsMap", [many], {"dtype": "float32", **shared})
    for mine, given in zip(run_ours(take, step=step), triple, strict=True):
        compare(mine, given)
    assert outcome(lambda: run_ours(take, step=step))[0] == BAD  # each is taken once


def csr(dtype: str, shape: tuple[int, ...], count: int, seed: int = 0) -> Any:
    return run_ours(Case("SparseTensorToCSRSparseMatrix", sparse(dtype, shape, count, seed)))[0]


def tf_csr(tf: ModuleType, dtype: str, shape: tuple[int, ...], count: int, seed: int = 0) -> Any:
    indices, values, dims = sparse(dtype, shape, count, seed)
    return tf.raw_ops.SparseTensorToCSRSparseMatrix(indices=indices, values=values, dense_shape=dims)


@pytest.mark.parametrize("shape", [(4, 5), (2, 4, 5)])
@pytest.mark.parametrize("dtype", TYPES)
def test_csr_views(tf: ModuleType, dtype: str, shape: tuple[int, ...]) -> None:
    mine, theirs, raw = csr(dtype, shape, 9), tf_csr(tf, dtype, shape, 9), tf.raw_ops
    kind = {"type": dtype}
    compare(
        run_ours(Case("CSRSparseMatrixToDense", [mine], kind))[0],
        raw.CSRSparseMatrixToDense(sparse_input=theirs, type=dtype).numpy(),
    )
    compare(run_ours(Case("SparseMatrixNNZ", [mine]))[0], raw.SparseMatrixNNZ(sparse_matrix=theirs).numpy())
    case = Case("CSRSparseMatrixComponents", [mine, np.int32(0)], kind)
    for a, b in zip(
        run_ours(case), raw.CSRSparseMatrixComponents(csr_sparse_matrix=theirs, index=0, type=dtype), strict=True
    ):
        compare(a, b.numpy())
    back = raw.CSRSparseMatrixToSparseTensor(sparse_matrix=theirs, type=dtype)
    for a, b in zip(run_ours(Case("CSRSparseMatrixToSparseTensor", [mine], kind)), back, strict=True):
        compare(a, b.numpy())
    turned = run_ours(Case("SparseMatrixTranspose", [mine], {"conjugate": True, **kind}))[0]
    expected = raw.CSRSparseMatrixToDense(
        sparse_input=raw.SparseMatrixTranspose(input=theirs, conjugate=True, type=dtype), type=dtype
    )
    compare(turned.dense(), expected.numpy())
    indices = sparse(dtype, shape, 5)[0]
    again = run_ours(Case("DenseToCSRSparseMatrix", [sample(dtype, shape), indices]))[0]
    expected = raw.CSRSparseMatrixToDense(
        sparse_input=raw.DenseToCSRSparseMatrix(dense_input=sample(dtype, shape), indices=indices), type=dtype
    )
    compare(again.dense(), expected.numpy())


@pytest.mark.parametrize("flags", [{}, {"adjoint_a": True}, {"transpose_b": True}, {"transpose_output": True}])
@pytest.mark.parametrize("dtype", TYPES)
def test_csr_products(tf: ModuleType, dtype: str, flags: dict[str, bool]) -> None:
    mine, theirs, raw = csr(dtype, (2, 4, 4), 12), tf_csr(tf, dtype, (2, 4, 4), 12), tf.raw_ops
    b = sample(dtype, (2, 4, 4), seed=3)
    # sums of at most 4 products of at most 5 times 5, complex ones of 5 + 5i
    parts = 2.0 if np.dtype(dtype).kind == "c" else 1.0
    allowed = 2 * tolerance.likely(parts * 4, np.zeros(0, dtype).real.dtype) * 4 * parts * 25
    product = run_ours(Case("SparseMatrixMatMul", [mine, b], flags))[0]
    compare(product, raw.SparseMatrixMatMul(a=theirs, b=b, **flags).numpy(), allowed=lambda: allowed)
    if "transpose_output" not in flags:
        other, tf_other = csr(dtype, (2, 4, 4), 10, 5), tf_csr(tf, dtype, (2, 4, 4), 10, 5)
        product = run_ours(Case("SparseMatrixSparseMatMul", [mine, other], {"type": dtype, **flags}))[0]
        expected = raw.SparseMatrixSparseMatMul(a=theirs, b=tf_other, type=dtype, **flags)
        dense = raw.CSRSparseMatrixToDense(sparse_input=expected, type=dtype).numpy()
        compare(product.dense(), dense, allowed=lambda: allowed)


def test_csr_without_cpu_kernels_in_tensorflow() -> None:
    """These run on GPUs only there; they are held to the dense formulas."""
    a, b = csr("float64", (3, 4), 7), csr("float64", (3, 4), 6, 2)
    x, y = a.dense(), b.dense()
    total = run_ours(Case("SparseMatrixAdd", [a, b, np.float64(2), np.float64(-1)]))[0]
    tolerance.assert_within(total.dense(), 2 * x - y, tolerance.gamma(2, np.float64) * (2 * np.abs(x) + np.abs(y)))
    scaled = run_ours(Case("SparseMatrixMul", [a, np.float64(3)]))[0]
    np.testing.assert_array_equal(scaled.dense(), 3 * x)
    assert run_ours(Case("SparseMatrixZeros", [I64([3, 4])], {"type": "float64"}))[0].dense().shape == (3, 4)
    soft = run_ours(Case("SparseMatrixSoftmax", [a], {"type": "float64"}))[0]
    raised = np.where(x != 0, np.exp(x), 0)
    expected = raised / np.maximum(raised.sum(axis=1, keepdims=True), 1e-30)
    # exponentials good to 8 units, a sum of 4, a quotient; twice
    roundings = 2 * tolerance.gamma(8 + 8 + 4 + 1, np.float64)
    tolerance.assert_within(soft.dense(), expected, roundings * expected)
    grad = run_ours(Case("SparseMatrixSoftmaxGrad", [soft, b], {"type": "float64"}))[0]
    mean = (expected * np.abs(y)).sum(axis=1, keepdims=True)
    wanted = expected * (y - (expected * y).sum(axis=1, keepdims=True))
    tolerance.assert_within(grad.dense(), wanted, 2 * roundings * expected * (np.abs(y) + mean))


def test_sparse_cholesky(tf: ModuleType) -> None:
    """With TensorFlow's own ordering the factors agree; our ordering is a permutation that gives a factor too."""
    x = np.diag(np.arange(2.0, 7.0))
    x[0, 3] = x[3, 0] = 0.5
    indices = np.argwhere(x)
    mine = run_ours(Case("SparseTensorToCSRSparseMatrix", [indices, x[tuple(indices.T)], I64([5, 5])]))[0]
    raw = tf.raw_ops
    theirs = raw.SparseTensorToCSRSparseMatrix(indices=indices, values=x[tuple(indices.T)], dense_shape=[5, 5])
    order = raw.SparseMatrixOrderingAMD(input=theirs)
    expected = raw.SparseMatrixSparseCholesky(input=theirs, permutation=order, type="float64")
    factor = run_ours(Case("SparseMatrixSparseCholesky", [mine, order.numpy()], {"type": "float64"}))[0]
    compare(factor.dense(), raw.CSRSparseMatrixToDense(sparse_input=expected, type="float64").numpy())
    own = run_ours(Case("SparseMatrixOrderingAMD", [mine]))[0]
    assert sorted(own.tolist()) == list(range(5)) and own.dtype == np.int32
