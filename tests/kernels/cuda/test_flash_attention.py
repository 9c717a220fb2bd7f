"""Attention in one kernel: results beside float64 within derived bounds, masks as TensorFlow's softmax takes them, and
what NVIDIA's assembler makes of every kernel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import ml_dtypes
import numpy as np
import pytest

from tests import tolerance
from tests.kernels.cuda.assembler import assembled
from toolkit.kernels.cuda.nn.attention_tiles import TileFormat
from toolkit.kernels.cuda.nn.flash_attention import FlashShape, flash_kernel
from toolkit.kernels.cuda.nn.flash_launch import MOST_SIZE, flash_shape, launch_flash, takes_sizes
from toolkit.kernels.cuda.simt import machine, matrix, ptx
from toolkit.kernels.cuda.simt.arithmetic import DTYPES
from toolkit.kernels.cuda.simt.ir import KernelBuffer
from toolkit.kernels.types import Array

pytest.importorskip("llvmlite")
CAPABILITIES = [(8, 0), (9, 0), (10, 0)]
_BF16 = np.dtype(ml_dtypes.bfloat16)
_TYPES: dict[str, Any] = {"float32": np.dtype(np.float32), "float16": np.dtype(np.float16), "bfloat16": _BF16}


class _Memory:
    """An array as a GPU has it: elements from an offset on, of which the address tells how they are aligned."""

    def __init__(self, array: Array, offset: int = 0):
        self.flat, self.dtype = array, array.dtype
        self.address = 256 + offset * array.itemsize
        self.nbytes = array.nbytes


class _Device:
    """Launches on the SIMT machine; it has one multiprocessor, which any two blocks fill."""

    properties = SimpleNamespace(multiprocessors=1)

    def __init__(self) -> None:
        self.launched: list[Any] = []
        self.statistics = machine.Statistics()

    def launch(self, kernel: Any, blocks: int, *arguments: Any) -> None:
        self.launched.append(kernel)
        given = [
            argument.flat.view(DTYPES[one.type]) if isinstance(one, KernelBuffer) else argument
            for one, argument in zip(kernel.parameters, arguments, strict=True)
        ]
        self.statistics = machine.run(kernel, blocks, given)


@dataclass(frozen=True)
class _Case:
    """Attributes:
    order: of the axes batch, heads, rows, columns in memory; "bhrc" is C order.
    gap: elements that are in memory between rows, of something else.
    """

    dtype: str
    sizes: tuple[int, int, int, int, int, int]
    order: str = "bhrc"
    gap: int = 0
    mask: str = ""
    causal: bool = False
    statistics: bool = False
    made: str = ""
    scale: float = 0.0


def _laid(values: Array, order: str, gap: int) -> tuple[_Memory, tuple[int, ...]]:
    """Values in memory, in another order of axes, with something else between rows."""
    axes = ["bhrc".index(axis) for axis in order]
    turned = np.transpose(values, axes)
    wide = np.full((*turned.shape[:-1], turned.shape[-1] + gap), np.nan, values.dtype)
    wide[..., : turned.shape[-1]] = turned
    flat = wide.reshape(-1)
    flat = flat[: flat.size - gap] if gap else flat
    strides = [stride // values.itemsize for stride in wide.strides]
    return _Memory(flat), tuple(strides[axes.index(axis)] for axis in range(4))


_MASKS = {
    "": None, "all": (1, 1, 1, 1), "keys": (1, 0, 0, 1), "rows": (0, 0, 1, 1), "heads": (0, 1, 0, 1),
    "one of a row": (1, 1, 1, 0),
}  # fmt: skip


def _masked(kind: str, sizes: Sequence[int], rng: np.random.Generator) -> tuple[Array | None, tuple[int, ...] | None]:
    """A mask with axes of 1 where it is broadcast, and its strides."""
    along = _MASKS[kind]
    if along is None:
        return None, None
    shape = [size if there else 1 for size, there in zip(sizes[:4], along, strict=True)]
    values = rng.normal(size=shape).astype(np.float32)
    if along[3]:  # beside it, scores are lost: of a whole row that is another test's
        values[rng.random(shape) < 0.25] = -1e9
    strides = [stride // 4 if there else 0 for stride, there in zip(values.strides, along, strict=True)]
    return values, tuple(strides)


def _run(
    case: _Case, q: Array, k: Array, v: Array, mask: Array | None, mask_strides: Sequence[int] | None
) -> tuple[Array, Array | None, _Device]:
    batch, heads, rows, _, _, width = case.sizes
    made, strides = np.full((batch, heads, rows, width), np.nan, _TYPES[case.made or case.dtype]), list[Any]()
    arrays: list[_Memory] = []
    for each in (q, k, v, made):
        memory, own = _laid(each, case.order, case.gap)
        arrays.append(memory)
        strides.append(own)
    statistics = np.full((batch, heads, rows), np.nan, np.float32) if case.statistics else None
    device = _Device()
    launch_flash(
        device, arrays, case.sizes, strides, case.scale or 1 / math.sqrt(case.sizes[4]),
        mask=None if mask is None else _Memory(mask.reshape(-1)), mask_strides=mask_strides, causal=case.causal,
        statistics=None if statistics is None else _Memory(statistics.reshape(-1)),
    )  # fmt: skip
    out = arrays[3].flat
    found = np.lib.stride_tricks.as_strided(
        out, made.shape, tuple(stride * out.itemsize for stride in strides[3])
    )  # fmt: skip
    return found, statistics, device


def _bounds(case: _Case, q: Array, k: Array, v: Array, mask: Array | None) -> tuple[Array, Array, Array, Array]:
    """The exact result and logarithms of sums, and how far each may be off.

    Scores are off by the rounding of the factors to TF32 (none of 16-bit floats), by `MMA_ROUNDING` for each addend of
    a product and by a scale and a mask that are rounded; their exponentials by `EXP2_ERROR`, by three roundings of the
    exponent, and for each tile by those of a factor. The largest score is taken off both numerator and denominator.
    """
    sizes, scale = case.sizes, case.scale or 1 / math.sqrt(case.sizes[4])
    unit, narrow = tolerance.unit(), case.dtype != "float32"
    share_unit = tolerance.unit(_TYPES[case.dtype]) if narrow else matrix.TF32_ROUNDING
    factor_unit = 0.0 if narrow else matrix.TF32_ROUNDING
    depth, keys = sizes[4], sizes[3]
    wide = [each.astype(np.float64) for each in (q, k, v)]
    add = 0.0 if mask is None else mask.astype(np.float64)
    products = np.einsum("bhmd,bhnd->bhmn", wide[0], wide[1]) * scale
    largest = np.einsum("bhmd,bhnd->bhmn", np.abs(wide[0]), np.abs(wide[1])) * abs(scale)
    scores = products + add
    if case.causal:
        scores = np.where(np.arange(keys)[None] > np.arange(sizes[2])[:, None], -np.inf, scores)
    top = scores.max(-1, keepdims=True)
    exponentials = np.exp(scores - top)
    total = exponentials.sum(-1, keepdims=True)
    shares = exponentials / total
    exact = np.einsum("bhmn,bhnd->bhmd", shares, wide[2])
    # addends of an mma: depth of them and the sum so far, for each of its steps
    addends = 2 * (depth + 16) * matrix.MMA_ROUNDING
    off = largest * (2 * factor_unit + factor_unit**2 + addends) + 2 * unit * (largest + np.abs(add))
    tiles = -(-keys // 32) + 1  # of the smallest tile, and the one that puts threads together
    spread = np.where(shares > 0, top - scores, 0)
    of_exponential = np.where(shares > 0, np.expm1(off + 3 * unit * spread + tiles * (matrix.EXP2_ERROR + 2 * unit)), 0)
    of_total = (shares * of_exponential).sum(-1, keepdims=True) + tolerance.gamma(keys + 4)
    rounding = (1 + share_unit) * (1 + factor_unit) * (1 + 2 * (keys + 16) * matrix.MMA_ROUNDING) - 1
    values = np.abs(wide[2])
    near = np.einsum("bhmn,bhnd->bhmd", shares * (of_exponential + rounding * (1 + of_exponential)), values)
    # exponentials that are no normal numbers of their type
    limits = cast("Any", ml_dtypes.finfo)(_TYPES[case.dtype])
    smallest = float(limits.smallest_subnormal) if narrow else tolerance.SMALLEST
    near = (near + np.abs(exact) * of_total + smallest * values.sum(-2, keepdims=True)) / (1 - of_total)
    made = tolerance.unit(_TYPES[case.made or case.dtype])
    near = near * (1 + made) + (made + 3 * unit) * np.abs(exact) + tolerance.SMALLEST
    logarithms = (top + np.log(total))[..., 0]
    there = np.where(shares > 0, off, 0).max(-1)
    of_logarithm = (
        there
        + of_total[..., 0] / (1 - of_total[..., 0])
        + 8 * unit * (1 + np.abs(top + 0)[..., 0] + np.log(total)[..., 0])
    )
    return exact, near, logarithms, of_logarithm


CASES = {
    "float32": _Case("float32", (2, 2, 50, 45, 16, 16)),
    "float32, all at once": _Case("float32", (1, 2, 130, 70, 32, 24), mask="all", statistics=True),
    "float32, heads within rows": _Case("float32", (2, 3, 70, 33, 16, 16), order="brhc", mask="keys"),
    "float32, causal": _Case("float32", (1, 2, 100, 100, 24, 32), causal=True, statistics=True),
    "float32, odd sizes": _Case("float32", (1, 2, 33, 40, 17, 19), mask="rows"),
    "float32, gaps": _Case("float32", (1, 2, 20, 40, 16, 20), gap=3, mask="heads", scale=0.3),
    "float32, columns first": _Case("float32", (1, 2, 20, 40, 16, 16), order="bhcr", mask="one of a row"),
    "float32, large heads": _Case("float32", (1, 1, 70, 40, 128, 128)),
    "bfloat16": _Case("bfloat16", (2, 2, 50, 45, 16, 16), mask="all", statistics=True),
    "bfloat16, causal": _Case("bfloat16", (1, 2, 140, 130, 32, 40), causal=True),
    "bfloat16, widened": _Case("bfloat16", (1, 2, 20, 40, 48, 24), made="float32", mask="keys"),
    "float16": _Case("float16", (1, 2, 70, 45, 24, 64), order="brhc", statistics=True),
    "float16, odd sizes": _Case("float16", (1, 2, 33, 40, 17, 19), mask="rows", causal=True),
    "float16, gaps": _Case("float16", (1, 1, 20, 70, 80, 96), gap=8),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_results_are_within_derived_bounds(name: str) -> None:
    case = CASES[name]
    rng, dtype = np.random.default_rng(list(CASES).index(name)), _TYPES[case.dtype]
    batch, heads, rows, keys, size, width = case.sizes
    q, k, v = (
        rng.normal(size=shape).astype(dtype)
        for shape in ((batch, heads, rows, size), (batch, heads, keys, size), (batch, heads, keys, width))
    )
    mask, strides = _masked(case.mask, case.sizes, rng)
    found, statistics, device = _run(case, q, k, v, mask, strides)
    exact, near, logarithms, of_logarithm = _bounds(case, q, k, v, mask)
    tolerance.assert_within(found.astype(np.float64), exact, near, name)
    if statistics is not None:
        tolerance.assert_within(statistics, logarithms, of_logarithm, f"{name}: logarithms of sums")
    assert len(device.launched) == 1


def _plain(dtype: str = "float32", keys: int = 40, **more: Any) -> tuple[_Case, list[Array]]:
    case = _Case(dtype, (1, 2, 20, keys, 16, 16), **more)
    rng = np.random.default_rng(3)
    return case, [rng.normal(size=(1, 2, count, 16)).astype(_TYPES[dtype]) for count in (20, keys, keys)]


def test_rows_masked_by_large_finite_numbers_are_means() -> None:
    """Beside -1e9 a score is lost in float32, so all shares are equal: TensorFlow's softmax gives the same."""
    case, (q, k, v) = _plain()
    mask = np.full((1, 1, 20, 40), -1e9, np.float32)
    mask[0, 0, 3:] = 0
    found, _, _ = _run(case, q, k, v, mask, (0, 0, 40, 1))
    wide = v.astype(np.float64)
    near = (2 * matrix.TF32_ROUNDING + 2 * 40 * matrix.MMA_ROUNDING) * np.abs(wide).mean(2)
    for row in range(3):
        tolerance.assert_within(found[:, :, row], wide.mean(2), near, "a mean")


