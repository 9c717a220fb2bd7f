"""Random graphs with branches, loops, variables and feeds in the middle: chains of passes keep what they compute."""

from __future__ import annotations

import random
from dataclasses import MISSING
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.compiler.test_random_graphs import _PIECES  # pyright: ignore[reportPrivateUsage] -- the same graphs
from tests.passes.optimize.equivalence import Case
from toolkit.passes.optimize.notation import parameters
from toolkit.passes.optimize.rewriting import Optimization
from toolkit.passes.optimize.table import TABLE, preset

#: passes that keep every bit, and need no parameter
EXACT = [
    name
    for name, row in TABLE.items()
    if row.exact and all(each.default is not MISSING for _, each in parameters(row.load()).values())
]
_CASE = {
    "pieces": _PIECES, "resource": st.booleans(), "fed": st.none() | st.integers(0, 40), "count": st.integers(0, 3),
    "flag": st.booleans(),
}  # fmt: skip
_SETTINGS: dict[str, Any] = {
    "deadline": None, "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
    "phases": [Phase.explicit, Phase.reuse, Phase.generate],
}  # fmt: skip


def _chain(rng: random.Random) -> list[Optimization]:
    return [TABLE[rng.choice(EXACT)].load()() for _ in range(rng.randint(1, 5))]


def _check(seed: int, **choices: Any) -> None:
    rng = random.Random(seed)
    case = Case(**choices)
    case.check(_chain(rng))
    case.check(preset(rng.choice(("size", "training"))))


@settings(max_examples=8, **_SETTINGS)
@given(st.integers(0, 10**6), st.fixed_dictionaries(_CASE))
def test_chains_of_passes_keep_the_outputs(seed: int, choices: dict[str, Any]) -> None:
    _check(seed, **choices)


@pytest.mark.long
@settings(max_examples=2000, **_SETTINGS)
@given(st.integers(0, 10**6), st.fixed_dictionaries(_CASE))
def test_many_chains_of_passes_keep_the_outputs(seed: int, choices: dict[str, Any]) -> None:
    _check(seed, **choices)


@settings(max_examples=4, **_SETTINGS)
@given(st.fixed_dictionaries(_CASE))
def test_what_is_for_inference_keeps_the_outputs_within_rounding(choices: dict[str, Any]) -> None:
    Case(**choices).check(preset("inference"), exact=False)
