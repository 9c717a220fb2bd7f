"""The gradients of attention by our own kernels: beside float64 within derived bounds, and what ptxas makes of them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests import tolerance
from tests.kernels.cuda.assembler import assembled
from tests.kernels.cuda.attention_cases import (
    CAPABILITIES,
    FLOATS,
    Case,
    Device,
    Memory,
    attention,
    bounds,
    laid,
    masked,
)
from toolkit.kernels.cuda.nn.attention_memory import MaskShape, TileFormat
from toolkit.kernels.cuda.nn.flash_gradient import GradientShape, gradient_kernel
from toolkit.kernels.cuda.nn.flash_gradient_launch import gradient_shapes, launch_gradient
from toolkit.kernels.cuda.nn.flash_launch import FlashMasks
from toolkit.kernels.cuda.simt import matrix, ptx
from toolkit.kernels.types import Array

pytest.importorskip("llvmlite")


def _operands(case: Case, seed: int) -> list[Array]:
    """q, k, v, and the gradient by the result."""
    rng, (batch, heads, rows, keys, size, width) = np.random.default_rng(seed), case.sizes
    shapes = ((rows, size), (keys, size), (keys, width), (rows, width))
    return [rng.normal(size=(batch, heads, *shape)).astype(FLOATS[case.dtype]) for shape in shapes]


def _gradients(
    case: Case, operands: list[Array], mask: Array | None, mask_strides: Any
) -> tuple[list[Array], Array, Device]:
    """Those by q, k and v, and the result."""
    q, k, v, d_out = operands
    out, statistics, device = attention(case, q, k, v, mask, mask_strides)
    assert statistics is not None
    device.launched.clear()
    read = [laid(each, case.order, case.gap) for each in (q, k, v, np.ascontiguousarray(out), d_out)]
    results = FLOATS[case.made or case.dtype]
    made = [laid(np.full(each.shape, np.nan, results), case.order, case.gap) for each in (q, k, v)]
    launch_gradient(
        device, [each for each, _ in read], [each for each, _ in made], Memory(statistics.reshape(-1)), case.sizes,
        [at for _, at in read], [at for _, at in made], case.scale or 1 / math.sqrt(case.sizes[4]),
        beside=FlashMasks(None if mask is None else Memory(mask.reshape(-1)), mask_strides), causal=case.causal,
        keeps=case.keeps,
    )  # fmt: skip
    found = [
        np.lib.stride_tricks.as_strided(memory.flat, each.shape, [step * memory.flat.itemsize for step in at])
        for each, (memory, at) in zip((q, k, v), made, strict=True)
    ]
    return found, out, device


def _allowed(case: Case, operands: list[Array], out: Array, mask: Array | None) -> list[tuple[str, Array, Array]]:
    """Of each gradient the exact one, and how far what is computed may be off.

    Shares are off by what scores and what was kept of their row are, by `EXP2_ERROR` and the exponent's roundings;
    their gradients by those of products of factors that are rounded, cut off for each addend; D by what the result is
    off and by a sum. Each is rounded as a factor once more.
    """
    q, k, v, d_out = (each.astype(np.float64) for each in operands)
    known = bounds(case, operands[0], operands[1], operands[2], mask)
    scale, unit = case.scale or 1 / math.sqrt(case.sizes[4]), tolerance.unit()
    narrow = case.dtype != "float32"
    factor = 0.0 if narrow else matrix.TF32_ROUNDING
    rounded = tolerance.unit(FLOATS[case.dtype]) if narrow else matrix.TF32_ROUNDING
    shares, rows, keys, width = known.shares, *case.sizes[2:4], case.sizes[5]

    def turned(x: Array) -> Array:
        return np.swapaxes(x, 2, 3)

    def of_product(count: int) -> float:
        return 2 * factor + factor**2 + 2 * (count + 16) * matrix.MMA_ROUNDING

    # kept numbers are added to scores; of -1e9 they have digits in which no other is left
    exponent = (
        known.off + known.of_logarithm[..., None] + 4 * unit * (known.spread + np.abs(known.logarithms)[..., None])
    )
    of_share = np.where(shares > 0, shares * np.expm1(exponent + matrix.EXP2_ERROR), 0)
    d_shares, size = d_out @ turned(v), np.abs(d_out) @ turned(np.abs(v))
    total = (d_out * known.exact).sum(-1, keepdims=True)
    of_total = (np.abs(d_out) * np.abs(out.astype(np.float64) - known.exact)).sum(-1, keepdims=True)
    of_total += (factor + tolerance.gamma(width + 4)) * (np.abs(d_out) * np.abs(out.astype(np.float64))).sum(
        -1, keepdims=True
    )
    slopes = shares * (d_shares - total)
    off = of_total + size * of_product(width) + 2 * unit * (np.abs(d_shares) + np.abs(total))
    of_slope = (shares + of_share) * off + of_share * np.abs(d_shares - total)
    of_slope += 2 * unit * np.abs(slopes)
    made = tolerance.unit(FLOATS[case.made or case.dtype])
    least = float(np.finfo(np.float16).smallest_subnormal) if case.dtype == "float16" else tolerance.SMALLEST

    def summed(left: Array, of_left: Array, right: Array, count: int, by: float) -> tuple[Array, Array]:
        """A product of numbers that are off, rounded as factors, and another factor."""
        exact, size = by * left @ right, by * np.abs(left) @ np.abs(right)
        near = by * (of_left * (1 + rounded) + rounded * np.abs(left) + least) @ np.abs(right) * (1 + factor)
        near += size * (factor + 2 * (count + 16) * matrix.MMA_ROUNDING)
        return exact, near * (1 + made) + (made + 2 * unit) * np.abs(exact) + least

    return [
        ("by queries", *summed(slopes, of_slope, k, keys, scale)),
        ("by keys", *summed(turned(slopes), turned(of_slope), q, rows, scale)),
        ("by values", *summed(turned(shares), turned(of_share), d_out, rows, 1.0)),
    ]


CASES = {
    "float32": Case("float32", (2, 2, 50, 45, 16, 16), keeps=2),
    "float32, one number kept": Case("float32", (1, 2, 70, 33, 32, 24), mask="all", keeps=1),
    "float32, heads within rows": Case("float32", (2, 3, 70, 33, 16, 16), order="brhc", mask="keys", keeps=2),
    "float32, causal": Case("float32", (1, 2, 100, 100, 24, 32), causal=True, keeps=2),
    "float32, causal, more keys": Case("float32", (1, 1, 40, 90, 16, 16), causal=True, mask="all", keeps=2),
    "float32, causal, more rows": Case("float32", (1, 1, 90, 40, 16, 16), causal=True, keeps=2),
    "float32, odd sizes": Case("float32", (1, 2, 33, 40, 17, 19), mask="rows", keeps=2),
    "float32, gaps": Case("float32", (1, 2, 20, 40, 16, 20), gap=3, mask="heads", scale=0.3, keeps=2),
    "float32, columns first": Case("float32", (1, 2, 20, 40, 16, 16), order="bhcr", mask="one of a row", keeps=2),
    "float32, one key": Case("float32", (3, 2, 5, 1, 16, 16), keeps=2),
    "float32, one query": Case("float32", (3, 2, 1, 35, 16, 16), mask="keys", keeps=2),
    "float32, large heads": Case("float32", (1, 1, 70, 40, 128, 128), keeps=2),
    "bfloat16": Case("bfloat16", (2, 2, 50, 45, 16, 16), mask="all", keeps=1),
    "bfloat16, causal": Case("bfloat16", (1, 2, 140, 130, 32, 40), causal=True, keeps=2),
    "bfloat16, large heads": Case("bfloat16", (1, 1, 40, 50, 104, 128), mask="keys", keeps=2),
    "float16": Case("float16", (1, 2, 70, 45, 24, 64), order="brhc", keeps=1),
    "float16, odd sizes": Case("float16", (1, 2, 33, 40, 17, 19), mask="rows", causal=True, keeps=2),
    "float16, gaps": Case("float16", (1, 1, 20, 70, 80, 96), gap=8, keeps=2),
    "float32, in parts": Case("float32", (1, 2, 33, 20, 256, 160), mask="keys", keeps=2),
    "float32, long keys, columns first": Case("float32", (1, 1, 20, 35, 144, 64), order="bhcr", causal=True, keeps=2),
    "bfloat16, in parts": Case("bfloat16", (1, 2, 40, 35, 192, 256), order="brhc", causal=True, keeps=2),
    "float16, long values, gaps": Case("float16", (1, 1, 20, 40, 64, 144), gap=3, mask="all", keeps=1),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_gradients_are_within_derived_bounds(name: str) -> None:
    case = CASES[name]
    operands = _operands(case, list(CASES).index(name))
    mask, strides = masked(case.mask, case.sizes, np.random.default_rng(9))
    if mask is not None and case.causal:
        mask = np.where(mask < -1, 0, mask)  # the only key that a row sees may be hidden: another test's
    found, out, _ = _gradients(case, operands, mask, strides)
    for each, (what, exact, near) in zip(found, _allowed(case, operands, out, mask), strict=True):
        tolerance.assert_within(each.astype(np.float64), exact, near, f"{name}: {what}")


def _plain(dtype: str = "float32", **more: Any) -> tuple[Case, list[Array]]:
    case = Case(dtype, (1, 2, 20, 40, 16, 16), keeps=2, **more)
    return case, _operands(case, 3)


def test_rows_masked_by_large_finite_numbers_have_equal_shares() -> None:
    """One number kept of a row would be -1e9 whatever its sum is, and all 40 shares 1."""
    case, (q, k, v, d_out) = _plain()
    mask = np.full((1, 1, 20, 40), -1e9, np.float32)
    found, _, _ = _gradients(case, [q, k, v, d_out], mask, (0, 0, 40, 1))
    wanted = np.broadcast_to(d_out.astype(np.float64).sum(2, keepdims=True) / 40, v.shape)
    size = np.abs(d_out).sum(2, keepdims=True) / 40
    near = (3 * matrix.TF32_ROUNDING + 4 * 40 * matrix.MMA_ROUNDING) * np.broadcast_to(size, v.shape)
    tolerance.assert_within(found[2], wanted, near, "by values")


def test_rows_without_a_key_are_nan_in_all_that_they_would_change() -> None:
    """As softmax has it: of a row of -inf the shares are NaN, and so is whatever they are summed with."""
    case, operands = _plain()
    mask = np.zeros((1, 1, 20, 40), np.float32)
    mask[0, 0, 5] = -np.inf
    (dq, dk, dv), _, _ = _gradients(case, operands, mask, (0, 0, 40, 1))
    assert np.isnan(dq[:, :, 5]).all() and np.isfinite(np.delete(dq, 5, 2)).all()
    assert np.isnan(dk).all() and np.isnan(dv).all()


def test_causal_gradients_skip_what_no_row_of_a_block_sees() -> None:
    """Blocks have 64 queries, or keys: what is NaN behind the queries, or before the keys, is not looked at."""
    case = Case("float32", (1, 1, 100, 100, 16, 16), causal=True, keeps=2)
    operands = _operands(case, 4)
    before, _, _ = _gradients(case, operands, None, None)
    operands[1][:, :, 70] = np.nan
    (dq, _, _), _, _ = _gradients(case, operands, None, None)
    np.testing.assert_array_equal(dq[:, :, :64], before[0][:, :, :64])
    assert np.isnan(dq[:, :, 70:]).all()
    operands = _operands(case, 4)
    operands[0][:, :, 10] = np.nan
    (_, dk, dv), _, _ = _gradients(case, operands, None, None)
    np.testing.assert_array_equal(dk[:, :, 64:], before[1][:, :, 64:])
    np.testing.assert_array_equal(dv[:, :, 64:], before[2][:, :, 64:])
    assert np.isnan(dk[:, :, :11]).all() and np.isnan(dv[:, :, :11]).all()


def test_the_same_bits_each_time_and_no_scores_in_memory() -> None:
    """Two launches; what they read is each tensor for each block, and what they write gradients and a number a row."""
    case = Case("float32", (1, 2, 128, 64, 64, 64), keeps=2)
    operands = _operands(case, 0)
    first, _, device = _gradients(case, operands, None, None)
    second, _, _ = _gradients(case, operands, None, None)
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other)
    assert [kernel.name.split("_tf32")[0] for kernel in device.launched] == [
        "attention_gradient_dq", "attention_gradient_dk_dv"
    ]  # fmt: skip
    k, d_out = operands[1], operands[3]
    assert device.statistics.stored == 2 * k.nbytes  # of the second launch
    numbers = 4 * 3 * 2 * 128
    assert device.statistics.loaded == 2 * (k.nbytes + d_out.nbytes) + numbers
    products = 4 * 2 * 2 * 128 * 64 * 64
    assert products <= device.statistics.flops <= 1.5 * products


def test_large_heads_are_three_launches() -> None:
    def results(dtype: str, size: int) -> list[tuple[str, ...]]:
        arrays, at = [Memory(np.zeros(16, FLOATS[dtype])) for _ in range(8)], [(1 << 18, 1 << 16, 128, 1)] * 8
        shapes = gradient_shapes(arrays[:5], arrays[5:], (1, 1, 9, 9, size, 16), at[:5], at[5:])
        assert all(shape.format.joined and shape.pairs for shape in shapes)
        return [shape.results for shape in shapes]

    assert results("float32", 64) == results("bfloat16", 96) == [("dq",), ("dk", "dv")]
    assert results("float32", 72) == results("float16", 128) == [("dq",), ("dk",), ("dv",)]


_PLAIN = GradientShape(
    ("dq",), TileFormat("float", True), ("float",), 64, 64, 32, 4, True, MaskShape(), False, 1, "i32"
)
_MASKED = replace(_PLAIN, under=MaskShape("float", rows=(True, False, False)), causal=True, keeps=2)


@pytest.mark.parametrize("capability", CAPABILITIES, ids=str)
@pytest.mark.parametrize("number", ["float", "bfloat", "half"])
@pytest.mark.parametrize("size", [64, 128])
def test_assembled_into_registers(size: int, number: str, capability: tuple[int, int]) -> None:
    """Two blocks have room on a multiprocessor: 65536 registers for 128 threads each, and shared memory."""
    groups = [("dq",), ("dk", "dv")] if size == 64 else [("dq",), ("dk",), ("dv",)]
    for results in groups:
        for like in (_PLAIN, _MASKED, replace(_MASKED, format=TileFormat("float", False), pairs=False)):
            joined = like.format.joined
            if size == 128 and not joined:
                continue  # places take 24 to 176 bytes of memory there
            shape = replace(
                like, results=results, format=replace(like.format, number=number), made=(number,) * len(results),
                depth=size, width=size, tile=32 if size == 64 and joined else 16,
            )  # fmt: skip
            kernel = gradient_kernel(shape)
            found = assembled(ptx.write(kernel, capability), capability)
            # to have room for another block, or for sums and factors of 192 registers (TF32, 128 numbers), ptxas puts
            # two words into memory
            assert found.local <= 8, (shape, found)
            assert found.shared <= kernel.shared_bytes + 64  # the assembler may align it
            assert 2 * found.shared <= 100 << 10  # of a multiprocessor; those of compute capability 8.6 have least


@pytest.mark.parametrize("capability", CAPABILITIES, ids=str)
@pytest.mark.parametrize("number", ["float", "bfloat"])
def test_parts_of_long_rows_are_assembled(number: str, capability: tuple[int, int]) -> None:
    """Of 16 bits all is in registers; of TF32 at most both factors, 128 words each, are in a thread's memory."""
    for results in (("dq",), ("dk",), ("dv",)):
        shape = replace(
            _MASKED, results=results, format=TileFormat(number, True), made=(number,), depth=256, width=256, tile=16,
            chunks=2, held=number != "float",
        )  # fmt: skip
        kernel = gradient_kernel(shape)
        found = assembled(ptx.write(kernel, capability), capability)
        assert found.local <= (8 if number == "bfloat" else 4 * 2 * 128), (shape, found)
        assert kernel.shared_bytes <= 48 << 10  # what a kernel has without asking for more
