"""Cast, reductions, scans, matrix products against TensorFlow."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest

from tests.kernels.op_suite import COMPLEX, FLOATS, INTS, NUMBERS, REALS, UINTS, Case, check, sample, special, suite

pytestmark = pytest.mark.tensorflow

BAD = "INVALID_ARGUMENT"
CASTABLE = (*NUMBERS, "bool")
AXES = [np.int32(0), np.int32([1]), np.int32([0, 1]), np.int64([-1]), np.zeros(0, np.int32)]

CASES = [
    *(Case("Cast", [sample(src, (2, 3), 0, 5)], {"DstT": dst}) for src in CASTABLE for dst in CASTABLE),
    *(Case("Cast", [sample(src, (2, 3), -5, 5)], {"DstT": dst}) for src in FLOATS for dst in INTS),
    # what does not fit: one conversion path a pair of types on x86
    *(
        Case("Cast", [special(src)], {"DstT": dst}, id=f"special-{src}-{dst}")
        for src in ("float32", "float64")
        for dst in (*FLOATS, "int32", "int64", "bool", "complex64")
    ),
    *(
        Case("Cast", [special(src)], {"DstT": dst}, id=f"special-{src}-{dst}")
        for src in INTS + UINTS
        for dst in (*FLOATS, *INTS, *UINTS, "bool", "complex64")
    ),
    *(
        Case("Cast", [sample(src, (4, 5))], {"DstT": dst, "Truncate": True})
        for src, dst in (
            ("float32", "bfloat16"),
            ("float32", "float16"),
            ("float64", "float32"),
            ("float64", "bfloat16"),
        )
    ),
    *(Case("Cast", [sample("float32", (3,))], {"DstT": dst}) for dst in ("float8_e5m2", "float8_e4m3fn")),
    *(Case("Cast", [np.arange(-8, 8).astype(dt)], {"DstT": "int4"}) for dt in (np.int8, np.int32)),
    *(Case("Cast", [sample("int4", (5,))], {"DstT": dt}) for dt in ("int8", "int32")),
    Case("Cast", [np.zeros((0, 2), np.float32)], {"DstT": "int32"}),
    *(
        Case("Cast", [sample(src, (2,))], {"DstT": dst}, error="UNIMPLEMENTED")
        for src, dst in (("string", "int32"), ("string", "bool"), ("float32", "string"))
    ),
    Case("Cast", [sample("string", (2,))], {"DstT": "string"}),
    *(
        Case("Bitcast", [sample(src, shape)], {"type": dst})
        for src, dst, shape in (
            ("float32", "int32", (2, 3)),
            ("float32", "uint8", (2, 3)),
            ("uint8", "float32", (3, 4)),
            ("int64", "complex64", (2,)),
            ("bfloat16", "uint16", ()),
            ("complex64", "float32", ()),
            ("int8", "int64", (2, 8)),
        )
    ),
    Case("Bitcast", [sample("uint8", (3, 3))], {"type": "float32"}, error=BAD),
    *(
        Case(op, [sample(dt, (3, 4)), axes], {"keep_dims": keep})
        for op in ("Sum", "Mean")
        for dt in (*FLOATS, *COMPLEX, "int32", "int64", "uint8", "int8")
        for axes in AXES
        for keep in (False, True)
    ),
    *(
        Case(op, [sample(dt, (3, 4), 1, 2), axes])
        for op in ("Prod", "EuclideanNorm")
        for dt in (*FLOATS, *COMPLEX, "int32", "int64")
        for axes in AXES[:4]
    ),
    *(
        Case(op, [sample(dt, (3, 4, 2)), axes], {"keep_dims": keep})
        for op in ("Max", "Min")
        for dt in REALS
        for axes in (np.int32([0, 2]), np.int64(1))
        for keep in (False, True)
    ),
    *(Case(op, [sample("bool", (3, 4)), axes]) for op in ("All", "Any") for axes in AXES),
    *(
        Case(op, [np.zeros((0, 3), dt), np.int32([0])], id=f"empty-{np.dtype(dt)}")
        for op in ("Sum", "Mean", "Prod", "Max", "Min")
        for dt in (np.float32, np.float64, np.int32)
        if (op, dt) != ("Mean", np.int32)
    ),
    *(Case(op, [np.zeros((0, 3), bool), np.int32([0])]) for op in ("All", "Any")),
    *(
        Case(op, [np.float32([[1, np.nan, 2], [np.inf, -np.inf, 1]]), np.int32([1])], id="nan")
        for op in ("Sum", "Mean", "Prod", "Max", "Min")
    ),
    *(Case(op, [sample("float32", (2, 3)), np.int32([2])], error=BAD) for op in ("Sum", "Mean", "Max", "Prod", "Min")),
    Case("Sum", [sample("float32", (2, 3)), np.int32([1, -1])], error=BAD),
    *(
        Case(op, [sample(dt, (3, 4)), np.array(axis, it)], {"output_type": out})
        for op in ("ArgMax", "ArgMin")
        for dt in (*REALS, "bool")
        for axis, it in ((0, np.int32), (-1, np.int64))
        for out in ("int64", "int32")
    ),
    *(
        Case(op, [np.float32([[np.nan, 1, 2], [np.nan] * 3, [1, np.nan, 0]]), np.int32(1)])
        for op in ("ArgMax", "ArgMin")
    ),
    *(Case(op, [np.zeros((0, 3), np.float32), np.int32(0)], error=BAD) for op in ("ArgMax", "ArgMin")),
    *(Case(op, [np.zeros((0, 3), np.float32), np.int32(1)]) for op in ("ArgMax", "ArgMin")),
    Case("ArgMax", [sample("float32", (2, 3)), np.int32(2)], error=BAD),
    *(
        Case(op, [sample(dt, (3, 4), 1, 3), np.int32(axis)], {"exclusive": exclusive, "reverse": reverse})
        for op in ("Cumsum", "Cumprod")
        for dt in (*FLOATS, *COMPLEX, "int32", "int64", "uint8")
        for axis in (0, -1)
        for exclusive in (False, True)
        for reverse in (False, True)
    ),
    *(
        Case("CumulativeLogsumexp", [sample(dt, (3, 4)), np.int32(axis)], {"exclusive": exclusive, "reverse": reverse})
        for dt in ("float32", "float64", "float16", "bfloat16")
        for axis in (0, 1)
        for exclusive in (False, True)
        for reverse in (False, True)
    ),
    Case("Cumsum", [sample("float32", (2, 3)), np.int32(2)], error=BAD),
    Case("Cumsum", [np.zeros((0, 3), np.float32), np.int32(0)]),
    *(
        Case(
            "MatMul",
            [sample(dt, (4, 3) if ta else (3, 4)), sample(dt, (5, 4) if tb else (4, 5))],
            {"transpose_a": ta, "transpose_b": tb},
        )
        for dt in (*FLOATS, *COMPLEX, "int32", "int64")
        for ta in (False, True)
        for tb in (False, True)
    ),
    *(Case("MatMul", [np.zeros((2, 0), dt), np.zeros((0, 3), dt)]) for dt in (np.float32, np.int32)),
    Case("MatMul", [sample("float32", (2, 3)), sample("float32", (2, 3))], error=BAD),
    Case("MatMul", [sample("float32", (2, 3)), sample("float32", (3,))], error=BAD),
    *(
        Case("SparseMatMul", [sample(a, (3, 4)), sample(b, (4, 5))], {"Ta": a, "Tb": b})
        for a in ("float32", "bfloat16")
        for b in ("float32", "bfloat16")
    ),
    *(
        Case(
            op,
            [sample(dt, (2, 4, 3) if ta else (2, 3, 4)), sample(dt, (2, 5, 4) if tb else (2, 4, 5))],
            {"adj_x": ta, "adj_y": tb},
        )
        for op in ("BatchMatMul", "BatchMatMulV2")
        for dt in (*FLOATS, *COMPLEX, "int32", "int64")
        for ta in (False, True)
        for tb in (False, True)
    ),
    *(
        Case("BatchMatMulV2", [sample(dt, a), sample(dt, b)])
        for dt in ("float32", "float64", "complex64", "int32")
        for a, b in (((2, 1, 3, 4), (5, 4, 2)), ((3, 4), (2, 4, 1)), ((0, 2, 3), (0, 3, 2)), ((2, 0), (0, 3)))
    ),
    *(
        Case("BatchMatMulV3", [sample(a, (2, 3, 4)), sample(b, (2, 4, 5))], {"Tout": out})
        for a, b, out in (
            ("int8", "int8", "int32"),
            ("uint8", "int8", "int32"),
            ("int8", "uint8", "int32"),
            ("float32", "float32", "float32"),
            ("bfloat16", "bfloat16", "bfloat16"),
            ("float64", "float64", "float64"),
        )
    ),
    Case("BatchMatMul", [sample("float32", (2, 3, 4)), sample("float32", (3, 4, 5))], error=BAD),
    Case("BatchMatMulV2", [sample("float32", (2, 3, 4)), sample("float32", (3, 4, 5))], error=BAD),
    Case("BatchMatMulV2", [sample("float32", (2, 3, 4)), sample("float32", (2, 3, 5))], error=BAD),
    Case("BatchMatMulV2", [sample("float32", (4,)), sample("float32", (4, 5))], error=BAD),
    *(
        Case(
            "Einsum",
            [[sample(dt, s, seed=i) for i, s in enumerate(shapes)]],
            {"equation": eq},
        )
        for dt in ("float32", "float64", "bfloat16", "float16", "complex64", "complex128", "int32", "int64")
        for eq, shapes in (
            ("ij,jk->ik", [(3, 4), (4, 5)]),
            ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]),
            ("ij->ji", [(3, 4)]),
            ("ij->", [(3, 4)]),
            ("ii->i", [(3, 3)]),
            ("ii->", [(3, 3)]),
            ("...ij,...jk->...ik", [(2, 1, 3, 4), (5, 4, 2)]),
            ("abc,cde->abde", [(2, 3, 4), (4, 2, 3)]),
            ("i,j->ij", [(3,), (4,)]),
            ("ij,ij->", [(3, 4), (3, 4)]),
            ("i->ii", [(3,)]),
            ("aecd,abcd->acbe", [(2, 3, 4, 5), (2, 6, 4, 5)]),
            ("...i->...", [(2, 3, 4)]),
            ("ab,b->a", [(3, 4), (4,)]),
            (",->", [(), ()]),
        )
        if dt in ("float32", "complex128") or eq in ("ij,jk->ik", "ij->", "i->ii")
    ),
    Case("Einsum", [[sample("float32", (3, 4)), sample("float32", (5, 6))]], {"equation": "ij,jk->ik"}, error=BAD),
    Case("Einsum", [[sample("float32", (3, 4, 5)), sample("float32", (4, 6))]], {"equation": "ij,jk->ik"}, error=BAD),
]


@suite(CASES)
def test_reduce(case: Case, device: str, tf: ModuleType) -> None:
    check(case, device)
