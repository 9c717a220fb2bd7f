"""Attentions of random sizes, scales, masks and uses on a GPU: values beside the CPU's, formed or not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from tests import perturbation, tolerance
from tests.compiler.layers import normal
from toolkit import client as gm
from toolkit.client.gradients import gradients
from toolkit.kernels.cuda.driver import choose
from toolkit.kernels.cuda.driver.fake import FakeDriver
from toolkit.runtime.session import Session

pytest.importorskip("llvmlite")
ops = gm.ops
_SEEDS, _MORE_SEEDS = range(24), range(24, 160)
#: float16 has no numbers for shares below 6e-8, which no rounding explains
_PRECISIONS = ("tf32", "bf16", "f32")


_MASKS = (
    "", "causal", "late", "keys", "heads", "chosen", "gpt2", "both", "less", "chosen keys", "chosen inverse",
    "late gpt2", "alibi", "windows", "three", "nothing",
)  # fmt: skip


def _masked(rng: np.random.Generator, scores: Any, sizes: tuple[int, int, int, int]) -> Any:
    """Scores with one of many masks, causal ones among them; now and then several, or behind a change of shape."""
    images, heads, rows, keys = sizes
    seen = np.tri(rows, keys, dtype=bool)
    low = float(rng.choice(np.array([-1e9, -1e10, -1e4, float(np.finfo(np.float32).min)])))
    there = rng.random((images, 1, 1, keys)) < 0.7
    there[..., 0] = True
    match rng.choice(_MASKS):
        case "causal":
            return scores + gm.constant(np.where(seen, 0, low).astype(np.float32))
        case "late":
            late = np.tri(rows, keys, max(keys - rows, 0), dtype=bool)
            return gm.constant(np.where(late, 0, low).astype(np.float32)) + scores
        case "keys":
            return scores + gm.constant(np.where(there, 0, low).astype(np.float32))
        case "heads":
            return scores + gm.constant(normal(heads, 1, keys, seed=5))
        case "chosen":
            return ops.select_v2(gm.constant(seen), scores, gm.constant(np.float32(low)))
        case "gpt2":
            factor = gm.constant(seen.astype(np.float32))
            return scores * factor - gm.constant(np.float32(-low)) * (1 - factor)
        case "less":
            return scores - gm.constant(np.where(there, 0, -low).astype(np.float32))
        case "chosen keys":
            return ops.select_v2(gm.constant(there), scores, gm.constant(np.float32(low)))
        case "chosen inverse":
            hidden = gm.constant(np.broadcast_to(~there, (images, 1, rows, keys)).copy())
            return ops.select_v2(hidden, gm.constant(np.float32(low)), scores) * np.float32(0.5)
        case "late gpt2":
            late = np.tri(rows, keys, max(keys - rows, 0)).astype(np.float32)
            return scores * gm.constant(late) - gm.constant(np.float32(-low)) * (1 - gm.constant(late))
        case "alibi":
            slopes = np.arange(1, heads + 1, dtype=np.float32).reshape(-1, 1, 1) / heads
            far = (np.arange(keys)[None] - np.arange(rows)[:, None]).astype(np.float32)
            return scores + gm.constant(slopes * far) + gm.constant(np.where(seen, 0, low).astype(np.float32))
        case "windows":
            bias = scores + gm.constant(normal(heads, rows, keys, seed=6))
            split = gm.reshape(bias, [1, images, heads, rows, keys])
            apart = np.where(np.broadcast_to(there, (images, 1, rows, keys)), 0, -100).astype(np.float32)
            return gm.reshape(split + gm.constant(apart[None]), [images, heads, rows, keys])
        case "three":
            every = [gm.constant(normal(*shape, seed=7)) for shape in ((keys,), (rows, 1), (heads, 1, 1))]
            return ((scores + every[0]) * np.float32(0.5) - every[1]) + every[2]
        case "nothing":
            return scores + gm.constant(np.zeros((rows, keys), np.float32))
        case "both":
            there = np.where(rng.random((images, 1, 1, keys)) < 0.8, 0, -3).astype(np.float32)
            return (scores + gm.constant(np.where(seen, 0, low).astype(np.float32))) + gm.constant(there)
        case _:
            return scores


def _case(seed: int) -> tuple[Callable[[Any], list[Any]], np.ndarray]:
    rng = np.random.default_rng(seed)
    images, heads, rows = (int(rng.choice(each)) for each in ([1, 2, 3], [1, 2], [1, 5, 17, 33]))
    keys = rows if rng.random() < 0.6 else int(rng.choice([1, 4, 35]))
    size, value_size = (int(rng.choice([8, 16, 16, 20, 24, 24, 40, 64, 80])) for _ in range(2))
    if rng.random() < 0.1:
        heads, size, value_size = 1, *(int(rng.choice([96, 128, 144, 160, 256, 200])) for _ in range(2))
    learning, scale = rng.random() < 0.6, size**-0.5
    width = heads * size
    x = normal(images * rows, width, seed=seed)

    def build(given: Any) -> list[Any]:
        other = given if keys == rows else gm.constant(normal(images * keys, width, seed=seed + 1))
        weights = [
            gm.constant(normal(width, heads * columns, seed=at) / np.float32(width**0.5))
            for at, columns in enumerate((size, size, value_size))
        ]

        def split(y: Any, count: int, columns: int) -> Any:
            return gm.transpose(gm.reshape(y, [images, count, heads, columns]), [0, 2, 1, 3])

        q = split(gm.matmul(given, weights[0]), rows, size)
        k = split(gm.matmul(other, weights[1]), keys, size)
        v = split(gm.matmul(other, weights[2]), keys, value_size)
        where = rng.choice(["queries", "keys", "scores", "division", "both", "none"])
        if where in ("queries", "both"):
            q = q * np.float32(scale)
        k = k * np.float32(scale) if where == "keys" else k
        scores = gm.matmul(q, k, transpose_b=True)
        scores = scores * np.float32(scale) if where == "scores" else scores
        scores = scores / np.float32(2) if where in ("division", "both") else scores
        scores = _masked(rng, scores, (images, heads, rows, keys))
        use = rng.choice([*[""] * 12, "dropped", "asked", "scores asked", "other axis", "turned", "twice"])
        shares = gm.softmax(scores)
        if use == "other axis":
            shares = gm.transpose(gm.softmax(gm.transpose(scores, [0, 1, 3, 2])), [0, 1, 3, 2])
        if use == "dropped":
            kept = rng.random((images, heads, rows, keys)) < 0.8
            shares = shares * gm.constant((kept / 0.8).astype(np.float32))
        y = gm.matmul(shares, v)
        wanted: list[Any] = [y if use == "turned" else gm.reshape(gm.transpose(y, [0, 2, 1, 3]), [images * rows, -1])]
        wanted += {"asked": [shares], "twice": [gm.matmul(shares, v * 0.5)]}.get(str(use), [])
        if learning:
            loss = gm.add_n([gm.reduce_sum(gm.square(each) * 0.25) for each in wanted])
            wanted += gradients([loss], [given, *weights])
        if use == "scores asked":  # which no float16 has squares of, where they are hidden
            wanted.append(scores)
        return wanted

    return build, x


@pytest.fixture(autouse=True)
def _fake() -> Iterator[None]:
    with choose.using(FakeDriver()):
        yield


@pytest.mark.parametrize("seed", _SEEDS)
def test_values(seed: int) -> None:
    _check(seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", _MORE_SEEDS)
def test_values_of_more_seeds(seed: int) -> None:
    _check(seed)


def _check(seed: int) -> None:
    build, x = _case(seed)
    precision = _PRECISIONS[seed % len(_PRECISIONS)]
    with gm.Graph().as_default() as graph:
        given = gm.placeholder(gm.float32, list(x.shape))
        wanted = build(given)
    with Session(graph, devices={"CPU": 1}) as session:
        expected = session.run(wanted, {given: x})
    narrow = {"tf32": {"precision": "fp16"}, "f32": {}}.get(precision, {"precision": precision})
    allowed = perturbation.allowed(graph, wanted, {given: x}, **narrow)
    how: dict[str, Any] = {} if precision == "f32" else {"precision": precision}
    with Session(graph, devices={"GPU": 1}, **how) as session:
        for _ in range(2):
            found = session.run(wanted, {given: x})
            for one, other, apart, value in zip(found, expected, allowed, wanted, strict=True):
                tolerance.assert_within(one, other, apart, f"{value.name} of seed {seed}")
