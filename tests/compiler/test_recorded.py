"""Steps on a GPU as CUDA graphs: when they are recorded, replayed and refused, on the fake driver."""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests import tolerance
from toolkit import client as gm
from toolkit.compiler.backends.cuda.recording.recorded import RecordedFunction
from toolkit.errors import GraphmillError, InvalidArgumentError, ResourceExhaustedError
from toolkit.kernels.cuda.driver import choose
from toolkit.kernels.cuda.driver.fake import FakeContext, FakeDriver
from toolkit.kernels.cuda.libraries.precision import allow_tf32, is_tf32_allowed
from toolkit.kernels.cuda.recording import Recording
from toolkit.runtime.session import Session

pytest.importorskip("llvmlite")
ops = gm.ops
#: whole numbers, so that sums and products of them are exact in any order
X = np.arange(-12, 12, dtype=np.float32).reshape(4, 6)


@pytest.fixture(autouse=True)
def replays(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Recording]]:
    """The recordings that were replayed, in order."""
    done: list[Recording] = []
    replay = Recording.replay

    def noted(self: Recording) -> None:
        done.append(self)
        replay(self)

    monkeypatch.setattr(Recording, "replay", noted)
    with choose.using(FakeDriver()):
        yield done


def _refusals(session: Session) -> list[str]:
    return [note for note in session.notes() if "launch by launch" in note]


def test_a_step_is_recorded_in_its_second_run(replays: list[Recording]) -> None:
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [None, 6])
        y = ops.square(x) * 2.0 + x
    with Session(graph, devices={"GPU": 1}) as session:
        for step in range(4):
            np.testing.assert_array_equal(session.run(y, {x: X + step}), np.square(X + step) * 2 + X + step)
            assert len(replays) == step
        assert len(set(map(id, replays))) == 1
        session.run(y, {x: X[:2]})  # another shape is another plan
        assert len(replays) == 3 and not _refusals(session)


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("wanted", [False, True])
def test_products_are_as_exact_as_each_step_wants_them(wanted: bool, before: bool) -> None:
    """However it is run, traced too; and what this thread runs next is none of its business."""
    seen: list[bool] = []

    def run(*_: Any) -> list[Any]:
        seen.append(is_tf32_allowed())
        return []

    device: Any = SimpleNamespace(is_recording=False)
    function: Any = SimpleNamespace(block=SimpleNamespace(walk=list), run=run, run_marked=run, run_checked=run)
    step: Any = RecordedFunction(function, device, "it is none", tf32=wanted)
    first = allow_tf32(before)
    try:
        for each in (step.run, step.run_marked, step.run_checked):
            each([], None)
            assert is_tf32_allowed() == before
    finally:
        allow_tf32(first)
    assert seen == [wanted] * 3


