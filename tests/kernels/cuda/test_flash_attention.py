"""Attention in one kernel: results beside float64 within derived bounds, masks as TensorFlow's softmax takes them, and
what NVIDIA's assembler makes of every kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests import tolerance
from tests.kernels.cuda.assembler import assembled
from tests.kernels.cuda.attention_cases import CAPABILITIES, FLOATS, Case, Memory, attention, bounds, masked
from toolkit.kernels.cuda.nn.attention_memory import MaskShape, TileFormat
from toolkit.kernels.cuda.nn.flash_attention import FlashShape, flash_kernel
from toolkit.kernels.cuda.nn.flash_launch import MOST_SIZE, flash_shape, takes_sizes
from toolkit.kernels.cuda.simt import matrix, ptx
from toolkit.kernels.types import Array

pytest.importorskip("llvmlite")

CASES = {
    "float32": Case("float32", (2, 2, 50, 45, 16, 16)),
    "float32, all at once": Case("float32", (1, 2, 130, 70, 32, 24), mask="all", keeps=1),
    "float32, heads within rows": Case("float32", (2, 3, 70, 33, 16, 16), order="brhc", mask="keys"),
    "float32, causal": Case("float32", (1, 2, 100, 100, 24, 32), causal=True, keeps=2),
    "float32, odd sizes": Case("float32", (1, 2, 33, 40, 17, 19), mask="rows"),
    "float32, gaps": Case("float32", (1, 2, 20, 40, 16, 20), gap=3, mask="heads", scale=0.3),
    "float32, columns first": Case("float32", (1, 2, 20, 40, 16, 16), order="bhcr", mask="one of a row"),
    "float32, large heads": Case("float32", (1, 1, 70, 40, 128, 128)),
    "bfloat16": Case("bfloat16", (2, 2, 50, 45, 16, 16), mask="all", keeps=1),
    "bfloat16, causal": Case("bfloat16", (1, 2, 140, 130, 32, 40), causal=True),
    "bfloat16, widened": Case("bfloat16", (1, 2, 20, 40, 48, 24), made="float32", mask="keys"),
    "float16": Case("float16", (1, 2, 70, 45, 24, 64), order="brhc", keeps=1),
    "float16, odd sizes": Case("float16", (1, 2, 33, 40, 17, 19), mask="rows", causal=True),
    "float16, gaps": Case("float16", (1, 1, 20, 70, 80, 96), gap=8),
    "float32, in two parts": Case("float32", (1, 2, 40, 35, 256, 160), mask="keys", keeps=2),
    "float32, long keys": Case("float32", (1, 1, 20, 35, 144, 64), order="bhcr", keeps=1),
    "bfloat16, in two parts": Case("bfloat16", (1, 2, 70, 35, 192, 256), order="brhc", causal=True, keeps=2),
    "float16, long values, gaps": Case("float16", (1, 1, 20, 40, 64, 144), gap=3, mask="all"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_results_are_within_derivedbounds(name: str) -> None:
    case = CASES[name]
    rng, dtype = np.random.default_rng(list(CASES).index(name)), FLOATS[case.dtype]
    batch, heads, rows, keys, size, width = case.sizes
    q, k, v = (
        rng.normal(size=shape).astype(dtype)
        for shape in ((batch, heads, rows, size), (batch, heads, keys, size), (batch, heads, keys, width))
    )
    mask, strides = masked(case.mask, case.sizes, rng)
    found, statistics, device = attention(case, q, k, v, mask, strides)
    known = bounds(case, q, k, v, mask)
    tolerance.assert_within(found.astype(np.float64), known.exact, known.near, name)
    if statistics is not None:
        total = statistics.astype(np.float64).sum(-1)
        tolerance.assert_within(total, known.logarithms, known.of_logarithm, f"{name}: logarithms of sums")
    assert len(device.launched) == 1


def _plain(dtype: str = "float32", keys: int = 40, **more: Any) -> tuple[Case, list[Array]]:
    case = Case(dtype, (1, 2, 20, keys, 16, 16), **more)
    rng = np.random.default_rng(3)
    return case, [rng.normal(size=(1, 2, count, 16)).astype(FLOATS[dtype]) for count in (20, keys, keys)]


def test_rowsmasked_by_large_finite_numbers_are_means() -> None:
    """Beside -1e9 a score is lost in float32, so all shares are equal: TensorFlow's softmax gives the same."""
    case, (q, k, v) = _plain()
    mask = np.full((1, 1, 20, 40), -1e9, np.float32)
    mask[0, 0, 3:] = 0
    found, _, _ = attention(case, q, k, v, mask, (0, 0, 40, 1))
    wide = v.astype(np.float64)
    near = (2 * matrix.TF32_ROUNDING + 2 * 40 * matrix.MMA_ROUNDING) * np.abs(wide).mean(2)
    for row in range(3):
        tolerance.assert_within(found[:, :, row], wide.mean(2), near, "a mean")


