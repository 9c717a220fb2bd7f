"""Copies between parts of tensors on a GPU: tiles, words, positions of 64 bits, and what shares memory."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from tests.kernels.op_suite import Case, run_ours
from toolkit.kernels.cuda.device import device
from toolkit.kernels.cuda.simt import machine
from toolkit.kernels.gpu.primitives import copying
from toolkit.kernels.gpu.primitives.indexing import coordinates, divisor, divisors, index_type
from toolkit.kernels.gpu.primitives.layout import ElementLayout, Pair, layout_of, stand_in


def _numbers(shape: tuple[int, ...], dtype: Any) -> Any:
    count = int(np.prod(shape))
    return np.arange(count, dtype=np.int64).astype(dtype).reshape(shape)


@pytest.mark.parametrize("dtype", [np.int8, np.float16, np.float32, np.float64, np.complex128])
@pytest.mark.parametrize("shape", [(40, 70), (3, 33, 9), (2, 5, 17, 40), (1, 64, 64, 1)])
def test_every_permutation(shape: tuple[int, ...], dtype: Any) -> None:
    """Tiles at the edges, batches of them, and dimensions that become one."""
    x = _numbers(shape, dtype)
    for order in itertools.permutations(range(len(shape))):
        (y,) = run_ours(Case("Transpose", [x, np.array(order, np.int32)]), "GPU")
        np.testing.assert_array_equal(y, x.transpose(order))


@pytest.mark.parametrize("type", ["i32", "i64"])
@pytest.mark.parametrize(("rank", "order"), [(3, (0, 1, 2)), (3, (2, 1, 0)), (2, (1, 0))])
def test_positions_of_both_widths(type: str, rank: int, order: tuple[int, ...]) -> None:
    """Tensors of 2^31 elements and more cannot be made here; their kernel is given a small one."""
    shape = (12, 9, 20)[:rank]
    x = _numbers(shape, np.int32)
    base = stand_in(shape, np.int32)
    view = base[::-1].transpose(order)
    pair = Pair.of(layout_of(view, base), ElementLayout.dense(view.shape))
    y = np.empty(view.size, np.int32)
    numbers = [y.size, pair.source_first, pair.target_first]
    numbers += [step for both in zip(pair.source, pair.target, strict=True) for step in both]
    kernel = copying._strided(4, len(pair.sizes), type)
    machine.run(kernel, -(-y.size // kernel.block), [x.ravel(), y, *numbers, *divisors(pair.sizes[1:], type)])
    np.testing.assert_array_equal(y.reshape(view.shape), x[::-1].transpose(order))


def test_divisions_are_right_up_to_the_largest_position() -> None:
    rng = np.random.default_rng(1)
    positions = np.unique([0, 1, (1 << 31) - 1, (1 << 31) - 2, *rng.integers(0, 1 << 31, 2000)]).astype(object)
    for size in [1, 2, 3, 5, 7, 641, 65537, (1 << 30) + 1, (1 << 31) - 1, *rng.integers(1, 1 << 31, 200).tolist()]:
        _, multiplier, shift = divisor(size, "i32")
        assert multiplier * ((1 << 31) - 1) < 1 << 63
        assert all(position * multiplier >> shift == position // size for position in positions.tolist())
    assert index_type(1 << 31) == "i64" and index_type(1 << 30) == "i32" and coordinates


def test_copies_are_of_the_widest_words() -> None:
    """Rows of an even number of bytes in half words, and so on; the target's places are looked at, too."""
    rows = ElementLayout((6, 12), (16, 1), 4)
    assert Pair.of(rows, ElementLayout.dense((6, 12))).scaled(2, 8)[1] == 8
    assert Pair.of(rows, ElementLayout.dense((6, 12))).scaled(2, 4)[1] == 4
    assert Pair.of(ElementLayout((6, 12), (17, 1)), ElementLayout.dense((6, 12))).scaled(1, 8)[1] == 1
    assert Pair.of(ElementLayout((6, 12), (24, 2)), ElementLayout.dense((6, 12))).scaled(2, 8)[1] == 2


def test_parts_that_lie_together_share_memory() -> None:
    gpu = device(0)
    x = gpu.to_device(_numbers((8, 64), np.float32))
    allocations = gpu.memory.statistics().allocations
    rows = copying.part(gpu, x, ElementLayout((2, 64), (64, 1), 128))
    assert rows.address == x.address + 512 and gpu.memory.statistics().allocations == allocations
    odd = copying.part(gpu, x, ElementLayout((1, 9), (64, 1), 1))
    assert odd.address % 16 == 0 and gpu.memory.statistics().allocations == allocations + 1
    np.testing.assert_array_equal(gpu.to_host(odd), np.arange(1, 10, dtype=np.float32)[None])
