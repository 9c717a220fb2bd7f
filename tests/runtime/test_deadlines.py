"""Deadlines: those that come, those that are called off, and how many threads wait for them."""

from __future__ import annotations

import threading
from functools import partial
from types import ModuleType
from typing import Any

import pytest

from schemas import config_pb2
from tests.forks import child_says
from tests.patience import HUNG, until
from toolkit import tensorflow as ours
from toolkit.errors import DeadlineExceededError, ResourceExhaustedError
from toolkit.runtime.steps import deadlines
from toolkit.runtime.steps.deadlines import DEADLINES, Deadlines

#: milliseconds of a step that nobody lives to see the end of
_LATER = int(1000 * HUNG)


def _wait(held: threading.Event) -> None:
    held.wait(HUNG)


def test_what_comes_first_is_first_and_what_is_called_off_does_not_come() -> None:
    made = Deadlines()
    come: list[int] = []
    both = threading.Semaphore(0)

    def note(number: int) -> None:
        come.append(number)
        both.release()

    made.after(HUNG, lambda: note(3))
    made.after(0.05, lambda: note(0)).call_off()
    second = threading.Event()

    def first() -> None:
        note(1)
        second.set()

    def last() -> None:
        second.wait(HUNG)
        note(2)

    made.after(0.1, last)
    made.after(0.05, first)
    assert both.acquire(timeout=HUNG) and both.acquire(timeout=HUNG)
    assert come == [1, 2]


def test_one_that_takes_long_does_not_hold_up_the_next() -> None:
    made, held, second = Deadlines(), threading.Event(), threading.Event()
    made.after(0.0, partial(_wait, held))
    made.after(0.0, second.set)
    assert second.wait(HUNG)
    held.set()


def test_those_that_were_called_off_do_not_pile_up() -> None:
    made = Deadlines()
    kept = made.after(HUNG, lambda: None)
    for _ in range(10_000):
        made.after(HUNG, lambda: None).call_off()
    heap = made._heap  # pyright: ignore[reportPrivateUsage]
    assert kept in heap
    assert len(heap) <= deadlines._FEW  # pyright: ignore[reportPrivateUsage]


def test_its_thread_ends_when_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadlines, "IDLE", 0.0)
    made = Deadlines()
    for _ in range(2):
        come = threading.Event()
        made.after(0.0, come.set)
        assert come.wait(HUNG)
        until(lambda: made._thread is None, "the end of the thread")  # pyright: ignore[reportPrivateUsage]


def _without_threads(patch: pytest.MonkeyPatch, name: str) -> None:
    """Have the system refuse threads of this name."""
    start = threading.Thread.start

    def refused(thread: threading.Thread) -> None:
        if thread.name == name:
            raise RuntimeError("can't start new thread")
        start(thread)

    patch.setattr(threading.Thread, "start", refused)


def test_where_no_thread_can_wait_the_step_is_told_so_and_the_next_tries_again() -> None:
    made, come, never = Deadlines(), threading.Event(), threading.Event()
    with pytest.MonkeyPatch.context() as patch:
        _without_threads(patch, "graphmill deadlines")
        for _ in range(2):
            with pytest.raises(ResourceExhaustedError, match="needs a thread, and there is none: can't start"):
                made.after(0.0, never.set)
    made.after(0.0, come.set)
    assert come.wait(HUNG)
    assert not never.is_set()


def test_what_has_no_thread_of_its_own_happens_in_that_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """And what it raises ends nothing but itself."""
    made, come = Deadlines(), threading.Event()
    told: list[str] = []
    _without_threads(monkeypatch, "graphmill late")

    def tell(args: threading.ExceptHookArgs) -> None:
        told.append(str(args.exc_value))

    monkeypatch.setattr(threading, "excepthook", tell)

    def wrong() -> None:
        raise ValueError("what is late")

    made.after(0.0, wrong)
    made.after(0.0, come.set)
    assert come.wait(HUNG)
    assert told == ["what is late"]


def test_a_step_with_a_deadline_starts_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []
    start, mine = threading.Thread.start, threading.current_thread()

    def noted(thread: threading.Thread) -> None:
        if threading.current_thread() is mine:  # what other tests have left may start some
            started.append(thread.name)
        start(thread)

    with ours.Graph().as_default(), ours.Session() as session:
        y = ours.tanh(ours.placeholder(ours.float32, [None], "x"))
        options = config_pb2.RunOptions(timeout_in_ms=_LATER)
        session.run(y, {"x:0": [1.0]}, options)
        kept = DEADLINES.after(HUNG, lambda: None)  # so its thread is there, however long the loop takes
        monkeypatch.setattr(threading.Thread, "start", noted)
        for _ in range(50):
            session.run(y, {"x:0": [1.0]}, options)
    kept.call_off()
    assert not started


@pytest.mark.parametrize("timeout", [2**63 - 1, -1, 0])
def test_no_end_is_no_end(tf: ModuleType, timeout: int, capfd: pytest.CaptureFixture[str]) -> None:
    found: list[Any] = []
    for flavor in (ours, tf.compat.v1):
        with flavor.Graph().as_default(), flavor.Session() as session:
            y = flavor.placeholder(flavor.float32, [None], "x") * 2.0
            found.append(session.run(y, {"x:0": [1.0]}, flavor.RunOptions(timeout_in_ms=timeout)).tolist())
    assert found == [[2.0], [2.0]]
    assert "Traceback" not in capfd.readouterr().err


def test_the_steps_own_deadline_is_before_the_sessions(tf: ModuleType) -> None:
    """The session's would end the step, its own does not; and the other way round."""
    for session_ms, step_ms, is_late in ((1, _LATER, False), (_LATER, 50, True)):
        for flavor, error in ((ours, DeadlineExceededError), (tf.compat.v1, tf.errors.DeadlineExceededError)):
            config = flavor.ConfigProto(operation_timeout_in_ms=session_ms)
            with flavor.Graph().as_default(), flavor.Session(config=config) as session:
                queue = flavor.FIFOQueue(1, [flavor.int32])
                put, taken = queue.enqueue(7), queue.dequeue()
                own = flavor.RunOptions(timeout_in_ms=step_ms)
                if is_late:
                    with pytest.raises(error):
                        session.run(taken, options=own)
                    continue
                putting = threading.Timer(0.2, session.run, [put], {"options": own})
                putting.start()
                assert session.run(taken, options=own) == 7
                putting.join()


def test_children_have_deadlines_of_their_own() -> None:
    come = threading.Event()
    DEADLINES.after(0.0, come.set)
    assert come.wait(HUNG)

    def in_child() -> bool:
        late = threading.Event()
        DEADLINES.after(0.0, late.set)
        return late.wait(HUNG)

    assert child_says(in_child)
