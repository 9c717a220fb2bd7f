"""Arguments of many shapes: each has its plan as long as there is room, and what was used lately stays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from toolkit import client as gm
from toolkit.runtime.executors import planned
from toolkit.runtime.session import Session


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows each plan that is made is for."""
    build: Callable[..., Any] = planned.build
    rows: list[int] = []

    def noted(program: Any, arguments: Any, *given: Any, **options: Any) -> Any:
        rows.append(len(arguments[0]))
        return build(program, arguments, *given, **options)

    monkeypatch.setattr(planned, "build", noted)
    return rows


@pytest.fixture
def run() -> Iterator[Callable[[int], None]]:
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [None], name="x")
        gm.identity(gm.abs(x) * 2.0, name="out")
    with Session(graph, threads=1) as session:

        def once(rows: int) -> None:
            given = np.linspace(-1, 1, rows, dtype=np.float32)
            np.testing.assert_array_equal(session.run("out:0", {"x:0": given}), 2 * np.abs(given))

        yield once


def test_more_shapes_than_a_few_have_a_plan_each(run: Callable[[int], None], made: list[int]) -> None:
    shapes = range(1, 3 * planned._FEW_PLANS)  # pyright: ignore[reportPrivateUsage]
    for _ in range(2):
        for rows in shapes:
            run(rows)
    assert made == list(shapes)


def test_what_was_not_used_for_longest_goes(
    run: Callable[[int], None], made: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planned, "_FEW_PLANS", 2)
    monkeypatch.setattr(planned, "_MAX_PLANS", 3)
    for rows in (1, 2, 3, 1, 4, 1, 2):
        run(rows)
    assert made == [1, 2, 3, 4, 2]


def test_plans_count_with_what_they_take_besides_arenas(
    run: Callable[[int], None], made: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planned, "_FEW_PLANS", 2)
    monkeypatch.setattr(planned, "_MAX_BYTES", 1 << 20)
    monkeypatch.setattr(planned, "_OPERATION_BYTES", 1 << 18)
    for rows in (1, 2, 1, 2):  # few stay
        run(rows)
    assert made == [1, 2]
    for rows in (3, 4, 5, 6, 1):
        run(rows)
    assert made == [1, 2, 3, 4, 5, 6, 1]
