"""Programs come with the devices of the machine they were written on, and run on the one CPU that there is."""

# TensorFlow's names have no types
# pyright: basic

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from toolkit import tensorflow as tf
from toolkit.kernels.cuda import settings
from toolkit.kernels.cuda.driver import choose
from toolkit.kernels.cuda.driver.fake import FakeDriver
from toolkit.runtime.session import Session

X = np.arange(30, dtype=np.float32).reshape(2, 5, 3) / 30


def _recurrent(x: Any) -> Any:
    cell = tf.nn.rnn_cell.BasicLSTMCell(4)
    outputs, _ = tf.nn.dynamic_rnn(cell, x, dtype=tf.float32)
    return tf.gradients(tf.reduce_sum(outputs), x)[0]


def _array(x: Any) -> Any:
    array = tf.TensorArray(tf.float32, 5).unstack(tf.transpose(x, [1, 0, 2]))
    return tf.gradients(tf.reduce_sum(tf.square(array.stack())), x)[0]


def _stack(x: Any) -> Any:
    _, total = tf.while_loop(lambda i, _: i < 3, lambda i, t: (i + 1, t * t), [0, x], parallel_iterations=1)
    return tf.gradients(total, x)[0]


def _list(x: Any) -> Any:
    made = tf.raw_ops.TensorListFromTensor(tensor=x, element_shape=tf.constant([5, 3]))
    made = tf.raw_ops.TensorListPushBack(input_handle=made, tensor=tf.ones([5, 3]))
    return tf.raw_ops.TensorListStack(
        input_handle=made, element_shape=tf.constant([5, 3]), element_dtype=tf.float32, num_elements=-1
    )


@pytest.mark.parametrize("with_gpus", [False, True])
@pytest.mark.parametrize("make", [_recurrent, _array, _stack, _list])
@pytest.mark.parametrize("tokens", [False, True])
def test_lists_lie_where_their_nodes_run(make: Callable[[Any], Any], tokens: bool, with_gpus: bool) -> None:
    def run(device: str) -> Any:
        with tf.Graph().as_default() as graph:
            tf.set_random_seed(1)
            with tf.device(device):
                x = tf.placeholder(tf.float32, [2, 5, 3], name="x")
                fetched = make(x)
            session = Session(graph, devices={"CPU": 1}, force_tokens=tokens)
            session.run(tf.global_variables_initializer())
            return session.run(fetched, {x: X})

    wanted = run("")
    if not with_gpus:  # whoever asks for the GPU fails
        np.testing.assert_array_equal(run("/gpu:0"), wanted)
        return
    with choose.using(FakeDriver(1, memory=1 << 22)):
        np.testing.assert_array_equal(run("/gpu:0"), wanted)
    settings.forget()


def test_a_kept_tensor_says_where_it_is() -> None:
    with tf.Graph().as_default(), tf.device("/gpu:0"):
        handle = tf.get_session_handle(tf.constant([1.0, 2.0]) * 2.0)
        with tf.Session() as session:
            kept = session.run(handle)
            assert kept.handle.endswith("/device:CPU:0")
            np.testing.assert_array_equal(kept.eval(), [2.0, 4.0])