def test_rows_without_a_key_are_nan_and_others_are_not() -> None:
    case, (q, k, v) = _plain(keeps=1)
    mask = np.zeros((1, 1, 20, 40), np.float32)
    mask[0, 0, 5] = -np.inf
    mask[0, 0, 6, :35] = -np.inf  # the whole of the first tile
    found, statistics, _ = attention(case, q, k, v, mask, (0, 0, 40, 1))
    assert statistics is not None and (statistics[:, :, 5] == -np.inf).all()
    assert np.isnan(found[:, :, 5]).all()
    assert np.isfinite(np.delete(found, 5, 2)).all() and np.isfinite(np.delete(statistics, 5, 2)).all()


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_what_is_no_number_is_in_its_row_alone(wrong: float) -> None:
    case, (q, k, v) = _plain()
    q[0, 1, 7, 2] = wrong
    found, _, _ = attention(case, q, k, v, None, None)
    assert np.isnan(found[0, 1, 7]).all()
    found[0, 1, 7] = 0
    assert np.isfinite(found).all()


def test_causal_rows_see_nothing_that_is_behind_them() -> None:
    case, (q, k, v) = _plain(causal=True)
    before, _, _ = attention(case, q, k, v, None, None)
    k[:, :, 10:] = np.nan
    after, _, _ = attention(case, q, k, v, None, None)
    np.testing.assert_array_equal(after[:, :, :10], before[:, :, :10])


def test_one_launch_reads_queries_once_and_keys_for_each_block() -> None:
    """Bytes and operations as the roofline takes them: scores are never in memory."""
    case = Case("float32", (1, 2, 256, 64, 64, 64))
    rng = np.random.default_rng(0)
    q, k, v = (rng.normal(size=(1, 2, rows, 64)).astype(np.float32) for rows in (256, 64, 64))
    _, _, device = attention(case, q, k, v, None, None)
    blocks = 256 // 128
    assert device.statistics.loaded == q.nbytes + blocks * (k.nbytes + v.nbytes)
    assert device.statistics.stored == q.nbytes
    products = 2 * 2 * 2 * 256 * 64 * 64
    assert products <= device.statistics.flops <= 1.5 * products  # and what softmax takes


def test_where_there_is_a_kernel() -> None:
    assert takes_sizes("bfloat16", 64, MOST_SIZE, tf32=False) and takes_sizes("float32", 16, 80, tf32=True)
    assert not takes_sizes("float32", 64, 64, tf32=False)
    assert not takes_sizes("float16", 64, MOST_SIZE - 1, tf32=False)  # no two parts are multiples of eight
    assert not takes_sizes("float16", 64, MOST_SIZE + 1, tf32=False) and not takes_sizes("float16", 8, 64, tf32=True)


