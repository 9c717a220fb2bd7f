"""Elementwise ops as nodes on a GPU: what the op suite does not ask."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests import tolerance
from tests.kernels.cuda.assembler import assembled
from tests.kernels.op_suite import Case, build, prepare, run_ours
from toolkit.errors import InvalidArgumentError
from toolkit.kernels import registry
from toolkit.kernels.cuda.device import device
from toolkit.kernels.cuda.simt import ptx
from toolkit.kernels.gpu.elementwise.nests import NestOperand, NestStep, fused, is_writable
from toolkit.kernels.gpu.operators.table import GPU_OPERATORS
from toolkit.kernels.gpu.primitives.element_types import NUMBER_TYPES, number_type
from toolkit.kernels.registry import KernelNode

CAPABILITY = (9, 0)


def both(case: Case) -> tuple[Any, Any]:
    """The output of a case on the GPU and on the CPU."""
    return run_ours(case, "GPU")[0], run_ours(case, defining=True)[0]


def test_a_part_of_a_tensor_may_begin_anywhere() -> None:
    """Vectors of 16 bytes need addresses of such; a slice shares its tensor's memory."""
    gpu = device(0)
    x = np.arange(103, dtype=np.float32)
    node = build(Case("Neg", [x]), prepare(Case("Neg", [x])))
    node.device = "/device:GPU:0"
    compute = registry.get(node, "GPU").factory(KernelNode(node))
    part = gpu.to_device(x).viewed(np.float32, (100,), 12)
    np.testing.assert_array_equal(gpu.to_host(compute(part)), -x[3:])


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16, np.int64, np.complex64])
def test_many_tensors_are_added_and_rounded_once(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    got, wanted = both(Case("AddN", [[(10 * rng.normal(size=(3, 7))).astype(dtype) for _ in range(31)]]))
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("op", ["Div", "FloorDiv", "FloorMod", "TruncateDiv"])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64])
def test_integers_divided_by_zero_are_zero(op: str, dtype: Any) -> None:
    x, y = np.array([7, 0, 5, 3], dtype), np.array([0, 0, 1, 2], dtype)
    (found,) = run_ours(Case(op, [x, y]), "GPU")
    assert found[:2].tolist() == [0, 0]
    (rest,) = run_ours(Case(op, [x[2:], y[2:]]), defining=True)
    np.testing.assert_array_equal(found[2:], rest)


def test_the_least_integer_by_minus_one_wraps_around() -> None:
    least = np.array([np.iinfo(np.int64).min] * 2)
    for op, wanted in (("FloorDiv", least), ("FloorMod", np.zeros(2, np.int64))):
        np.testing.assert_array_equal(run_ours(Case(op, [least, np.array([-1, -1])]), "GPU")[0], wanted)


def test_negative_powers_of_integers() -> None:
    x, y = np.array([2, 1, -1, -1, 0, 3]), np.array([-1, -5, -2, -3, -1, 4])
    assert run_ours(Case("Pow", [x, y]), "GPU")[0].tolist() == [0, 1, 1, -1, 0, 81]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_powers_of_any_numbers_are_those_of_c(dtype: Any) -> None:
    numbers = np.array([0.0, -0.0, 1, -1, 2, -2, 0.5, -0.5, 3, -3, np.inf, -np.inf, np.nan, 1e30, 1e-30, 2.5], dtype)
    got, wanted = both(Case("Pow", [numbers[:, None], numbers[None]]))
    # of a double e^(y log x), whose logarithm has 59 bits: |y log x| / 64 units more; here that is below 700
    units = 4 if dtype == np.float32 else 16
    with np.errstate(invalid="ignore"):
        tolerance.assert_within(got, wanted, units * tolerance.unit(dtype) * np.nan_to_num(np.abs(wanted)), "Pow")
    np.testing.assert_array_equal(
        np.signbit(got), np.signbit(wanted) & ~np.isnan(wanted) | np.signbit(got) & np.isnan(wanted)
    )


def test_remainders_of_floats_are_exact() -> None:
    x = np.array([5.5, -5.5, 1e30, 3.0, -0.0, np.inf, 1.0, 1.0], np.float32)
    y = np.array([2.0, 2.0, 0.7, -2.0, 3.0, 2.0, np.inf, 0.0], np.float32)
    got, wanted = both(Case("FloorMod", [x, y]))
    np.testing.assert_array_equal(got, wanted)