def test_rows_without_a_key_are_nan_and_others_are_not() -> None:
    case, (q, k, v) = _plain(statistics=True)
    mask = np.zeros((1, 1, 20, 40), np.float32)
    mask[0, 0, 5] = -np.inf
    mask[0, 0, 6, :35] = -np.inf  # the whole of the first tile
    found, statistics, _ = _run(case, q, k, v, mask, (0, 0, 40, 1))
    assert statistics is not None and (statistics[:, :, 5] == -np.inf).all()
    assert np.isnan(found[:, :, 5]).all()
    assert np.isfinite(np.delete(found, 5, 2)).all() and np.isfinite(np.delete(statistics, 5, 2)).all()


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_what_is_no_number_is_in_its_row_alone(wrong: float) -> None:
    case, (q, k, v) = _plain()
    q[0, 1, 7, 2] = wrong
    found, _, _ = _run(case, q, k, v, None, None)
    assert np.isnan(found[0, 1, 7]).all()
    found[0, 1, 7] = 0
    assert np.isfinite(found).all()


def test_causal_rows_see_nothing_that_is_behind_them() -> None:
    case, (q, k, v) = _plain(causal=True)
    before, _, _ = _run(case, q, k, v, None, None)
    k[:, :, 10:] = np.nan
    after, _, _ = _run(case, q, k, v, None, None)
    np.testing.assert_array_equal(after[:, :, :10], before[:, :, :10])


