"""Loops whose bodies were inlined: control edges that only say that an iteration runs, and the nodes that hold them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.passes.graphs import from_tensorflow, run_in_tensorflow
from tests.passes.optimize.equivalence import apply
from tests.passes.optimize.oracle import made
from toolkit.graph import dtypes
from toolkit.graph.graph import Graph
from toolkit.graph.metagraph import MetaGraph
from toolkit.graph.node import NEXT_ITERATION_OPS
from toolkit.passes.optimize.flow.lower_control_flow import LowerControlFlow
from toolkit.passes.optimize.kept import kept_by
from toolkit.passes.optimize.removal.remove_control_edges import RemoveControlEdges
from toolkit.passes.optimize.removal.remove_identities import RemoveIdentities
from toolkit.passes.optimize.removal.remove_unused import RemoveUnused
from toolkit.passes.optimize.run import optimize
from toolkit.runtime.session import Session


def _power(tf: Any, x: Any, kept: Any) -> tuple[Any, Any]:
    """x doubled until it is large, and how often; constants in the body, states that are only handed on."""
    body = lambda i, a, k, m: (i + 1, a * 2.0 + k, k, m)  # noqa: E731
    i, a, *_ = tf.while_loop(lambda i, a, k, m: tf.reduce_max(a) < m, body, [0, x, kept, kept * 20.0])
    return i, a


def _nested(tf: Any, x: Any, kept: Any) -> tuple[Any, Any]:
    def outer(i: Any, a: Any, k: Any) -> tuple[Any, ...]:
        _, a, _ = tf.while_loop(lambda j, a, k: j < i, lambda j, a, k: (j + 1, a + k, k), [0, a, k])
        return i + 1, a * 2.0, k

    i, a, _ = tf.while_loop(lambda i, a, k: i < 3, outer, [0, x, kept])
    return i, a


def _lowered(tf: Any, build: Any) -> Graph:
    """As TensorFlow lowers the functions of loops."""
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2 as freeze

    def whole(x: Any, kept: Any) -> tuple[Any, ...]:
        count, y = build(tf, x, kept)
        return tf.identity(count, name="count"), tf.identity(y, name="y")

    specs = tf.TensorSpec([2], tf.float32, name="x"), tf.TensorSpec([], tf.float32, name="kept")
    concrete = tf.function(whole, autograph=False).get_concrete_function(*specs)
    return from_tensorflow(freeze(concrete, lower_control_flow=True).graph)


def _idle(graph: Graph) -> int:
    """Nodes that only hold edges, and iterations that wait for more than their value."""
    waiting = [n for n in graph if n.op in NEXT_ITERATION_OPS and n.control_inputs]
    return len(waiting) + sum(n.op == "NoOp" for n in graph)


@pytest.mark.tensorflow
@pytest.mark.parametrize("build", [_power, _nested])
def test_edges_that_only_say_that_an_iteration_runs_go(tf: Any, build: Any) -> None:
    graph = _lowered(tf, build)
    passes = [RemoveUnused(), RemoveIdentities(), RemoveControlEdges()]
    done = optimize(graph, passes, kept_by(MetaGraph(graph), ["x:0", "kept:0"], ["count:0", "y:0"])).graph
    assert len(done) < len(graph) and _idle(done) < _idle(graph)
    for node in done:
        if node.op == "Const" and node.control_inputs:  # in the frame that it was in, in the branch that it was in
            assert all(source.op != "Switch" for source in node.control_inputs)
    for x, kept in (([1.0, 2.0], 3.0), ([100.0, 2.0], 1.0), ([-1.0, -1.5], 2.5)):
        feeds = {"x:0": np.float32(x), "kept:0": np.float32(kept)}
        wanted = run_in_tensorflow(tf, graph, ["count:0", "y:0"], feeds)
        found = [run_in_tensorflow(tf, done, ["count:0", "y:0"], feeds)]
        for tokens in (False, True):
            with Session(done, force_tokens=tokens) as session:
                found.append(session.run(["count:0", "y:0"], feeds))
        for each in found:
            for got, want in zip(each, wanted, strict=True):
                np.testing.assert_array_equal(got, want)


@pytest.mark.tensorflow
def test_edges_before_writes_stay(tf: Any) -> None:
    def build(v1: Any) -> None:
        x = v1.placeholder(v1.float32, [], name="x")
        total = v1.get_variable("total", initializer=np.float32(0), use_resource=True)

        def body(i: Any, a: Any) -> tuple[Any, ...]:
            with v1.control_dependencies([total.assign_add(a)]):
                return i + 1, a * 2.0

        i, a = v1.while_loop(lambda i, a: i < 3, body, [0, x])
        v1.identity(i, name="count")
        v1.identity(a, name="y")

    graph = apply(LowerControlFlow(), made(tf, build), ["count", "y"], ["x"]).graph
    kept = kept_by(MetaGraph(graph), ["x:0"], ["count:0", "y:0"])
    done = optimize(graph, [RemoveControlEdges()], kept).graph
    before, after = (
        {n.name: sorted(s.name for s in n.control_inputs) for n in each if n.op in NEXT_ITERATION_OPS}
        for each in (graph, done)
    )
    assert before == after


def test_a_node_that_does_nothing_and_waits_for_nothing_is_not_waited_for() -> None:
    graph = Graph()
    empty = graph.add("NoOp", "empty")
    x = graph.add("Placeholder", "x", attrs={"dtype": dtypes.float32})
    y = graph.add("Identity", "y", [x.output()], control_inputs=[empty], attrs={"T": dtypes.float32})
    made_of = apply(RemoveControlEdges(), graph, [y.name], ["x"]).graph
    assert not made_of.node("y").control_inputs