def test_what_other_processes_leave_of_the_cpu_is_of_no_interest(
    replays: list[Recording], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step that was recorded is replayed however many threads the host has free."""
    from toolkit.compiler.backends.cpu.threads import THREADS

    monkeypatch.setattr(THREADS, "look", lambda: None)
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [4, 6])
        y = ops.square(x)
    with Session(graph, devices={"GPU": 1}) as session:
        for free in (None, 1, None, 1):
            monkeypatch.setattr(THREADS, "free", free)
            np.testing.assert_array_equal(session.run(y, {x: X}), np.square(X))
    assert len(replays) == 3


def test_what_failed_is_recorded_when_it_does_not(replays: list[Recording]) -> None:
    """The step fails by itself, so that its recording says nothing about whether it can be recorded."""
    with gm.Graph().as_default() as graph, graph.device("/device:GPU:0"):
        x, n = gm.placeholder(gm.float32, [4, 6]), gm.placeholder(gm.int32, [])
        check = gm.Assert(n > 1, [n])
        with graph.control_dependencies([check]):
            y = ops.square(x) * 2.0
        rows = gm.reshape(y, [n, -1])
    with Session(graph, devices={"GPU": 1}) as session:
        for _ in range(12):  # more often than there may be recordings
            with pytest.raises(InvalidArgumentError, match="assertion failed"):
                session.run(rows, {x: X, n: 1})
        for _ in range(3):
            np.testing.assert_array_equal(session.run(rows, {x: X, n: 2}), np.square(X).reshape(2, 12) * 2)
        assert replays and not _refusals(session)


def test_results_of_one_step_outlive_the_next() -> None:
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [4, 6])
        y = ops.square(x)
    with Session(graph, devices={"GPU": 1}) as session:
        found = [session.run(y, {x: X * step}) for step in range(4)]
    for step, each in enumerate(found):
        np.testing.assert_array_equal(each, np.square(X * step))


def test_variables_change_in_place(replays: list[Recording]) -> None:
    with gm.Graph().as_default() as graph:
        w = gm.Variable(X, use_resource=True)
        step = gm.train.GradientDescent(0.5).minimize(ops.sum(ops.square(w.value()), [0, 1]))
        start = gm.global_variables_initializer()
    with Session(graph, devices={"GPU": 1}) as session:
        session.run(start)
        before = len(replays)
        for _ in range(3):
            session.run(step)
        np.testing.assert_array_equal(session.run(w.value()), np.zeros_like(X))
        assert len(replays) >= before + 2
        w.load(X, session)  # another array: it is recorded anew
        session.run(step)
        np.testing.assert_array_equal(session.run(w.value()), np.zeros_like(X))


def _drawing(device: str) -> tuple[list[Any], Any]:
    """What is drawn by each op whose generator goes on from step to step, and one of them by itself."""
    with gm.Graph().as_default() as graph, graph.device(device):
        x = gm.constant(np.array([[0.0, 1.0, 2.0]], np.float32))
        uniform = ops.random_uniform([5], gm.float32, seed=3, seed2=4)
        drawn = [
            uniform * 2.0,
            ops.random_uniform([3], gm.float64, seed=3, seed2=5),
            ops.random_standard_normal([6], gm.float32, seed=7, seed2=1),
            ops.truncated_normal([9], gm.float32, seed=7, seed2=2),
            ops.random_uniform_int([4], np.int64(-5), np.int64(1 << 40), seed=1, seed2=1),
            ops.multinomial(x, 8, seed=2, seed2=2),
        ]
    return drawn, uniform


@pytest.mark.parametrize("area", [4 << 10, 48])
def test_random_numbers_go_on_from_replay_to_replay(
    area: int, replays: list[Recording], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The numbers are the CPU's, in each step, and in those of other fetches between them."""
    from toolkit.compiler.backends.cuda.recording import recorded
    from toolkit.kernels.cuda import draws

    for room in (draws, recorded):
        monkeypatch.setattr(room, "AREA", area)
    found: dict[str, list[Any]] = {}
    for device in ("CPU", "GPU"):
        drawn, uniform = _drawing(f"/device:{device}:0")
        found[device] = []
        with Session(uniform.graph, devices={"CPU": 1, device: 1}) as session:
            for step in range(5):
                found[device] += session.run(drawn)
                if step % 2:
                    found[device].append(session.run(uniform))
            assert not _refusals(session)
    assert len(replays) == 4 + 1
    assert len({each.tobytes() for each in found["GPU"]}) == len(found["GPU"])
    for one, other in zip(found["GPU"], found["CPU"], strict=True):
        assert one.dtype == other.dtype
        if one.shape in ((6,), (9,)):  # normals: functions of the same words, see `tests/kernels/gpu/test_random`
            one, other = one.astype(np.float64), other.astype(np.float64)
            tolerance.assert_within(one, other, tolerance.gamma(6, np.dtype(np.float32)) * np.abs(other), "normal")
        else:
            np.testing.assert_array_equal(one, other)


def test_threads_draw_each_number_once() -> None:
    with gm.Graph().as_default() as graph:
        y = ops.random_uniform([3], gm.float32, seed=3) * 2.0
    with Session(graph, devices={"GPU": 1}) as session:
        alone = {session.run(y).tobytes() for _ in range(12)}
    found: list[bytes] = []
    with Session(graph, devices={"GPU": 1}) as session:
        threads = [
            threading.Thread(target=lambda: found.extend(session.run(y).tobytes() for _ in range(4))) for _ in range(3)
        ]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    assert sorted(found) == sorted(alone)


def _of_generators(device: str) -> tuple[list[Any], list[Any], Any]:
    """What is drawn from generators in variables, two of them from one; the states, and what sets them."""
    with gm.Graph().as_default() as graph, graph.device(device):
        states = [gm.Variable(np.array([-1, 0, 7 + k], np.int64), use_resource=True) for k in range(4)]
        philox = np.int64(1)
        first = ops.stateful_uniform(states[0].handle, philox, [4], dtype=gm.float32)
        with graph.control_dependencies([first.op]):
            skipped = ops.rng_skip(states[0].handle, philox, np.int64(3))
        with graph.control_dependencies([skipped]):
            second = ops.stateful_uniform(states[0].handle, philox, [2], dtype=gm.float64)
        drawn = [
            first * 2.0,
            second,
            ops.stateful_uniform_int(states[1].handle, philox, [5], np.int64(-9), np.int64(1 << 40)),
            ops.stateful_uniform_full_int(states[2].handle, philox, [3], dtype=gm.uint64),
            ops.rng_read_and_skip(states[3].handle, np.int32(1), np.uint64(2)) + 1,
        ]
        start = gm.global_variables_initializer()
    return drawn, [each.value() for each in states], start


def test_generators_in_variables_go_on_from_replay_to_replay(replays: list[Recording]) -> None:
    """Their states are the CPU's after each step, and what is assigned to one is where it goes on."""
    found: dict[str, list[Any]] = {}
    for device in ("CPU", "GPU"):
        drawn, states, start = _of_generators(f"/device:{device}:0")
        found[device] = []
        with Session(drawn[0].graph, devices={"CPU": 1, device: 1}) as session:
            for _ in range(2):
                session.run(start)
                before = len(replays)
                for _ in range(4):
                    found[device] += session.run(drawn)
                    found[device] += session.run(states)
                assert device == "CPU" or len(replays) >= before + 3
            # the states' own steps take what lies on the host
            assert not any("rng" in each or "stateful" in each.lower() for each in _refusals(session))
    for one, other in zip(found["GPU"], found["CPU"], strict=True):
        np.testing.assert_array_equal(one, other, strict=True)


def test_what_reads_a_generators_state_itself_is_launched() -> None:
    with gm.Graph().as_default() as graph:
        state = gm.Variable(np.array([0, 0, 7], np.int64), use_resource=True)
        y = ops.stateful_uniform(state.handle, np.int64(1), [4], dtype=gm.float32) * 2.0
        with graph.control_dependencies([y.op]):
            fetched = [y, state.read_value() + 1]
        start = gm.global_variables_initializer()
    with Session(graph, devices={"GPU": 1}) as session:
        session.run(start)
        drawn = [session.run(fetched) for _ in range(4)]
        assert len({tuple(each.tolist()) for each, _ in drawn}) == 4
        assert len({tuple(each.tolist()) for _, each in drawn}) == 4
        assert "draws from a variable that the step itself reads or changes" in _refusals(session)[0]


def test_a_value_on_the_host_is_part_of_a_recording(replays: list[Recording]) -> None:
    with gm.Graph().as_default() as graph:
        x, n = gm.placeholder(gm.float32, [4, 6]), gm.placeholder(gm.int32, [])
        y = ops.cumsum(x, n) * 2.0
    with Session(graph, devices={"GPU": 1}) as session:
        for axis in (0, 0, 1, 1, 0):
            np.testing.assert_array_equal(session.run(y, {x: X, n: axis}), np.cumsum(X, axis) * 2)
    assert replays


@pytest.mark.parametrize("operations", [1, 40])
def test_what_is_assigned_is_copied_where_that_saves_more(operations: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bytes that may be copied grow with the launches that a recording saves."""
    from toolkit.compiler.backends.cuda.recording import recorded

    monkeypatch.setattr(recorded, "_BYTES_A_LAUNCH", X.nbytes // 20)
    with gm.Graph().as_default() as graph:
        w = gm.Variable(X, use_resource=True)
        value: Any = w.value()
        for _ in range(operations):
            value = ops.reverse_v2(value, [1])
        step = w.assign(value * 0.5).op
        start = gm.global_variables_initializer()
    expected = X
    with Session(graph, devices={"GPU": 1}) as session:
        session.run(start)
        for _ in range(3):
            session.run(step)
            for _ in range(operations):
                expected = expected[:, ::-1]
            expected = expected * np.float32(0.5)
        np.testing.assert_array_equal(session.run(w.value()), expected)
        assert bool(_refusals(session)) is (operations == 1)


def _fed_and_fetched() -> tuple[list[Any], list[Any], gm.Operation]:
    """Feeds of several types and shapes, one of them empty; what is fetched of them, a variable's value among that."""
    with gm.Graph().as_default() as graph:
        x, n, flag = gm.placeholder(gm.float32, [4, 6]), gm.placeholder(gm.int64, []), gm.placeholder(gm.bool, [3])
        empty = gm.placeholder(gm.float64, [0, 2])
        w = gm.Variable(np.ones(6, np.float32), use_resource=True)
        more = w.assign_add(ops.sum(x, [0]))
        with graph.control_dependencies([more.op]):
            value = w.read_value()
        fetches = [x * 2.0, ops.sum(x, [0, 1]), n * n, ops.logical_not(flag), ops.concat_v2([empty, empty], 0), value]
        start = gm.global_variables_initializer()
    return [x, n, flag, empty], fetches, start


@pytest.mark.parametrize("section", [4 << 20, 512, 0])
def test_what_is_fed_and_fetched_goes_with_the_graph(
    section: int, replays: list[Recording], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of it, some of it, or nothing: what is large is copied around the replay."""
    from toolkit.kernels.cuda import fixed_copies

    monkeypatch.setattr(fixed_copies, "SECTION", section)
    keys, fetches, start = _fed_and_fetched()
    total, kept = np.ones(6, np.float32), list[Any]()
    with Session(fetches[0].graph, devices={"GPU": 1}) as session:
        session.run(start)
        before = len(replays)
        for step in range(5):
            x = np.asfortranarray(X + step) if step == 3 else X + step
            flag = np.array([True, False, step % 2 == 0])
            found = session.run(fetches, dict(zip(keys, [x, step, flag, np.empty((0, 2))], strict=True)))
            total = total + x.sum(0)
            wanted = [x * 2, x.sum(), step * step, ~flag, np.empty((0, 2)), total]
            for one, other in zip(found, wanted, strict=True):
                np.testing.assert_array_equal(one, other)
                assert one.shape == np.shape(other)
            kept.append((found, wanted))
        assert len(replays) == before + 4 and not _refusals(session)
        for found, wanted in kept:  # they are the caller's own
            for one, other in zip(found, wanted, strict=True):
                np.testing.assert_array_equal(one, other)


def test_a_replay_allocates_nothing() -> None:
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [4, 6])
        y = ops.square(x) * 2.0
    with Session(graph, devices={"GPU": 1}) as session:
        counted: list[Any] = []
        for _ in range(5):
            session.run(y, {x: X})
            (known,) = [each for name, each in session.device_statistics().items() if "GPU" in name]
            counted.append(known)
    assert counted[-1].allocations == counted[2].allocations
    assert (counted[-1].copies_in - counted[2].copies_in, counted[-1].copies_out - counted[2].copies_out) == (2, 2)


def test_a_variable_that_is_only_read_may_have_other_users(replays: list[Recording]) -> None:
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [6])
        w = gm.Variable(X, use_resource=True)
        y, more = w.value() * x, w.assign_add(X).op
        start = gm.global_variables_initializer()
    ones = np.ones(6, np.float32)
    with Session(graph, devices={"GPU": 1}) as session:
        session.run(start)
        session.run(more)  # the array of the constant is not the variable's own
        for step in range(2, 5):
            for _ in range(2):
                np.testing.assert_array_equal(session.run(y, {x: ones}), X * step)
            session.run(more)  # in place: the recording of the other step still fits
        assert len({id(each) for each in replays}) == 2
        w.load(X, session)  # another array: it does not
        np.testing.assert_array_equal(session.run(y, {x: ones}), X)


def test_threads_replay_one_plan_each_with_memory_of_its_own() -> None:
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [4, 6])
        y = ops.square(x) * 2.0
    wrong: list[int] = []
    with Session(graph, devices={"GPU": 1}) as session:

        def work(number: int) -> None:
            for step in range(6):
                value = X * (number + step)
                if not np.array_equal(session.run(y, {x: value}), np.square(value) * 2):
                    wrong.append(number)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    assert not wrong


@pytest.mark.parametrize("threads", [1, 2])
def test_where_memory_is_short_other_steps_give_back_what_they_recorded(threads: int, replays: list[Recording]) -> None:
    """Each shape has a recording with memory of its own, of which there is not enough for all."""
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [None])
        y = ops.sum(ops.reverse_v2(ops.square(x), [0]), [0])
    driver = FakeDriver(memory=12 << 20)
    with choose.using(driver), Session(graph, devices={"GPU": 1}) as session:

        def work(first: int) -> None:
            for size in [*range(first, first + 6), first]:
                value = np.zeros(size, np.float32)
                value[-1] = size - first
                for _ in range(3):
                    assert session.run(y, {x: value}) == (size - first) ** 2

        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(work, [250_000 + 10 * k for k in range(threads)]))
    assert len({id(each) for each in replays}) > 6


@pytest.mark.parametrize("after", range(4))
@pytest.mark.parametrize("call", ["cuStreamSynchronize", "cuMemFree", "cuGraphLaunch"])
def test_what_was_recorded_is_not_used_when_it_could_not_be_given_back(call: str, after: int) -> None:
    with gm.Graph().as_default() as graph:
        w = gm.Variable(X, use_resource=True)
        y = ops.square(w.value()) * 2.0
        start = gm.global_variables_initializer()
    driver = FakeDriver()
    with choose.using(driver), Session(graph, devices={"GPU": 1}) as session:
        session.run(start)
        for step in range(4):
            for _ in range(3):
                np.testing.assert_array_equal(session.run(y), np.square(X + step) * 2)
            w.load(X + step + 1, session)  # it has to be recorded anew
            driver.open(0).faults.arm(call, "CUDA_ERROR_INVALID_VALUE", after=after)
            with contextlib.suppress(GraphmillError):
                np.testing.assert_array_equal(session.run(y), np.square(X + step + 1) * 2)
            driver.open(0).faults.armed.clear()


@pytest.mark.parametrize("call", ["cuStreamBeginCapture", "cuStreamEndCapture"])
def test_a_recording_that_the_driver_does_not_end_is_left_alone(call: str) -> None:
    """Its stream can not be waited for any more, nor need it be."""
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [None, 6])
        y = ops.reverse_v2(ops.square(x), [1])
    driver = FakeDriver()
    with choose.using(driver), Session(graph, devices={"GPU": 1}) as session:
        for rows in range(1, 5):
            driver.open(0).faults.arm(call, "CUDA_ERROR_INVALID_VALUE")
            for _ in range(4):
                with contextlib.suppress(GraphmillError):
                    session.run(y, {x: X[:rows]})
            driver.open(0).faults.armed.clear()
            for _ in range(2):
                np.testing.assert_array_equal(session.run(y, {x: X[:rows]}), np.square(X[:rows, ::-1]))


def test_a_step_for_whose_recording_there_is_no_room_is_launched(monkeypatch: pytest.MonkeyPatch) -> None:
    from toolkit.compiler.backends.cuda.recording import recorded

    def refuse(*_: Any) -> None:
        raise ResourceExhaustedError("there is no room")

    monkeypatch.setattr(recorded, "Fed", refuse)
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [4, 6])
        y = ops.square(x)
    with Session(graph, devices={"GPU": 1}) as session:
        for _ in range(3):
            np.testing.assert_array_equal(session.run(y, {x: X}), np.square(X))
        assert _refusals(session) == ["the step runs launch by launch, not as a CUDA graph: there is no room"]


def test_what_a_failed_step_made_is_in_nobodys_way() -> None:
    """Its error, whose frames have its tensors, is held by what they hold: the collector has to come before the next
    step finds no room, and it does not see sizes."""
    size = 800_000
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [])
        queue = ops.fifo_queue_v2(component_types=[gm.float32], shapes=[[]], capacity=1)
        y = ops.cumsum(ops.fill([size], x), 0)
        with graph.control_dependencies([ops.queue_enqueue_v2(queue, [x]), y.op]):
            (number,) = ops.queue_dequeue_v2(queue, component_types=[gm.float32])
        large = ops.sum(ops.reverse_v2(y * number, [0]), [0])
        small = ops.sum(ops.reverse_v2(ops.fill([size], x), [0]), [0])
    driver = FakeDriver(memory=12 << 20)
    with choose.using(driver), Session(graph, devices={"CPU": 1, "GPU": 1}) as session:
        gc.collect()
        gc.disable()
        try:
            for _ in range(3):
                with pytest.raises(ResourceExhaustedError):
                    session.run(large, {x: 1.0})
                assert session.run(small, {x: 1.0}) == size
        finally:
            gc.enable()


def test_a_replay_that_is_interrupted_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    with gm.Graph().as_default() as graph:
        w = gm.Variable(np.zeros(6, np.float32), use_resource=True)
        x = gm.placeholder(gm.float32, [6])
        more = w.assign_add(x).op
        start = gm.global_variables_initializer()
    value = np.arange(6, dtype=np.float32)
    with Session(graph, devices={"GPU": 1}) as session:
        session.run(start)
        for _ in range(2):
            session.run(more, {x: value})
        with monkeypatch.context() as patch:
            patch.setattr(FakeContext, "synchronize", _interrupt)
            with pytest.raises(KeyboardInterrupt):
                session.run(more, {x: value})
        session.run(more, {x: value * 10})  # it does not write over what the other has not read yet
        np.testing.assert_array_equal(session.run(w.value()), 13 * value)


def _interrupt(*_: Any) -> None:
    raise KeyboardInterrupt


def test_a_replay_that_fails_says_so() -> None:
    driver = FakeDriver()
    with choose.using(driver):
        with gm.Graph().as_default() as graph:
            x = gm.placeholder(gm.float32, [4, 6])
            y = ops.square(x) * 2.0
        with Session(graph, devices={"GPU": 1}) as session:
            for _ in range(3):
                session.run(y, {x: X})
            driver.open(0).faults.arm("cuGraphLaunch", "CUDA_ERROR_INVALID_VALUE")
            with pytest.raises(GraphmillError, match="cuGraphLaunch failed: CUDA_ERROR_INVALID_VALUE"):
                session.run(y, {x: X})
            np.testing.assert_array_equal(session.run(y, {x: X}), np.square(X) * 2)