def test_blocks_are_smaller_where_there_are_few() -> None:
    arrays, strides = [Memory(np.zeros(16, np.float32)) for _ in range(4)], [(1 << 18, 64, 128, 1)] * 4
    for batch, rows in ((8, 64), (32, 128)):
        assert flash_shape(arrays, (batch, 12, 128, 128, 64, 64), strides, processors=132).rows == rows


def test_rows_that_lie_anyhow_are_loaded_one_by_one() -> None:
    def shape(offset: int = 0, **change: int) -> FlashShape:
        arrays = [Memory(np.zeros(16, np.float32), offset) for _ in range(4)]
        strides = [{"batch": 1 << 20, "head": 64, "row": 128, "column": 1} | change for _ in range(4)]
        return flash_shape(arrays, (2, 2, 10, 10, 64, 64), [tuple(each.values()) for each in strides])

    assert shape().format == TileFormat("float", True) and shape().pairs and shape().index == "i32"
    for odd in (shape(1), shape(row=130), shape(column=2)):
        assert not odd.format.joined
    assert shape(batch=1 << 32).index == "i64"


#: to have room for four blocks instead of three, ptxas lets a thread have so many registers and puts two words into
#: memory, once before the loop and once behind it
_SQUEEZED = 65536 // (4 * 128)
_SHAPES = [
    FlashShape(
        TileFormat(number, joined), made, size, size, *tile, joined,
        MaskShape(mask, rows=(mask_rows, False, False)), causal, keeps, index,
    )
    for number, size, tile in [
        ("float", 64, (32, 4, 2)), ("float", 64, (32, 4, 1)), ("float", 128, (32, 4, 1)),
        ("bfloat", 64, (32, 4, 2)), ("bfloat", 64, (64, 4, 1)), ("bfloat", 128, (64, 4, 1)),
        ("half", 64, (32, 4, 2)), ("half", 128, (64, 4, 1)),
    ]
    for joined, made, mask, mask_rows, causal, keeps, index in [
        (True, number, "", False, False, 0, "i32"), (True, number, "float", True, False, 1, "i32"),
        (True, "float", "float", False, True, 0, "i32"), (False, number, "float", True, True, 2, "i32"),
    ]
    if joined or tile[2] == 1
]  # fmt: skip


@pytest.mark.parametrize("capability", CAPABILITIES, ids=str)
@pytest.mark.parametrize("size", [64, 128])
@pytest.mark.parametrize("number", ["float", "bfloat", "half"])
def test_assembled_into_registers(number: str, size: int, capability: tuple[int, int]) -> None:
    """Two blocks have room on a multiprocessor: 65536 registers for 128 threads each, and shared memory."""
    for shape in (each for each in _SHAPES if (each.format.number, each.depth) == (number, size)):
        kernel = flash_kernel(shape)
        text = ptx.write(kernel, capability)
        found = assembled(text, capability)
        if found.registers > _SQUEEZED:
            assert found.spills == 0 and found.local == 0, (shape, found)
        assert found.local <= 8, (shape, found)
        assert found.shared <= kernel.shared_bytes + 64  # the assembler may align it
        if shape.format.joined:  # 16 bytes at once
            assert "ld.global.nc.v4" in text and "st.shared.v4" in text


@pytest.mark.parametrize("capability", CAPABILITIES, ids=str)
@pytest.mark.parametrize("number", ["float", "bfloat", "half"])
def test_values_in_two_parts_are_assembled(number: str, capability: tuple[int, int]) -> None:
    """Heads of 256 numbers: all of 16 bits is in registers, and of TF32 but a few words, once for each tile."""
    for mask in (MaskShape(), MaskShape("float", rows=(True, False, False))):
        shape = FlashShape(
            TileFormat(number, True), number, 256, 128, 16, 4, 1, True, mask, True, 2, "i32", 2, number != "float"
        )  # fmt: skip
        kernel = flash_kernel(shape)
        found = assembled(ptx.write(kernel, capability), capability)
        assert found.local <= 64, (shape, found)
        assert kernel.shared_bytes <= 48 << 10  # what a kernel has without asking for more
