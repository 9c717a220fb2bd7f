"""Digits learned by one program that uses all workers: a graph with a copy of the network for each (in-graph replication).

    graphmill python in_graph.py --master=grpc://localhost:2232

A batch is cut into as many parts as there are workers; the gradients are averaged where the variables are.
"""

import os

import numpy as np
import tensorflow as tf

flags = tf.app.flags
flags.DEFINE_string("master", "", "Any server of the cluster: grpc://host:port.")
flags.DEFINE_integer("workers", 2, "How many workers there are.")
flags.DEFINE_integer("steps", 60, "How many steps to train.")
FLAGS = flags.FLAGS

digits = np.load(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "digits.npz"))


def network(images):
    hidden = tf.layers.dense(tf.reshape(images, [-1, 64]), 64, tf.nn.relu, name="hidden")
    return tf.layers.dense(hidden, 10, name="logits")


def on_worker(task):
    """Variables go to the parameter server, everything else to the worker."""
    return tf.train.replica_device_setter(ps_tasks=1, worker_device="/job:worker/task:%d" % task)


def main(_):
    tf.set_random_seed(3)
    x = tf.placeholder(tf.float32, [None, 8, 8, 1], name="x")
    y = tf.placeholder(tf.int64, [None], name="y")
    optimizer = tf.train.GradientDescentOptimizer(0.5)
    losses, gradients = [], []
    parts = zip(tf.split(x, FLAGS.workers), tf.split(y, FLAGS.workers))
    for task, (images, labels) in enumerate(parts):
        with tf.device(on_worker(task)), tf.variable_scope("net", reuse=task > 0):
            loss = tf.losses.sparse_softmax_cross_entropy(labels, network(images))
            losses.append(loss)
            gradients.append(optimizer.compute_gradients(loss))
    with tf.device("/job:ps/task:0"):
        averaged = [
            (tf.add_n([gradient for gradient, _ in each]) / FLAGS.workers, each[0][1]) for each in zip(*gradients)
        ]
        train = optimizer.apply_gradients(averaged)
        loss = tf.add_n(losses) / FLAGS.workers

    random = np.random.RandomState(0)
    with tf.Session(FLAGS.master) as session:
        session.run(tf.global_variables_initializer())
        found = []
        for _ in range(FLAGS.steps):
            rows = random.randint(len(digits["x_train"]), size=64 * FLAGS.workers)
            found.append(session.run([loss, train], {x: digits["x_train"][rows], y: digits["y_train"][rows]})[0])
        print("loss %.4f -> %.4f" % (found[0], found[-1]))


if __name__ == "__main__":
    tf.app.run()
