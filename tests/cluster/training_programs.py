"""Training programs over a cluster, for either module that has TensorFlow 1's names.

Graphs are made in the caller's thread, one for each worker, and run in threads of their own.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests import patience

DIGITS = Path(__file__).resolve().parents[2] / "samples" / "digits.npz"
BATCH = 64


@functools.cache
def digits() -> dict[str, Any]:
    with np.load(DIGITS) as found:
        return dict(found)


def batch(step: int, size: int = BATCH) -> tuple[Any, Any]:
    """The examples of a step, around and around."""
    data = digits()
    at = np.arange(step * size, (step + 1) * size) % len(data["x_train"])
    return data["x_train"][at], data["y_train"][at]


def digits_cnn(tf: Any, optimize: Callable[[Any, Any, Any], Any]) -> dict[str, Any]:
    """A convolutional network for digits in the default graph, as a dict of what is fed and fetched.

    Args:
        optimize: from the module, the loss and the global step to the training operation.
    """
    step = tf.train.get_or_create_global_step()
    data = digits()
    x = tf.placeholder(tf.float32, [None, *data["x_train"].shape[1:]], name="x")
    y = tf.placeholder(tf.int64, [None], name="y")
    at = functools.partial(tf.truncated_normal_initializer, stddev=0.1)
    images = tf.reshape(x, [-1, 8, 8, 1])
    filters = tf.get_variable("filters", [3, 3, 1, 8], initializer=at(seed=1))
    bias = tf.get_variable("bias", [8], initializer=tf.zeros_initializer())
    hidden = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(images, filters, strides=[1, 1, 1, 1], padding="SAME"), bias))
    pooled = tf.nn.max_pool(hidden, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME")
    weights = tf.get_variable("weights", [128, 10], initializer=at(seed=2))
    logits = tf.matmul(tf.reshape(pooled, [-1, 128]), weights)
    labels = tf.cast(y, tf.int64)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), labels), tf.float32))
    return {"x": x, "y": y, "loss": loss, "accuracy": accuracy, "train": optimize(tf, loss, step), "step": step}


def gradient_descent(tf: Any, loss: Any, step: Any) -> Any:
    return tf.train.GradientDescentOptimizer(0.3).minimize(loss, global_step=step)


def replicated(tf: Any, cluster: Any, task: int, container: str, make: Callable[[], Any]) -> tuple[Any, Any]:
    """The graph of one worker with its variables at the parameter servers: between-graph replication."""
    with tf.Graph().as_default() as graph:
        graph.seed = 1
        setter = tf.train.replica_device_setter(worker_device=f"/job:worker/task:{task}", cluster=cluster.jobs)
        with tf.container(container), tf.device(setter):
            return graph, make()


def together(*work: Callable[[], Any]) -> list[Any]:
    """What functions return that run at the same time; raises what the first of them raised."""
    results: list[Any] = [None] * len(work)
    errors: list[BaseException] = []

    def run(number: int) -> None:
        try:
            results[number] = work[number]()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(len(work))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(patience.HUNG)
        if errors:
            raise errors[0]
        assert not thread.is_alive(), "still training"
    return results
