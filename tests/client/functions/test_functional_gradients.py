"""Gradients through functions, functional conditionals and loops: graphs of TensorFlow, both gradients run by both."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests import perturbation
from tests.client.gradients.gradient_oracle import as_tensor
from toolkit import Session
from toolkit import client as gm
from toolkit.graph.graph import Graph as CoreGraph

pytestmark = pytest.mark.tensorflow

Program = Callable[..., Any]


def exported(tf: ModuleType, program: Program, shapes: list[Any]) -> tuple[bytes, list[str], list[str]]:
    """A GraphDef with functional control flow, and the names of its inputs and results."""
    from tensorflow.python.ops import control_flow_util

    before = control_flow_util.ENABLE_CONTROL_FLOW_V2
    control_flow_util.ENABLE_CONTROL_FLOW_V2 = True
    try:
        with tf.Graph().as_default() as graph:
            xs = [tf.compat.v1.placeholder(tf.float32, shape, name=f"x{i}") for i, shape in enumerate(shapes)]
            made = program(tf, *xs)
            ys = made if isinstance(made, list | tuple) else [made]
            return graph.as_graph_def().SerializeToString(), [x.name for x in xs], [y.name for y in ys]
    finally:
        control_flow_util.ENABLE_CONTROL_FLOW_V2 = before


def check(
    tf: ModuleType,
    program: Program,
    feeds: list[Any],
    shapes: list[Any] | None = None,
    order: int = 1,
    reference: Program | None = None,
) -> None:
    """Our gradient, run by TensorFlow and by us, against TensorFlow's on the graph as it was, or on `reference`."""
    sizes = shapes or [np.shape(f) for f in feeds]
    data, x_names, y_names = exported(tf, program, sizes)
    their_data, _, their_names = exported(tf, reference or program, sizes)
    fed = {name: np.asarray(value, np.float32) for name, value in zip(x_names, feeds, strict=True)}
    v1 = tf.compat.v1
    with tf.Graph().as_default() as theirs:
        tf.import_graph_def(v1.GraphDef.FromString(their_data), name="")
        wanted = [theirs.get_tensor_by_name(n) for n in their_names]
        for _ in range(order):
            found = v1.gradients(wanted, [theirs.get_tensor_by_name(n) for n in x_names])
            wanted = [w for w in found if w is not None]
        missing = [w is None for w in found]
        with v1.Session() as session:
            expected = session.run(wanted, fed)
    with gm.Graph().as_default() as graph:
        from schemas import graph_pb2

        gm.import_graph_def(CoreGraph.from_proto(graph_pb2.GraphDef.FromString(data)), name="")
        mine = [graph.get_tensor_by_name(n) for n in y_names]
        for _ in range(order):
            ours = [as_tensor(g) for g in gm.grad(mine, [graph.get_tensor_by_name(n) for n in x_names])]
            mine = [g for g in ours if g is not None]
        assert [g is None for g in ours] == missing
        names = [g.name for g in mine]
    results = [Session(graph).run(names, fed)]
    with tf.Graph().as_default():
        tf.import_graph_def(v1.GraphDef.FromString(graph.as_graph_def().SerializeToString()), name="")
        with v1.Session() as session:
            results.append(session.run(names, fed))
    perturbation.assert_close(graph, names, fed, [*results, expected])


def call(tf: ModuleType, x: Any, w: Any) -> Any:
    @tf.function
    def inner(a: Any, b: Any) -> Any:
        return tf.tanh(tf.matmul(a, b)) * tf.reduce_sum(a), tf.exp(b)

    first, second = inner(x, w)
    return [first * 2.0, second]


def nested_call(tf: ModuleType, x: Any, w: Any) -> Any:
    @tf.function
    def leaf(a: Any) -> Any:
        return tf.sin(a) * a

    @tf.function
    def outer(a: Any, b: Any) -> Any:
        return leaf(tf.matmul(a, b)) + leaf(b)

    return outer(x, w)


def conditional(tf: ModuleType, x: Any, w: Any) -> Any:
    return tf.cond(tf.reduce_sum(x) > 0, lambda: tf.exp(x) * tf.sin(w), lambda: tf.matmul(x, w) * tf.tanh(x))


def one_sided(tf: ModuleType, x: Any, w: Any) -> Any:
    return tf.cond(tf.reduce_sum(x) > 0, lambda: tf.exp(x), lambda: w * w)


