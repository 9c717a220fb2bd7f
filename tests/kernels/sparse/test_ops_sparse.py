"""Sparse and ragged tensors and sets against TensorFlow."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.kernels.op_suite import COMPLEX, NUMBERS, REALS, Case, check, run_ours, sample, suite
from toolkit.errors import InvalidArgumentError

pytestmark = pytest.mark.tensorflow

BAD = "INVALID_ARGUMENT"
F, I32, I64 = np.float32, np.int32, np.int64
ANY = (*NUMBERS, "bool", "string")


def f(*shape: int, seed: int = 0) -> Any:
    return sample("float32", shape, seed=seed)


def sparse(dtype: str, shape: tuple[int, ...], count: int, seed: int = 0) -> list[Any]:
    """[indices, values, shape] in row-major order without repeats."""
    rng = np.random.default_rng(seed + count)
    keys = np.sort(rng.choice(int(np.prod(shape)), count, replace=False))
    indices = np.stack(np.unravel_index(keys, shape), axis=1).astype(I64)
    return [indices, sample(dtype, (count,), seed=seed + 1), np.array(shape, I64)]


def zipped(*tensors: list[Any]) -> list[list[Any]]:
    return [list(part) for part in zip(*tensors, strict=True)]


I = I64([[0, 1], [1, 0], [1, 2]])
SHUFFLED = [I64([[1, 2], [0, 1], [1, 0]]), F([3, 1, 2]), I64([2, 3])]

SPARSE = [
    *(
        Case("SparseToDense", [I.astype(it), np.array([2, 3], it), sample(dt, (3,)), sample(dt, seed=5)])
        for dt in ANY
        for it in (I32, I64)
    ),
    Case("SparseToDense", [I32([1, 3]), I32([5]), F(7), F(0)]),
    Case("SparseToDense", [I32(1), I32([5]), F(7), F(0)]),
    Case("SparseToDense", [I32([3, 1]), I32([5]), F(7), F(0)], error=BAD),
    Case("SparseToDense", [I32([3, 1]), I32([5]), F(7), F(0)], {"validate_indices": False}),
    Case("SparseToDense", [I32([1, 1]), I32([5]), F(7), F(0)], error=BAD),
    Case("SparseToDense", [I32([1, 6]), I32([5]), F(7), F(0)], error=BAD),
    Case("SparseToDense", [I32([1, 3]), I32([5, 2]), F(7), F(0)], error=BAD),
    Case("SparseToDense", [I32([1, 3]), I32([5]), F([7]), F(0)], error=BAD),
    *(
        Case(
            "SparseTensorDenseMatMul",
            [*sparse(dt, (4, 3), 5), sample(dt, (5, 4) if ta and tb else (4, 5) if ta else (5, 3) if tb else (3, 5))],
            {"adjoint_a": ta, "adjoint_b": tb},
        )
        for dt in ("float32", "float64", "int32", *COMPLEX, "bfloat16")
        for ta in (False, True)
        for tb in (False, True)
    ),
    Case("SparseTensorDenseMatMul", [*sparse("float32", (4, 3), 5), f(4, 2)], error=BAD),
    Case("SparseTensorDenseMatMul", [I64([[0, 3]]), F([1]), I64([2, 3]), f(3, 2)], error=BAD),
    *(Case("SparseReorder", [SHUFFLED[0], sample(dt, (3,)), SHUFFLED[2]]) for dt in ANY),
    Case("SparseReorder", [np.zeros((0, 2), I64), np.zeros(0, F), I64([2, 3])]),
    *(Case("SparseReshape", [I, I64([2, 3]), I64(s)]) for s in ([3, 2], [6], [-1, 2], [1, 2, 3])),
    Case("SparseReshape", [I, I64([2, 3]), I64([4, 2])], error=BAD),
    Case("SparseReshape", [I, I64([2, 3]), I64([-1, -1])], error=BAD),
    Case("SparseReshape", [I, I64([2, 3]), I64([-1, 4])], error=BAD),
    *(
        Case("SparseConcat", zipped(sparse(dt, (2, 3), 3), sparse(dt, (2, 3), 4, 3)), {"concat_dim": d})
        for dt in ("float32", "int64", "string")
        for d in (0, 1, -1)
    ),
    Case(
        "SparseConcat", zipped(sparse("float32", (2, 3), 3), sparse("float32", (4, 2), 4)), {"concat_dim": 0}, error=BAD
    ),
    *(
        Case("SparseSplit", [I64(d), *sparse(dt, (4, 7), 9)], {"num_split": n})
        for dt in ("float32", "string")
        for d, n in ((0, 2), (1, 3), (1, 7))
    ),
    Case("SparseSplit", [I64(2), *sparse("float32", (4, 7), 9)], {"num_split": 2}, error=BAD),
    *(Case("SparseSlice", [*sparse(dt, (4, 7), 9), I64([1, 2]), I64([2, 9])]) for dt in ("float32", "int32", "string")),
    Case("SparseSlice", [*sparse("float32", (4, 7), 9), I64([1]), I64([2])], error=BAD),
    Case("SparseSliceGrad", [F([5]), I, I64([1, 1]), I64([[0, 1]])]),
    Case("SparseReshape", [I64([[0, 1]]), I64([2**62, 4]), I64([-1, 4])], error=BAD),
    Case("SparseReshape", [I64([[0, 1]]), I64([4, 4]), I64([2**62, 4])], error=BAD),
    *(
        Case("SparseSliceGrad", [F([5]), I, I64(start), I64([[0, 1]])], error=BAD)
        for start in (1, [1], [1, 1, 1], [[1, 1]])
    ),
    *(
        Case(op, [*sparse(dt, (3, 4, 2), 9), I32(axes)], {"keep_dims": keep})
        for op in ("SparseReduceSum", "SparseReduceSumSparse")
        for dt in ("float32", "float64", "int32", "int64")
        for axes in ([0], [1, 2], [-1, 0], 1, [0, 1, 2])
        for keep in (False, True)
    ),
    *(
        Case(op, [*sparse("float32", (3, 4, 2), 9), I32(axes)], {"keep_dims": keep})
        for op in ("SparseReduceMax", "SparseReduceMaxSparse")
        for axes in ([0], [1, 2])
        for keep in (False, True)
    ),
    Case("SparseReduceSum", [*sparse("float32", (3, 4), 5), I32([2])], error=BAD),
    *(
        Case("SparseAdd", [*sparse(dt, (3, 4), 5), *sparse(dt, (3, 4), 6), np.array(t, real)])
        for dt, real in (("float32", F), ("float64", np.float64), ("int32", I32), ("int64", I64), ("complex64", F))
        for t in (0, 3)
    ),
    Case("SparseAdd", [*sparse("float32", (3, 4), 5), *sparse("float32", (3, 5), 6), F(0)], error=BAD),
    Case("SparseAddGrad", [F([1, 2, 3]), I64([[0, 1], [1, 0]]), I64([[1, 0], [1, 2]]), I]),
    *(
        Case("SparseFillEmptyRows", [I64([[1, 0], [1, 2], [3, 1]]), sample(dt, (3,)), I64([5, 3]), sample(dt, seed=7)])
        for dt in ANY
    ),
    Case("SparseFillEmptyRows", [np.zeros((0, 2), I64), np.zeros(0, F), I64([2, 3]), F(1)]),
    Case("SparseFillEmptyRows", [np.zeros((0, 2), I64), np.zeros(0, F), I64([0, 3]), F(1)]),
    Case("SparseFillEmptyRows", [I64([[3, 1], [1, 0], [1, 2]]), F([1, 2, 3]), I64([5, 3]), F(0)]),
    Case("SparseFillEmptyRows", [I64([[5, 0]]), F([1]), I64([5, 3]), F(0)], error=BAD),
    *(
        Case(op, [I64([2, 1, 3]), sample(dt, (5,))])
        for op in ("SparseFillEmptyRowsGrad", "RaggedFillEmptyRowsGrad")
        for dt in ("float32", "int64")
    ),
    Case("SparseFillEmptyRowsGrad", [I64([5]), f(5)], error=BAD),
    *(
        Case("RaggedFillEmptyRows", [I64([1, 1, 3]), sample(dt, (3,)), I64(5), sample(dt, seed=7)])
        for dt in ("float32", "string")
    ),
    *(
        Case(op, [*sparse(dt, (3, 4), 5), sample(dt, s, 1, 3)])
        for op in ("SparseDenseCwiseMul", "SparseDenseCwiseDiv", "SparseDenseCwiseAdd")
        for dt in ("float32", "float64", "int32", "int64")
        for s in ((3, 4), (4,), (1,), (3, 1))
    ),
    Case("SparseDenseCwiseMul", [*sparse("float32", (3, 4), 5), f(2, 3, 4)], error=BAD),
    *(
        Case("SparseTensorDenseAdd", [i.astype(it), v, s.astype(it), sample(dt, (3, 4))])
        for dt in ("float32", "int64", "complex64")
        for it in (I32, I64)
        for i, v, s in [sparse(dt, (3, 4), 5)]
    ),
    Case("SparseTensorDenseAdd", [*sparse("float32", (3, 4), 5), f(4)], error=BAD),
    *(Case("SparseSoftmax", sparse(dt, s, 7)) for dt in ("float32", "float64", "float16") for s in ((3, 4), (2, 3, 4))),
    *(
        Case(op, [*sparse(dt, (3, 4), 5), *sparse(dt, (3, 4), 6)])
        for op in ("SparseSparseMaximum", "SparseSparseMinimum")
        for dt in REALS
    ),
    Case("SparseSparseMaximum", [*sparse("float32", (3, 4), 5), *sparse("float32", (3, 5), 6)], error=BAD),
]

SETS = [
    *(
        Case(
            "DenseToDenseSetOperation",
            [sample(dt, (2, 3, 4), 0, 4), sample(dt, (2, 3, 3), 0, 4, seed=1)],
            {"set_operation": how},
        )
        for dt in ("int8", "int16", "int32", "int64", "uint8", "uint16", "string")
        for how in ("a-b", "b-a", "intersection", "union")
    ),
    *(
        Case("DenseToSparseSetOperation", [sample(dt, (3, 4), 0, 4), *sparse(dt, (3, 5), 7)], {"set_operation": how})
        for dt in ("int32", "int64", "string")
        for how in ("a-b", "b-a", "intersection", "union")
    ),
    *(
        Case("SparseToSparseSetOperation", [*sparse(dt, (3, 5), 8, 4), *sparse(dt, (3, 6), 7)], {"set_operation": how})
        for dt in ("int32", "int64", "string")
        for how in ("a-b", "b-a", "intersection", "union")
    ),
    Case("DenseToDenseSetOperation", [I32([[1, 2]]), I32([[1], [2]])], {"set_operation": "union"}, error=BAD),
    Case("DenseToDenseSetOperation", [I32([1, 2]), I32([1, 2])], {"set_operation": "union"}, error=BAD),
    Case("DenseToDenseSetOperation", [I32([[1, 2]]), I32([[1, 2]])], {"set_operation": "xor"}, error=BAD),
    *(Case("SetSize", sparse(dt, (2, 3, 4), 11)) for dt in ("int32", "int64", "uint8", "string")),
    Case("SetSize", [*SHUFFLED[:1], I32([1, 2, 3]), SHUFFLED[2]], error=BAD),
]

COUNT = [
    *(
        Case(
            "SparseBincount",
            [I, np.array([1, 1, 3], it), I64([2, 3]), np.array(4, it), np.zeros(0, dt)],
            {"binary_output": b},
        )
        for it in (I32, I64)
        for dt in ("float32", "int32")
        for b in (False, True)
    ),
    Case("SparseBincount", [I64([[0], [2]]), I32([1, 3]), I64([4]), I32(4), F([0.5, 2])]),
    *(
        Case(
            "RaggedBincount",
            [I64([0, 2, 2, 3]), np.array([1, 1, 3], it), np.array(4, it), np.zeros(0, dt)],
            {"binary_output": b},
        )
        for it in (I32, I64)
        for dt in ("float32", "int64")
        for b in (False, True)
    ),
    Case("RaggedBincount", [I64([0, 2, 3]), I32([1, 1, 3]), I32(3), F([0.5, 2, 1])]),
    Case("RaggedBincount", [I64([0, 2, 5]), I32([1, 1, 3]), I32(3), np.zeros(0, F)], error=BAD),
    Case("RaggedBincount", [I64([0, 1]), I32(0), I32(3), np.zeros(0, F)]),
    Case("RaggedBincount", [I64([[0, 2, 3]]), I32([[1], [1], [3]]), I32(3), F([[0.5, 2, 1]])]),
    Case("RaggedBincount", [I64([0, 1]), I32([0]), I32([3]), np.zeros(0, F)], error=BAD),
    *(
        Case(
            "DenseCountSparseOutput",
            [np.array(v, it), np.zeros(0, dt)],
            {"minlength": lo, "maxlength": hi, "binary_output": b},
        )
        for v in ([1, 1, 3, 7], [[1, 1], [3, 0]])
        for it in (I32, I64)
        for dt in ("float32", "int64")
        for lo, hi in ((-1, -1), (10, -1), (-1, 3))
        for b in (False, True)
    ),
    Case("DenseCountSparseOutput", [I32([1, 1, 3]), F([0.5, 1, 2])], {"binary_output": False}),
    Case("DenseCountSparseOutput", [I32([1, 1, 3]), F([0.5, 1])], {"binary_output": False}, error=BAD),
    Case("SparseCountSparseOutput", [I, I32([1, 1, 3]), I64([2, 3]), np.zeros(0, F)], {"binary_output": False}),
    Case(
        "SparseCountSparseOutput",
        [I, I32([1, 1, 3]), I64([2, 3]), F([1, 2, 3])],
        {"binary_output": False, "minlength": 6},
    ),
    Case("RaggedCountSparseOutput", [I64([0, 2, 3]), I32([1, 1, 3]), np.zeros(0, F)], {"binary_output": False}),
    Case(
        "RaggedCountSparseOutput",
        [I64([0, 2, 3]), I32([1, 1, 3]), np.zeros(0, F)],
        {"binary_output": True, "maxlength": 2},
    ),
]

RAGGED = [
    *(
        Case("RaggedRange", [np.array(a, dt), np.array(b, dt), np.array(c, dt)], {"Tsplits": st})
        for dt in ("float32", "float64", "int32", "int64")
        for st in (I32, I64)
        for a, b, c in (([0, 5, 8], [3, 5, 12], 1), (0, [3, 0, -2], 2), ([5, 0], [0, 5], [-2, 2]), (1, 4, 1))
    ),
    Case("RaggedRange", [I32([0, 1]), I32([3]), I32(1)], error=BAD),
    Case("RaggedRange", [I32(0), I32(3), I32(0)], error=BAD),
    Case("RaggedRange", [I32([0, 9]), I32([-5, 2]), I32([1, -2])]),
    Case("RaggedRange", [I64(-(2**63)), I64(10 - 2**63), I64(2**62)]),
    Case("RaggedRange", [I64(0), I64(2**32), I64(1)], {"Tsplits": I32}, error=BAD),
    *(
        Case("RaggedRange", [a, b, c], error=BAD, id=f"{a} to {b}")
        for a, b, c in (
            (I64(-(2**63)), I64(2**63 - 1), I64(1)),
            (I64(2**63 - 1), I64(-(2**63)), I64(-1)),
            (F(0), F(np.inf), F(1)),
            (F(0), F(np.nan), F(1)),
            (F(0), F(3e38), F(1)),
        )
    ),
    *(
        Case(
            "RaggedGather",
            [[np.array([0, 2, 2, 5], st)], sample(dt, (5, 2)), I32([2, 0, 2])],
            {"OUTPUT_RAGGED_RANK": 1},
        )
        for dt in ("float32", "string")
        for st in (I32, I64)
    ),
    Case("RaggedGather", [[I64([0, 2, 3]), I64([0, 1, 4, 5])], f(5), I64([1, 0, 1])], {"OUTPUT_RAGGED_RANK": 2}),
    Case("RaggedGather", [[I64([0, 2, 2, 5])], f(5), I32([[2, 0], [1, 1]])], {"OUTPUT_RAGGED_RANK": 2}),
    Case("RaggedGather", [[I64([0, 2, 2, 5])], f(5), I32([3])], {"OUTPUT_RAGGED_RANK": 1}, error=BAD),
    *(
        Case("RaggedTensorToSparse", [[np.array([0, 2, 2, 5], st)], sample(dt, (5,))])
        for dt in ("float32", "string", "bool")
        for st in (I32, I64)
    ),
    Case("RaggedTensorToSparse", [[I64([0, 2, 3]), I64([0, 1, 4, 5])], f(5)]),
    Case("RaggedTensorToSparse", [[I64([0, 2, 5])], f(5, 2)]),
    Case("RaggedTensorToSparse", [[I64([0, 2, 4])], f(5)], error=BAD),
    Case("RaggedTensorToSparse", [[I64([0, 1])], f()], error=BAD),
    Case("RaggedTensorToSparse", [[I64([[0, 1]])], f(5)], error=BAD),
    Case("RaggedTensorToSparse", [[I64([])], f(5)], error=BAD),
    *(
        Case("RaggedTensorToTensor", [shape, values, F(9), parts], {"row_partition_types": kinds}, error=BAD, id=what)
        for what, shape, values, kinds, parts in (
            ("scalar values", I64(-1), f(), ["ROW_SPLITS"], [I64([0, 1])]),
            ("no splits", I64(-1), f(3), ["ROW_SPLITS"], [I64([])]),
            ("splits from 1", I64(-1), f(3), ["ROW_SPLITS"], [I64([1, 2, 3])]),
            ("a negative first size", I64(-1), f(3), ["FIRST_DIM_SIZE", "VALUE_ROWIDS"], [I64(-2), I64([0, 1, 1])]),
            ("a negative row", I64(-1), f(3), ["FIRST_DIM_SIZE", "VALUE_ROWIDS"], [I64(2), I64([-1, 1, 1])]),
            ("a row too many", I64(-1), f(3), ["FIRST_DIM_SIZE", "VALUE_ROWIDS"], [I64(2), I64([0, 1, 5])]),
            ("a matrix of sizes", I64([[-1, -1]]), f(3), ["ROW_SPLITS"], [I64([0, 1, 3])]),
            ("a size of -2", I64([-2, 2]), f(3), ["ROW_SPLITS"], [I64([0, 1, 3])]),
            ("other values", I64([-1, -1, 3]), f(3, 2), ["ROW_SPLITS"], [I64([0, 1, 3])]),
        )
    ),
    Case("RaggedTensorToTensor", [I64(-1), f(3), F(9), [I64([0, 1, 3])] * 2], {"row_partition_types": ["ROW_SPLITS"]}),
    *(
        Case(
            "RaggedTensorToTensor",
            [shape, sample(dt, (5,)), sample(dt, seed=3), [I64([0, 2, 2, 5])]],
            {"row_partition_types": ["ROW_SPLITS"]},
        )
        for dt in ("float32", "int64", "string", "bool")
        for shape in (I64([-1, -1]), I64([2, 2]), I64([4, 5]), I32(-1))
    ),
    *(
        Case(
            "RaggedTensorToTensor",
            [I64([-1, -1]), f(5), F(9), [I64(4), I64([0, 0, 2, 2, 2])]],
            {"row_partition_types": ["FIRST_DIM_SIZE", "VALUE_ROWIDS"]},
        )
        for _ in (0,)
    ),
    Case(
        "RaggedTensorToTensor",
        [I64([-1, -1, -1]), f(5), F(9), [I64([0, 2, 3]), I64([0, 1, 4, 5])]],
        {"row_partition_types": ["ROW_SPLITS", "ROW_SPLITS"]},
    ),
    Case(
        "RaggedTensorToTensor",
        [I64([-1, 2, 2]), f(5), F(9), [I64(3), I64([0, 0, 2]), I64([0, 1, 4, 5])]],
        {"row_partition_types": ["FIRST_DIM_SIZE", "VALUE_ROWIDS", "ROW_SPLITS"]},
    ),
    Case(
        "RaggedTensorToTensor",
        [I64([-1, -1, 2]), f(5, 2), F(9), [I64([0, 2, 2, 5])]],
        {"row_partition_types": ["ROW_SPLITS"]},
    ),
    Case(
        "RaggedTensorToTensor",
        [I64([-1, -1, 2]), f(5, 2), F([8, 9]), [I64([0, 2, 2, 5])]],
        {"row_partition_types": ["ROW_SPLITS"]},
    ),
    Case(
        "RaggedTensorToTensor",
        [I64([-1, -1]), f(5), F(9), [I64([0, 2, 2, 5])]],
        {"row_partition_types": ["NONE"]},
        error=BAD,
    ),
]

DISTANCE = [
    *(
        Case("EditDistance", [*sparse(dt, (3, 6), 9, 4), *sparse(dt, (3, 5), 8)], {"normalize": norm})
        for dt in ("int32", "int64", "string", "float32", "uint8")
        for norm in (True, False)
    ),
    Case("EditDistance", [*sparse("int32", (2, 3, 4), 11), *sparse("int32", (2, 3, 5), 13, 2)], {"normalize": False}),
    Case("EditDistance", [np.zeros((0, 2), I64), np.zeros(0, I32), I64([2, 3]), *sparse("int32", (2, 3), 2)]),
    Case("EditDistance", [*sparse("int32", (2, 3), 2), np.zeros((0, 2), I64), np.zeros(0, I32), I64([2, 3])]),
    Case("EditDistance", [*sparse("int32", (2, 3), 2), *sparse("int32", (2, 2, 3), 2)], error=BAD),
]

CASES = [*SPARSE, *SETS, *COUNT, *RAGGED, *DISTANCE]


@suite(CASES)
def test_sparse(case: Case, device: str, tf: ModuleType) -> None:
    check(case, device)


@pytest.mark.parametrize("batched", [False, True])
def test_ragged_variant_round_trip(batched: bool) -> None:
    splits, inner, values = I64([0, 2, 3]), I64([0, 1, 4, 5]), f(5)
    encoded = run_ours_variant(Case("RaggedTensorToVariant", [[splits, inner], values], {"batched_input": batched}))
    back = run_ours(
        Case(
            "RaggedTensorFromVariant",
            [encoded],
            {"input_ragged_rank": 1, "output_ragged_rank": 2, "Tvalues": "float32"},
        )
    )
    for mine, expected in zip(back, (splits, inner, values), strict=True):
        np.testing.assert_array_equal(mine, expected)


def test_ragged_variant_gradient() -> None:
    """The gradients of rows, as variants, put one after the other."""
    rows = run_ours_variant(Case("RaggedTensorToVariant", [[I64([0, 2, 2, 5])], f(5)], {"batched_input": True}))
    case = Case("RaggedTensorToVariantGradient", [rows, I64([0, 2, 2, 5]), I32([5])], {"Tvalues": "float32"})
    np.testing.assert_array_equal(run_ours(case)[0], f(5))


def run_ours_variant(case: Case) -> Any:
    return run_ours(case)[0]


@pytest.mark.parametrize(
    "case",
    [
        Case("RaggedGather", [[I64(0)], f(5), I32([0])], {"OUTPUT_RAGGED_RANK": 1}),
        Case("RaggedGather", [[I64([0, 1])], f(), I32([0])], {"OUTPUT_RAGGED_RANK": 1}),
    ],
    ids=["scalar splits", "scalar values"],
)
def test_ragged_tensors_have_vectors(case: Case) -> None:
    with pytest.raises(InvalidArgumentError, match="vector"):
        run_ours(case)
