"""What is done to the products of several matrices by tensors that some or all of these matrices share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.compiler.compare import check
from toolkit import client as gm
from toolkit.kernels.cpu.onednn.library import library
from toolkit.runtime.session import Session

pytestmark = pytest.mark.skipif(library() is None, reason="needs oneDNN")

_IMAGES, _HEADS, _ROWS, _COLUMNS, _INNER = 3, 4, 64, 48, 32
_OTHERS = [
    (1, 1, _ROWS, _COLUMNS), (1, _HEADS, _ROWS, _COLUMNS), (_IMAGES, 1, _ROWS, _COLUMNS), (_ROWS, _COLUMNS),
    (_IMAGES, 1, 1, _COLUMNS), (_COLUMNS,), (_IMAGES, _HEADS, 1, 1), (_IMAGES, _HEADS, _ROWS, 1), (1, 1, _ROWS, 1),
    (_IMAGES, _HEADS, _ROWS, _COLUMNS), (1, 1, 1, 1),
]  # fmt: skip


def _numbers(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("other", _OTHERS, ids=str)
def test_nothing_is_found_too_late(other: tuple[int, ...], turned: bool) -> None:
    right = (_COLUMNS, _INNER) if turned else (_INNER, _COLUMNS)
    with gm.Graph().as_default() as graph:
        a = gm.placeholder(gm.float32, [_IMAGES, _HEADS, _ROWS, _INNER], name="a")
        b = gm.placeholder(gm.float32, [_IMAGES, _HEADS, *right], name="b")
        mask = gm.placeholder(gm.float32, other, name="mask")
        scaled = gm.ops.mul(gm.ops.batch_mat_mul_v2(a, b, adj_y=turned), np.float32(0.125))
        gm.identity(gm.ops.sub(gm.ops.mul(scaled, mask), mask), name="out")
    feeds = {
        "a:0": _numbers(1, _IMAGES, _HEADS, _ROWS, _INNER), "b:0": _numbers(2, _IMAGES, _HEADS, *right),
        "mask:0": _numbers(3, *other),
    }  # fmt: skip
    with Session(graph) as session:
        session.run("out:0", feeds)
        assert session.notes() == []
    check(graph, ["out:0"], feeds)
