"""Heads of attention without copies, as whole graphs: values beside the CPU's, and how many transpositions are left."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from tests.compiler.layers import normal
from tests.compiler.test_gpu_fusion import fused
from tests.compiler.test_gpu_precision import lowered
from tests.kernels.gpu.without_libraries import without_libraries
from toolkit import client as gm
from toolkit.client.gradients import gradients
from toolkit.kernels.cuda.driver import choose
from toolkit.kernels.cuda.driver.fake import FakeDriver
from toolkit.runtime.session import Session

pytest.importorskip("llvmlite")
TOKENS, HEADS, SIZE = 5, 3, 4
WIDTH = HEADS * SIZE


@pytest.fixture(autouse=True)
def _fake() -> Iterator[None]:
    with choose.using(FakeDriver()):
        yield


def attention(images: int, *, masked: bool = False, learning: bool = False) -> Callable[[Any], list[Any]]:
    """Attention of several heads with its projections; the gradients by what is given and by the weights, too."""

    def build(x: Any) -> list[Any]:
        weights = [gm.constant(normal(WIDTH, WIDTH, seed=at) / np.float32(WIDTH**0.5)) for at in range(4)]
        biases = [gm.constant(normal(WIDTH, seed=8 + at)) for at in range(4)]

        def dense(x: Any, at: int) -> Any:
            return gm.bias_add(gm.matmul(x, weights[at]), biases[at])

        def heads(x: Any) -> Any:
            return gm.transpose(gm.reshape(x, [images, TOKENS, HEADS, SIZE]), [0, 2, 1, 3])

        query, key, value = (heads(dense(x, at)) for at in range(3))
        scores = gm.matmul(query, key, transpose_b=True) * SIZE**-0.5
        if masked:
            scores = scores + gm.constant(normal(images, 1, 1, TOKENS, seed=20))
        joined = gm.transpose(gm.matmul(gm.softmax(scores), value), [0, 2, 1, 3])
        y = dense(gm.reshape(joined, [-1, WIDTH]), 3)
        if not learning:
            return [y]
        loss = gm.reduce_sum(gm.square(y) * normal(images * TOKENS, WIDTH, seed=30))
        return [y, *gradients([loss], [x, *weights, *biases])]

    return build


def transpositions(build: Callable[[Any], list[Any]], shape: tuple[int, ...], precision: str = "f32") -> int:
    """How many are left as compiled."""
    with gm.Graph().as_default() as graph:
        given = gm.placeholder(gm.float32, list(shape))
        wanted = build(given)
    with Session(graph, devices={"GPU": 1}, precision=precision) as session:
        return sum(line.split()[1:2] == ["Transpose"] for line in session.explain(wanted, {given: normal(*shape)}))


#: images, whether there is a mask and there are gradients, and the transpositions that are left: of one image none; of
#: many the context's and, of gradients, those of the three by what is projected, for batch and head move by two steps
#: there; a mask is turned as well, once for all layers
CASES = [(1, False, False, 0), (2, True, False, 2), (1, False, True, 0), (2, False, True, 4)]


@pytest.mark.parametrize(("images", "masked", "learning", "left"), CASES)
def test_attention(images: int, masked: bool, learning: bool, left: int) -> None:
    build, shape = attention(images, masked=masked, learning=learning), (images * TOKENS, WIDTH)
    lines = fused(build, normal(*shape))
    assert any("gpu_strided_product" in line for line in lines)
    assert transpositions(build, shape) == left


@pytest.mark.parametrize(("precision", "images", "left"), [("bf16", 1, 0), ("bf16", 2, 4), ("fp16", 2, 4)])
def test_attention_of_16_bits(images: int, left: int, precision: str) -> None:
    build, shape = attention(images, learning=True), (images * TOKENS, WIDTH)
    lowered(build, normal(*shape), precision)
    assert transpositions(build, shape, precision) == left


def test_without_a_library() -> None:
    """Our own products, with a bias of each head's own behind them."""
    with without_libraries():
        fused(attention(2), normal(2 * TOKENS, WIDTH))


