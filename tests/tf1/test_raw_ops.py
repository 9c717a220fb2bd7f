"""tf.raw_ops has TensorFlow's functions, with its arguments and results."""

# TensorFlow's names have no types
# pyright: basic

from __future__ import annotations

import inspect
from types import ModuleType

import numpy as np
import pytest

from toolkit import tensorflow as tf
from toolkit.tensorflow import importer


@pytest.mark.tensorflow
def test_arguments_are_those_of_tensorflow() -> None:
    theirs: ModuleType = pytest.importorskip("tensorflow").compat.v1.raw_ops
    names = [name for name in dir(theirs) if not name.startswith("_") and callable(getattr(theirs, name))]
    assert len(names) > 1000
    assert not set(names) - set(dir(tf.raw_ops))

    def arguments(function: object) -> list[str]:
        return [name for name in inspect.signature(function).parameters if name not in ("name", "node_name")]

    wrong = [
        name for name in names if arguments(getattr(tf.raw_ops, name)) != arguments(getattr(theirs, name))
    ]  # fmt: skip
    assert wrong == []


def test_they_make_their_nodes() -> None:
    with tf.Graph().as_default() as graph:
        x = tf.constant([[3.0, 1.0, 2.0]])
        best = tf.raw_ops.TopKV2(input=x, k=2)
        any_big = tf.raw_ops.Any(input=x > 2.5, axis=[1])
        left, right = tf.raw_ops.Split(axis=0, value=[1.0, 2.0], num_split=2, name="halves")
        nothing = tf.raw_ops.NoOp()
        assert [node.type for node in graph.get_operations()].count("Split") == 1
        assert left.op.name == "halves" and nothing.type == "NoOp"
        with tf.Session() as session:
            values, indices, is_big, second = session.run([best.values, best.indices, any_big, right])
    np.testing.assert_array_equal(values, [[3.0, 2.0]])
    np.testing.assert_array_equal(indices, [[0, 2]])
    assert is_big.tolist() == [True] and second.tolist() == [2.0]


def test_mistakes_are_told() -> None:
    with tf.Graph().as_default():
        with pytest.raises(TypeError, match=r"tf\.raw_ops\.Neg has no argument 'y'; it takes name, x"):
            tf.raw_ops.Neg(y=1.0)
        with pytest.raises(TypeError, match="positional"):
            tf.raw_ops.Neg(1.0)
        with pytest.raises(AttributeError, match=r"raw_ops\.Negg"):
            tf.raw_ops.Negg  # noqa: B018


def test_programs_import_them() -> None:
    with importer.installed():
        found: dict[str, object] = {}
        exec("from tensorflow.compat.v1 import raw_ops\nfrom tensorflow.raw_ops import Neg", found)
    assert found["Neg"] is tf.raw_ops.Neg is tf.compat.v1.raw_ops.Neg
