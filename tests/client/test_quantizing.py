"""Graphs that cannot be rewritten to round, and layers that are found where TensorFlow 1.15's tests have none."""

from __future__ import annotations

import numpy as np
import pytest

from toolkit import tensorflow as tf
from toolkit.errors import GraphError

quantize = tf.contrib.quantize


def test_optimizers_come_afterwards() -> None:
    with tf.Graph().as_default():
        v = tf.Variable([1.0])
        tf.train.AdamOptimizer().minimize(tf.reduce_sum(v * v))
        with pytest.raises(ValueError, match="before optimizers are added to it; there are ApplyAdam"):
            quantize.create_training_graph()


@pytest.mark.parametrize(("bits", "what"), [(1, "weight_bits"), (17, "weight_bits"), (17, "activation_bits")])
def test_numbers_of_bits(bits: int, what: str) -> None:
    with (
        tf.Graph().as_default(),
        pytest.raises(ValueError, match=f"{what}: expected 2 to 16 bits, got {bits}"),
    ):
        quantize.experimental_create_eval_graph(**{what: bits})


def test_a_batch_norm_without_averages() -> None:
    with tf.Graph().as_default():
        weights = tf.Variable(np.ones([1, 1, 3, 3], "f"))
        y = tf.nn.conv2d(tf.ones([2, 4, 4, 3]), weights, [1, 1, 1, 1], "SAME")
        y, _, _ = tf.nn.fused_batch_norm(y, tf.ones([3]), tf.zeros([3]))
        tf.nn.relu(y)
        with pytest.raises(GraphError, match="no moving average of this batch norm's statistics"):
            quantize.create_training_graph()


def test_what_is_no_layer_stays() -> None:
    with tf.Graph().as_default() as graph:
        tf.nn.relu(tf.matmul(tf.ones([2, 3]), tf.ones([3, 2])) + 1.0)  # of no variable
        before = len(graph.get_operations())
        quantize.create_training_graph()
        assert len(graph.get_operations()) == before


def test_twice_is_once() -> None:
    with tf.Graph().as_default() as graph:
        tf.identity(tf.layers.dense(tf.ones([2, 3]), 4, tf.nn.relu))
        quantize.create_eval_graph()
        count = len(graph.get_operations())
        quantize.create_eval_graph()
        assert len(graph.get_operations()) == count


def test_dilations_stay() -> None:
    with tf.Graph().as_default() as graph:
        kernel = tf.Variable(np.ones([3, 3, 2, 2], "f"))
        y = tf.nn.conv2d(tf.ones([1, 9, 9, 2]), kernel, [1, 1, 1, 1], "SAME", dilations=[1, 2, 2, 1], name="wide")
        y, _, _ = tf.nn.fused_batch_norm(y, [1.0, 2.0], [0.0, 0.0], [0.5, 0.5], [1.0, 1.0], is_training=False)
        tf.nn.relu(y)
        quantize.create_eval_graph()
        assert graph.get_operation_by_name("wide_Fold").get_attr("dilations") == [1, 2, 2, 1]