@pytest.mark.parametrize("axes", [2, 3])
def test_transpositions_of_factors_and_results(axes: int) -> None:
    shape = (2, 6, 4)[3 - axes :]
    order = [*range(axes - 2), axes - 1, axes - 2]

    def build(x: Any) -> list[Any]:
        w = gm.constant(normal(*shape, seed=1))
        y = gm.matmul(x, gm.transpose(w, order))
        return [gm.transpose(y, order), gm.matmul(gm.transpose(x, order), w)]

    fused(build, normal(*shape))
    assert transpositions(build, shape) == 0


def whole(*shape: int, seed: int) -> np.ndarray:
    """-1, 0 and 1: products of these are exact."""
    return np.random.default_rng(seed).integers(-1, 2, shape).astype(np.float32)


@pytest.mark.parametrize("seed", range(8))
def test_random_orders_and_shapes(seed: int) -> None:
    """Three projections, split into axes that are ordered anyhow, multiplied, and joined in any order again.

    No number is above 2^24, so float32 holds all: a score is at most 4 * 12 * 12, one of y at most 5 * 12 times that,
    and a gradient by x at most 3 * 12 * 5 times a score.
    """
    random = np.random.default_rng(seed)
    images = int(random.integers(1, 4))
    order, back = random.permutation(3).tolist(), random.permutation(4).tolist()
    x = whole(images * TOKENS, WIDTH, seed=seed)
    with gm.Graph().as_default() as graph:
        given = gm.placeholder(gm.float32, list(x.shape))

        def split(at: int) -> Any:
            y = gm.matmul(given, gm.constant(whole(WIDTH, WIDTH, seed=at)))
            return gm.transpose(gm.reshape(y, [images, TOKENS, HEADS, SIZE]), [*order, 3])

        y = gm.matmul(gm.matmul(split(1), split(2), transpose_b=True), split(3))
        y = gm.reshape(gm.transpose(y, back), [-1])
        wanted = [y, *gradients([gm.reduce_sum(y * whole(images * TOKENS * WIDTH, seed=4))], [given])]
    with Session(graph, devices={"CPU": 1}) as session:
        expected = session.run(wanted, {given: x})
    with Session(graph, devices={"GPU": 1}) as session:
        for _ in range(2):
            for found, value in zip(session.run(wanted, {given: x}), expected, strict=True):
                np.testing.assert_array_equal(found, value)


def layers(images: int, count: int, *, learning: bool = False) -> Callable[[Any], list[Any]]:
    """Several layers of attention with a norm behind each; of 2 and more images rows are numbered token by token."""

    def build(x: Any) -> list[Any]:
        weights: list[Any] = []

        def dense(x: Any, seed: int) -> Any:
            weights.append(gm.constant(normal(WIDTH, WIDTH, seed=seed) / np.float32(WIDTH**0.5)))
            return gm.bias_add(gm.matmul(x, weights[-1]), gm.constant(normal(WIDTH, seed=seed + 50)))

        def heads(x: Any) -> Any:
            return gm.transpose(gm.reshape(x, [images, TOKENS, HEADS, SIZE]), [0, 2, 1, 3])

        y = x
        for at in range(count):
            query, key, value = (heads(dense(y, 4 * at + part)) for part in range(3))
            scores = gm.matmul(query, key, transpose_b=True) * SIZE**-0.5
            joined = gm.transpose(gm.matmul(gm.softmax(scores), value), [0, 2, 1, 3])
            y = y + dense(gm.reshape(joined, [-1, WIDTH]), 4 * at + 3)
            mean, variance = gm.moments(y, [-1], keepdims=True)
            y = gm.batch_normalization(y, mean, variance, normal(WIDTH, seed=90), 1 + normal(WIDTH, seed=91), 1e-3)
        if not learning:
            return [y]
        means = gm.reduce_mean(gm.reshape(y, [images, TOKENS, WIDTH]), [1])
        return [means, *gradients([gm.reduce_sum(means * normal(images, WIDTH, seed=30))], weights)]

    return build


#: images, layers, whether there are gradients, and the transpositions that are left: what is given and returned; of
#: gradients what is given, by the input of the loss and in the norm's factors
LAYERS = [(2, 3, False, 2), (1, 3, False, 0), (3, 2, True, 3)]


@pytest.mark.parametrize(("images", "count", "learning", "left"), LAYERS)
def test_rows_are_numbered_token_by_token(images: int, count: int, learning: bool, left: int) -> None:
    build, shape = layers(images, count, learning=learning), (images * TOKENS, WIDTH)
    fused(build, normal(*shape))
    assert transpositions(build, shape) == left
