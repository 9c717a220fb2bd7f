"""Figures of pairs: medians, ratios, quartiles; the order of turns."""

from __future__ import annotations

import statistics
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import tolerance
from tests.bench.measure import NotRun, Row, alternate, compare, run_process

_SECONDS = st.floats(1e-6, 1e3)
_PAIRS = st.lists(st.tuples(_SECONDS, _SECONDS), min_size=1, max_size=20)


def test_sides_take_turns_after_one_uncounted_round() -> None:
    calls: list[str] = []
    figures = {"a": iter([99.0, 1.0, 2.0, 3.0]), "b": iter([99.0, 10.0, 20.0, 30.0])}

    def side(name: str) -> Any:
        def run() -> float:
            calls.append(name)
            return next(figures[name])

        return run

    assert alternate(side("a"), side("b"), 3) == ([1.0, 2.0, 3.0], [10.0, 20.0, 30.0])
    assert calls == ["a", "b"] * 4


def test_the_ratio_is_the_median_of_pairs_not_the_ratio_of_medians() -> None:
    row = compare("w", "p", "ms", ([1.0, 4.0, 9.0], [2.0, 2.0, 3.0]), target=2.0)
    assert (row.ours, row.peer, row.ratio) == (4.0, 2.0, 2.0)
    row = compare("w", "p", "ms", ([1.0, 5.0, 6.0], [1.0, 10.0, 2.0]))
    assert (row.ours, row.peer, row.ratio, row.reached) == (5.0, 2.0, 1.0, None)


@settings(max_examples=50, deadline=None)
@given(_PAIRS)
def test_quartiles_enclose_the_ratio(pairs: list[tuple[float, float]]) -> None:
    mine, theirs = map(list, zip(*pairs, strict=True))
    row = compare("w", "p", "s", (mine, theirs))
    ratios = sorted(a / b for a, b in pairs)
    assert row.low is not None and row.high is not None
    assert row.ratio == pytest.approx(statistics.median(ratios), rel=tolerance.gamma(4, "float64"))
    assert ratios[0] * (1 - 1e-12) <= row.low <= row.ratio * (1 + 1e-12)
    assert row.ratio * (1 - 1e-12) <= row.high <= ratios[-1] * (1 + 1e-12)


@settings(max_examples=30, deadline=None)
@given(_PAIRS)
def test_a_drift_that_both_sides_feel_leaves_the_ratio(pairs: list[tuple[float, float]]) -> None:
    mine, theirs = map(list, zip(*pairs, strict=True))
    slower = [factor + 1 for factor in range(len(pairs))]
    drifted = ([a * s for a, s in zip(mine, slower, strict=True)], [b * s for b, s in zip(theirs, slower, strict=True)])
    # two products and a quotient, then the mean of two, on both sides
    rounded = tolerance.gamma(2 * (3 + 2), "float64")
    assert compare("w", "p", "s", drifted).ratio == pytest.approx(
        compare("w", "p", "s", (mine, theirs)).ratio, rel=rounded
    )


def test_sides_of_different_lengths_are_an_error() -> None:
    with pytest.raises(ValueError, match="zip"):
        compare("w", "p", "s", ([1.0, 2.0], [1.0]))


def test_rows_as_json() -> None:
    assert Row("w", "p", "s", 1.0, 2.0, 0.5, 0.6).as_json()["reached"] is True
    assert Row("w", "p", "s", 1.0, 2.0, 0.5, 0.4).as_json()["reached"] is False
    assert NotRun("w", "openvino", "no bf16").wrong == ""
    assert NotRun("w", "graphmill", "crashed", failed=True).wrong == "crashed"


def test_a_process_that_fails_says_why() -> None:
    with pytest.raises(RuntimeError, match="no such thing"):
        run_process(["sh", "-c", "echo no such thing >&2; exit 4"])
    assert run_process(["sh", "-c", "exit 0"]).wall_s > 0
