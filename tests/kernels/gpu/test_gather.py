"""Gathering and scattering on a GPU: indices out of range, rows named several times, and results that stay the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.kernels.op_suite import Case, run_ours
from toolkit.kernels.cuda.device import CudaDevice, device
from toolkit.kernels.gpu.primitives.ordering import order_of

_RNG = np.random.default_rng(7)


@pytest.fixture
def deterministic(driver: None) -> Iterator[CudaDevice]:
    gpu = device(0)
    before, gpu.deterministic = gpu.deterministic, True
    yield gpu
    gpu.deterministic = before


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16, np.float32, np.complex128])
@pytest.mark.parametrize("width", [1, 2, 3, 8])
def test_rows_out_of_range_are_zeros(dtype: Any, width: int) -> None:
    params = _RNG.integers(1, 100, (5, width)).astype(dtype)
    indices = np.array([[4, -1, 0], [5, 2, 1 << 30]], np.int32)
    wanted = np.where(((indices >= 0) & (indices < 5))[..., None], params[np.clip(indices, 0, 4)], 0)
    (y,) = run_ours(Case("Gather", [params, indices]), "GPU")
    np.testing.assert_array_equal(y, wanted)
    (y,) = run_ours(Case("GatherNd", [params, indices[..., None]]), "GPU")
    np.testing.assert_array_equal(y, wanted)


@pytest.mark.parametrize("op", ["ScatterNd", "TensorScatterAdd"])
def test_updates_out_of_range_are_left_out(op: str) -> None:
    indices, updates = np.array([[7], [0], [-2], [0]]), np.arange(12, dtype=np.float32).reshape(4, 3)
    base = np.zeros((3, 3), np.float32)
    inputs = [indices, updates, np.array([3, 3])] if op == "ScatterNd" else [base, indices, updates]
    (y,) = run_ours(Case(op, inputs), "GPU")
    np.testing.assert_array_equal(y, [updates[1] + updates[3], [0, 0, 0], [0, 0, 0]])


def test_the_order_of_rows_is_that_of_their_numbers(deterministic: CudaDevice) -> None:
    """Long lists, several of them, and rows that are named once, or out of range."""
    rows = np.concatenate([np.full(300, 2), _RNG.integers(-1, 9, 500), [5] * 40])
    _RNG.shuffle(rows)
    again, behind = (deterministic.to_host(each) for each in order_of(deterministic, deterministic.to_device(rows), 8))
    for i, row in enumerate(rows):
        same = np.flatnonzero(rows == row)
        inside = 0 <= row < 8
        assert again[i] == (not inside or same[0] < i)
        later = same[same > i]
        assert behind[i] == (later[0] if inside and len(later) else len(rows))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
def test_sums_in_order_are_the_cpus_bits(deterministic: CudaDevice, dtype: Any) -> None:
    indices = _RNG.integers(0, 6, (200, 1))
    updates = (_RNG.normal(size=(200, 5)) * 10.0 ** _RNG.integers(-3, 4, (200, 1))).astype(dtype)
    case = Case("ScatterNd", [indices, updates, np.array([6, 5])])
    np.testing.assert_array_equal(run_ours(case, "GPU")[0], run_ours(case)[0])


def test_sums_in_any_order_are_near(driver: None) -> None:
    indices, updates = _RNG.integers(0, 6, (200, 1)), _RNG.normal(size=(200, 5)).astype(np.float32)
    case = Case("TensorScatterSub", [np.zeros((6, 5), np.float32), indices, updates])
    # 200 roundings of numbers up to 20
    np.testing.assert_allclose(run_ours(case, "GPU")[0], run_ours(case)[0], atol=200 * 20 * 2**-24)


@pytest.mark.parametrize("op", ["TensorScatterMin", "TensorScatterMax"])
def test_nan_is_kept(op: str) -> None:
    updates = np.array([1, np.nan, -3, 2], np.float32)
    case = Case(op, [np.array([0, 5], np.float32), np.array([[0], [0], [0], [1]]), updates])
    np.testing.assert_array_equal(run_ours(case, "GPU")[0], run_ours(case)[0])


def test_the_last_update_stays() -> None:
    updates = np.arange(40, dtype=np.complex128).reshape(20, 2)
    case = Case("TensorScatterUpdate", [np.zeros((3, 2), np.complex128), np.arange(20)[:, None] % 3, updates])
    np.testing.assert_array_equal(run_ours(case, "GPU")[0], updates[[18, 19, 17]])


def test_partitions_are_parts_of_one_gather() -> None:
    data, ids = _RNG.normal(size=(50, 7)), _RNG.integers(0, 4, 50).astype(np.int32)
    parts = run_ours(Case("DynamicPartition", [data, ids], {"num_partitions": 4}), "GPU")
    for number, rows in enumerate(parts):
        np.testing.assert_array_equal(rows, data[ids == number])
