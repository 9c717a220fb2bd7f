"""Fused elementwise kernels: values, how they lie, and what becomes of them on a GPU."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests import tolerance
from tests.kernels.cuda.assembler import assembled
from toolkit.errors import InternalError
from toolkit.kernels.cuda.simt import machine, ptx
from toolkit.kernels.gpu.elementwise.nests import (
    FusedKernel,
    NestOperand,
    NestStep,
    broadcast_strides,
    fused,
    is_writable,
)

CAPABILITY = (9, 0)


def _numpy_type(name: str) -> np.dtype[Any]:
    return np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)


def _memory(array: Any) -> Any:
    """As the machine takes it: integers without a sign are their bits, complex numbers two numbers."""
    flat = np.ascontiguousarray(array).reshape(-1)
    if flat.dtype.kind in "bu":
        flat = flat.view(np.dtype(f"i{flat.dtype.itemsize}"))
    return (flat.view(flat.real.dtype) if flat.dtype.kind == "c" else flat).copy()


def run(
    steps: Sequence[NestStep], arrays: Sequence[Any], outputs: Sequence[int], shape: Sequence[int]
) -> tuple[list[Any], FusedKernel]:
    """What a fused kernel makes of arrays that broadcast to a shape."""
    operands = [NestOperand(array.dtype.name, broadcast_strides(array.shape, shape)) for array in arrays]
    made = fused(steps, operands, outputs, shape)
    types = [*(array.dtype.name for array in arrays), *(step.dtype for step in steps)]
    found = [np.zeros(shape, _numpy_type(types[output])) for output in outputs]
    memory = [_memory(each) for each in found]
    machine.run(made.kernel, made.blocks, [*map(_memory, arrays), *memory, *made.numbers])
    return [flat.view(each.dtype).reshape(shape) for flat, each in zip(memory, found, strict=True)], made


def normal(shape: Sequence[int], dtype: Any = np.float32, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=tuple(shape)).astype(dtype)


def test_several_outputs_of_a_chain() -> None:
    x, bias = normal((7, 12)), normal((12,), seed=1)
    steps = [
        NestStep("AddV2", (0, 1), "float32"),
        NestStep("Relu", (2,), "float32"),
        NestStep("Greater", (2, 3), "bool"),
        NestStep("Cast", (4,), "int64"),
    ]
    (total, relu, counts), _ = run(steps, [x, bias], [2, 3, 5], (7, 12))
    np.testing.assert_array_equal(total, x + bias)
    np.testing.assert_array_equal(relu, np.maximum(x + bias, 0))
    np.testing.assert_array_equal(counts, ((x + bias) > np.maximum(x + bias, 0)).astype(np.int64))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_narrow_types_are_rounded_where_an_op_ends(dtype: Any) -> None:
    x, y = normal((203,), dtype), normal((203,), dtype, 1)
    steps = [NestStep("Mul", (0, 1), x.dtype.name), NestStep("Sub", (2, 0), x.dtype.name)]
    (found,), _ = run(steps, [x, y], [3], x.shape)
    np.testing.assert_array_equal(found.astype(np.float32), ((x * y) - x).astype(np.float32))


@pytest.mark.parametrize("columns", [1, 5, 12])
@pytest.mark.parametrize("shape", [(3, 1), (1, -1), (3, -1), (-1,), (5, 1, -1), (5, 3, 1), (1, 3, 1), (), (5, 1, 1)])
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.complex64, np.uint16])
def test_operands_broadcast(shape: tuple[int, ...], columns: int, dtype: Any) -> None:
    whole = (5, 3, columns)
    x = (10 * normal(whole)).astype(dtype)
    y = (10 * normal([columns if size == -1 else size for size in shape], seed=1)).astype(dtype)
    for first, second in ((x, y), (y, x)):
        (found,), _ = run([NestStep("Sub", (0, 1), x.dtype.name)], [first, second], [2], whole)
        np.testing.assert_array_equal(found, first - second)


def test_a_transposed_operand() -> None:
    x, y = normal((6, 8)), normal((8, 6), seed=1)
    made = fused([NestStep("Mul", (0, 1), "float32")],
                 [NestOperand("float32", (8, 1)), NestOperand("float32", (1, 6))], [2], (6, 8))  # fmt: skip
    out = np.zeros(48, np.float32)
    machine.run(made.kernel, made.blocks, [x.ravel(), y.ravel(), out, *made.numbers])
    np.testing.assert_array_equal(out.reshape(6, 8), x * y.T)


def test_one_kernel_serves_all_shapes() -> None:
    steps = [NestStep("AddV2", (0, 1), "float32")]
    kernels = {run(steps, [normal((rows, 8)), normal((8,))], [2], (rows, 8))[1].kernel for rows in (1, 2, 3, 1000)}
    assert len(kernels) == 2  # of one row nothing is broadcast


def test_no_elements_are_no_blocks() -> None:
    assert fused([NestStep("Neg", (0,), "float32")], [NestOperand("float32", (1, 1))], [1], (0, 3)).blocks == 0


def test_what_cannot_be_written_is_said() -> None:
    assert is_writable("AddV2", ["float32", "float32"], "float32") and not is_writable("MatMul", ["float32"], "float32")
    assert not is_writable("AddV2", ["object", "object"], "object")
    with pytest.raises(InternalError, match="computes MatMul of float32"):
        fused([NestStep("MatMul", (0, 0), "float32")], [NestOperand("float32", (1,))], [1], (4,))
    with pytest.raises(InternalError, match="has 2 strides in a nest of 1 dimensions"):
        fused([NestStep("Neg", (0,), "float32")], [NestOperand("float32", (1, 1))], [1], (4,))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64", "complex64", "int8"])
def test_sixteen_bytes_at_a_time(dtype: str) -> None:
    """What LLVM joins, and what ptxas makes of it."""
    flat = fused([NestStep("AddV2", (0, 1), dtype)], [NestOperand(dtype, (1,)), NestOperand(dtype, (0,))], [2], (64,))
    rows = fused([NestStep("AddV2", (0, 1), dtype)], [NestOperand(dtype, (64, 1)), NestOperand(dtype, (0, 1))], [2],
                 (3, 64))  # fmt: skip
    for made in (flat, rows):
        text = ptx.write(made.kernel, CAPABILITY)
        joined = r"(v4\.[bf]32|v2\.[bf]64)" if dtype != "int8" else r"v2\.b32"  # of single bytes eight
        assert re.search(rf"ld\.global[.\w]*\.{joined}", text), text
        assert re.search(rf"st\.global[.\w]*\.{joined}", text), text
        assert assembled(text, CAPABILITY).spills == 0
    parts = fused([NestStep("AddV2", (0, 1), dtype)], [NestOperand(dtype, (1,))] * 2, [2], (64,), aligned=False)
    vectors = re.findall(r"(?:ld|st)\.global[.\w]*\.v\d", ptx.write(parts.kernel, CAPABILITY))
    assert len(vectors) == (3 if dtype == "complex64" else 0)  # complex numbers are themselves aligned


def test_long_computations_take_fewer_elements_at_a_time() -> None:
    made = fused([NestStep("Sin", (0,), "float32")], [NestOperand("float32", (1,))], [1], (1000,))
    assert made.blocks == 4


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("op", ["Sin", "Cos"])
def test_arguments_of_any_size_are_reduced(op: str, dtype: Any) -> None:
    """Multiples of pi/2, the doubles that are nearest to one, and what has hardly any digits behind the point."""
    largest = np.log10(float(np.finfo(dtype).max))
    x = np.concatenate([
        np.arange(1, 40) * np.pi / 2, np.arange((1 << 20) - 4, (1 << 20) + 4) * np.pi / 2,
        np.random.default_rng(0).choice([-1, 1], 200) * 10 ** np.linspace(-6, largest, 200, endpoint=False),
        [6381956970095103 * 2.0**797 if dtype == np.float64 else 16367173 * 2.0**72, 0.0, -0.0],
    ]).astype(dtype)  # fmt: skip
    (found,), _ = run([NestStep(op, (0,), x.dtype.name)], [x], [1], x.shape)
    wanted = np.array([{"Sin": math.sin, "Cos": math.cos}[op](value) for value in x.tolist()])
    if (op, dtype) == ("Cos", np.float64):
        wanted[247] = -4.6871659242546276e-19  # by 3000 bits; the C library's and NumPy's are eight units off
    # two units: those of the argument count nothing, for both reduce it exactly
    tolerance.assert_within(found, wanted, 4 * tolerance.unit(dtype) * np.abs(wanted), op)
    assert np.array_equal(np.signbit(found), np.signbit(wanted))
    (found,), _ = run([NestStep(op, (0,), x.dtype.name)], [np.array([np.nan, np.inf, -np.inf], dtype)], [1], (3,))
    assert np.isnan(found).all()


@pytest.mark.parametrize("columns", [1, 3, 8])
@pytest.mark.parametrize("rows", [1, 5])
def test_parts_of_tensors(rows: int, columns: int) -> None:
    """Read and written within rows that are longer, by the strides of these."""
    whole, shape = normal((rows, 4 * columns)), (rows, columns)
    steps = [NestStep("Sub", (0, 1), "float32"), NestStep("Mul", (2, 0), "float32")]
    wide = (4 * columns, 1)
    operands = [NestOperand("float32", wide), NestOperand("float32", wide)]
    placed = [(3 * columns, 1), (columns, 1)]
    made = fused(steps, operands, [2, 3], shape, placed=placed, aligned=columns % 4 == 0)
    joined, product = np.zeros((rows, 3 * columns), np.float32), np.zeros(shape, np.float32)
    memory = [whole.ravel()[columns:], whole.ravel()[3 * columns :], joined.ravel()[2 * columns :], product.ravel()]
    machine.run(made.kernel, made.blocks, [*memory, *made.numbers])
    x, y = whole[:, columns : 2 * columns], whole[:, 3 * columns :]
    np.testing.assert_array_equal(joined, np.concatenate([np.zeros((rows, 2 * columns)), x - y], 1))
    np.testing.assert_array_equal(product, (x - y) * x)
    assert assembled(ptx.write(made.kernel, CAPABILITY), CAPABILITY).spills == 0


def test_every_output_has_strides_of_all_dimensions() -> None:
    with pytest.raises(InternalError, match="has 1 strides in a nest of 2 dimensions"):
        fused([NestStep("Neg", (0,), "float32")], [NestOperand("float32", (4, 1))], [1], (2, 4), placed=[(1,)])
