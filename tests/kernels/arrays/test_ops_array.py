"""Shapes, joining, slicing, padding, making of tensors against TensorFlow."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest

from tests.kernels.op_suite import COMPLEX, FLOATS, NUMBERS, REALS, SAME, Case, check, run_ours, sample, suite, table

pytestmark = pytest.mark.tensorflow

BAD = "INVALID_ARGUMENT"
ANY = (*NUMBERS, "bool", "string")
F = np.float32


def f(*shape: int, seed: int = 0) -> np.ndarray:
    return sample("float32", shape, seed=seed)


def strided(
    x: np.ndarray, first: list[int], last: list[int], step: list[int], error: str | None = None, **masks: int
) -> Case:
    attrs = {f"{key}_mask": value for key, value in masks.items()}
    return Case("StridedSlice", [x, np.int32(first), np.int32(last), np.int32(step)], attrs, error=error)


STRIDED = [strided(sample(dt, (5, 4)), [1, 0], [4, 4], [2, 1]) for dt in ANY] + [
    strided(f(5, 4, 3), [0], [1], [1], shrink_axis=1),
    strided(f(5, 4, 3), [-1, 1], [0, 3], [1, 1], shrink_axis=1),
    strided(f(5, 4, 3), [0, 1], [0, 2], [1, 1], ellipsis=1, shrink_axis=2),
    strided(f(5, 4, 3), [0, 0, 0], [0, 0, 0], [1, 1, 1], ellipsis=2, new_axis=4, begin=1, end=1),
    strided(f(5, 4, 3), [4, 3], [0, 0], [-1, -2], begin=2, end=2),
    strided(f(5, 4, 3), [4], [-10], [-1]),
    strided(f(5, 4, 3), [-100, 2], [100, 1], [1, 1]),
    strided(f(5, 4, 3), [0, 0], [0, 0], [1, 1], begin=3, end=3),
    strided(f(5, 4, 3), [0, 0, 0, 1], [0, 0, 0, 2], [1, 1, 1, 1], new_axis=1, begin=6, end=6, shrink_axis=8),
    strided(f(5, 4, 3), [0, 0], [0, 0], [1, 1], ellipsis=1, new_axis=2),
    strided(f(5, 4, 3), [1, 2, 0], [2, 3, 1], [1, 1, 1], shrink_axis=7),
    strided(f(5), [], [], []),
    strided(F(3), [], [], []),
    strided(F(3), [0], [0], [1], new_axis=1),
    strided(f(0, 3), [0], [2], [1]),
    strided(f(5, 4), [5], [6], [1], error=BAD, shrink_axis=1),
    strided(f(5, 4), [0], [1], [0], error=BAD),
    strided(f(5, 4), [0], [1], [-1], error=BAD, shrink_axis=1),
    strided(f(5, 4), [0, 0, 0], [1, 1, 1], [1, 1, 1], error=BAD),
    strided(f(5, 4), [0, 0], [1, 1], [1, 1], error=BAD, ellipsis=3),
    strided(f(5, 4), [0, 0], [1], [1, 1], error=BAD),
]

CASES = [
    *STRIDED,
    *(Case("Reshape", [sample(dt, (2, 6)), np.array([3, -1], it)]) for dt in ANY for it in (np.int32, np.int64)),
    Case("Reshape", [f(2, 6), np.int32([])], error=BAD),
    Case("Reshape", [F(2), np.int32([])]),
    Case("Reshape", [F(2), np.int32([1, 1])]),
    Case("Reshape", [f(0, 3), np.int32([3, 0])]),
    Case("Reshape", [f(0, 3), np.int32([3, -1])]),
    Case("Reshape", [f(0, 3), np.int32([0, -1])]),
    Case("Reshape", [f(2, 6), np.int32([0, -1])], error=BAD),
    Case("Reshape", [f(2, 6), np.int32([5, -1])], error=BAD),
    Case("Reshape", [f(2, 6), np.int32([-1, -1])], error=BAD),
    Case("Reshape", [f(2, 6), np.int32([-2, 6])], error=BAD),
    Case("Reshape", [f(2, 6), np.int32([[12]])], error=BAD),
    *(Case("Shape", [sample(dt, (2, 3))], {"out_type": out}) for dt in ANY for out in ("int32", "int64")),
    Case("Shape", [F(1)]),
    *(Case("ShapeN", [[f(2, 3), f(), f(0)]], {"out_type": out}) for out in ("int32", "int64")),
    *(
        Case("Size", [sample("float32", s)], {"out_type": out})
        for s in ((2, 3), (), (0, 4))
        for out in ("int32", "int64")
    ),
    *table("Rank", ("float32", "string"), [(), (2, 3)]),
    *(
        Case("ExpandDims", [sample(dt, (2, 3)), np.array(axis, it)])
        for dt in ("float32", "string", "int8")
        for axis in (0, 1, 2, -1, -3)
        for it in (np.int32, np.int64)
    ),
    Case("ExpandDims", [f(2, 3), np.int32(3)], error=BAD),
    Case("ExpandDims", [f(2, 3), np.int32(-4)], error=BAD),
    Case("ExpandDims", [f(2, 3), np.int32([1, 2])], error=BAD),
    *(
        Case("Squeeze", [sample("float32", s)], {"squeeze_dims": d})
        for s, d in (
            ((1, 2, 1), []),
            ((1, 2, 1), [0]),
            ((1, 2, 1), [-1]),
            ((1, 2, 1), [0, 2]),
            ((2, 3), []),
            ((), []),
            ((1,), [0]),
        )
    ),
    Case("Squeeze", [f(2, 1)], {"squeeze_dims": [0]}, error=BAD),
    Case("Squeeze", [f(2, 1)], {"squeeze_dims": [2]}, error=BAD),
    *(
        Case(op, [sample(dt, (2, 3, 4)), np.array(p, it)])
        for op in ("Transpose", "ConjugateTranspose")
        for dt in ANY
        for p, it in (([2, 0, 1], np.int32), ([0, 2, 1], np.int64))
    ),
    Case("Transpose", [F(1), np.int32([])]),
    Case("Transpose", [f(2, 3), np.int32([0, 0])], error=BAD),
    Case("Transpose", [f(2, 3), np.int32([0])], error=BAD),
    Case("Transpose", [f(2, 3), np.int32([0, 2])], error=BAD),
    Case("Transpose", [f(2, 3), np.int32([-1, -2])]),
    *(Case("InvertPermutation", [np.array([3, 0, 2, 1], it)]) for it in (np.int32, np.int64)),
    Case("InvertPermutation", [np.int32([0, 0])], error=BAD),
    Case("InvertPermutation", [np.int32([0, 2])], error=BAD),
    Case("InvertPermutation", [np.int32([[0]])], error=BAD),
    *(
        Case("BroadcastTo", [sample(dt, s), np.int32(t)])
        for dt in (*NUMBERS, "bool")
        for s, t in (((3,), [2, 3]), ((2, 1), [4, 2, 3]), ((), [2]), ((1,), [0]))
    ),
    Case("BroadcastTo", [f(2, 3), np.int32([3])], error=BAD),
    Case("BroadcastTo", [f(2), np.int32([3])], error=BAD),
    *(
        Case("BroadcastArgs", [np.array(a, it), np.array(b, it)])
        for it in (np.int32, np.int64)
        for a, b in (([2, 1], [3]), ([], [2]), ([1], [0]))
    ),
    Case("BroadcastArgs", [np.int32([2]), np.int32([3])], error=BAD),
    *(
        Case("BroadcastGradientArgs", [np.array(a, it), np.array(b, it)])
        for it in (np.int32, np.int64)
        for a, b in (
            ([2, 3], [3]),
            ([2, 1], [1, 3]),
            ([2, 3], [2, 3]),
            ([], [2, 3]),
            ([1], [1, 1]),
            ([1, 2], [2]),
            ([1, 1], [1]),
            ([], []),
            ([2, 1, 3], [1, 3]),
            ([0, 1], [1, 0]),
        )
    ),
    Case("BroadcastGradientArgs", [np.int32([2]), np.int32([3])], error=BAD),
    Case("EnsureShape", [f(2, 3)], {"shape": (2, None)}),
    Case("EnsureShape", [f(2, 3)], {"shape": None}),
    Case("EnsureShape", [f(2, 3)], {"shape": (3, None)}, error=BAD),
    # joining and splitting
    *(
        Case("Pack", [[sample(dt, (2, 3), seed=i) for i in range(3)]], {"axis": axis})
        for dt in ANY
        for axis in (0, 1, -1)
    ),
    Case("Pack", [[F(1), F(2)]]),
    Case("Pack", [[f(2, 0), f(2, 0)]], {"axis": 1}),
    Case("Pack", [[f(2), f(3)]], error=BAD),
    Case("Pack", [[f(2), f(2)]], {"axis": 2}, error=BAD),
    *(
        Case("Unpack", [sample(dt, (3, 2, 4))], {"num": n, "axis": axis})
        for dt in ANY
        for axis, n in ((0, 3), (1, 2), (-1, 4))
    ),
    Case("Unpack", [f(3, 2)], {"num": 2}, error=BAD),
    Case("Unpack", [f(3)], {"num": 3}),
    *(
        Case("ConcatV2", [[sample(dt, (2, 3)), sample(dt, (2, 2), seed=1)], np.array(axis, it)])
        for dt in ANY
        for axis in (1, -1)
        for it in (np.int32, np.int64)
    ),
    Case("ConcatV2", [[f(0, 3), f(2, 3)], np.int32(0)]),
    Case("ConcatV2", [[f(2, 0), f(1, 0)], np.int32(0)]),
    Case("ConcatV2", [[f(0, 2, 0), f(0, 1, 0)], np.int32(1)]),
    Case("ConcatV2", [[f(2, 3), f(2, 2)], np.int32(0)], error=BAD),
    Case("ConcatV2", [[f(2, 3), f(2)], np.int32(0)], error=BAD),
    Case("ConcatV2", [[f(2, 3), f(2, 3)], np.int32(2)], error=BAD),
    *(Case("Concat", [np.int32(0), [sample(dt, (2, 3)), sample(dt, (1, 3))]]) for dt in ("float32", "string", "int64")),
    *(Case("ConcatOffset", [np.int32(1), [np.array([2, s], it) for s in (3, 4, 5)]]) for it in (np.int32, np.int64)),
    Case("ConcatOffset", [np.int32(1), [np.int32([2, 3]), np.int32([3, 4])]], error=BAD),
    Case("ConcatOffset", [np.int32(2), [np.int32([2, 3]), np.int32([3, 4])]], error=BAD),
    *(
        Case("Split", [np.int32(axis), sample(dt, (4, 6))], {"num_split": n})
        for dt in ANY
        for axis, n in ((0, 2), (1, 3), (-1, 2))
    ),
    Case("Split", [np.int32(0), f(5, 2)], {"num_split": 2}, error=BAD),
    Case("Split", [np.int32(2), f(4, 2)], {"num_split": 2}, error=BAD),
    *(
        Case("SplitV", [sample(dt, (4, 6)), np.array(sizes, it), np.int32(1)], {"num_split": 3})
        for dt in ("float32", "string", "bool", "int8")
        for sizes in ([1, 2, 3], [1, -1, 0])
        for it in (np.int32, np.int64)
    ),
    Case("SplitV", [f(4, 6), np.int32([1, 2]), np.int32(1)], {"num_split": 2}, error=BAD),
    Case("SplitV", [f(4, 6), np.int32([-1, -1]), np.int32(1)], {"num_split": 2}, error=BAD),
    Case("SplitV", [f(4, 6), np.int32([3, -2]), np.int32(1)], {"num_split": 2}, error=BAD),
    # slicing
    *(
        Case("Slice", [sample(dt, (4, 5)), np.array([1, 2], it), np.array([2, -1], it)])
        for dt in ANY
        for it in (np.int32, np.int64)
    ),
    Case("Slice", [f(4, 5), np.int32([0, 0]), np.int32([0, 5])]),
    Case("Slice", [F(3), np.int32([]), np.int32([])]),
    Case("Slice", [f(4), np.int32([3]), np.int32([2])], error=BAD),
    Case("Slice", [f(4), np.int32([5]), np.int32([0])], error=BAD),
    Case("Slice", [f(4), np.int32([-1]), np.int32([1])], error=BAD),
    Case("Slice", [f(4, 5), np.int32([0]), np.int32([2])], error=BAD),
    *(
        Case(
            "StridedSliceGrad",
            [np.array([5, 4], it), np.array(b, it), np.array(e, it), np.array(s, it), sample(dt, d)],
            m,
        )
        for dt in (*FLOATS, "complex64", "int32", "bool")
        for it in (np.int32, np.int64)
        for b, e, s, d, m in (
            ([1, 0], [4, 4], [2, 1], (2, 4), {}),
            ([-1], [0], [1], (4,), {"shrink_axis_mask": 1}),
            ([0, 3], [0, 0], [1, -1], (5, 1, 3), {"begin_mask": 1, "end_mask": 1}),
        )
        if len(d) != 3
    ),
    Case("StridedSliceGrad", [np.int32([5, 4]), np.int32([0]), np.int32([2]), np.int32([1]), f(3, 4)], error=BAD),
    *(
        Case(
            "TensorStridedSliceUpdate",
            [sample(dt, (5, 4)), np.int32([1, 0]), np.int32([4, 4]), np.int32([2, 1]), sample(dt, (2, 4), seed=1)],
        )
        for dt in ("float32", "int64", "string", "bool")
    ),
    # padding and friends
    *(Case("Pad", [sample(dt, (2, 3)), np.array([[1, 0], [2, 1]], it)]) for dt in ANY for it in (np.int32, np.int64)),
    *(Case("PadV2", [sample(dt, (2, 3)), np.int32([[1, 0], [2, 1]]), sample(dt)]) for dt in ANY),
    Case("Pad", [f(2, 3), np.int32([[1, 0]])], error=BAD),
    Case("Pad", [f(2, 3), np.int32([[1, 0], [-1, 0]])], error=BAD),
    Case("Pad", [F(3), np.zeros((0, 2), np.int32)]),
    *(
        Case("MirrorPad", [sample(dt, (3, 4)), np.array([[2, 1], [0, 2]], it)], {"mode": mode})
        for dt in NUMBERS
        for mode in ("REFLECT", "SYMMETRIC")
        for it in (np.int32, np.int64)
    ),
    Case("MirrorPad", [f(3, 4), np.int32([[3, 1], [0, 2]])], {"mode": "REFLECT"}, error=BAD),
    Case("MirrorPad", [f(3, 4), np.int32([[3, 1], [0, 4]])], {"mode": "SYMMETRIC"}),
    *(
        Case("MirrorPadGrad", [sample(dt, (6, 6)), np.int32([[2, 1], [0, 2]])], {"mode": mode})
        for dt in (*FLOATS, *COMPLEX, "int32")
        for mode in ("REFLECT", "SYMMETRIC")
    ),
    *(
        Case("Tile", [sample(dt, (2, 3)), np.array([2, 1], it)])
        for dt in (*FLOATS, *COMPLEX, "int32", "int64", "int16", "int8", "uint8", "bool", "string")
        for it in (np.int32, np.int64)
    ),
    Case("Tile", [f(2, 3), np.int32([0, 2])]),
    Case("Tile", [F(2), np.int32([])]),
    Case("Tile", [f(2, 3), np.int32([2])], error=BAD),
    Case("Tile", [f(2, 3), np.int32([2, -1])], error=BAD),
    *(
        Case("Reverse", [sample(dt, (2, 3)), np.array([True, False])])
        for dt in (*FLOATS, *COMPLEX, "int32", "int64", "uint8", "bool", "string")
    ),
    Case("Reverse", [f(2, 3), np.array([True])], error=BAD),
    *(Case("ReverseV2", [sample(dt, (2, 3)), np.array([-1], it)]) for dt in ANY for it in (np.int32, np.int64)),
    Case("ReverseV2", [f(2, 3), np.int32([0, 0])], error=BAD),
    Case("ReverseV2", [f(2, 3), np.int32([2])], error=BAD),
    Case("ReverseV2", [f(2, 3), np.zeros(0, np.int32)]),
    *(
        Case("ReverseSequence", [sample(dt, (3, 4, 2)), np.array(n, it)], {"seq_dim": s, "batch_dim": b})
        for dt in ("float32", "int32", "complex64", "string", "bool", "uint8")
        for it in (np.int32, np.int64)
        for n, s, b in (([0, 2, 4], 1, 0), ([1, 3, 2, 0], 0, 1), ([2, 4], 1, 2))
    ),
    Case("ReverseSequence", [f(3, 4), np.int32([0, 2, 5])], {"seq_dim": 1}, error=BAD),
    Case("ReverseSequence", [f(3, 4), np.int32([0, 2])], {"seq_dim": 1}, error=BAD),
    *(
        Case("Roll", [sample(dt, (3, 4)), np.array(s, it), np.array(a, it)])
        for dt in ("float32", "int64", "string", "bool")
        for it in (np.int32, np.int64)
        for s, a in ((1, 0), ([1, -6], [0, 1]), ([2, 1], [1, 1]))
    ),
    Case("Roll", [f(3, 4), np.int32(1), np.int32(2)], error=BAD),
    *(Case("SpaceToBatchND", [sample(dt, (2, 3, 4, 2)), np.int32([2, 2]), np.int32([[1, 0], [0, 0]])]) for dt in REALS),
    *(Case("BatchToSpaceND", [sample(dt, (8, 2, 2, 2)), np.int32([2, 2]), np.int32([[1, 0], [0, 1]])]) for dt in REALS),
    Case("SpaceToBatchND", [f(2, 3, 4, 2), np.int32([2, 2]), np.int32([[0, 0], [0, 0]])], error=BAD),
    Case("SpaceToBatchND", [f(2, 6), np.int64([3]), np.int64([[0, 0]])]),
    Case("BatchToSpaceND", [f(6, 2, 2, 2), np.int32([2, 2]), np.int32([[0, 0], [0, 0]])], error=BAD),
    *(
        Case("SpaceToBatch", [sample(dt, (1, 4, 4, 2)), np.int32([[0, 0], [1, 1]])], {"block_size": 2})
        for dt in ("float32", "int32")
    ),
    *(
        Case("BatchToSpace", [sample(dt, (4, 2, 2, 2)), np.int32([[0, 1], [1, 0]])], {"block_size": 2})
        for dt in ("float32", "int32")
    ),
    *(
        Case("SpaceToDepth", [sample(dt, (2, 4, 6, 3))], {"block_size": 2})
        for dt in ("float32", "float64", "float16", "bfloat16", "int32", "uint8")
    ),
    *(
        Case("DepthToSpace", [sample(dt, (2, 2, 3, 8))], {"block_size": 2})
        for dt in ("float32", "float64", "float16", "bfloat16", "int32", "uint8")
    ),
    Case("SpaceToDepth", [f(2, 3, 6, 3)], {"block_size": 2}, error=BAD),
    Case("DepthToSpace", [f(2, 3, 6, 3)], {"block_size": 2}, error=BAD),
    # making
    *(Case("Fill", [np.array([2, 3], it), sample(dt)]) for dt in ANY for it in (np.int32, np.int64)),
    Case("Fill", [np.int32([]), F(1)]),
    Case("Fill", [np.int32([-1]), F(1)], error=BAD),
    Case("Fill", [np.int32(2), F([1])]),
    Case("Fill", [np.int32([2]), f(2)], error=BAD),
    *table("ZerosLike", ANY, [(2, 3), ()]),
    *table("OnesLike", (*NUMBERS, "bool"), [(2, 3), ()]),
    *(Case("Empty", [np.int32([2, 3])], {"dtype": dt, "init": True}) for dt in ("float32", "int32", "bool", "string")),
    *(
        Case("Range", [np.array(a, dt), np.array(b, dt), np.array(c, dt)])
        for dt in ("float32", "float64", "int32", "int64")
        for a, b, c in ((0, 5, 1), (1, 10, 3), (5, 0, -2), (3, 3, 1), (-4, 4, 3))
    ),
    *(Case("Range", [np.array(0, dt), np.array(1, dt), np.array(0.1, dt)]) for dt in (np.float32, np.float64)),
    Case("Range", [np.int32(0), np.int32(5), np.int32(0)], error=BAD),
    Case("Range", [np.int32(5), np.int32(0), np.int32(1)], error=BAD),
    Case("Range", [np.int32([5]), np.int32(7), np.int32(1)]),
    Case("Range", [np.int32([5, 6]), np.int32(7), np.int32(1)], error=BAD),
    *(
        Case("LinSpace", [np.array(1, dt), np.array(9, dt), np.array(n, it)])
        for dt in ("float32", "float64")
        for n in (1, 2, 7)
        for it in (np.int32, np.int64)
    ),
    Case("LinSpace", [F(1), F(9), np.int32(0)], error=BAD),
    *(
        Case(
            "OneHot",
            [np.array([[0, 2], [-1, 5]]).astype(it), np.int32(3), sample(dt, seed=3), sample(dt, seed=4)],
            {"axis": axis},
        )
        for dt in ANY
        for axis in (-1, 0)
        for it in (np.int32, np.int64, np.uint8)
        if it != np.uint8 or dt == "float32"
    ),
    Case("OneHot", [np.int32([1]), np.int32(-1), F(1), F(0)], error=BAD),
    Case("OneHot", [np.int32([1]), np.int32(2), F(1), F(0)], {"axis": 2}, error=BAD),
    *(
        Case(op, [sample(dt, (2, 3))])
        for op in ("Identity", "StopGradient", "PreventGradient", "Snapshot")
        for dt in ("float32", "int32", "bool")
    ),
    *(Case("DeepCopy", [sample(dt, (2, 3))]) for dt in ("float32", "int64")),
    Case("IdentityN", [[f(2), np.int64([1]), np.array([b"x"], object)]]),
    *(Case("CheckNumerics", [sample(dt, (2, 3))], {"message": "here"}) for dt in FLOATS),
    *(
        Case(op, [np.array([1, bad], F)], {"message": "m"}, error=BAD)
        for op in ("CheckNumerics", "CheckNumericsV2")
        for bad in (np.nan, np.inf, -np.inf)
    ),
    Case("CheckNumericsV2", [f(3)], {"message": "m"}),
    *(Case("AddN", [[sample(dt, (2, 3), seed=i) for i in range(n)]]) for dt in NUMBERS for n in (1, 2, 5)),
    Case("AddN", [[f(2), f(3)]], error=BAD),
    *(
        Case(
            "Cross",
            [sample(dt, (2, 3)), sample(dt, (2, 3), seed=1)],
        )
        for dt in ("float32", "float64", "int32", "int64", "int8", "uint8", "float16", "bfloat16")
    ),
    Case("AccumulateNV2", [[f(2, 3), f(2, 3, seed=1)]], {"shape": (2, 3)}, graph=True),
    Case("ParallelConcat", [[f(1, 3), f(1, 3, seed=1)]], {"shape": (2, 3)}, graph=True),
    Case("ParallelConcat", [[f(1, 3), f(1, 2)]], {"shape": (2, 3)}, graph=True, error=BAD),
    Case("ParallelConcat", [[f(1, 3), f(1, 3, 1)]], {"shape": (2, 3)}, graph=True, error=BAD),
    Case("ParallelConcat", [[f(2, 3), f(2, 3)]], {"shape": (4, 3)}, graph=True, error=BAD),
    Case("Cross", [f(2, 2), f(2, 2)], error="FAILED_PRECONDITION"),
    *(
        Case("HistogramFixedWidth", [sample(dt, (20,)), np.array([-3, 3], dt), np.int32(5)], {"dtype": out})
        for dt in ("float32", "float64", "int32", "int64")
        for out in ("int32", "int64")
    ),
    Case("HistogramFixedWidth", [f(2), F([3, 3]), np.int32(5)], error=BAD),
    Case("HistogramFixedWidth", [F([1, np.inf, -np.inf]), F([0, 5]), np.int32(5)]),
    Case("HistogramFixedWidth", [F([1, np.nan]), F([0, 5]), np.int32(5)], error=BAD),
    *(
        Case("Bucketize", [sample(dt, (3, 4))], {"boundaries": [-2.0, 0.0, 1.0, 3.0]})
        for dt in ("float32", "float64", "int32", "int64")
    ),
    Case("Bucketize", [f(2)], {"boundaries": [1.0, 0.0]}, error=BAD),
    *(
        Case("UnravelIndex", [np.array(i, it), np.array([3, 4, 5], it)])
        for it in (np.int32, np.int64)
        for i in (7, [0, 59, 23])
    ),
    Case("UnravelIndex", [np.int32([60]), np.int32([3, 4, 5])], error=BAD),
    Case("UnravelIndex", [np.int32([0]), np.int32([3, 0, 5])], error=BAD),
    *(Case("ToBool", [np.array(v, dt)]) for dt in ("float32", "int64", "bool") for v in (0, 1, [0], [])),
    *(Case("ToBool", [np.array(v, object)]) for v in (b"", b"x")),
    *(Case("GuaranteeConst", [sample(dt, (2,))]) for dt in ("float32", "string")),
    *(Case(op, [f(2)]) for op in ("Copy", "CopyHost")),
    *(
        Case(op, [sample(dt, (4, 3)), np.int32([2, 0]), sample(dt, (2, 3), seed=1)])
        for op in ("InplaceUpdate", "InplaceAdd", "InplaceSub")
        for dt in ("float32", "int32", "float64")
    ),
    Case("InplaceUpdate", [f(4, 3), np.int32([2]), f(2, 3)], error=BAD),
    *(
        Case(op, [sample(dt, (4, 3)), np.int32(range(n)), sample(dt, (n, 3), seed=1)], {"T": kind}, error=SAME)
        for op in ("InplaceUpdate", "InplaceAdd", "InplaceSub")
        for dt, kind in (("bool", "bool"), ("string", "string"), ("int8", "qint8"), ("complex64", "complex64"))
        for n in (0, 2)
    ),
    *(
        Case("InplaceSub", [np.zeros(shape, bool), np.int32([0]), np.zeros((1, *shape[1:]), bool)], error=SAME)
        for shape in ((4, 0), (4,))
    ),
    *(
        Case("DataFormatVecPermute", [np.array(v, it)], {"src_format": a, "dst_format": b})
        for it in (np.int32, np.int64)
        for v in ([1, 2, 3, 4], [7, 8], [[1, 2], [3, 4], [5, 6], [7, 8]], [[1, 2], [3, 4]])
        for a, b in (("NHWC", "NCHW"), ("NCHW", "NHWC"), ("NHWC", "HWNC"))
    ),
    Case("DataFormatVecPermute", [np.int32([1, 2, 3])], error=BAD),
    *(
        Case("DataFormatDimMap", [np.array([-4, 0, 1, 3], it)], {"src_format": a, "dst_format": b})
        for it in (np.int32, np.int64)
        for a, b in (("NHWC", "NCHW"), ("NCHW", "NHWC"))
    ),
    *(
        Case("ApproxTopK", [sample(dt, (3, 7))], {"k": 3, "is_max_k": True})
        for dt in ("float32", "float16", "bfloat16")
    ),
    Case("NearestNeighbors", [f(5, 3), f(4, 3, seed=1), np.int64(2)]),
    Case("NearestNeighbors", [f(5, 3), f(4, 2, seed=1), np.int64(2)], error=BAD),
]


@suite(CASES)
def test_array(case: Case, device: str, tf: ModuleType) -> None:
    check(case, device)


def test_tile_grad() -> None:
    """TensorFlow registers its kernel with an attribute that the op does not have, so it can never run there."""
    case = Case("TileGrad", [np.arange(24, dtype=F).reshape(4, 6), np.int32([2, 3])])
    expected = np.arange(24, dtype=F).reshape(2, 2, 3, 2).sum(axis=(0, 2))
    np.testing.assert_array_equal(run_ours(case)[0], expected)
