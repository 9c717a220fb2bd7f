"""Layers whose arguments scopes give: what mistakes say, and what collections hold."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

from toolkit import tensorflow as tf
from toolkit.client.scoped_layers import common

layers = tf.contrib.layers
slim = tf.contrib.slim


def image(*sizes: int | None) -> Any:
    return tf.placeholder(tf.float32, list(sizes) or [2, 8, 8, 4], name="x")


MISTAKES: list[tuple[str, type[Exception], str]] = [
    ("layers.fully_connected(image(4, 3), 2.0)", ValueError, "num_outputs: expected a whole number, got 2.0"),
    ("layers.conv2d(image(4, 3), 2, 3)", ValueError, "a convolution over 2 dimensions takes 4, but the inputs have 2"),
    ("layers.conv2d(image(), 2, 3, data_format='HWC')", ValueError, "data_format: expected .*, got 'HWC'"),
    ("layers.max_pool2d(image(), 2, data_format='NC')", ValueError, "data_format: expected NCHW or NHWC, got 'NC'"),
    ("layers.batch_norm(image(None, None))", ValueError, "the size of dimension -1 of 'x:0' is not known"),
    ("layers.batch_norm(image(), renorm=True, updates_collections=None)", ValueError, "renorm goes with neither"),
    ("layers.layer_norm(image(), begin_norm_axis=4)", ValueError, "begin_norm_axis: there is no axis 4"),
    ("layers.group_norm(image(), 3)", ValueError, "groups: 4 channels make no 3 groups of one size"),
    ("layers.group_norm(image(), 2, reduction_axes=(-1,))", ValueError, "reduction_axes: -1 is no axis besides"),
    ("layers.maxout(image(), 3)", ValueError, "num_units: 4 features make no 3 groups of one size"),
    ("layers.unit_norm(image(), 4)", ValueError, "dim: there is no axis 4"),
    ("layers.l2_regularizer(1)", ValueError, "scale: expected a float, got the whole number 1"),
    ("layers.l1_regularizer(-0.5)", ValueError, "scale: expected a number that is not negative, got -0.5"),
    ("layers.apply_regularization(layers.l2_regularizer(0.1))", ValueError, "there are no weights to regularize"),
    ("layers.apply_regularization(lambda w: w, [image(2)])", ValueError, "a regularizer gives a scalar"),
    ("layers.variance_scaling_initializer(mode='FAN')", TypeError, "mode: expected one of FAN_IN, FAN_OUT, FAN_AVG"),
    ("layers.variance_scaling_initializer(dtype=tf.int32)", TypeError, "makes floating point numbers, not int32"),
    ("layers.embed_sequence(image(2), 5)", ValueError, "vocab_size and embed_dim: expected both, got 5 and None"),
    ("layers.stack(image(2, 3), layers.relu, 3)", ValueError, "stack_args: expected a list, got int"),
    ("slim.pool(image(2, 3), 2, 'MAX')", ValueError, "pools take inputs of 3 dimensions or more, not of 2"),
    ("layers.optimize_loss(tf.constant(1.0), None, 0.1, 'Adm')", ValueError, "optimizer: there is no 'Adm'"),
    ("layers.optimize_loss(tf.constant(1.0), None, 1, 'Adam')", ValueError, "learning_rate: expected a float"),
    ("layers.optimize_loss(tf.constant(1.0), None, -1.0, 'Adam')", ValueError, "that is not negative"),
    ("layers.optimize_loss(tf.constant(1.0), None, None, 'Adam')", ValueError, "the optimizer Adam needs one"),
    ("layers.optimize_loss(tf.constant(1.0), None, 0.1, 'SGD', summaries=['los'])", ValueError, "there is no 'los'"),
    ("layers.optimize_loss(tf.constant(1.0), None, 0.1, lambda r: r)", ValueError, "which is no optimizer"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "says"), MISTAKES, ids=[call for call, _, _ in MISTAKES])
def test_mistakes(call: str, kind: type[Exception], says: str) -> None:
    with tf.Graph().as_default(), pytest.raises(kind, match=says):
        eval(call)


def test_conv2d_takes_sequences_as_it_did_before_1_10() -> None:
    """What seq2seq's encoders of 2017 build on; 1.15 wants conv1d."""
    with tf.Graph().as_default():
        found = layers.conv2d(image(2, 8, 4), 3, 5, activation_fn=None)
        assert (found.shape, found.op.inputs[0].op.type) == ([2, 8, 3], "Squeeze")
        assert [v.shape.as_list() for v in tf.trainable_variables()] == [[5, 4, 3], [3]]


def test_optimizers_by_name_take_their_own_options() -> None:
    kinds = layers.OPTIMIZER_CLS_NAMES
    assert kinds["Adam"] is tf.train.AdamOptimizer
    assert kinds["RMSProp"](learning_rate=0.1, decay=0.5, epsilon=1e-3).get_name() == "RMSProp"
    assert kinds["Momentum"](learning_rate=0.1).get_name() == "Momentum"


def test_a_layer_twice_in_a_scope_is_a_value_error() -> None:
    with tf.Graph().as_default():
        layers.linear(image(4, 3), 2, scope="a")
        with pytest.raises(ValueError, match="variable 'a/weights' exists already"):
            layers.linear(image(4, 3), 2, scope="a")


def test_collections_of_variables_and_outputs() -> None:
    with tf.Graph().as_default():
        collections = {"weights": ["mine"]}
        with slim.arg_scope([slim.conv2d], variables_collections=collections, outputs_collections="ends"):
            net = slim.conv2d(image(), 3, 1, scope="one")
            net = slim.conv2d(net, 3, 1, scope="two")
        assert [v.op.name for v in tf.get_collection("mine")] == ["one/weights", "two/weights"]
        assert slim.utils.convert_collection_to_dict("ends", clear_collection=True)["two"] is net
        assert tf.get_collection("ends") == []
        assert common.get_tensor_aliases(tf.constant(1.0, name="c")) == ["c"]
        assert common.gather_tensors_aliases([net]) == ["two"]


def test_repeated_layers_are_called_after_the_function() -> None:
    with tf.Graph().as_default():
        slim.repeat(image(4, 3), 2, functools.partial(slim.fully_connected, num_outputs=3))
        slim.stack(image(4, 3), slim.linear, [2])
        names = [v.op.name for v in slim.get_model_variables()]
    assert names[0] == "Repeat/fully_connected_1/weights"
    assert names[-1] == "Stack/fully_connected_1/biases"


def test_batch_norm_moves_its_statistics_once_per_step() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.constant([[1.0, 2.0], [3.0, 6.0]])
        flag = tf.placeholder(tf.bool, [])
        y = layers.batch_norm(x, decay=0.5, is_training=flag, updates_collections=None, scope="n")
        session.run(tf.global_variables_initializer())
        mean = slim.get_unique_variable("n/moving_mean")
        session.run(y, {flag: False})
        np.testing.assert_array_equal(session.run(mean), [0.0, 0.0])
        session.run(y, {flag: True})
        np.testing.assert_array_equal(session.run(mean), [1.0, 2.0])
