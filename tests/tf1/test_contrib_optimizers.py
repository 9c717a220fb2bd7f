"""tf.contrib.opt: what is left out when it comes late, and optimizers outside of the graph."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from toolkit import tensorflow as tf
from toolkit.errors import UsageError


@pytest.fixture(autouse=True)
def graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def test_gradients_that_come_too_late_are_dropped_and_counted() -> None:
    v = tf.get_variable("v", [], initializer=tf.constant_initializer(1.0))
    step = tf.train.get_or_create_global_step()
    optimizer = tf.contrib.opt.DropStaleGradientOptimizer(tf.train.GradientDescentOptimizer(0.5), 2)
    pairs = optimizer.compute_gradients(v * 1.0)
    late = tf.placeholder_with_default(0, [])
    with tf.control_dependencies([gradient for gradient, _ in pairs]):
        older = step.assign_add(tf.cast(late, tf.int64))
    with tf.control_dependencies([older]):
        train = optimizer.apply_gradients([(tf.identity(pairs[0][0]), v)], global_step=step)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train)
        assert session.run([v, step]) == [0.5, 1]
        assert session.run(train, {late: 7}) == 1.0, "one was dropped"
        assert session.run([v, step]) == [0.5, 8]


def test_gradients_age_by_global_steps() -> None:
    v = tf.get_variable("v", [])
    optimizer = tf.contrib.opt.DropStaleGradientOptimizer(tf.train.GradientDescentOptimizer(0.5), 2)
    with pytest.raises(UsageError, match="create_global_step"):
        optimizer.compute_gradients(v * 1.0)


class _Descent(tf.contrib.opt.ExternalOptimizerInterface):
    """Plain descent, which keeps what it was given."""

    def _minimize(self, initial_val: Any, loss_grad_func: Any, optimizer_kwargs: Any, **given: Any) -> Any:
        self.given = given
        x = initial_val
        for _ in range(optimizer_kwargs["steps"]):
            _, slope = loss_grad_func(x)
            x = x - 0.25 * slope
            given["step_callback"](x)
        return x


def _loss() -> tuple[Any, Any, Any]:
    a = tf.get_variable("a", [2, 2], initializer=tf.constant_initializer(3.0))
    b = tf.get_variable("b", [], initializer=tf.constant_initializer(-1.0))
    return a, b, tf.reduce_sum(tf.square(a - 1.0)) + tf.square(b)


def test_a_program_brings_its_own_optimizer() -> None:
    a, b, loss = _loss()
    unused = tf.get_variable("c", [3], initializer=tf.constant_initializer(2.0))
    outside = _Descent(
        loss, equalities=[b], inequalities=[a[0, 0]], var_to_bounds={a: (0.0, [[1.0, 2.0], [3.0, 4.0]])}, steps=4
    )
    seen: list[Any] = []
    steps: list[Any] = []
    with tf.Session():
        tf.global_variables_initializer().run()
        outside.minimize(fetches=[loss], loss_callback=seen.append, step_callback=steps.append)
        # 2 and -1 halve four times; powers of two are exact
        np.testing.assert_array_equal(a.eval(), np.full([2, 2], 1.125, "f"))
        assert b.eval() == -0.0625
        np.testing.assert_array_equal(unused.eval(), [2.0, 2.0, 2.0])
        (at,) = outside.given["equality_funcs"][0](np.full(8, 0.5, "f"))
        (slope,) = outside.given["inequality_grad_funcs"][0](np.zeros(8, "f"))
    assert at == 0.5
    np.testing.assert_array_equal(slope, [1, 0, 0, 0, 0, 0, 0, 0])
    assert outside.given["packed_bounds"][:5] == [(0, 1), (0, 2), (0, 3), (0, 4), (-np.inf, np.inf)]
    assert seen[0] == 17.0 and len(seen) == len(steps) == 4


def test_an_outside_optimizer_needs_a_session_and_a_rule() -> None:
    _, _, loss = _loss()
    outside = tf.contrib.opt.ExternalOptimizerInterface(loss)
    with pytest.raises(UsageError, match="session"):
        outside.minimize()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        with pytest.raises(NotImplementedError, match="_minimize"):
            outside.minimize(session)


def test_scipy_minimizes(monkeypatch: pytest.MonkeyPatch) -> None:
    a, _, loss = _loss()
    calls: list[dict[str, Any]] = []

    def minimize(function: Any, start: Any, **given: Any) -> Any:
        calls.append(given)
        value, slope = function(start)
        assert slope.dtype == np.float64
        return types.SimpleNamespace(x=start - 0.5 * slope, fun=value, message="done", nit=1)

    optimize = types.ModuleType("scipy.optimize")
    optimize.minimize = minimize  # type: ignore[attr-defined]
    scipy = types.ModuleType("scipy")
    scipy.optimize = optimize  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "scipy", scipy)
    monkeypatch.setitem(sys.modules, "scipy.optimize", optimize)
    outside = tf.contrib.opt.ScipyOptimizerInterface(loss, [a], inequalities=[a[0, 0]], options={"maxiter": 3})
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        outside.minimize(session)
        np.testing.assert_array_equal(session.run(a), np.ones([2, 2], "f"))
        condition = calls[0]["constraints"][0]
        assert condition["fun"](np.full(4, 2.0, "f")) == 2.0
    assert (calls[0]["method"], calls[0]["jac"], calls[0]["options"]) == ("L-BFGS-B", True, {"maxiter": 3})
    assert condition["type"] == "ineq"


@pytest.mark.parametrize(("given", "said"), [({"bounds": []}, "var_to_bounds"), ({"jac": True}, "jac")])
def test_what_scipy_is_not_given_by_hand(given: dict[str, Any], said: str) -> None:
    _, _, loss = _loss()
    outside = tf.contrib.opt.ScipyOptimizerInterface(loss, **given)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        with pytest.raises(ValueError, match=said):
            outside.minimize(session)


def test_without_scipy_a_line_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy", None)
    _, _, loss = _loss()
    outside = tf.contrib.opt.ScipyOptimizerInterface(loss)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        with pytest.raises(UsageError, match="install scipy"):
            outside.minimize(session)


def test_only_optimizers_are_wrapped() -> None:
    with pytest.raises(TypeError, match="Optimizer"):
        tf.contrib.opt.MultitaskOptimizerWrapper(3)
