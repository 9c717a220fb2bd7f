"""What libraries like Keras do with graphs of others: notes on tensors, the device around, tensors of any kind."""

# TensorFlow's names have no types
# pyright: basic

from __future__ import annotations

import importlib
from typing import Any

import pytest

from toolkit import tensorflow as tf
from toolkit.tensorflow import importer


class _Told:
    """What a library has instead of an operation, to be told its device."""

    device: Any = None

    def _set_device(self, device: Any) -> None:
        self.device = device


def test_notes_stay_on_tensors_and_operations() -> None:
    with tf.Graph().as_default() as graph:
        tf.placeholder(tf.float32, [2], name="x")._keras_shape = (2,)
        graph.get_operation_by_name("x").note = "seen"
        assert graph.get_tensor_by_name("x:0")._keras_shape == (2,)
        assert graph.get_operation_by_name("x").note == "seen"
        with pytest.raises(AttributeError):
            _ = tf.zeros([2])._keras_shape


def test_the_device_of_the_scopes_around() -> None:
    with tf.Graph().as_default() as graph:
        told = [_Told() for _ in range(4)]
        graph._apply_device_functions(told[0])
        with tf.device("/job:worker/gpu:1"):
            graph._apply_device_functions(told[1])
            with tf.device("/cpu:0"):
                graph._apply_device_functions(told[2])
            with tf.device(None):
                graph._apply_device_functions(told[3])
    specs = [each.device for each in told]
    assert specs[0] is specs[3] is None
    found = [(spec.job, spec.device_type, spec.device_index) for spec in specs[1:3]]
    assert found == [("worker", "GPU", 1), ("worker", "CPU", 0)]


def test_the_device_of_an_operation_itself() -> None:
    with tf.Graph().as_default() as graph:
        op = tf.no_op()
        with tf.device("/cpu:0"):
            graph._apply_device_functions(op)
    assert op.device == "/device:CPU:0"


def test_kinds_of_tensors() -> None:
    with importer.installed(), tf.Graph().as_default():
        ops = importlib.import_module("tensorflow.python.framework.ops")
        dense, variable = tf.zeros([2]), tf.Variable([1.0])
        sparse = tf.SparseTensor([[0]], [1.0], [2])
        slices = tf.IndexedSlices(dense, tf.constant([0, 1]))
        assert [isinstance(each, ops._TensorLike) for each in (dense, sparse, slices, [1.0])] == [True] * 3 + [False]
        likely = [ops.is_dense_tensor_like(each) for each in (dense, variable, sparse, slices, [1.0])]
        assert likely == [True, True, False, False, False]


def test_sizes_by_their_private_name() -> None:
    assert [size.value for size in tf.TensorShape([2, None])._dims] == [2, None]
    assert tf.TensorShape(None)._dims is None


def test_none_as_a_name_is_the_name_of_the_op() -> None:
    with tf.Graph().as_default():
        assert [tf.constant(1.0, name=None).op.name for _ in range(2)] == ["Const", "Const_1"]


def test_initializers_of_programs() -> None:
    with importer.installed(), tf.Graph().as_default():
        base = importlib.import_module("tensorflow.python.ops.init_ops").Initializer

        class Halves(base):
            def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
                return tf.fill(shape, 0.5)

        assert isinstance(tf.zeros_initializer(), base)
        w = tf.get_variable("w", [2], initializer=Halves())
        with tf.Session() as session:
            session.run(w.initializer)
            assert session.run(w).tolist() == [0.5, 0.5]
