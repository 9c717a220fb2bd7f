"""Independent kernels on several threads: same results, same errors, queues per device served in turns."""

from __future__ import annotations

import gc
import threading
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.forks import child_says
from tests.patience import HUNG
from tests.runtime.executors.test_control_flow import _FLOATS, _emit, _programs
from tests.runtime.oracle import Both
from toolkit.errors import InvalidArgumentError, UsageError
from toolkit.graph.node import Node
from toolkit.runtime.executors import tokens
from toolkit.runtime.executors.inter_op import InterOpPool
from toolkit.runtime.session import Session


class Threads:
    """Notes which thread ran which node."""

    def __init__(self) -> None:
        self.of: dict[str, int] = {}

    def ran(
        self, node: Node, device: str, start_ns: int, end_ns: int, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> None:
        self.of[node.name] = threading.get_ident()


@pytest.fixture
def everything_is_heavy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "HEAVY_NS", 0)


def branches(v1: Any) -> None:
    x = v1.placeholder("float32", [None, None], name="x")
    parts = [v1.tanh(v1.matmul(x, x) + float(i), name=f"part{i}") for i in range(6)]
    v1.add_n(parts, name="out")


@pytest.mark.tensorflow
@pytest.mark.usefixtures("everything_is_heavy")
def test_independent_nodes_run_on_several_threads(tf: ModuleType) -> None:
    both = Both(tf, branches)
    x = np.random.default_rng(0).normal(size=(64, 64)).astype(np.float32) / 8
    both.check(["out:0"], {"x:0": x}, inter_op_threads=3)
    session = Session(both.graph, inter_op_threads=3)
    seen = Threads()
    got = session.run("out:0", {"x:0": x}, probe=seen)
    # The products become ready together: all but the last of them are handed over.
    elsewhere = [name for name, ident in seen.of.items() if ident != threading.get_ident()]
    assert len([name for name in elsewhere if name.startswith("MatMul")]) == 5
    np.testing.assert_array_equal(got, Session(both.graph, force_tokens=True).run("out:0", {"x:0": x}))


@pytest.mark.tensorflow
def test_light_nodes_stay_where_they_are(tf: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "HEAVY_NS", 10**12)
    session = Session(Both(tf, branches).graph, inter_op_threads=2)
    seen = Threads()
    session.run("out:0", {"x:0": np.eye(3, dtype=np.float32)}, probe=seen)
    assert set(seen.of.values()) == {threading.get_ident()}


@pytest.mark.tensorflow
@pytest.mark.usefixtures("everything_is_heavy")
def test_a_failing_kernel_ends_the_step_once_and_the_session_goes_on(tf: ModuleType) -> None:
    def build(v1: Any) -> None:
        x = v1.placeholder("float32", None, name="x")
        parts = [v1.reshape(x * float(i), [2, 3], name=f"r{i}") for i in range(4)]
        v1.add_n(parts, name="out")

    session = Session(Both(tf, build).graph, inter_op_threads=2)
    with pytest.raises(InvalidArgumentError, match=r"node 'r\d'"):
        session.run("out:0", {"x:0": np.zeros(5, np.float32)})
    np.testing.assert_array_equal(session.run("out:0", {"x:0": np.ones(6, np.float32)}), np.full((2, 3), 6.0))


@pytest.mark.tensorflow
@pytest.mark.usefixtures("everything_is_heavy")
@settings(max_examples=20, deadline=None)
@given(program=_programs(3), x=_FLOATS, y=_FLOATS, v2=st.booleans(), devices=st.integers(1, 2))
def test_random_programs_give_the_same_on_several_threads(
    tf: ModuleType, program: Any, x: list[float], y: list[float], v2: bool, devices: int
) -> None:
    def build(v1: Any) -> None:
        env = {name: v1.placeholder("float32", [2], name=name) for name in ("x", "y")}
        v1.identity(_emit(v1, program, env), name="out")

    feeds = {"x:0": np.array(x, np.float32), "y:0": np.array(y, np.float32)}
    graph = Both(tf, build, control_flow_v2=v2).graph
    with (
        Session(graph, force_tokens=True) as one,  # the same kernels, in one thread
        Session(graph, inter_op_threads=2, devices={"CPU": devices}) as several,
    ):
        np.testing.assert_array_equal(several.run("out:0", feeds), one.run("out:0", feeds))


def test_devices_are_served_in_turns() -> None:
    """What a device asked for first comes first; another device does not wait for all of it."""
    pool = InterOpPool(1)
    go, done = threading.Event(), threading.Event()
    order: list[str] = []
    waited: list[bool] = []
    pool.submit("a", lambda: waited.append(go.wait(HUNG)))
    for name in ("a1", "a2", "a3"):
        pool.submit("a", lambda name=name: order.append(name))
    for name in ("b1", "b2"):
        pool.submit("b", lambda name=name: order.append(name))
    pool.submit("b", done.set)
    go.set()
    assert done.wait(HUNG)
    pool.close()
    assert order.index("b1") < order.index("a2")
    assert [name for name in order if name[0] == "a"][:2] == ["a1", "a2"]
    assert [name for name in order if name[0] == "b"] == ["b1", "b2"]


def test_threads_end_with_their_pool() -> None:
    pool = InterOpPool(2)
    ran = threading.Event()
    pool.submit("", ran.set)
    assert ran.wait(HUNG)
    mine = list(pool._running)
    assert len(mine) == 2
    del pool
    gc.collect()
    for thread in mine:
        thread.join(HUNG)
        assert not thread.is_alive()
    with pytest.raises(UsageError, match="at least one inter-op thread"):
        InterOpPool(0)


def test_a_child_has_threads_of_its_own() -> None:
    """As a server has whose workers are forked from the process that has loaded the model."""
    pool, closed = InterOpPool(2), InterOpPool(1)
    begun, go = threading.Event(), threading.Event()

    def hold() -> None:
        begun.set()
        assert go.wait(HUNG)

    pool.submit("/a", hold)
    assert begun.wait(HUNG)
    closed.close()

    def ask() -> bool:
        done = threading.Event()
        pool.submit("/a", done.set)
        return done.wait() and not closed._end.alive  # pyright: ignore[reportPrivateUsage]

    try:
        assert child_says(ask)
    finally:
        go.set()
    done = threading.Event()
    pool.submit("/a", done.set)  # the parent's are as they were
    assert done.wait(HUNG)
    pool.close()
