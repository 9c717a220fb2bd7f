"""Keys behind the query's own, beside other masks: rows that see none of their keys are as TensorFlow has them."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.compiler.attention.forms import Form, Written
from tests.compiler.attention.test_forms import compared, graph_of

pytest.importorskip("llvmlite")
pytestmark = pytest.mark.tensorflow


def _padded_on_the_left(low: float) -> Form:
    """The first rows see what is hidden least: keys behind them, where these are hidden by one mask, not by two."""

    def form(to: Written) -> Any:
        pad = np.zeros((to.batch, 1, 1, to.keys), np.float32)
        pad[..., :2] = low
        mask, causal = to.fed(pad), np.triu(np.full((to.rows, to.keys), -1e9, np.float32), 1)
        return to.around(lambda scores: (scores + causal) + mask)

    return form


def _chosen_outside(to: Written) -> Any:
    """A number in the place of a score that was hidden is seen."""
    there = np.ones((to.batch, 1, 1, to.keys), bool)
    there[..., 3] = False
    stays, causal = to.fed(there), np.triu(np.full((to.rows, to.keys), -1e9, np.float32), 1)
    return to.around(lambda scores: to.tf.where_v2(stays, scores + causal, np.float32(1.0)))


_FORMS: dict[str, Form] = {
    "-1e9": _padded_on_the_left(-1e9), "-inf": _padded_on_the_left(-np.inf), "chosen": _chosen_outside,
}  # fmt: skip


@pytest.mark.parametrize("learning", [False, True], ids=["inference", "training"])
@pytest.mark.parametrize("name", _FORMS)
def test_as_tensorflow(tf: ModuleType, name: str, learning: bool, tmp_path: Path) -> None:
    graph, fetched, (feeds, expected) = graph_of(tf, _FORMS[name], tmp_path, learning=learning)
    lines = compared(graph, fetched, feeds, expected, "tf32")
    launched = [line for line in lines if "gpu_attention " in line]
    assert len(launched) == 1 and "up to the query's own" not in launched[0], lines


def test_what_hides_nothing_leaves_it_causal(tf: ModuleType, tmp_path: Path) -> None:
    """A bias by distance that is known does not cost the kernel that leaves out half."""

    def form(to: Written) -> Any:
        causal = np.triu(np.full((to.rows, to.keys), -1e9, np.float32), 1)
        far = -np.abs(np.arange(to.keys)[None] - np.arange(to.rows)[:, None]).astype(np.float32)
        return to.around(lambda scores: scores + far + causal)

    graph, fetched, (feeds, expected) = graph_of(tf, form, tmp_path, learning=True)
    lines = compared(graph, fetched, feeds, expected, "tf32")
    assert any("gpu_attention " in line and "up to the query's own" in line for line in lines), lines


def test_what_is_chosen_and_scaled_to_nothing(tf: ModuleType, tmp_path: Path) -> None:
    """A number that is 0 in float32 as soon as it is scaled is still in the place of a score."""

    def form(to: Written) -> Any:
        stays = to.fed(np.arange(to.keys).reshape(1, 1, 1, -1) != 3)
        large, tiny = np.float32(1e20), np.float32(1e-30)
        return to.around(lambda scores: to.tf.where_v2(stays, scores * large, tiny) * np.float32(1e-20))

    graph, fetched, (feeds, expected) = graph_of(tf, form, tmp_path, learning=False)
    assert not any("gpu_attention " in line for line in compared(graph, fetched, feeds, expected, "tf32"))
