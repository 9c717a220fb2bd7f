"""Softmaxes that are spelled out, and what only looks like one."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.compiler.attention.forms import Written
from tests.compiler.attention.test_forms import compared, graph_of

pytest.importorskip("llvmlite")
pytestmark = pytest.mark.tensorflow


@pytest.mark.parametrize("turned", [False, True], ids=["by rows", "by columns"])
def test_a_gradient_of_its_own(tf: ModuleType, turned: bool, tmp_path: Path) -> None:
    """A program's own gradient of as many rows as keys: the sum of a row is added to its row, or to a column."""

    def form(to: Written) -> Any:
        v1, count = to.tf, to.keys

        @tf.custom_gradient
        def softmax(x: Any) -> Any:
            exponentials = v1.exp(x - v1.stop_gradient(v1.reduce_max(x, -1, keepdims=True)))
            total = v1.reduce_sum(exponentials, -1, keepdims=True)

            def gradient(given: Any) -> Any:
                of_total = v1.reduce_sum(given * ((-exponentials / total) / total), -1)
                row = v1.tile(v1.reshape(of_total, [1, count]), [count, 1])
                column = v1.tile(v1.reshape(of_total, [count, 1]), [1, count])
                return (given / total + (row if turned else column)) * exponentials

            return exponentials / total, gradient

        q, k, v = (to.given(count, to.size, seed=seed) for seed in (1, 2, 3))
        return v1.matmul(softmax(v1.matmul(q, k, transpose_b=True) * 0.25), v)

    graph, fetched, (feeds, expected) = graph_of(tf, form, tmp_path, learning=True)
    lines = compared(graph, fetched, feeds, expected, "tf32")
    assert any("gpu_attention_gradient" in line for line in lines) is not turned, lines
