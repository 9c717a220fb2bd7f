"""Gradients of several replicas are averaged before they are applied; scaled losses change nothing but the range."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.patience import until
from toolkit import tensorflow as tf


def _optimizer(aggregated: int, total: int | None = None) -> Any:
    return tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(0.5), aggregated, total)


def test_one_process_trains_as_without() -> None:
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [])
        v = tf.Variable(1.0)
        step = tf.train.create_global_step()
        optimizer = _optimizer(1)
        train = optimizer.minimize(v * x, global_step=step)
        hook = optimizer.make_session_run_hook(True, num_tokens=0)
        with tf.train.MonitoredTrainingSession(hooks=[hook], stop_grace_period_secs=0) as session:
            for value in (1.0, 2.0, 4.0):
                session.run(train, {x: value})
            # each run waits for the token that the update gives out
            assert session.run([v, step]) == [1.0 - 0.5 * 7.0, 3]


def test_gradients_of_two_replicas_are_averaged() -> None:
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [])
        v = tf.Variable(1.0)
        e = tf.get_variable("e", [3, 1], initializer=tf.zeros_initializer())
        step = tf.train.create_global_step()
        optimizer = _optimizer(2, 1)  # one replica computes two gradients for each update
        train = optimizer.minimize(v * x + tf.reduce_sum(tf.gather(e, [1])) * x, global_step=step)
        hook = optimizer.make_session_run_hook(True)
        with tf.train.MonitoredTrainingSession(hooks=[hook], stop_grace_period_secs=0) as session:
            for value in (1.0, 3.0):
                session.run(train, {x: value})
            # the tokens of the beginning let the replica be ahead of the update
            until(lambda: session.run(step) == 1, "the update")
            found = session.run([v, e])
    assert found[0] == 1.0 - 0.5 * 2.0
    np.testing.assert_array_equal(found[1], [[0.0], [-1.0], [0.0]])


def test_other_replicas_only_take_the_step() -> None:
    with tf.Graph().as_default():
        v = tf.Variable(1.0)
        optimizer = _optimizer(1)
        optimizer.minimize(v * v, global_step=tf.train.create_global_step())
        hook = optimizer.make_session_run_hook(False)
        hook.begin()
        with tf.Session() as session:
            with pytest.raises(RuntimeError, match="not: Variable, global_step"):
                hook.after_create_session(session, None)
            session.run(tf.global_variables_initializer())
            hook.after_create_session(session, None)
            assert session.run(tf.local_variables()) == [0]


MISTAKES: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "no pairs": (lambda o, v: o.apply_gradients([]), "at least one pair"),
    "no step": (lambda o, v: o.minimize(v * v), "global_step is needed"),
    "runner too early": (lambda o, v: o.get_chief_queue_runner(), "comes after apply_gradients"),
    "tokens too early": (lambda o, v: o.get_init_tokens_op(), "comes after apply_gradients"),
    "hook too early": (lambda o, v: o.make_session_run_hook(True).begin(), "to be called before"),
    "no gradient": (lambda o, v: o.apply_gradients([(3, v)], tf.train.create_global_step()), "expected a tensor"),
    "few tokens": (
        lambda o, v: (o.minimize(v * v, tf.train.create_global_step()), o.get_init_tokens_op(1)),
        "the first step needs 2",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_told(name: str) -> None:
    make, said = MISTAKES[name]
    with tf.Graph().as_default(), pytest.raises(ValueError, match=said):
        make(_optimizer(4, 2), tf.Variable(1.0))


def test_scaled_losses_train_as_without() -> None:
    with tf.Graph().as_default():
        v, w = tf.Variable([1.0, 2.0]), tf.Variable([1.0, 2.0])
        plain = tf.train.GradientDescentOptimizer(0.5)
        scaled = tf.mixed_precision.MixedPrecisionLossScaleOptimizer(tf.train.GradientDescentOptimizer(0.5), 8)
        train = [plain.minimize(tf.reduce_sum(v * v)), scaled.minimize(tf.reduce_sum(w * w))]
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            session.run(train)
            found = session.run([v, w])
    np.testing.assert_array_equal(found[0], found[1])  # a power of two is exact


def test_steps_that_are_not_finite_change_nothing() -> None:
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [])
        v = tf.Variable(1.0)
        scale = tf.mixed_precision.DynamicLossScale(4.0, increment_period=2, multiplier=2.0)
        optimizer = tf.mixed_precision.MixedPrecisionLossScaleOptimizer(tf.train.GradientDescentOptimizer(0.5), scale)
        step = tf.train.create_global_step()
        train = optimizer.minimize(v * x, step)
        seen: list[list[float]] = []
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            for value in (1.0, 1.0, float("inf"), 1.0):
                session.run(train, {x: value})
                seen.append(session.run([v, scale(), step]))
    # the scale doubles after two good steps, and is halved by the bad one, which applies nothing
    assert seen == [[0.5, 4.0, 1], [0.0, 8.0, 2], [0.0, 4.0, 2], [-0.5, 4.0, 3]]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: tf.mixed_precision.FixedLossScale(0.5), "at least 1"),
        (lambda: tf.mixed_precision.FixedLossScale("a"), "a number"),
        (lambda: tf.mixed_precision.MixedPrecisionLossScaleOptimizer(3, 8), "an Optimizer"),
        (
            lambda: tf.mixed_precision.MixedPrecisionLossScaleOptimizer(tf.train.AdamOptimizer(), None),
            "a LossScale, a number or 'dynamic'",
        ),
        (
            lambda: tf.mixed_precision.enable_mixed_precision_graph_rewrite(
                tf.mixed_precision.MixedPrecisionLossScaleOptimizer(tf.train.AdamOptimizer(), 2)
            ),
            "already",
        ),
    ],
)
def test_mistakes_of_scales_are_told(make: Any, said: str) -> None:
    with tf.Graph().as_default(), pytest.raises(ValueError, match=said):
        make()
