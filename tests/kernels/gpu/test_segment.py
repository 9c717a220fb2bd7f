"""Segments, places of what is not zero, distinct numbers, counts and boxes on a GPU, in sizes of several tiles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.kernels.op_suite import Case, compare_outputs, prepare, run_ours

COLUMNS = [(), (1,), (3,), (40,)]


def _agrees(op: str, inputs: list[Any], attrs: dict[str, Any] | None = None) -> list[Any]:
    case = Case(op, inputs, attrs or {})
    ready = prepare(case)
    got = run_ours(case, "GPU", ready=ready)
    compare_outputs(case, got, run_ours(case, ready=ready, defining=True), ready)
    return got


def _normal(*shape: int) -> Any:
    return np.random.default_rng(1).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("columns", COLUMNS, ids=str)
@pytest.mark.parametrize("how", ["Sum", "Prod", "Max", "Min"])
def test_segments_in_any_order(how: str, columns: tuple[int, ...]) -> None:
    """More ids than a tile holds, some below 0, some segments without rows; the same bits each time."""
    ids = np.random.default_rng(2).integers(-2, 50, 5000)
    data = 1 + 0.01 * _normal(5000, *columns)
    first, second = (_agrees(f"UnsortedSegment{how}", [data, ids, np.int32(60)])[0] for _ in range(2))
    assert first.tobytes() == second.tobytes()


@pytest.mark.parametrize("columns", COLUMNS, ids=str)
def test_long_segments(columns: tuple[int, ...]) -> None:
    """A block takes each."""
    ids = np.random.default_rng(9).integers(0, 5, 6000)
    data = _normal(6000, *columns)
    for how in ("Sum", "Max"):
        _agrees(f"UnsortedSegment{how}", [data, ids, np.int32(6)])
    _agrees("SegmentMean", [data, np.sort(ids).astype(np.int32)])


def test_ids_beyond_the_segments_are_left_out() -> None:
    data, ids = _normal(6, 2), np.int32([0, 9, 1, -1, 1, 3])
    (got,) = run_ours(Case("UnsortedSegmentSum", [data, ids, np.int32(3)]), "GPU")
    np.testing.assert_array_equal(got, [data[0], data[2] + data[4], [0, 0]])


@pytest.mark.parametrize("columns", COLUMNS, ids=str)
@pytest.mark.parametrize("how", ["Sum", "Mean", "Prod", "Max", "Min"])
def test_segments_in_order(how: str, columns: tuple[int, ...]) -> None:
    ids = np.sort(np.random.default_rng(3).integers(2, 40, 700)).astype(np.int32)
    _agrees(f"Segment{how}", [1 + 0.01 * _normal(700, *columns), ids])


@pytest.mark.parametrize("kind", ["Sum", "Mean", "SqrtN"])
def test_rows_by_index_and_their_gradients(kind: str) -> None:
    rng = np.random.default_rng(4)
    data, indices = _normal(30, 7), rng.integers(0, 30, 3000)
    ids = np.sort(rng.integers(0, 20, 3000)).astype(np.int32)
    _agrees(f"SparseSegment{kind}", [data, indices, ids])
    _agrees(f"SparseSegment{kind}WithNumSegments", [data, indices, ids, np.int32(25)])
    _agrees(f"SparseSegment{kind}Grad", [_normal(20, 7), indices, ids, np.int32(30)])
    _agrees(f"SparseSegment{kind}GradV2", [_normal(20, 7), indices, ids, np.int32(30)])


@pytest.mark.parametrize("shape", [(5,), (70_000,), (30, 7, 20)], ids=str)
@pytest.mark.parametrize("dtype", ["bool", "float32", "int8", "complex64", "int64"])
def test_where(shape: tuple[int, ...], dtype: str) -> None:
    x = np.random.default_rng(5).integers(0, 2, shape).astype(dtype)
    _agrees("Where", [x * (1j if dtype == "complex64" else 1)])


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "float16", "float64", "uint8", "bool"])
def test_distinct_numbers(dtype: str) -> None:
    """In the order of appearance, over several tiles; -0 is 0, and NaN equals nothing."""
    x = np.random.default_rng(6).integers(0, 300, 5000).astype(dtype)
    if np.dtype(dtype).kind == "f":
        x[[3, 50, 700]], x[[5, 9]] = np.nan, -0.0
    _agrees("Unique", [x], {"out_idx": "int64"})
    _agrees("UniqueWithCounts", [x])


def test_counts() -> None:
    rng = np.random.default_rng(7)
    values, weights = rng.integers(0, 60, (20, 300)).astype(np.int32), _normal(20, 300)
    for size in (50, 100):
        _agrees("Bincount", [values, np.int32(size), np.zeros(0, np.float32)])
        _agrees("DenseBincount", [values, np.int32(size), np.zeros(0, np.int32)])
        _agrees("DenseBincount", [values, np.int32(size), np.zeros(0, np.float32)], {"binary_output": True})
    _agrees("Bincount", [values, np.int32(60), (weights > 0).astype(np.float32)])
    (first,), (second,) = (run_ours(Case("DenseBincount", [values, np.int32(60), weights]), "GPU") for _ in range(2))
    assert first.tobytes() == second.tobytes()
    wanted = [np.bincount(row, each, 60) for row, each in zip(values, weights, strict=True)]
    np.testing.assert_allclose(first, wanted, atol=1e-5)  # sums of five numbers about 1, of 1e-7 each


def test_histogram() -> None:
    for size in (3000, 20_000):  # by each number, by each block
        _agrees("HistogramFixedWidth", [_normal(size), np.float32([-2, 2]), np.int32(37)])


def test_boxes_that_do_not_overlap() -> None:
    """More boxes than words of 32 have bits."""
    rng = np.random.default_rng(8)
    corners = rng.uniform(0, 1, (300, 2)).astype(np.float32)
    boxes = np.concatenate([corners, corners + rng.uniform(0.05, 0.2, (300, 2)).astype(np.float32)], 1)
    scores = rng.uniform(size=300).astype(np.float32)
    for limit in (5, 300):
        _agrees("NonMaxSuppressionV3", [boxes, scores, np.int32(limit), np.float32(0.3), np.float32(0.1)])
    _agrees("NonMaxSuppressionV4", [boxes, scores, np.int32(400), np.float32(0.3), np.float32(0.1)],
            {"pad_to_max_output_size": True})  # fmt: skip
