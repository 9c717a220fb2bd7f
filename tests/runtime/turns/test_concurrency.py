"""Several threads on one session: every result is that of some order of the steps, one after the other."""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.patience import HUNG
from tests.runtime.oracle import Both, our_graph
from toolkit import client
from toolkit.client.functions.script_ops import py_func
from toolkit.errors import CancelledError
from toolkit.graph.graph import Graph
from toolkit.runtime.session import Session

pytestmark = pytest.mark.tensorflow

#: what a thread may run: fetches that control edges order within the step
OPERATIONS = ("add1", "double", "swap", "read_both", "push", "pop")
Result = tuple[str, Any]


def build(v1: Any) -> None:
    """A ref and a resource variable that only change together, and a queue.

    Each operation is a critical section: it takes the token out of a queue of one, works, and puts it back, ordered
    by control edges. Without that a step could write between another one's reading and writing.
    """
    a = v1.get_variable("a", initializer=np.int64(1), dtype="int64", use_resource=False)
    b = v1.get_variable("b", initializer=np.int64(1), dtype="int64", use_resource=True)
    lock = v1.FIFOQueue(1, ["int32"], [[]], name="lock")
    line = v1.FIFOQueue(100, ["int64"], [[]], name="line")
    v1.group(v1.global_variables_initializer(), name="start")
    lock.enqueue([0], name="unlocked")

    def section(name: str, body: Callable[[], Sequence[Any]]) -> None:
        token = lock.dequeue(name=f"{name}/lock")
        with v1.control_dependencies([token]):
            values = list(body())
        with v1.control_dependencies([v1.identity(value) for value in values]):
            release = lock.enqueue([token], name=f"{name}/unlock")
        with v1.control_dependencies([release]):
            v1.stack([v1.identity(value) for value in values], name=name)

    def fresh() -> tuple[Any, Any]:
        return v1.identity(a.read_value()), b.read_value()

    def then(writes: Sequence[Any]) -> Sequence[Any]:
        with v1.control_dependencies(list(writes)):
            return [v1.identity(a.read_value()), b.read_value()]

    def double() -> Sequence[Any]:
        x, y = fresh()
        with v1.control_dependencies([x, y]):
            return then([v1.assign(a, x * 2), v1.assign(b, y * 2)])

    def swap() -> Sequence[Any]:
        x, y = fresh()
        x, y = x * 3, y + 1  # values of their own: TensorFlow's read of a ref variable shows later writes
        with v1.control_dependencies([x, y]):
            return then([v1.assign(a, y), v1.assign(b, x)])

    section("add1", lambda: then([v1.assign_add(a, 1), v1.assign_add(b, 1)]))
    section("double", double)
    section("swap", swap)
    section("read_both", lambda: then([]))

    def push() -> Sequence[Any]:
        x, y = fresh()
        with v1.control_dependencies([line.enqueue([x])]):
            return [x, v1.identity(y)]

    def pop() -> Sequence[Any]:
        """How many were waiting before all were taken out, and after."""
        count = line.size()
        with v1.control_dependencies([line.dequeue_many(count)]):
            return [v1.cast(count, "int64"), v1.cast(line.size(), "int64")]

    section("push", push)
    section("pop", pop)


def serial(order: Sequence[str]) -> tuple[Counter[Any], tuple[int, int]]:
    """What the operations give one after the other, by the definition of each; and the final state."""
    a = b = 1
    waiting = 0
    results: list[Result] = []
    for name in order:
        match name:
            case "add1":
                a, b = a + 1, b + 1
            case "double":
                a, b = a * 2, b * 2
            case "swap":
                a, b = b + 1, a * 3
            case "push":
                waiting += 1
            case _:
                pass
        value = (waiting, 0) if name == "pop" else (a, b)
        waiting = 0 if name == "pop" else waiting
        results.append((name, value))
    return Counter(results), (a, b)


def interleave(run: Callable[[str], Any], threads: Sequence[Sequence[str]]) -> Counter[Any]:
    """Each thread runs its operations in order, all threads at the same time."""
    results: list[Result] = []
    errors: list[BaseException] = []
    barrier = threading.Barrier(len(threads))

    def work(names: Sequence[str]) -> None:
        try:
            barrier.wait(HUNG)
            for name in names:
                value = run(f"{name}:0")
                results.append((name, tuple(int(v) for v in value)))
        except BaseException as error:
            errors.append(error)

    workers = [threading.Thread(target=work, args=(names,), daemon=True) for names in threads]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(HUNG)
        assert not worker.is_alive(), "a step never ended"
    assert not errors, errors
    return Counter(results)


def orders(threads: Sequence[Sequence[str]]) -> set[tuple[str, ...]]:
    """All ways to merge the threads' operations, each thread's in its own order."""
    owners = [number for number, names in enumerate(threads) for _ in names]
    merged: set[tuple[str, ...]] = set()
    for chosen in set(itertools.permutations(owners)):
        left = [iter(names) for names in threads]
        merged.add(tuple(next(left[owner]) for owner in chosen))
    return merged


@pytest.fixture(scope="module")
def both(tf: ModuleType) -> Both:
    return Both(tf, build)


_THREADS = st.lists(st.lists(st.sampled_from(OPERATIONS), min_size=1, max_size=2), min_size=2, max_size=3)


