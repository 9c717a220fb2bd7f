"""Coordinator and queue runners, against TensorFlow's where it can be asked."""

from __future__ import annotations

import resource
import sys
import threading
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from schemas import meta_graph_pb2
from tests.patience import HUNG, until
from tests.runtime.oracle import Both
from toolkit.errors import CancelledError, ClosedError, GraphError, InvalidArgumentError, OutOfRangeError
from toolkit.formats.models.metagraph import from_proto
from toolkit.runtime.session import Session
from toolkit.runtime.training import coordinator
from toolkit.runtime.training.coordinator import Coordinator, LooperThread
from toolkit.runtime.training.queue_runner import QueueRunner, queue_runners, start_queue_runners


def report(coordinator: Any, error: BaseException) -> None:
    """As from an except block: TensorFlow looks at the exception that is being handled."""
    try:
        raise error
    except BaseException as caught:
        coordinator.request_stop(caught)


def thread(work: Any, *args: Any) -> threading.Thread:
    started = threading.Thread(target=work, args=args, daemon=True)
    started.start()
    return started


# -- coordinator, the same calls on both -----------------------------------------------------------------


@pytest.fixture(params=["ours", "TensorFlow's"])
def make(request: pytest.FixtureRequest) -> Any:
    """A coordinator and the exception that means a clean stop."""
    if request.param == "ours":
        return Coordinator, OutOfRangeError("end"), LooperThread
    import tensorflow as tf

    return tf.train.Coordinator, tf.errors.OutOfRangeError(None, None, "end"), tf.compat.v1.train.LooperThread


