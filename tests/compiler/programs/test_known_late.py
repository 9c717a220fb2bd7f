"""Branches that a variable decides in steps that change others; loops whose sizes follow from what a step is given."""

# TensorFlow's names have no types
# pyright: basic

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.compiler.compare import check
from toolkit import tensorflow as tf
from toolkit.kernels.cpu.native.compiler import compiler
from toolkit.kernels.cpu.onednn.library import library
from toolkit.runtime.session import Session

pytestmark = pytest.mark.skipif(library() is None or compiler() is None, reason="needs LLVM and oneDNN")


def _numbers(*shape: int) -> Any:
    return np.random.default_rng(3).normal(size=shape).astype(np.float32)


def _is_compiled(session: Any) -> bool:
    return not any("node by node" in note for note in session.notes())


@pytest.mark.parametrize("flag", [True, False])
def test_a_variable_that_nobody_changes_decides_alike_everywhere(flag: bool) -> None:
    with tf.Graph().as_default() as graph:
        trains = tf.get_variable("trains", initializer=flag, trainable=False)
        w = tf.get_variable("w", initializer=np.array([1, 2, 3], np.float32))
        x = tf.placeholder(tf.float32, [4, 3], name="x")
        y = x * w
        for number in range(3):  # constants of a branch wait for its pivot, its data for its predicate
            y = tf.cond(trains, lambda y=y, n=number: y * (n + 2.0), lambda y=y: y)
        loss = tf.reduce_sum(y)
        step = tf.train.GradientDescentOptimizer(0.125).minimize(loss)
        with tf.Session(graph=graph) as session:
            session.run(tf.global_variables_initializer())
            given = np.ones((4, 3), np.float32)
            found, _ = session.run([loss, step], {x: given})
            after = session.run(w)
            assert _is_compiled(session)
    factor = 24.0 if flag else 1.0
    assert found == 4 * 6 * factor
    np.testing.assert_array_equal(after, np.array([1, 2, 3], np.float32) - np.float32(0.125 * 4 * factor))


def test_who_changes_the_variable_that_decides_is_seen_by_who_waits() -> None:
    with tf.Graph().as_default() as graph:
        flag = tf.get_variable("flag", initializer=False, trainable=False)
        turned = tf.assign(flag, True)
        before = tf.cond(flag, lambda: 1, lambda: 0)
        with tf.control_dependencies([turned, before]):
            after = tf.cond(tf.identity(flag), lambda: 1, lambda: 0)
        with tf.Session(graph=graph) as session:
            session.run(tf.global_variables_initializer())
            assert session.run(after) == 1


class _Cell(tf.nn.rnn_cell.RNNCell):
    """tanh(x k + h), without variables."""

    state_size = output_size = 4

    def __init__(self, kernel: Any):
        super().__init__()
        self.kernel = kernel

    def call(self, inputs: Any, state: Any) -> Any:
        new = tf.tanh(tf.matmul(inputs, self.kernel) + state)
        return new, new


@pytest.mark.parametrize("longest", [2, 5, 9])
def test_lengths_that_a_step_works_out_itself(longest: int) -> None:
    with tf.Graph().as_default() as graph:
        words = tf.placeholder(tf.int32, [3, 9], name="words")
        kernel = tf.placeholder(tf.float32, [5, 4], name="kernel")
        lengths = tf.reduce_sum(tf.cast(tf.cast(words, tf.bool), tf.int32), axis=1)
        cut = tf.slice(words, [0, 0], [3, tf.reduce_max(lengths)])
        x = tf.nn.embedding_lookup(tf.constant(_numbers(7, 5)), cut)
        out, _ = tf.nn.dynamic_rnn(_Cell(kernel), x, tf.reshape(lengths, [-1]), dtype=tf.float32)
        tf.reduce_sum(out, [1, 2], name="out")
        tf.identity(tf.gradients(out, kernel)[0], name="by_kernel")
    given = np.zeros((3, 9), np.int32)
    given[0, :longest], given[1, :1], given[2, : longest - 1] = 3, 2, 1
    feeds = {"words:0": given, "kernel:0": _numbers(5, 4)}
    with Session(graph) as session:
        session.run(["out:0", "by_kernel:0"], feeds)
        assert _is_compiled(session)
    check(graph, ["out:0", "by_kernel:0"], feeds)
