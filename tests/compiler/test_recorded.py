"""Steps on a GPU as CUDA graphs: when they are recorded, replayed and refused, on the fake driver."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from toolkit import client as gm
from toolkit.kernels.cuda.driver import choose
from toolkit.kernels.cuda.driver.fake import FakeDriver
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


def test_what_a_replay_would_repeat_is_launched() -> None:
    with gm.Graph().as_default() as graph:
        y = ops.random_uniform([4], gm.float32, seed=3) * 2.0
    with Session(graph, devices={"GPU": 1}) as session:
        drawn = [session.run(y).tolist() for _ in range(4)]
        assert len({tuple(each) for each in drawn}) == 4
        assert "does something on the host each time" in _refusals(session)[0]


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
    from toolkit.compiler.backends.cuda import recorded

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
