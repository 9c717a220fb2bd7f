"""Every operator against the NumPy kernel of the same op, over shapes, broadcasts and special values."""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pytest

from tests.kernels.native.harness import run_nest
from tests.kernels.op_suite import Case, run_ours
from toolkit.graph import dtypes
from toolkit.kernels import registry
from toolkit.kernels.cpu.native.operations import OPERATORS, accepts

registry.load("CPU")

_COMPARISONS = {"Less", "LessEqual", "Greater", "GreaterEqual", "Equal", "NotEqual"}
_LOGICAL = {"LogicalAnd", "LogicalOr", "LogicalNot"}
_TESTS = {"IsNan", "IsFinite", "IsInf"}
_TWO = {"Add", "AddV2", "BiasAdd", "BiasAddV1", "Sub", "Mul", "RealDiv", "DivNoNan", "MulNoNan", "SquaredDifference",
        "Maximum", "Minimum", "LogicalAnd", "LogicalOr"} | _COMPARISONS  # fmt: skip
_THREE = {"SelectV2", "Select"}
_QUOTIENTS = {op for op, rule in OPERATORS.items() if rule.divides}
_STRICT = {"AddN", "Select"} | {op for op in OPERATORS if op.endswith("Grad")}
#: units in the last place, of ops that are not exact; those on the way may cancel, so it is of the largest number
_CLOSE = {
    "Exp", "Expm1", "Log", "Log1p", "Sigmoid", "Tanh", "Softplus", "Elu", "Selu", "SoftplusGrad", "SeluGrad",
    "EluGrad", "Rsqrt", "RsqrtGrad", "SigmoidGrad", "TanhGrad", "SqrtGrad", "ReciprocalGrad", "InvGrad", "Softsign",
}  # fmt: skip
#: choices between 0 and -0: NumPy itself takes either, depending on where in a vector they are
_EITHER_ZERO = {"Maximum", "Minimum", "Relu", "Relu6", "Sign"}
ATTRIBUTES: dict[str, dict[str, Any]] = {
    "LeakyRelu": {"alpha": 0.3}, "LeakyReluGrad": {"alpha": 0.3},
}  # fmt: skip
_SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 6.0, 0.5, 1.5, 2.5, -0.5, 1e-40, -1e-40, 3e38, -3e38, 1e-3]
SHAPES = [
    ((1,), (1,)), ((17,), ()), ((7, 31), (31,)), ((7, 31), (7, 1)), ((2, 1, 5), (1, 3, 1)),
    ((4, 1, 1, 3), (4, 2, 1, 3)),
    ((), (2, 2)),
]  # fmt: skip


def values(shape: tuple[int, ...], dtype: str, seed: int) -> Any:
    """Half of them special."""
    random = np.random.default_rng(seed)
    size = int(np.prod(shape, dtype=np.int64))
    if dtype == "bool":
        return random.random(size).reshape(shape) < 0.5
    if dtype.startswith("int"):
        info = np.iinfo(dtype)
        extreme = np.array([info.min, info.max, info.min + 1, -1, 0, 1, 46341, 1 << 30], dtype)
        plain = random.integers(-9, 10, size).astype(dtype)
    else:
        extreme, plain = np.array(_SPECIAL, dtype), random.normal(0, 3, size).astype(dtype)
    return np.where(random.random(size) < 0.5, random.choice(extreme, size), plain).reshape(shape)


def kernel(op: str, given: list[Any], attrs: dict[str, Any]) -> Any:
    """What the NumPy kernel gives."""
    return run_ours(Case(op, [given] if op == "AddN" else given, attrs))[0]


def cases() -> list[tuple[str, str, str]]:
    """(op, type of the operands, type of the result)."""
    found: list[tuple[str, str, str]] = []
    for op, rule in sorted(OPERATORS.items()):
        if op in _QUOTIENTS:
            continue
        for dtype in sorted(rule.types):
            targets = sorted(dtypes_of_casts()) if op == "Cast" else [result_of(op, dtype)]
            found += [
                (op, dtype, target)
                for target in targets
                if accepts(op, tuple(np.dtype(name) for name in operands_of(op, dtype)), np.dtype(target))
            ]
    return found


