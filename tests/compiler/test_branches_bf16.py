"""bfloat16: what one branch converts, nobody else may rely on; what is stored in it, and what is not."""

from __future__ import annotations

import numpy as np
import pytest

from tests.compiler.compare import check, explained
from tests.compiler.elementwise.test_fusion import image, weights
from toolkit import client as gm
from toolkit.kernels.cpu.onednn.library import multiplies_bfloat16
from toolkit.runtime.session import Session


@pytest.mark.parametrize("taken", [True, False])
def test_a_tensor_is_read_in_a_branch_and_after_it(taken: bool) -> None:
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [2, 24, 24, 16], name="x")
        flag = gm.placeholder(gm.bool_, [], name="flag")
        y = gm.cond(flag, lambda: gm.conv2d(x, weights(3, 3, 16, 32)), lambda: gm.conv2d(x, weights(1, 1, 16, 32)))
        gm.reduce_mean(gm.conv2d(x, weights(5, 5, 16, 32)) + y, [1, 2], name="out")
    feeds = {"x:0": image(2, 24, 16), "flag:0": np.bool_(taken)}
    check(graph, ["out:0"], feeds, precision="bf16")


@pytest.mark.skipif(not multiplies_bfloat16(), reason="bfloat16 is not used here")
def test_scores_stay_float32_for_their_softmax() -> None:
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [8, 256], name="x")
        hidden = gm.softmax(gm.matmul(x, weights(256, 512)))
        gm.softmax(gm.matmul(hidden, weights(512, 640)), name="out")
    feeds = {"x:0": np.random.default_rng(0).normal(size=(8, 256)).astype(np.float32)}
    lines = explained(graph, ["out:0"], feeds, precision="bf16").splitlines()
    products = [line for line in lines if " matmul " in line]
    assert "bfloat16[8,512]" in products[0] and "float32[8,640]" in products[1], lines


def test_a_long_chain_in_bfloat16() -> None:
    """Deeper than Python's stack."""
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [64, 256], name="x")
        y = gm.matmul(x, weights(256, 256))
        for _ in range(1200):
            y = gm.tanh(y) + y * np.float32(0.01)
        gm.matmul(y, weights(256, 16), name="out")
    feeds = {"x:0": np.random.default_rng(0).normal(size=(64, 256)).astype(np.float32)}
    with Session(graph, precision="bf16") as session:
        assert np.isfinite(session.run("out:0", feeds)).all()
