"""Structures of tensors, and sparse ones, are fed as TensorFlow 1 takes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from toolkit import tensorflow as tf
from toolkit.errors import UsageError


def test_structures_are_taken_apart() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        cell = tf.nn.rnn_cell.MultiRNNCell([tf.nn.rnn_cell.BasicLSTMCell(2), tf.nn.rnn_cell.BasicLSTMCell(3)])
        state = cell.zero_state(1, tf.float32)
        value = session.run(state)
        fed = tf.nn.rnn_cell.LSTMStateTuple(np.ones([1, 2]), value[0].h), value[1]
        found = session.run(state, {state: fed})
    np.testing.assert_array_equal(found[0].c, np.ones([1, 2]))
    np.testing.assert_array_equal(found[1].h, np.zeros([1, 3]))


def test_slices_are_fed() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        rows = tf.IndexedSlices(tf.zeros([2, 2]), tf.constant([0, 1]), tf.constant([3, 2]))
        total = tf.convert_to_tensor(rows)
        found = session.run(total, {rows: (np.ones([2, 2]), np.array([2, 2]), np.array([4, 2]))})
    np.testing.assert_array_equal(found, [[0, 0], [0, 0], [2, 2], [0, 0]])


def test_other_structures_are_refused() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        a, b = tf.placeholder(tf.float32), tf.placeholder(tf.float32)
        with pytest.raises(UsageError, match="structure"):
            session.run(a + b, {(a, b): [1.0, 2.0, 3.0]})


@pytest.mark.parametrize(
    ("dtype", "value", "expected"),
    [
        ("int32", np.array([1.0, 2.7]), [1, 2]),
        ("int32", [1.5, 2.0], [1, 2]),
        ("float32", np.array([1, 2], np.int64), [1.0, 2.0]),
        ("float32", np.array([True, False]), [1.0, 0.0]),
        ("bool", np.array([0, 2]), [False, True]),
        ("uint8", np.array([300, 1]), [44, 1]),
    ],
)
def test_what_is_fed_is_cast_as_tensorflow_casts_it(dtype: str, value: Any, expected: list[Any]) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(dtype, [2])
        y = tf.identity(x)
        found = session.run(y, {x: value})
        assert found.dtype == dtype
        assert found.tolist() == expected
        assert session.make_callable(y, [x])(value).tolist() == expected


def test_a_number_that_is_not_of_the_type_is_refused() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.uint8, [])
        with pytest.raises(Exception, match="uint8"):
            session.run(tf.identity(x), {x: 300})


def test_objects_of_other_libraries_are_fetched_and_fed() -> None:
    from toolkit.tensorflow.families.framework.internal_tools import register_session_run_conversion_functions

    class Squared:
        def __init__(self, tensor: Any):
            self.square = tf.square(tensor)

    class Cubed(Squared):
        pass

    def feed(key: Squared, value: Any) -> list[tuple[Any, Any]]:
        return [(key.square, value)]

    register_session_run_conversion_functions(
        Squared, lambda each: ([each.square], lambda values: ("squared", values[0])), feed, lambda each: [each.square]
    )
    with pytest.raises(ValueError, match="objects of class Squared are converted already"):
        register_session_run_conversion_functions(Squared, feed)
    with tf.Graph().as_default(), tf.Session() as session:
        two, three = Squared(tf.constant(2.0)), Cubed(tf.constant(3.0))
        total = two.square + three.square
        assert session.run([two, {"a": three}]) == [("squared", 4.0), {"a": ("squared", 9.0)}]
        assert session.run(total, {two: 1.0}) == 10.0
        handle = session.partial_run_setup([total], [two, three.square])
        assert session.partial_run(handle, total, {two: 1.0, three.square: 5.0}) == 6.0
        with pytest.raises(TypeError, match="cannot be fetched or fed"):
            session.run(object())
