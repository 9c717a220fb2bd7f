"""Reductions, places of extremes and cumulative sums on a GPU: every shape of kernel, rows in chunks, the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.kernels.op_suite import Case, compare_outputs, prepare, run_ours
from toolkit.kernels.cuda.device import device
from toolkit.kernels.cuda.simt import machine, ptx
from toolkit.kernels.gpu.reductions.axes import reduction_of
from toolkit.kernels.gpu.reductions.kernels import Stage, columns_by_tiles, rows_by_blocks, rows_by_lanes
from toolkit.kernels.gpu.reductions.launch import collapse
from toolkit.kernels.gpu.reductions.scan import scan_of
from toolkit.kernels.gpu.reductions.scan_kernels import ScanForm, block_scan, line_scan

#: rows by 1 to 32 lanes, by blocks, in chunks; columns by tiles of 1 to 256, in chunks; several dimensions at once
SHAPES = [
    ((9, 1), [1]), ((700, 3), [1]), ((33, 40), [1]), ((3, 1000), [1]), ((3, 5000), [1]), ((3, 5001), [1]),
    ((50000,), [0]), ((700, 3), [0]), ((5000, 40), [0]), ((40000, 2), [0]), ((2, 3000), [0]), ((6, 50, 7), [1]),
    ((7, 33, 65), [0, 2]), ((3, 1, 5, 4, 6), [1, 3]), ((4, 5), [1, 0]),
]  # fmt: skip
TYPES = ["float32", "float16", "float64"]


def _agrees(op: str, inputs: list[Any], attrs: dict[str, Any] | None = None) -> list[Any]:
    case = Case(op, inputs, attrs or {})
    ready = prepare(case)
    got = run_ours(case, "GPU", ready=ready)
    compare_outputs(case, got, run_ours(case, ready=ready, defining=True), ready)
    return got


def _normal(shape: tuple[int, ...], dtype: str = "float32", seed: int = 1) -> Any:
    return (4 * np.random.default_rng(seed).normal(size=shape)).astype(dtype)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("shape", "axes"), SHAPES, ids=str)
def test_every_shape_of_reduction(shape: tuple[int, ...], axes: list[int], dtype: str) -> None:
    x = _normal(shape, dtype)
    for op in ("Sum", "Max"):
        first, second = (_agrees(op, [x, np.int32(axes)])[0] for _ in range(2))
        assert first.tobytes() == second.tobytes()


@pytest.mark.parametrize("shape", [(40, 70), (3, 5000), (1, 50000), (9000, 3)], ids=str)
def test_places_of_extremes_in_chunks(shape: tuple[int, ...]) -> None:
    """Of equal numbers the first, whichever chunk it is in."""
    x = np.random.default_rng(2).integers(0, 50, shape).astype(np.float32)
    x[0, :2] = np.nan
    for op in ("ArgMax", "ArgMin"):
        for axis in (0, 1):
            _agrees(op, [x, np.int32(axis)])


def test_complex_numbers_are_pairs() -> None:
    x = (_normal((6, 5, 4)) + 1j * _normal((6, 5, 4), seed=2)).astype(np.complex64)
    for op in ("Sum", "Mean", "EuclideanNorm"):
        for axes in ([0], [2], [0, 2], [0, 1, 2]):
            _agrees(op, [x, np.int32(axes)])


@pytest.mark.parametrize("shape", [(70, 40), (3, 999), (1, 100_000), (5000, 2), (3, 70, 5)], ids=str)
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_cumulative_sums_in_chunks(shape: tuple[int, ...], exclusive: bool, reverse: bool) -> None:
    attrs = {"exclusive": exclusive, "reverse": reverse}
    for axis in range(len(shape)):
        x = np.random.default_rng(3).integers(-9, 9, shape)
        _agrees("Cumsum", [x.astype(np.int64), np.int32(axis)], attrs)
        _agrees("Cumsum", [x.astype(np.float32), np.int32(axis)], attrs)


def test_order_of_factors_is_kept() -> None:
    """log(e^a + e^b) is put together from the left, also by lanes and by warps."""
    x = _normal((2, 300), "float64")
    _agrees("CumulativeLogsumexp", [x, np.int32(1)])
    _agrees("CumulativeLogsumexp", [np.full((1, 200), -np.inf), np.int32(1)])


@pytest.mark.parametrize("form", ["lanes", "blocks", "columns"])
def test_indices_of_64_bits(form: str) -> None:
    """What has 2^30 elements and more cannot be made here; its kernel is given a small array."""
    reduction = reduction_of("Sum", "float32")
    x = np.arange(3 * 40, dtype=np.float32)
    made = np.zeros(40 if form == "columns" else 3, np.float32)
    stage = Stage(1, "i64", False, True)
    if form == "lanes":
        machine.run(rows_by_lanes(reduction, 8, stage), 1, [x, made, 3, 40, 40])
    elif form == "blocks":
        machine.run(rows_by_blocks(reduction, stage), 3, [x, made, 40, 40, 1, 40])
    else:
        machine.run(columns_by_tiles(reduction, 32, stage), 2, [x, made, 3, 40, 2, 3, 1, 3])
    np.testing.assert_array_equal(made, x.reshape(3, 40).sum(0 if form == "columns" else 1))


@pytest.mark.parametrize(("name", "load"), [("float32", "v4.b32"), ("float16", "v4.b32"), ("int64", "v2.b64")])
def test_rows_are_loaded_sixteen_bytes_at_once(name: str, load: str) -> None:
    reduction = reduction_of("Sum", name)
    text = ptx.write(rows_by_blocks(reduction, Stage(reduction.element.vector, "i32", False, True)), (9, 0))
    assert f"ld.global.nc.{load}" in text and "ld.global.nc.b" not in text


def test_a_part_that_begins_anywhere_is_loaded_one_by_one() -> None:
    """Its address is no multiple of 16 bytes."""
    from toolkit.kernels.gpu.reductions.launch import reduce_array

    gpu = device(0)
    whole = np.arange(4 * 300 + 1, dtype=np.float32)
    part = gpu.to_device(whole).viewed(np.float32, (4, 300), 4)
    made = reduce_array(gpu, reduction_of("Sum", "float32"), part, collapse((4, 300), (1,)), (4,), np.float32)
    np.testing.assert_array_equal(gpu.to_host(made), whole[1:].reshape(4, 300).sum(1))


def test_dimensions_are_collapsed() -> None:
    assert collapse((2, 3, 1, 4, 5), (1, 2)) == [(2, False), (3, True), (20, False)]
    assert collapse((2, 3, 4), (0, 1, 2)) == [(24, True)] and collapse((1, 1), (0,)) == []


@pytest.mark.parametrize("kind", ["lines", "blocks"])
def test_cumulative_sums_with_indices_of_64_bits(kind: str) -> None:
    x = np.arange(3 * 1500, dtype=np.int32) % 7
    made, form = np.zeros_like(x), ScanForm(False, False, False, "results", "i64")
    kernel = (line_scan if kind == "lines" else block_scan)(scan_of("Cumsum", "int32"), form)
    machine.run(kernel, 3, [x, made, 3, 1500, 1, 1500, 1])
    np.testing.assert_array_equal(made.reshape(3, -1), x.reshape(3, -1).cumsum(1))
