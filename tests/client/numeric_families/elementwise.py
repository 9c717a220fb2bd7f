# Rows are lambdas, whose arguments have no types.
# pyright: basic
"""Arithmetic and functions of each number, products, and sums of tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.client.numeric_families.rows import apart, off_zero, positive, row, u, z
from toolkit import client as gm
from toolkit.client import ops

_BELOW_ONE = {"Asin", "Acos", "Atanh", "Erfinv"}
_POSITIVE = {"Sqrt", "Rsqrt", "Log", "Lgamma", "Digamma"}
_COMPLEX = {
    "Neg", "Reciprocal", "Inv", "Square", "Sqrt", "Rsqrt", "Exp", "Expm1", "Log", "Log1p", "Tanh", "Sinh", "Cosh",
    "Asinh", "Acosh", "Atanh", "Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sigmoid", "Identity",
}  # fmt: skip
_UNARY = [
    "Neg", "Abs", "Reciprocal", "Inv", "Square", "Sqrt", "Rsqrt", "Exp", "Expm1", "Log", "Log1p", "Tanh", "Sinh",
    "Cosh", "Asinh", "Acosh", "Atanh", "Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Erf", "Erfc", "Erfinv", "Ndtri",
    "Sigmoid", "Lgamma", "Digamma", "Softplus", "Softsign", "Relu", "Relu6", "Elu", "Selu", "LeakyRelu", "L2Loss",
    "Identity", "Snapshot",
]  # fmt: skip
for _op in _UNARY:
    for _shape in ((2, 3), (), (0, 2)):
        _x = off_zero(*_shape)
        if _op in _BELOW_ONE:
            _x = u(*_shape, low=-0.8, high=0.8)
        elif _op in _POSITIVE:
            _x = positive(*_shape)
        elif _op == "Acosh":
            _x = positive(*_shape) + 1
        elif _op == "Ndtri":
            _x = u(*_shape, low=0.1, high=0.9)
        elif _op in ("Log1p", "Expm1", "Tan", "Sinh", "Cosh", "Atan"):
            _x = off_zero(*_shape) / 2
        row(_op, ops.function(_op), _x, about=f"{_shape}")
    if _op in _COMPLEX:
        # branch cuts lie on the axes
        row(_op, ops.function(_op), 0.6 * z(2, 3) + (0.9 + 0.8j), about="complex")
row("Sign", lambda x: ops.sign(x) * x, off_zero(2, 3))
row("Relu6", lambda x: ops.relu6(x * 4.0), np.array([0.5, 1.2, 2.0, -0.4]), about="beyond 6")
row("LeakyRelu", lambda x: ops.leaky_relu(x, alpha=0.3), off_zero(5), about="alpha")
row("LeakyRelu", lambda x: ops.leaky_relu(x, alpha=1.7), off_zero(5), about="alpha above 1")
for _op in ("Softmax", "LogSoftmax"):
    for _shape in ((2, 3), (4,), (2, 2, 3)):
        row(_op, ops.function(_op), 2 * u(*_shape), about=f"{_shape}")
for _op in ("Softsign", "Softplus", "Elu", "Selu"):
    row(_op, ops.function(_op), 3 * off_zero(6), about="far from 0")
row("Spence", ops.spence, u(2, 3, low=0.3, high=0.9))
row("Spence", ops.spence, u(2, 3, low=1.2, high=2.5), about="above 1")

# -- complex numbers ---------------------------------------------------------------------------------------

row("Conj", ops.conj, z(2, 3))

for _op in ("Angle", "ComplexAbs", "Real", "Imag"):
    row(_op, lambda x, o=_op: ops.function(o)(x, Tout=gm.float64), z(2, 3) + (1 + 1j))
    row(_op, lambda x, o=_op: ops.function(o)(x, Tout=gm.float64), z() - (1 + 1j), about="scalar")
row("Complex", lambda x, y: ops.complex(x, y, Tout=gm.complex128), u(2, 3), u(3))
row("Complex", lambda x, y: ops.complex(x, y, Tout=gm.complex128), u(), u(2, 1), about="scalar")

# -- two numbers -------------------------------------------------------------------------------------------

_PAIRS: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((2, 3), (2, 3)), ((2, 3), (3,)), ((2, 1), (1, 3)), ((), (2, 3)), ((2, 3), ()), ((2, 1, 3), (4, 1)), ((0, 3), (3,)),
]  # fmt: skip
for _op in (
    "AddV2", "Add", "Sub", "Mul", "RealDiv", "Div", "DivNoNan", "Maximum", "Minimum", "SquaredDifference", "Pow",
    "FloorMod", "Mod", "TruncateMod", "Atan2", "Xdivy", "Xlogy", "Xlog1py", "MulNoNan",
):  # fmt: skip
    for _a, _b in _PAIRS:
        _x, _y = off_zero(*_a), off_zero(*_b)
        if _op in ("Pow", "Xlogy", "Xlog1py"):
            _x, _y = positive(*_a), positive(*_b)
        elif _op in ("Maximum", "Minimum"):
            _x, _y = u(*_a), u(*_b)
            _x = np.where(np.abs(_x) < 0.1, 0.3, _x) + 0.01
            _y = np.round(_y * 5) / 5 + 0.1  # tenths that x is not near
            _x = np.round(_x * 5) / 5
        elif _op in ("FloorMod", "Mod", "TruncateMod"):
            # quotients between 0.2 and 0.8 above a whole number
            _y = positive(*_b) + 0.5
            _x = (u(*np.broadcast_shapes(_a, _b), low=0.25, high=0.3) + 1.0) if _a == _b else positive(*_a) * 0.1 + 0.05
        row(_op, ops.function(_op), _x, _y, about=f"{_a} {_b}")
    if _op not in ("Maximum", "Minimum", "FloorMod", "Mod", "TruncateMod", "Atan2"):
        row(_op, ops.function(_op), z(2, 3) + (1.2 + 1.1j), z(3) + (1.1 + 1.3j), about="complex")
row("Pow", lambda x: ops.pow(x, np.array([2.0, 3.0, 0.0])), off_zero(2, 3), about="by whole numbers")
row("Pow", lambda y: ops.pow(gm.constant(2.5, "float64"), y), u(4), about="of a number")
row("Xlogy", lambda y: ops.xlogy(gm.constant([0.0, 1.0], "float64"), y), positive(2), about="zero")
row("DivNoNan", lambda x: ops.div_no_nan(x, gm.constant([0.0, 2.0], "float64")), u(2), about="by zero")
row("MulNoNan", lambda x: ops.mul_no_nan(x, gm.constant([0.0, 2.0], "float64")), u(2), about="by zero")
for _op in ("Igamma", "Igammac"):
    # the derivative by the first is a series good to some thousand units
    row(_op, ops.function(_op), positive(2, 3) + 0.5, positive(3) + 0.3, inaccurate=100.0)
row("NextAfter", lambda x: ops.next_after(x, gm.constant(2.0, "float64")), u(3))

# -- sums and products of tensors --------------------------------------------------------------------------

for _shape in ((2, 3), (), (0, 2)):
    row("AddN", lambda a, b: ops.add_n([a, b, a]), u(*_shape), u(*_shape), about=f"{_shape}")
    row("AccumulateNV2", lambda a, b: ops.accumulate_nv2([a, b], shape=a.static_shape), u(*_shape), u(*_shape))
for _ta in (False, True):
    for _tb in (False, True):
        _a, _b = ((3, 2) if _ta else (2, 3)), ((4, 3) if _tb else (3, 4))
        for _make in (u, z):
            row(
                "MatMul",
                lambda x, y, t=_ta, v=_tb: ops.mat_mul(x, y, transpose_a=t, transpose_b=v),
                _make(*_a), _make(*_b), about=f"{_ta} {_tb}",
            )  # fmt: skip
            for _op in ("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"):
                _more: dict[str, Any] = {"Tout": gm.float64 if _make is u else gm.complex128} if _op[-1] == "3" else {}
                row(
                    _op,
                    lambda x, y, o=_op, t=_ta, v=_tb, m=_more: ops.function(o)(x, y, adj_x=t, adj_y=v, **m),
                    _make(2, *_a), _make(2, *_b), about=f"{_ta} {_tb}",
                )  # fmt: skip
                if _op != "BatchMatMul":
                    row(
                        _op,
                        lambda x, y, o=_op, t=_ta, v=_tb, m=_more: ops.function(o)(x, y, adj_x=t, adj_y=v, **m),
                        _make(2, 1, *_a), _make(3, *_b), about=f"broadcast {_ta} {_tb}",
                    )  # fmt: skip
row("MatMul", ops.mat_mul, u(0, 3), u(3, 2), about="empty")
row("MatMul", ops.mat_mul, u(2, 0), u(0, 2), about="nothing to add")
row("Cross", ops.cross, u(2, 3), u(2, 3))
row("BiasAdd", ops.bias_add, u(2, 3), u(3))
row("BiasAdd", lambda x, b: ops.bias_add(x, b, data_format="NCHW"), u(2, 3, 2, 2), u(3), about="NCHW")
row("BiasAddV1", ops.bias_add_v1, u(2, 2, 3), u(3))
row("BiasAddGrad", ops.bias_add_grad, u(2, 4, 3))
row("BiasAddGrad", lambda x: ops.bias_add_grad(x, data_format="NCHW"), u(2, 3, 2, 2), about="NCHW")
row("Cast", lambda x: ops.cast(x, DstT=gm.float64) * x, u(2, 3))
row("Cast", lambda x: ops.cast(x, DstT=gm.complex128), u(2, 3), about="to complex")

# -- gradients of gradients --------------------------------------------------------------------------------

for _op in (
    "ReluGrad", "Relu6Grad", "EluGrad", "SeluGrad", "SoftplusGrad", "TanhGrad", "SigmoidGrad", "SqrtGrad", "RsqrtGrad",
    "InvGrad", "ReciprocalGrad", "LeakyReluGrad",
):  # fmt: skip
    row(_op, ops.function(_op), off_zero(2, 3), off_zero(2, 3))
for _op in ("TanhGrad", "SigmoidGrad", "SqrtGrad", "RsqrtGrad", "InvGrad", "ReciprocalGrad"):
    row(_op, ops.function(_op), z(3) + (1 + 1j), z(3) + (1 + 1j), about="complex")

# -- choices -----------------------------------------------------------------------------------------------

_CHOICE = np.array([[True, False, True], [False, False, True]])
row("Select", lambda a, b: ops.select(_CHOICE, a, b), u(2, 3), u(2, 3))
row("Select", lambda a, b: ops.select([True, False], a, b), u(2, 3), u(2, 3), about="of rows")
row("Select", lambda a, b: ops.select(gm.constant(False), a, b) * a, u(2, 3), u(2, 3), about="of all")
for _a, _b in _PAIRS[:5]:
    row("SelectV2", lambda a, b: ops.select_v2(_CHOICE, a, b), u(*_a), u(*_b), about=f"{_a} {_b}")
row("SelectV2", lambda a, b: ops.select_v2([[True], [False]], a, b), u(3), u(4, 1, 1), about="larger than all")
row("ClipByValue", ops.clip_by_value, apart(2, 4), np.array(-0.6), np.array(0.6))
row("ClipByValue", ops.clip_by_value, apart(2, 4), np.full((2, 4), -0.6), np.full((2, 4), 0.6), about="tensors")
