"""Session: fetch structures, feeds, errors, callables, life."""

from __future__ import annotations

import threading
from collections import OrderedDict, namedtuple
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.runtime.oracle import Both, assert_same
from toolkit import client as gm
from toolkit.client.structures.values import IndexedSlicesValue
from toolkit.errors import FailedPreconditionError, GraphError, GraphmillError, InvalidArgumentError, UsageError
from toolkit.graph.node import Output
from toolkit.runtime.session import InteractiveSession, Session
from toolkit.runtime.sessions.graphs import core_graph

pytestmark = pytest.mark.tensorflow
Pair = namedtuple("Pair", "first second")


@pytest.fixture(scope="module")
def both(tf: ModuleType) -> Both:
    def build(v1: Any) -> None:
        x = v1.placeholder("float32", [None, 2], name="x")
        ints = v1.placeholder("int32", [], name="i")
        text = v1.placeholder("string", [None], name="text")
        v1.identity(text, name="text_out")
        v1.add(x, x, name="double")
        v1.split(x, 2, axis=1, name="halves")
        v1.add(ints, 1, name="next")
        v1.constant([1.0, 2.0], name="constant")
        variable = v1.get_variable("v", initializer=[1.0, 2.0], use_resource=False)
        v1.assign_add(variable, [1.0, 1.0], name="bump")
        v1.global_variables_initializer()

    return Both(tf, build)


@pytest.fixture
def session(both: Both) -> Session:
    return Session(both.graph)


X = np.array([[1, 2], [3, 4]], np.float32)


def test_structures_come_back_as_they_went_in(session: Session) -> None:
    got = session.run({"a": ["double:0", ("next:0", "next")], "b": Pair("halves:1", "double:0")}, {"x:0": X, "i:0": 4})
    assert got["a"][1] == (5, None)
    assert isinstance(got["b"], Pair)
    np.testing.assert_array_equal(got["b"].first, X[:, 1:])
    ordered = session.run(OrderedDict(z="next:0", a="next:0"), {"i:0": 0})
    assert list(ordered) == ["z", "a"] and type(ordered) is OrderedDict
    assert session.run([], {}) == []


def test_fetch_by_object_and_by_name(both: Both, session: Session) -> None:
    node = both.graph.node("next")
    assert session.run(Output(node, 0), {Output(both.graph.node("i"), 0): 1}) == 2
    assert session.run(node, {"i": 1}) is None  # an operation runs and gives nothing
    assert session.run("next:0", {"i": 1}) == 2


def test_types_of_results_are_tensorflows(both: Both) -> None:
    got = both.check(["next:0", "constant:0", "text_out:0"], {"i:0": 3, "text:0": [b"a\x00", "b"]})
    assert isinstance(got[0], np.int32)


def test_feeding_the_middle_of_the_graph(both: Both) -> None:
    both.check(["double:0", "halves:0"], {"double:0": X, "x:0": X})
    both.check(["double:0"], {"double:0": X + 1})


@pytest.mark.parametrize(
    ("feeds", "message"),
    [
        ({"x:0": np.zeros((2, 3), np.float32)}, r"shape \[2,3\] for 'x:0', which has shape \[\?,2\]"),
        ({"x:0": [["a", "b"]]}, "cannot feed strings for 'x:0', which is float32"),
        ({"x:0": [[1, 2], [3]]}, "cannot feed .* for 'x:0'"),
        ({"x:0": np.zeros((1, 2), np.complex64)}, "cannot feed complex64 for 'x:0', which is float32"),
        ({"i:0": 1.5}, "not whole"),
        ({"i:0": np.float32(2)}, "cannot feed float32 for 'i:0', which is int32"),
        ({"text:0": [1, 2]}, "expected strings"),
        ({"bump_": 1}, "no node 'bump_'.*did you mean 'bump'"),
        ({3: 1}, "cannot be fetched or fed"),
    ],
)
def test_bad_feeds(session: Session, feeds: dict[Any, Any], message: str) -> None:
    with pytest.raises(GraphmillError, match=message) as caught:
        session.run("double:0", feeds)
    assert caught.value.exit_code == 2 and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("fetch", "message"),
    [
        ("dubble:0", "no node 'dubble'.*did you mean 'double'"),
        ("double:1", "there is no tensor 'double:1': AddV2 'double' has 1 output"),
        (None, "cannot be fetched"),
        (object(), "cannot be fetched"),
    ],
)
def test_bad_fetches(session: Session, fetch: Any, message: str) -> None:
    with pytest.raises((UsageError, GraphError), match=message):
        session.run(fetch)


def test_missing_feed_is_named(session: Session) -> None:
    with pytest.raises(InvalidArgumentError, match=r"placeholder tensor 'x' with dtype float32 and shape \[\?,2\]"):
        session.run("double:0")


def test_elements_of_another_graph(tf: ModuleType, session: Session) -> None:
    other = Both(tf, lambda v1: v1.constant(1.0, name="constant"))
    with pytest.raises(UsageError, match="not an element of this graph"):
        session.run(other.graph.node("constant"))


def test_variables_live_as_long_as_the_session(both: Both) -> None:
    with Session(both.graph) as first, Session(both.graph) as second:
        first.run("init")
        first.run("bump")
        np.testing.assert_array_equal(first.run("v:0"), [2, 3])
        with pytest.raises(FailedPreconditionError, match="Attempting to use uninitialized value v"):
            second.run("v:0")


def test_results_are_the_callers_own(session: Session) -> None:
    """Changing a result changes neither constants nor variables."""
    session.run("init")
    for name in ("constant:0", "v:0"):
        value = session.run(name)
        value += 100
        np.testing.assert_array_equal(session.run(name), [1, 2])
    fed = X.copy()
    got = session.run("x:0", {"x:0": fed})
    got += 1
    np.testing.assert_array_equal(fed, X)


