"""Requests that run together: each caller gets its own rows or its own error, in order, in time, or is told why not."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError as FutureCancelledError
from concurrent.futures import Future
from functools import partial
from typing import Any

import numpy as np
import pytest

from tests.forks import child_says
from tests.patience import HUNG, until
from toolkit.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    CancelledError,
    ClosedError,
    DeadlineExceededError,
    InvalidArgumentError,
    ResourceExhaustedError,
    UsageError,
)
from toolkit.graph import dtypes
from toolkit.graph.graph import Graph
from toolkit.graph.shape import Shape
from toolkit.runtime.session import Session
from toolkit.runtime.sessions import coalescing
from toolkit.runtime.sessions.coalescing import Coalescer


def _graph(dims: list[int | None] | None) -> Graph:
    """y = 2 x, checked = x where it is finite, total = the sum of all, text = a string for each."""
    graph = Graph()
    shape = Shape(None) if dims is None else Shape(dims)
    x = graph.add("Placeholder", "x", attrs={"dtype": dtypes.float32, "shape": shape})
    z = graph.add("Placeholder", "z", attrs={"dtype": dtypes.float32, "shape": shape})
    graph.add("AddV2", "y", [x, x], attrs={"T": dtypes.float32})
    graph.add("AddV2", "both", [x, z], attrs={"T": dtypes.float32})
    graph.add("CheckNumerics", "checked", [x], attrs={"T": dtypes.float32, "message": "no number"})
    graph.add("AsString", "text", [x], attrs={"T": dtypes.float32})
    graph.add("AddN", "one", [x], attrs={"T": dtypes.float32, "N": 1})
    graph.add("Shape", "sizes", [x], attrs={"T": dtypes.float32, "out_type": dtypes.int32})
    graph.add("NoOp", "nothing")
    return graph


@pytest.fixture
def session() -> Iterator[Session]:
    with Session(_graph([None, 2])) as made:
        yield made


class Held:
    """A step that is held until it is let go, and the batches that it was given."""

    def __init__(self, step: Callable[..., list[Any]]):
        self.step = step
        self.batches: list[Any] = []
        self.begun = threading.Semaphore(0)
        self.go = threading.Event()

    def __call__(self, *arrays: Any) -> list[Any]:
        self.batches.append([array.copy() for array in arrays])
        self.begun.release()
        assert self.go.wait(HUNG)
        return self.step(*arrays)


def _held(batched: Coalescer) -> Held:
    held = Held(batched._step)  # pyright: ignore[reportPrivateUsage]
    batched._step = held  # pyright: ignore[reportPrivateUsage]
    return held


def _rows(first: float, count: int = 1) -> Any:
    return np.arange(first, first + 2 * count, dtype=np.float32).reshape(count, 2)


def test_what_comes_while_a_step_runs_is_the_next_step(session: Session) -> None:
    batched = session.batched({"twice": "y:0"}, ["x:0"], max_batch=8)
    held = _held(batched)
    first = batched.submit(_rows(0))
    assert held.begun.acquire(timeout=HUNG)
    others = [batched.submit(_rows(10.0 * number, count)) for number, count in ((1, 1), (2, 3), (3, 1))]
    held.go.set()
    for future, x in ((first, _rows(0)), *zip(others, (_rows(10), _rows(20, 3), _rows(30)), strict=True)):
        np.testing.assert_array_equal(future.result(HUNG)["twice"], 2 * x)
    (alone,), (together,) = held.batches
    assert alone.shape == (1, 2) and together.shape == (8, 2)  # five examples, and the last one again and again
    np.testing.assert_array_equal(together, np.concatenate([_rows(10), _rows(20, 3), *[_rows(30)] * 4]))


def test_many_callers_get_their_own(session: Session) -> None:
    batched = session.batched(["y:0", "text:0"], ["x:0"], max_batch=4)
    wrong: list[Any] = []

    def call(number: int) -> None:
        for turn in range(20):
            x = _rows(1000.0 * number + turn, 1 + (number + turn) % 3)
            y, text = batched(x)
            if not np.array_equal(y, 2 * x) or text.shape != x.shape or float(text[0, 0]) != x[0, 0]:
                wrong.append((number, turn))

    threads = [threading.Thread(target=call, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_batch_has_at_most_so_many_and_a_larger_request_is_alone(session: Session) -> None:
    batched = session.batched("y:0", ["x:0"], max_batch=3)
    held = _held(batched)
    futures = [batched.submit(_rows(0))]
    assert held.begun.acquire(timeout=HUNG)
    futures += [batched.submit(_rows(0, count)) for count in (2, 2, 1, 5)]
    held.go.set()
    assert [future.result(HUNG).shape[0] for future in futures] == [1, 2, 2, 1, 5]
    # the third is passed by the fourth, which still fits; three is the most, so nothing is added up to four
    assert [len(x) for (x,) in held.batches] == [1, 3, 2, 5]


def test_an_error_is_only_theirs_whose_examples_have_it(session: Session) -> None:
    batched = session.batched("checked:0", ["x:0"])
    held = _held(batched)
    futures = [batched.submit(_rows(0))]
    assert held.begun.acquire(timeout=HUNG)
    bad = np.array([[1, np.nan]], np.float32)
    futures += [batched.submit(x) for x in (_rows(1), bad, _rows(2))]
    held.go.set()
    for number in (0, 1, 3):
        assert futures[number].result(HUNG).shape == (1, 2)
    with pytest.raises(InvalidArgumentError, match="no number"):
        futures[2].result(HUNG)


def test_different_shapes_are_different_steps() -> None:
    with Session(_graph(None)) as session:
        batched = session.batched("y:0", ["x:0"])
        held = _held(batched)
        futures = [batched.submit(np.zeros((1, 2), np.float32))]
        assert held.begun.acquire(timeout=HUNG)
        shapes = [(1, 2), (1, 3), (2, 2), (2, 3)]
        futures += [batched.submit(np.ones(shape, np.float32)) for shape in shapes]
        held.go.set()
        assert [future.result(HUNG).shape for future in futures[1:]] == shapes
        assert [x.shape for (x,) in held.batches] == [(1, 2), (4, 2), (4, 3)]


def test_who_waits_too_long_goes_and_nobody_else_notices(session: Session) -> None:
    batched = session.batched("y:0", ["x:0"])
    held = _held(batched)
    first = batched.submit(_rows(0))
    assert held.begun.acquire(timeout=HUNG)
    with pytest.raises(DeadlineExceededError, match="longer than 1 ms"):
        batched(_rows(1), timeout_ms=1)
    other = batched.submit(_rows(2))
    held.go.set()
    np.testing.assert_array_equal(first.result(HUNG), 2 * _rows(0))
    np.testing.assert_array_equal(other.result(HUNG), 2 * _rows(2))
    assert [len(x) for (x,) in held.batches] == [1, 1]  # what was given up is not computed
    np.testing.assert_array_equal(batched(_rows(3), timeout_ms=int(1000 * HUNG)), 2 * _rows(3))


def test_a_request_is_taken_back(session: Session) -> None:
    batched = session.batched("y:0", ["x:0"])
    held = _held(batched)
    running = batched.submit(_rows(0))
    assert held.begun.acquire(timeout=HUNG)
    waiting, other = batched.submit(_rows(1)), batched.submit(_rows(2))
    assert waiting.cancel() and running.cancel()
    held.go.set()
    np.testing.assert_array_equal(other.result(HUNG), 2 * _rows(2))
    for future in (waiting, running):
        with pytest.raises(FutureCancelledError):
            future.result(HUNG)
    assert len(held.batches) == 2


def _ends_with(future: Future[Any], error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        future.result(HUNG)


@pytest.mark.parametrize("whole", [False, True])
def test_what_has_not_begun_ends_when_it_is_closed(whole: bool) -> None:
    session = Session(_graph([None, 2]))
    batched = session.batched("y:0", ["x:0"])
    held = _held(batched)
    running = batched.submit(_rows(0))
    assert held.begun.acquire(timeout=HUNG)
    waiting = batched.submit(_rows(1))
    (session if whole else batched).close()
    _ends_with(waiting, CancelledError, "closed")
    held.go.set()
    if whole:
        _ends_with(running, ClosedError, "the session is closed")
    else:
        np.testing.assert_array_equal(running.result(HUNG), 2 * _rows(0))
    with pytest.raises(ClosedError):
        batched(_rows(2))
    batched.close()
    session.close()


def test_a_result_without_a_row_for_each_is_refused(session: Session) -> None:
    batched = session.batched("sizes:0", ["x:0"])
    with pytest.raises(InvalidArgumentError, match=r"'sizes:0' has the shape \[2\] for 4 examples, no row for each"):
        batched(_rows(0, 4))
    assert batched.submit(_rows(0)).exception(HUNG) is not None


@pytest.mark.parametrize(
    ("values", "match"),
    [
        ([np.float32(1), _rows(0)], r"'x:0' is fed a value of shape|cannot feed a value of shape"),
        ([np.zeros((0, 2), np.float32), _rows(0)], "no examples along a first axis"),
        ([_rows(0, 2), _rows(0, 3)], "not 2 for 'x:0', 3 for 'z:0'"),
        ([_rows(0)], "takes 2 value"),
        ([_rows(0), [["a", "b"]]], "cannot feed strings for 'z:0'"),
        ([_rows(0), np.zeros((1, 3), np.float32)], "cannot feed a value of shape"),
    ],
)
def test_a_wrong_request_is_told_to_its_caller_alone(session: Session, values: list[Any], match: str) -> None:
    batched = session.batched("both:0", ["x:0", "z:0"])
    with pytest.raises(UsageError, match=match):
        batched(*values)
    np.testing.assert_array_equal(batched(_rows(0, 2), _rows(5, 2)), _rows(0, 2) + _rows(5, 2))


def test_graphs_whose_requests_cannot_be_put_together_are_refused(session: Session) -> None:
    with pytest.raises(ArgumentTypeError, match="'nothing' is an operation"):
        session.batched(["y:0", "nothing"], ["x:0"])
    with pytest.raises(UsageError, match="something to feed and something to fetch"):
        session.batched("y:0", [])
    with pytest.raises(ArgumentValueError, match="a batch cannot have 0 examples"):
        session.batched("y:0", ["x:0"], max_batch=0)
    with pytest.raises(ArgumentValueError, match="cannot wait -1 ms"):
        session.batched("y:0", ["x:0"], wait_ms=-1)
    for dims, said in (([1, 2], "has 1 as its first size"), ([], "has no axes")):
        with Session(_graph(dims)) as fixed, pytest.raises(ArgumentValueError, match=f"'x:0' {said}"):
            fixed.batched("y:0", ["x:0"])


def test_company_is_waited_for_when_asked_for(session: Session) -> None:
    batched = session.batched("y:0", ["x:0"], max_batch=2, wait_ms=1000 * HUNG)
    held = _held(batched)
    held.go.set()
    first = batched.submit(_rows(0))
    assert not first.done()
    second = batched.submit(_rows(1))  # now they are as many as there may be
    assert first.result(HUNG).shape == second.result(HUNG).shape == (1, 2)
    assert [len(x) for (x,) in held.batches] == [2]
    third = batched.submit(_rows(2))
    batched.close()
    _ends_with(third, CancelledError, "closed")


def test_who_is_hurried_waits_no_longer(session: Session) -> None:
    batched = session.batched("y:0", ["x:0"], max_batch=4, wait_ms=1000 * HUNG)
    batched.hurry()  # there is nobody
    held = _held(batched)
    held.go.set()
    alone = [batched.submit(_rows(number)) for number in range(3)]
    batched.hurry()
    for number, future in enumerate(alone):
        np.testing.assert_array_equal(future.result(HUNG), 2 * _rows(number))
    assert [len(x) for (x,) in held.batches] == [4]


def test_its_thread_ends_when_nobody_asks(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coalescing, "IDLE", 0.001)
    batched = session.batched("y:0", ["x:0"])
    for number in range(3):
        np.testing.assert_array_equal(batched(_rows(number)), 2 * _rows(number))
        until(partial(_is_idle, batched), "the thread's end")
    gone = weakref.ref(batched)
    del batched

    def is_gone() -> bool:
        gc.collect()
        return gone() is None

    until(is_gone, "what nobody holds")


def _is_idle(batched: Coalescer) -> bool:
    return batched._thread is None  # pyright: ignore[reportPrivateUsage]


def test_a_child_answers_its_own_callers(session: Session) -> None:
    """Forked while a step runs and a request waits: the parent answers these, and the child nobody but its own."""
    batched = session.batched("y:0", ["x:0"])
    held = _held(batched)
    first = batched.submit(_rows(1))
    assert held.begun.acquire(timeout=HUNG)
    second = batched.submit(_rows(2))

    def ask() -> bool:
        held.go.set()  # of the child's memory
        return batched(_rows(3)).tolist() == (2 * _rows(3)).tolist() and len(held.batches) == 2

    assert child_says(ask)
    assert not second.done()
    held.go.set()
    for future, rows in ((first, _rows(1)), (second, _rows(2))):
        assert future.result(HUNG).tolist() == (2 * rows).tolist()


def test_where_no_thread_can_run_steps_the_caller_is_told_so(session: Session) -> None:
    batched = session.batched("y:0", ["x:0"])

    def refused(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threading.Thread, "start", refused)
        with pytest.raises(ResourceExhaustedError, match="need a thread, and there is none: can't start"):
            batched(_rows(1.0))
    np.testing.assert_array_equal(batched(_rows(2.0)), 2 * _rows(2.0))


class Counting:
    """What a request is like, and how often somebody asked."""

    asked = 0

    def __init__(self, kind: Any):
        self.kind = kind

    def __eq__(self, other: object) -> bool:
        Counting.asked += 1
        return isinstance(other, Counting) and self.kind == other.kind

    def __hash__(self) -> int:
        return hash(self.kind)


def test_of_many_that_wait_each_step_looks_at_the_first_alone(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    batched = session.batched("y:0", ["x:0"], max_batch=4)
    held = _held(batched)
    first = batched.submit(_rows(0))
    assert held.begun.acquire(timeout=HUNG)
    others = [batched.submit(_rows(float(number))) for number in range(400)]
    for request in batched._queue:  # pyright: ignore[reportPrivateUsage]
        request.kind = Counting(request.kind)  # type: ignore[assignment]
    monkeypatch.setattr(Counting, "asked", 0)
    held.go.set()
    for number, other in enumerate(others):
        np.testing.assert_array_equal(other.result(HUNG), 2 * _rows(float(number)))
    first.result(HUNG)
    assert Counting.asked <= len(others)
