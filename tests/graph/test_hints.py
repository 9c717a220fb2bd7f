"""Names that are near one that there is not: found among many, and looked for as often as anybody reads them."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any

import pytest

from toolkit.errors import Hints, did_you_mean
from toolkit.graph import dtypes
from toolkit.graph.check import check_nodes
from toolkit.graph.graph import Graph

_MANY = [f"block_{block}/layer_{layer}/kernel" for block in range(100) for layer in range(100)]


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many names each search has compared."""
    counts: list[int] = []
    search = difflib.get_close_matches

    def noted(word: str, known: Sequence[str], n: int = 3, cutoff: float = 0.6) -> list[str]:
        counts.append(len(known))
        return search(word, known, n, cutoff)

    monkeypatch.setattr(difflib, "get_close_matches", noted)
    return counts


@pytest.mark.parametrize(
    "name",
    ["block_42/layer_7/kernl", "blck_42/layer_7/kernel", "block_42/layr_7/kernel", "block_42/layer_7/kernel_"],
)
def test_one_mistake_is_found_among_many_names(name: str, compared: list[int]) -> None:
    assert "'block_42/layer_7/kernel'" in did_you_mean(name, _MANY)
    assert compared[0] < len(_MANY) / 2


def test_few_names_are_all_compared(compared: list[int]) -> None:
    assert "'layer_7/kernel'" in did_you_mean("lyer_7/krenel", ["bias", "layer_7/kernel", "x"])
    assert compared == [3]


def test_of_many_mistakes_the_first_have_hints(compared: list[int]) -> None:
    graph = Graph()
    values: dict[str, Any] = {"dtype": dtypes.float32, "_class": [b"loc:@kernal"]}
    graph.add("Placeholder", "kernel", attrs={"dtype": dtypes.float32})
    for number in range(3 * Hints.MOST):
        graph.add("Placeholder", f"x{number}", attrs=values)
    found = [finding.message for finding in check_nodes(graph) if finding.code == "colocation"]
    assert len(found) == 3 * Hints.MOST
    assert all(("did you mean 'kernel'" in message) == (at < Hints.MOST) for at, message in enumerate(found))
    assert len(compared) == Hints.MOST