def switch_case(tf: ModuleType, x: Any, w: Any) -> Any:
    index = tf.cast(tf.reduce_sum(x), tf.int32)
    return tf.switch_case(index, [lambda: tf.exp(x), lambda: tf.sin(x) * w, lambda: tf.tanh(w)])


def loop(tf: ModuleType, x: Any, w: Any) -> Any:
    return tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, tf.tanh(tf.matmul(a, w)) + a * x), [0, x])[1]


def dynamic_loop(tf: ModuleType, x: Any, w: Any) -> Any:
    """The number of iterations depends on the values, a second variable is not used outside."""
    return tf.while_loop(
        lambda i, a, b: tf.reduce_sum(a) < 30.0, lambda i, a, b: (i + 1, a * 1.5 + tf.abs(w), b * a), [0, tf.abs(x), w]
    )[1]


def nested_loop(tf: ModuleType, x: Any, w: Any) -> Any:
    def body(i: Any, a: Any) -> Any:
        inner = tf.while_loop(lambda j, b: j < i + 1, lambda j, b: (j + 1, tf.sin(b * w)), [0, a])[1]
        return i + 1, inner + a

    return tf.while_loop(lambda i, a: i < 3, body, [0, x])[1]


def conditional_in_loop(tf: ModuleType, x: Any, w: Any) -> Any:
    def body(i: Any, a: Any) -> Any:
        return i + 1, tf.cond(tf.reduce_sum(a) > 0, lambda: tf.tanh(a) * w - 0.5, lambda: a * a + w)

    return tf.while_loop(lambda i, a: i < 4, body, [0, x])[1]


def arrays_in_loop(tf: ModuleType, x: Any, w: Any) -> Any:
    """What a recurrent network does: reads steps from one list, writes to another."""
    steps = tf.TensorArray(tf.float32, 2, element_shape=[2]).unstack(x)
    outputs = tf.TensorArray(tf.float32, 2, element_shape=[2])

    def body(i: Any, state: Any, out: Any) -> Any:
        state = tf.tanh(steps.read(i) + tf.linalg.matvec(w, state))
        return i + 1, state, out.write(i, state * state)

    _, last, outputs = tf.while_loop(lambda i, *_: i < 2, body, [0, tf.zeros([2]), outputs])
    return [outputs.stack(), last]


def loop_in_function(tf: ModuleType, x: Any, w: Any) -> Any:
    @tf.function
    def outer(a: Any, b: Any) -> Any:
        return loop(tf, a, b) * tf.reduce_sum(b)

    return outer(x, w)


X = [[0.3, -0.7], [0.9, 0.1]]
W = [[0.5, 0.4], [-0.6, 0.8]]
PROGRAMS = [
    call, nested_call, conditional, one_sided, switch_case, loop, dynamic_loop, nested_loop, conditional_in_loop,
    arrays_in_loop,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
@pytest.mark.parametrize("shapes", [None, [[None, 2], [2, 2]]], ids=["known", "unknown"])
def test_functional(tf: ModuleType, program: Program, shapes: Any) -> None:
    check(tf, program, [X, W], shapes)
    check(tf, program, [np.negative(X), W], shapes)


@pytest.mark.parametrize("program", [conditional, loop, arrays_in_loop], ids=lambda p: p.__name__)
def test_second_derivatives(tf: ModuleType, program: Program) -> None:
    check(tf, program, [X, W], order=2)


def test_second_derivatives_of_a_call(tf: ModuleType) -> None:
    """TensorFlow has none for its SymbolicGradient, so its graph is without the function."""

    def inlined(tf: ModuleType, x: Any, w: Any) -> Any:
        return [tf.tanh(tf.matmul(x, w)) * tf.reduce_sum(x) * 2.0, tf.exp(w)]

    check(tf, call, [X, W], order=2, reference=inlined)


@pytest.mark.parametrize("shapes", [None, [[None, 2], [2, 2]]], ids=["known", "unknown"])
def test_a_loop_in_a_function(tf: ModuleType, shapes: Any) -> None:
    """TensorFlow's SymbolicGradient takes a While for a constant, so its graph is without the function."""

    def inlined(tf: ModuleType, x: Any, w: Any) -> Any:
        return loop(tf, x, w) * tf.reduce_sum(w)

    check(tf, loop_in_function, [X, W], shapes, reference=inlined)
