"""Conditionals, choices and loops made as If, Case and While: numbers and gradients of TensorFlow's own."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.client.client_programs import tf1_semantics
from toolkit import tensorflow as ours
from toolkit.client.flow import control_flow, functional_flow
from toolkit.errors import GraphError, UsageError

X = np.array([[0.3, -0.7], [0.9, 0.1]])
W = np.array([[0.5, 0.4], [-0.6, 0.8]])


def conditional(tf: Any, x: Any, w: Any) -> Any:
    pair = tf.cond(
        tf.reduce_sum(x) > 0.0, lambda: (tf.exp(x) * tf.sin(w), x), lambda: (tf.matmul(x, w), tf.tanh(x)), name="pick"
    )
    return pair[0] + pair[1]


def one_branch_takes_nothing(tf: Any, x: Any, w: Any) -> Any:
    return tf.cond(tf.reduce_sum(w) > 0.0, lambda: tf.exp(x) * x, lambda: tf.ones([2, 2], tf.float64)) + w


def choice(tf: Any, x: Any, w: Any) -> Any:
    index = tf.cast(tf.reduce_sum(x) * 3.0, tf.int32)
    return tf.switch_case(index, [lambda: tf.exp(x), lambda: tf.sin(x) * w], default=lambda: tf.tanh(w) * x)


def choice_by_number(tf: Any, x: Any, w: Any) -> Any:
    return tf.switch_case(tf.constant(1), {1: lambda: tf.sin(x) * w, 0: lambda: tf.exp(x)})


def loop(tf: Any, x: Any, w: Any) -> Any:
    return tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, tf.tanh(tf.matmul(a, w)) + a * x), [0, x])[1]


def limited_loop(tf: Any, x: Any, w: Any) -> Any:
    found = tf.while_loop(lambda a: tf.reduce_sum(a) < 1e9, lambda a: a * 1.5 + w, [x], maximum_iterations=4)
    return found * w


def growing_loop(tf: Any, x: Any, w: Any) -> Any:
    rows = tf.while_loop(
        lambda i, a: i < 3,
        lambda i, a: (i + 1, tf.concat([a, tf.sin(a[:2] * w)], 0)),
        [0, x],
        shape_invariants=[tf.TensorShape([]), tf.TensorShape([None, 2])],
    )[1]
    return rows


def conditional_in_loop(tf: Any, x: Any, w: Any) -> Any:
    def body(i: Any, a: Any) -> Any:
        return i + 1, tf.cond(tf.reduce_sum(a) > 0.0, lambda: tf.tanh(a) * w - 0.5, lambda: a * a + w)

    return tf.while_loop(lambda i, a: i < 4, body, [0, x])[1]


def loop_in_loop(tf: Any, x: Any, w: Any) -> Any:
    def body(i: Any, a: Any) -> Any:
        inner = tf.while_loop(lambda j, b: j < i + 1, lambda j, b: (j + 1, tf.sin(b * w)), [0, a])[1]
        return i + 1, inner + a

    return tf.while_loop(lambda i, a: i < 3, body, [0, x])[1]


def variables_inside(tf: Any, x: Any, w: Any) -> Any:
    held = tf.get_variable("held", initializer=np.float64(2.0), use_resource=True)
    either = tf.cond(tf.reduce_sum(x) > 0.0, lambda: x * held, lambda: w * held)
    return tf.while_loop(lambda i, a: i < 2, lambda i, a: (i + 1, a * held + w), [0, either])[1]


def mapped(tf: Any, x: Any, w: Any) -> Any:
    return tf.map_fn(lambda row: tf.sin(row) * w[0], x)


def scanned(tf: Any, x: Any, w: Any) -> Any:
    return tf.scan(lambda a, row: tf.tanh(a * row + w[1]), x)


def arrays_in_loop(tf: Any, x: Any, w: Any) -> Any:
    rows, made = tf.TensorArray(tf.float64, 2).unstack(x), tf.TensorArray(tf.float64, 2, element_shape=[2])

    def body(i: Any, state: Any, out: Any) -> Any:
        state = tf.tanh(rows.read(i) + tf.reduce_sum(w * state, 1))
        return i + 1, state, out.write(i, state * state)

    return tf.while_loop(lambda i, *_: i < 2, body, [0, x[0], made])[2].stack()


def growing_array(tf: Any, x: Any, w: Any) -> Any:
    made = tf.TensorArray(tf.float64, 0, dynamic_size=True)
    step = tf.while_loop(
        lambda a, out: tf.reduce_sum(tf.abs(a)) < 5.0,
        lambda a, out: (tf.matmul(a, w) + 1.5 * a, out.write(out.size(), a * x)),
        [x, made],
    )
    return tf.reduce_sum(step[1].stack(), 0) + step[1].concat()[:2]


Program = Callable[[Any, Any, Any], Any]
PROGRAMS: list[Program] = [
    conditional, one_branch_takes_nothing, choice, choice_by_number, loop, limited_loop, growing_loop,
    conditional_in_loop, loop_in_loop, variables_inside, mapped, scanned, arrays_in_loop, growing_array,
]  # fmt: skip
#: TensorFlow's own second derivatives of the others are tested through the graphs of test_functional_gradients
TWICE = [conditional, choice, loop, mapped, scanned, arrays_in_loop]


@contextmanager
def functions(tf: ModuleType) -> Generator[None]:
    """Control flow by functions, in TensorFlow and here."""
    with tf1_semantics(tf):
        from tensorflow.python.ops import control_flow_util

        before = control_flow_util.ENABLE_CONTROL_FLOW_V2
        control_flow_util.ENABLE_CONTROL_FLOW_V2 = True
        control_flow.use_functions(True)
        try:
            yield
        finally:
            control_flow_util.ENABLE_CONTROL_FLOW_V2 = before
            control_flow.use_functions(False)


def made(tf: Any, program: Program, order: int) -> tuple[Any, Any, list[Any]]:
    """Placeholders and what to run: the result and its derivatives up to an order."""
    xs = [tf.placeholder(tf.float64, value.shape, name=name) for name, value in (("x", X), ("w", W))]
    found = [program(tf, *xs)]
    last = found[0]
    for _ in range(order):
        grads = tf.gradients(last, xs)
        found += [grad for grad in grads if grad is not None]
        last = grads[0]
    return xs, tf.global_variables_initializer(), found


@pytest.mark.tensorflow
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_numbers_and_gradients(tf: ModuleType, program: Program) -> None:
    order = 2 if program in TWICE else 1
    v1 = tf.compat.v1
    with functions(tf):
        with tf.Graph().as_default() as graph:
            v1.switch_case = tf.switch_case if not hasattr(v1, "switch_case") else v1.switch_case
            xs, start, fetches = made(v1, program, order)
            kinds = sorted(op.type for op in graph.get_operations() if op.type.endswith(("If", "While", "Case")))
            with v1.Session() as session:
                session.run(start)
                wanted = [session.run(fetches, dict(zip(xs, feeds, strict=True))) for feeds in ((X, W), (-X, W))]
        with ours.Graph().as_default() as graph:
            xs, start, fetches = made(ours, program, order)
            mine = sorted(op.type for op in graph.get_operations() if op.type.endswith(("If", "While", "Case")))
            names = [fetch.name for fetch in fetches]
            data = graph.as_graph_def().SerializeToString()
            with ours.Session() as session:
                session.run(start)
                found = [session.run(fetches, dict(zip(xs, feeds, strict=True))) for feeds in ((X, W), (-X, W))]
    assert {kind.removeprefix("Stateless") for kind in mine} == {kind.removeprefix("Stateless") for kind in kinds}
    with functions(tf), tf.Graph().as_default():
        tf.import_graph_def(v1.GraphDef.FromString(data), name="")
        with v1.Session() as session:
            session.run(start.name)
            again = [session.run(names, {"x:0": x, "w:0": W}) for x in (X, -X)]
    for results in (found, again):
        for mine_, theirs in zip(results, wanted, strict=True):
            assert len(mine_) == len(theirs)
            for a, b in zip(mine_, theirs, strict=True):
                # float64, a few dozen operations of numbers near 1: a thousand roundings at most
                np.testing.assert_allclose(a, b, rtol=2e-13, atol=2e-13)


def test_branches_that_return_operations() -> None:
    control_flow.use_functions(True)
    try:
        with ours.Graph().as_default(), ours.Session() as session:
            held = ours.get_variable("held", initializer=1.0, use_resource=True)
            chosen = ours.placeholder(ours.bool, [])
            done = ours.cond(chosen, lambda: held.assign(5.0).op, ours.no_op)
            session.run(held.initializer)
            session.run(done, {chosen: False})
            assert session.run(held) == 1.0
            session.run(done, {chosen: True})
            assert session.run(held) == 5.0
    finally:
        control_flow.use_functions(False)


def test_mistakes() -> None:
    assert not ours.control_flow_v2_enabled()
    ours.enable_control_flow_v2()
    try:
        assert ours.control_flow_v2_enabled()
        with ours.Graph().as_default():
            x = ours.constant(1.0)
            with pytest.raises(GraphError, match="true_fn of the conditional returns None"):
                ours.cond(x > 0.0, lambda: None, lambda: x)
            with pytest.raises(GraphError, match="'true' and 'false' must return the same structure"):
                ours.cond(x > 0.0, lambda: (x, x), lambda: (x,))
            with pytest.raises(GraphError, match="float32 in the branch 'true' and int32 in 'false'"):
                ours.cond(x > 0.0, lambda: x, lambda: ours.constant(1))
            with pytest.raises(UsageError, match="at least one branch"):
                functional_flow.switch_case(0, [])
            with pytest.raises(UsageError, match=r"indices 0, 1, \.\.\."):
                functional_flow.switch_case(0, {0: lambda: x, 2: lambda: x})
            with pytest.raises(GraphError, match="give shape_invariants"):
                ours.while_loop(lambda a: True, lambda a: ours.concat([a, a], 0), [ours.ones([2])])
            with pytest.raises(GraphError, match="is float32; the body returns int32"):
                ours.while_loop(lambda a: True, lambda a: ours.constant(1), [x])
            with pytest.raises(GraphError, match="must return them in the same structure"):
                ours.while_loop(lambda a, b: True, lambda a, b: (a, b, b), [x, x])
            with pytest.raises(GraphError, match="2 shape invariants for 1 loop variables"):
                ours.while_loop(lambda a: True, lambda a: a, [x], shape_invariants=[[], []])
    finally:
        ours.disable_control_flow_v2()


@pytest.mark.parametrize("functional", [False, True], ids=["primitives", "functions"])
@pytest.mark.parametrize("where", ["conditional", "loop"])
def test_custom_gradients_inside(where: str, functional: bool) -> None:
    """The gradient function of a branch or body knows that function's tensors, and those of the graph around."""

    @ours.custom_gradient
    def turned(p: Any) -> Any:
        return ours.sin(p), lambda dy: dy * ours.cos(p) * 0.5

    control_flow.use_functions(functional)
    try:
        with ours.Graph().as_default(), ours.Session() as session:
            x = ours.placeholder(ours.float64, [2, 2])
            if where == "conditional":
                y = ours.cond(ours.reduce_sum(x) > -9.0, lambda: turned(x) * turned(x * 2.0), lambda: x)
                wanted = 0.5 * np.cos(X) * np.sin(2 * X) + np.sin(X) * np.cos(2 * X)
            else:
                y = ours.while_loop(lambda i, _: i < 2, lambda i, a: (i + 1, turned(a) * turned(x)), [0, x])[1]
                inner, slope = np.sin(X) * np.sin(X), 0.5 * np.cos(X) * np.sin(X) * 2
                wanted = 0.5 * np.cos(inner) * slope * np.sin(X) + np.sin(inner) * 0.5 * np.cos(X)
            found = session.run(ours.gradients(y, x)[0], {x: X})
    finally:
        control_flow.use_functions(False)
    # float64, a dozen operations of numbers below 1
    np.testing.assert_allclose(found, wanted, rtol=1e-13, atol=1e-14)
