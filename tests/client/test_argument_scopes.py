"""Argument scopes and variables of models: what mistakes say, and what custom getters are told."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from toolkit import tensorflow as tf
from toolkit.client.argument_scopes import add_arg_scope, arg_scope, arg_scoped_arguments
from toolkit.client.checks import shape_checks
from toolkit.client.structures import nest_paths
from toolkit.client.variables import model_variables
from toolkit.errors import GraphError


@add_arg_scope
def area(width: float, height: float = 2.0) -> float:
    return width * height


def test_scopes_end_with_an_error() -> None:
    with pytest.raises(RuntimeError), arg_scope([area], height=3.0):
        raise RuntimeError
    assert area(1.0) == 2.0


@pytest.mark.parametrize(
    ("given", "options", "kind", "says"),
    [
        ("area", {}, TypeError, "arg_scope takes a list of functions or a scope, not str"),
        ([len], {}, ValueError, "builtins.len takes no arguments from scopes; decorate it with add_arg_scope"),
        ({}, {"height": 1}, ValueError, "a scope is put in force as it is; height belong to a list of functions"),
    ],
)
def test_mistakes_in_scopes(given: Any, options: dict[str, Any], kind: type[Exception], says: str) -> None:
    with pytest.raises(kind) as error, arg_scope(given, **options):
        pass
    assert str(error.value) == says


def test_arguments_of_what_is_not_decorated() -> None:
    with pytest.raises(ValueError, match="decorate it with add_arg_scope"):
        arg_scoped_arguments(len)


def test_custom_getters_are_told_everything_and_may_change_it() -> None:
    seen: dict[str, Any] = {}

    def getter(getter: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        seen.update(kwargs)
        return getter(name, *args, **{**kwargs, "collections": ["mine"], "trainable": False, "dtype": tf.float64})

    with tf.Graph().as_default() as graph, tf.variable_scope("s", custom_getter=getter):
        v = tf.get_variable("v", [2], initializer=tf.zeros_initializer())
        assert (v.dtype.base, graph.get_collection("mine"), tf.trainable_variables()) == (tf.float64, [v], [])
    assert {"shape", "dtype", "initializer", "regularizer", "reuse", "trainable", "collections"} <= seen.keys()


def test_variables_that_are_not_there() -> None:
    with tf.Graph().as_default():
        tf.get_variable("weights", [2])
        with pytest.raises(ValueError, match="there is no variable 'x'"):
            model_variables.get_unique_variable("x")
        with pytest.raises(ValueError, match=r"'w' is the name of no variable, only the beginning of some \(weights\)"):
            model_variables.get_unique_variable("w")
        with pytest.raises(TypeError, match="exclude: expected a list of scopes, got str"):
            model_variables.get_variables_to_restore(exclude="w")


def test_shapes_that_are_others() -> None:
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [2, 3], name="x")
        with pytest.raises(GraphError, match=r"'x:0' has shape \[2,3\]; \[3, 3\] is expected"):
            shape_checks.with_shape([3, 3], x)
        with pytest.raises(GraphError, match="a whole number is expected"):
            shape_checks.assert_scalar_int(x)
        with pytest.raises(ValueError, match="at least one tensor"):
            shape_checks.reduce_sum_n([])
        free = tf.placeholder(tf.float32, [None, 3], name="free")
        checked = shape_checks.with_shape([2, 3], free)
        with tf.Session() as session:
            assert session.run(checked, {free: np.ones([2, 3])}).shape == (2, 3)
            with pytest.raises(tf.errors.InvalidArgumentError, match="another shape than expected"):
                session.run(checked, {free: np.ones([1, 3])})


def test_structures_that_are_not_alike() -> None:
    with pytest.raises(Exception, match="not alike"):
        nest_paths.map_with_paths(lambda path, x, y: x, [1], (1,))
    assert tf.contrib.framework.nest.map_structure_with_paths(lambda path, x: path, {"a": [1]}) == {"a": ["a/0"]}
    with pytest.raises(ValueError, match="expected check_types"):
        tf.contrib.framework.nest.map_structure_with_paths(lambda path, x: path, [1], check=True)


def test_checkpoints_that_lack_variables(tmp_path: Any) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.get_variable("v", [2], initializer=tf.zeros_initializer())
        w = tf.get_variable("w", [3])
        session.run(v.initializer)
        path = tf.train.Saver([v]).save(session, str(tmp_path / "m"))
        framework = tf.contrib.framework
        with pytest.raises(ValueError, match="the checkpoint has no 'w'"):
            framework.assign_from_checkpoint(path, [v, w])
        with pytest.raises(ValueError, match=r"'v' has shape \(2,\) in the checkpoint, the variable \[3\]"):
            framework.assign_from_checkpoint(path, {"v": w})
        assert framework.assign_from_checkpoint_fn(path, [w], ignore_missing_vars=True) is None
        with pytest.raises(ValueError, match="no variables to restore"):
            framework.assign_from_checkpoint_fn(path, [])


def test_variables_take_turns_on_the_tasks_of_a_job() -> None:
    chooser = tf.contrib.framework.VariableDeviceChooser(num_tasks=2)
    assert [chooser(None) for _ in range(3)] == [f"/job:ps/task:{task}/device:CPU:0" for task in (0, 1, 0)]
    assert tf.contrib.framework.VariableDeviceChooser()(None) == "/device:CPU:0"
