"""Products with large transposed matrices that are computed the other way round."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.compiler.compare import check
from tests.compiler.targets import changed
from tests.runtime.oracle import Both
from toolkit import client as gm
from toolkit.compiler.backends.cpu.networks import products
from toolkit.kernels.cpu.onednn.library import library
from toolkit.target.target import Target

pytestmark = pytest.mark.skipif(library() is None, reason="they are oneDNN's")


#: matrices that are not large too
_SMALL = changed(primitives={"turned_weights": 0})


@pytest.fixture
def turned(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What is computed so."""
    found: list[Any] = []
    write = products._write_turned  # pyright: ignore[reportPrivateUsage]

    def noted(emitter: Any, operation: Any, right: Any) -> None:
        found.append(operation)
        write(emitter, operation, right)

    monkeypatch.setattr(products, "_write_turned", noted)
    monkeypatch.setenv("GRAPHMILL_SEGMENTS", "strict")
    return found


def _product(rows: int, inner: int, columns: int, *, turn_a: bool = False, turn_b: bool = True, activated: bool = False,
             fed: bool = True, threads: int = 2, target: Target = _SMALL) -> None:  # fmt: skip
    random = np.random.default_rng(rows)
    a = random.normal(size=(inner, rows) if turn_a else (rows, inner)).astype(np.float32)
    b = random.normal(size=(columns, inner) if turn_b else (inner, columns)).astype(np.float32)
    with gm.Graph().as_default() as graph:
        given = gm.placeholder(gm.float32, list(a.shape), name="a")
        other = gm.placeholder(gm.float32, list(b.shape), name="b") if fed else gm.constant(b)
        y = gm.ops.mat_mul(given, other, transpose_a=turn_a, transpose_b=turn_b)
        gm.identity(gm.ops.tanh(y) if activated else y, name="y")
    check(graph, ["y:0"], {"a:0": a, "b:0": b} if fed else {"a:0": a}, threads=threads, processor=target)


@pytest.mark.parametrize("sizes", [(8, 96, 128), (17, 127, 331), (64, 512, 784), (9, 1000, 64)])
@pytest.mark.parametrize("turn_a", [False, True])
@pytest.mark.parametrize("threads", [1, 2])
def test_large_matrices_are_not_packed(
    turned: list[Any], sizes: tuple[int, int, int], turn_a: bool, threads: int
) -> None:
    _product(*sizes, turn_a=turn_a, threads=threads)
    assert (len(turned) > 0) == (sizes[1] * sizes[2] >= 4 * sizes[0] * (sizes[1] + sizes[2]))


def test_others(turned: list[Any]) -> None:
    _product(7, 128, 256)
    _product(64, 128, 256)
    _product(16, 256, 256, turn_b=False)
    _product(16, 256, 256, fed=False)
    _product(16, 256, 256, activated=True)
    assert not turned


def test_small_ones(turned: list[Any]) -> None:
    _product(16, 256, 256, target=changed(_SMALL, primitives={"turned_weights": 1 << 19}))
    assert not turned


def test_in_a_loop(tf: Any, turned: list[Any]) -> None:
    """Of matrices that change from turn to turn."""
    random = np.random.default_rng(0)
    feeds = {"x:0": random.normal(size=(16, 256)).astype("f"), "w:0": random.normal(size=(256, 256)).astype("f") / 16}

    def make(v1: Any) -> None:
        x, w = v1.placeholder("float32", [16, 256], name="x"), v1.placeholder("float32", [256, 256], name="w")
        _, x, w = v1.while_loop(
            lambda i, x, w: i < 4,
            lambda i, x, w: (i + 1, v1.tanh(0.5 * v1.matmul(x, w, transpose_b=True)), 0.9 * w + 0.01),
            [0, x, w],
        )
        v1.identity(x, name="y")
        v1.identity(w, name="last")

    Both(tf, make).check(["y:0", "last:0"], feeds, threads=2, processor=_SMALL)
