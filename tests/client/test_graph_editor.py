"""Copies of parts of graphs compute and learn, loops among them; mistakes are told. tests/tf1/dropped has the rest."""

# TensorFlow's names have no types
# pyright: basic

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from toolkit import tensorflow as tf
from toolkit.errors import GraphmillError

ge: Any = tf.contrib.graph_editor


def test_a_loop_is_copied_with_other_inputs() -> None:
    with tf.Graph().as_default() as graph:
        x = tf.constant([1.0, 2.0], name="x")
        _, y = tf.while_loop(lambda i, _: i < 3, lambda i, v: (i + 1, v * x), [0, x])
        other = tf.constant([2.0, 3.0], name="other")
        replaced = ge.graph_replace(y, {x: other})
        again = ge.graph_replace(replaced, {other: other + 1.0})
        with tf.Session(graph=graph) as session:
            found = session.run([y, replaced, again])
    np.testing.assert_array_equal(found, [[1.0, 16.0], [16.0, 81.0], [81.0, 256.0]])


def test_an_unrolled_step_has_the_gradient_of_what_it_unrolls() -> None:
    """A parameter after two steps of descent, as a function of the data: its slope is that of the closed form."""
    with tf.Graph().as_default():
        data, rate = tf.placeholder(tf.float64, []), 0.1
        w = tf.Variable(np.float64(2.0))
        loss = tf.square(w * data - 1.0)
        step = {w.value(): w - rate * tf.gradients(loss, w)[0]}
        for _ in range(1):
            step = ge.graph_replace(step, step)
        unrolled = ge.graph_replace(loss, step)
        slope = tf.gradients(unrolled, data)[0]
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            value, found = session.run([unrolled, slope], {data: 0.7})

    def after(d: float) -> float:
        w = 2.0
        for _ in range(2):
            w -= rate * 2.0 * (w * d - 1.0) * d
        return (w * d - 1.0) ** 2

    h = 1e-5  # its square, relative to the second derivative, is what central differences are wrong by
    np.testing.assert_allclose(value, after(0.7), rtol=1e-12, atol=1e-12)  # a dozen operations in float64
    np.testing.assert_allclose(found, (after(0.7 + h) - after(0.7 - h)) / (2 * h), rtol=h)


def test_a_session_takes_the_inputs_that_operations_have_when_it_prepares_a_step() -> None:
    with tf.Graph().as_default():
        a, b = tf.constant(1.0), tf.constant(5.0)
        y = tf.negative(a)
        z = tf.identity(y)
        with tf.Session() as session:
            assert session.run(y) == -1.0
            assert ge.reroute_ts([b], [a]) == 1
            assert session.run(z) == -5.0
        assert [op.name for op in b.consumers()] == [y.op.name]


def test_an_operation_that_takes_a_tensor_twice_consumes_it_twice() -> None:
    with tf.Graph().as_default():
        a = tf.constant(1.0)
        y = a * a
        assert [op.name for op in a.consumers()] == [y.op.name] * 2


@pytest.mark.parametrize(
    ("edit", "kind", "said"),
    [
        (lambda a, y: ge.reroute_ts([a], [a, y]), ValueError, "there are 1 tensors to take the places of 2"),
        (
            lambda a, y: ge.reroute_ts(tf.constant(1), a),
            TypeError,
            r"cannot take the place of 'a:0': int32 is not float32",
        ),
        (lambda a, y: ge.graph_replace(a, {y: a}), ValueError, "no target depends on what is replaced"),
        (lambda a, y: ge.graph_replace(y, [a]), TypeError, "expected tensors to tensors"),
        (lambda a, y: ge.select_ops("x"), ValueError, "say which, by graph="),
        (lambda a, y: ge.select_ops("x", graph=3), TypeError, "graph: expected a graph, not 3"),
        (lambda a, y: ge.select_ops("x", grpah=3), TypeError, "unexpected argument 'grpah'"),
        (lambda a, y: ge.sgv(5), TypeError, "expected Operation, or a list of such, not 5"),
        (lambda a, y: ge.remove_control_inputs(y.op, [a.op]), ValueError, "'y' does not wait for 'a'"),
        (lambda a, y: ge.copy([y.op], src_scope="s"), ValueError, "'y' is not in the scope that is copied, 's/'"),
        (lambda a, y: ge.copy([y.op], dst_graph=3), TypeError, "dst_graph: expected a graph, not 3"),
        (lambda a, y: ge.get_forward_walk_ops(y.op, control_outputs=3), TypeError, "expected ControlOutputs, not 3"),
        (lambda a, y: ge.get_within_boundary_ops([y.op], y.op, [y.op]), ValueError, "where the walk begins"),
        (lambda a, y: ge.sgv(y.op).find_op_by_name("z"), ValueError, "there is no operation 'z'"),
        (lambda a, y: ge.sgv(y.op).input_index(y), ValueError, "'y:0' is no input"),
        (lambda a, y: ge.make_list_of_op([y.op, tf.Graph()]), TypeError, "expected Operation"),
    ],
)
def test_mistakes_are_told(edit: Callable[[Any, Any], Any], kind: type[Exception], said: str) -> None:
    with tf.Graph().as_default():
        a = tf.constant(1.0, name="a")
        y = tf.negative(a, name="y")
        with pytest.raises(kind, match=said) as caught:
            edit(a, y)
        assert isinstance(caught.value, GraphmillError)


def test_elements_of_two_graphs_are_refused() -> None:
    made = []
    for _ in range(2):
        with tf.Graph().as_default():
            made.append(tf.constant(1.0))
    with pytest.raises(ValueError, match="of several graphs"):
        ge.reroute_ts([made[0]], [made[1]])
