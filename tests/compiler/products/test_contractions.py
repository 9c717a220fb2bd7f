"""Where the operands of products lie: axes as factors, and products of transposed tensors as one call each."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from toolkit.compiler.backends.cuda.layout.contractions import Contraction, Layout, StridedLoop, batch_axes
from toolkit.compiler.backends.cuda.layout.stored_axes import common, packed, reshaped, transposed, untransposed
from toolkit.kernels.cuda.libraries import reference
from toolkit.kernels.cuda.libraries.base import Product


def _places(axes: Any) -> np.ndarray:
    """The place in memory of each element."""
    places = np.zeros((), int)
    for axis in axes:
        along = np.zeros((), int)
        for size, stride in axis:
            along = along[..., None] + stride * np.arange(size)
        places = places[..., None] + along.reshape(-1)
    return places


@pytest.mark.parametrize("seed", range(40))
def test_axes_follow_numpy(seed: int) -> None:
    """Transpositions and changes of shape, in any order, say where NumPy's elements came from."""
    random = np.random.default_rng(seed)
    shape = tuple(random.choice([1, 2, 3, 4, 6], size=4).tolist())
    array, axes = np.arange(math.prod(shape)).reshape(shape), packed(shape)
    for _ in range(4):
        if random.random() < 0.5:
            order = random.permutation(array.ndim).tolist()
            assert untransposed(transposed(axes, order), order) == axes
            array, axes = array.transpose(order), transposed(axes, order)
        else:
            sizes = _shape_of(array.size, random)
            found = reshaped(axes, sizes)
            if found is None:
                continue  # an axis would end within a factor: a copy
            array, axes = array.reshape(sizes), found
        np.testing.assert_array_equal(_places(axes), array)


def _shape_of(size: int, random: Any) -> tuple[int, ...]:
    """A shape of so many elements."""
    found: list[int] = []
    while size > 1:
        factors = [n for n in range(2, size + 1) if size % n == 0]
        found.append(int(random.choice(factors)))
        size //= found[-1]
    return tuple(found) or (1,)


def test_what_ends_within_a_factor_is_no_view() -> None:
    assert reshaped(packed((6,)), (2, 3)) is not None and reshaped(transposed(packed((6, 5)), (1, 0)), (6, 5)) is None
    assert common([((6, 1),), ((3, 2), (2, 1))]) == [(3, (2, 2)), (2, (1, 1))]
    assert common([((4, 3), (3, 1)), ((3, 4), (4, 1))]) is None


def test_loops_that_follow_from_each_other_are_one() -> None:
    assert StridedLoop(3, 20, 0, 8).is_around(StridedLoop(4, 5, 0, 2)) and not StridedLoop(3, 20, 0, 8).is_around(
        StridedLoop(4, 5, 1, 2)
    )


def _computed(layout: Layout, a: np.ndarray, b: np.ndarray, size: int, bias: np.ndarray | None) -> np.ndarray:
    """The result's memory, by the library's definition."""
    (m, n, k), steps = layout.sizes, layout.steps
    first, second = (b, a) if layout.exchanged else (a, b)
    product = Product(
        m, n, k, "float64", "T" if layout.a.turned else "N", "T" if layout.b.turned else "N", layout.count, *steps[:3],
        lead_a=layout.a.lead, lead_b=layout.b.lead, lead_out=layout.out.lead, stride_bias=steps[3],
        epilogue="" if bias is None else "bias",
    )  # fmt: skip
    assert product.extents[0] <= first.size and product.extents[1] <= second.size and product.extents[2] <= size
    out = np.full(size, np.nan)
    reference.product(product, first.reshape(-1), second.reshape(-1), out, bias, None)
    return out


@pytest.mark.parametrize("seed", range(120))
def test_products_of_transposed_tensors_follow_numpy(seed: int) -> None:
    """Small whole numbers, so that sums are exact; whatever becomes one call gives NumPy's numbers."""
    random = np.random.default_rng(seed)
    batch, heads, rows, columns, depth = random.choice([1, 2, 3, 4], size=5).tolist()

    def stored(shape: tuple[int, ...]) -> tuple[np.ndarray, Any, np.ndarray]:
        """Memory, how a tensor lies in it, and the tensor."""
        order = random.permutation(4).tolist() if random.random() < 0.7 else [0, 1, 2, 3]
        memory = random.integers(-4, 5, [shape[place] for place in np.argsort(order)]).astype(np.float64)
        return memory, transposed(packed(memory.shape), order), memory.transpose(order)

    a, a_axes, a_whole = stored((batch, heads, rows, depth))
    b, b_axes, b_whole = stored((batch, heads, depth, columns))
    out, out_axes, out_whole = stored((batch, heads, rows, columns))
    bias = random.integers(-4, 5, columns).astype(np.float64) if random.random() < 0.3 else None
    layout = Contraction(a_axes, b_axes, out_axes, bias is not None).layout()
    if layout is None:
        return
    found = _computed(layout, a, b, out.size, bias)
    wanted = a_whole @ b_whole + (0 if bias is None else bias)
    out_whole[...] = wanted  # into its memory
    np.testing.assert_array_equal(found, out.reshape(-1))


HEADS, TOKENS, SIZE = 3, 5, 4


def _heads(images: int) -> Any:
    """How a tensor [images * tokens, heads * size] lies as [images, heads, tokens, size]."""
    split = reshaped(packed((images * TOKENS, HEADS * SIZE)), (images, TOKENS, HEADS, SIZE))
    assert split is not None
    return transposed(split, (0, 2, 1, 3))


def test_scores_of_one_image_are_read_in_place() -> None:
    layout = Contraction(_heads(1), _turned(_heads(1)), packed((1, HEADS, TOKENS, TOKENS))).layout()
    assert layout is not None and layout.count == HEADS and layout.a.lead == layout.b.lead == HEADS * SIZE
    assert layout.b.turned and layout.steps == (SIZE, SIZE, TOKENS * TOKENS, 0)


def test_scores_of_many_images_are_no_one_call() -> None:
    assert Contraction(_heads(2), _turned(_heads(2)), packed((2, HEADS, TOKENS, TOKENS))).layout() is None


def test_a_product_writes_heads_first() -> None:
    """x times the columns of each head, with its part of the bias."""
    rows, width = 2 * TOKENS, HEADS * SIZE
    out = transposed(packed((HEADS, 2, TOKENS, SIZE)), (1, 2, 0, 3))
    joined = ((*out[0], *out[1]), (*out[2], *out[3]))
    layout = Contraction(packed((rows, width)), packed((width, width)), joined, bias=True).layout()
    assert layout is not None and layout.sizes == (rows, SIZE, width) and layout.count == HEADS
    assert layout.steps == (0, SIZE, rows * SIZE, SIZE) and layout.b.lead == width and layout.out.lead == SIZE


def test_one_second_factor_for_all_is_one_product() -> None:
    a, b, out = packed((2, 3, 5, 4)), packed((4, 6)), packed((2, 3, 5, 6))
    layout = Contraction(a, batch_axes(b, (2, 3)), out).layout()
    assert layout is not None and layout.sizes == (30, 6, 4) and layout.count == 1


def _turned(axes: Any) -> Any:
    return (*axes[:-2], axes[-1], axes[-2])
