"""bfloat16 in branches: what one branch converts, nobody else may rely on."""

from __future__ import annotations

import numpy as np
import pytest

from tests.runtime.segments.compare import node_by_node
from tests.runtime.segments.test_fusion import image, weights
from toolkit import client as gm
from toolkit.runtime.session import Session


@pytest.mark.parametrize("taken", [True, False])
def test_a_tensor_is_read_in_a_branch_and_after_it(taken: bool) -> None:
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [2, 24, 24, 16], name="x")
        flag = gm.placeholder(gm.bool_, [], name="flag")
        y = gm.cond(flag, lambda: gm.conv2d(x, weights(3, 3, 16, 32)), lambda: gm.conv2d(x, weights(1, 1, 16, 32)))
        gm.reduce_mean(gm.conv2d(x, weights(5, 5, 16, 32)) + y, [1, 2], name="out")
    feeds = {"x:0": image(2, 24, 16), "flag:0": np.bool_(taken)}
    (wanted,) = node_by_node(graph, ["out:0"], feeds)
    with Session(graph, precision="bf16") as session:
        for _ in range(2):
            got = session.run("out:0", feeds)
            np.testing.assert_allclose(got, wanted, rtol=4e-2, atol=4e-2 * float(np.abs(wanted).max()))
