"""Functions and functional control flow: put in place, lowered, hoisted; beside TensorFlow, which made the graphs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from schemas.function_pb2 import FunctionDef
from schemas.graph_pb2 import GraphDef
from tests.passes.optimize.equivalence import assert_same, made_graph, values
from toolkit import client as gm
from toolkit.graph.bodies import FunctionBody, called, to_function
from toolkit.graph.frames import assign_frames
from toolkit.graph.graph import Graph
from toolkit.graph.metagraph import MetaGraph
from toolkit.passes.optimize.flow.functions import editable_body
from toolkit.passes.optimize.kept import kept_by
from toolkit.passes.optimize.notation import parse_passes
from toolkit.passes.optimize.run import Optimized, optimize
from toolkit.runtime.session import Session

ops = gm.ops
X = np.array([0.5, -2.0, 3.0], np.float32)


@pytest.fixture(scope="module")
def graphs(tf: Any) -> dict[str, Graph]:
    """Graphs that TensorFlow makes of functions: calls in calls, branches, loops, variables."""

    def build(function: Any) -> Graph:
        with tf.Graph().as_default() as graph:
            x = tf.compat.v1.placeholder(tf.float32, [3], name="x")
            k = tf.compat.v1.placeholder(tf.int32, [], name="k")
            tf.identity(function(x, k), name="y")
        return Graph.from_proto(GraphDef.FromString(graph.as_graph_def().SerializeToString()))

    @tf.function(autograph=False)
    def inner(a: Any) -> Any:
        return tf.tanh(a) * 2.0 + tf.constant([1.0, 2.0, 3.0])

    @tf.function(autograph=False)
    def outer(a: Any) -> Any:
        return inner(a) + inner(inner(a)), a * 3.0

    def calls(x: Any, k: Any) -> Any:
        first, second = outer(x)
        return first - second

    def branches(x: Any, k: Any) -> Any:
        return tf.cond(k > 1, lambda: inner(x), lambda: tf.cond(k > 0, lambda: x * 2.0, lambda: tf.zeros([3])))

    def cases(x: Any, k: Any) -> Any:
        return tf.switch_case(k, [lambda: inner(x), lambda: x + 1.0, lambda: tf.ones([3]), lambda: -x])

    def loops(x: Any, k: Any) -> Any:
        scale = tf.exp(x * 0.1)

        def body(i: Any, a: Any) -> Any:
            return i + 1, tf.cond(i > 1, lambda: inner(a) * scale, lambda: a + tf.sqrt(scale + 1.0))

        return tf.while_loop(lambda i, a: i < k, body, [0, x])[1]

    def variables(x: Any, k: Any) -> Any:
        # the handle is an argument, as in models of TensorFlow 2
        handle = tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=[3], shared_name="v")

        @tf.function(autograph=False)
        def step(v: Any, a: Any) -> Any:
            tf.raw_ops.AssignAddVariableOp(resource=v, value=a)
            tf.raw_ops.AssignAddVariableOp(resource=v, value=a * a)
            return tf.raw_ops.ReadVariableOp(resource=v, dtype=tf.float32)

        tf.group(tf.raw_ops.AssignVariableOp(resource=handle, value=tf.ones([3])), name="init")
        read = step(handle, x)
        with tf.control_dependencies([read]):
            return read + tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.float32)

    tf.compat.v1.enable_control_flow_v2()  # other tests switch it off
    made = {each.__name__: build(each) for each in (calls, branches, cases, loops)}
    tf.compat.v1.disable_control_flow_v2()
    try:
        made["frames"] = build(loops)
    finally:
        tf.compat.v1.enable_control_flow_v2()
    made["variables"] = build(variables)
    return made


def optimized(graph: Graph, passes: str) -> Optimized:
    targets = [name for name in ("init",) if name in graph]
    return optimize(graph, parse_passes(passes), kept_by(MetaGraph(graph), ["x", "k"], ["y"], targets))


def in_tensorflow(tf: Any, graph: Graph, k: int) -> list[Any]:
    message = tf.compat.v1.GraphDef.FromString(graph.to_proto().SerializeToString())
    with tf.Graph().as_default() as loaded:
        tf.import_graph_def(message, name="")
        with tf.compat.v1.Session(graph=loaded) as session:
            if "init" in graph:
                session.run("init")
            return [session.run("y:0", {"x:0": X, "k:0": k}) for _ in range(2)]


def ours(graph: Graph, k: int) -> list[Any]:
    with Session(graph.copy()) as session:
        if "init" in graph:
            session.run("init")
        return [session.run("y:0", {"x:0": X, "k:0": np.int32(k)}) for _ in range(2)]


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", ["calls", "branches", "cases", "loops", "frames", "variables"])
def test_the_same_numbers_here_and_in_tensorflow(tf: Any, graphs: dict[str, Graph], name: str) -> None:
    graph = graphs[name]
    made = [
        optimized(graph, "inline_functions").graph,
        optimized(graph, "inline_functions,lower_control_flow,remove_identities,remove_unused").graph,
        optimized(graph, "hoist_invariants,fold_constants,common_subexpressions,remove_control_edges").graph,
        optimized(graph, "lower_control_flow,inline_functions,fold_constants,hoist_invariants,remove_identities").graph,
    ]
    for k in (0, 1, 4):
        wanted = in_tensorflow(tf, graph, k)
        for each in made:
            for found in (in_tensorflow(tf, each, k), ours(each, k)):
                for a, b in zip(found, wanted, strict=True):
                    np.testing.assert_allclose(a, b, rtol=1e-5)  # a few roundings of tanh and exp


@pytest.mark.tensorflow
def test_nothing_functional_is_left(tf: Any, graphs: dict[str, Graph]) -> None:
    for name in ("calls", "branches", "cases", "loops"):
        done = optimized(graphs[name], "lower_control_flow,inline_functions,remove_identities,remove_unused")
        assert done.settled
        left = {node.op for node in done.graph}
        assert not left & {"If", "StatelessIf", "Case", "StatelessCase", "While", "StatelessWhile", "PartitionedCall"}
        assert not len(done.graph.library)


@pytest.mark.tensorflow
def test_functions_are_optimized_where_they_are(tf: Any, graphs: dict[str, Graph]) -> None:
    graph = graphs["loops"]
    before = sum(len(graph.library.function(name).node_def) for name in graph.library)
    done = optimized(graph, "remove_identities,common_subexpressions,fold_constants,remove_unused")
    after = sum(len(done.graph.library.function(name).node_def) for name in done.graph.library)
    assert after < before and {"While", "StatelessWhile"} & {node.op for node in done.graph}


@pytest.mark.tensorflow
@pytest.mark.parametrize("passes", ["remove_unused", "canonical"])
def test_a_function_without_arguments_is_no_graph_of_its_own(tf: Any, passes: str) -> None:
    """Such as what makes a table: functions that it does not call are not its own to remove, round after round."""

    @tf.function(autograph=False)
    def alone() -> Any:
        return tf.tanh(tf.constant(1.0))

    @tf.function(autograph=False)
    def other(a: Any) -> Any:
        return a * 3.0

    with tf.Graph().as_default() as made:
        tf.identity(alone() + other(tf.constant(2.0)), name="y")
    graph = Graph.from_proto(GraphDef.FromString(made.as_graph_def().SerializeToString()))
    done = optimize(graph, parse_passes(passes), kept_by(MetaGraph(graph), [], ["y"]))
    assert done.settled and len(done.graph.library) == len(graph.library) == 2


def test_what_does_not_change_is_computed_before_the_loop() -> None:
    def build() -> None:
        x = gm.placeholder(gm.float32, [3], name="x")
        k = gm.placeholder(gm.int32, [], name="k")
        state = [gm.constant(0), x]
        made = gm.while_loop(lambda i, a: ops.less(i, k), lambda i, a: (i + 1, a + ops.sqrt(ops.abs(x) * 2.0)), state)
        ops.identity(made[1], name="y")

    graph = made_graph(build)
    done = optimize(graph, parse_passes("hoist_invariants"), kept_by(MetaGraph(graph), ["x", "k"], ["y"]))
    frames, _ = assign_frames(done.graph, done.graph.topological_order())
    outside = {node.op for node in done.graph if not frames[node.id].name}
    assert {"Sqrt", "Abs", "Mul"} <= outside
    assert not {"Sqrt", "Abs", "Mul"} & {node.op for node in done.graph if frames[node.id].name}
    for k in (0, 4):
        feeds = {"x:0": X, "k:0": np.int32(k)}
        assert_same(values(graph, ["y:0"], feeds), values(done.graph, ["y:0"], feeds))


@pytest.mark.tensorflow
def test_large_functions_that_stay_anyhow_stay_calls(graphs: dict[str, Graph]) -> None:
    """Of what the objects of a SavedModel need, each call would be a second copy; in their bodies too."""
    graph = graphs["calls"]
    inner, outer = sorted(graph.library, key=lambda name: len(graph.library.function(name).node_def))

    def functions_called(passes: str, *staying: str) -> list[str]:
        kept = replace(kept_by(MetaGraph(graph), ["x", "k"], ["y"]), functions=frozenset(staying))
        done = optimize(graph, parse_passes(passes), kept).graph
        bodies = [editable_body(done, name) for name in staying]
        found = [done, *(body.graph for body in bodies if body is not None)]
        return sorted(ref.name for each in found for node in each if (ref := called(node)) is not None)

    line = "inline_functions(kept_nodes=%d),remove_unused"
    assert functions_called(line % 0, inner, outer) == [inner] * 3 + [outer]
    small = len(graph.library.function(inner).node_def)
    assert functions_called(line % small, inner, outer) == [outer]
    assert functions_called(line % 100, inner, outer) == []
    assert functions_called(line % 0) == []  # nothing stays: nothing is there twice


def test_functions_that_grow_without_end_stay_calls() -> None:
    """Forty functions that each call the next one twice: of 2^40 nodes none is made but those of the last few."""
    graph = Graph()
    x = graph.add("Placeholder", "x", attrs={"dtype": gm.float32})
    for number in reversed(range(40)):
        body = Graph()
        body.library = graph.library
        arg = body.add("_Arg", "a", attrs={"T": gm.float32, "index": 0})
        made = arg
        for turn in range(2):
            made = _next_call(body, made, number, f"n{turn}")
        end = body.add("_Retval", "r", [made], attrs={"T": gm.float32, "index": 0})
        graph.library.add(to_function(FunctionBody(body, [arg], [end], []), _signature(f"f{number}")))
    graph.add("f0", "y", [x])
    done = optimize(
        graph, parse_passes("inline_functions(max_nodes=1000)"), kept_by(MetaGraph(graph), ["x"], ["y"]), rounds=1
    )
    assert done.graph.node("y").op == "f0"
    sizes = [len(done.graph.library.function(name).node_def) for name in done.graph.library]
    assert 2 * 40 < sum(sizes) <= 2 * 40 + 1000


def _next_call(body: Graph, given: Any, number: int, name: str) -> Any:
    if number == 39:
        return body.add("Tanh", name, [given], attrs={"T": gm.float32})
    return body.add(f"f{number + 1}", name, [given])


def _signature(name: str) -> FunctionDef:
    out = FunctionDef()
    out.signature.name = name
    out.signature.input_arg.add(name="a", type=gm.float32.enum)
    out.signature.output_arg.add(name="r", type=gm.float32.enum)
    return out