@pytest.mark.parametrize("settings_", [{}, {"force_tokens": True}, {"inter_op_threads": 2}, {"devices": {"CPU": 2}}])
@settings(max_examples=12, deadline=None)
@given(threads=_THREADS)
def test_results_are_those_of_some_order(both: Both, settings_: dict[str, Any], threads: list[list[str]]) -> None:
    with Session(both.graph, **settings_) as session:
        session.run("start")
        session.run("unlocked")
        got = interleave(session.run, threads)
        final = tuple(int(v) for v in session.run("read_both:0"))
    wanted = [serial(order) for order in orders(threads)]
    assert (got, final) in wanted


@settings(max_examples=8, deadline=None)
@given(threads=_THREADS)
def test_tensorflow_agrees_on_what_an_order_gives(both: Both, threads: list[list[str]]) -> None:
    """The definition of each operation, which the test above is judged by, is the graph's."""
    order = [name for names in threads for name in names]
    with both.v1.Session(graph=both.tf_graph) as theirs, Session(both.graph) as ours:
        for run in (theirs.run, ours.run):
            run("start")
            run("unlocked")
            results = [(name, tuple(int(v) for v in run(f"{name}:0"))) for name in order]
            assert (Counter(results), tuple(int(v) for v in run("read_both:0"))) == serial(order)


def accumulating(tf: ModuleType) -> Graph:
    v1 = tf.compat.v1
    with tf.Graph().as_default() as graph:
        x = v1.placeholder("int64", [], name="x")
        for name, resource in (("ref", False), ("res", True)):
            total = v1.get_variable(name, initializer=np.int64(0), dtype="int64", use_resource=resource)
            v1.identity(v1.assign_add(total, x, use_locking=True), name=f"{name}_add")
            v1.identity(total, name=f"{name}_now")
        v1.identity(x * x, name="square")
        v1.global_variables_initializer()
    return our_graph(graph)


@settings(max_examples=6, deadline=None)
@given(amounts=st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=12), min_size=2, max_size=4))
def test_no_addition_is_lost_and_reads_never_go_back(tf: ModuleType, amounts: list[list[int]]) -> None:
    """Training, reading and plain inference at once on one session."""
    graph = accumulating(tf)
    with Session(graph) as session:
        session.run("init")
        stop = threading.Event()
        seen: dict[str, list[int]] = {"ref_now:0": [], "res_now:0": []}
        errors: list[BaseException] = []

        def add(values: list[int]) -> None:
            try:
                for value in values:
                    session.run(["ref_add", "res_add"], {"x:0": value})
                    assert session.run("square:0", {"x:0": value}) == value * value
            except BaseException as error:
                errors.append(error)

        def read(name: str) -> None:
            try:
                while not stop.is_set():
                    seen[name].append(int(session.run(name)))
            except BaseException as error:
                errors.append(error)

        adders = [threading.Thread(target=add, args=(values,)) for values in amounts]
        readers = [threading.Thread(target=read, args=(name,)) for name in seen]
        for thread in (*readers, *adders):
            thread.start()
        for thread in adders:
            thread.join(HUNG)
        stop.set()
        for thread in readers:
            thread.join(HUNG)
        assert not errors, errors
        total = sum(map(sum, amounts))
        assert session.run(["ref_now:0", "res_now:0"]) == [total, total]
        for values in seen.values():
            assert values == sorted(values) and all(0 <= value <= total for value in values)


def test_closing_while_others_run(both: Both) -> None:
    """Every thread ends: with a value, or told that the session is closed or its step cancelled."""
    session = Session(both.graph)
    session.run("start")  # without "unlocked": every section waits
    outcomes: list[str] = []

    def work() -> None:
        try:
            session.run("add1:0")
            outcomes.append("value")
        except Exception as error:
            outcomes.append(type(error).__name__)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(6)]
    for thread in threads:
        thread.start()
    session.close()
    for thread in threads:
        thread.join(HUNG)
        assert not thread.is_alive()
    assert len(outcomes) == 6 and set(outcomes) <= {"CancelledError", "UsageError"}


@pytest.mark.parametrize("is_callable", [False, True])
def test_a_step_that_another_thread_closes_is_cancelled(is_callable: bool) -> None:
    """Its variables have no values any more then, which is no mistake of whoever ran it."""
    begun, go = threading.Event(), threading.Event()

    def hold() -> Any:
        begun.set()
        assert go.wait(HUNG)
        return np.float32(1)

    def variable() -> Any:
        return client.ops.variable_v2(shape=[], dtype=client.float32, shared_name="v")

    with client.Graph().as_default() as graph:
        init = client.ops.assign(variable(), client.constant(2.0))
        with client.control_dependencies([py_func(hold, [], client.float32)]):
            y = client.identity(variable())
    session = Session(graph, force_tokens=True)  # which looks for variables when it is their turn
    session.run(init)
    errors: list[BaseException] = []
    step = session.make_callable(y) if is_callable else lambda: session.run(y)

    def work() -> None:
        try:
            step()
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    assert begun.wait(HUNG)
    session.close()
    go.set()
    thread.join(HUNG)
    assert not thread.is_alive()
    assert [type(error) for error in errors] == [CancelledError]
