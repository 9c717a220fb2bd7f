"""Parts of a step that wait for each other run in one thread, with the results, failures and ends of threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from tests.patience import HUNG, until
from tests.runtime.devices.serialising_worker import SerialisingWorker
from tests.runtime.executors.test_segments import FIRST, SECOND, TASKS, X, by_tokens, tasks
from toolkit import client as gm
from toolkit.errors import CancelledError, DeadlineExceededError, InvalidArgumentError, OpError
from toolkit.runtime.session import Session
from toolkit.runtime.steps import barrier, compiled
from toolkit.runtime.workers import local

ops = gm.ops


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """For each time that parts of a step ran in threads of their own, the names of the parts."""
    found: list[list[str]] = []

    def run_together(parts: Mapping[str, Callable[[], None]], cancel: Callable[[], None]) -> None:
        found.append(list(parts))
        barrier.run_together(parts, cancel)

    for module in (local, compiled):
        monkeypatch.setattr(module, "run_together", run_together)
    return found


def there_and_back(first: str = FIRST, second: str = SECOND) -> Any:
    """x float32[3, 4] to y float32[3, 4], by another device."""
    with gm.Graph().as_default() as graph:
        x = ops.placeholder(np.float32, [3, 4], name="x")
        with gm.device(first):
            a = ops.tanh(x) * 2.0 + 1.0
        with gm.device(second):
            b = ops.check_numerics(ops.sqrt(a * 3.0 - 0.5), message="no root", name="root") * 2.0
        with gm.device(first):
            ops.identity(ops.square(b) - ops.tanh(b) * a, name="y")
    return graph


def towers() -> Any:
    """x float32[3, 4] to y float32[3, 3]: two devices multiply at the same time."""
    with gm.Graph().as_default() as graph:
        x = ops.placeholder(np.float32, [3, 4], name="x")
        with gm.device(FIRST):
            a = ops.tanh(x) * 2.0 + 1.0
        with gm.device(SECOND):
            b = ops.mat_mul(ops.exp(a) * 2.0, a, transpose_b=True)
        with gm.device(FIRST):
            c = ops.mat_mul(ops.sqrt(ops.abs(a)) * 2.0, a, transpose_b=True)
            ops.identity(ops.tanh(b) * c + 1.0, name="y")
    return graph


@pytest.mark.parametrize("is_tasks", [False, True])
def test_who_waits_for_another_has_no_thread(is_tasks: bool, threads: list[list[str]]) -> None:
    graph = there_and_back(*TASKS) if is_tasks else there_and_back()
    devices = tasks() if is_tasks else {"CPU": 2}
    with Session(graph, devices=devices, precision="exact") as session:
        found = [session.run("y:0", {"x:0": np.abs(X)}) for _ in range(3)]
    assert not threads
    wanted = by_tokens(there_and_back(), "y:0", {"x:0": np.abs(X)})
    for each in found:
        np.testing.assert_array_equal(each, wanted)


def test_who_works_beside_another_has_a_thread(threads: list[list[str]]) -> None:
    graph = towers()
    with Session(graph, devices={"CPU": 2}, precision="exact") as session:
        found = [session.run("y:0", {"x:0": X}) for _ in range(2)]
    assert len(threads) == 2
    for each in found:
        np.testing.assert_array_equal(each, by_tokens(graph, "y:0", {"x:0": X}))


def test_a_task_elsewhere_has_a_thread(threads: list[list[str]]) -> None:
    with Session(there_and_back(*TASKS), devices=tasks(), precision="exact", workers=SerialisingWorker) as session:
        found = session.run("y:0", {"x:0": np.abs(X)})
    assert threads
    np.testing.assert_array_equal(found, by_tokens(there_and_back(), "y:0", {"x:0": np.abs(X)}))


@pytest.mark.parametrize("is_tasks", [False, True])
def test_the_node_that_fails_is_told_and_the_session_goes_on(is_tasks: bool, threads: list[list[str]]) -> None:
    graph = there_and_back(*TASKS) if is_tasks else there_and_back()
    devices = tasks() if is_tasks else {"CPU": 2}
    good, bad = np.abs(X), np.full((3, 4), -9, np.float32)
    with Session(graph, devices=devices, precision="exact") as session:
        wanted = session.run("y:0", {"x:0": good})
        told: list[tuple[str | None, str]] = []
        for _ in range(2):
            with pytest.raises(InvalidArgumentError, match="no root") as caught:
                session.run("y:0", {"x:0": bad})
            told.append((caught.value.node, caught.value.message))
            np.testing.assert_array_equal(session.run("y:0", {"x:0": good}), wanted)
    assert not threads
    with pytest.raises(InvalidArgumentError, match="no root") as threaded:
        by_tokens(there_and_back(), "y:0", {"x:0": bad})
    assert threaded.value.node == "root" and told == 2 * [("root", threaded.value.message)]


def waiting(first: str = FIRST, second: str = SECOND) -> Any:
    """A step on two devices that waits for a queue between its transfers: y, and "put", which puts 1 there."""
    with gm.Graph().as_default() as graph:
        with gm.device(first):
            handle = ops.fifo_queue_v2(component_types=[np.float32], shapes=[[]], capacity=9)
            ops.queue_enqueue_v2(handle, [np.float32(1)], name="put")
            taken = ops.queue_dequeue_v2(handle, component_types=[np.float32])[0]
            a = ops.tanh(taken) * 2.0 + 1.0
        with gm.device(second):
            b = ops.sqrt(ops.abs(a * 3.0 - 0.5))
        with gm.device(first):
            ops.identity(ops.square(b) - ops.tanh(b) * a, name="y")
    return graph


@pytest.mark.parametrize("is_tasks", [False, True])
def test_deadlines_and_the_end_of_the_session_end_a_step_that_waits(is_tasks: bool, threads: list[list[str]]) -> None:
    graph = waiting(*TASKS) if is_tasks else waiting()
    session = Session(graph, devices=tasks() if is_tasks else {"CPU": 2}, precision="exact")
    session.run("put")
    threads.clear()  # what has no transfers at all has nothing to do with this
    wanted = session.run("y:0")
    with pytest.raises(DeadlineExceededError):
        session.run("y:0", timeout_ms=50)
    session.run("put")
    np.testing.assert_array_equal(session.run("y:0"), wanted)
    failed: list[BaseException] = []

    def run() -> None:
        try:
            session.run("y:0")
        except OpError as error:
            failed.append(error)

    runner = threading.Thread(target=run, daemon=True)
    runner.start()
    session.close()
    runner.join(HUNG)
    assert len(failed) == 1 and isinstance(failed[0], CancelledError)
    assert all(len(parts) < 2 for parts in threads)


def test_many_callers_get_their_own_results(threads: list[list[str]]) -> None:
    graph = there_and_back()
    feeds = [{"x:0": np.abs(X) + np.float32(number)} for number in range(4)]
    found: list[list[Any]] = [[] for _ in feeds]
    with Session(graph, devices={"CPU": 2}, precision="exact") as session:

        def call(number: int) -> None:
            for _ in range(20):
                found[number].append(session.run("y:0", feeds[number]))

        callers = [threading.Thread(target=call, args=(number,), daemon=True) for number in range(len(feeds))]
        for caller in callers:
            caller.start()
        until(lambda: all(len(each) == 20 for each in found), "the callers")
    assert not threads
    for given, values in zip(feeds, found, strict=True):
        wanted = by_tokens(graph, "y:0", given)
        for value in values:
            np.testing.assert_array_equal(value, wanted)


def test_what_follows_from_constants_is_not_work_beside_others(threads: list[list[str]]) -> None:
    with gm.Graph().as_default() as graph:
        x = ops.placeholder(np.float32, [3, 4], name="x")
        with gm.device(FIRST):
            a = ops.tanh(x) * 2.0 + 1.0
        with gm.device(SECOND):
            scale = ops.sqrt(ops.exp(np.full(4, 0.5, np.float32)) + 1.0) * 3.0
            ops.identity(ops.square(a) * scale + ops.tanh(a), name="y")
    with Session(graph, devices={"CPU": 2}, precision="exact") as session:
        found = [session.run("y:0", {"x:0": X}) for _ in range(2)]
    assert not threads
    for each in found:
        np.testing.assert_array_equal(each, by_tokens(graph, "y:0", {"x:0": X}))


def test_what_a_loop_sums_up_is_behind_its_iterations(threads: list[list[str]]) -> None:
    with gm.Graph().as_default() as graph:
        x = ops.placeholder(np.float32, [3, 4], name="x")
        with gm.device(FIRST):
            a = ops.tanh(x) * 2.0 + 1.0
        with gm.device(SECOND):

            def body(i: Any, total: Any) -> Any:
                return i + 1, total + ops.mat_mul(a * ops.cast(i, np.float32), a, transpose_b=True)

            total = gm.while_loop(lambda i, _: i < 5, body, [gm.constant(np.int32(0)), np.zeros((3, 3), np.float32)])[1]
        with gm.device(FIRST):
            ops.identity(ops.mat_mul(total, a) * 2.0 + a, name="y")
    with Session(graph, devices={"CPU": 2}, precision="exact") as session:
        found = [session.run("y:0", {"x:0": X}) for _ in range(2)]
    assert not threads
    for each in found:
        np.testing.assert_array_equal(each, by_tokens(graph, "y:0", {"x:0": X}))
