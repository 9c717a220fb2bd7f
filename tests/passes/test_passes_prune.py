"""Pruning: reachability, feeds anywhere, functions, colocation; beside TensorFlow's extract_sub_graph."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.passes.edits import small
from tests.passes.graphs import F, from_tensorflow, random_dag, run_in_tensorflow, to_tensorflow, variable
from toolkit.errors import GraphmillError, UsageError
from toolkit.graph.graph import Graph
from toolkit.graph.shape import Shape
from toolkit.passes.base import PassResult, run_pass, run_passes
from toolkit.passes.pruning.prune import Prune, need, reachable_functions

X, Y = np.float32([0.5, -1.0]), np.float32([2.0, 0.25])


@pytest.mark.tensorflow
@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6))
def test_keeps_what_tensorflow_keeps(tf: Any, seed: int) -> None:
    rng = random.Random(seed)
    graph = random_dag(rng)
    targets = [node.name for node in rng.sample(graph.nodes, 2)]
    theirs = tf.compat.v1.graph_util.extract_sub_graph(to_tensorflow(tf, graph), targets)
    ours = run_pass(Prune(targets=tuple(targets)), graph).graph
    assert {n.name for n in ours} == {n.name for n in theirs.node}
    kept = {n.name: list(n.input) for n in theirs.node}
    assert {n.name: n.input_refs() for n in ours} == kept


@pytest.mark.tensorflow
@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6))
def test_same_numbers_with_any_tensors_fed(tf: Any, seed: int) -> None:
    """Feeding the pruned graph's placeholders gives what feeding those tensors gave in the whole graph."""
    rng = random.Random(seed)
    graph = random_dag(rng)
    tensors = [node.output(i).name for node in graph for i in range(node.num_outputs)]
    fetches = rng.sample(tensors, 3)
    fed = sorted({"x:0", "y:0", *rng.sample(tensors, rng.randint(0, 3))})
    values = {name: np.float32([i + 1, -i]) for i, name in enumerate(fed)}
    expected = run_in_tensorflow(tf, graph, fetches, values)
    result = run_pass(Prune(feeds=tuple(fed), fetches=tuple(fetches)), graph)
    renamed = {result.report["feeds"][name]: values[name] for name in result.report["feeds"]}
    wanted = [result.report["fetches"][name] for name in fetches]
    found = run_in_tensorflow(tf, result.graph, wanted, renamed)
    for mine, their in zip(found, expected, strict=True):
        np.testing.assert_array_equal(mine, their)
    assert set(result.report["unused_feeds"]) == set(fed) - set(result.report["feeds"])
    again = run_pass(Prune(tuple(renamed), tuple(wanted)), result.graph)
    assert not again.modified and len(again.graph) == len(result.graph)


def test_fed_node_becomes_a_placeholder_of_its_name() -> None:
    result = run_pass(Prune(("h",), ("pair:0",)), small())
    h = result.graph.node("h")
    assert (h.op, h.attr("dtype"), h.attr("shape")) == ("Placeholder", F, Shape([None, 2]))
    assert result.report["feeds"] == {"h": "h:0"}
    assert [n.name for n in result.graph] == ["x", "h", "pair"]


def test_one_of_several_outputs_is_fed_through_a_new_placeholder() -> None:
    result = run_pass(Prune(("pair:1",), ("y", "pair:1", "y")), small())
    assert result.report["feeds"] == {"pair:1": "pair_1_fed:0"}
    assert result.report["fetches"] == {"y": "y:0", "pair:1": "pair_1_fed:0"}
    assert [o.name for o in result.graph.node("y").inputs] == ["pair:0", "pair_1_fed:0"]


def test_fed_node_that_runs_for_a_control_edge_stays() -> None:
    graph = small()
    graph.node("y").control_inputs.append(graph.node("h"))
    result = run_pass(Prune(("h",), ("y",)), graph)
    assert result.report["feeds"] == {"h": "h_fed:0"}
    assert [n.name for n in result.graph.node("y").control_inputs] == ["h"]
    assert result.graph.node("h").op == "Tanh"