def test_floats_that_no_integer_holds() -> None:
    values = [np.nan, np.inf, -np.inf, 3e9, -3e9, 1e19, -1e19, 2.0**63, -(2.0**63), 255.9, -1.5, 0.0]
    for given in (np.float32, np.float64, np.float16):
        for target in ("int8", "uint8", "int16", "int32", "uint32", "int64", "uint64", "bool"):
            with np.errstate(all="ignore"):
                got, wanted = both(Case("Cast", [np.array(values, np.float64).astype(given)], {"DstT": target}))
            np.testing.assert_array_equal(got, wanted, err_msg=f"{given.__name__} to {target}")


def test_casts_that_truncate() -> None:
    x = np.random.default_rng(0).normal(size=100)
    for given in (np.float64, np.float32):
        for target in ("float32", "bfloat16", "float16"):
            case = Case("Cast", [x.astype(given)], {"DstT": target, "Truncate": True})
            got, wanted = both(case)
            np.testing.assert_array_equal(got.astype(np.float64), wanted.astype(np.float64))


def test_shapes_that_do_not_broadcast() -> None:
    x, y = np.zeros((2, 3), np.float32), np.zeros((4,), np.float32)
    with pytest.raises(InvalidArgumentError, match=r"Incompatible shapes: \[2,3\] vs. \[4\]"):
        run_ours(Case("Mul", [x, y]), "GPU")
    assert not run_ours(Case("Equal", [x, y], {"incompatible_shape_error": False}), "GPU")[0]


def test_a_range_of_more_than_a_block() -> None:
    for dtype in (np.float32, np.float16, np.int64, ml_dtypes.bfloat16):
        start, limit, delta = (np.array(value, dtype) for value in (3, 1000, 2))
        got, wanted = both(Case("Range", [start, limit, delta]))
        np.testing.assert_array_equal(got.astype(np.float64), wanted.astype(np.float64))


def _result(op: str, kind: str, dtype: str) -> str:
    """The type of an op's result."""
    if op in ("Real", "Imag", "ComplexAbs", "Angle"):
        return {"complex64": "float32", "complex128": "float64"}[dtype]
    if op == "Complex":
        return {"float32": "complex64", "float64": "complex128"}[dtype]
    compares = op.startswith(("Less", "Greater", "Equal", "NotEqual", "Is", "Logical", "Approximate"))
    return "bool" if compares else "uint8" if op == "PopulationCount" else dtype


#: how many inputs an op has, where it is not one or two
_THREE = frozenset(("Select", "SelectV2", "ClipByValue"))


@pytest.mark.parametrize("kind", ["f", "i", "u", "b", "c"])
def test_ptxas_takes_every_operator(kind: str) -> None:
    """Each op once for each register type, as the flat kernel of its weight; none spills registers."""
    import inspect

    wrong: list[str] = []
    for (op, own), row in GPU_OPERATORS.items():
        if own != kind:
            continue
        for dtype in {"f": ("float32", "float64"), "i": ("int32",), "u": ("uint8",), "b": ("bool",),
                      "c": ("complex64",)}[kind]:  # fmt: skip
            if op == "Complex" and dtype not in ("float32", "float64"):
                continue
            parameters = [p for p in inspect.signature(row.write).parameters.values() if p.name not in row.attributes]
            count = 3 if op in _THREE else max(1, len(parameters) - 1)
            types = ["bool" if op.startswith("Select") and i == 0 else dtype for i in range(count)]
            assert is_writable(op, types, dtype)
            attributes = tuple((name, 0.25) for name in row.attributes)
            step = NestStep(op, tuple(range(count)), _result(op, kind, dtype), attributes)
            made = fused([step], [NestOperand(name, (1,)) for name in types], [count], (1000,))
            found = assembled(ptx.write(made.kernel, CAPABILITY), CAPABILITY)
            if found.spills:
                wrong.append(f"{op} of {dtype}: {found}")
    assert not wrong, "\n".join(wrong)


def test_every_type_is_cast_to_every_other() -> None:
    names = sorted(NUMBER_TYPES)
    for source in names:
        steps = [NestStep("Cast", (0,), target) for target in names]
        made = fused(steps, [NestOperand(source, (1,))], range(1, len(names) + 1), (64,))
        assert assembled(ptx.write(made.kernel, CAPABILITY), CAPABILITY).registers
    assert number_type("complex64").size == 8
