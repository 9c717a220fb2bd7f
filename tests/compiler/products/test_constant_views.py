"""Products by constants that are views of others: reversed, broadcast, parts, transposed."""

# numpy's overloads answer arrays typed Any with Unknown
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from toolkit import client as gm
from toolkit.runtime.session import Session

WIDTH = 96

VIEWS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "rows backwards": (lambda c: gm.reverse(c, [0]), lambda w: w[::-1]),
    "columns backwards": (lambda c: gm.reverse(c, [1]), lambda w: w[:, ::-1]),
    "every second row, backwards": (lambda c: c[::-2], lambda w: w[::-2]),
    "every second row": (lambda c: c[::2], lambda w: w[::2]),
    "the first columns": (lambda c: c[:, :40], lambda w: w[:, :40]),
    "a column": (lambda c: c[:, 3:4], lambda w: w[:, 3:4]),
    "one row for all": (lambda c: gm.broadcast_to(c[:1], [WIDTH, WIDTH]), lambda w: np.tile(w[:1], (WIDTH, 1))),
}


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("view", VIEWS)
def test_products_by_views_are_compiled(view: str, transposed: bool) -> None:
    in_graph, in_numpy = VIEWS[view]
    random = np.random.default_rng(5)
    weights = random.integers(-9, 9, (WIDTH, WIDTH)).astype(np.float32)  # sums of whole numbers are exact
    factor = in_numpy(weights).T if transposed else in_numpy(weights)
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [None, factor.shape[0]], name="x")
        gm.identity(gm.matmul(x, in_graph(gm.constant(weights)), transpose_b=transposed), name="y")
    with Session(graph) as session:
        for rows in (64, 32, 200):
            given = random.integers(-9, 9, (rows, factor.shape[0])).astype(np.float32)
            np.testing.assert_array_equal(session.run("y:0", {"x:0": given}), given @ factor)
        lines = session.explain(["y:0"], {"x:0": given})
    assert not any("node by node" in line for line in lines), lines
