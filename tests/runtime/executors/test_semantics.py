"""What the runtime does in the corners, with the same script played in TensorFlow: status, message, values."""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests import perturbation
from tests.patience import HUNG
from tests.runtime.oracle import Both, assert_same
from toolkit.errors import BY_CODE, GraphmillError, OpError
from toolkit.runtime.session import Session

pytestmark = pytest.mark.tensorflow
X = np.linspace(-2, 3, 6, dtype=np.float32).reshape(2, 3)
Outcome = tuple[str, Any]


def outcome(tf: ModuleType, call: Callable[[], Any]) -> Outcome:
    """("value", values) or (canonical status, message)."""
    try:
        return "value", call()
    except OpError as error:
        return error.status, error.message
    except tf.errors.OpError as error:
        return BY_CODE[error.error_code].status, error.message
    except (GraphmillError, ValueError, TypeError, RuntimeError) as error:
        return "REFUSED", str(error)


def same(mine: Outcome, reference: Outcome, where: str = "") -> None:
    assert mine[0] == reference[0], f"{where}: {mine}, TensorFlow: {reference}"
    if mine[0] == "value":
        flat = mine[1] if isinstance(mine[1], list) else [mine[1]]
        theirs = reference[1] if isinstance(reference[1], list) else [reference[1]]
        for a, b in zip(flat, theirs, strict=True):
            assert_same(a, b, where)


# -- variables that nobody initialised ----------------------------------------------------------------------


def variables(v1: Any) -> None:
    x = v1.placeholder("float32", [2], name="x")
    for name, resource in (("ref", False), ("res", True)):
        v = v1.get_variable(name, initializer=np.ones(2, np.float32), use_resource=resource)
        v1.identity(v, name=f"{name}_read")
        v1.add(v, x, name=f"{name}_sum")
        v1.group(v1.assign_add(v, x), name=f"{name}_more")
        v1.group(v1.scatter_add(v, [0], [1.0]), name=f"{name}_scatter")
        v1.group(v1.assign(v, x), name=f"{name}_set")
        v1.identity(v.is_initialized() if resource else v1.is_variable_initialized(v), name=f"{name}_is")
        v1.identity(v1.cond(x[0] > 0, lambda v=v: v + 1.0, lambda: x), name=f"{name}_branch")


@pytest.mark.parametrize("fetch", ["read:0", "sum:0", "more", "scatter", "is:0", "branch:0"])
@pytest.mark.parametrize("kind", ["ref", "res"])
@pytest.mark.parametrize("first", [-1.0, 1.0])
def test_uninitialised_variables(tf: ModuleType, kind: str, fetch: str, first: float) -> None:
    both = Both(tf, variables)
    feeds = {"x:0": np.array([first, 2], np.float32)}
    with both.v1.Session(graph=both.tf_graph) as theirs, Session(both.graph) as ours:
        for _ in range(2):  # before, and after the variable was set: the failed step left nothing behind
            mine, reference = (outcome(tf, lambda s=s: s.run(f"{kind}_{fetch}", feeds)) for s in (ours, theirs))
            same(mine, reference, fetch)
            if mine[0] != "value" and kind == "ref":
                assert mine[1] in reference[1]  # TensorFlow adds where
            elif mine[0] != "value":
                assert re.search(r"\bres\b", mine[1])
            for session in (ours, theirs):
                session.run(f"{kind}_set", feeds)


# -- cancellation in the middle of a loop -----------------------------------------------------------------


def endless(v1: Any) -> None:
    v1.identity(v1.while_loop(lambda i: i >= 0, lambda i: i * 1, [v1.constant(0)]), name="out")
    v1.constant(7, name="seven")


@pytest.mark.parametrize("v2", [False, True], ids=["switch", "functional"])
@pytest.mark.parametrize("settings_", [{}, {"force_tokens": True}, {"inter_op_threads": 2}], ids=str)
def test_a_timeout_ends_an_endless_loop(tf: ModuleType, v2: bool, settings_: dict[str, Any]) -> None:
    both = Both(tf, endless, control_flow_v2=v2)
    options = both.v1.RunOptions(timeout_in_ms=300)
    with both.v1.Session(graph=both.tf_graph) as theirs:
        reference = outcome(tf, lambda: theirs.run("out:0", options=options))
        assert theirs.run("seven:0") == 7
    with Session(both.graph, **settings_) as ours:
        same(outcome(tf, lambda: ours.run("out:0", timeout_ms=300)), reference)
        assert ours.run("seven:0") == 7
    assert reference[0] == "DEADLINE_EXCEEDED"


@pytest.mark.parametrize("v2", [False, True], ids=["switch", "functional"])
def test_closing_the_session_ends_a_loop(tf: ModuleType, v2: bool) -> None:
    """TensorFlow's close does not return before the loop does, so it is only ours that is closed."""
    session = Session(Both(tf, endless, control_flow_v2=v2).graph)
    ended: list[Outcome] = []
    thread = threading.Thread(target=lambda: ended.append(outcome(tf, lambda: session.run("out:0"))), daemon=True)
    thread.start()
    while not session._cancellation._callbacks and thread.is_alive():
        pass
    session.close()
    thread.join(HUNG)
    assert not thread.is_alive() and ended[0][0] == "CANCELLED"