def test_control_edge_from_a_fed_placeholder() -> None:
    graph = small()
    graph.node("y").control_inputs.append(graph.node("x"))
    result = run_pass(Prune(("x", "pair:0", "pair:1"), ("y",)), graph)
    assert {n.name for n in result.graph} == {"x", "y", "pair_fed", "pair_1_fed"}


def test_why_kept() -> None:
    graph = small()
    needed = need(graph, ["pair:1"], ["y"], [])
    assert needed.why_kept(graph.node("x")) == ["x", "pair", "y"]
    assert needed.why_kept(graph.node("unused")) == []


def test_colocation_group_survives_its_first_node() -> None:
    graph = Graph()
    var, _, assign = variable(graph, "v", device="/job:ps")
    del assign
    for name in ("a", "b"):
        graph.add("Identity", name, [var], attrs={"T": F, "_class": ["loc:@v", "loc:@v/Assign"]})
    result = run_pass(Prune(("v",), ("a", "b")), graph).graph
    assert result.node("v").op == "Placeholder"
    assert result.node("a").attr("_class") == [b"loc:@v"]
    assert result.node("b").attr("_class") == [b"loc:@v", b"loc:@a"]


@pytest.mark.tensorflow
def test_functions_that_nothing_calls_go(tf: Any) -> None:
    @tf.function
    def inner(x: Any) -> Any:
        return x * 2.0

    @tf.function
    def outer(x: Any) -> Any:
        return inner(x) + 1.0

    @tf.function
    def other(x: Any) -> Any:
        return x - 1.0

    with tf.Graph().as_default() as made:
        x = tf.compat.v1.placeholder("float32", [], name="x")
        y = tf.identity(outer(x), name="y")
        tf.identity(other(x), name="z")
        del y
    graph = from_tensorflow(made)
    assert len(graph.library) == 3
    result = run_pass(Prune((), ("y",)), graph)
    assert result.report["functions_removed"] == 1 and len(graph.library) == 3
    assert {name.split("_")[3] for name in result.graph.library} == {"inner", "outer"}
    assert reachable_functions(result.graph) == set(result.graph.library)
    assert run_in_tensorflow(tf, result.graph, ["y:0"], {"x:0": 4.0}) == [9.0]
    assert len(run_pass(Prune((), ("y",), keep_functions=True), graph).graph.library) == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (Prune(), "nothing is fetched"),
        (Prune(fetches=("yy",)), "there is no node 'yy'"),
        (Prune(fetches=("y:1",)), "there is no tensor 'y:1'"),
        (Prune(fetches=("^y",)), "not a tensor name"),
        (Prune(("x", "x:0"), ("y",)), "'x:0' is fed twice"),
        (Prune(("q",), ("y",)), "there is no node 'q'"),
        (Prune(targets=("yy",)), "there is no node 'yy'"),
    ],
)
def test_bad_requests(options: Prune, message: str) -> None:
    with pytest.raises(GraphmillError) as caught:
        options.apply(small())
    assert message in str(caught.value)


def test_a_pass_that_breaks_the_graph_is_named() -> None:
    class Breaking:
        name = "breaking"

        def apply(self, graph: Graph) -> Any:
            out = Prune(fetches=("y",)).apply(graph)
            out.graph.node("y").op = "Yy"
            return PassResult(out.graph, True)  # which does not say what has changed

    with pytest.raises(GraphmillError, match="the pass 'breaking', after prune broke the graph"):
        run_passes([Prune(fetches=("y",)), Breaking()], small())
    with pytest.raises(UsageError, match=r"in the pass 'prune', after prune"):
        run_passes([Prune(fetches=("y",)), Prune()], small())


def test_a_long_chain_needs_no_recursion() -> None:
    graph = Graph()
    last = graph.add("Placeholder", "x", attrs={"dtype": F})
    for index in range(50_000):
        last = graph.add("AddV2", f"n{index}", [last, last], attrs={"T": F})
    assert len(Prune(fetches=(last.name,)).apply(graph).graph) == 50_001