@pytest.mark.tensorflow
class TestCoordinator:
    def test_stop_and_clear(self, make: Any) -> None:
        c = make[0]()
        assert not c.should_stop() and not c.wait_for_stop(0.01)
        c.request_stop()
        assert c.should_stop() and c.wait_for_stop(0.01)
        c.clear_stop()
        assert not c.should_stop()

    def test_join_waits(self, make: Any) -> None:
        c = make[0]()
        threads = [thread(c.wait_for_stop) for _ in range(3)]
        thread(lambda: (time.sleep(0.1), c.request_stop()))
        c.join(threads)
        assert not any(t.is_alive() for t in threads) and c.joined

    def test_join_without_a_stop(self, make: Any) -> None:
        """Threads that all end by themselves are joined, and count as stopped."""
        c = make[0]()
        c.register_thread(thread(time.sleep, 0.02))
        c.join([thread(time.sleep, 0.05)])
        assert c.joined

    def test_first_error_is_raised(self, make: Any) -> None:
        c = make[0]()
        report(c, ValueError("first"))
        report(c, KeyError("second"))
        with pytest.raises(ValueError, match="first"):
            c.raise_requested_exception()
        with pytest.raises(ValueError, match="first"):
            c.join([])
        c.clear_stop()
        c.join([])

    def test_clean_stop(self, make: Any) -> None:
        c = make[0]()
        report(c, make[1])
        assert c.should_stop()
        c.join([])

    def test_clean_stop_exceptions_are_a_choice(self, make: Any) -> None:
        c = make[0](clean_stop_exception_types=(KeyError,)) if make[0] is not Coordinator else Coordinator((KeyError,))
        with c.stop_on_exception():
            raise KeyError("fine")
        c.join([])
        c.clear_stop()
        report(c, make[1])
        with pytest.raises(type(make[1])):
            c.join([])

    def test_errors_after_the_end_are_raised_at_once(self, make: Any) -> None:
        c = make[0]()
        c.join([])
        with pytest.raises(ValueError, match="late"):
            report(c, ValueError("late"))

    def test_stop_on_exception(self, make: Any) -> None:
        c = make[0]()

        def work() -> None:
            with c.stop_on_exception():
                raise ValueError("inside")

        with pytest.raises(ValueError, match="inside"):
            c.join([thread(work), thread(c.wait_for_stop)])

    def test_grace_period(self, make: Any) -> None:
        c = make[0]()
        release = threading.Event()
        stubborn = thread(release.wait)
        c.request_stop()
        grace = {"grace_seconds" if make[0] is Coordinator else "stop_grace_period_secs": 0.1}
        with pytest.raises(RuntimeError, match="threads still running: Thread"):
            c.join([stubborn], **grace)
        c.clear_stop()
        c.request_stop()
        c.join([stubborn], ignore_live_threads=True, **grace)
        release.set()

    def test_looper(self, make: Any) -> None:
        c, calls = make[0](), list[int]()

        def work(value: int) -> None:
            calls.append(value)
            if len(calls) == 4:
                c.request_stop()

        make[2].loop(c, 0.001, work, (7,))
        c.join()
        assert calls == [7] * 4
        c.clear_stop()
        make[2].loop(c, None, lambda: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            c.join()


# -- queue runners ---------------------------------------------------------------------------------------


def meta_of(tf: ModuleType, build: Any) -> Any:
    both = Both(tf, build)
    with both.tf_graph.as_default():
        proto = both.v1.train.export_meta_graph(graph=both.tf_graph)
    return from_proto(meta_graph_pb2.MetaGraphDef.FromString(proto.SerializeToString())), both


@pytest.mark.tensorflow
def test_an_input_pipeline(tf: ModuleType) -> None:
    """string_input_producer and batch as TensorFlow's library builds them: every row once per epoch, then the end."""

    def build(v1: Any) -> None:
        rows = v1.train.range_input_producer(10, num_epochs=3, shuffle=False, capacity=4)
        v1.train.batch([rows.dequeue()], 4, num_threads=2, allow_smaller_final_batch=True, name="batch")
        v1.local_variables_initializer()

    meta, _ = meta_of(tf, build)
    assert len(queue_runners(meta)) == 2
    session, coordinator = Session(meta), Coordinator()
    session.run("init")
    threads = start_queue_runners(session, meta, coordinator)
    values: list[int] = []
    with pytest.raises(OutOfRangeError):
        while not coordinator.should_stop():
            values += session.run("batch:0").tolist()
    coordinator.request_stop()
    coordinator.join(threads, grace_seconds=HUNG)
    assert sorted(values) == sorted(list(range(10)) * 3)


@pytest.fixture(scope="module")
def filler(tf: ModuleType) -> tuple[Any, Both]:
    def build(v1: Any) -> None:
        q = v1.FIFOQueue(4, ["float32"], [[1000]], name="q")
        enqueue = q.enqueue([v1.random_uniform([1000])], name="enqueue")
        q.dequeue(name="dequeue")
        q.size(name="size")
        v1.train.add_queue_runner(v1.train.QueueRunner(q, [enqueue] * 2))

    return meta_of(tf, build)


@pytest.mark.tensorflow
def test_stopping_cancels_waiting_enqueues(filler: tuple[Any, Both]) -> None:
    session, coordinator = Session(filler[0]), Coordinator()
    runner = queue_runners(filler[0])[0]
    threads = runner.create_threads(session, coordinator, daemon=True, start=True)
    assert len(threads) == 3
    assert runner.create_threads(session, coordinator) == []  # they run already
    until(lambda: session.run("size:0") == 4, "a full queue")
    coordinator.request_stop()
    coordinator.join(threads, grace_seconds=HUNG)
    assert session.run("size:0") == 4
    for _ in range(4):
        session.run("dequeue:0")
    with pytest.raises(OutOfRangeError):
        session.run("dequeue:0")


@pytest.mark.tensorflow
def test_errors_reach_the_coordinator(tf: ModuleType) -> None:
    def build(v1: Any) -> None:
        q = v1.FIFOQueue(4, ["float32"], [[1000]], name="q")
        x = v1.placeholder("float32", [1000], name="never_fed")
        v1.train.add_queue_runner(v1.train.QueueRunner(q, [q.enqueue([x])]))

    meta, _ = meta_of(tf, build)
    session, coordinator = Session(meta), Coordinator()
    runner = queue_runners(meta)[0]
    threads = runner.create_threads(session, coordinator, daemon=True, start=True)
    with pytest.raises(InvalidArgumentError, match="You must feed a value for placeholder tensor 'never_fed'"):
        coordinator.join(threads, grace_seconds=HUNG)
    for each in runner.create_threads(session, daemon=True, start=True):
        each.join(HUNG)
    assert [type(e) for e in runner.exceptions_raised] == [InvalidArgumentError]


@pytest.mark.tensorflow
def test_closing_the_session_ends_the_threads(filler: tuple[Any, Both]) -> None:
    session, coordinator = Session(filler[0]), Coordinator()
    threads = start_queue_runners(session, filler[0], coordinator)
    until(lambda: session.run("size:0") == 4, "a full queue")
    session.close()
    # within the step that waits for a place; or just before it, where the session is found closed
    with pytest.raises((CancelledError, ClosedError)):
        coordinator.join(threads, grace_seconds=HUNG)


@pytest.mark.tensorflow
def test_memory_is_flat_on_an_endless_input(filler: tuple[Any, Both]) -> None:
    """A full queue holds its producers back: 4,000 elements of 4 kB pass, a few are held."""
    session, coordinator = Session(filler[0]), Coordinator()
    threads = start_queue_runners(session, filler[0], coordinator)
    dequeue = session.make_callable("dequeue:0")

    def resident() -> int:
        if sys.platform == "linux":
            return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    for _ in range(500):
        dequeue()
    before = resident()
    for _ in range(4000):
        dequeue()
    grown = resident() - before
    coordinator.request_stop()
    coordinator.join(threads, grace_seconds=HUNG)
    assert grown < 8 << 20, f"{grown >> 20} MiB more"


def test_malformed_runners() -> None:
    from toolkit.graph.graph import Graph
    from toolkit.graph.metagraph import MetaGraph

    for value in (b"\xff\xff", "text"):
        with pytest.raises(GraphError, match="not a QueueRunnerDef"):
            queue_runners(MetaGraph(Graph(), collections={"queue_runners": [value]}))
    with pytest.raises(GraphError, match="has no enqueue operations"):
        QueueRunner("q", [], "close", "cancel")


def test_who_waits_long_says_for_what(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(coordinator, "_SILENT_SECONDS", 0.01)
    release = threading.Event()
    stubborn = threading.Thread(target=release.wait, name="stubborn")
    stubborn.start()
    c = Coordinator()
    c.request_stop()
    with caplog.at_level("WARNING", logger="graphmill"):
        c.join([stubborn], 0.1, ignore_live_threads=True)
    release.set()
    assert "1 of the threads do not end yet (stubborn)" in caplog.text and "0.1 seconds at most" in caplog.text
