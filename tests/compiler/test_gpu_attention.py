"""Attention as one operation, as whole graphs: values beside the CPU's within what the roundings of factors allow."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from tests import perturbation, tolerance
from tests.compiler.layers import normal
from tests.compiler.test_gpu_precision import lowered
from tests.kernels.gpu.without_libraries import without_libraries
from toolkit import client as gm
from toolkit.client.gradients import gradients
from toolkit.kernels.cuda.driver import choose
from toolkit.kernels.cuda.driver.fake import FakeDriver
from toolkit.runtime.session import Session

pytest.importorskip("llvmlite")
SIZE = 8


@pytest.fixture(autouse=True)
def _fake() -> Iterator[None]:
    with choose.using(FakeDriver()):
        yield


def attention(
    images: int, heads: int, rows: int, keys: int, *, mask: np.ndarray | None = None, learning: bool = False,
    by_division: bool = False, size: int = SIZE,
) -> Callable[[Any], list[Any]]:  # fmt: skip
    """Attention over what is given, [images * rows, heads * size], and other keys; projected before and behind."""
    width = heads * size

    def build(x: Any) -> list[Any]:
        weights = [gm.constant(normal(width, width, seed=at) / np.float32(width**0.5)) for at in range(4)]
        other = x if rows == keys else gm.constant(normal(images * keys, width, seed=9))

        def split(y: Any, count: int) -> Any:
            return gm.transpose(gm.reshape(y, [images, count, heads, size]), [0, 2, 1, 3])

        query = split(gm.matmul(x, weights[0]), rows)
        key, value = (split(gm.matmul(other, weights[at]), keys) for at in (1, 2))
        scores = gm.matmul(query, key, transpose_b=True)
        scores = scores / size**0.5 if by_division else scores * size**-0.5
        if mask is not None:
            scores = scores + gm.constant(mask)
        joined = gm.transpose(gm.matmul(gm.softmax(scores), value), [0, 2, 1, 3])
        y = gm.matmul(gm.reshape(joined, [-1, width]), weights[3])
        if not learning:
            return [y]
        loss = gm.reduce_sum(gm.square(y) * normal(images * rows, width, seed=30))
        return [y, *gradients([loss], [x, *weights])]

    return build


def keys_mask(images: int, keys: int, *, hidden: int = 0) -> np.ndarray:
    """As BERT has it: -1e9 for keys that are padding, one row for all heads and queries.

    Args:
        hidden: how many images have no key at all: their scores, all of them 1e9 lower, lose their digits.
    """
    seen = np.random.default_rng(keys).random((images, 1, 1, keys)) < 0.7
    seen[:, :, :, 0] = True
    seen[:hidden] = False
    return np.where(seen, 0, -1e9).astype(np.float32)


CASES: list[tuple[str, tuple[int, int, int, int], dict[str, Any]]] = [
    ("one image", (1, 2, 6, 6), {}),
    ("many images", (3, 2, 5, 5), {}),
    ("other keys", (2, 3, 4, 7), {"by_division": True}),
    ("a mask of keys", (2, 2, 6, 6), {"mask": keys_mask(2, 6)}),
    ("a mask of each image's rows", (2, 2, 5, 7), {"mask": normal(2, 1, 5, 7, seed=5)}),
    ("a mask of each head", (2, 2, 5, 5), {"mask": normal(2, 5, 5, seed=6)}),
    ("one number of each row", (2, 2, 5, 5), {"mask": normal(5, 1, seed=7)}),
]


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
@pytest.mark.parametrize("learning", [False, True], ids=["inference", "training"])
@pytest.mark.parametrize(("name", "sizes", "more"), CASES, ids=[each[0] for each in CASES])
def test_values(name: str, sizes: tuple[int, int, int, int], more: dict[str, Any], learning: bool, precision: str):
    images, heads, rows, _ = sizes
    build = attention(*sizes, learning=learning, **more)
    lines = lowered(build, normal(images * rows, heads * SIZE), precision)
    assert sum("gpu_attention " in line for line in lines) == 1, lines
    assert sum("gpu_attention_gradient" in line for line in lines) == learning, lines


@pytest.mark.parametrize("learning", [False, True], ids=["inference", "training"])
def test_a_mask_has_rows_once_for_all_layers(learning: bool) -> None:
    """The library takes a row for each query, not for each head; our own kernels read the one there is."""
    mask = keys_mask(2, 6)

    def build(x: Any) -> list[Any]:
        first = attention(2, 2, 6, 6, mask=mask, size=16)
        second = attention(2, 2, 6, 6, mask=mask, size=16, learning=learning)
        return second(first(x)[0])

    lines = lowered(build, normal(12, 32), "bf16")
    assert sum("gpu_attention " in line for line in lines) == 2, lines
    with gm.Graph().as_default() as graph:
        given = gm.placeholder(gm.float32, [2, 1, 1, 6])
        x = gm.placeholder(gm.float32, [12, 32])
        keys = gm.constant(normal(2, 2, 6, 16))
        queries = [gm.reshape(x, [2, 2, 6, 16]) * np.float32(factor) for factor in (1, 2)]
        scores = [gm.matmul(each, keys, transpose_b=True) for each in queries]
        values = gm.constant(normal(2, 2, 6, 16))
        wanted = [gm.matmul(gm.softmax(each + given), values) for each in scores]
    for precision, count in (("bf16", 1), ("tf32", 0)):
        with Session(graph, devices={"GPU": 1}, precision=precision) as session:
            feeds = {x: normal(12, 32), given: mask}
            session.run(wanted, feeds)
            lines = session.explain(wanted, feeds)
            assert sum("gpu_attention " in line for line in lines) == 2, lines
            assert sum("float32[2,1,6,6]" in line and not line.startswith("  %") for line in lines) == count, lines


def test_results_that_are_asked_for_are_float32() -> None:
    """Which the library does not write; with gradients by what is read in place."""

    def build(x: Any) -> list[Any]:
        query, key, value = (gm.matmul(x, gm.constant(normal(1, 8, 8, seed=at))) for at in (1, 2, 3))
        y = gm.matmul(gm.softmax(gm.matmul(query, key, transpose_b=True) * 0.25), value)
        return [y, *gradients([gm.reduce_sum(y * normal(3, 5, 8, seed=2))], [x])]

    lines = lowered(build, normal(3, 5, 8), "bf16")
    assert sum("gpu_attention" in line for line in lines) == 2, lines


@pytest.mark.parametrize("learning", [False, True], ids=["inference", "training"])
@pytest.mark.parametrize("size", [SIZE, 16])
def test_without_a_library(size: int, learning: bool) -> None:
    """Products of ours, and a kernel over the rows of the scores; of 16 numbers and more one kernel for all of it."""
    with without_libraries():
        build = attention(2, 2, 6, 6, mask=keys_mask(2, 6), learning=learning, size=size)
        assert any("gpu_attention " in line for line in lowered(build, normal(12, 2 * size), "bf16"))


@pytest.mark.parametrize("learning", [False, True], ids=["inference", "training"])
@pytest.mark.parametrize("mask", [False, True])
def test_tf32(mask: bool, learning: bool) -> None:
    """By kernels of our own; factors have the 10 bits of float16, whose roundings are allowed for."""
    build = attention(2, 2, 6, 6, mask=keys_mask(2, 6) if mask else None, size=16, learning=learning)
    lines, launched = tf32(build, normal(12, 32))
    assert sum("gpu_attention " in line for line in lines) == 1, lines
    assert sum("gpu_attention_gradient" in line for line in lines) == learning, lines
    assert [name.split("_tf32")[0] for name in launched] == [
        "attention", *(["attention_gradient_dq", "attention_gradient_dk_dv"] if learning else [])
    ]  # fmt: skip


def tf32(build: Callable[[Any], list[Any]], x: np.ndarray) -> tuple[list[str], list[str]]:
    """Run a graph on the CPU, and three times on a GPU, whose values are compared.

    Returns:
        what the GPU's backend made, in lines; and the names of attention's kernels that a step launched.
    """
    with gm.Graph().as_default() as graph:
        given = gm.placeholder(gm.float32, list(x.shape))
        wanted = build(given)
    with Session(graph, devices={"CPU": 1}) as session:
        expected = session.run(wanted, {given: x})
    allowed = perturbation.allowed(graph, wanted, {given: x}, precision="fp16")
    launched: list[str] = []
    driver = FakeDriver()
    context: Any = driver.open(0)
    launch = context.launch

    def noted(function: Any, *arguments: Any) -> None:
        launched.append(function.name)
        launch(function, *arguments)

    context.launch = noted
    with choose.using(driver), Session(graph, devices={"GPU": 1}, precision="tf32") as session:
        found = session.run(wanted, {given: x})
        names = [name for name in launched if name.startswith("attention_")]
        for _ in range(3):
            for one, other, apart, value in zip(found, expected, allowed, wanted, strict=True):
                tolerance.assert_within(one, other, apart, value.name)
            found = session.run(wanted, {given: x})
        lines = session.explain(wanted, {given: x})
        return [line for line in lines if "gpu_" in line and not line.startswith("  %")], names


def _run(build: Callable[[Any], list[Any]], x: np.ndarray, **how: Any) -> list[np.ndarray]:
    with gm.Graph().as_default() as graph:
        given = gm.placeholder(gm.float32, list(x.shape))
        wanted = build(given)
    with Session(graph, **how) as session:
        return session.run(wanted, {given: x})


@pytest.mark.parametrize("library", [True, False], ids=["library", "without"])
def test_rows_that_see_nothing(library: bool) -> None:
    """Of -1e9 everywhere all keys have equal shares; of -inf everywhere a row is NaN, as softmax has it."""
    x = normal(12, 2 * SIZE)
    lost, hidden = keys_mask(2, 6), keys_mask(2, 6, hidden=1)
    lost[0] = -np.inf
    for mask in (hidden, lost):
        build = attention(2, 2, 6, 6, mask=mask)
        (expected,) = _run(build, x, devices={"CPU": 1})
        with choose.using(FakeDriver()) if library else without_libraries():
            (found,) = _run(build, x, devices={"GPU": 1}, precision="bf16")
        np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
        there = ~np.isnan(expected)
        # four products of factors with 8 digits in binary, and the mean of six values, of numbers that are near 1
        np.testing.assert_allclose(found[there], expected[there], atol=8 * 2.0**-8, rtol=0)


@pytest.mark.parametrize("library", [True, False], ids=["library", "without"])
@pytest.mark.parametrize("row", [0, 7])
def test_nan_is_seen(row: int, library: bool) -> None:
    """Who sees a token that is NaN is NaN: all of an image, padding too, for 0 times NaN is NaN; and no other image."""
    x = normal(12, 2 * SIZE)
    x[row] = np.nan
    build = attention(2, 2, 6, 6, mask=keys_mask(2, 6))
    (expected,) = _run(build, x, devices={"CPU": 1})
    with choose.using(FakeDriver()) if library else without_libraries():
        (found,) = _run(build, x, devices={"GPU": 1}, precision="bf16")
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))


def test_what_stays_apart() -> None:
    """Shares that are dropped, or asked for; a mask that is learned."""

    def dropped(x: Any) -> list[Any]:
        shares = gm.softmax(gm.matmul(x, x, transpose_b=True))
        return [gm.matmul(shares * np.float32(1.25) * normal(2, 6, 6, seed=3), x)]

    def asked(x: Any) -> list[Any]:
        shares = gm.softmax(gm.matmul(x, x * np.float32(0.5), transpose_b=True))
        return [gm.matmul(shares, x), shares]

    def learned(x: Any) -> list[Any]:
        mask = gm.constant(normal(2, 6, 6, seed=4))
        y = gm.matmul(gm.softmax(gm.matmul(x, x * np.float32(0.5), transpose_b=True) + mask), x)
        return [y, *gradients([gm.reduce_sum(gm.square(y))], [mask])]

    for build in (dropped, asked, learned):
        assert not any("gpu_attention" in line for line in lowered(build, normal(2, 6, SIZE), "bf16")), build


@pytest.mark.parametrize("learning", [False, True], ids=["inference", "training"])
def test_einsum_as_keras_writes_it(learning: bool) -> None:
    """Nothing is turned in the graph: heads are the third axis, and queries are scaled before."""

    def einsum(equation: str, *inputs: Any) -> Any:
        return gm.ops.einsum(list(inputs), equation)

    def build(x: Any) -> list[Any]:
        kernels = [gm.constant(normal(16, 2, SIZE, seed=at) / np.float32(4)) for at in range(3)]
        query, key, value = (einsum("abc,cde->abde", x, kernel) for kernel in kernels)
        scores = einsum("aecd,abcd->acbe", key, query * np.float32(SIZE**-0.5))
        y = einsum("acbe,aecd->abcd", gm.softmax(scores), value)
        y = einsum("abcd,cde->abe", y, gm.constant(normal(2, SIZE, 16, seed=5) / np.float32(4)))
        return [y, *gradients([gm.reduce_sum(y * normal(2, 5, 16, seed=6))], kernels)] if learning else [y]

    lines = lowered(build, normal(2, 5, 16), "bf16")
    assert sum("gpu_attention " in line for line in lines) == 1, lines
    assert sum("gpu_attention_gradient" in line for line in lines) == learning, lines