def test_one_launch_reads_queries_once_and_keys_for_each_block() -> None:
    """Bytes and operations as the roofline takes them: scores are never in memory."""
    case = _Case("float32", (1, 2, 256, 64, 64, 64))
    rng = np.random.default_rng(0)
    q, k, v = (rng.normal(size=(1, 2, rows, 64)).astype(np.float32) for rows in (256, 64, 64))
    _, _, device = _run(case, q, k, v, None, None)
    blocks = 256 // 128
    assert device.statistics.loaded == q.nbytes + blocks * (k.nbytes + v.nbytes)
    assert device.statistics.stored == q.nbytes
    products = 2 * 2 * 2 * 256 * 64 * 64
    assert products <= device.statistics.flops <= 1.5 * products  # and what softmax takes


def test_where_there_is_a_kernel() -> None:
    assert takes_sizes("bfloat16", 64, MOST_SIZE, tf32=False) and takes_sizes("float32", 16, 80, tf32=True)
    assert not takes_sizes("float32", 64, 64, tf32=False)
    assert not takes_sizes("float16", 64, MOST_SIZE + 1, tf32=False) and not takes_sizes("float16", 8, 64, tf32=True)


def test_blocks_are_smaller_where_there_are_few() -> None:
    arrays, strides = [_Memory(np.zeros(16, np.float32)) for _ in range(4)], [(1 << 18, 64, 128, 1)] * 4
    for batch, rows in ((8, 64), (32, 128)):
        assert flash_shape(arrays, (batch, 12, 128, 128, 64, 64), strides, processors=132).rows == rows


def test_rows_that_lie_anyhow_are_loaded_one_by_one() -> None:
    def shape(offset: int = 0, **change: int) -> FlashShape:
        arrays = [_Memory(np.zeros(16, np.float32), offset) for _ in range(4)]
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
        TileFormat(number, joined), made, size, size, *tile, joined, mask, mask_rows, causal, keeps, index
    )
    for number, size, tile in [
        ("float", 64, (32, 4, 2)), ("float", 64, (32, 4, 1)), ("float", 128, (32, 4, 1)),
        ("bfloat", 64, (32, 4, 2)), ("bfloat", 64, (64, 4, 1)), ("bfloat", 128, (64, 4, 1)),
        ("half", 64, (32, 4, 2)), ("half", 128, (64, 4, 1)),
    ]
    for joined, made, mask, mask_rows, causal, keeps, index in [
        (True, number, "", False, False, False, "i32"), (True, number, "float", True, False, True, "i32"),
        (True, "float", "float", False, True, False, "i32"), (False, number, "float", True, True, True, "i32"),
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