def dtypes_of_casts() -> set[str]:
    return {"bool", "float32", "float64", "int32", "int64"}


def result_of(op: str, dtype: str) -> str:
    return "bool" if op in _COMPARISONS | _LOGICAL | _TESTS else dtype


def operands_of(op: str, dtype: str) -> list[str]:
    if op in _THREE:
        return ["bool", dtype, dtype]
    if op == "AddN":
        return [dtype] * 3
    return [dtype] * (2 if op in _TWO or op.endswith("Grad") else 1)


def test_casts_and_types_that_are_not_taken() -> None:
    assert not accepts("Cast", (np.dtype("float32"),), np.dtype("int32"))
    assert not accepts("Add", (np.dtype("float32"), np.dtype("int32")), np.dtype("float32"))
    assert not accepts("Add", (np.dtype("float16"),) * 2, np.dtype("float16"))
    assert not accepts("RealDiv", (np.dtype("int32"),) * 2, np.dtype("int32"))
    assert {op for op, _, _ in cases()} == {op for op in OPERATORS if op not in _QUOTIENTS}  # none is left out here


@pytest.mark.parametrize(("op", "dtype", "target"), cases(), ids=lambda value: str(value))
def test_operator(op: str, dtype: str, target: str) -> None:
    rule = OPERATORS[op]
    names = operands_of(op, dtype)
    more: dict[str, Any] = dict(ATTRIBUTES.get(op, {}))
    if op == "Cast":
        more["DstT"] = dtypes.from_numpy(np.dtype(target))
    for number, pair in enumerate(SHAPES):
        whole = np.broadcast_shapes(*pair)
        shapes = [pair[0], pair[1], pair[0]][: len(names)]
        if op in _STRICT or len(names) == 1:
            shapes = [whole] * len(names)
        elif op.startswith("BiasAdd"):
            if len(whole) < 2:
                continue
            shapes = [whole, whole[-1:]]
        seed = zlib.crc32(f"{op} {dtype} {number}".encode())
        given = [values(shape, name, seed + at) for at, (shape, name) in enumerate(zip(shapes, names, strict=True))]
        wanted = np.asarray(kernel(op, given, more))
        got = run_nest(given, [target], lambda code, lanes: [rule.write(code, *lanes, **more)])[0]
        assert wanted.dtype == np.dtype(target)
        compare(op, got.reshape(wanted.shape), wanted)


@pytest.mark.parametrize("op", sorted(_QUOTIENTS))
@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("divisor", [1, 2, 7, -2, -3, 46341, 2**31 - 1])
def test_quotient_by_a_number(op: str, dtype: str, divisor: int) -> None:
    """Nests divide by known numbers only, and not by 0 and -1, which the processor may stop at."""
    given = values((131,), dtype, divisor & 0xFFFF)
    wanted = np.asarray(kernel(op, [given, np.array(divisor, dtype)], {}))

    def write(code: Any, lanes: Any) -> list[Any]:
        return [OPERATORS[op].write(code, lanes[0], code.number(divisor, lanes[0].type))]

    np.testing.assert_array_equal(run_nest([given], [dtype], write)[0], wanted)


def compare(op: str, got: Any, wanted: Any) -> None:
    """The same bits, signs of zero included; or close where the op is an approximation."""
    if wanted.dtype.kind != "f" or op not in _CLOSE:
        np.testing.assert_array_equal(got, wanted, err_msg=op)
        if wanted.dtype.kind == "f" and op not in _EITHER_ZERO:
            there = ~np.isnan(wanted)
            np.testing.assert_array_equal(np.signbit(got[there]), np.signbit(wanted[there]), err_msg=op)
        return
    info = np.finfo(wanted.dtype)
    # SeluGrad adds numbers that nearly cancel; results below the normal range have fewer digits
    tolerance = float(info.eps) * 8
    least = float(info.tiny) * 4 if op != "Sigmoid" else 2e-37
    np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=least, err_msg=op)
