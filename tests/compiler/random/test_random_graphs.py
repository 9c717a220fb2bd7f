"""Random graphs with branches, loops, variables and feeds in the middle: every mode gives the same, step by step."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.compiler.modes import check_steps
from tests.compiler.random.random_graphs import Graph, Piece

_PIECES = st.lists(
    st.tuples(st.integers(0, 1000), st.integers(0, 1000), st.integers(0, 1000), st.integers(0, 100_000)),
    min_size=20, max_size=60,
)  # fmt: skip
_CASE = {
    "pieces": _PIECES, "resource": st.booleans(), "fed": st.none() | st.integers(0, 40), "count": st.integers(0, 3),
    "flag": st.booleans(),
}  # fmt: skip
_SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]
#: shrinking graphs takes minutes; take that out where one has failed
_PHASES = [Phase.explicit, Phase.reuse, Phase.generate]


def _check(pieces: list[Piece], **choices: Any) -> None:
    made = Graph(pieces, **choices)
    check_steps(made.graph, _Steps(made), times=3)


class _Steps:
    """Initialises variables in a session that it sees for the first time, then runs a step at each call."""

    def __init__(self, made: Graph):
        self._made = made
        self._seen: Any = None

    def __call__(self, running: Any) -> list[Any]:
        if self._seen is not running:
            self._seen = running
            running.run(self._made.initializers)
        return running.run(list(self._made.fetches), self._made.feeds)


@settings(max_examples=30, deadline=None, suppress_health_check=_SLOW, phases=_PHASES)
@given(**_CASE)
def test_random_graphs(**case: Any) -> None:
    _check(**case)


@pytest.mark.long
@settings(max_examples=1000, deadline=None, suppress_health_check=_SLOW, phases=_PHASES)
@given(**_CASE)
def test_many_random_graphs(**case: Any) -> None:
    _check(**case)
