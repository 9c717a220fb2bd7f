"""Switch and Merge made If and While again: TensorFlow runs them, with the numbers of the graph before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.passes.graphs import run_in_tensorflow
from tests.passes.optimize.equivalence import Case
from tests.passes.optimize.oracle import kept, made, unchanged
from tests.passes.optimize.test_optimize_random import _CASE, _SETTINGS  # pyright: ignore[reportPrivateUsage] -- the same graphs
from toolkit.graph.graph import Graph
from toolkit.graph.node import CONTROL_FLOW_OPS
from toolkit.passes.optimize.flow.raise_control_flow import RaiseControlFlow
from toolkit.passes.optimize.notation import parse_passes
from toolkit.passes.optimize.run import optimize
from toolkit.runtime.session import Session

X = np.array([0.5, -2.0, 3.0], np.float32)


def branches(v1: Any, x: Any, k: Any) -> Any:
    inner = lambda: v1.cond(k > 2, lambda: x * 2.0, lambda: v1.ones_like(x))  # noqa: E731 -- a branch
    a, b = v1.cond(k > 1, lambda: (v1.tanh(x), x + 1.0), lambda: (inner(), x))
    return v1.cond(k > 1, lambda: a + b, lambda: a - b)


def loops(v1: Any, x: Any, k: Any) -> Any:
    scale = v1.exp(x * 0.1)

    def inner(j: Any, a: Any) -> Any:
        return j + 1, a * scale + v1.cast(k, "float32")

    def outer(i: Any, a: Any) -> Any:
        turned = v1.while_loop(lambda j, _: j < i, inner, [0, a])[1]
        return i + 1, v1.cond(i > 1, lambda: turned, lambda: a + v1.sqrt(scale))

    return v1.while_loop(lambda i, _: i < k, outer, [0, x])[1]


def in_a_branch(v1: Any, x: Any, k: Any) -> Any:
    turned = lambda: v1.while_loop(lambda i, a: i < k, lambda i, a: (i + 1, a * 0.5 + x), [0, x])[1]  # noqa: E731
    return v1.cond(k > 1, turned, lambda: x)


def growing(v1: Any, x: Any, k: Any) -> Any:
    shapes = [v1.TensorShape([]), v1.TensorShape([None])]
    grown = v1.while_loop(lambda i, a: i < k, lambda i, a: (i + 1, v1.concat([a, x], 0)), [0, x], shapes)[1]
    return v1.reduce_sum(grown) + v1.cast(v1.shape(grown)[0], "float32")


def arrays(v1: Any, x: Any, k: Any) -> Any:
    array = v1.TensorArray("float32", size=k, element_shape=[3])
    made = v1.while_loop(lambda i, a: i < k, lambda i, a: (i + 1, a.write(i, x * v1.cast(i, "float32"))), [0, array])
    return made[1].stack()


MADE: dict[str, Callable[[Any, Any, Any], Any]] = {
    each.__name__: each for each in (branches, loops, in_a_branch, growing, arrays)
}


def program(tf: Any, build: Callable[[Any, Any, Any], Any]) -> Graph:
    def whole(v1: Any) -> None:
        x = v1.placeholder("float32", [3], name="x")
        v1.identity(build(v1, x, v1.placeholder("int32", [], name="k")), name="out")

    return made(tf, whole, functional=False)


def raised(graph: Graph, then: str = "") -> tuple[Graph, dict[str, Any]]:
    done = optimize(
        graph, parse_passes(f"remove_unused,raise_control_flow,{then}"), kept("out", fed=("x", "k")), rounds=1
    )
    return done.graph, next(each.report for each in done.passes if each.name == "raise_control_flow")


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", MADE)
def test_the_same_numbers(tf: Any, name: str) -> None:
    graph = program(tf, MADE[name])
    result, report = raised(graph)
    assert not report["stayed"] and report["loops"] + report["branches"]
    assert not CONTROL_FLOW_OPS & {node.op for node in result}
    for function in result.library:
        assert not CONTROL_FLOW_OPS & {node.op for node in result.library.function(function).node_def}
    again = raised(graph, "lower_control_flow")[0]
    for k in (0, 1, 2, 4):
        feeds = {"x:0": X, "k:0": np.int32(k)}
        want = run_in_tensorflow(tf, graph, ["out:0"], feeds)[0]
        for each in (result, again):
            np.testing.assert_array_equal(run_in_tensorflow(tf, each, ["out:0"], feeds)[0], want)
            with Session(each.copy()) as session:
                np.testing.assert_allclose(session.run("out:0", feeds), want, rtol=2**-20)  # exp and tanh are others


def gradient_of_a_loop(v1: Any, x: Any, k: Any) -> Any:
    y = v1.while_loop(lambda i, a: i < k, lambda i, a: (i + 1, v1.sin(a) * x), [0, x])[1]
    return v1.gradients(y, [x])[0]


def gradient_of_a_branch(v1: Any, x: Any, k: Any) -> Any:
    y = v1.cond(k > 1, lambda: v1.sin(x) * x, lambda: x)
    return v1.gradients(y * y, [x])[0]


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    ("build", "reason"),
    [(gradient_of_a_loop, "stacks of its gradients"), (gradient_of_a_branch, "a gradient perhaps")],
)
def test_gradients_stay(tf: Any, build: Callable[[Any, Any, Any], Any], reason: str) -> None:
    graph = program(tf, build)
    result, report = raised(graph)
    assert any(reason in each for each in report["stayed"].values())
    for k in (0, 1, 3):
        feeds = {"x:0": X, "k:0": np.int32(k)}
        want, found = (run_in_tensorflow(tf, each, ["out:0"], feeds)[0] for each in (graph, result))
        np.testing.assert_allclose(found, want, rtol=2**-20)  # the same operations in another order of sums


@pytest.mark.tensorflow
def test_what_stays(tf: Any) -> None:
    graph = program(tf, branches)
    inner = next(node for node in graph if node.op == "Tanh")
    pass_ = RaiseControlFlow(kept=kept("out", inner.name, fed=("x", "k")))
    stayed = pass_.apply(graph).report["stayed"]
    assert f"'{inner.name}' is asked for by name" in stayed.values()
    unchanged(RaiseControlFlow(loops=False, branches=False, kept=kept("out", fed=("x", "k"))), graph)
    plain = program(tf, lambda v1, x, k: x * v1.cast(k, "float32"))
    unchanged(RaiseControlFlow(kept=kept("out", fed=("x", "k"))), plain)

    def reference(v1: Any, x: Any, k: Any) -> Any:
        v = v1.get_variable("v", [3], use_resource=False, initializer=v1.zeros_initializer())
        return v1.cond(k > 1, lambda: v1.assign(v, x), lambda: v1.identity(v))

    report = raised(program(tf, reference))[1]
    assert list(report["stayed"].values()) == ["a reference to a variable goes through it"]


@settings(max_examples=6, **_SETTINGS)
@given(st.fixed_dictionaries(_CASE))
def test_random_graphs(choices: dict[str, Any]) -> None:
    case = Case(**choices)
    case.check(parse_passes("raise_control_flow"))


@pytest.mark.long
@pytest.mark.tensorflow
@settings(max_examples=60, **_SETTINGS)
@given(st.fixed_dictionaries(_CASE))
def test_many_random_graphs_in_tensorflow(tf: Any, choices: dict[str, Any]) -> None:
    from tests.passes.optimize.test_optimize_random import _in_tensorflow  # pyright: ignore[reportPrivateUsage]

    case = Case(**choices)
    done = case.check(parse_passes("raise_control_flow"))
    wanted, found = (_in_tensorflow(tf, case, graph) for graph in (case.graph, done.graph))
    for name, a, b in zip(case.fetches, found, wanted, strict=True):
        np.testing.assert_array_equal(a, b, err_msg=name)
