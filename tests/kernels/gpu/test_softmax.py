"""Softmax and cross entropies on a GPU: rows of lanes, of blocks, in registers and walked along."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.kernels.cuda.assembler import assembled
from tests.kernels.op_suite import Case, compare_outputs, prepare, run_ours
from toolkit.kernels.cuda.simt import machine, ptx
from toolkit.kernels.gpu.nn.cross_entropy import HELD, dense_kernel, sparse_kernel
from toolkit.kernels.gpu.nn.softmax import softmax_kernel
from toolkit.kernels.gpu.primitives.number_types import number_of
from toolkit.kernels.gpu.primitives.row_code import WALKERS, team_for

#: a few lanes, a warp, blocks of each size, walked along; of which the second of a pair has no whole vectors
COLUMNS = [3, 40, 1000, 1023, 5000, 5001, 16384, 20001]
TYPES = [np.float32, np.float16, ml_dtypes.bfloat16, np.float64]


def _agrees(op: str, inputs: list[Any]) -> list[Any]:
    case = Case(op, inputs)
    ready = prepare(case)
    got = run_ours(case, "GPU", ready=ready)
    compare_outputs(case, got, run_ours(case, ready=ready, defining=True), ready)
    return got


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: np.dtype(t).name)
def test_rows_of_every_length(columns: int, dtype: Any) -> None:
    rng = np.random.default_rng(columns)
    x = (4 * rng.normal(size=(3, columns))).astype(dtype)
    labels = np.abs(rng.normal(size=(3, columns))).astype(dtype)
    _agrees("Softmax", [x])
    _agrees("LogSoftmax", [x])
    _agrees("SoftmaxCrossEntropyWithLogits", [x, labels])
    if dtype is not np.float64:
        _agrees("SparseSoftmaxCrossEntropyWithLogits", [x, rng.integers(0, columns, 3)])


@pytest.mark.parametrize("columns", [40, 20001])
def test_infinities_and_nans(columns: int) -> None:
    x = np.random.default_rng(1).normal(size=(5, columns)).astype(np.float32)
    x[0, :2], x[1, 3], x[2, 5], x[3] = -np.inf, np.inf, np.nan, -np.inf
    _agrees("Softmax", [x])
    _agrees("LogSoftmax", [x])
    labels = np.zeros_like(x)
    labels[:, 7] = 1
    _agrees("SoftmaxCrossEntropyWithLogits", [x, labels])


@pytest.mark.parametrize("columns", [40, 20000])
def test_labels_that_are_no_class(columns: int) -> None:
    """Their rows are NaN, the others what they are without them."""
    x = np.random.default_rng(1).normal(size=(4, columns)).astype(np.float32)
    op = "SparseSoftmaxCrossEntropyWithLogits"
    loss, gradient = run_ours(Case(op, [x, np.int32([1, -1, columns, 2])]), "GPU")
    assert np.isnan(loss[1:3]).all() and np.isnan(gradient[1:3]).all()
    wanted = run_ours(Case(op, [x[::3], np.int32([1, 2])]), "GPU")
    np.testing.assert_array_equal(loss[::3], wanted[0])
    np.testing.assert_array_equal(gradient[::3], wanted[1])


def test_labels_for_all_rows() -> None:
    rng = np.random.default_rng(2)
    x, labels = rng.normal(size=(6, 30)).astype(np.float32), rng.uniform(size=(1, 30)).astype(np.float32)
    _agrees("SoftmaxCrossEntropyWithLogits", [x, labels])
    _agrees("SoftmaxCrossEntropyWithLogits", [labels, x])
    _agrees("SoftmaxCrossEntropyWithLogits", [x, labels[:, :1]])


@pytest.mark.parametrize("name", ["float32", "float16", "float64"])
def test_rows_fit_into_registers(name: str) -> None:
    """The longest rows that are not walked along."""
    number, columns = number_of(name), 16384
    kernels = [softmax_kernel(name, team_for(columns, number.vector, "i32", number.words), flag) for flag in (0, 1)]
    kernels.append(dense_kernel(name, team_for(columns, number.vector, "i32", HELD * number.words)))
    kernels.append(sparse_kernel(name, "int64", team_for(columns, number.vector, "i32", number.words)))
    for kernel in kernels:
        assert assembled(ptx.write(kernel, (9, 0)), (9, 0)).spills == 0, kernel.name


def test_teams() -> None:
    assert team_for(16384, 4, "i32", 1).slots == 8 and team_for(16388, 4, "i32", 1).slots == 0
    assert team_for(3, 1, "i32", 1).threads == 4 and team_for(100_000, 1, "i32", 1).threads == WALKERS


@pytest.mark.parametrize("columns", [40, 1000, 20000])
def test_indices_of_64_bits(columns: int) -> None:
    """What has 2^30 elements and more cannot be made here; its kernels are given a small array."""
    rng = np.random.default_rng(3)
    x, labels = rng.normal(size=(2, columns)).astype(np.float32), np.int64([1, columns - 1])
    for index in ("i32", "i64"):
        shape = team_for(columns, 4, index, 1)
        y, loss, gradient = (
            np.zeros(2 * columns, np.float32),
            np.zeros(2, np.float32),
            np.zeros(2 * columns, np.float32),
        )
        machine.run(softmax_kernel("float32", shape, False), shape.blocks(2), [x.ravel(), y, 2, columns // 4])
        machine.run(sparse_kernel("float32", "int64", shape), shape.blocks(2),
                    [x.ravel(), labels, loss, gradient, 2, columns // 4])  # fmt: skip
        wanted = run_ours(Case("SparseSoftmaxCrossEntropyWithLogits", [x, labels]), "GPU")
        np.testing.assert_array_equal(y.reshape(2, -1), run_ours(Case("Softmax", [x]), "GPU")[0])
        np.testing.assert_array_equal(loss, wanted[0])
        np.testing.assert_array_equal(gradient.reshape(2, -1), wanted[1])