def test_an_error_in_one_iteration_cancels_the_others(tf: ModuleType) -> None:
    """Parallel iterations wait on a queue while one fails."""

    def build(v1: Any) -> None:
        queue = v1.FIFOQueue(1, ["int32"], [[]], name="q")
        x = v1.placeholder("int32", [], name="x")

        def body(i: Any, total: Any) -> Any:
            taken = v1.cond(v1.equal(i, x), lambda: v1.reshape([1, 2], [x])[0], lambda: queue.dequeue())
            return i + 1, total + taken

        v1.identity(v1.while_loop(lambda i, t: i < 5, body, [v1.constant(0), v1.constant(0)])[1], name="out")
        v1.constant(7, name="seven")

    both = Both(tf, build)
    with both.v1.Session(graph=both.tf_graph) as theirs, Session(both.graph) as ours:
        mine, reference = (outcome(tf, lambda s=s: s.run("out:0", {"x:0": 3})) for s in (ours, theirs))
        same(mine, reference)
        assert mine[0] == "INVALID_ARGUMENT" and "reshape" in mine[1].lower()
        assert ours.run("seven:0") == theirs.run("seven:0") == 7


# -- loops over two devices --------------------------------------------------------------------------------


@settings(max_examples=15, deadline=None)
@given(
    homes=st.lists(st.integers(0, 1), min_size=4, max_size=4),
    n=st.integers(0, 4),
    m=st.integers(0, 3),
    parallel=st.sampled_from([1, 10]),
)
def test_nested_loops_and_branches_over_two_devices(
    tf: ModuleType, homes: list[int], n: int, m: int, parallel: int
) -> None:
    """A loop in a branch in a loop, its parts on either of two CPUs, in TensorFlow as well."""

    def build(v1: Any) -> None:
        devices = [f"/device:CPU:{home}" for home in homes]
        x = v1.placeholder("float32", [2, 3], name="x")
        counts = v1.placeholder("int32", [2], name="counts")

        def inner(y: Any) -> Any:
            def body(j: Any, z: Any) -> Any:
                with v1.device(devices[0]):
                    z = v1.tanh(z) + x
                with v1.device(devices[1]):
                    return j + 1, z * 0.5

            return v1.while_loop(lambda j, z: j < counts[1], body, [0, y], parallel_iterations=parallel)[1]

        def outer(i: Any, y: Any) -> Any:
            with v1.device(devices[2]):
                y = y + 1.0
            with v1.device(devices[3]):
                return i + 1, v1.cond(v1.equal(i % 2, 0), lambda: inner(y), lambda: y * 0.25)

        out = v1.while_loop(lambda i, y: i < counts[0], outer, [v1.constant(0), x], parallel_iterations=parallel)
        v1.identity(out[1], name="out")

    both = Both(tf, build)
    feeds = {"x:0": X, "counts:0": np.array([n, m], np.int32)}
    with both.v1.Session(graph=both.tf_graph, config=both.v1.ConfigProto(device_count={"CPU": 2})) as theirs:
        wanted = theirs.run("out:0", feeds)
    with (
        Session(both.graph, devices={"CPU": 2}) as ours,
        Session(both.graph, devices={"CPU": 2}, force_tokens=True) as two,
        Session(both.graph, force_tokens=True) as one,
    ):
        perturbation.assert_close(both.graph, ["out:0"], feeds, [ours.run(["out:0"], feeds), [wanted]])
        # the same kernels wherever they run
        np.testing.assert_array_equal(two.run("out:0", feeds), one.run("out:0", feeds))


# -- feeding and fetching anywhere, in steps and bit by bit -------------------------------------------------


def web(v1: Any) -> None:
    """Eight nodes, each of two earlier ones."""
    nodes = [v1.placeholder_with_default(np.float32([i + 1, -i]), [2], name=f"n{i}") for i in range(2)]
    for i in range(2, 10):
        nodes.append(v1.subtract(nodes[i - 1], nodes[(i * 3) % (i - 1)] * 0.5, name=f"n{i}"))


@pytest.fixture(scope="module")
def woven(tf: ModuleType) -> Both:
    return Both(tf, web)


_NODES = st.integers(0, 9)


@settings(max_examples=25, deadline=None)
@given(fed=st.sets(_NODES, max_size=4), fetched=st.lists(_NODES, min_size=1, max_size=4))
def test_feeding_and_fetching_anywhere(woven: Both, fed: set[int], fetched: list[int]) -> None:
    feeds = {f"n{i}:0": np.float32([i * 10, i]) for i in fed}
    woven.check([f"n{i}:0" for i in fetched], feeds)
    woven.check([f"n{i}:0" for i in fetched], feeds, force_tokens=True)


@settings(max_examples=25, deadline=None)
@given(
    fed=st.lists(_NODES, unique=True, max_size=3),
    fetched=st.lists(_NODES, unique=True, min_size=1, max_size=4),
    steps=st.lists(st.tuples(st.sets(_NODES, max_size=2), st.sets(_NODES, max_size=2)), min_size=1, max_size=4),
)
def test_partial_runs(
    tf: ModuleType, woven: Both, fed: list[int], fetched: list[int], steps: list[tuple[set[int], set[int]]]
) -> None:
    """Random pieces, mistakes among them: fed twice, fetched twice, not declared, not computable yet."""
    names = [f"n{i}:0" for i in fetched if i not in fed]  # TensorFlow does not set up what is both
    assume(names)
    with woven.v1.Session(graph=woven.tf_graph) as theirs, Session(woven.graph) as ours:
        handles = [session.partial_run_setup(names, [f"n{i}:0" for i in fed]) for session in (ours, theirs)]
        for give, take in steps:
            if not give and not take:
                continue
            feeds = {f"n{i}:0": np.float32([i * 10, i]) for i in sorted(give)}
            wanted = [f"n{i}:0" for i in sorted(take)]
            mine, reference = (
                outcome(tf, functools.partial(session.partial_run, handle, wanted, feeds))
                for session, handle in zip((ours, theirs), handles, strict=True)
            )
            if "value" in (mine[0], reference[0]):
                same(mine, reference, f"{feeds} {wanted}")
            else:
                break  # both refuse; what a handle is good for after a mistake is not said