def test_feeds_are_taken_by_value_into_variables(tf: ModuleType) -> None:
    def build(v1: Any) -> None:
        x = v1.placeholder("float32", [2], name="x")
        v1.assign(v1.get_variable("v", shape=[2], use_resource=False), x, name="set")

    session = Session(Both(tf, build).graph)
    fed = np.array([1, 2], np.float32)
    session.run("set", {"x:0": fed})
    fed[:] = 9
    np.testing.assert_array_equal(session.run("v:0"), [1, 2])


def test_callables(both: Both, session: Session) -> None:
    call = session.make_callable(["next:0", "double:0"], ["i:0", "x"])
    after, doubled = call(5, X)
    assert after == 6
    assert_same(doubled, X + X)
    with pytest.raises(UsageError, match="takes 2 value"):
        call(1)
    with both.v1.Session(graph=both.tf_graph) as theirs:
        reference = theirs.make_callable("next:0", feed_list=[both.tf_graph.get_tensor_by_name("i:0")])
        assert reference(1) == session.make_callable("next:0", ["i:0"])(1)


def test_closed_sessions_refuse(both: Both) -> None:
    session = Session(both.graph)
    session.close()
    session.close()
    with pytest.raises(UsageError, match="closed"):
        session.run("constant:0")


def test_default_session_stack(both: Both) -> None:
    from toolkit.client.construction import session_stack

    with Session(both.graph) as outer:
        with Session(both.graph) as inner:
            assert session_stack.get_default_session() is inner
        assert session_stack.get_default_session() is outer
    interactive = InteractiveSession(both.graph)
    assert session_stack.get_default_session() is interactive
    interactive.close()
    assert session_stack.get_default_session() is None


def test_many_threads_share_a_session(session: Session) -> None:
    session.run("init")
    errors: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            for i in range(50):
                assert session.run("next:0", {"i:0": seed * 100 + i}) == seed * 100 + i + 1
                session.run("bump")
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    np.testing.assert_array_equal(session.run("v:0"), [201, 202])


def test_sessions_of_a_target_share_state(both: Both) -> None:
    with Session(both.graph, target="local://shared") as first:
        first.run("init")
        first.run("bump")
    with Session(both.graph, target="local://shared") as second:
        np.testing.assert_array_equal(second.run("v:0"), [2, 3])
        Session.reset("local://shared", ["elsewhere"])
        np.testing.assert_array_equal(second.run("v:0"), [2, 3])
        Session.reset("local://shared")
        with pytest.raises(FailedPreconditionError):
            second.run("v:0")
    with pytest.raises(UsageError, match="not a session target"):
        Session(both.graph, target="nowhere")


def test_any_kind_of_graph_empty_ones_too() -> None:
    """An empty graph is as good as any: it may grow."""
    from toolkit.client.construction.convert import constant
    from toolkit.client.construction.graph import Graph as ClientGraph
    from toolkit.graph.graph import Graph
    from toolkit.graph.metagraph import MetaGraph

    client = ClientGraph()
    session = Session(client)
    with client.as_default():
        two = constant(2.0)
    assert session.run(two) == 2
    for empty in (Graph(), ClientGraph(), MetaGraph(Graph())):
        assert len(core_graph(empty)) == 0
        assert Session(empty).run([]) == []
    others: list[object] = [None, [], {}, "graph.pb"]
    for other in others:
        with pytest.raises(UsageError, match=f"a session needs a graph, not {type(other).__name__}"):
            core_graph(other)


def test_graphs_can_grow_under_a_session(tf: ModuleType) -> None:
    graph = Both(tf, lambda v1: v1.constant(2.0, name="two")).graph
    session = Session(graph, devices={"CPU": 2})
    assert session.run("two:0") == 2
    from toolkit.graph import dtypes

    graph.add("Neg", "minus", [graph.node("two")], attrs={"T": dtypes.float32})
    assert session.run("minus:0") == -2


@pytest.mark.parametrize("resource", [False, True])
def test_variables_are_fetched_by_themselves(resource: bool) -> None:
    """Alone, in structures and under any other object that has the same attributes, which is none."""
    with gm.Graph().as_default() as graph:
        v = gm.Variable(np.ones(3, np.float32), name="v", use_resource=resource)
        bump = v.assign_add(np.ones(3, np.float32))
        start = gm.global_variables_initializer()
    with Session(graph) as session:
        session.run(start)
        np.testing.assert_array_equal(session.run(v), [1, 1, 1])
        session.run(bump)
        assert session.run({"v": [v]})["v"][0].tolist() == [2, 2, 2]
        np.testing.assert_array_equal(session.run(v, {v: np.zeros(3, np.float32)}), np.zeros(3))
        with pytest.raises(UsageError, match="cannot be fetched or fed"):
            session.run(SimpleNamespace(output=v.snapshot.output, node=v.snapshot.op.node))
        with pytest.raises(UsageError, match="is a graph element; feed an array"):
            session.run(v, {v: v})


def test_slices_are_fetched_part_by_part() -> None:
    with gm.Graph().as_default() as graph:
        x = gm.placeholder(gm.float32, [2], name="x")
        slices = gm.IndexedSlices(x * 2.0, gm.constant([0, 3]), gm.constant([5]))
        bare = gm.IndexedSlices(x * 3.0, gm.constant([0, 3]))
    with Session(graph) as session:
        got = session.run([slices, bare], {x: [1.0, 2.0]})
    assert type(got[0]) is type(got[1]) is IndexedSlicesValue
    assert [part.tolist() for part in got[0]] == [[2, 4], [0, 3], [5]]
    assert got[1].values.tolist() == [3, 6] and got[1].dense_shape is None
