"""Which steps take turns on the processors: those that cannot wait for another step, whatever they do besides."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from tests.patience import HUNG
from toolkit import Session
from toolkit import client as gm
from toolkit.client.functions.script_ops import py_func
from toolkit.client.inputs import queues
from toolkit.compiler.turn import Turn
from toolkit.runtime.executors import planned
from toolkit.runtime.steps import turns
from toolkit.runtime.steps.turns import TURNS


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Turn | None]]:
    """The turns of the plans that are made."""
    found: list[Turn | None] = []
    build: Callable[..., Any] = planned.build

    def noted(*given: Any, **options: Any) -> Any:
        plan = build(*given, **options)
        found.append(plan.turn)
        return plan

    monkeypatch.setattr(planned, "build", noted)
    with gm.Graph().as_default():
        yield found


def variable(*, reference: bool = False) -> Any:
    return gm.get_variable("v", initializer=np.ones((4, 4), np.float32), use_resource=not reference)


def product() -> Any:
    x = gm.constant(np.ones((4, 4), np.float32))
    return gm.matmul(gm.placeholder_with_default(x, [4, 4]), x)


def reading() -> Any:
    return variable() * 2.0


def learning(*, reference: bool) -> Any:
    v = variable(reference=reference)
    return gm.train.Momentum(0.1, 0.9).minimize(gm.reduce_sum(gm.square(v)))


def adding() -> Any:
    return variable().assign_add(np.ones((4, 4), np.float32))


def dropping() -> Any:
    return gm.dropout(product(), 0.5)


def checking() -> Any:
    with gm.control_dependencies([gm.Assert(product()[0, 0] > 0.0, ["no"])]):
        return gm.identity(product())


def looping() -> Any:
    return gm.while_loop(lambda y: gm.reduce_sum(y) > 1.0, lambda y: [y * 0.5], [product()])


def learning_loop() -> Any:
    v = variable()

    def body(i: Any) -> Any:
        with gm.control_dependencies([v.assign_add(np.ones((4, 4), np.float32))]):
            return [i + 1]

    return gm.while_loop(lambda i: i < 3, body, [gm.constant(0)])


def calling() -> Any:
    return py_func(lambda: np.float32(1), [], gm.float32)


def waiting() -> Any:
    queue = queues.FIFOQueue(3, ["float32"], [[]])
    with gm.control_dependencies([queue.enqueue([1.0])]):
        return queue.size()


@pytest.mark.parametrize(
    "make",
    [product, reading, lambda: learning(reference=True), lambda: learning(reference=False), adding, dropping],
    ids=["product", "reading", "learning, references", "learning", "adding", "dropping"],
)
def test_what_computes_draws_and_changes_variables_takes_turns(make: Callable[[], Any], taken: Any) -> None:
    fetched = make()
    with Session() as session:
        session.run(gm.global_variables_initializer())
        taken.clear()
        session.run(fetched)
    assert [turn is not None and not turn.loops for turn in taken] == [True]


def test_a_loop_takes_turns_once_it_has_run_for_a_short_time(taken: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before, and where it takes long, others run beside it."""
    monkeypatch.setattr(turns, "LEAST", 0.0)
    monkeypatch.setattr(turns, "LONGEST", HUNG)
    begun: list[int] = []
    take: Callable[..., None] = TURNS._take  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(TURNS, "_take", lambda *given: (begun.append(given[1]), take(*given)))
    fetched = looping()
    with Session() as session:
        for count in range(3):
            session.run(fetched)
            assert len(begun) == count
        monkeypatch.setattr(turns, "LONGEST", 0.0)
        session.run(fetched)
        assert len(begun) == 2
    assert taken[0].loops and taken[0].seconds is not None


@pytest.mark.parametrize("make", [learning_loop, calling, waiting])
def test_what_may_wait_for_others_takes_none(make: Callable[[], Any], taken: Any) -> None:
    fetched = make()
    with Session() as session:
        session.run(gm.global_variables_initializer())
        taken.clear()
        session.run(fetched)
    assert not any(turn is not None and turn.loops for turn in taken)
    assert None in taken or make is waiting  # whose segments are parts between the waits


def test_learning_in_turns_loses_no_update(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "LEAST", 0.0)
    with gm.Graph().as_default():
        v = gm.get_variable("v", initializer=np.zeros((4, 4), np.float32), use_resource=True)
        step = v.assign_add(np.ones((4, 4), np.float32))
        with Session() as session:
            session.run(gm.global_variables_initializer())
            session.run(step)

            def call() -> None:
                for _ in range(50):
                    session.run(step.op)

            threads = [threading.Thread(target=call) for _ in range(8)]
            for each in threads:
                each.start()
            for each in threads:
                each.join(HUNG)
            assert np.all(session.run(v) == 401)
    assert not TURNS.waiting
