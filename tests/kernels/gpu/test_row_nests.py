"""Fused kernels whose rows are in registers: values beside NumPy's, how operands lie, what a GPU's assembler says."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests import tolerance
from tests.kernels.cuda.assembler import assembled
from toolkit.errors import InternalError
from toolkit.kernels.cuda.simt import machine, ptx
from toolkit.kernels.gpu.elementwise.nests import FusedKernel, NestOperand, NestStep, broadcast_strides
from toolkit.kernels.gpu.elementwise.row_nests import LONGEST_ROW, fused_rows, is_reduction

CAPABILITY = (9, 0)


def run(
    steps: Sequence[NestStep], arrays: Sequence[Any], outputs: Mapping[int, Sequence[int]], shape: Sequence[int]
) -> tuple[list[Any], FusedKernel]:
    """What a kernel makes of arrays that broadcast to a shape; outputs with their shapes."""
    operands = [NestOperand(array.dtype.name, broadcast_strides(array.shape, shape)) for array in arrays]
    made = fused_rows(steps, operands, list(outputs), shape)
    types = [*(array.dtype for array in arrays), *(np.dtype(_numpy(step.dtype)) for step in steps)]
    found = [np.zeros(math.prod(own), types[place]) for place, own in outputs.items()]
    machine.run(
        made.kernel, made.blocks, [*(np.ascontiguousarray(a).reshape(-1) for a in arrays), *found, *made.numbers]
    )
    return [flat.reshape(own) for flat, own in zip(found, outputs.values(), strict=True)], made


def _numpy(name: str) -> Any:
    return ml_dtypes.bfloat16 if name == "bfloat16" else name


def normal(shape: Sequence[int], dtype: Any = np.float32, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=tuple(shape)).astype(dtype)


def _norm(dtype: str = "float32") -> list[NestStep]:
    """x + r, and that normalized along its rows, with operands x, r, epsilon, gamma, beta."""
    steps = [
        ("AddV2", (0, 1)), ("Mean", (5,)), ("SquaredDifference", (5, 6)), ("Mean", (7,)), ("AddV2", (8, 2)),
        ("Rsqrt", (9,)), ("Sub", (5, 6)), ("Mul", (11, 10)), ("Mul", (12, 3)), ("AddV2", (13, 4)),
    ]  # fmt: skip
    return [NestStep(op, inputs, dtype) for op, inputs in steps]


#: rows of a thread, of some lanes, of a warp, of blocks; with lengths that end within a team or a vector
@pytest.mark.parametrize("columns", [2, 7, 12, 128, 130, 260, 768, 1001, LONGEST_ROW])
@pytest.mark.parametrize("rows", [1, 3, 9])
def test_a_layer_norm_behind_a_sum(rows: int, columns: int) -> None:
    x, r = normal((rows, columns)), normal((rows, columns), seed=1)
    gamma, beta, epsilon = normal((columns,), seed=2), normal((columns,), seed=3), np.float32(1e-3)
    outputs = {5: (rows, columns), 8: (rows, 1), 14: (rows, columns)}
    (total, variance, y), _ = run(_norm(), [x, r, epsilon, gamma, beta], outputs, (rows, columns))
    np.testing.assert_array_equal(total, x + r)
    wide = (x + r).astype(np.float64)
    mean, spread = wide.mean(-1, keepdims=True), wide.var(-1, keepdims=True)
    # a sum of `columns` numbers and the eight roundings of what is computed with it; a difference from the mean is off
    # by what both of its sides are
    rounding, sides = tolerance.likely(columns + 8), np.abs(wide) + np.abs(wide).mean(-1, keepdims=True)
    tolerance.assert_within(variance, spread, rounding * (sides**2).mean(-1, keepdims=True), "variance")
    normal_form = (wide - mean) / np.sqrt(spread + 1e-3) * gamma
    allowed = rounding * (sides / np.sqrt(spread + 1e-3) * np.abs(gamma) + np.abs(normal_form) + np.abs(beta))
    tolerance.assert_within(y, normal_form + beta, allowed, "norm")


@pytest.mark.parametrize("shape", [(5, 9), (2, 3, 4, 8), (130, 33), (3, 4, 700)])
@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
def test_a_softmax_behind_scale_and_mask(op: str, shape: tuple[int, ...]) -> None:
    x, mask = 3 * normal(shape), normal((shape[0], *(1 for _ in shape[1:-1]), shape[-1]), seed=1)
    steps = [NestStep("Mul", (0, 1), "float32"), NestStep("AddV2", (3, 2), "float32"), NestStep(op, (4,), "float32")]
    (found,), _ = run(steps, [x, np.float32(0.25), mask], {5: shape}, shape)
    wide = x.astype(np.float64) * 0.25 + mask
    shifted = wide - wide.max(-1, keepdims=True)
    logarithm = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    # the argument's three roundings count as they are in the logarithm, relative in the exponential
    size = np.abs(x * 0.25) + np.abs(mask) + np.abs(wide.max(-1, keepdims=True)) + np.abs(logarithm) + 1
    allowed = tolerance.likely(shape[-1] + 8) * size
    expected = logarithm if op == "LogSoftmax" else np.exp(logarithm)
    tolerance.assert_within(found, expected, allowed if op == "LogSoftmax" else allowed * expected, op)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_reductions_of_other_types(dtype: str) -> None:
    """Each is rounded where it ends, as the ops by themselves are; maxima and minima are exact."""
    x = normal((6, 40), _numpy(dtype))
    steps = [NestStep(op, (0,), dtype) for op in ("Max", "Min", "Sum")] + [NestStep("Sub", (1, 2), dtype)]
    (largest, smallest, total, width), _ = run(steps, [x], {1: (6,), 2: (6, 1), 3: (6,), 4: (6,)}, (6, 40))
    np.testing.assert_array_equal(largest, x.max(-1))
    np.testing.assert_array_equal(smallest, x.min(-1, keepdims=True))
    np.testing.assert_array_equal(width, x.max(-1) - x.min(-1))
    exact, sizes = x.astype(np.float64).sum(-1), np.abs(x.astype(np.float64)).sum(-1)
    wide = np.float64 if dtype == "float64" else np.float32  # that it is added in
    allowed = tolerance.likely(40, wide) * sizes + tolerance.unit(x.dtype) * np.abs(exact)
    tolerance.assert_within(total, exact, allowed, dtype)


def test_a_nan_in_a_row_is_in_what_the_row_gives() -> None:
    x = normal((4, 20))
    x[2, 7] = np.nan
    steps = [NestStep("Max", (0,), "float32"), NestStep("Softmax", (0,), "float32")]
    (largest, softmax), _ = run(steps, [x], {1: (4,), 2: (4, 20)}, (4, 20))
    assert np.isnan(largest[2]) and np.isnan(softmax[2]).all()
    assert np.isfinite(largest[[0, 1, 3]]).all() and np.isfinite(softmax[[0, 1, 3]]).all()


def test_operands_of_each_kind() -> None:
    """Whole, a number a row, a number a column, one number, and along some of the axes before the last."""
    shape = (3, 2, 5, 12)
    shapes = [shape, (3, 2, 5, 1), (12,), (), (2, 1, 12), (3, 1, 1, 1), (1, 1, 5, 12)]
    arrays = [normal(own, seed=at) for at, own in enumerate(shapes)]
    # operands are 0 to 6, sums from 7 on
    steps = [NestStep("AddV2", (0, 1), "float32")]
    steps += [NestStep("AddV2", (at + 5, at), "float32") for at in range(2, 7)]
    (found,), _ = run(steps, arrays, {12: shape}, shape)
    expected = arrays[0]
    for each in arrays[1:]:
        expected = expected + each
    np.testing.assert_array_equal(found, expected)


def test_what_cannot_be_held_is_said() -> None:
    assert is_reduction("Mean", "float32") and not is_reduction("Mean", "int32") and not is_reduction("Prod", "float32")
    step = [NestStep("Sum", (0,), "float32")]
    with pytest.raises(InternalError, match="rows of 5000 numbers"):
        fused_rows(step, [NestOperand("float32", (5000, 1))], [1], (2, 5000))
    with pytest.raises(InternalError, match="with strides"):
        fused_rows(step, [NestOperand("float32", (1, 2))], [1], (2, 4))


@pytest.mark.parametrize("columns", [8, 33, 128, 768, LONGEST_ROW])
def test_kernels_are_assembled_without_spills(columns: int) -> None:
    operands = [NestOperand("float32", (columns, 1))] * 2
    operands += [NestOperand("float32", own) for own in ((0, 0), (0, 1), (0, 1))]
    made = fused_rows(_norm(), operands, [5, 14], (256, columns))
    found = assembled(ptx.write(made.kernel, CAPABILITY), CAPABILITY)
    assert not found.spills, found
