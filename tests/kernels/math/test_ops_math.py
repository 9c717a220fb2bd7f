"""Elementwise math, comparison, logic and bits against TensorFlow."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest

from tests.kernels.op_suite import (
    COMPLEX,
    FLOATS,
    INTS,
    NUMBERS,
    REALS,
    UINTS,
    Case,
    check,
    sample,
    special,
    suite,
    table,
)

pytestmark = pytest.mark.tensorflow

WHERE = tuple(t for t in (*NUMBERS, "bool") if t != "float16")  # TensorFlow has no Where of half on the CPU
SHAPES = [(), (0, 3), (2, 3)]
PAIRS = [[(2, 3), (3,)], [(), ()], [(2, 1), (1, 3)], [(0, 3), (1,)]]
TRIG = {
    "Sin": 6, "Cos": 6, "Tan": 1.4, "Asin": 1, "Acos": 1, "Atan": 9, "Sinh": 4, "Cosh": 4, "Asinh": 9, "Atanh": 0.9,
}  # fmt: skip

CASES = [
    *(row for op in ("Neg", "Abs", "Sign") for row in table(op, FLOATS + INTS, SHAPES, with_special=True)),
    *(row for op in ("Neg", "Sign", "Square") for row in table(op, COMPLEX, SHAPES)),
    *table("Square", (*FLOATS, "int32", "int64", "uint8"), SHAPES, with_special=True),
    *(row for op in ("Sqrt", "Rsqrt", "Log") for row in table(op, FLOATS + COMPLEX, SHAPES, low=0.1, high=9)),
    *(row for op in ("Sqrt", "Log") for row in table(op, FLOATS, [], with_special=True)),
    # denormals: Eigen's packet code flushes them differently, so rsqrt is tried on normal numbers and zero
    *(Case("Rsqrt", [np.array([0, 1, 4, np.inf, np.nan, -1], dt)]) for dt in (np.float32, np.float64)),
    *(row for op in ("Exp", "Sigmoid", "Tanh") for row in table(op, FLOATS, SHAPES, with_special=True)),
    *(row for op in ("Exp", "Sigmoid", "Tanh") for row in table(op, COMPLEX, SHAPES, low=-2, high=2)),
    *(row for op in ("Expm1", "Log1p") for row in table(op, FLOATS + COMPLEX, SHAPES, low=-0.9, high=2)),
    *(row for op, high in TRIG.items() for row in table(op, FLOATS + COMPLEX, [(4, 5)], low=-high, high=high)),
    *(row for op in TRIG for row in table(op, ("float32", "float64"), [()], low=0.1, high=0.9)),
    *table("Acosh", FLOATS + COMPLEX, [(), (4, 5)], low=1.1, high=9),
    *(row for op in ("Floor", "Ceil") for row in table(op, FLOATS, SHAPES, with_special=True)),
    *table("Rint", ("float32", "float64"), SHAPES, with_special=True),
    # Not for integers: TensorFlow 2.21's Round gives 0 for every int32 and int64; ours is the identity.
    *table("Round", FLOATS, SHAPES, with_special=True),
    *(row for op in ("Reciprocal", "Inv") for row in table(op, FLOATS + COMPLEX, SHAPES, low=0.5, high=4)),
    *(row for op in ("IsNan", "IsInf", "IsFinite") for row in table(op, FLOATS, SHAPES, with_special=True)),
    *table("LogicalNot", ("bool",), SHAPES),
    *table("Invert", INTS + UINTS, SHAPES, with_special=True),
    *table("PopulationCount", INTS + UINTS, SHAPES, with_special=True),
    *(
        row
        for op in ("Add", "AddV2", "Sub", "Mul", "Maximum", "Minimum")
        for row in table(op, (*FLOATS, "int8", "int32", "int64", "uint8"), PAIRS, with_special=True)
    ),
    *(row for op in ("AddV2", "Sub", "Mul") for row in table(op, (*COMPLEX, "int16", "uint16", "uint32"), PAIRS[:2])),
    *(row for op in ("Maximum", "Minimum") for row in table(op, ("int16", "uint16"), PAIRS[:2])),
    Case("AddV2", [sample("float32", (2, 3)), sample("float32", (2,))], error="INVALID_ARGUMENT"),
    Case("Add", [np.array([b"a", b"b"], object), np.array(b"c", object)]),
    *table("RealDiv", FLOATS + COMPLEX, PAIRS, low=0.5),
    *table("RealDiv", ("float32", "float64"), [[(), ()]], with_special=True),
    *table("Div", REALS + COMPLEX, PAIRS, low=1, high=4),
    *table("TruncateDiv", INTS + UINTS, PAIRS, low=1, high=4),
    Case("TruncateDiv", [np.int32([-7, 7, -7, 7, -6]), np.int32([2, -2, -2, 2, 3])]),
    *(
        Case(op, [np.int32([1, 2]), np.int32([0, 1])], error="INVALID_ARGUMENT")
        for op in ("Div", "FloorDiv", "Mod", "FloorMod")
    ),
    *(Case(op, [np.int32([1, 2]), np.int32([0, 1])], error="INTERNAL") for op in ("TruncateDiv", "TruncateMod")),
    *(
        Case(op, [np.zeros((0, 3), np.int32), np.int32([0, 1, 2])])  # nothing is divided
        for op in ("Div", "FloorDiv", "FloorMod", "TruncateDiv", "TruncateMod")
    ),
    *(
        Case(
            op, [np.int32([1, 2]), np.int32([0, 1, 2])], error="INVALID_ARGUMENT"
        )  # what does not broadcast is told first
        for op in ("Div", "FloorDiv", "FloorMod", "TruncateDiv", "TruncateMod")
    ),
    *table("DivNoNan", FLOATS + COMPLEX, PAIRS, low=-1, high=1),
    *table("DivNoNan", ("float32", "float64"), [[(), ()]], with_special=True),
    *table("MulNoNan", FLOATS + COMPLEX, PAIRS),
    *table("MulNoNan", ("float32", "float64"), [[(), ()]], with_special=True),
    *(row for op in ("FloorDiv", "FloorMod") for row in table(op, FLOATS + UINTS + INTS, PAIRS, low=1, high=4)),
    *table("Mod", ("float32", "float64", "int32", "int64"), PAIRS, low=1, high=4),
    *table("TruncateMod", ("float32", "float64", "int32", "int64"), PAIRS, low=1, high=4),
    *(
        Case(op, [np.array([-7, 7, -7, 7, -6, 0], dt), np.array([2, -2, -2, 2, 3, 5], dt)])
        for op in ("FloorDiv", "FloorMod")
        for dt in (np.int32, np.int64, np.int8, np.float32, np.float64)
    ),
    *(
        Case(op, [np.array([-7, 7, -7, 7, -6, 0], dt), np.array([2, -2, -2, 2, 3, 5], dt)])
        for op in ("Mod", "TruncateMod")
        for dt in (np.int32, np.int64, np.float32, np.float64)
    ),
    *table("Pow", FLOATS + COMPLEX, PAIRS, low=0.5, high=3),
    *table("Pow", ("int32", "int64", "int8", "int16"), PAIRS, low=0, high=5),
    Case("Pow", [np.int32([2]), np.int32([-1])], error="INVALID_ARGUMENT"),
    *table("SquaredDifference", FLOATS + COMPLEX + ("int32", "int64"), PAIRS),
    *table("Atan2", FLOATS, PAIRS),
    *table("NextAfter", ("float32", "float64"), PAIRS, with_special=True),
    *(row for op in ("Xdivy", "Xlogy", "Xlog1py") for row in table(op, FLOATS + COMPLEX, PAIRS, low=0.1, high=3)),
    *(Case(op, [np.zeros(4, np.float32), np.float32([0, 1, np.inf, np.nan])]) for op in ("Xdivy", "Xlogy", "Xlog1py")),
    *(
        row
        for op in ("Less", "LessEqual", "Greater", "GreaterEqual")
        for row in table(op, REALS, PAIRS[:3], low=-1, high=1, with_special=True)
    ),
    *(row for op in ("Equal", "NotEqual") for row in table(op, NUMBERS, PAIRS[:3], low=-1, high=1, with_special=True)),
    *(
        row
        for op in ("Equal", "NotEqual")
        for row in [
            *table(op, ("bool", "string"), PAIRS[:3]),
            Case(op, [np.zeros(2, np.float32), np.zeros(3, np.float32)], {"incompatible_shape_error": False}),
            Case(op, [np.zeros(2, np.float32), np.zeros(3, np.float32)], error="INVALID_ARGUMENT"),
        ]
    ),
    *table("ApproximateEqual", ("float32", "float64"), [[(4,), (4,)]], [{"tolerance": 2.0}]),
    Case("ApproximateEqual", [np.zeros(2, np.float32), np.zeros(3, np.float32)], error="INVALID_ARGUMENT"),
    *(row for op in ("LogicalAnd", "LogicalOr") for row in table(op, ("bool",), PAIRS)),
    *(
        row
        for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor")
        for row in table(op, INTS + UINTS, PAIRS[:2], with_special=True)
    ),
    *(row for op in ("LeftShift", "RightShift") for row in table(op, INTS + UINTS, PAIRS[:2], with_special=True)),
    *(
        row
        for op in ("SigmoidGrad", "TanhGrad", "SqrtGrad", "RsqrtGrad", "ReciprocalGrad", "InvGrad")
        for row in table(op, FLOATS + COMPLEX, [[(2, 3), (2, 3)], [(0,), (0,)]], low=0.5, high=2)
    ),
    *(
        row
        for dt in ("complex64", "complex128")
        for row in [
            Case("Complex", [sample(p, (2, 3)), sample(p, (3,))], {"Tout": dt})
            for p in (["float32"] if dt == "complex64" else ["float64"])
        ]
    ),
    *(
        Case(op, [sample(dt, shape)], {"Tout": out})
        for op in ("Real", "Imag", "ComplexAbs", "Angle")
        for dt, out in (("complex64", "float32"), ("complex128", "float64"))
        for shape in SHAPES
    ),
    *table("Conj", COMPLEX, SHAPES),
    *(
        Case("Select", [np.array(cond), sample(dt, (2, 3)), sample(dt, (2, 3), seed=1)])
        for dt in (*NUMBERS, "string", "bool")
        for cond in ([[True, False, True], [False, False, True]], [True, False], False)
    ),
    Case("Select", [np.array([True]), sample("float32", (2, 3)), sample("float32", (2, 3))], error="INVALID_ARGUMENT"),
    Case("Select", [np.array(True), sample("float32", (2, 3)), sample("float32", (3,))], error="INVALID_ARGUMENT"),
    *(
        Case("SelectV2", [np.array(cond), sample(dt, (2, 1)), sample(dt, (2, 3), seed=1)])
        for dt in (*NUMBERS, "string", "bool")
        for cond in ([[True, False, True], [False, False, True]], [True, False, True], False)
    ),
    Case(
        "SelectV2",
        [np.array([True, False]), sample("float32", (2, 3)), sample("float32", ())],
        error="INVALID_ARGUMENT",
    ),
    *table("Where", WHERE, [(2, 3), (0,), (2, 2, 2)], low=-1, high=1),
    Case("Where", [np.array(True)], error="INVALID_ARGUMENT"),
    *(
        Case("ClipByValue", [sample(dt, (2, 3)), np.array(-1, dt), np.array(2, dt)])
        for dt in ("float32", "float64", "int32", "int64")
    ),
    Case("ClipByValue", [sample("float32", (2, 3)), np.zeros((2, 3), np.float32), np.float32(2)]),
    Case("ClipByValue", [sample("float32", (2, 3)), np.zeros(3, np.float32), np.float32(2)], error="INVALID_ARGUMENT"),
    Case("ClipByValue", [special("float32"), np.float32(-1), np.float32(1)]),
]


@suite(CASES)
def test_math(case: Case, device: str, tf: ModuleType) -> None:
    check(case, device)
