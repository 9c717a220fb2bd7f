"""Gather, scatter, segments, sorting, diagonals against TensorFlow."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.kernels.op_suite import (
    COMPLEX,
    FLOATS,
    NUMBERS,
    REALS,
    Case,
    check,
    check_against,
    outcome,
    run_ours,
    sample,
    suite,
)

pytestmark = pytest.mark.tensorflow

BAD = "INVALID_ARGUMENT"
ANY = (*NUMBERS, "bool", "string")
F = np.float32
I32, I64 = np.int32, np.int64


def f(*shape: int, seed: int = 0) -> Any:
    return sample("float32", shape, seed=seed)


def sorted_rows(outputs: list[Any]) -> list[Any]:
    """For results whose order within a row is not determined."""
    return [np.sort(outputs[0], axis=-1)]


GATHER = [
    *(Case("Gather", [sample(dt, (4, 3)), np.array([[0, 3], [1, 1]], it)]) for dt in ANY for it in (I32, I64)),
    Case("Gather", [f(4, 3), I32(2)]),
    Case("Gather", [f(4, 3), I32([4])], error=BAD),
    Case("Gather", [f(4, 3), I32([-1])], error=BAD),
    Case("Gather", [f(4, 3), np.zeros((0, 2), I32)]),
    *(
        Case("GatherV2", [sample(dt, (4, 3, 2)), np.array([[0, 1], [2, 1]], it), np.array(axis, at)])
        for dt in ANY
        for axis in (0, 1, -2)
        for it, at in ((I32, I32), (I64, I64))
    ),
    *(
        Case("GatherV2", [f(*p), np.array(sample("int32", i, 0, 1)), I32(axis)], {"batch_dims": b})
        for p, i, axis, b in (
            ((2, 3, 4), (2, 5), 1, 1),
            ((2, 3, 4), (2,), 1, 1),
            ((2, 3, 4), (2, 3), 2, 2),
            ((2, 3, 4), (2, 5, 2), 2, 1),
            ((2, 3, 4), (2, 5), -1, -1),
            ((2, 3, 4), (2, 0), 1, 1),
        )
    ),
    Case("GatherV2", [f(4, 3), I32([4]), I32(0)], error=BAD),
    Case("GatherV2", [f(4, 3), I32([1]), I32(2)], error=BAD),
    Case("GatherV2", [f(2, 3), I32([[1], [0], [1]]), I32(1)], {"batch_dims": 1}, error=BAD),
    Case("GatherV2", [f(0, 3), I32([0]), I32(0)], error=BAD),
    *(
        Case("GatherNd", [sample(dt, (4, 3, 2)), np.array(i, it)])
        for dt in ANY
        for it in (I32, I64)
        for i in ([[0, 1], [3, 2]], [[[1, 2, 1]], [[0, 0, 0]]], [2])
    ),
    Case("GatherNd", [f(2, 3), np.zeros((4, 0), I32)]),
    Case("GatherNd", [f(2, 3), I32([[0, 3]])], error=BAD),
    Case("GatherNd", [f(2, 3), I32([[0, 1, 2]])], error=BAD),
    Case("GatherNd", [f(2, 3), I32([[0, 3], [1, 1]])], {"bad_indices_policy": "IGNORE"}),
    *(
        Case("ScatterNd", [np.array([[0], [2], [0]], it), sample(dt, (3, 2)), np.array([4, 2], it)])
        for dt in (*NUMBERS, "bool", "string")
        for it in (I32, I64)
    ),
    Case("ScatterNd", [I32([[0, 1], [1, 0]]), f(2), I32([2, 2])]),
    Case("ScatterNd", [np.zeros((0, 1), I32), f(0, 2), I32([3, 2])]),
    Case("ScatterNd", [I32([[4]]), f(1, 2), I32([4, 2])], error=BAD),
    Case("ScatterNd", [I32([[0]]), f(1, 3), I32([4, 2])], error=BAD),
    Case("ScatterNd", [I32([[0]]), f(2, 2), I32([4, 2])], error=BAD),
    *(
        Case("ScatterNdNonAliasingAdd", [sample(dt, (4, 2)), I32([[0], [2], [0]]), sample(dt, (3, 2), seed=1)])
        for dt in (*NUMBERS, "bool")
    ),
    *(
        Case(op, [sample(dt, (4, 2)), np.array([[0], [2], [3]], it), sample(dt, (3, 2), seed=1)])
        for op in (
            "TensorScatterUpdate",
            "TensorScatterAdd",
            "TensorScatterSub",
            "TensorScatterMin",
            "TensorScatterMax",
        )
        for dt in (*REALS, "string", *COMPLEX, "bool")
        for it in (I32, I64)
        if dt in REALS or op == "TensorScatterUpdate" or (dt in COMPLEX and op[-3:] in ("Add", "Sub"))
    ),
    *(
        Case(op, [f(4, 2), I32([[0], [2], [0]]), f(3, 2, seed=1)])
        for op in ("TensorScatterAdd", "TensorScatterSub", "TensorScatterMin", "TensorScatterMax")
    ),
    *(Case(op, [f(4, 2), I32([[4]]), f(1, 2)], error=BAD) for op in ("TensorScatterUpdate", "TensorScatterAdd")),
    Case("TensorScatterUpdate", [f(4, 2), I32([[0]]), f(1, 3)], error=BAD),
    Case("TensorScatterAdd", [f(4, 2), np.zeros((0, 1), I32), f(0, 2)]),
    *(Case("DynamicPartition", [sample(dt, (4, 2)), I32([0, 2, 0, 1])], {"num_partitions": 4}) for dt in ANY),
    Case("DynamicPartition", [f(2, 3), I32([[0, 1, 0], [1, 1, 0]])], {"num_partitions": 2}),
    Case("DynamicPartition", [f(2), I32([0, 2])], {"num_partitions": 2}, error=BAD),
    Case("DynamicPartition", [f(2), I32([0])], {"num_partitions": 2}, error=BAD),
    *(
        Case(op, [[I32([0, 2]), I32([[1], [3]])], [sample(dt, (2, 2)), sample(dt, (2, 1, 2), seed=1)]])
        for op in ("DynamicStitch", "ParallelDynamicStitch")
        for dt in ANY
    ),
    Case("DynamicStitch", [[I32([0, 1]), I32([1, 2])], [f(2, 2), f(2, 2, seed=1)]]),
    Case("DynamicStitch", [[I32([0, 1]), I32([1, 2])], [f(2, 2), f(2, 3)]], error=BAD),
    Case("DynamicStitch", [[I32([0, -1])], [f(2, 2)]], error=BAD),
    Case("DynamicStitch", [[np.zeros(0, I32)], [f(0, 2)]]),
]

SEGMENT = [
    *(
        Case(op, [sample(dt, (5, 2), 1, 3), np.array([0, 2, 0, -1, 3], it), np.array(5, it)])
        for op in ("UnsortedSegmentSum", "UnsortedSegmentProd")
        for dt in (*NUMBERS,)
        for it in (I32, I64)
    ),
    *(
        Case(op, [sample(dt, (5, 2)), np.array([0, 2, 0, -1, 3], it), np.array(5, it)])
        for op in ("UnsortedSegmentMax", "UnsortedSegmentMin")
        for dt in REALS
        for it in (I32, I64)
    ),
    Case("UnsortedSegmentSum", [f(2, 3, 2), I32([[0, 1, 0], [2, 1, 1]]), I32(3)]),
    Case("UnsortedSegmentSum", [f(3), I32([0, 5, 1]), I32(3)], error=BAD),
    Case("UnsortedSegmentSum", [f(3), I32([0, 1]), I32(3)], error=BAD),
    Case("UnsortedSegmentSum", [f(3), I32([0, 1, 1]), I32(-3)], error=BAD),
    Case("UnsortedSegmentMax", [f(0, 2), np.zeros(0, I32), I32(2)]),
    *(
        Case(op, [sample(dt, (5, 2), 1, 3), np.array([0, 0, 1, 3, 3], it)])
        for op in ("SegmentSum", "SegmentProd")
        for dt in NUMBERS
        for it in (I32, I64)
    ),
    *(
        Case(op, [sample(dt, (5, 2)), np.array([0, 0, 1, 3, 3], it)])
        for op in ("SegmentMax", "SegmentMin", "SegmentMean")
        for dt in REALS
        for it in (I32, I64)
    ),
    *(Case("SegmentMean", [sample(dt, (5, 2)), I32([0, 0, 1, 3, 3])]) for dt in COMPLEX),
    *(Case(op, [f(3), I32([0, 2, 1])], error=BAD) for op in ("SegmentSum", "SegmentMax", "SegmentMean")),
    *(Case(op, [f(3), I32([0, 1])], error=BAD) for op in ("SegmentSum", "SegmentMax")),
    Case("SegmentSum", [f(3), I32([-1, 0, 1])], error=BAD),
    Case("SegmentSum", [f(0, 2), np.zeros(0, I32)]),
    *(
        Case(op, [sample(dt, (5, 2)), np.array([0, 4, 2, 2], it), np.array([0, 0, 1, 3], st)])
        for op in ("SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN")
        for dt in FLOATS
        for it, st in ((I32, I32), (I64, I64), (I32, I64))
    ),
    *(
        Case("SparseSegmentSum", [sample(dt, (5, 2)), I32([0, 4, 2]), I32([0, 0, 1])])
        for dt in ("int32", "int64", "uint8")
    ),
    *(
        Case(op, [sample(dt, (5, 2)), I32([0, 4, 2, 2]), I32([0, 0, 1, 3]), np.array(n, it)])
        for op in (
            "SparseSegmentSumWithNumSegments",
            "SparseSegmentMeanWithNumSegments",
            "SparseSegmentSqrtNWithNumSegments",
        )
        for dt in ("float32", "float64", "bfloat16")
        for n, it in ((4, I32), (6, I64))
    ),
    Case("SparseSegmentSumWithNumSegments", [f(5, 2), I32([0, 1]), I32([0, 3]), I32(3)], error=BAD),
    Case("SparseSegmentSum", [f(5, 2), I32([0, 5]), I32([0, 0])], error=BAD),
    Case("SparseSegmentSum", [f(5, 2), I32([0, 1]), I32([1, 0])], error=BAD),
    Case("SparseSegmentMean", [f(5, 2), I32([0, 1, 2]), I32([1, 0])], error=BAD),
    *(
        Case(op, [sample(dt, (3, 2)), I32([0, 4, 2, 2]), I32([0, 0, 1, 2]), I32(6)])
        for op in ("SparseSegmentSumGrad", "SparseSegmentMeanGrad", "SparseSegmentSqrtNGrad")
        for dt in FLOATS
    ),
    Case("SparseSegmentSumGrad", [f(3, 2), I32([0, 6]), I32([0, 0]), I32(6)], error=BAD),
    *(
        Case(op, [sample(dt, (3, 2)), I32([0, 4, 2, 2]), I32([0, 0, 1, 2]), I32(6)])
        for op in ("SparseSegmentSumGradV2", "SparseSegmentMeanGradV2", "SparseSegmentSqrtNGradV2")
        for dt in ("float32", "float64")
    ),
    *(
        Case(op, [grad, indices, ids, I32(rows)], error=BAD, id=f"{op}-{what}")
        for op in ("SparseSegmentSumGrad", "SparseSegmentMeanGradV2", "SparseSegmentSqrtNGradV2")
        for what, grad, indices, ids, rows in (
            ("scalar gradient", f(), I32([0, 1]), I32([0, 1]), 3),
            ("scalar indices", f(2, 2), I32(0), I32([0]), 3),
            ("scalar ids", f(2, 2), I32([0]), I32(0), 3),
            ("matrices", f(2, 2), I32([[0]]), I32([[0]]), 3),
            ("fewer than no rows", f(2, 2), I32([0]), I32([0]), -1),
        )
    ),
]

SORT = [
    *(
        Case(op, [np.array([3, 1, 3, 2, 1, 1]).astype(dt)], {"out_idx": out})
        for op in ("Unique", "UniqueWithCounts")
        for dt in (*REALS, "bool")
        for out in (I32, I64)
    ),
    Case("Unique", [np.array([b"x", b"", b"x", b"a"], object)]),
    Case("Unique", [F([np.nan, 1, np.nan, -0.0, 0.0])]),
    Case("Unique", [f(2, 2)], error=BAD),
    Case("Unique", [f(0)]),
    *(
        Case(op, [np.array([[1, 2], [3, 4], [1, 2]]).astype(dt), I64([axis])])
        for op in ("UniqueV2", "UniqueWithCountsV2")
        for dt in ("float32", "int32", "int64", "uint8")
        for axis in (0, 1, -1)
    ),
    Case("UniqueV2", [np.array([[b"a", b"b"], [b"a", b"b"]], object), I32([0])]),
    Case("UniqueV2", [I32([3, 1, 3]), np.zeros(0, I32)]),
    Case("UniqueV2", [I32([3, 1, 3]), I32([1])], error=BAD),
    *(
        Case("ListDiff", [np.array([1, 2, 3, 4, 2]).astype(dt), np.array([1, 3]).astype(dt)], {"out_idx": out})
        for dt in REALS
        for out in (I32, I64)
    ),
    Case("ListDiff", [np.array([b"a", b"b"], object), np.array([b"b"], object)]),
    Case("ListDiff", [f(2, 2), f(2)], error=BAD),
    *(Case("TopKV2", [sample(dt, (3, 7)), I32(k)]) for dt in REALS for k in (0, 1, 3, 7)),
    Case("TopKV2", [f(7), I32(3)], {"sorted": False}, normalize=sorted_rows),
    Case("TopKV2", [f(2, 2), I32(3)], error=BAD),
    Case("TopKV2", [f(2, 2), I32(-1)], error=BAD),
    Case("TopKV2", [F(2), I32(0)], error=BAD),
    *(
        Case("TopKV2", [f(7), np.array(2, kt)], {"Tk": kt, "index_type": it})
        for kt in (np.int16, I64)
        for it in (np.int16, I32, I64)
    ),
    *(Case("NthElement", [sample(dt, (3, 5)), I32(1)], {"reverse": r}) for dt in REALS for r in (False, True)),
    Case("NthElement", [f(3, 5), I32(5)], error=BAD),
    *(Case("InTopKV2", [f(4, 5), np.array([0, 4, 2, 5], it), np.array(2, it)]) for it in (I32, I64)),
    *(Case("InTopK", [f(4, 5), np.array([0, 4, 2, 1], it)], {"k": 2}) for it in (I32, I64)),
    Case("InTopK", [F([[1, 1, 0], [np.nan, 1, 2], [np.inf, 1, 2]]), I32([1, 1, 2])], {"k": 2}),
    Case("InTopK", [F([[1, 1, 1, 1], [2, 2, 1, np.nan], [0, np.nan, 5, 1]]), I32([3, 1, 2])], {"k": 3}),
    Case("InTopK", [f(4, 5), I32([0])], {"k": 2}, error=BAD),
    *(
        Case(op, [np.sort(sample(dt, (2, 6)), axis=-1), sample(dt, (2, 4), seed=1)], {"out_type": out})
        for op in ("LowerBound", "UpperBound")
        for dt in ("float32", "float64", "int32", "int64", "int8", "uint8", "int16", "float16", "bfloat16")
        for out in (I32, I64)
    ),
    Case("LowerBound", [f(2, 3), f(3, 3)], error=BAD),
    *(
        Case("Bincount", [I32([1, 1, 3, 7]), I32(5), sample(dt, (4,))])
        for dt in ("float32", "float64", "int32", "int64")
    ),
    *(Case("Bincount", [I32([1, 1, 3]), I32(5), np.zeros(0, dt)]) for dt in ("float32", "int64")),
    Case("Bincount", [I32([-1]), I32(5), np.zeros(0, F)], error=BAD),
    Case("Bincount", [I32([1]), I32(-5), np.zeros(0, F)], error=BAD),
    *(
        Case("DenseBincount", [np.array(v, it), np.array(5, it), np.zeros(0, dt)], {"binary_output": b})
        for v in ([1, 1, 3, 7], [[1, 1], [3, 0]])
        for it in (I32, I64)
        for dt in ("float32", "float64", "int32", "int64")
        for b in (False, True)
    ),
    *(
        Case("DenseBincount", [I32([[1, 1], [3, 0]]), I32(5), sample(dt, (2, 2))])
        for dt in ("float32", "float64", "int32", "int64")
    ),
    Case("DenseBincount", [I32([-1]), I32(5), np.zeros(0, F)], error=BAD),
]

DIAG = [
    *(
        Case("Diag", [sample(dt, s)])
        for dt in ("float32", "float64", "int32", "int64", *COMPLEX, "float16")
        for s in ((3,), (2, 3))
    ),
    *(
        Case("DiagPart", [sample(dt, s)])
        for dt in ("float32", "float64", "int32", "int64", *COMPLEX, "float16")
        for s in ((3, 3), (2, 3, 2, 3))
    ),
    Case("Diag", [F(1)], error=BAD),
    Case("DiagPart", [f(2, 3)], error=BAD),
    *(
        Case("MatrixBandPart", [sample(dt, (2, 4, 5)), np.array(low, it), np.array(up, it)])
        for dt in (*NUMBERS, "bool")
        for low, up, it in ((1, 0, I64), (-1, 2, I32), (0, -1, I64))
    ),
    Case("MatrixBandPart", [f(4, 5), I64(5), I64(0)], error=BAD),
    *(Case("MatrixDiag", [sample(dt, (2, 3))]) for dt in (*NUMBERS, "bool")),
    *(Case("MatrixDiagPart", [sample(dt, (2, 3, 4))]) for dt in (*NUMBERS, "bool")),
    *(Case("MatrixSetDiag", [sample(dt, (2, 3, 4)), sample(dt, (2, 3), seed=1)]) for dt in (*NUMBERS, "bool")),
    Case("MatrixSetDiag", [f(2, 3, 4), f(2, 4)], error=BAD),
    *(
        Case(op, [f(2, 4, 5), I32(k), F(9)], {"align": align} if op[-1] == "3" else {})
        for op in ("MatrixDiagPartV2", "MatrixDiagPartV3")
        for k in (0, 2, [-2, 1], [1, 3], [-3, -1], [-3, 4])
        for align in ("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT")
        if op[-1] == "3" or align == "RIGHT_LEFT"
    ),
    *(Case("MatrixDiagPartV3", [sample(dt, (2, 4, 5)), I32([-1, 2]), sample(dt)]) for dt in (*NUMBERS, "bool")),
    *(
        Case(op, [f(2, 4, 5), I32(k), F(0)], error=BAD)
        for op in ("MatrixDiagPartV2", "MatrixDiagPartV3")
        for k in (5, [2, 1], [-4, 0])
    ),
    *(
        Case(op, [f(2, 4, 5), f(*d, seed=2), I32(k)], {"align": align} if op[-1] == "3" else {})
        for op in ("MatrixSetDiagV2", "MatrixSetDiagV3")
        for k, d in ((0, (2, 4)), (2, (2, 3)), ([-2, 1], (2, 4, 4)), ([1, 3], (2, 3, 4)), ([-3, -1], (2, 3, 3)))
        for align in ("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT")
        if op[-1] == "3" or align == "RIGHT_LEFT"
    ),
    Case("MatrixSetDiagV3", [f(2, 4, 5), f(2, 3), I32(0)], error=BAD),
    *(
        Case(op, [f(*d), I32(k), I32(r), I32(c), F(7)], {"align": align} if op[-1] == "3" else {})
        for op in ("MatrixDiagV2", "MatrixDiagV3")
        for d, k, r, c in (
            ((2, 3), 0, -1, -1),
            ((2, 3), 2, -1, -1),
            ((3,), -1, 4, 3),
            ((2, 3, 4), [-1, 1], -1, -1),
            ((3, 4), [0, 2], 4, 6),
            ((3, 3), [-3, -1], 4, -1),
            ((4, 4), [-2, 1], 4, 5),
        )
        for align in ("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT")
        if op[-1] == "3" or align == "RIGHT_LEFT"
    ),
    *(
        Case("MatrixDiagV3", [sample(dt, (3, 4)), I32([-1, 1]), I32(-1), I32(-1), sample(dt)])
        for dt in (*NUMBERS, "bool")
    ),
    Case("MatrixDiagV3", [f(3), I32(0), I32(2), I32(3), F(0)], error=BAD),
    Case("MatrixDiagV3", [f(2, 3), I32([0, 2]), I32(-1), I32(-1), F(0)], error=BAD),
    *(
        Case(op, inputs, graph=True, producer=12)
        for op, inputs in (
            ("BatchMatrixDiag", [f(2, 3)]),
            ("BatchMatrixDiagPart", [f(2, 3, 4)]),
            ("BatchMatrixSetDiag", [f(2, 3, 4), f(2, 3)]),
            ("BatchMatrixBandPart", [f(2, 3, 4), I64(1), I64(1)]),
        )
    ),
]

CASES = [*GATHER, *SEGMENT, *SORT, *DIAG]


@suite(CASES)
def test_index(case: Case, device: str, tf: ModuleType) -> None:
    check(case, device)


@pytest.mark.parametrize("op", ["SegmentSum", "SegmentProd", "SegmentMax", "SegmentMin"])
def test_segments_of_given_number(op: str) -> None:
    """TensorFlow has the V2 ops for XLA only; they do what the unsorted ones do."""
    inputs = [f(5, 2), I32([0, 0, 1, 3, 3]), I32(6)]
    check_against(Case(op + "V2", inputs), run_ours(Case("Unsorted" + op, inputs)))
    status, _ = outcome(lambda: run_ours(Case(op + "V2", [f(2), I32([0, 6]), I32(6)])))
    assert status == BAD


def test_top_k_with_attribute() -> None:
    """TensorFlow's kernel of V1 asks for an attribute that the op does not have, so it can never run there."""
    for mine, expected in zip(
        run_ours(Case("TopK", [f(3, 7)], {"k": 3})), run_ours(Case("TopKV2", [f(3, 7), I32(3)])), strict=True
    ):
        np.testing.assert_array_equal(mine, expected)
